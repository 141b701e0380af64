//! What a run of a workflow is at one moment, what can happen to it, and what it asks to be done.
//!
//! Everything here is plain data that can be written as JSON: events go to the journal as they are, and a state is what
//! they add up to. Nodes are values like all others: their ids, with the name beside it as a label.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which template of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Main,
    Before,
    After,
    /// The action of a branch's option, by its index.
    Action(usize),
}

/// What the run does or waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    Idle,
    /// A template is in Slicer; its result carries the ticket.
    Running {
        part: Part,
        ticket: u64,
    },
    WaitingChoice,
    /// The person works in Slicer, or looks at a review.
    WaitingUser,
    Failed {
        message: String,
    },
    /// The scene is being put back, to go on from an earlier step.
    Restoring {
        to: usize,
        ticket: u64,
    },
    Done,
    Cancelled,
}

impl Phase {
    /// Whether nothing more will happen by itself or by an answer.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Done | Self::Cancelled)
    }
}

/// What is put back when a run goes on from an earlier step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Marks {
    pub values: BTreeMap<String, Value>,
    /// Passes of counted loops by the step that repeats.
    pub passes: BTreeMap<String, u32>,
    /// How often each step was entered.
    pub visits: BTreeMap<String, u32>,
}

/// One visit of a step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub step: String,
    /// 1 for the first visit of this step.
    pub visit: u32,
    /// How things stood before it.
    pub before: Marks,
    /// Ids of its guarded runs in Slicer, oldest first.
    pub runs: Vec<String>,
    /// Ids of the nodes that it created.
    pub created: Vec<String>,
    pub skipped: bool,
    /// The option that was taken at a branch.
    pub option: Option<usize>,
}

/// A request that waits until the run can bear it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    pub id: String,
    pub text: String,
}

/// A run of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    #[serde(flatten)]
    pub phase: Phase,
    /// The connection is lost: nothing is sent until it is back.
    pub paused: bool,
    /// The visit that is under way; `None` before the start and after the end.
    pub current: Option<Entry>,
    /// Which stage of the current step is next or under way.
    pub stage: usize,
    pub now: Marks,
    /// Finished visits, oldest first.
    pub history: Vec<Entry>,
    /// The visit that the person looks at, if not the current one.
    pub looking_at: Option<usize>,
    /// A proposal for the choice that is waited for.
    pub proposed: Option<Value>,
    /// Control points that are placed, where that is waited for.
    pub points: Option<u64>,
    pub queue: Vec<Queued>,
    /// The last ticket that was given out.
    pub tickets: u64,
    /// A result that came while the connection was said to be lost.
    pub late: Option<Box<Event>>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            phase: Phase::Idle,
            paused: false,
            current: None,
            stage: 0,
            now: Marks::default(),
            history: Vec::new(),
            looking_at: None,
            proposed: None,
            points: None,
            queue: Vec::new(),
            tickets: 0,
            late: None,
        }
    }
}

/// What came of a template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    Ran {
        /// What the template kept.
        values: BTreeMap<String, Value>,
        /// Ids of the nodes that it created.
        created: Vec<String>,
        /// The guarded run in Slicer, by which it can be taken back.
        run: Option<String>,
    },
    Failed {
        message: String,
        /// Set when the run left something that can be taken back.
        run: Option<String>,
    },
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    Start,
    /// A template ended.
    Ran {
        ticket: u64,
        result: Outcome,
    },
    /// The scene was put back, or what of it could not be.
    Restored {
        ticket: u64,
        missing: Vec<String>,
    },
    /// The answer to a choice; for a branch the text of an option.
    Chose {
        value: Value,
    },
    /// "Choose for me".
    ChooseForMe,
    /// What "Choose for me" came to: one candidate, to be confirmed.
    Proposed {
        value: Value,
    },
    /// The person has done their part, or confirms a review.
    Done,
    /// The live count of control points.
    Points {
        count: u64,
    },
    /// Place mode was left in Slicer, or asked for again.
    PlaceAgain,
    Skip,
    Retry,
    Back,
    Forward,
    /// Go on from this visit of the history, taking back what came later.
    RunFrom {
        index: usize,
    },
    AskAgent,
    Cancel,
    /// What the person wrote.
    Said {
        id: String,
        text: String,
    },
    /// A request that would disturb the run.
    Requested {
        id: String,
        text: String,
    },
    RunQueued {
        id: String,
    },
    DropQueued {
        id: String,
    },
    ConnectionLost,
    /// The connection is back, or the program was started again; `missing` names the values whose nodes are gone.
    Resumed {
        missing: Vec<String>,
        /// The template that was under way has left nothing in the scene, so that it may run again.
        #[serde(default)]
        taken_back: bool,
    },
}

/// What is to be done. Effects of replayed events are not done again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Run a template in Slicer and report with the ticket.
    RunTemplate { ticket: u64, step: String, part: Part },
    /// Take back this run and all later ones, then remove nodes that are still there.
    Restore { ticket: u64, run: Option<String>, remove: Vec<String> },
    /// Watch the control points of the step's markup.
    Watch { step: String },
    /// Leave place mode and stop watching.
    StopWatching,
    /// Offer place mode again.
    PlaceAgain { step: String },
    /// Let the model choose among candidates.
    Resolve { step: String },
    /// A sentence for the person.
    Tell { text: String },
    /// A message for the agent, with the step it was said in.
    ToAgent { id: String, text: String, step: Option<String> },
    /// The agent is asked about a failure.
    Explain { step: String, message: String },
    /// A queued request may run now.
    HandOut { id: String, text: String },
}
