//! The engine as the host of a turn: facts go to the database first and then to the surface, questions to the person,
//! files to the run folder.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::oneshot;

use super::events::EventSender;
use super::types::{ConversationId, Decision, Event, Finding, StoredTurnEvent, TurnEvent};
use crate::agent::{HostError, TurnHost};
use crate::store::{Conversations, Paths, RunFolder};

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
        Self { conversation, turn, store, events, questions, paths, folder: OnceLock::new() }
    }
}

/// Stores a fact of a conversation, then shows it.
pub async fn store_and_show(
    store: &Arc<Conversations>,
    events: &EventSender,
    conversation: &ConversationId,
    event: TurnEvent,
) -> Result<(), HostError> {
    let value = serde_json::to_value(&event).map_err(|error| HostError(error.to_string()))?;
    let (store, id) = (Arc::clone(store), conversation.clone());
    let stored = tokio::task::spawn_blocking(move || store.append(&id, &value)).await;
    let (sequence, at_ms) =
        stored.map_err(|error| HostError(error.to_string()))?.map_err(|error| HostError(error.to_string()))?;
    let event = StoredTurnEvent { sequence, at_ms, event };
    events.send(Event::Turn { conversation: conversation.clone(), event }).await;
    Ok(())
}

impl TurnHost for EngineHost {
    async fn emit(&self, event: TurnEvent) -> Result<(), HostError> {
        store_and_show(&self.store, &self.events, &self.conversation, event).await
    }

    async fn ask(&self, request: String, findings: Vec<Finding>) -> Decision {
        let (sender, receiver) = oneshot::channel();
        self.questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(request.clone(), Question { findings: findings.clone(), answer: sender });
        let asked = self.emit(TurnEvent::PermissionAsked { request: request.clone(), findings }).await;
        if let Err(error) = asked {
            tracing::error!("a question could not be asked: {error}");
            self.questions.lock().unwrap_or_else(PoisonError::into_inner).remove(&request);
            return Decision::Deny;
        }
        // A question that can no longer be answered is a question that was not allowed.
        receiver.await.unwrap_or(Decision::Deny)
    }

    async fn save(&self, name: &str, bytes: Vec<u8>) -> Result<PathBuf, HostError> {
        let folder = match self.folder.get() {
            Some(folder) => Arc::clone(folder),
            None => {
                let (paths, turn) = (self.paths.clone(), self.turn);
                let made = tokio::task::spawn_blocking(move || RunFolder::create(&paths, turn)).await;
                let made = made
                    .map_err(|error| HostError(error.to_string()))?
                    .map_err(|error| HostError(error.to_string()))?;
                Arc::clone(self.folder.get_or_init(|| Arc::new(made)))
            }
        };
        let name = name.to_owned();
        let path = folder.path().join(&name);
        tokio::task::spawn_blocking(move || folder.write_bytes(&name, &bytes))
            .await
            .map_err(|error| HostError(error.to_string()))?
            .map_err(|error| HostError(error.to_string()))?;
        Ok(path)
    }

    fn run_folder(&self) -> Option<PathBuf> {
        self.folder.get().map(|folder| folder.path().to_owned())
    }
}
