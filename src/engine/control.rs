//! The engine's loop: one command after the other, none of them waited for. Whatever takes time runs as a task of its
//! own and reports back.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::events::EventSender;
use super::host::{EngineHost, store_and_show};
use super::session::{Job, NEW_TITLE, Session, title_from};
use super::slicer_link::{SlicerLink, SlicerTarget, problem};
use super::turns::{self, Shared, TurnOrder};
use super::types::*;
use crate::agent::{HostError, TurnResult};
use crate::store;

/// How often Slicer is asked whether it is still there, while nothing else is going on.
const STATUS_INTERVAL: Duration = Duration::from_secs(5);

/// What tasks report back to the loop.
pub enum Report {
    TurnDone { conversation: ConversationId, result: Option<Box<TurnResult>> },
}

/// The engine's own state. It lives in one task.
pub struct Control {
    pub shared: Arc<Shared>,
    pub settings: Settings,
    pub link: SlicerLink,
    pub target: SlicerTarget,
    pub sessions: HashMap<ConversationId, Session>,
    pub reports: mpsc::Sender<Report>,
    pub test: Option<CancellationToken>,
    /// True when `settings` came from the command line and must not be written back.
    pub settings_are_fixed: bool,
}

impl Control {
    /// Works until the surface is gone or asks for the end.
    pub async fn run(mut self, mut commands: mpsc::Receiver<Command>, mut reports: mpsc::Receiver<Report>) {
        self.first_connection();
        self.tell_settings();
        self.tell_conversations().await;
        let mut poll = tokio::time::interval(STATUS_INTERVAL);
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                command = commands.recv() => match command {
                    None | Some(Command::Shutdown) => break,
                    Some(command) => self.handle(command).await,
                },
                Some(report) = reports.recv() => self.take_report(report).await,
                _ = poll.tick() => self.poll_slicer(),
            }
        }
        for session in self.sessions.values() {
            if let Some(cancel) = &session.running {
                cancel.cancel();
            }
        }
        self.link.close().await;
    }

    fn first_connection(&self) {
        let (link, target) = (self.link.clone(), self.target.clone());
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            match target {
                SlicerTarget::Url(url) => drop(link.connect(url).await),
                SlicerTarget::Practice => {
                    if let Err(problem) = link.start_practice().await {
                        shared.events.send(Event::Problem { problem }).await;
                    }
                }
                SlicerTarget::None => {}
            }
            shared.connected_once.cancel();
        });
    }

    fn poll_slicer(&self) {
        let busy = self.sessions.values().any(|session| session.running.is_some());
        if !busy && self.target != SlicerTarget::None {
            let link = self.link.clone();
            tokio::spawn(async move { link.refresh(false).await });
        }
    }

    fn events(&self) -> &EventSender {
        &self.shared.events
    }

    async fn handle(&mut self, command: Command) {
        match command {
            Command::ListConversations => self.tell_conversations().await,
            Command::NewConversation => self.new_conversation().await,
            Command::OpenConversation { conversation } => self.open(conversation).await,
            Command::SearchConversations { text } => self.search(text).await,
            Command::RenameConversation { conversation, title } => {
                if let Some(session) = self.sessions.get_mut(&conversation) {
                    session.title.clone_from(&title);
                }
                self.change_list(move |store| store.rename(&conversation, &title)).await;
            }
            Command::PinConversation { conversation, pinned } => {
                self.change_list(move |store| store.pin(&conversation, pinned)).await;
            }
            Command::DeleteConversation { conversation } => {
                self.stop(&conversation);
                self.change_list(move |store| store.mark_deleted(&conversation)).await;
            }
            Command::RestoreConversation { conversation } => {
                self.change_list(move |store| store.restore(&conversation)).await;
            }
            Command::Send { conversation, text } => self.enqueue(conversation, Job::Message(text)).await,
            Command::RunCode { conversation, code } => self.enqueue(conversation, Job::Program(code)).await,
            Command::Unqueue { conversation, position } => self.unqueue(conversation, position).await,
            Command::Stop { conversation } => {
                self.stop(&conversation);
                self.tell_queue(&conversation).await;
            }
            Command::Decide { conversation, request, decision } => {
                self.decide(&conversation, &request, decision).await;
            }
            Command::Undo { conversation, run } => self.undo(conversation, run),
            Command::CaptureScreenshot { conversation, view } => self.capture(conversation, view),
            Command::RefreshScene => self.tell_scene(),
            Command::ConnectSlicer { url } => self.connect(url),
            Command::StartPractice => self.start_practice(),
            Command::FindSlicers => self.find_slicers(),
            Command::LaunchSlicer => self.launch_slicer(),
            Command::CancelLaunch => self.link.launched.cancel(),
            Command::CloseSlicer { pid, confirmed } => self.close_slicer(pid, confirmed),
            Command::SaveSettings { settings } => self.save_settings(*settings).await,
            Command::SetKey { provider, key } => self.set_key(provider, key).await,
            Command::RemoveKey { provider } => self.remove_key(provider).await,
            Command::TestConnection { settings, key } => self.test_connection(*settings, key),
            Command::CancelTest => {
                if let Some(cancel) = self.test.take() {
                    cancel.cancel();
                }
            }
            Command::Shutdown => {}
        }
    }

    // ------------------------------------------------------------------ conversations

    async fn new_conversation(&mut self) {
        let id = uuid::Uuid::new_v4().to_string();
        self.sessions.insert(id.clone(), Session { title: NEW_TITLE.into(), ..Session::default() });
        self.tell_opened(id, NEW_TITLE.into(), Vec::new()).await;
    }

    async fn open(&mut self, conversation: ConversationId) {
        let store = Arc::clone(&self.shared.store);
        let id = conversation.clone();
        let events = self.shared.events.clone();
        let _order = events.order().await;
        let read = tokio::task::spawn_blocking(move || {
            let summary = store.get(&id)?;
            let events = store.events(&id)?;
            Ok::<_, store::StoreError>((summary, events))
        })
        .await;
        let (summary, stored) = match read {
            Ok(Ok(read)) => read,
            Ok(Err(store::StoreError::NoConversation(_))) => {
                let message = "That conversation is not in the history.".to_owned();
                return self.report_problem("BadRequest", message, "Choose one from the list.").await;
            }
            Ok(Err(error)) => return self.report_store(&error.to_string()).await,
            Err(error) => return self.report_store(&error.to_string()).await,
        };
        let events = turns::read_events(stored);
        if !self.sessions.contains_key(&conversation) {
            let facts: Vec<TurnEvent> = events.iter().map(|stored| stored.event.clone()).collect();
            let session = Session::from_history(&conversation, summary.title.clone(), &facts);
            self.sessions.insert(conversation.clone(), session);
        }
        self.tell_opened(conversation, summary.title, events).await;
    }

    async fn tell_opened(&self, conversation: ConversationId, title: String, events: Vec<StoredTurnEvent>) {
        let session = self.sessions.get(&conversation);
        let queued = session.map(Session::queued).unwrap_or_default();
        let running = session.is_some_and(|session| session.running.is_some());
        self.events().send(Event::Opened { conversation, title, events, queued, running }).await;
    }

    async fn search(&self, text: String) {
        let store = Arc::clone(&self.shared.store);
        let query = text.clone();
        match tokio::task::spawn_blocking(move || store.search(&query)).await {
            Ok(Ok(list)) => self.events().send(Event::SearchResults { text, list }).await,
            Ok(Err(error)) => self.report_store(&error.to_string()).await,
            Err(error) => self.report_store(&error.to_string()).await,
        }
    }

    async fn change_list(
        &self,
        change: impl FnOnce(&store::Conversations) -> Result<(), store::StoreError> + Send + 'static,
    ) {
        let store = Arc::clone(&self.shared.store);
        match tokio::task::spawn_blocking(move || change(&store)).await {
            Ok(Ok(())) => self.tell_conversations().await,
            Ok(Err(error)) => self.report_store(&error.to_string()).await,
            Err(error) => self.report_store(&error.to_string()).await,
        }
    }

    pub(super) async fn tell_conversations(&self) {
        let store = Arc::clone(&self.shared.store);
        match tokio::task::spawn_blocking(move || store.list(false)).await {
            Ok(Ok(list)) => self.events().send(Event::Conversations { list }).await,
            Ok(Err(error)) => self.report_store(&error.to_string()).await,
            Err(error) => self.report_store(&error.to_string()).await,
        }
    }

    pub(super) async fn report_problem(&self, kind: &str, message: String, advice: &str) {
        let problem = Problem { kind: kind.into(), message, advice: advice.into() };
        self.events().send(Event::Problem { problem }).await;
    }

    async fn report_store(&self, error: &str) {
        let message = format!("The history could not be read or written: {error}");
        self.report_problem("Store", message, "Check the disk and the rights of the data folder.").await;
    }

    // ------------------------------------------------------------------ turns

    async fn enqueue(&mut self, conversation: ConversationId, job: Job) {
        let session = self
            .sessions
            .entry(conversation.clone())
            .or_insert_with(|| Session { title: NEW_TITLE.into(), ..Session::default() });
        session.queue.push_back(job);
        if session.running.is_some() {
            return self.tell_queue(&conversation).await;
        }
        self.start_next(conversation).await;
    }

    async fn unqueue(&mut self, conversation: ConversationId, position: usize) {
        if let Some(session) = self.sessions.get_mut(&conversation) {
            session.queue.remove(position);
            self.tell_queue(&conversation).await;
        }
    }

    async fn tell_queue(&self, conversation: &ConversationId) {
        let queued = self.sessions.get(conversation).map(Session::queued).unwrap_or_default();
        self.events().send(Event::Queue { conversation: conversation.clone(), queued }).await;
    }

    async fn start_next(&mut self, conversation: ConversationId) {
        let Some(session) = self.sessions.get_mut(&conversation) else { return };
        let Some(job) = session.queue.pop_front() else { return };
        if !session.stored {
            session.title = title_from(&job.text());
            session.stored = true;
            let (id, title) = (conversation.clone(), session.title.clone());
            let told = title.clone();
            self.change_list(move |store| store.create(&id, &title)).await;
            self.events().send(Event::Title { conversation: conversation.clone(), title: told }).await;
        }
        let Some(session) = self.sessions.get_mut(&conversation) else { return };
        session.turns += 1;
        let cancel = CancellationToken::new();
        session.running = Some(cancel.clone());
        let order = TurnOrder {
            number: session.turns,
            job,
            history: session.history.clone(),
            pending: session.pending.take(),
            recipes: session.recipes.clone(),
            granted: session.granted.clone(),
            settings: self.settings.clone(),
            cancel,
        };
        let host = EngineHost::new(
            conversation.clone(),
            order.number,
            Arc::clone(&self.shared.store),
            self.shared.events.clone(),
            Arc::clone(&self.shared.questions),
            self.shared.paths.clone(),
        );
        let (shared, link, reports) = (Arc::clone(&self.shared), self.link.clone(), self.reports.clone());
        let told = conversation.clone();
        let with_slicer = self.target != SlicerTarget::None;
        // A task of its own, so that even a panic in a turn is reported and the conversation goes on.
        let turn = tokio::spawn(async move { turns::run(&shared, &link, with_slicer, order, host).await });
        let (events, lost) = (self.shared.events.clone(), conversation.clone());
        tokio::spawn(async move {
            let result = turn.await.unwrap_or_else(|error| Err(HostError(error.to_string())));
            let result = match result {
                Ok(result) => Some(Box::new(result)),
                Err(error) => {
                    let problem = Problem {
                        kind: "Store".into(),
                        message: error.to_string(),
                        advice: "Look at the scene in Slicer: what ran last may not be recorded.".into(),
                    };
                    events.send(Event::TurnLost { conversation: lost, problem }).await;
                    None
                }
            };
            // The loop is gone only when the program ends.
            drop(reports.send(Report::TurnDone { conversation, result }).await);
        });
        self.tell_queue(&told).await;
    }

    async fn take_report(&mut self, report: Report) {
        let Report::TurnDone { conversation, result } = report;
        if let Some(session) = self.sessions.get_mut(&conversation) {
            session.running = None;
            if let Some(result) = result {
                session.take_result(*result);
            }
        }
        self.tell_conversations().await;
        let link = self.link.clone();
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            link.refresh(false).await;
            turns::tell_scene(&shared, &link).await;
        });
        self.start_next(conversation).await;
    }

    fn stop(&mut self, conversation: &ConversationId) {
        if let Some(session) = self.sessions.get_mut(conversation) {
            // What waits behind a stopped turn was meant to follow it: it is not started unasked.
            session.queue.clear();
            if let Some(cancel) = &session.running {
                cancel.cancel();
            }
        }
    }

    async fn decide(&mut self, conversation: &ConversationId, request: &str, decision: Decision) {
        let question = self.shared.questions.lock().unwrap_or_else(PoisonError::into_inner).remove(request);
        let Some(question) = question else {
            let message = "That question is no longer open.".to_owned();
            return self.report_problem("BadRequest", message, "The turn that asked it has ended.").await;
        };
        // Line 0 is a question about the plan as a whole: its answer holds for this run only.
        let capabilities =
            question.findings.iter().filter(|finding| finding.line > 0).map(|finding| finding.capability);
        match decision {
            Decision::AllowConversation => {
                if let Some(session) = self.sessions.get_mut(conversation) {
                    session.granted.extend(capabilities);
                }
            }
            Decision::AllowAlways => {
                let mut settings = self.settings.clone();
                for capability in capabilities {
                    let name = capability.name().to_owned();
                    if !settings.safety.always_allow.contains(&name) {
                        settings.safety.always_allow.push(name);
                    }
                }
                self.save_settings(settings).await;
            }
            Decision::AllowOnce | Decision::Deny => {}
        }
        if question.answer.send(decision).is_err() {
            tracing::debug!("the turn that asked {request} ended meanwhile");
        }
    }

    // ------------------------------------------------------------------ Slicer

    fn undo(&self, conversation: ConversationId, run: String) {
        let (shared, link) = (Arc::clone(&self.shared), self.link.clone());
        tokio::spawn(async move {
            let Some(slicer) = link.current().await else {
                let problem = Problem {
                    kind: "NoSlicer".into(),
                    message: "No Slicer is connected, so nothing can be undone.".into(),
                    advice: "Connect to the Slicer in which it ran.".into(),
                };
                return shared.events.send(Event::Problem { problem }).await;
            };
            match slicer.undo(&run).await {
                Ok(report) if report.is_unknown() => {
                    let problem = Problem {
                        kind: "Undo".into(),
                        message: "This run can no longer be undone: the connected Slicer does not remember it.".into(),
                        advice: "Slicer was restarted, or more than 20 runs came after it. Nothing was changed.".into(),
                    };
                    shared.events.send(Event::Problem { problem }).await;
                }
                Ok(report) => {
                    let event = TurnEvent::Undone { run, report };
                    if let Err(error) = store_and_show(&shared.store, &shared.events, &conversation, event, &[]).await {
                        tracing::error!("{error}");
                    }
                    turns::tell_scene(&shared, &link).await;
                }
                Err(error) => shared.events.send(Event::Problem { problem: problem(&error) }).await,
            }
        });
    }

    fn capture(&self, conversation: ConversationId, view: ViewRequest) {
        let (shared, link) = (Arc::clone(&self.shared), self.link.clone());
        tokio::spawn(async move { turns::capture(&shared, &link, conversation, view).await });
    }

    fn tell_scene(&self) {
        let (shared, link) = (Arc::clone(&self.shared), self.link.clone());
        tokio::spawn(async move { turns::tell_scene(&shared, &link).await });
    }

    pub(super) fn connect(&mut self, url: String) {
        self.target = SlicerTarget::Url(url.clone());
        let (shared, link) = (Arc::clone(&self.shared), self.link.clone());
        tokio::spawn(async move {
            link.connect(url).await;
            turns::tell_scene(&shared, &link).await;
        });
    }

    fn start_practice(&mut self) {
        self.target = SlicerTarget::Practice;
        let (shared, link) = (Arc::clone(&self.shared), self.link.clone());
        tokio::spawn(async move {
            if let Err(problem) = link.start_practice().await {
                shared.events.send(Event::Problem { problem }).await;
            }
            turns::tell_scene(&shared, &link).await;
        });
    }
}
