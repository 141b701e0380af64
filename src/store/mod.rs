//! What stays on disk: paths, settings, secrets (in the OS keyring), conversations (SQLite) and run folders.

mod settings;

use serde::{Deserialize, Serialize};

pub use settings::*;

/// One line of the conversation list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ConversationSummary {
    /// UUID as text.
    pub id: String,
    pub title: String,
    /// Unix time in milliseconds.
    pub created_ms: i64,
    pub updated_ms: i64,
    pub pinned: bool,
    pub deleted: bool,
    /// Number of the person's messages.
    pub turns: u64,
}

/// Where a provider's key comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyOrigin {
    #[default]
    NotSet,
    NotNeeded,
    Keyring,
    Environment,
    /// Kept in memory until the program ends, because there is no keyring.
    Session,
}
