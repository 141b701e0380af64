//! A turn folded into one record: what `ask --json` prints, and what the next turn is told of this one.
//!
//! The fold reads the stored facts only, so that the record of a turn is the same when it is made while the turn runs,
//! after it, or from a conversation that was opened again.

use serde::Serialize;
use serde_json::Value;

use super::types::*;
use crate::agent::PastTurn;

/// One tool call of a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ToolCallRecord {
    pub name: String,
    pub arguments: Value,
    pub ms: f64,
    pub ok: bool,
    pub error: Option<String>,
    #[serde(skip)]
    id: String,
}

/// One turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TurnRecord {
    pub conversation: String,
    pub turn: u64,
    #[serde(skip)]
    pub request: String,
    /// What the person reads at the end: the text after the last run, or all text when nothing ran.
    pub answer: String,
    pub reasoning: String,
    pub plan: Option<Plan>,
    pub code: Option<String>,
    /// The verdict over the last program, with its findings.
    pub verdict: Option<VerdictKind>,
    pub findings: Vec<Finding>,
    pub runs: Vec<RunReport>,
    pub tool_calls: Vec<ToolCallRecord>,
    pub usage: UsageTotal,
    pub cost_usd: Option<f64>,
    pub finish: Option<Finish>,
    pub error: Option<Problem>,
    pub timings: Timings,
    pub run_folder: Option<String>,
    /// Pictures that were saved, in order.
    pub screenshots: Vec<String>,
    /// The attempt that `code` belongs to.
    #[serde(skip)]
    code_attempt: u32,
    /// Runs that were undone afterwards.
    #[serde(skip)]
    undone: Vec<String>,
    /// True after a tool call or a run: the next text starts a new paragraph.
    #[serde(skip)]
    broken: bool,
}

impl TurnRecord {
    /// The record of a turn of this conversation, before its first fact.
    pub fn of(conversation: &str) -> Self {
        Self { conversation: conversation.to_owned(), ..Self::default() }
    }

    /// Takes the next fact.
    pub fn apply(&mut self, event: &TurnEvent) {
        match event {
            TurnEvent::UserMessage { turn, text } => {
                self.turn = *turn;
                self.request = text.clone();
            }
            TurnEvent::TextDelta { text } => self.append(text),
            TurnEvent::TextReplaced { text } => self.answer = text.clone(),
            TurnEvent::ReasoningDelta { text } => self.reasoning.push_str(text),
            TurnEvent::ToolCall { id, name, arguments } => self.call(id, name, arguments),
            TurnEvent::ToolResult { id, ok, ms, error, .. } => self.called(id, *ok, *ms, error.as_deref()),
            TurnEvent::Plan { plan } => self.plan = Some(plan.clone()),
            TurnEvent::Code { code, attempt } => {
                self.code = Some(code.clone());
                self.code_attempt = *attempt;
            }
            TurnEvent::Verdict { verdict, findings } => {
                self.verdict = Some(*verdict);
                self.findings.clone_from(findings);
            }
            TurnEvent::RunFinished { report } => self.ran(report),
            TurnEvent::Screenshot { path, .. } => self.screenshots.push(path.clone()),
            TurnEvent::Repair { .. } => self.answer.clear(),
            TurnEvent::Usage { total, cost_usd } => {
                self.usage = *total;
                self.cost_usd = *cost_usd;
            }
            TurnEvent::Finished { finish, error, timings, run_folder } => {
                self.finish = Some(*finish);
                self.error = error.clone();
                self.timings = *timings;
                self.run_folder = run_folder.clone();
            }
            TurnEvent::Stage { .. }
            | TurnEvent::Retrieved { .. }
            | TurnEvent::PermissionAsked { .. }
            | TurnEvent::PermissionDecided { .. }
            | TurnEvent::Retrying { .. } => {}
            TurnEvent::Undone { run, report } => {
                self.undone.push(run.clone());
                self.undone.extend(report.also_undone.iter().cloned());
            }
        }
    }

    fn append(&mut self, text: &str) {
        if std::mem::take(&mut self.broken) && !self.answer.is_empty() {
            self.answer.push_str("\n\n");
        }
        self.answer.push_str(text);
    }

