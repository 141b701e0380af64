//! Folds the facts of a conversation into the cards that the timeline shows.
//!
//! The fold is pure and the same for facts that arrive one by one and for facts that are replayed, so an opened
//! conversation looks exactly as it did while it happened. What went wrong and was corrected is folded away into one
//! card: a person reads the outcome first.

use std::collections::HashMap;

use crate::engine::{
    Decision, Finding, Finish, Plan, Problem, RestoreReport, Role, RunReport, StoredTurnEvent, Timings, TurnEvent,
    UsageTotal, VerdictKind,
};

use super::action::Picture;

/// One card, with the moment of its first fact.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// Stays the same for the life of the card; unique within its conversation.
    pub id: i64,
    pub turn: u64,
    /// Unix time in milliseconds.
    pub at_ms: i64,
    /// Goes up with each change, so that views know when a cached height is stale.
    pub revision: u64,
    pub kind: CardKind,
}

/// What a card shows.
#[derive(Debug, Clone, PartialEq)]
pub enum CardKind {
    User {
        text: String,
    },
    Answer {
        /// Markdown.
        text: String,
        streaming: bool,
    },
    Thinking {
        text: String,
        /// Milliseconds; `None` while it goes on.
        took_ms: Option<i64>,
    },
    Knowledge {
        hits: Vec<String>,
        ms: f64,
    },
    Tool {
        call: String,
        name: String,
        arguments: serde_json::Value,
        outcome: Option<ToolOutcome>,
    },
    Plan {
        plan: Plan,
    },
    Code {
        attempt: u32,
        code: String,
        verdict: Option<VerdictKind>,
        findings: Vec<Finding>,
    },
    Permission {
        request: String,
        /// What the plan says that the code is for; empty when there is no plan.
        purpose: String,
        findings: Vec<Finding>,
        decision: Option<Decision>,
        /// The turn ended before anyone answered.
        expired: bool,
    },
    Result {
        report: Box<RunReport>,
        undone: Option<RestoreReport>,
    },
    Screenshot {
        title: String,
        path: String,
        width: u32,
        height: u32,
    },
    /// An attempt that failed and was corrected: its cards are kept inside.
    Repair {
        attempt: u32,
        of: u32,
        why: String,
        inside: Vec<Card>,
    },
    Retrying {
        attempt: u32,
        wait_ms: u64,
        why: String,
    },
    Error {
        problem: Problem,
        /// The message of the person that can be sent again.
        retry: String,
    },
    /// One quiet line, for example that the person stopped the turn.
    Note {
        text: String,
    },
    /// Closes a turn: time, tokens and cost.
    Footer {
        timings: Timings,
        usage: Option<UsageTotal>,
        cost_usd: Option<f64>,
        answer: String,
        run_folder: Option<String>,
    },
}

/// What came back from a tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutcome {
    pub ok: bool,
    pub summary: String,
    pub text: String,
    pub ms: f64,
    pub error: Option<String>,
}

/// What the pipeline is doing now.
#[derive(Debug, Clone, PartialEq)]
pub struct Live {
    pub role: Role,
    pub detail: String,
    /// Unix time in milliseconds.
    pub since_ms: i64,
}

/// All cards of one conversation, and what is going on in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    pub cards: Vec<Card>,
    /// Set while a turn runs.
    pub live: Option<Live>,
    /// Start of the running turn, Unix milliseconds.
    pub turn_started_ms: Option<i64>,
    /// Tokens of the turn that runs or ran last.
    pub usage: Option<UsageTotal>,
    pub cost_usd: Option<f64>,
    /// The messages of the person, oldest first, for recall.
    pub sent: Vec<String>,
    /// The scene change of the last run, for marks in the scene pane.
    pub last_run: Option<Box<RunReport>>,
    turn: u64,
    turn_usage: HashMap<u64, (UsageTotal, Option<f64>)>,
}

impl Timeline {
    /// Replays stored facts.
    pub fn from_events(events: &[StoredTurnEvent]) -> Self {
        let mut timeline = Self::default();
        for event in events {
            timeline.apply(event);
        }
        timeline
    }

    /// True between a message and the end of its turn.
    pub fn running(&self) -> bool {
        self.turn_started_ms.is_some()
    }

