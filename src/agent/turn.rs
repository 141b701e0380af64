//! The pipeline of one turn: observe, retrieve, plan and program (by a model or by the built-in recipes), check, run,
//! verify, repair, answer.
//!
//! It is one straight function per stage over a [`Turn`], so that the order of the rings can be read off the page: no
//! code is run before a verdict, no verdict is skipped for any author, nothing is called done before the scene says so.

use std::path::Path;
use std::time::Instant;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::attempt::Attempt;
use super::help;
use super::prompt::{self, PastTurn};
use super::recipes::{self, PendingRecipe, RecipeAnswer, RecipeBook, RecipeContext, RecipePart};
use super::reply::Parts;
use super::{Finish, HostError, Plan, Problem, Role, RunReport, Timings, TurnEvent, TurnHost, UsageTotal};
use crate::knowledge::{Knowledge, Retrieval, RetrievalOptions};
use crate::llm::{self, Catalogue, Message};
use crate::safety::Policy;
use crate::slicer::{SceneSnapshot, Slicer};

/// Who plans and programs.
pub enum Brain<'a> {
    /// The built-in recipes: no key, no network, no cost.
    Recipes { pending: Option<PendingRecipe>, context: RecipeContext },
    /// The person's own program, as it stands.
    Given { code: String },
    /// A language model. `provider` and `model` are what its price is looked up by.
    Model {
        client: &'a llm::Client,
        provider: String,
        model: String,
        temperature: Option<f64>,
        max_output: Option<u32>,
    },
}

/// Bounds of a turn.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time limit of one run in milliseconds.
    pub run_timeout_ms: u64,
    /// Attempts in all, the first one included.
    pub attempts: u32,
    /// Rounds of tool calls before the model must answer.
    pub tool_rounds: u32,
    /// The same within a correction.
    pub repair_rounds: u32,
    /// Tokens that the history may take in a request.
    pub history_tokens: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { run_timeout_ms: 30_000, attempts: 5, tool_rounds: 10, repair_rounds: 5, history_tokens: 24_000 }
    }
}

/// Everything a turn works with.
pub struct TurnContext<'a> {
    pub brain: Brain<'a>,
    pub knowledge: &'a Knowledge,
    pub recipes: &'a RecipeBook,
    pub catalogue: &'a Catalogue,
    /// `None`: nothing can be run, and the scene is unknown.
    pub slicer: Option<&'a Slicer>,
    /// Why there is no Slicer, for the person.
    pub slicer_problem: Option<Problem>,
    pub policy: Policy,
    pub limits: Limits,
    /// Where a person's own prompts are.
    pub data_folder: Option<&'a Path>,
    pub cancel: CancellationToken,
}

/// What a turn leaves for the next one.
#[derive(Debug, Default)]
pub struct TurnResult {
    pub past: PastTurn,
    /// A recipe that waits for an answer of the person.
    pub pending: Option<PendingRecipe>,
    /// The program and parts that ran by recipes, with the run's value.
    pub recipe_run: Option<(Vec<RecipePart>, serde_json::Value)>,
}

/// Why a turn ended before its answer.
pub(super) enum Ended {
    Stopped,
    /// The model's answer was cut off or withheld: nothing of it was run, and the finish says why.
    Finished(Finish),
    Problem(Finish, Problem),
    Host(HostError),
}

impl From<HostError> for Ended {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

impl From<llm::LlmError> for Ended {
    fn from(error: llm::LlmError) -> Self {
        if error.kind() == "Cancelled" {
            return Self::Stopped;
        }
        Self::Problem(
            Finish::Failed,
            Problem { kind: error.kind().into(), message: error.to_string(), advice: error.advice() },
        )
    }
}

impl From<crate::slicer::SlicerError> for Ended {
    fn from(error: crate::slicer::SlicerError) -> Self {
        Self::Problem(
            Finish::Failed,
            Problem { kind: error.kind().into(), message: error.to_string(), advice: error.advice() },
        )
    }
}

/// A turn at work.
pub(super) struct Turn<'a, H> {
    pub host: &'a H,
    pub context: &'a TurnContext<'a>,
    pub number: u64,
    pub request: String,
    pub scene: Option<SceneSnapshot>,
    pub timings: Timings,
    pub usage: UsageTotal,
    /// USD so far; `None` as soon as one call has no known price.
    pub cost: Option<f64>,
    pub result: TurnResult,
    /// Programs that were sent to Slicer so far.
    pub ran: u32,
    /// What failed runs of this turn may have left changed.
    pub not_put_back: Vec<String>,
}

