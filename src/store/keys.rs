//! API keys. They live in the keyring of the system and nowhere on disk of ours. Where there is no keyring a key can come
//! from an environment variable, or is kept in memory until the program ends; the person is told which it is.
//!
//! Every call may block (a keyring may even ask the person to unlock it): use `spawn_blocking`.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use keyring::v1::{Entry, Error};

use super::KeyOrigin;
use super::error::StoreError;

/// The name under which the keyring shows our entries.
const SERVICE: &str = "slicer-ai-agent";

/// Where a key went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySet {
    pub origin: KeyOrigin,
    /// Why it is not in the keyring, in words for the person.
    pub reason: Option<String>,
}

/// The keys of all providers.
#[derive(Default)]
pub struct Keys {
    session: Mutex<HashMap<String, String>>,
}

impl Keys {
    pub fn new() -> Self {
        Self::default()
    }

    /// The key of a provider and where it is from: the keyring, else the environment variable, else this session.
    /// A keyring that cannot be asked counts as one without the key. Blocks.
    pub fn lookup(&self, provider: &str, key_variable: Option<&str>) -> (Option<String>, KeyOrigin) {
        match Entry::new(SERVICE, provider).and_then(|entry| entry.get_password()) {
            Ok(key) if !key.trim().is_empty() => return (Some(key), KeyOrigin::Keyring),
            Ok(_) | Err(Error::NoEntry) => {}
            Err(error) => tracing::debug!(%error, provider, "the keyring could not be asked"),
        }
        if let Some(key) = key_variable.and_then(|name| std::env::var(name).ok()).filter(|key| !key.trim().is_empty()) {
            return (Some(key.trim().to_owned()), KeyOrigin::Environment);
        }
        match self.session().get(provider) {
            Some(key) => (Some(key.clone()), KeyOrigin::Session),
            None => (None, KeyOrigin::NotSet),
        }
    }

    /// Keeps a key: in the keyring, or for this session with the reason why. Blocks.
    ///
    /// # Errors
    /// When the key is empty.
    pub fn set(&self, provider: &str, key: &str) -> Result<KeySet, StoreError> {
        let key = key.trim();
        if key.is_empty() {
            return Err(StoreError::EmptyKey);
        }
        match Entry::new(SERVICE, provider).and_then(|entry| entry.set_password(key)) {
            Ok(()) => {
                self.session().remove(provider);
                Ok(KeySet { origin: KeyOrigin::Keyring, reason: None })
            }
            Err(error) => {
                self.session().insert(provider.to_owned(), key.to_owned());
                Ok(KeySet { origin: KeyOrigin::Session, reason: Some(reason(&error)) })
            }
        }
    }

    /// Forgets a key in the keyring and in this session. A variable in the environment stays. Blocks.
    ///
    /// # Errors
    /// When the keyring holds the key and does not let go of it.
    pub fn remove(&self, provider: &str) -> Result<(), StoreError> {
        self.session().remove(provider);
        match Entry::new(SERVICE, provider).and_then(|entry| entry.delete_credential()) {
            Ok(()) | Err(Error::NoEntry | Error::NoDefaultStore) => Ok(()),
            Err(error) => Err(StoreError::Keyring(error.to_string())),
        }
    }

    /// Why there is no keyring, in words for the person; `None` when there is one. Blocks.
    pub fn missing_keyring(&self) -> Option<String> {
        Entry::store_status().as_ref().err().map(reason)
    }

    fn session(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn reason(error: &Error) -> String {
    let what = match error {
        Error::NoStorageAccess(_) => "the keyring of this system is locked or has no place for keys yet",
        Error::NoDefaultStore | Error::PlatformFailure(_) => "this system has no keyring that answers",
        _ => "the keyring of this system did not take the key",
    };
    format!("The key is kept only until the program ends, because {what}.")
}
