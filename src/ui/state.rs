//! What the window knows, as plain values: events of the engine change it, and what the person does becomes commands.
//!
//! Nothing here paints, waits or reads a clock, so every flow of the window can be tested with values. Views change only
//! what is being typed; everything else goes through [`Action`].

use std::collections::{HashMap, VecDeque};

use crate::engine::{
    Command, ConversationId, ConversationSummary, Event, Finish, KeyOrigin, ProviderChoice, SceneSnapshot, Secret,
    Settings, SlicerStatus, StoredTurnEvent, Timings, TurnEvent,
};

mod slicers;
mod toasts;

pub use super::action::*;
use super::timeline::Timeline;
pub use slicers::Slicers;

/// Stands while a run is taken back.
const UNDOING: &str = "Undoing the last run…";

/// Everything the window knows.
#[derive(Debug, Default)]
pub struct State {
    /// Unix time in milliseconds, set by the shell before each frame.
    pub now_ms: i64,
    pub conversations: Vec<ConversationSummary>,
    pub search: String,
    /// Answer to the search text it was made for.
    pub found: Option<(String, Vec<ConversationSummary>)>,
    pub renaming: Option<(ConversationId, String)>,
    pub current: Option<ConversationId>,
    pub title: String,
    pub timeline: Timeline,
    pub queued: Vec<String>,
    pub composer: String,
    pub drafts: HashMap<ConversationId, String>,
    /// Place in the sent messages while recalling, counted from the newest.
    recalled: Option<usize>,
    /// Texts that wait for a conversation to be opened.
    unsent: VecDeque<String>,
    /// Sent, but the turn has not begun: the engine may have to wait for Slicer first. Shown at once all the same.
    pub sending: Option<Sending>,
    /// A conversation and the text to send there once Slicer answers.
    retry_once_connected: Option<(ConversationId, String)>,
    /// The newest card is to come into sight: the person sent something, or asked for it.
    pub to_newest: bool,
    /// A stop was asked for and has not come yet.
    pub stopping: bool,
    /// None until the engine has told.
    pub slicer: Option<SlicerStatus>,
    pub slicer_url: String,
    /// The Slicers of this computer, and the launch of one.
    pub slicers: Slicers,
    pub progress: Option<Progress>,
    pub scene: Option<SceneSnapshot>,
    pub scene_search: String,
    pub pictures: Vec<Picture>,
    pub shown_picture: Option<usize>,
    pub view: ViewChoice,
    pub capturing: bool,
    pub settings: Settings,
    /// What the dialog edits.
    pub draft: Settings,
    pub settings_known: bool,
    pub providers: Vec<ProviderChoice>,
    pub key: KeyOrigin,
    pub key_text: String,
    pub key_revealed: bool,
    pub test: Test,
    pub dialog: Option<SettingsTab>,
    pub help: bool,
    pub sidebar_open: bool,
    pub sidebar_over: bool,
    pub pane_open: bool,
    pub pane_over: bool,
    pub pane_tab: PaneTab,
    /// The pane opened by itself once; after that it is the person's choice.
    pub pane_opened_itself: bool,
    /// Set by the shell: is the window too narrow for sides beside the middle?
    pub narrow: bool,
    pub toasts: Vec<Toast>,
    toasts_made: u64,
    pub focus_composer: bool,
    pub focus_search: bool,
    /// Code that the person edits, by card.
    pub edited_code: HashMap<i64, String>,
    /// Cards that the person opened or closed against their default.
    pub opened: HashMap<i64, bool>,
    /// Changes whenever another conversation is shown, so that caches of the old one can go.
    pub generation: u64,
}

impl State {
    /// A window that has just opened.
    pub fn new(initial_messages: Vec<String>) -> Self {
        let mut state = Self { sidebar_open: true, focus_composer: true, ..Self::default() };
        state.unsent.extend(initial_messages.into_iter().filter(|text| !text.trim().is_empty()));
        state
    }

