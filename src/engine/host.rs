//! The engine as the host of a turn: facts go to the database first and then to the surface, questions to the person,
//! files to the run folder.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::oneshot;

use super::events::EventSender;
use super::types::{ConversationId, Decision, Event, Finding, StoredTurnEvent, TurnEvent};
use crate::agent::{HostError, Spending, TurnHost};
use crate::llm::Learnt;
use crate::store::{Conversations, Paths, RunFolder, SpentCall, redact};

/// A permission question that waits for the person.
pub struct Question {
    pub findings: Vec<Finding>,
    pub answer: oneshot::Sender<Decision>,
}

/// Questions that wait for an answer, by their id.
pub type Questions = Arc<Mutex<HashMap<String, Question>>>;

/// The host of one turn.
pub struct EngineHost {
    pub conversation: ConversationId,
    pub turn: u64,
    pub store: Arc<Conversations>,
    pub events: EventSender,
    pub questions: Questions,
    pub paths: Paths,
    /// Keys that must not get into the history or the run folder.
    pub secrets: Vec<String>,
    /// What models refused, and how much of it was known before this turn.
    pub learnt: Option<(Learnt, usize)>,
    folder: OnceLock<Arc<RunFolder>>,
}

impl EngineHost {
    /// A host for turn `turn` of `conversation`. Its run folder is made when the first file is saved.
    pub fn new(
        conversation: ConversationId,
        turn: u64,
        store: Arc<Conversations>,
        events: EventSender,
        questions: Questions,
        paths: Paths,
    ) -> Self {
        let (secrets, learnt, folder) = (Vec::new(), None, OnceLock::new());
        Self { conversation, turn, store, events, questions, paths, secrets, learnt, folder }
    }

    /// Keeps for the next start what this turn learnt about refused options. That it could not be kept costs one refusal.
    async fn keep_learnt(&self) {
        let Some((learnt, known)) = &self.learnt else { return };
        let pairs = learnt.pairs();
        if pairs.len() == *known {
            return;
        }
        let store = Arc::clone(&self.store);
        match tokio::task::spawn_blocking(move || store.remember_refused(&pairs)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("what a model refused could not be kept: {error}"),
            Err(error) => tracing::warn!("what a model refused could not be kept: {error}"),
        }
    }
}

/// Stores a fact of a conversation without these secrets, then shows it.
pub async fn store_and_show(
    store: &Arc<Conversations>,
    events: &EventSender,
    conversation: &ConversationId,
    event: TurnEvent,
    secrets: &[String],
) -> Result<(), HostError> {
    let event = without(secrets, event).map_err(|error| HostError(error.to_string()))?;
    let value = serde_json::to_value(&event).map_err(|error| HostError(error.to_string()))?;
    let (store, id) = (Arc::clone(store), conversation.clone());
    // Held until the fact is told: a surface that reads the history meanwhile must neither miss it nor get it twice.
    let _order = events.order().await;
    let stored = tokio::task::spawn_blocking(move || store.append(&id, &value)).await;
    let (sequence, at_ms) =
        stored.map_err(|error| HostError(error.to_string()))?.map_err(|error| HostError(error.to_string()))?;
    let event = StoredTurnEvent { sequence, at_ms, event };
    events.send(Event::Turn { conversation: conversation.clone(), event }).await;
    Ok(())
}

/// The fact without these secrets: a key that a server, a program or the person put into a text stays out of the history.
fn without(secrets: &[String], event: TurnEvent) -> serde_json::Result<TurnEvent> {
    let secrets: Vec<&str> = secrets.iter().map(String::as_str).filter(|secret| secret.len() >= 8).collect();
    if secrets.is_empty() {
        return Ok(event);
    }
    let text = serde_json::to_string(&event)?;
    let clean = redact(&text, &secrets);
    if clean == text { Ok(event) } else { serde_json::from_str(&clean) }
}

/// Takes a question back when nobody waits for its answer any more: it must not grant anything later.
struct OpenQuestion<'a> {
    questions: &'a Questions,
    request: &'a str,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).remove(self.request);
    }
}

impl TurnHost for EngineHost {
    async fn emit(&self, event: TurnEvent) -> Result<(), HostError> {
        // Before the last fact: whoever waits for it may end the program at once.
        if matches!(event, TurnEvent::Finished { .. }) {
            self.keep_learnt().await;
        }
        store_and_show(&self.store, &self.events, &self.conversation, event, &self.secrets).await
    }

    async fn spent(&self, call: Spending) -> Result<(), HostError> {
        let (store, conversation) = (Arc::clone(&self.store), self.conversation.clone());
        let call = SpentCall {
            provider: call.provider,
            model: call.model,
            input: call.usage.input,
            cached: call.usage.cached,
            output: call.usage.output,
            estimated: call.usage.estimated,
            cost_usd: call.cost_usd,
        };
        let booked = tokio::task::spawn_blocking(move || store.spend(&conversation, &call)).await;
        booked.map_err(|error| HostError(error.to_string()))?.map_err(|error| HostError(error.to_string()))
    }

    async fn ask(&self, request: String, findings: Vec<Finding>) -> Decision {
        let (sender, receiver) = oneshot::channel();
        self.questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(request.clone(), Question { findings: findings.clone(), answer: sender });
        let _open = OpenQuestion { questions: &self.questions, request: &request };
        let asked = self.emit(TurnEvent::PermissionAsked { request: request.clone(), findings }).await;
        if let Err(error) = asked {
            tracing::error!("a question could not be asked: {error}");
            return Decision::Deny;
        }
        // A question that can no longer be answered is a question that was not allowed.
        receiver.await.unwrap_or(Decision::Deny)
    }

    async fn save(&self, name: &str, bytes: Vec<u8>) -> Result<PathBuf, HostError> {
        let folder = match self.folder.get() {
            Some(folder) => Arc::clone(folder),
            None => {
                let (paths, turn, secrets) = (self.paths.clone(), self.turn, self.secrets.clone());
                let made = tokio::task::spawn_blocking(move || {
                    RunFolder::create(&paths, turn).map(|folder| folder.hiding(secrets))
                })
                .await;
                let made = made
                    .map_err(|error| HostError(error.to_string()))?
                    .map_err(|error| HostError(error.to_string()))?;
                Arc::clone(self.folder.get_or_init(|| Arc::new(made)))
            }
        };
        let name = name.to_owned();
        let path = folder.path().join(&name);
        tokio::task::spawn_blocking(move || match String::from_utf8(bytes) {
            // Text is written without secrets; pictures as they are.
            Ok(text) => folder.write_text(&name, &text),
            Err(picture) => folder.write_bytes(&name, picture.as_bytes()),
        })
        .await
        .map_err(|error| HostError(error.to_string()))?
        .map_err(|error| HostError(error.to_string()))?;
        Ok(path)
    }

    fn run_folder(&self) -> Option<PathBuf> {
        self.folder.get().map(|folder| folder.path().to_owned())
    }
}
