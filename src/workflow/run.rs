//! Runs a workflow in Slicer without a window: performs the machine's effects and answers from a file.
//!
//! Each template is judged again right before it is sent, whatever the loader said, and goes through the guarded run: what
//! it did can be taken back, and a template that fails leaves the scene as it was. Values travel as JSON beside the code,
//! never inside it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::choice::ChoiceKind;
use super::graph::{Expectation, Step};
use super::journal::{Journal, JournalError};
use super::machine::{begin, update};
use super::package::Package;
use super::state::{Effect, Event, Outcome, Part, Phase, State};
use super::template;
use crate::safety::{self, Policy, VerdictKind};
use crate::slicer::{RunGrants, RunOutcome, RunRequest, SceneSnapshot, SegmentSummary, Slicer, SlicerError};

/// How long an expectation may take to come true, and how often it is looked at.
const EXPECT_LIMIT: Duration = Duration::from_secs(5);
const EXPECT_PERIOD: Duration = Duration::from_millis(250);
/// The limit for what the runner itself has done in Slicer.
const OWN_TIMEOUT_MS: u64 = 30_000;

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Slicer(#[from] SlicerError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("This workflow cannot start: {what}")]
    Needs { what: String },
    #[error("The step \"{step}\" waits for an answer. Add \"{step}\" to \"answers\" in the answers file ({expected}).")]
    NoAnswer { step: String, expected: String },
    #[error("The answer for the step \"{step}\" does not fit: {why}")]
    BadAnswer { step: String, why: String },
    #[error("The step \"{step}\" failed: {message}")]
    StepFailed { step: String, message: String },
}

/// The answers of a run without a window, by step.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answers {
    /// For a choice its value (a node by id or name), for a branch the text of an option, for an interactive step
    /// `{"points": [[r, a, s], …]}` in mm, for a review anything. A list under `"each"` answers successive visits.
    #[serde(default)]
    pub answers: BTreeMap<String, Value>,
}