    /// What the engine is asked when the window opens.
    pub fn opening_commands() -> Vec<Command> {
        vec![Command::ListConversations, Command::NewConversation]
    }

    /// True while a turn runs in the shown conversation.
    pub fn running(&self) -> bool {
        self.sending.is_some() || self.timeline.running()
    }

    /// Is anything on the way whose time is shown?
    pub fn busy(&self) -> bool {
        self.running() || self.progress.is_some() || self.capturing || self.test == Test::Running
    }

    /// The conversations as the list shows them: matches of the search, pinned first, newest first.
    pub fn listed(&self) -> Vec<&ConversationSummary> {
        let words = self.search.trim();
        let mut list: Vec<_> = match &self.found {
            Some((text, list)) if !words.is_empty() && text == words => list.iter().collect(),
            _ => {
                let words = words.to_lowercase();
                self.conversations.iter().filter(|one| one.title.to_lowercase().contains(&words)).collect()
            }
        };
        list.retain(|one| !one.deleted);
        list.sort_by_key(|one| (!one.pinned, -one.updated_ms));
        list
    }

    /// The provider that the settings name.
    pub fn provider(&self) -> Option<&ProviderChoice> {
        self.providers.iter().find(|one| one.id == self.settings.model.provider)
    }

    /// Folds one event. Returns the commands that follow from it.
    pub fn apply(&mut self, event: Event) -> Vec<Command> {
        match event {
            Event::Conversations { list } => self.conversations = list,
            Event::SearchResults { text, list } => self.found = Some((text, list)),
            Event::Opened { conversation, title, events, queued, running } => {
                self.opened_conversation(conversation, title, Timeline::from_events(&events), queued, running);
                return self.send_waiting();
            }
            Event::Turn { conversation, event } if self.is_current(&conversation) => {
                if let TurnEvent::Screenshot { title, path, .. } = &event.event {
                    let request = self.timeline.sent.last().cloned().unwrap_or_default();
                    self.add_picture(Picture { title: title.clone(), request, path: path.clone() });
                }
                if matches!(event.event, TurnEvent::UserMessage { .. }) {
                    self.sending = None;
                }
                if matches!(event.event, TurnEvent::Undone { .. }) {
                    self.toasts.retain(|toast| toast.text != UNDOING);
                }
                self.timeline.apply(&event);
                self.stopping &= self.running();
            }
            Event::Queue { conversation, queued } if self.is_current(&conversation) => self.queued = queued,
            Event::Turn { .. } | Event::Queue { .. } => {}
            Event::TurnLost { conversation, problem } if self.is_current(&conversation) => {
                // Shown like any end of a turn; only the history does not have it.
                let (finish, timings) = (Finish::Failed, Timings::default());
                let event = TurnEvent::Finished { finish, error: Some(problem), timings, run_folder: None };
                self.timeline.apply(&StoredTurnEvent { sequence: 0, at_ms: self.now_ms, event });
            }
            Event::TurnLost { problem, .. } => self.toast_problem(problem),
            Event::Title { conversation, title } => self.set_title(&conversation, title),
            Event::Slicer { status } => return self.set_slicer(status),
            Event::Progress { what, detail, done } => self.set_progress(what, detail, done),
            Event::Slicers { found } => self.set_found(*found),
            Event::LaunchFailed { problem } => self.launch_failed(problem),
            // The window does not offer to close a Slicer, so it is never asked.
            Event::CloseAsked { .. } => {}
            Event::Scene { snapshot } => {
                // The state of the connection comes now and then only; the number beside it must not lag behind.
                if let Some(status) = &mut self.slicer {
                    status.nodes = snapshot.nodes.len();
                }
                self.scene = Some(*snapshot);
            }
            Event::Screenshot { conversation, title, path } => {
                self.capturing = false;
                if self.is_current(&conversation) {
                    self.add_picture(Picture { title, request: String::new(), path });
                }
            }
            Event::Settings { settings, providers, key } => self.set_settings(*settings, providers, key),
            // The window knows since the button was pressed; after a cancel this comes too late to matter.
            Event::TestStarted => {}
            Event::TestFinished { report } => {
                if self.test != Test::None {
                    self.test = Test::Done(report);
                }
            }
            Event::Problem { problem } => {
                self.capturing = false;
                self.progress = None;
                self.slicers.launching = false;
                self.slicers.looking = false;
                self.retry_once_connected = None;
                self.toast_problem(problem);
            }
        }
        Vec::new()
    }

