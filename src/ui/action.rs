//! The words of the window's state: what a person can do, and what can be chosen, told or shown.

use crate::engine::{ConnectionReport, ConversationId, Decision, ViewRequest};

/// What the person did.
#[derive(Debug, Clone)]
pub enum Action {
    NewConversation,
    Open(ConversationId),
    Rename(ConversationId, String),
    Pin(ConversationId, bool),
    Delete(ConversationId),
    Restore(ConversationId),
    SearchChanged,
    /// Send what is in the composer.
    Send,
    /// Send this text as it is.
    SendText(String),
    Stop,
    Unqueue(usize),
    Decide(String, Decision),
    Undo(String),
    UndoLast,
    RunCode(String),
    /// Older (true) or newer message into the composer.
    Recall(bool),
    /// Put a text into the composer.
    Compose(String),
    Capture,
    ShowPicture(String),
    RefreshScene,
    Connect(String),
    StartPractice,
    /// Look for Slicers that are installed and that run.
    FindSlicers,
    LaunchSlicer,
    CancelLaunch,
    /// Send this text in the shown conversation as soon as Slicer answers.
    RetryOnceConnected(String),
    /// The settings draft is to hold from now on.
    SettingsChanged,
    OpenSettings(SettingsTab),
    CloseSettings,
    SaveKey,
    RemoveKey,
    Test,
    CancelTest,
    Copied(&'static str),
    DismissToast(u64),
}

/// Pages of the settings dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsTab {
    Model,
    Slicer,
    Safety,
    Appearance,
    About,
}

/// Pages of the right pane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PaneTab {
    #[default]
    Screenshot,
    Scene,
}

/// Where a connection test stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Test {
    #[default]
    None,
    Running,
    Done(ConnectionReport),
}

/// A message at the edge of the window that goes away by itself.
#[derive(Debug, Clone)]
pub struct Toast {
    pub id: u64,
    pub bad: bool,
    pub text: String,
    pub advice: String,
    /// A button: its label and what it does.
    pub button: Option<(&'static str, Action)>,
    pub until_ms: i64,
}

/// A picture that the pane can show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    pub title: String,
    /// The message of the person that brought it; empty for one that was taken by hand.
    pub request: String,
    pub path: String,
}

/// A message on its way to its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sending {
    pub text: String,
    /// Unix time in milliseconds.
    pub since_ms: i64,
}

/// Something that is being set up or started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub what: String,
    pub detail: String,
}

/// Which picture the pane asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ViewChoice {
    #[default]
    Application,
    Slice(&'static str),
    ThreeD(Option<&'static str>),
}

impl ViewChoice {
    /// The request for this view.
    pub fn request(self) -> ViewRequest {
        let (view_type, view_name, camera_axis) = match self {
            ViewChoice::Application => ("application", None, None),
            ViewChoice::Slice(name) => ("slice", Some(name.to_owned()), None),
            ViewChoice::ThreeD(axis) => ("3d", None, axis.map(str::to_owned)),
        };
        ViewRequest { view_type: view_type.into(), view_name, camera_axis, image_size: None }
    }
}
