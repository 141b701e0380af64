//! What happens in a turn, as a list of facts: stored one by one, shown in this order, and replayed as they are when a
//! conversation is opened again.

use serde::{Deserialize, Serialize};

use super::plan::{CheckResult, Plan};
use crate::safety::{Finding, VerdictKind};
use crate::slicer::{DialogNote, RestoreReport, RunError, SceneDiff, VtkMessage};

/// The stage of the pipeline that is at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    Observer,
    Retriever,
    Planner,
    Programmer,
    SafetyCritic,
    Executor,
    Repairer,
}

impl Role {
    /// The label of the status line.
    pub fn label(self) -> &'static str {
        match self {
            Role::Observer => "Observer",
            Role::Retriever => "Retriever",
            Role::Planner => "Planner",
            Role::Programmer => "Programmer",
            Role::SafetyCritic => "Safety Critic",
            Role::Executor => "Executor",
            Role::Repairer => "Repairer",
        }
    }
}

/// Tokens of one or more model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageTotal {
    /// Input tokens that were not cached.
    pub input: u64,
    pub cached: u64,
    pub output: u64,
    pub reasoning: u64,
    /// Number of model calls.
    pub calls: u64,
    /// True when a part is an estimate (shown as "≈").
    pub estimated: bool,
}

/// What a run of the code did, as the result card shows it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunReport {
    /// Names the run for undo.
    pub run: String,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// True when it ran clean and no check failed.
    pub ok: bool,
    pub value: serde_json::Value,
    pub stdout: String,
    pub stderr: String,
    pub vtk: Vec<VtkMessage>,
    /// Python warnings, and what the code logged at level WARNING and above.
    pub log: Vec<String>,
    pub error: Option<RunError>,
    pub diff: SceneDiff,
    pub checks: Vec<CheckResult>,
    pub duration_ms: f64,
    pub restored: Option<RestoreReport>,
    pub undoable: bool,
    pub touched: Vec<String>,
    /// What the code wanted and was not granted, also when it hid the refusal.
    pub refused: Vec<String>,
    /// Dialogs of the code.
    pub dialogs: Vec<DialogNote>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    Answer,
    Ran,
    Failed,
    Stopped,
    Length,
    ContentFilter,
}

/// An error as a person sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// A name from the command-line contract, for example `NoSlicer` or `KeyRefused`.
    pub kind: String,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub advice: String,
}

/// What a person answered to a permission question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    AllowOnce,
    AllowConversation,
    AllowAlways,
    Deny,
}

/// Where the time of a turn went, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timings {
    pub retrieval_ms: f64,
    pub model_ms: f64,
    pub tools_ms: f64,
    pub checks_ms: f64,
    pub run_ms: f64,
    pub total_ms: f64,
}

/// One fact of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TurnEvent {
    /// The person's message; opens the turn.
    UserMessage {
        turn: u64,
        text: String,
    },
    /// The pipeline moved on. `detail` is the rest of the status line, for example "searching…".
    Stage {
        role: Role,
        detail: String,
    },
    /// A piece of the answer (markdown).
    TextDelta {
        text: String,
    },
    /// A piece of the model's thinking.
    ReasoningDelta {
        text: String,
    },
    /// The answer text so far was a draft that is replaced (for example by its parsed plan and code).
    TextReplaced {
        text: String,
    },
    /// Knowledge that was put before the model: paths with lines.
    Retrieved {
        hits: Vec<String>,
        ms: f64,
    },
    ToolCall {
        id: String,
        name: String,
        arguments: serde_json::Value,
    },
    ToolResult {
        id: String,
        ok: bool,
        summary: String,
        text: String,
        ms: f64,
        error: Option<String>,
    },
    Plan {
        plan: Plan,
    },
    /// Python that is about to be checked and run.
    Code {
        attempt: u32,
        code: String,
    },
    Verdict {
        verdict: VerdictKind,
        findings: Vec<Finding>,
    },
    PermissionAsked {
        request: String,
        findings: Vec<Finding>,
    },
    PermissionDecided {
        request: String,
        decision: Decision,
    },
    RunFinished {
        report: Box<RunReport>,
    },
    /// A picture that was saved in the run folder.
    Screenshot {
        title: String,
        path: String,
        width: u32,
        height: u32,
    },
    /// A correction starts. `why` is the failure in one line.
    Repair {
        attempt: u32,
        of: u32,
        why: String,
    },
    /// The model call is tried again after an error.
    Retrying {
        attempt: u32,
        wait_ms: u64,
        why: String,
    },
    Usage {
        total: UsageTotal,
        cost_usd: Option<f64>,
    },
    Undone {
        run: String,
        report: RestoreReport,
    },
    /// Closes the turn.
    Finished {
        finish: Finish,
        error: Option<Problem>,
        timings: Timings,
        run_folder: Option<String>,
    },
}
