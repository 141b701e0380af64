//! The machine of a guided workflow: `update(workflow, state, event) -> (state, effects)`, and nothing else.
//!
//! It knows no Slicer, no clock and no file. Whatever runs in Slicer has a ticket, and only the result with the ticket that
//! is waited for counts, so nothing runs twice and nothing that comes late is taken for something else. An event that does
//! not fit the phase changes nothing and says why.

use serde_json::{Value, json};

use super::graph::{END, Step, StepKind, Times, Workflow};
use super::state::{Effect, Entry, Event, Outcome, Part, Phase, Queued, State};

/// A run that has not begun.
pub fn begin() -> State {
    State::default()
}

/// The state after an event, and what is to be done.
pub fn update(workflow: &Workflow, state: State, event: Event) -> (State, Vec<Effect>) {
    let mut turn = Turn { workflow, state, effects: Vec::new() };
    turn.take(event);
    (turn.state, turn.effects)
}

/// One stretch of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Run(Part),
    Choose,
    Wait,
}

/// The stages of a step in their order; an option of a branch has its action after the choice.
fn stages(step: &Step, option: Option<usize>) -> Vec<Stage> {
    let run = |part: Part, there: bool| there.then_some(Stage::Run(part));
    let main = run(Part::Main, step.template.is_some());
    let before = run(Part::Before, step.before.is_some());
    let after = run(Part::After, step.after.is_some());
    let stages = match step.kind {
        StepKind::Automated => vec![main],
        StepKind::UserChoice => vec![Some(Stage::Choose), main],
        StepKind::Interactive | StepKind::Mixed => vec![main, before, Some(Stage::Wait), after],
        StepKind::Branch => {
            let action = option.filter(|&index| step.options.get(index).is_some_and(|one| one.action.is_some()));
            vec![Some(Stage::Choose), action.map(|index| Stage::Run(Part::Action(index)))]
        }
        StepKind::Review => vec![Some(Stage::Wait)],
    };
    stages.into_iter().flatten().collect()
}

struct Turn<'a> {
    workflow: &'a Workflow,
    state: State,
    effects: Vec<Effect>,
}

impl<'a> Turn<'a> {
    fn take(&mut self, event: Event) {
        match event {
            Event::Start => match self.state.phase {
                Phase::Idle => self.go_to(&self.workflow.start),
                _ => self.tell("It was started before."),
            },
            Event::Ran { .. } | Event::Restored { .. } if self.state.paused => {
                // Kept until the connection is back: going on would send more.
                if self.is_awaited(&event) {
                    self.state.late = Some(Box::new(event));
                }
            }
            Event::Ran { ticket, result } => self.ran(ticket, result),
            Event::Restored { ticket, missing } => self.restored(ticket, &missing),
            Event::ConnectionLost => self.state.paused = !self.state.phase.is_over() && self.state.phase != Phase::Idle,
            Event::Resumed { missing, taken_back } => self.resumed(&missing, taken_back),
            Event::Back | Event::Forward => self.look(event == Event::Back),
            Event::Said { id, text } => self.said(id, &text),
            Event::Requested { id, text } => self.requested(id, text),
            Event::RunQueued { id } => self.unqueue(&id, true),
            Event::DropQueued { id } => self.unqueue(&id, false),
            Event::Cancel => self.cancel(),
            Event::Points { count } => {
                if self.state.phase == Phase::WaitingUser {
                    self.state.points = Some(count);
                }
            }
            Event::Proposed { value } => self.proposed(value),
            _ if self.state.paused => self.tell("Slicer is not connected. The step goes on when it is back."),
            Event::Chose { value } => self.chose(&value),
            Event::ChooseForMe => self.choose_for_me(),
            Event::Done => self.done(),
            Event::PlaceAgain => self.place_again(),
            Event::Skip => self.skip(),
            Event::Retry => self.retry(),
            Event::RunFrom { index } => self.run_from(index),
            Event::AskAgent => self.ask_agent(),
        }
    }

    fn tell(&mut self, text: &str) {
        self.effects.push(Effect::Tell { text: text.into() });
    }