/// Runs a whole turn. Its facts go to `host`; the last one is always [`TurnEvent::Finished`].
///
/// # Errors
/// Only when the host cannot store facts; every other failure is a fact of the turn.
pub async fn run_turn<H: TurnHost>(
    number: u64,
    request: &str,
    history: &[PastTurn],
    context: &TurnContext<'_>,
    host: &H,
) -> Result<TurnResult, HostError> {
    let started = Instant::now();
    let mut turn = Turn {
        host,
        context,
        number,
        request: request.to_owned(),
        scene: None,
        timings: Timings::default(),
        usage: UsageTotal::default(),
        cost: Some(0.0),
        result: TurnResult {
            past: PastTurn { request: request.to_owned(), ..PastTurn::default() },
            ..Default::default()
        },
        ran: 0,
        not_put_back: Vec::new(),
    };
    host.emit(TurnEvent::UserMessage { turn: number, text: request.to_owned() }).await?;
    let (finish, error) = match turn.run(history).await {
        Ok(finish) => (finish, None),
        Err(Ended::Stopped) => (Finish::Stopped, None),
        Err(Ended::Finished(finish)) => (finish, None),
        Err(Ended::Problem(finish, problem)) => (finish, Some(problem)),
        Err(Ended::Host(error)) => return Err(error),
    };
    turn.timings.total_ms = started.elapsed().as_secs_f64() * 1000.0;
    if let Some(problem) = &error {
        turn.result.past.outcome.get_or_insert_with(|| problem.message.clone());
    }
    let run_folder = host.run_folder().map(|folder| folder.to_string_lossy().into_owned());
    host.emit(TurnEvent::Usage { total: turn.usage, cost_usd: turn.cost }).await?;
    host.emit(TurnEvent::Finished { finish, error, timings: turn.timings, run_folder }).await?;
    Ok(turn.result)
}

