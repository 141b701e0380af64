//! What stays on disk: paths, settings, secrets (in the OS keyring), conversations (SQLite) and run folders.
//!
//! Everything here blocks; call it from a thread that may wait (`spawn_blocking`). Nothing here knows what an event
//! means beyond what a search needs: events are JSON, stored in order and given back as they were.

mod conversations;
mod error;
mod keys;
mod paths;
mod redact;
mod refused;
mod run_folder;
mod settings;
mod spending;

use serde::{Deserialize, Serialize};

pub use conversations::{Conversations, StoredEvent};
pub use error::StoreError;
pub use keys::{KeySet, Keys};
pub use paths::Paths;
pub use redact::{for_log, hide_in_log, redact};
pub use run_folder::{Pruned, RunFolder};
pub use settings::*;
pub use spending::{SpendingTotal, SpentCall, month_start_ms};

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