    fn call(&mut self, id: &str, name: &str, arguments: &Value) {
        self.broken = true;
        let (id, name, arguments) = (id.to_owned(), name.to_owned(), arguments.clone());
        self.tool_calls.push(ToolCallRecord { id, name, arguments, ..ToolCallRecord::default() });
    }

    fn called(&mut self, id: &str, ok: bool, ms: f64, error: Option<&str>) {
        if let Some(call) = self.tool_calls.iter_mut().rev().find(|call| call.id == id) {
            call.ok = ok;
            call.ms = ms;
            call.error = error.map(str::to_owned);
        }
    }

    fn ran(&mut self, report: &RunReport) {
        self.answer.clear();
        self.broken = false;
        self.runs.push(report.clone());
    }

    /// What the next turn is told of this one.
    pub fn past(&self) -> PastTurn {
        let cut = |value: &Value| value.to_string().chars().take(400).collect::<String>();
        let outcome = match (self.runs.last(), &self.error, self.finish) {
            (_, Some(problem), _) => Some(format!("failed: {}", problem.message)),
            (Some(run), None, _) if self.undone.contains(&run.run) => Some("ran, and was undone by the person".into()),
            (Some(run), None, _) if run.ok => Some(format!("ran; value {}", cut(&run.value))),
            (Some(_), None, _) => Some("did not run to its end; its changes were taken back".into()),
            (None, None, Some(Finish::Stopped)) => Some("stopped by the person".into()),
            (None, None, _) => None,
        };
        // A program that was only written, and never ran, is not one that ran.
        let ran = self.runs.last().map(|run| run.attempt);
        let code = self.code.clone().filter(|_| ran.is_some() && ran == Some(self.code_attempt));
        PastTurn { request: self.request.clone(), answer: self.answer.trim().to_owned(), code, outcome }
    }
}

/// All turns of a conversation from its facts.
pub fn turns<'a>(conversation: &str, events: impl IntoIterator<Item = &'a TurnEvent>) -> Vec<TurnRecord> {
    let mut turns: Vec<TurnRecord> = Vec::new();
    for event in events {
        if matches!(event, TurnEvent::UserMessage { .. }) {
            turns.push(TurnRecord::of(conversation));
        }
        if let TurnEvent::Undone { .. } = event {
            // The run may be of any earlier turn.
            turns.iter_mut().for_each(|turn| turn.apply(event));
        } else if let Some(turn) = turns.last_mut() {
            turn.apply(event);
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> TurnEvent {
        TurnEvent::TextDelta { text: text.into() }
    }

    /// The answer is what was said after the last run; what was said before it introduced the plan.
    #[test]
    fn the_answer_is_what_follows_the_run() {
        let events = [
            TurnEvent::UserMessage { turn: 1, text: "Do it".into() },
            text("I will "),
            text("do it."),
            TurnEvent::RunFinished { report: Box::new(RunReport { ok: true, attempt: 1, ..RunReport::default() }) },
            text("Done: 12 ml."),
            TurnEvent::Finished { finish: Finish::Ran, error: None, timings: Timings::default(), run_folder: None },
        ];
        let turns = turns("c", &events);
        assert_eq!(turns.len(), 1);
        assert_eq!(turns[0].answer, "Done: 12 ml.");
        assert_eq!(turns[0].past().request, "Do it");
    }

    /// Text before and after a tool call does not run together.
    #[test]
    fn tool_calls_break_paragraphs() {
        let events = [
            TurnEvent::UserMessage { turn: 1, text: "Which?".into() },
            text("Let me look."),
            TurnEvent::ToolCall { id: "1".into(), name: "Grep".into(), arguments: Value::Null },
            TurnEvent::ToolResult {
                id: "1".into(),
                ok: false,
                summary: String::new(),
                text: String::new(),
                ms: 2.0,
                error: Some("bad".into()),
            },
            text("It is this."),
        ];
        let turns = turns("c", &events);
        assert_eq!(turns[0].answer, "Let me look.\n\nIt is this.");
        assert_eq!(turns[0].tool_calls[0].error.as_deref(), Some("bad"));
    }
}