    /// Tokens of the whole conversation, and its cost when every turn's cost is known.
    pub fn total(&self) -> (UsageTotal, Option<f64>) {
        let mut sum = UsageTotal::default();
        let mut cost = Some(0.0);
        for (usage, turn_cost) in self.turn_usage.values() {
            sum.input += usage.input;
            sum.cached += usage.cached;
            sum.output += usage.output;
            sum.reasoning += usage.reasoning;
            sum.calls += usage.calls;
            sum.estimated |= usage.estimated;
            cost = match (cost, turn_cost) {
                (Some(sum), Some(turn)) => Some(sum + turn),
                (sum, None) if usage.calls == 0 => sum,
                _ => None,
            };
        }
        (sum, cost)
    }

    /// The newest run that changed something and was not undone. Only this one can be taken back: an older one would
    /// take the later changes with it unasked.
    pub fn undoable_run(&self) -> Option<&str> {
        self.cards.iter().rev().find_map(|card| match &card.kind {
            CardKind::Result { report, undone: None } if report.undoable && !report.diff.is_empty() => {
                Some(report.run.as_str())
            }
            _ => None,
        })
    }

    /// The permission question that waits for an answer.
    pub fn open_permission(&self) -> Option<&str> {
        self.cards.iter().rev().find_map(|card| match &card.kind {
            CardKind::Permission { request, decision: None, expired: false, .. } => Some(request.as_str()),
            _ => None,
        })
    }

    /// The pictures of the conversation, each with the message that brought it.
    pub fn pictures(&self) -> Vec<Picture> {
        let mut request = String::new();
        let mut pictures = Vec::new();
        for card in &self.cards {
            match &card.kind {
                CardKind::User { text } => request.clone_from(text),
                CardKind::Screenshot { title, path, .. } => {
                    pictures.push(Picture { title: title.clone(), request: request.clone(), path: path.clone() });
                }
                _ => {}
            }
        }
        pictures
    }

    /// Adds one fact.
    pub fn apply(&mut self, stored: &StoredTurnEvent) {
        let at_ms = stored.at_ms;
        if !matches!(stored.event, TurnEvent::ReasoningDelta { .. } | TurnEvent::Stage { .. }) {
            self.end_thinking(at_ms);
        }
        match stored.event.clone() {
            TurnEvent::UserMessage { turn, text } => self.start_turn(stored, turn, text),
            TurnEvent::Stage { role, detail } => self.live = Some(Live { role, detail, since_ms: at_ms }),
            TurnEvent::TextDelta { text } => self.add_text(stored, &text),
            TurnEvent::ReasoningDelta { text } => self.add_thinking(stored, &text),
            TurnEvent::TextReplaced { text } => self.replace_text(stored, text),
            TurnEvent::Retrieved { hits, ms } => self.push(stored, CardKind::Knowledge { hits, ms }),
            TurnEvent::ToolCall { id, name, arguments } => {
                self.push(stored, CardKind::Tool { call: id, name, arguments, outcome: None });
            }
            TurnEvent::ToolResult { id, ok, summary, text, ms, error } => {
                self.finish_tool(&id, ToolOutcome { ok, summary, text, ms, error });
            }
            TurnEvent::Plan { plan } => self.push(stored, CardKind::Plan { plan }),
            TurnEvent::Code { attempt, code } => {
                self.push(stored, CardKind::Code { attempt, code, verdict: None, findings: Vec::new() });
            }
            TurnEvent::Verdict { verdict, findings } => self.judge(verdict, findings),
            TurnEvent::PermissionAsked { request, findings } => {
                let purpose = self.purpose();
                let expired = false;
                self.push(stored, CardKind::Permission { request, purpose, findings, decision: None, expired });
            }
            TurnEvent::PermissionDecided { request, decision } => self.decide(&request, decision),
            TurnEvent::RunFinished { report } => {
                self.last_run = Some(report.clone());
                self.push(stored, CardKind::Result { report, undone: None });
            }
            TurnEvent::Screenshot { title, path, width, height } => {
                self.push(stored, CardKind::Screenshot { title, path, width, height });
            }
            TurnEvent::Repair { attempt, of, why } => self.fold_failure(stored, attempt, of, why),
            TurnEvent::Retrying { attempt, wait_ms, why } => self.retrying(stored, attempt, wait_ms, why),
            TurnEvent::Usage { total, cost_usd } => {
                self.usage = Some(total);
                self.cost_usd = cost_usd;
                self.turn_usage.insert(self.turn, (total, cost_usd));
            }
            TurnEvent::Undone { run, report } => self.undone(stored, &run, report),
            TurnEvent::Finished { finish, error, timings, run_folder } => {
                self.finish(stored, finish, error, timings, run_folder);
            }
        }
    }