impl<H: TurnHost> Turn<'_, H> {
    pub(super) async fn stage(&self, role: Role, detail: impl Into<String>) -> Result<(), Ended> {
        if self.context.cancel.is_cancelled() {
            return Err(Ended::Stopped);
        }
        self.host.emit(TurnEvent::Stage { role, detail: detail.into() }).await?;
        Ok(())
    }

    pub(super) async fn say(&mut self, text: impl Into<String>) -> Result<(), Ended> {
        let text = text.into();
        self.result.past.answer = text.clone();
        self.host.emit(TurnEvent::TextDelta { text }).await?;
        Ok(())
    }

    async fn run(&mut self, history: &[PastTurn]) -> Result<Finish, Ended> {
        self.stage(Role::Observer, "reading request…").await?;
        if let Some(slicer) = self.context.slicer {
            let snapshot = tokio::select! {
                snapshot = slicer.snapshot() => snapshot?,
                () = self.context.cancel.cancelled() => return Err(Ended::Stopped),
            };
            self.scene = Some(snapshot);
        }
        match &self.context.brain {
            Brain::Recipes { pending, context } => self.by_recipes(pending.as_ref(), context).await,
            Brain::Given { code } => self.by_given(code.clone()).await,
            Brain::Model { .. } => self.by_model(history).await,
        }
    }

    async fn by_given(&mut self, code: String) -> Result<Finish, Ended> {
        if self.scene.is_none() {
            return Err(self.no_slicer());
        }
        let plan = Plan { task_summary: "Run a program as it stands".into(), ..Plan::default() };
        let draft = Parts { prose: String::new(), plan: Some(Ok(plan)), code: Some(code) };
        match self.attempt(&draft, 1).await? {
            Attempt::Done(report) => {
                let value =
                    if report.value.is_null() { String::new() } else { format!(" Its value: `{}`", report.value) };
                self.say(format!("The program ran.{value}")).await?;
                Ok(Finish::Ran)
            }
            Attempt::Failed { why, report, blocked } => self.give_up(&why, report.as_deref(), blocked, 1).await,
        }
    }

    fn no_slicer(&self) -> Ended {
        let problem = self.context.slicer_problem.clone().unwrap_or_else(|| Problem {
            kind: "NoSlicer".into(),
            message: "No Slicer is connected, so nothing can be run.".into(),
            advice: "Start Slicer with its Web Server, or the practice Slicer, and send the request again.".into(),
        });
        Ended::Problem(Finish::Failed, problem)
    }

    async fn by_recipes(&mut self, pending: Option<&PendingRecipe>, earlier: &RecipeContext) -> Result<Finish, Ended> {
        if let Some(text) = help::answer(&self.request, self.context.data_folder) {
            self.say(text).await?;
            return Ok(Finish::Answer);
        }
        self.stage(Role::Retriever, "searching recipes…").await?;
        let started = Instant::now();
        let nothing = SceneSnapshot::default();
        let scene = self.scene.as_ref().unwrap_or(&nothing);
        let answer = recipes::answer(&self.request, scene, pending, earlier, self.context.recipes);
        self.timings.retrieval_ms += started.elapsed().as_secs_f64() * 1000.0;
        match answer {
            RecipeAnswer::NoMatch { nearest } => {
                // An open question that was waved away.
                let dropped = nearest.is_empty() && pending.is_some();
                let text = if dropped { "Dropped; nothing was run.".to_owned() } else { no_match_text(&nearest) };
                self.say(text).await?;
                Ok(Finish::Answer)
            }
            RecipeAnswer::Ask { question, pending, .. } if self.scene.is_some() => {
                self.say(question).await?;
                self.result.pending = Some(pending);
                Ok(Finish::Answer)
            }
            RecipeAnswer::Ask { .. } => Err(self.no_slicer()),
            RecipeAnswer::Program { plan, code, parts, evidence } => {
                let ms = self.timings.retrieval_ms;
                self.host.emit(TurnEvent::Retrieved { hits: evidence, ms }).await?;
                if self.scene.is_none() {
                    return Err(self.no_slicer());
                }
                let draft = Parts { prose: String::new(), plan: Some(Ok(plan)), code: Some(code) };
                match self.attempt(&draft, 1).await? {
                    Attempt::Done(report) => self.recipe_answer(parts, &report).await,
                    Attempt::Failed { why, report, blocked } => self.give_up(&why, report.as_deref(), blocked, 1).await,
                }
            }
        }
    }

    async fn recipe_answer(&mut self, parts: Vec<RecipePart>, report: &RunReport) -> Result<Finish, Ended> {
        let text = recipes::final_answer(&parts, &report.value, self.context.recipes);
        self.say(text).await?;
        self.result.recipe_run = Some((parts, report.value.clone()));
        Ok(Finish::Ran)
    }

    async fn by_model(&mut self, history: &[PastTurn]) -> Result<Finish, Ended> {
        self.stage(Role::Retriever, "searching…").await?;
        let started = Instant::now();
        let found =
            self.context.knowledge.retrieve(&self.request, &RetrievalOptions::default()).unwrap_or_else(|error| {
                tracing::warn!("the knowledge could not be searched: {error}");
                Retrieval::default()
            });
        // What was searched is worth telling only where more than one thing was.
        let coverage = if found.subqueries.len() > 1 { found.coverage.clone() } else { Vec::new() };
        let hits = found.into_list();
        let ms = started.elapsed().as_secs_f64() * 1000.0;
        self.timings.retrieval_ms += ms;
        let places = hits.iter().map(|hit| format!("{}:{}-{}", hit.path, hit.start_line, hit.end_line)).collect();
        self.host.emit(TurnEvent::Retrieved { hits: places, ms }).await?;

        let system = prompt::system_text(self.context.data_folder);
        let scene = self.scene.as_ref();
        let budget = self.context.limits.history_tokens;
        let mut messages = prompt::first_messages(system, history, budget, (&hits, &coverage), scene, &self.request);
        self.save_messages("prompt_first.json", &messages).await?;
        let own_messages = messages.len() - 1;
        let (text, mut draft) = self.think(&mut messages, self.context.limits.tool_rounds, Role::Planner).await?;
        // A correction sees this turn, never the history before it.
        let mut base = vec![messages[0].clone()];
        base.extend(messages[own_messages..].iter().cloned());

        let mut attempt = 1;
        let mut seen: Vec<(String, String)> = Vec::new();
        let mut last_report: Option<Box<RunReport>> = None;
        let mut last_blocked = false;
        let mut last_text = text;
        loop {
            let failed = match self.check_draft(&draft) {
                Draft::Answer => {
                    self.result.past.answer = draft.prose.clone();
                    // Words in place of a corrected program do not undo the failure that asked for it.
                    let Some((_, first)) = seen.last() else { return Ok(Finish::Answer) };
                    let why = first.clone();
                    return self.give_up(&why, last_report.as_deref(), last_blocked, attempt).await;
                }
                Draft::Unusable(why) => Attempt::Failed { why, report: None, blocked: false },
                Draft::Program if self.scene.is_none() => return Err(self.no_slicer()),
                Draft::Program => self.attempt(&draft, attempt).await?,
            };
            let (why, report, blocked) = match failed {
                Attempt::Done(report) => return self.model_answer(base, &last_text, &report).await,
                Attempt::Failed { why, report, blocked } => (why, report, blocked),
            };
            let fingerprint = (draft.code.clone().unwrap_or_default().trim().to_owned(), why.clone());
            let repeats = seen.iter().any(|(code, error)| *code == fingerprint.0 || *error == fingerprint.1);
            seen.push(fingerprint);
            // A scene that could not be put back is no ground for another try.
            if attempt >= self.context.limits.attempts || repeats || !self.not_put_back.is_empty() {
                return self.give_up(&why, report.as_deref(), blocked, attempt).await;
            }
            attempt += 1;
            (last_text, draft) = match self.repair(&base, &last_text, &why, report.as_deref(), attempt).await {
                Ok(corrected) => corrected,
                Err(Ended::Problem(_, problem)) => {
                    // The failure that matters is the run's; that no correction came is said beside it.
                    let why = format!("{} No correction came: {}", sentence(&why), problem.message);
                    return self.give_up(&why, report.as_deref(), blocked, attempt - 1).await;
                }
                Err(other) => return Err(other),
            };
            last_blocked = blocked;
            last_report = report;
        }
    }

    fn check_draft(&self, draft: &Parts) -> Draft {
        match (&draft.plan, &draft.code) {
            (None, _) => Draft::Answer,
            (Some(Err(error)), _) => Draft::Unusable(format!("The plan is not valid JSON: {error}")),
            (Some(Ok(_)), None) => Draft::Unusable("There is a plan and no program after it.".into()),
            (Some(Ok(_)), Some(_)) => Draft::Program,
        }
    }

    async fn repair(
        &mut self,
        base: &[Message],
        last_text: &str,
        why: &str,
        report: Option<&RunReport>,
        attempt: u32,
    ) -> Result<(String, Parts), Ended> {
        let of = self.context.limits.attempts;
        self.host.emit(TurnEvent::Repair { attempt, of, why: why.to_owned() }).await?;
        self.stage(Role::Repairer, format!("correcting ({attempt} of {of})…")).await?;
        let mut messages = base.to_vec();
        messages.push(Message::Assistant { text: last_text.to_owned(), reasoning: None, tool_calls: Vec::new() });
        let failure = json!({
            "reason": why,
            "error": report.and_then(|report| report.error.as_ref()),
            "stdout": report.map(|report| clip(&report.stdout)),
            "stderr": report.map(|report| clip(&report.stderr)),
            "vtk": report.map(|report| clip(&json!(report.vtk).to_string())),
            "checks": report.map(|report| &report.checks),
        });
        let failure = as_data(&failure);
        let instruction = prompt::repair_text(self.context.data_folder);
        messages.push(Message::User { text: format!("{instruction}\n<failure>\n{failure}\n</failure>") });
        self.save_messages(&format!("correction_{}/prompt.json", attempt - 1), &messages).await?;
        self.think(&mut messages, self.context.limits.repair_rounds, Role::Repairer).await
    }

    async fn model_answer(
        &mut self,
        mut messages: Vec<Message>,
        last_text: &str,
        report: &RunReport,
    ) -> Result<Finish, Ended> {
        self.stage(Role::Executor, "reading the result…").await?;
        messages.push(Message::Assistant { text: last_text.to_owned(), reasoning: None, tool_calls: Vec::new() });
        let result = as_data(&json!({
            "value": clip(&report.value.to_string()),
            "stdout": clip(&report.stdout),
            "stderr": clip(&report.stderr),
            "log": report.log,
            "vtk": clip(&json!(report.vtk).to_string()),
            "scene_difference": clip(&json!(report.diff).to_string()),
            "checks": report.checks,
            "duration_ms": report.duration_ms,
        }));
        let checks = checks_sentence(report);
        messages.push(Message::User {
            text: format!("The program ran. {checks} Give the final answer.\n<result>\n{result}\n</result>"),
        });
        self.save_messages("prompt_last.json", &messages).await?;
        match self.think(&mut messages, 0, Role::Planner).await {
            Ok((_, parts)) => self.result.past.answer = parts.prose,
            // The work is done and judged; only the words about it are missing.
            Err(Ended::Problem(_, problem)) => {
                let why = format!("The model could not comment on it: {} {}", problem.message, problem.advice);
                self.say(format!("The program ran; its result is above. {checks} {why}")).await?;
            }
            Err(Ended::Finished(_) | Ended::Stopped) => {
                self.say(format!("\n\nThe program ran; its result is above. {checks} The comment was cut off."))
                    .await?;
            }
            Err(Ended::Host(error)) => return Err(Ended::Host(error)),
        }
        Ok(Finish::Ran)
    }

    async fn give_up(
        &mut self,
        why: &str,
        report: Option<&RunReport>,
        blocked: bool,
        attempts: u32,
    ) -> Result<Finish, Ended> {
        let tried = if attempts > 1 { format!(" after {attempts} attempts") } else { String::new() };
        let scene = self.scene_sentence();
        self.say(format!("This did not work{tried}. {}{scene}", sentence(why))).await?;
        let advice = if blocked {
            "Ask for it in another way: the findings say what to write instead."
        } else {
            "Say it in another way or with more detail, or open the traceback above."
        };
        let kind = match (blocked, report) {
            (true, _) => "Refused",
            (false, Some(_)) => "CodeFailed",
            (false, None) => "PlanInvalid",
        };
        let problem = Problem { kind: kind.into(), message: sentence(why), advice: advice.into() };
        Err(Ended::Problem(Finish::Failed, problem))
    }

    /// What can truly be said of the scene after programs that failed, with a space before it.
    pub(super) fn scene_sentence(&self) -> String {
        match (self.ran, self.not_put_back.as_slice()) {
            (0, _) => " Nothing was run.".to_owned(),
            (_, []) => " The scene is as it was before.".to_owned(),
            (_, left) => format!(" The scene may not be as it was before: {}.", left.join("; ")),
        }
    }

    pub(super) async fn save_messages(&self, name: &str, messages: &[Message]) -> Result<(), Ended> {
        let bytes = serde_json::to_vec_pretty(messages).map_err(|error| HostError(error.to_string()))?;
        self.keep(name, bytes).await;
        Ok(())
    }
}