    fn is_current(&self, conversation: &str) -> bool {
        self.current.as_deref() == Some(conversation)
    }

    fn opened_conversation(
        &mut self,
        conversation: ConversationId,
        title: String,
        timeline: Timeline,
        queued: Vec<String>,
        running: bool,
    ) {
        if !self.is_current(&conversation) {
            self.keep_draft();
            self.composer = self.drafts.remove(&conversation).unwrap_or_default();
            self.sending = None;
            self.opened.clear();
            self.edited_code.clear();
            self.generation += 1;
        }
        self.current = Some(conversation);
        self.title = title;
        self.timeline = timeline;
        if !running {
            // A turn that was cut off by the end of the program does not run any more.
            self.timeline.live = None;
            self.timeline.turn_started_ms = None;
        }
        self.queued = queued;
        self.stopping = false;
        self.recalled = None;
        self.focus_composer = true;
        self.pictures.clear();
        self.shown_picture = None;
        for picture in self.timeline.pictures() {
            self.add_picture(picture);
        }
    }

    fn send_waiting(&mut self) -> Vec<Command> {
        let Some(conversation) = self.current.clone() else { return Vec::new() };
        if let Some(first) = self.unsent.front().cloned() {
            self.begin_sending(first);
        }
        self.unsent.drain(..).map(|text| Command::Send { conversation: conversation.clone(), text }).collect()
    }

    /// A stop also drops what waits behind the turn. Nothing that was typed is lost: it stands in the composer again.
    fn take_queue_back(&mut self) {
        for text in std::mem::take(&mut self.queued) {
            if !self.composer.is_empty() {
                self.composer.push('\n');
            }
            self.composer.push_str(&text);
        }
    }

    /// Shows a message as sent, unless it will stand in the queue.
    fn begin_sending(&mut self, text: String) {
        if !self.running() {
            self.sending = Some(Sending { text, since_ms: self.now_ms });
        }
    }

    fn keep_draft(&mut self) {
        let draft = std::mem::take(&mut self.composer);
        if let Some(current) = &self.current
            && !draft.trim().is_empty()
        {
            self.drafts.insert(current.clone(), draft);
        }
    }

    fn set_title(&mut self, conversation: &str, title: String) {
        if let Some(one) = self.conversations.iter_mut().find(|one| one.id == conversation) {
            one.title.clone_from(&title);
        }
        if self.is_current(conversation) {
            self.title = title;
        }
    }

    fn set_settings(&mut self, settings: Settings, providers: Vec<ProviderChoice>, key: KeyOrigin) {
        // What is being typed in the dialog is not overwritten by an echo.
        if self.dialog.is_none() || self.draft == self.settings {
            self.draft = settings.clone();
        }
        self.slicer_url.clone_from(&settings.slicer.url);
        self.settings = settings;
        self.providers = providers;
        self.key = key;
        self.settings_known = true;
    }

    fn add_picture(&mut self, new: Picture) {
        self.pictures.retain(|picture| picture.path != new.path);
        self.pictures.push(new);
        self.shown_picture = Some(self.pictures.len() - 1);
        if !self.pane_opened_itself && !self.narrow {
            self.pane_opened_itself = true;
            self.pane_open = true;
            self.pane_tab = PaneTab::Screenshot;
        }
    }

