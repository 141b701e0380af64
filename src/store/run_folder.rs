//! One folder a turn with what was asked, planned and run, for the person who wants to look behind an answer. What is
//! written is cleaned of secrets first. Old folders are removed by age and by size.

use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::error::StoreError;
use super::paths::{Paths, private_file, private_folder};
use super::redact::redact;

/// The folder of one turn.
#[derive(Clone)]
pub struct RunFolder {
    path: PathBuf,
    secrets: Vec<String>,
}

/// What a pruning removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    pub folders: usize,
    pub bytes: u64,
}

impl RunFolder {
    /// Makes `<data>/runs/YYYYMMDD_HHMMSS_turnN/` (local time, where the system tells it). Two turns of one second get
    /// different folders.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn create(paths: &Paths, turn: u64) -> Result<Self, StoreError> {
        let runs = paths.runs();
        private_folder(&runs)?;
        let name = format!("{}_turn{turn}", stamp());
        for copy in 1_u32.. {
            let path = runs.join(if copy == 1 { name.clone() } else { format!("{name}_{copy}") });
            match std::fs::create_dir(&path) {
                Ok(()) => {
                    #[cfg(unix)]
                    owner_only(&path)?;
                    return Ok(Self { path, secrets: Vec::new() });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(StoreError::file("make the folder", &path, error)),
            }
        }
        Err(StoreError::FileName(name))
    }

    /// The same folder, into which these secrets are never written.
    pub fn hiding(mut self, secrets: impl IntoIterator<Item = String>) -> Self {
        self.secrets.extend(secrets);
        self
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `value` as readable JSON to `name`, which may lie in a folder of its own (`correction_1/plan.json`).
    ///
    /// # Errors
    /// When the name leads out of the folder, or the file cannot be written.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<PathBuf, StoreError> {
        self.write_text(name, &serde_json::to_string_pretty(value)?)
    }

    /// Writes text.
    ///
    /// # Errors
    /// As [`RunFolder::write_json`].
    pub fn write_text(&self, name: &str, text: &str) -> Result<PathBuf, StoreError> {
        let secrets: Vec<&str> = self.secrets.iter().map(String::as_str).collect();
        self.write_bytes(name, redact(text, &secrets).as_bytes())
    }

    /// Writes bytes (a picture) as they are.
    ///
    /// # Errors
    /// As [`RunFolder::write_json`].
    pub fn write_bytes(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, StoreError> {
        let relative = Path::new(name);
        let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
        if name.is_empty() || !plain {
            return Err(StoreError::FileName(name.to_owned()));
        }
        let file = self.path.join(relative);
        if let Some(folder) = file.parent() {
            private_folder(folder)?;
        }
        let written = private_file().truncate(true).open(&file).and_then(|mut open| open.write_all(bytes));
        written.map_err(|error| StoreError::file("write", &file, error))?;
        Ok(file)
    }

    /// Removes run folders that are older than `max_age`, then the oldest until all together take at most `max_bytes`.
    /// Only folders with the name of a run are touched; links are not followed.
    ///
    /// # Errors
    /// When the runs cannot be listed, or one cannot be removed.
    pub fn prune(paths: &Paths, max_age: Duration, max_bytes: u64) -> Result<Pruned, StoreError> {
        let runs = paths.runs();
        let listed = std::fs::read_dir(&runs).map_err(|error| StoreError::file("list", &runs, error))?;
        let mut folders = Vec::new();
        for entry in listed.flatten() {
            let is_run = entry.file_name().to_str().is_some_and(is_run_name);
            // A folder that vanishes meanwhile (another window prunes too) is none of ours any more.
            if let (true, Ok(data)) = (is_run, entry.metadata())
                && data.is_dir()
            {
                folders.push((data.modified().unwrap_or(SystemTime::UNIX_EPOCH), entry.path(), size(&entry.path())));
            }
        }
        folders.sort();
        let mut total: u64 = folders.iter().map(|(_, _, bytes)| bytes).sum();
        let mut pruned = Pruned::default();
        for (modified, path, bytes) in folders {
            let age = SystemTime::now().duration_since(modified).unwrap_or_default();
            if age <= max_age && total <= max_bytes {
                break;
            }
            match std::fs::remove_dir_all(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(StoreError::file("remove", &path, error));
                }
                _ => {}
            }
            total -= bytes;
            pruned.folders += 1;
            pruned.bytes += bytes;
        }
        Ok(pruned)
    }
}

#[cfg(unix)]
fn owner_only(path: &Path) -> Result<(), StoreError> {
    let rights = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(path, rights).map_err(|error| StoreError::file("protect", path, error))
}

fn stamp() -> String {
    let now = time::OffsetDateTime::now_local().unwrap_or_else(|_| time::OffsetDateTime::now_utc());
    let format = time::macros::format_description!("[year][month][day]_[hour][minute][second]");
    // Formatting a number pattern cannot fail; a name must come out whatever happens.
    now.format(&format).unwrap_or_else(|_| now.unix_timestamp().to_string())
}

fn is_run_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let digits =
        |range: std::ops::Range<usize>| bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit));
    digits(0..8) && bytes.get(8) == Some(&b'_') && digits(9..15) && name[15..].starts_with("_turn")
}

fn size(folder: &Path) -> u64 {
    let Ok(listed) = std::fs::read_dir(folder) else { return 0 };
    listed
        .flatten()
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
        .map(|(path, data)| if data.is_dir() { size(&path) } else { data.len() })
        .sum()
}