impl Answers {
    fn of(&self, step: &str, visit: u32) -> Option<&Value> {
        let answer = self.answers.get(step)?;
        match answer.get("each").and_then(Value::as_array) {
            Some(each) => each.get(usize::try_from(visit).unwrap_or(1).saturating_sub(1)),
            None => Some(answer),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunReport {
    /// Ids of the steps in the order in which they were done.
    pub steps: Vec<String>,
    pub values: BTreeMap<String, Value>,
    /// Sentences for the person.
    pub said: Vec<String>,
    /// What only the full Slicer has and a step touched.
    pub touched: Vec<String>,
}

/// A run under way.
pub struct Runner {
    slicer: Slicer,
    package: Package,
    journal: Option<Journal>,
    state: State,
    /// Begins the ids of this run's guarded runs, which are known again after a restart.
    name: String,
    said: Vec<String>,
    touched: Vec<String>,
    told: Box<dyn Fn(&str) + Send + Sync>,
}

impl Runner {
    /// A run that has not begun. `told` gets a line for each step.
    pub fn new(
        slicer: Slicer,
        package: Package,
        journal: Option<Journal>,
        told: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let name = journal.as_ref().map_or_else(fresh, Journal::name);
        let (said, touched) = (Vec::new(), Vec::new());
        Self { slicer, package, journal, state: begin(), name, said, touched, told: Box::new(told) }
    }

    /// Goes on with a state that was replayed from the journal. A template that was under way is taken back if Slicer has
    /// done it, and runs again; nodes that are gone stop the run with a word.
    ///
    /// # Errors
    /// [`RunError::Slicer`] and [`RunError::Journal`].
    pub async fn resume(&mut self, state: State) -> Result<(), RunError> {
        self.state = state;
        let taken_back = match self.state.phase {
            Phase::Running { ticket, .. } => {
                let report = self.slicer.undo(&self.run_id(ticket)).await?;
                // Slicer does not know it: it never began there, or failed and was put back.
                report.complete || report.is_unknown()
            }
            _ => false,
        };
        let snapshot = self.slicer.snapshot().await?;
        let missing = missing_nodes(&self.state.now.values, &snapshot);
        self.handle(Event::Resumed { missing, taken_back }).await
    }

    /// Lets a failed step run again, or leaves it out.
    ///
    /// # Errors
    /// [`RunError::Journal`].
    pub async fn after_failure(&mut self, skip: bool) -> Result<(), RunError> {
        if !matches!(self.state.phase, Phase::Failed { .. }) {
            return Ok(());
        }
        self.handle(if skip { Event::Skip } else { Event::Retry }).await
    }

    fn run_id(&self, ticket: u64) -> String {
        format!("{}-{ticket}", self.name)
    }

    /// The state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Runs to the end with answers from a file.
    ///
    /// # Errors
    /// Any [`RunError`]; the journal keeps what was done.
    pub async fn run(&mut self, answers: &Answers) -> Result<RunReport, RunError> {
        if self.state.phase == Phase::Idle {
            self.needs().await?;
            self.handle(Event::Start).await?;
        }
        loop {
            let current = self.state.current.as_ref();
            let (id, visit) = current.map_or((String::new(), 0), |entry| (entry.step.clone(), entry.visit));
            match self.state.phase.clone() {
                Phase::Done | Phase::Cancelled => return Ok(self.report()),
                Phase::Failed { message } => return Err(RunError::StepFailed { step: id, message }),
                Phase::WaitingChoice => self.answer_choice(&id, answers.of(&id, visit)).await?,
                Phase::WaitingUser => self.answer_work(&id, answers.of(&id, visit)).await?,
                Phase::Idle | Phase::Running { .. } | Phase::Restoring { .. } => {
                    let message = "the run was interrupted".into();
                    return Err(RunError::StepFailed { step: id, message });
                }
            }
        }
    }

    /// Takes one event: journal first, then the state, then what is to be done, until nothing is left.
    ///
    /// # Errors
    /// [`RunError::Journal`]; what fails in Slicer becomes an event.
    pub async fn handle(&mut self, event: Event) -> Result<(), RunError> {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            if let Some(journal) = &mut self.journal {
                journal.append(&event)?;
            }
            let (state, effects) = update(&self.package.workflow, std::mem::take(&mut self.state), event);
            self.state = state;
            for effect in effects {
                events.extend(self.perform(effect).await);
            }
        }
        Ok(())
    }

    /// Whether this Slicer has what the package needs.
    async fn needs(&self) -> Result<(), RunError> {
        let needs = &self.package.manifest.needs;
        let version = self.slicer.status().await?.version;
        if numbers(&version) < numbers(&needs.slicer) {
            let what = format!("it needs Slicer {} or newer, and this is {version}. Update Slicer.", needs.slicer);
            return Err(RunError::Needs { what });
        }
        if needs.modules.is_empty() {
            return Ok(());
        }
        let code = "keep(missing=missing_modules(values[\"modules\"]))";
        let outcome = self.in_slicer(fresh(), code, &json!({"modules": needs.modules}), OWN_TIMEOUT_MS).await?;
        let missing: Vec<&str> =
            outcome.flow["missing"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if outcome.ok && missing.is_empty() {
            return Ok(());
        }
        let what = format!(
            "this Slicer has no module {}. Install the extension in Slicer's Extensions Manager, and start Slicer again.",
            missing.join(", ")
        );
        Err(RunError::Needs { what })
    }

    fn report(&self) -> RunReport {
        let steps = self.state.history.iter().map(|entry| entry.step.clone()).collect();
        let (values, said) = (self.state.now.values.clone(), self.said.clone());
        RunReport { steps, values, said, touched: self.touched.clone() }
    }

    async fn answer_choice(&mut self, id: &str, answer: Option<&Value>) -> Result<(), RunError> {
        let step = self.step(id)?;
        let proposed = self.state.proposed.clone();
        let Some(answer) = answer.cloned().or(proposed) else {
            let expected = match &step.choice {
                Some(choice) => format!("{:?} for {}", choice.kind, choice.value),
                None => step.options.iter().map(|option| option.text.as_str()).collect::<Vec<_>>().join(" or "),
            };
            return Err(RunError::NoAnswer { step: id.into(), expected });
        };
        let answer = self.resolve(&step, answer).await?;
        let said = self.said.len();
        self.handle(Event::Chose { value: answer }).await?;
        match self.said.get(said) {
            Some(why) if self.state.phase == Phase::WaitingChoice => {
                Err(RunError::BadAnswer { step: id.into(), why: why.clone() })
            }
            _ => Ok(()),
        }
    }

    /// The id of a node or segment that the answer names by id or name; other answers as they are.
    async fn resolve(&self, step: &Step, answer: Value) -> Result<Value, RunError> {
        if let (Some(choice), Some(wanted)) = (&step.choice, answer.as_str())
            && choice.kind == ChoiceKind::Segment
        {
            let snapshot = self.slicer.snapshot().await?;
            let of = choice.of.as_ref().and_then(|of| self.state.now.values.get(of)).and_then(Value::as_str);
            let node = of.and_then(|id| snapshot.node(id));
            let segments = node.and_then(|node| node.content.segments.as_deref()).unwrap_or_default();
            let fits = |segment: &&SegmentSummary| segment.id == wanted || segment.name == wanted;
            let names: Vec<&str> = segments.iter().map(|segment| segment.name.as_str()).collect();
            let why = || format!("there is no segment \"{wanted}\"; there are: {}", names.join(", "));
            let found = segments.iter().find(fits).map(|segment| json!(segment.id));
            return found.ok_or_else(|| RunError::BadAnswer { step: step.id.clone(), why: why() });
        }
        let class = step.choice.as_ref().and_then(|choice| choice.class.as_deref());
        let (Some(class), Some(wanted)) = (class, answer.as_str()) else { return Ok(answer) };
        let listed = self.slicer.list_nodes(Some(class), None).await?;
        let nodes = listed.as_array().cloned().unwrap_or_default();
        let fits = |node: &&Value| node["id"] == wanted || node["name"] == wanted;
        match nodes.iter().filter(fits).collect::<Vec<_>>().as_slice() {
            [node] => Ok(node["id"].clone()),
            found => {
                let there: Vec<&str> = nodes.iter().filter_map(|node| node["name"].as_str()).collect();
                let why = match found.len() {
                    0 => format!("there is no {class} \"{wanted}\"; the scene has: {}", there.join(", ")),
                    count => format!("{count} nodes are called \"{wanted}\"; give the id"),
                };
                Err(RunError::BadAnswer { step: step.id.clone(), why })
            }
        }
    }

    async fn answer_work(&mut self, id: &str, answer: Option<&Value>) -> Result<(), RunError> {
        let step = self.step(id)?;
        if let Some(wait) = &step.wait {
            let node = wait.value.as_ref().and_then(|value| self.state.now.values.get(value)).cloned();
            if let (Some(node), Some(points)) = (node.clone(), answer.and_then(|answer| answer.get("points"))) {
                let values = json!({"node": node, "points": points});
                let code = "markup_points(values[\"node\"], values[\"points\"])";
                let outcome = self.in_slicer(fresh(), code, &values, OWN_TIMEOUT_MS).await?;
                if let Some(error) = outcome.error {
                    return Err(RunError::BadAnswer { step: id.into(), why: error.message });
                }
            }
            if let Some(node) = node.as_ref().and_then(Value::as_str) {
                let snapshot = self.slicer.snapshot().await?;
                let count = snapshot.node(node).and_then(|node| node.content.points).unwrap_or_default();
                self.handle(Event::Points { count }).await?;
            }
            if answer.is_none() && wait.min_points > self.state.points.unwrap_or_default() {
                let expected = format!("{{\"points\": at least {}}}", wait.min_points);
                return Err(RunError::NoAnswer { step: id.into(), expected });
            }
        }
        let said = self.said.len();
        self.handle(Event::Done).await?;
        match self.said.get(said) {
            Some(why) if self.state.phase == Phase::WaitingUser => {
                Err(RunError::BadAnswer { step: id.into(), why: why.clone() })
            }
            _ => Ok(()),
        }
    }

    fn step(&self, id: &str) -> Result<Step, RunError> {
        let failed = || RunError::StepFailed { step: id.into(), message: "the package has no such step".into() };
        self.package.workflow.step(id).cloned().ok_or_else(failed)
    }

    async fn perform(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::RunTemplate { ticket, step, part } => {
                let result = self.run_template(&step, part, ticket).await;
                Some(Event::Ran { ticket, result })
            }
            Effect::Restore { ticket, run, remove } => {
                let missing = self.restore(run, remove).await;
                Some(Event::Restored { ticket, missing })
            }
            Effect::StopWatching => {
                // Place mode that stays on is a nuisance, not a reason to stop the run.
                if let Err(error) = self.in_slicer(fresh(), "markup_stop()", &json!({}), OWN_TIMEOUT_MS).await {
                    self.said.push(format!("Place mode could not be left: {error}"));
                }
                None
            }
            Effect::Tell { text } | Effect::Explain { message: text, .. } => {
                self.said.push(text);
                None
            }
            Effect::ToAgent { .. } | Effect::HandOut { .. } | Effect::Resolve { .. } => {
                self.said.push("There is no agent in a run without the window.".into());
                None
            }
            Effect::Watch { .. } | Effect::PlaceAgain { .. } => None,
        }
    }

    async fn run_template(&mut self, id: &str, part: Part, ticket: u64) -> Outcome {
        let failed = |message: String| Outcome::Failed { message, run: None };
        let Some(step) = self.package.workflow.step(id).cloned() else { return failed("no such step".into()) };
        let name = match part {
            Part::Main => step.template.as_deref(),
            Part::Before => step.before.as_deref(),
            Part::After => step.after.as_deref(),
            Part::Action(index) => step.options.get(index).and_then(|option| option.action.as_deref()),
        };
        let Some(code) = name.and_then(|name| self.package.template(name)).map(str::to_owned) else {
            return failed("its template is not in the package".into());
        };
        (self.told)(&format!("{}…", step.title));
        let values = json!(self.state.now.values);
        match self.in_slicer(self.run_id(ticket), &code, &values, (step.timeout_s * 1000.0) as u64).await {
            Err(error) => failed(format!("{error} {}", error.advice()).trim().to_owned()),
            Ok(outcome) => self.judged(&step, part, outcome).await,
        }
    }

    /// The outcome of a template, after what it left was compared with what the step expects.
    async fn judged(&mut self, step: &Step, part: Part, outcome: RunOutcome) -> Outcome {
        self.touched.extend(outcome.touched.iter().cloned());
        if let Some(error) = outcome.error {
            let put_back = outcome.restored.is_none_or(|restored| restored.complete);
            let note = if put_back { "" } else { " The scene may not be as it was before." };
            return Outcome::Failed { message: format!("{}{note}", error.message), run: None };
        }
        let kept: BTreeMap<String, Value> = serde_json::from_value(outcome.flow).unwrap_or_default();
        let lacks = |value: &&String| !kept.contains_key(*value) && !self.state.now.values.contains_key(*value);
        let last = part == Part::Main && step.wait.is_none() || part == Part::After;
        let run = Some(outcome.id.clone());
        if last && let Some(name) = step.makes.iter().find(lacks) {
            return Outcome::Failed { message: format!("The step did not make its value \"{name}\"."), run };
        }
        if last && let Err(message) = self.expected(step, &kept, outcome.after).await {
            return Outcome::Failed { message, run };
        }
        let created = outcome.diff.added.into_iter().map(|node| node.id).collect();
        Outcome::Ran { values: kept, created, run }
    }

    async fn expected(&self, step: &Step, kept: &BTreeMap<String, Value>, after: SceneSnapshot) -> Result<(), String> {
        let mut snapshot = after;
        let start = tokio::time::Instant::now();
        loop {
            let id = |name: &str| kept.get(name).or_else(|| self.state.now.values.get(name)).and_then(Value::as_str);
            let wrong = step.expect.iter().find_map(|one| unmet(one, id(&one.value), &snapshot));
            match wrong {
                None => return Ok(()),
                Some(wrong) if start.elapsed() > EXPECT_LIMIT => return Err(wrong),
                Some(_) => tokio::time::sleep(EXPECT_PERIOD).await,
            }
            snapshot = self.slicer.snapshot().await.map_err(|error| error.to_string())?;
        }
    }

    async fn restore(&self, run: Option<String>, remove: Vec<String>) -> Vec<String> {
        let mut missing = Vec::new();
        if let Some(run) = run {
            match self.slicer.undo(&run).await {
                Ok(report) => missing.extend(report.missing),
                Err(error) => missing.push(error.to_string()),
            }
        }
        let code = "remove_nodes(values[\"nodes\"])";
        match self.in_slicer(fresh(), code, &json!({"nodes": remove}), OWN_TIMEOUT_MS).await {
            Ok(outcome) => missing.extend(outcome.error.map(|error| error.message)),
            Err(error) => missing.push(error.to_string()),
        }
        missing
    }

    /// One guarded run of a template with its values. What the check does not allow is not sent.
    async fn in_slicer(
        &self,
        id: String,
        code: &str,
        values: &Value,
        timeout_ms: u64,
    ) -> Result<RunOutcome, SlicerError> {
        let verdict = safety::validate(&template::checked(code), &Policy::default());
        if verdict.verdict != VerdictKind::Allow {
            let why = verdict.findings.first().map(|finding| finding.why.clone()).unwrap_or_default();
            return Err(SlicerError::Answer { said: format!("the check does not allow this template ({why})") });
        }
        // The one verb that goes to the network is `sample`, which the person chose by its step.
        let grants = Some(RunGrants { network: code.contains("sample("), ..RunGrants::default() });
        let (code, flow) = (code.to_owned(), Some(json!({"values": values})));
        let request =
            RunRequest { id, code, timeout_ms, restore_on_failure: true, grants, flow, ..RunRequest::default() };
        self.slicer.run(request, &CancellationToken::new()).await
    }
}

/// The numbers at the beginning of a version, for example of `5.13.0-practice`.
fn numbers(version: &str) -> Vec<u64> {
    let plain = version.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
    plain.split('.').map_while(|part| part.parse().ok()).collect()
}

fn fresh() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// Values that name a node which is no longer in the scene.
fn missing_nodes(values: &BTreeMap<String, Value>, snapshot: &SceneSnapshot) -> Vec<String> {
    let gone =
        |value: &Value| value.as_str().is_some_and(|id| id.starts_with("vtkMRML") && snapshot.node(id).is_none());
    values.iter().filter(|(_, value)| gone(value)).map(|(name, _)| name.clone()).collect()
}

/// Why an expectation does not hold, in a sentence.
fn unmet(expectation: &Expectation, id: Option<&str>, snapshot: &SceneSnapshot) -> Option<String> {
    let name = &expectation.value;
    let Some(node) = id.and_then(|id| snapshot.node(id)) else {
        return Some(format!("The node for \"{name}\" is not in the scene."));
    };
    let content = &node.content;
    let segments = content.segments.as_deref().unwrap_or_default();
    let voxels = segments.iter().filter_map(|segment| segment.voxels).max().unwrap_or_default();
    let least = |what: &str, wanted: Option<u64>, there: u64| {
        wanted
            .filter(|&wanted| there < wanted)
            .map(|wanted| format!("{} has {there} {what}, and at least {wanted} are needed.", node.name))
    };
    if let Some(class) = expectation.class.as_ref().filter(|class| !node.is_a(class)) {
        return Some(format!("{} is a {}, and a {class} is needed.", node.name, node.class));
    }
    if expectation.closed_surface == Some(true) && !segments.iter().any(|segment| segment.closed_surface) {
        return Some(format!("{} has no closed surface.", node.name));
    }
    least("points", expectation.min_points, content.points.unwrap_or_default())
        .or_else(|| least("segments", expectation.min_segments, segments.len() as u64))
        .or_else(|| least("voxels in its largest segment", expectation.min_voxels, voxels))
        .or_else(|| least("rows", expectation.min_rows, content.rows.unwrap_or_default()))
}