    /// Turns what the person did into commands.
    pub fn update(&mut self, action: Action) -> Vec<Command> {
        let with_current = |state: &Self, make: &dyn Fn(ConversationId) -> Command| {
            state.current.clone().map(make).into_iter().collect::<Vec<_>>()
        };
        match action {
            Action::NewConversation => {
                self.sidebar_over = false;
                self.focus_composer = true;
                // An empty conversation is as good as a new one.
                if self.current.is_some() && self.timeline.cards.is_empty() && self.sending.is_none() {
                    Vec::new()
                } else {
                    vec![Command::NewConversation]
                }
            }
            Action::Open(conversation) => {
                self.sidebar_over = false;
                if self.is_current(&conversation) {
                    Vec::new()
                } else {
                    vec![Command::OpenConversation { conversation }]
                }
            }
            Action::Rename(conversation, title) => self.rename(conversation, title),
            Action::Pin(conversation, pinned) => {
                for one in self.conversations.iter_mut().filter(|one| one.id == conversation) {
                    one.pinned = pinned;
                }
                vec![Command::PinConversation { conversation, pinned }]
            }
            Action::Delete(conversation) => self.delete(conversation),
            Action::Restore(conversation) => {
                for one in self.conversations.iter_mut().filter(|one| one.id == conversation) {
                    one.deleted = false;
                }
                vec![Command::RestoreConversation { conversation }]
            }
            Action::SearchChanged => {
                let text = self.search.trim().to_owned();
                if text.is_empty() { Vec::new() } else { vec![Command::SearchConversations { text }] }
            }
            Action::Send => {
                let text = std::mem::take(&mut self.composer);
                self.send(text)
            }
            Action::SendText(text) => self.send(text),
            Action::Stop => {
                self.stopping = self.running();
                self.take_queue_back();
                with_current(self, &|conversation| Command::Stop { conversation })
            }
            Action::Unqueue(position) => {
                with_current(self, &|conversation| Command::Unqueue { conversation, position })
            }
            Action::Decide(request, decision) => {
                with_current(self, &|conversation| Command::Decide { conversation, request: request.clone(), decision })
            }
            Action::Undo(run) => with_current(self, &|conversation| Command::Undo { conversation, run: run.clone() }),
            Action::UndoLast => self.undo_last(),
            Action::RunCode(code) => {
                self.to_newest = true;
                with_current(self, &|conversation| Command::RunCode { conversation, code: code.clone() })
            }
            Action::Capture => {
                self.capturing = self.current.is_some();
                let view = self.view.request();
                with_current(self, &|conversation| Command::CaptureScreenshot { conversation, view: view.clone() })
            }
            Action::SettingsChanged => self.save_settings(),
            Action::CloseSettings => {
                self.dialog = None;
                self.key_text.clear();
                self.key_revealed = false;
                self.focus_composer = true;
                let mut commands = self.save_settings();
                if self.test == Test::Running {
                    commands.push(Command::CancelTest);
                }
                self.test = Test::None;
                commands
            }
            Action::SaveKey => self.save_key(),
            Action::RemoveKey => vec![Command::RemoveKey { provider: self.draft.model.provider.clone() }],
            Action::Test => {
                self.test = Test::Running;
                let key = Some(self.key_text.trim()).filter(|key| !key.is_empty()).map(|key| Secret(key.into()));
                vec![Command::TestConnection { settings: Box::new(self.draft.clone()), key }]
            }
            Action::CancelTest => {
                self.test = Test::None;
                vec![Command::CancelTest]
            }
            other => self.update_slicer(other).unwrap_or_else(|local| self.update_locally(local)),
        }
    }

    /// Actions of which the engine need not know.
    fn update_locally(&mut self, action: Action) -> Vec<Command> {
        match action {
            Action::Recall(older) => self.recall(older),
            Action::Compose(text) => {
                self.composer = text;
                self.focus_composer = true;
            }
            Action::ShowPicture(path) => {
                self.shown_picture = self.pictures.iter().position(|picture| picture.path == path);
                self.pane_tab = PaneTab::Screenshot;
                if self.narrow { self.pane_over = true } else { self.pane_open = true }
            }
            Action::RetryOnceConnected(text) => {
                self.retry_once_connected =
                    self.current.clone().filter(|_| !text.is_empty()).map(|current| (current, text));
            }
            Action::OpenSettings(tab) => {
                if self.dialog.is_none() {
                    self.draft = self.settings.clone();
                    self.test = Test::None;
                }
                self.dialog = Some(tab);
                if tab == SettingsTab::Slicer {
                    return self.look_for_slicers();
                }
            }
            Action::Copied(what) => self.toast(format!("{what} copied."), None),
            Action::DismissToast(id) => self.toasts.retain(|toast| toast.id != id),
            _ => {}
        }
        Vec::new()
    }

