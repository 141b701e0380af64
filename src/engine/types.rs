//! The two vocabularies between a surface (window, command line) and the engine: commands in, events out.

use serde::{Deserialize, Serialize};

pub use crate::agent::{
    CheckResult, Decision, Expectation, Finish, Plan, PlanStep, Problem, Role, RunReport, Timings, TurnEvent,
    UsageTotal,
};
pub use crate::safety::{Capability, Finding, VerdictKind};
pub use crate::slicer::{FoundSlicers, HeldPort, InstalledSlicer, RunningSlicer, SlicerOrigin};
pub use crate::slicer::{
    NodeChange, NodeReference, NodeSummary, RestoreReport, RunError, SceneDiff, SceneSnapshot, SegmentSummary,
    SlicerStatus, ViewRequest, VtkMessage,
};
pub use crate::store::{ConversationSummary, KeyOrigin, Settings};

/// Names a conversation (a UUID as text).
pub type ConversationId = String;

/// What a surface asks for. The engine answers with events, never by return value.
#[derive(Debug, Clone)]
pub enum Command {
    /// Send the list of conversations.
    ListConversations,
    /// Make an empty conversation and open it. Nothing is stored until its first message.
    NewConversation,
    OpenConversation {
        conversation: ConversationId,
    },
    RenameConversation {
        conversation: ConversationId,
        title: String,
    },
    PinConversation {
        conversation: ConversationId,
        pinned: bool,
    },
    /// Marked as deleted, and gone for good only at the next start: `RestoreConversation` takes it back.
    DeleteConversation {
        conversation: ConversationId,
    },
    RestoreConversation {
        conversation: ConversationId,
    },
    SearchConversations {
        text: String,
    },
    /// A message of the person. While a turn runs in this conversation it is queued.
    Send {
        conversation: ConversationId,
        text: String,
    },
    /// Take a queued message back.
    Unqueue {
        conversation: ConversationId,
        position: usize,
    },
    Stop {
        conversation: ConversationId,
    },
    Decide {
        conversation: ConversationId,
        request: String,
        decision: Decision,
    },
    Undo {
        conversation: ConversationId,
        run: String,
    },
    /// Run code as it is (the person pressed Run again, or edited it) through all rings.
    RunCode {
        conversation: ConversationId,
        code: String,
    },
    CaptureScreenshot {
        conversation: ConversationId,
        view: ViewRequest,
    },
    RefreshScene,
    /// Connect to a Slicer's Web Server.
    ConnectSlicer {
        url: String,
    },
    /// Set up (once) and start the practice Slicer, then connect to it.
    StartPractice,
    /// Look for Slicers that are installed and that run.
    FindSlicers,
    /// Start the Slicer of the settings, or the newest that is found, with its Web Server on, and connect to it.
    LaunchSlicer,
    /// Give the launch that is under way up, and end the Slicer that was starting.
    CancelLaunch,
    /// Close a Slicer that was launched from here; without `confirmed` the answer is [`Event::CloseAsked`].
    CloseSlicer {
        pid: u32,
        confirmed: bool,
    },
    SaveSettings {
        settings: Box<Settings>,
    },
    /// The key goes to the keyring and nowhere else.
    SetKey {
        provider: String,
        key: Secret,
    },
    RemoveKey {
        provider: String,
    },
    TestConnection {
        settings: Box<Settings>,
        key: Option<Secret>,
    },
    CancelTest,
    Shutdown,
}

/// A key on its way to the keyring; it never shows itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// A provider as the settings dialog offers it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProviderChoice {
    pub id: String,
    pub name: String,
    pub base_url: String,
    /// Environment variable that may hold the key.
    pub key_variable: Option<String>,
    pub needs_key: bool,
    pub models: Vec<String>,
}

/// What a connection test found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionReport {
    pub ok: bool,
    pub ms: f64,
    pub model_available: Option<bool>,
    pub vision: Option<bool>,
    pub tools: Option<bool>,
    pub error: Option<Problem>,
}

/// What the engine tells. Everything that belongs to a turn was stored before it is told.
#[derive(Debug, Clone)]
pub enum Event {
    Conversations {
        list: Vec<ConversationSummary>,
    },
    SearchResults {
        text: String,
        list: Vec<ConversationSummary>,
    },
    /// A conversation with all its stored facts, oldest first.
    Opened {
        conversation: ConversationId,
        title: String,
        events: Vec<StoredTurnEvent>,
        queued: Vec<String>,
        running: bool,
    },
    /// One new fact.
    Turn {
        conversation: ConversationId,
        event: StoredTurnEvent,
    },
    Queue {
        conversation: ConversationId,
        queued: Vec<String>,
    },
    /// A turn ended without its last fact, because facts could no longer be stored. Nothing more of it will come.
    TurnLost {
        conversation: ConversationId,
        problem: Problem,
    },
    Title {
        conversation: ConversationId,
        title: String,
    },
    Slicer {
        status: SlicerStatus,
    },
    /// Progress of setting up or starting something (practice Slicer): one line for the person.
    Progress {
        what: String,
        detail: String,
        done: bool,
    },
    /// The Slicers of this computer.
    Slicers {
        found: Box<FoundSlicers>,
    },
    /// A launch ended without a connected Slicer.
    LaunchFailed {
        problem: Problem,
    },
    /// Closing this Slicer loses what is not saved in it: send the command again, confirmed.
    CloseAsked {
        pid: u32,
        url: String,
    },
    Scene {
        snapshot: Box<SceneSnapshot>,
    },
    /// A picture on disk to show in the screenshot pane.
    Screenshot {
        conversation: ConversationId,
        title: String,
        path: String,
    },
    Settings {
        settings: Box<Settings>,
        providers: Vec<ProviderChoice>,
        key: KeyOrigin,
    },
    TestStarted,
    TestFinished {
        report: ConnectionReport,
    },
    /// Something went wrong outside a turn.
    Problem {
        problem: Problem,
    },
}

/// A fact with its place and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredTurnEvent {
    /// Counts from 1 within a conversation.
    pub sequence: i64,
    /// Unix time in milliseconds.
    pub at_ms: i64,
    #[serde(flatten)]
    pub event: TurnEvent,
}