/// What a model's answer turned out to be.
enum Draft {
    Answer,
    Unusable(String),
    Program,
}

/// Longest piece of output that a model is sent (characters).
const CLIP: usize = 8000;

/// Output for a model: the beginning and the end when it is long, for errors stand at the end.
fn clip(text: &str) -> String {
    let count = text.chars().count();
    if count <= CLIP {
        return text.to_owned();
    }
    let head: String = text.chars().take(CLIP / 2).collect();
    let tail: String = text.chars().skip(count - CLIP / 2).collect();
    format!("{head}\n[… {} characters left out …]\n{tail}", count - CLIP)
}

/// JSON that cannot close the tag it stands in.
fn as_data(value: &serde_json::Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

/// How the checks of a run came out, in one sentence that claims no more than was checked.
fn checks_sentence(report: &RunReport) -> String {
    let held = report.checks.iter().filter(|check| check.passed == Some(true)).count();
    let open = report.checks.iter().filter(|check| check.passed.is_none()).count();
    match (held, open) {
        (0, _) => "Nothing was checked in the scene.".to_owned(),
        (held, 0) => format!("All {held} checks of the scene held."),
        (held, open) => format!("{held} checks of the scene held, {open} could not be checked."),
    }
}

/// `text` as one or more sentences: capital first, a full stop at the end.
fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut characters = text.chars();
    let capital: String = characters.next().into_iter().flat_map(char::to_uppercase).chain(characters).collect();
    if capital.ends_with(['.', '!', '?']) { capital } else { format!("{capital}.") }
}

fn no_match_text(nearest: &[(String, String)]) -> String {
    let mut text = String::from(
        "None of the built-in recipes does this. For free-form requests, set up a model in Settings → Model.",
    );
    if !nearest.is_empty() {
        text.push_str("\n\nThe nearest things that work without a model:\n");
        for (title, example) in nearest {
            text.push_str(&format!("- **{title}**, for example “{example}”\n"));
        }
    }
    text
}
