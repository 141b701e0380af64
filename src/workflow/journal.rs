//! The journal of a run: every event before its effects, so that a killed program goes on where it was.
//!
//! One file a run, one line of JSON an event, written through to the disk before anything is done about it. Each line holds
//! a fingerprint over itself and the lines before. A last line that was cut off by a crash is dropped, because nothing was
//! done about it; a line that is wrong in any other place means that the file was changed, and such a run is not resumed.
//! The file is locked while a program writes it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::graph::Workflow;
use super::machine::{begin, update};
use super::package::Package;
use super::state::{Event, State};

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("The journal {path} cannot be used: {source}. Check that the data folder can be written.")]
    File { path: PathBuf, source: std::io::Error },
    #[error("The run in {path} is open in another window or program. Close it there first.")]
    InUse { path: PathBuf },
    #[error("The journal {path} was changed (line {line}); the run cannot be resumed. Start the workflow anew.")]
    Damaged { path: PathBuf, line: usize },
    #[error("The workflow {id} is another version than the one that this run began with. Start it anew.")]
    OtherPackage { id: String },
}

/// The first line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replay {
    /// Id of the workflow.
    pub workflow: String,
    /// Hash of its package.
    pub hash: String,
    /// When it began, in RFC 3339.
    pub started: String,
}

#[derive(Serialize, Deserialize)]
struct Line<T> {
    sum: String,
    #[serde(flatten)]
    what: T,
}

/// A journal that is written.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    sum: String,
}

impl Journal {
    /// Begins the journal of a run in `folder` under a name of its own.
    ///
    /// # Errors
    /// [`JournalError::File`].
    pub fn create(folder: &Path, package: &Package) -> Result<Self, JournalError> {
        let path = folder.join(format!("{}-{}.jsonl", package.manifest.id, uuid::Uuid::new_v4().simple()));
        let wrong = |source| JournalError::File { path: path.clone(), source };
        std::fs::create_dir_all(folder).map_err(wrong)?;
        let file = OpenOptions::new().read(true).append(true).create_new(true).open(&path).map_err(wrong)?;
        let started =
            time::OffsetDateTime::now_utc().format(&time::format_description::well_known::Rfc3339).unwrap_or_default();
        let head = Replay { workflow: package.manifest.id.clone(), hash: package.hash.clone(), started };
        let mut journal = Self { path, file, sum: String::new() };
        journal.lock()?;
        journal.write(&head)?;
        Ok(journal)
    }

    /// Opens a journal again and gives the state that its events add up to. What was under way is not known then: the
    /// next event is [`Event::Resumed`].
    ///
    /// # Errors
    /// Any [`JournalError`].
    pub fn open(path: &Path, package: &Package) -> Result<(Self, State), JournalError> {
        let wrong = |source| JournalError::File { path: path.to_owned(), source };
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(wrong)?;
        let mut journal = Self { path: path.to_owned(), file, sum: String::new() };
        journal.lock()?;
        let mut bytes = Vec::new();
        journal.file.read_to_end(&mut bytes).map_err(wrong)?;
        let (head, events, sum, length) = read(&bytes, path)?;
        if head.hash != package.hash {
            return Err(JournalError::OtherPackage { id: head.workflow });
        }
        if length < bytes.len() {
            journal.file.set_len(length as u64).map_err(wrong)?;
            journal.file.seek(SeekFrom::End(0)).map_err(wrong)?;
        }
        journal.sum = sum;
        Ok((journal, replay(&package.workflow, events)))
    }

    /// The runs in `folder` that have not ended, with the state of each, newest last. What cannot be read is left out: it
    /// is told when it is opened.
    pub fn unfinished(folder: &Path, package_of: impl Fn(&str) -> Option<Package>) -> Vec<(PathBuf, Replay, State)> {
        let mut runs = Vec::new();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(bytes) = std::fs::read(&path) else { continue };
            let Ok((head, events, ..)) = read(&bytes, &path) else { continue };
            let Some(package) = package_of(&head.workflow).filter(|package| package.hash == head.hash) else {
                continue;
            };
            let state = replay(&package.workflow, events);
            if !state.phase.is_over() {
                runs.push((path, head, state));
            }
        }
        runs.sort_by(|one, other| one.1.started.cmp(&other.1.started));
        runs
    }

    /// Writes an event through to the disk.
    ///
    /// # Errors
    /// [`JournalError::File`]; nothing may be done about the event then.
    pub fn append(&mut self, event: &Event) -> Result<(), JournalError> {
        self.write(event)
    }

    /// A name of this run that no other run has.
    pub fn name(&self) -> String {
        self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn lock(&self) -> Result<(), JournalError> {
        self.file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => JournalError::InUse { path: self.path.clone() },
            TryLockError::Error(source) => JournalError::File { path: self.path.clone(), source },
        })
    }

    fn write<T: Serialize>(&mut self, what: &T) -> Result<(), JournalError> {
        let wrong = |source| JournalError::File { path: self.path.clone(), source };
        let body = serde_json::to_value(what).map_err(|error| wrong(error.into()))?;
        let sum = fingerprint(&self.sum, &body);
        let mut line =
            serde_json::to_string(&Line { sum: sum.clone(), what: body }).map_err(|error| wrong(error.into()))?;
        line.push('\n');
        self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data()).map_err(wrong)?;
        self.sum = sum;
        Ok(())
    }
}

fn fingerprint(before: &str, body: &serde_json::Value) -> String {
    let digest = Sha256::digest(format!("{before}{body}"));
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Head, events, the last fingerprint, and how many bytes are whole lines.
fn read(bytes: &[u8], path: &Path) -> Result<(Replay, Vec<Event>, String, usize), JournalError> {
    let damaged = |line| JournalError::Damaged { path: path.to_owned(), line };
    let (mut sum, mut length, mut head, mut events) = (String::new(), 0, None, Vec::new());
    for (number, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        if !line.ends_with(b"\n") {
            break; // cut off while it was written
        }
        let parsed: Line<serde_json::Value> = serde_json::from_slice(line).map_err(|_| damaged(number + 1))?;
        if fingerprint(&sum, &parsed.what) != parsed.sum {
            return Err(damaged(number + 1));
        }
        (sum, length) = (parsed.sum, length + line.len());
        match number {
            0 => head = Some(serde_json::from_value(parsed.what).map_err(|_| damaged(1))?),
            _ => events.push(serde_json::from_value(parsed.what).map_err(|_| damaged(number + 1))?),
        }
    }
    Ok((head.ok_or_else(|| damaged(1))?, events, sum, length))
}

fn replay(workflow: &Workflow, events: Vec<Event>) -> State {
    events.into_iter().fold(begin(), |state, event| update(workflow, state, event).0)
}