    fn push(&mut self, stored: &StoredTurnEvent, kind: CardKind) {
        self.end_streaming();
        let card = Card { id: stored.sequence, turn: self.turn, at_ms: stored.at_ms, revision: 0, kind };
        self.cards.push(card);
    }

    fn start_turn(&mut self, stored: &StoredTurnEvent, turn: u64, text: String) {
        self.turn = turn;
        self.turn_started_ms = Some(stored.at_ms);
        self.live = None;
        self.usage = None;
        self.cost_usd = None;
        self.sent.push(text.clone());
        self.push(stored, CardKind::User { text });
    }

    fn end_streaming(&mut self) {
        if let Some(card) = self.cards.last_mut()
            && let CardKind::Answer { streaming, .. } = &mut card.kind
            && *streaming
        {
            *streaming = false;
            card.revision += 1;
        }
    }

    fn end_thinking(&mut self, now_ms: i64) {
        if let Some(card) = self.cards.last_mut()
            && let CardKind::Thinking { took_ms, .. } = &mut card.kind
            && took_ms.is_none()
        {
            *took_ms = Some((now_ms - card.at_ms).max(0));
            card.revision += 1;
        }
    }

    fn add_text(&mut self, stored: &StoredTurnEvent, piece: &str) {
        if let Some(card) = self.cards.last_mut()
            && let CardKind::Answer { text, streaming: true } = &mut card.kind
        {
            text.push_str(piece);
            card.revision += 1;
            return;
        }
        // A piece of nothing but white space opens no card of its own.
        if !piece.trim().is_empty() {
            self.push(stored, CardKind::Answer { text: piece.to_owned(), streaming: true });
        }
    }

    fn add_thinking(&mut self, stored: &StoredTurnEvent, piece: &str) {
        if let Some(card) = self.cards.last_mut()
            && let CardKind::Thinking { text, took_ms: None } = &mut card.kind
        {
            text.push_str(piece);
            card.revision += 1;
            return;
        }
        self.push(stored, CardKind::Thinking { text: piece.to_owned(), took_ms: None });
    }

    fn replace_text(&mut self, stored: &StoredTurnEvent, new: String) {
        let turn = self.turn;
        let place =
            self.cards.iter().rposition(|card| card.turn == turn && matches!(card.kind, CardKind::Answer { .. }));
        match place {
            Some(place) if new.trim().is_empty() => {
                self.cards.remove(place);
            }
            Some(place) => {
                let card = &mut self.cards[place];
                card.revision += 1;
                card.kind = CardKind::Answer { text: new, streaming: false };
            }
            None if new.trim().is_empty() => {}
            None => self.push(stored, CardKind::Answer { text: new, streaming: false }),
        }
    }

    fn finish_tool(&mut self, id: &str, result: ToolOutcome) {
        for card in self.cards.iter_mut().rev() {
            if let CardKind::Tool { call, outcome, .. } = &mut card.kind
                && call == id
                && outcome.is_none()
            {
                *outcome = Some(result);
                card.revision += 1;
                return;
            }
        }
    }

    fn judge(&mut self, new: VerdictKind, reasons: Vec<Finding>) {
        for card in self.cards.iter_mut().rev() {
            if let CardKind::Code { verdict, findings, .. } = &mut card.kind {
                *verdict = Some(new);
                *findings = reasons;
                card.revision += 1;
                return;
            }
        }
    }

    fn decide(&mut self, wanted: &str, answer: Decision) {
        for card in self.cards.iter_mut().rev() {
            if let CardKind::Permission { request, decision, .. } = &mut card.kind
                && request == wanted
            {
                *decision = Some(answer);
                card.revision += 1;
                return;
            }
        }
    }

    /// Moves the cards of the attempt that failed into the card that tells of the correction.
    fn fold_failure(&mut self, stored: &StoredTurnEvent, attempt: u32, of: u32, why: String) {
        self.end_streaming();
        let turn = self.turn;
        let belongs = |card: &Card| {
            card.turn == turn
                && match &card.kind {
                    CardKind::Code { .. } | CardKind::Tool { .. } | CardKind::Thinking { .. } => true,
                    CardKind::Permission { decision, .. } => decision.is_some(),
                    CardKind::Result { report, .. } => !report.ok,
                    _ => false,
                }
        };
        let kept = self.cards.iter().rposition(|card| !belongs(card)).map_or(0, |place| place + 1);
        let inside = self.cards.split_off(kept);
        self.push(stored, CardKind::Repair { attempt, of, why, inside });
    }

