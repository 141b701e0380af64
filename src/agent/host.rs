//! What a turn needs of whoever runs it: a place for its facts, a person to ask, a folder for its files.
//!
//! The turn itself knows neither window nor database. The engine is the host in the product; tests bring their own.

use std::future::Future;
use std::path::PathBuf;

use super::{Decision, Spending, TurnEvent};
use crate::safety::Finding;

/// The history could not be written, so the turn must not go on: nothing may happen that is not recorded.
#[derive(Debug, Clone, thiserror::Error)]
#[error("The history could not be written ({0}). Nothing more was done; check the disk of the data folder")]
pub struct HostError(pub String);

/// The surroundings of a turn.
pub trait TurnHost: Send + Sync {
    /// Stores a fact, then shows it.
    fn emit(&self, event: TurnEvent) -> impl Future<Output = Result<(), HostError>> + Send;

    /// Books a model call.
    fn spent(&self, call: Spending) -> impl Future<Output = Result<(), HostError>> + Send;

    /// Puts a permission question to the person (as the fact [`TurnEvent::PermissionAsked`], told only when an answer can
    /// be taken) and waits for the answer. Without a person the answer is `Deny`.
    fn ask(&self, request: String, findings: Vec<Finding>) -> impl Future<Output = Decision> + Send;

    /// Keeps a file in the turn's run folder and gives its path.
    fn save(&self, name: &str, bytes: Vec<u8>) -> impl Future<Output = Result<PathBuf, HostError>> + Send;

    /// The turn's run folder, once it has one.
    fn run_folder(&self) -> Option<PathBuf>;
}
