//! What can go wrong with what is on disk.

use std::path::{Path, PathBuf};

/// Something on disk could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("could not {action} {}: {source}", path.display())]
    File { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("this system names no folder for a program's data")]
    NoDataFolder,
    #[error("the history could not be read or written: {0}")]
    Database(#[from] rusqlite::Error),
    #[error("the history was written by a newer version of this program (format {found}, this version knows {known})")]
    NewerHistory { found: i64, known: i64 },
    #[error("there is no conversation `{0}`")]
    NoConversation(String),
    #[error("an event in the history is not readable: {0}")]
    Event(#[from] serde_json::Error),
    #[error("`{0}` is not a name for a file within a run folder")]
    FileName(String),
    #[error("the key is empty")]
    EmptyKey,
    #[error("the keyring refused: {0}")]
    Keyring(String),
}

impl StoreError {
    pub(super) fn file(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::File { action, path: path.to_owned(), source }
    }

    /// What the person can do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::File { .. } => {
                "Check that the disk has room and that the folder belongs to you, or choose another data folder."
            }
            Self::NoDataFolder => "Name a data folder with --data-dir or SLICER_AI_AGENT_DATA.",
            Self::Database(_) | Self::Event(_) => {
                "Check that the disk has room and that the data folder can be written; otherwise move conversations.sqlite away to start afresh."
            }
            Self::NewerHistory { .. } => "Update this program, or choose another data folder.",
            Self::NoConversation(_) => "List the conversations to see their ids.",
            Self::FileName(_) => "Use a relative name without `..`.",
            Self::EmptyKey => "Enter the key as the provider shows it.",
            Self::Keyring(_) => "Unlock the keyring of this system and try again.",
        }
    }
}