    /// The attempt that is waited for and the milliseconds that are left, while a model call waits to be tried again.
    pub fn waits_for_retry(&self, now_ms: i64) -> Option<(u32, i64)> {
        let card = self.cards.last()?;
        let CardKind::Retrying { attempt, wait_ms, .. } = &card.kind else { return None };
        let left = card.at_ms.saturating_add_unsigned(*wait_ms) - now_ms;
        (left > 0).then_some((*attempt, left))
    }

    fn retrying(&mut self, stored: &StoredTurnEvent, attempt: u32, wait_ms: u64, why: String) {
        if let Some(card) = self.cards.last_mut()
            && matches!(card.kind, CardKind::Retrying { .. })
        {
            card.kind = CardKind::Retrying { attempt, wait_ms, why };
            // The wait counts from this attempt on.
            card.at_ms = stored.at_ms;
            card.revision += 1;
            return;
        }
        self.push(stored, CardKind::Retrying { attempt, wait_ms, why });
    }

    fn undone(&mut self, stored: &StoredTurnEvent, run: &str, restore: RestoreReport) {
        let found = self.cards.iter_mut().rev().find_map(|card| match &mut card.kind {
            CardKind::Result { report, undone } if report.run == run => {
                card.revision += 1;
                Some(undone)
            }
            _ => None,
        });
        match found {
            Some(undone) => *undone = Some(restore),
            None => self.push(stored, CardKind::Note { text: "A run was undone.".into() }),
        }
        if self.last_run.as_ref().is_some_and(|last| last.run == run) {
            self.last_run = None;
        }
    }

    /// What the running turn is about, in the words of its plan.
    fn purpose(&self) -> String {
        let plans = self.cards.iter().rev().take_while(|card| card.turn == self.turn);
        let summary = plans.filter_map(|card| match &card.kind {
            CardKind::Plan { plan } => Some(plan.task_summary.trim().to_owned()),
            _ => None,
        });
        summary.take(1).collect()
    }

    fn finish(
        &mut self,
        stored: &StoredTurnEvent,
        finish: Finish,
        error: Option<Problem>,
        timings: Timings,
        run_folder: Option<String>,
    ) {
        self.end_streaming();
        self.live = None;
        self.turn_started_ms = None;
        let turn = self.turn;
        for card in self.cards.iter_mut().filter(|card| card.turn == turn) {
            if let CardKind::Permission { decision: None, expired, .. } = &mut card.kind {
                *expired = true;
                card.revision += 1;
            }
        }
        // A wait that came to its end needs no line any more.
        self.cards.retain(|card| card.turn != turn || !matches!(card.kind, CardKind::Retrying { .. }));
        let note = match finish {
            Finish::Stopped => Some("You stopped this turn."),
            Finish::Length => Some("The answer was cut off: the model reached its largest answer. Ask it to go on."),
            Finish::ContentFilter => Some("The provider's content filter ended the answer."),
            Finish::Answer | Finish::Ran | Finish::Failed => None,
        };
        if let Some(problem) = error {
            let retry = self.sent.last().cloned().unwrap_or_default();
            self.push(stored, CardKind::Error { problem, retry });
        } else if let Some(text) = note {
            self.push(stored, CardKind::Note { text: text.into() });
        }
        let answer = self.answer_of(turn);
        let (usage, cost_usd) = match self.turn_usage.get(&turn) {
            Some((usage, cost)) => (Some(*usage), *cost),
            None => (None, None),
        };
        // Two cards come from this one fact; a negative id keeps them apart.
        let footer = CardKind::Footer { timings, usage, cost_usd, answer, run_folder };
        let card = Card { id: -stored.sequence, turn, at_ms: stored.at_ms, revision: 0, kind: footer };
        self.cards.push(card);
    }

    fn answer_of(&self, turn: u64) -> String {
        let texts = self.cards.iter().filter(|card| card.turn == turn).filter_map(|card| match &card.kind {
            CardKind::Answer { text, .. } => Some(text.trim()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }
}

#[cfg(test)]
mod tests;