    /// The step that is under way. It borrows the workflow, not the state.
    fn step(&self) -> Option<&'a Step> {
        self.workflow.step(&self.state.current.as_ref()?.step)
    }

    fn ticket(&mut self) -> u64 {
        self.state.tickets += 1;
        self.state.tickets
    }

    fn is_awaited(&self, event: &Event) -> bool {
        match (&self.state.phase, event) {
            (Phase::Running { ticket: wanted, .. }, Event::Ran { ticket, .. })
            | (Phase::Restoring { ticket: wanted, .. }, Event::Restored { ticket, .. }) => wanted == ticket,
            _ => false,
        }
    }

    fn fail(&mut self, message: String) {
        self.state.phase = Phase::Failed { message };
    }

    // Going on

    fn go_to(&mut self, target: &str) {
        self.state.looking_at = None;
        if target == END {
            self.finish(Phase::Done);
            return;
        }
        let before = self.state.now.clone();
        let visits = self.state.now.visits.entry(target.to_owned()).or_default();
        *visits += 1;
        let visit = *visits;
        self.state.current = Some(Entry { step: target.to_owned(), visit, before, ..Entry::default() });
        self.state.stage = 0;
        match self.workflow.step(target) {
            Some(step) if visit > step.max_visits => {
                let most = step.max_visits;
                self.fail(format!(
                    "This step was reached more than {most} times. Retry lets it go on, Cancel ends it."
                ));
            }
            Some(_) => self.enter_stage(),
            None => self.fail(format!("The package has no step \"{target}\".")),
        }
    }

    /// Begins the stage that `state.stage` names, or leaves the step.
    fn enter_stage(&mut self) {
        (self.state.proposed, self.state.points) = (None, None);
        let Some(step) = self.step() else { return };
        let option = self.state.current.as_ref().and_then(|entry| entry.option);
        match stages(step, option).get(self.state.stage) {
            Some(Stage::Run(part)) => {
                let (ticket, part) = (self.ticket(), *part);
                self.state.phase = Phase::Running { part, ticket };
                self.effects.push(Effect::RunTemplate { ticket, step: step.id.clone(), part });
            }
            Some(Stage::Choose) => {
                self.state.phase = Phase::WaitingChoice;
                self.state.proposed = step.choice.as_ref().and_then(|choice| choice.default.clone());
            }
            Some(Stage::Wait) => {
                self.state.phase = Phase::WaitingUser;
                if step.wait.is_some() {
                    self.effects.push(Effect::Watch { step: step.id.clone() });
                }
            }
            None => self.leave(step),
        }
    }

    fn next_stage(&mut self) {
        self.state.stage += 1;
        self.enter_stage();
    }

    fn leave(&mut self, step: &Step) {
        let Some(entry) = self.state.current.take() else { return };
        let option = entry.option;
        let skipped = entry.skipped;
        self.state.history.push(entry);
        if let Some(option) = option.and_then(|index| step.options.get(index)) {
            self.go_to(&option.next);
            return;
        }
        if let Some(repeat) = step.repeat.as_ref().filter(|_| !skipped) {
            let times = match &repeat.times {
                Times::Number(times) => u64::from(*times),
                Times::Value(name) => self.state.now.values.get(name).and_then(Value::as_u64).unwrap_or(1),
            };
            let passes = self.state.now.passes.entry(step.id.clone()).or_default();
            *passes += 1;
            if u64::from(*passes) < times {
                self.go_to(&repeat.to);
                return;
            }
        }
        self.state.now.passes.remove(&step.id);
        // A branch without an answer is left only by a skip: its first option is the way on.
        let first = step.options.first().map(|option| option.next.as_str());
        self.go_to(step.next.as_deref().or(first).unwrap_or(END));
    }

    fn finish(&mut self, phase: Phase) {
        self.state.phase = phase;
        (self.state.paused, self.state.late) = (false, None);
        for Queued { id, text } in std::mem::take(&mut self.state.queue) {
            self.effects.push(Effect::HandOut { id, text });
        }
    }

    // What Slicer says

    fn ran(&mut self, ticket: u64, result: Outcome) {
        match self.state.phase {
            Phase::Running { ticket: wanted, .. } if wanted == ticket => {}
            _ => return,
        }
        let Some(entry) = self.state.current.as_mut() else { return };
        match result {
            Outcome::Ran { values, created, run } => {
                entry.runs.extend(run);
                entry.created.extend(created);
                self.state.now.values.extend(values);
                self.next_stage();
            }
            Outcome::Failed { message, run } => {
                entry.runs.extend(run);
                self.fail(message);
            }
        }
    }

    fn resumed(&mut self, missing: &[String], taken_back: bool) {
        if self.state.phase.is_over() || self.state.phase == Phase::Idle {
            return;
        }
        self.state.paused = false;
        if let Some(late) = self.state.late.take() {
            self.take(*late);
        } else if matches!(self.state.phase, Phase::Running { .. }) && taken_back && missing.is_empty() {
            return self.enter_stage();
        } else if matches!(self.state.phase, Phase::Running { .. }) && !taken_back {
            self.fail(
                "The connection ended while this step ran, so it is not known whether it was done. Look at the scene: Skip \
                 if it was done, Retry if not."
                    .into(),
            );
        } else if let Phase::Restoring { ticket, .. } = self.state.phase {
            self.restored(ticket, &["it is not known whether the scene was put back".to_owned()]);
        }
        if !missing.is_empty() && !matches!(self.state.phase, Phase::Failed { .. }) {
            let names = missing.join(", ");
            self.fail(format!(
                "These are no longer in the scene: {names}. Load the scene again and Retry, or go back to the step that makes them."
            ));
        } else if self.state.phase == Phase::WaitingUser
            && let Some(step) = self.step().filter(|step| step.wait.is_some())
        {
            self.effects.push(Effect::Watch { step: step.id.clone() });
        }
    }

    // What the person does

    fn chose(&mut self, value: &Value) {
        let (Phase::WaitingChoice, Some(step)) = (&self.state.phase, self.step()) else {
            return self.tell("Nothing is to be chosen now.");
        };
        if let Some(choice) = &step.choice {
            match choice.accept(value) {
                Ok(value) => {
                    self.state.now.values.insert(choice.value.clone(), value);
                    self.next_stage();
                }
                Err(why) => self.tell(&why),
            }
            return;
        }
        let wanted = value.as_str().unwrap_or_default().trim().to_lowercase();
        match step.options.iter().position(|option| option.text.to_lowercase() == wanted) {
            Some(index) => {
                if let Some(entry) = self.state.current.as_mut() {
                    entry.option = Some(index);
                }
                self.next_stage();
            }
            None => {
                let texts: Vec<&str> = step.options.iter().map(|option| option.text.as_str()).collect();
                self.tell(&format!("Choose one of: {}.", texts.join(", ")));
            }
        }
    }

    fn choose_for_me(&mut self) {
        match self.step() {
            Some(step) if self.state.phase == Phase::WaitingChoice => {
                self.effects.push(Effect::Resolve { step: step.id.clone() });
            }
            _ => self.tell("Nothing is to be chosen now."),
        }
    }

    fn proposed(&mut self, value: Value) {
        if self.state.phase == Phase::WaitingChoice {
            self.state.proposed = Some(value);
        }
    }

    fn done(&mut self) {
        match (&self.state.phase, self.step(), &self.state.proposed) {
            (Phase::WaitingUser, Some(step), _) => {
                let least = step.wait.as_ref().map_or(0, |wait| wait.min_points);
                let placed = self.state.points.unwrap_or_default();
                if placed < least {
                    self.tell(&format!("{placed} of at least {least} points are placed."));
                    return;
                }
                if step.wait.is_some() {
                    self.effects.push(Effect::StopWatching);
                }
                self.next_stage();
            }
            (Phase::WaitingChoice, _, Some(value)) => {
                let value = value.clone();
                self.chose(&value);
            }
            (Phase::WaitingChoice, _, None) => self.tell("Choose first."),
            _ => self.tell("Nothing is waited for now."),
        }
    }

    fn place_again(&mut self) {
        if let (Phase::WaitingUser, Some(step)) = (&self.state.phase, self.step()) {
            self.effects.push(Effect::PlaceAgain { step: step.id.clone() });
        }
    }

    fn skip(&mut self) {
        let Some(step) = self.step() else { return self.tell("There is no step to skip.") };
        match self.state.phase {
            Phase::Failed { .. } => {}
            Phase::WaitingChoice | Phase::WaitingUser if step.optional => {}
            Phase::WaitingChoice | Phase::WaitingUser => {
                return self.tell("This step is needed; it cannot be skipped.");
            }
            _ => return self.tell("A step that runs cannot be skipped. Cancel ends it."),
        }
        if self.state.phase == Phase::WaitingUser && step.wait.is_some() {
            self.effects.push(Effect::StopWatching);
        }
        if let Some(entry) = self.state.current.as_mut() {
            entry.skipped = true;
        }
        self.leave(step);
    }

    fn retry(&mut self) {
        let (Phase::Failed { .. }, Some(step)) = (&self.state.phase, self.step()) else {
            return self.tell("Nothing failed.");
        };
        // The person lets a step go on that came up too often: it is counted anew.
        if self.state.now.visits.get(&step.id).is_some_and(|&visits| visits > step.max_visits) {
            self.state.now.visits.insert(step.id.clone(), 1);
        }
        self.enter_stage();
    }

    fn ask_agent(&mut self) {
        match (&self.state.phase, &self.state.current) {
            (Phase::Failed { message }, Some(entry)) => {
                self.effects.push(Effect::Explain { step: entry.step.clone(), message: message.clone() });
            }
            _ => self.tell("Nothing failed. Write to the agent what you want to know."),
        }
    }

    fn look(&mut self, back: bool) {
        let last = self.state.history.len();
        let at = self.state.looking_at.unwrap_or(last);
        let at = if back { at.saturating_sub(1) } else { at + 1 };
        self.state.looking_at = (at < last).then_some(at);
    }

    fn cancel(&mut self) {
        if self.state.phase.is_over() {
            return self.tell("It has ended.");
        }
        if self.state.phase == Phase::WaitingUser {
            self.effects.push(Effect::StopWatching);
        }
        self.finish(Phase::Cancelled);
    }

    // Going back

    fn run_from(&mut self, index: usize) {
        if matches!(self.state.phase, Phase::Running { .. } | Phase::Restoring { .. } | Phase::Idle | Phase::Cancelled)
        {
            return self.tell("That is possible when no step runs.");
        }
        let later: Vec<&Entry> = self.state.history.iter().skip(index).chain(&self.state.current).collect();
        if later.is_empty() {
            return self.tell("There is no such step.");
        }
        let run = later.iter().flat_map(|entry| &entry.runs).next().cloned();
        let remove: Vec<String> = later.iter().flat_map(|entry| &entry.created).cloned().collect();
        if self.state.phase == Phase::WaitingUser {
            self.effects.push(Effect::StopWatching);
        }
        let ticket = self.ticket();
        self.state.phase = Phase::Restoring { to: index, ticket };
        if run.is_none() && remove.is_empty() {
            self.restored(ticket, &[]);
        } else {
            self.effects.push(Effect::Restore { ticket, run, remove });
        }
    }

    fn restored(&mut self, ticket: u64, missing: &[String]) {
        let to = match self.state.phase {
            Phase::Restoring { to, ticket: wanted } if wanted == ticket => to,
            _ => return,
        };
        let target = self.state.history.get(to).cloned().or_else(|| self.state.current.take());
        let Some(target) = target else { return };
        self.state.history.truncate(to);
        self.state.now = target.before;
        if missing.is_empty() {
            self.go_to(&target.step);
            return;
        }
        let before = self.state.now.clone();
        let visit = target.visit;
        self.state.now.visits.insert(target.step.clone(), visit);
        self.state.current = Some(Entry { step: target.step, visit, before, ..Entry::default() });
        (self.state.stage, self.state.looking_at) = (0, None);
        self.fail(format!("Not everything could be put back: {}. Look at the scene, then Retry.", missing.join("; ")));
    }

    // What the person says

    fn said(&mut self, id: String, text: &str) {
        let word = text.trim().trim_end_matches(['.', '!']).trim().to_lowercase();
        match self.control(&word) {
            Some(event) => self.take(event),
            None => {
                let step = self.state.current.as_ref().map(|entry| entry.step.clone());
                self.effects.push(Effect::ToAgent { id, text: text.to_owned(), step });
            }
        }
    }

    /// The event that an exact control word stands for in this phase.
    fn control(&self, word: &str) -> Option<Event> {
        let waits = matches!(self.state.phase, Phase::WaitingChoice | Phase::WaitingUser | Phase::Failed { .. });
        let failed = matches!(self.state.phase, Phase::Failed { .. });
        let runs = matches!(self.state.phase, Phase::Running { .. } | Phase::Restoring { .. });
        let step = self.step()?;
        if self.state.phase == Phase::WaitingChoice && self.is_answer(step, word) {
            return Some(Event::Chose { value: json!(word) });
        }
        match word {
            "cancel" if waits || runs => Some(Event::Cancel),
            "retry" if failed => Some(Event::Retry),
            "done" | "proceed" | "next" if waits && !failed => Some(Event::Done),
            "yes" if self.state.phase == Phase::WaitingUser => Some(Event::Done),
            "skip" if waits => Some(Event::Skip),
            "back" if waits => Some(Event::Back),
            "forward" if waits => Some(Event::Forward),
            _ => None,
        }
    }

    fn is_answer(&self, step: &Step, word: &str) -> bool {
        let fits = |text: &str| text.to_lowercase() == word;
        let choice = step.choice.as_ref();
        let listed = choice.is_some_and(|choice| choice.options.iter().any(|text| fits(text)));
        let boolean = choice.is_some_and(|choice| choice.kind == super::choice::ChoiceKind::Bool);
        listed || (boolean && matches!(word, "yes" | "no")) || step.options.iter().any(|option| fits(&option.text))
    }

    fn requested(&mut self, id: String, text: String) {
        if self.state.phase.is_over() || self.state.phase == Phase::Idle {
            self.effects.push(Effect::HandOut { id, text });
        } else if !self.state.queue.iter().any(|queued| queued.id == id) {
            self.state.queue.push(Queued { id, text });
        }
    }

    fn unqueue(&mut self, id: &str, run: bool) {
        if run && matches!(self.state.phase, Phase::Running { .. } | Phase::Restoring { .. }) {
            return self.tell("A step runs. The request stays in the queue.");
        }
        let Some(at) = self.state.queue.iter().position(|queued| queued.id == id) else { return };
        let Queued { id, text } = self.state.queue.remove(at);
        if run {
            self.effects.push(Effect::HandOut { id, text });
        }
    }
}