    fn send(&mut self, text: String) -> Vec<Command> {
        let text = text.trim().to_owned();
        self.recalled = None;
        self.focus_composer = true;
        if text.is_empty() {
            return Vec::new();
        }
        // Whoever reads above and sends something wants to see what comes of it.
        self.to_newest = true;
        match self.current.clone() {
            Some(conversation) => {
                self.begin_sending(text.clone());
                vec![Command::Send { conversation, text }]
            }
            None => {
                self.unsent.push_back(text);
                Vec::new()
            }
        }
    }

    fn rename(&mut self, conversation: ConversationId, title: String) -> Vec<Command> {
        self.renaming = None;
        let title = title.trim().to_owned();
        if title.is_empty() {
            return Vec::new();
        }
        self.set_title(&conversation, title.clone());
        vec![Command::RenameConversation { conversation, title }]
    }

    fn delete(&mut self, conversation: ConversationId) -> Vec<Command> {
        for one in self.conversations.iter_mut().filter(|one| one.id == conversation) {
            one.deleted = true;
        }
        self.toast("Conversation deleted.", Some(("Undo", Action::Restore(conversation.clone()))));
        let mut commands = vec![Command::DeleteConversation { conversation: conversation.clone() }];
        if self.is_current(&conversation) {
            commands.push(Command::NewConversation);
        }
        commands
    }

    fn undo_last(&mut self) -> Vec<Command> {
        let run = self.timeline.undoable_run().map(str::to_owned);
        match (run, self.current.clone()) {
            (Some(run), Some(conversation)) if !self.running() => {
                self.toast(UNDOING, None);
                vec![Command::Undo { conversation, run }]
            }
            _ => {
                self.toast("There is no run to undo.", None);
                Vec::new()
            }
        }
    }

    fn save_settings(&mut self) -> Vec<Command> {
        if self.draft == self.settings || !self.settings_known {
            return Vec::new();
        }
        if self.draft.model.provider != self.settings.model.provider {
            self.key_text.clear();
            self.test = Test::None;
        }
        let other_slicer = self.draft.slicer.executable != self.settings.slicer.executable;
        self.settings = self.draft.clone();
        let mut commands = vec![Command::SaveSettings { settings: Box::new(self.draft.clone()) }];
        if other_slicer {
            commands.append(&mut self.look_for_slicers());
        }
        commands
    }

    fn save_key(&mut self) -> Vec<Command> {
        let key = std::mem::take(&mut self.key_text).trim().to_owned();
        self.key_revealed = false;
        if key.is_empty() {
            return Vec::new();
        }
        vec![Command::SetKey { provider: self.draft.model.provider.clone(), key: Secret(key) }]
    }

    fn recall(&mut self, older: bool) {
        let sent = &self.timeline.sent;
        let next = match (self.recalled, older) {
            (None, true) => 0,
            (Some(place), true) => (place + 1).min(sent.len().saturating_sub(1)),
            (Some(0) | None, false) => {
                if self.recalled.take().is_some() {
                    self.composer.clear();
                }
                return;
            }
            (Some(place), false) => place - 1,
        };
        if let Some(text) = sent.iter().rev().nth(next) {
            self.composer.clone_from(text);
            self.recalled = Some(next);
        }
    }

    /// True while the composer holds a recalled message that was not changed.
    pub fn recalling(&self) -> bool {
        self.recalled.and_then(|place| self.timeline.sent.iter().rev().nth(place)) == Some(&self.composer)
    }
}
