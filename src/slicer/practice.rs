//! The practice Slicer: a private virtual environment made once in the data folder, and the process that runs in it.
//!
//! The Python of the practice Slicer is embedded in the binary and written out beside the environment, in a folder named
//! by its content, so that two versions of the program never run each other's files. The environment is made under a
//! file lock (several of our processes may ask at once). Each process writes its own log beside the environment, which
//! is kept only when it tells of a crash.

mod environment;

use std::fs::{self, File, TryLockError};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

use sha2::{Digest, Sha256};

use crate::platform::{self, ChildGuard, PackageError, PythonError};
use crate::resources;

/// How long the practice Slicer may take from start to its first answer. It needs 2 s; a machine under load needs more.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How often what is waited for is looked at again.
const POLL: Duration = Duration::from_millis(100);
/// How long the log of a crash is kept.
const LOG_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Exit code of the practice Slicer when it cannot have its port.
const EXIT_PORT_TAKEN: i32 = 6;

/// Why there is no practice Slicer.
#[derive(Debug, thiserror::Error)]
pub enum PracticeError {
    #[error(transparent)]
    Python(PythonError),
    #[error(transparent)]
    Package(PackageError),
    #[error(
        "There is not enough free space in {folder}: the practice Slicer needs 2.0 GB and {free:.1} GB are free. Free some space, or choose another data folder (--data-dir)"
    )]
    Disk { folder: PathBuf, free: f64 },
    #[error(
        "The parts of the practice Slicer could not be downloaded: the package index cannot be reached. Check the network (or the proxy: HTTPS_PROXY), then try again; what arrived is kept. pip said: {said}"
    )]
    Network { said: String },
    #[error(
        "The parts of the practice Slicer could not be downloaded: the secure connection to the package index could not be verified. A proxy of your network is probably in between: name its certificate file in the environment variable PIP_CERT, then try again. pip said: {said}"
    )]
    Certificate { said: String },
    #[error("The parts of the practice Slicer could not be installed. pip said: {said}")]
    Install { said: String },
    #[error("{what}: {source}")]
    File { what: String, source: std::io::Error },
    #[error(
        "Process {pid} still writes in the unfinished environment of the practice Slicer. Wait until it ends, then try again; if it has nothing to do with the practice Slicer, delete {folder} first"
    )]
    InUse { folder: PathBuf, pid: u32 },
    #[error(
        "The set-up of the practice Slicer was stopped. Start it again when you like: it begins anew, but what pip holds in its cache is not downloaded again"
    )]
    Cancelled,
    #[error("The practice Slicer ended while it started ({code}). {said}")]
    Ended { code: String, said: String },
    #[error("Port {port} is in use by another program: choose another with --port, or leave it out")]
    PortTaken { port: u16 },
    #[error("The practice Slicer did not answer within {} s. Its log: {said}", START_LIMIT.as_secs())]
    Silent { said: String },
}

impl From<PackageError> for PracticeError {
    fn from(error: PackageError) -> Self {
        match error {
            PackageError::Cancelled => Self::Cancelled,
            other => Self::Package(other),
        }
    }
}

impl From<PythonError> for PracticeError {
    fn from(error: PythonError) -> Self {
        match error {
            PythonError::Package(PackageError::Cancelled) => Self::Cancelled,
            other => Self::Python(other),
        }
    }
}

fn file_error(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> PracticeError {
    let what = what.into();
    move |source| PracticeError::File { what, source }
}

/// A practice Slicer that is ready to be started.
#[derive(Debug, Clone)]
pub struct PracticeHome {
    python: PathBuf,
    /// The folder that holds the package `practice_slicer` and its tests.
    pub source: PathBuf,
}

impl PracticeHome {
    /// A command that runs the environment's Python in the folder of the practice Slicer's source.
    pub fn python(&self) -> Command {
        let mut command = Command::new(&self.python);
        command.current_dir(&self.source).env("PYTHONPATH", &self.source).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

/// How a practice Slicer is started.
#[derive(Debug, Clone, Default)]
pub struct PracticeOptions {
    /// Port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// Leave the sample data out.
    pub no_data: bool,
    /// Answer as a Slicer whose "Slicer API exec" box is not ticked.
    pub no_exec: bool,
}

/// A running practice Slicer; it ends when this is dropped, and then its log is removed unless it had crashed.
///
/// It ends too, within about a second, when this program is killed: it watches the process id that it is given. On
/// Windows `pid` is that of the environment's launcher, which starts the real interpreter as its child; [`ChildGuard`]
/// ends both.
#[derive(Debug)]
pub struct PracticeProcess {
    child: ChildGuard,
    log: PathBuf,
    /// Base URL of its Web Server.
    pub url: String,
    pub pid: u32,
}

impl PracticeProcess {
    /// Waits until it ends, and gives its exit code.
    ///
    /// # Errors
    /// When the system cannot wait for it.
    pub fn wait(&mut self) -> std::io::Result<Option<i32>> {
        self.child.0.wait().map(|status| status.code())
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.0.try_wait(), Ok(None))
    }
}

impl Drop for PracticeProcess {
    fn drop(&mut self) {
        if matches!(self.child.0.try_wait(), Ok(Some(status)) if !status.success()) {
            return;
        }
        self.child.end();
        remove_log(&self.log);
    }
}

/// Whether [`set_up`] has been done in this folder, for this version of the program. Only looks.
pub fn is_set_up(folder: &Path) -> bool {
    environment::ready(&environment::folder_of(folder)).is_some()
}

/// Makes the environment below `folder` if it is not there, and writes out the source. Blocking: the first time takes
/// about half a minute and a download of 200 MB. `progress` gets one line a step.
///
/// # Errors
/// [`PracticeError`], each with what to do.
pub fn set_up(folder: &Path, progress: &dyn Fn(&str)) -> Result<PracticeHome, PracticeError> {
    set_up_with(folder, progress, &|| false)
}

/// As [`set_up`], until `cancelled` says that nobody wants it any more: it is asked about every 100 ms, and what runs is
/// killed then. System packages that are being unpacked are the exception, as that must not be broken off: it takes
/// seconds. Nothing half-made stays in use; an environment of another version is never touched.
///
/// # Errors
/// As [`set_up`], and [`PracticeError::Cancelled`].
pub fn set_up_with(
    folder: &Path,
    progress: &dyn Fn(&str),
    cancelled: &dyn Fn() -> bool,
) -> Result<PracticeHome, PracticeError> {
    platform::ensure_unless(&["pictures", "mesa-driver"], progress, cancelled)?;
    fs::create_dir_all(folder).map_err(file_error(format!("{} could not be made", folder.display())))?;
    let _lock = take_lock(&folder.join("set-up.lock"), progress, cancelled)?;
    let source = write_source(folder)?;
    let python = environment::make(folder, progress, cancelled)?;
    Ok(PracticeHome { python, source })
}

/// The lock under which one process at a time sets up; it is given back when the file is dropped.
fn take_lock(path: &Path, progress: &dyn Fn(&str), cancelled: &dyn Fn() -> bool) -> Result<File, PracticeError> {
    let lock = File::create(path).map_err(file_error(format!("{} could not be made", path.display())))?;
    let mut told = false;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::Error(error)) => return Err(file_error("the set-up lock could not be taken")(error)),
            Err(TryLockError::WouldBlock) if cancelled() => return Err(PracticeError::Cancelled),
            Err(TryLockError::WouldBlock) => {
                if !std::mem::replace(&mut told, true) {
                    progress("Waiting for another set-up of the practice Slicer to end…");
                }
                std::thread::sleep(POLL);
            }
        }
    }
}

fn write_source(folder: &Path) -> Result<PathBuf, PracticeError> {
    let mut files = Vec::new();
    collect_files(resources::folder("practice"), &mut files);
    let names: Vec<_> = files.iter().map(|(path, _)| path.to_string_lossy()).collect();
    let parts = files.iter().zip(&names).flat_map(|((_, bytes), name)| [name.as_bytes(), bytes]);
    let source = folder.join(format!("source-{}", hash_of(parts)));
    let mark = source.join(".complete");
    if mark.exists() {
        return Ok(source);
    }
    for (path, bytes) in &files {
        let target = source.join(path);
        let parent = target.parent().unwrap_or(&source);
        fs::create_dir_all(parent).map_err(file_error(format!("{} could not be made", parent.display())))?;
        fs::write(&target, bytes).map_err(file_error(format!("{} could not be written", target.display())))?;
    }
    fs::write(&mark, "").map_err(file_error(format!("{} could not be written", mark.display())))?;
    Ok(source)
}

/// All files of an embedded folder, with paths relative to `practice/`.
fn collect_files(folder: Option<&'static include_dir::Dir<'static>>, files: &mut Vec<(PathBuf, &'static [u8])>) {
    let Some(folder) = folder else { return };
    for file in folder.files() {
        let hidden = file.path().file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if let Ok(path) = file.path().strip_prefix("practice")
            && !hidden
        {
            files.push((path.to_owned(), file.contents()));
        }
    }
    // Compiled Python may lie in a developer's tree; it belongs to that machine.
    for inner in folder.dirs().filter(|inner| !inner.path().ends_with("__pycache__")) {
        collect_files(Some(inner), files);
    }
}

/// Twelve hexadecimal digits that stand for this content.
fn hash_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    parts.into_iter().for_each(|part| hash.update(part));
    hash.finalize().iter().take(6).fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// Starts a practice Slicer and waits until it answers. Blocking (about 2 s).
///
/// # Errors
/// [`PracticeError::PortTaken`], [`PracticeError::Ended`] with what it said, or [`PracticeError::Silent`].
pub fn start(home: &PracticeHome, options: &PracticeOptions) -> Result<PracticeProcess, PracticeError> {
    let folder = home.source.parent().unwrap_or(&home.source);
    remove_old_logs(folder, SystemTime::now());
    let mut command = home.python();
    command
        .args(["-m", "practice_slicer", "--port", &options.port.to_string()])
        .args(["--parent-pid", &std::process::id().to_string()]);
    if options.no_data {
        command.arg("--no-data");
    }
    if options.no_exec {
        command.arg("--no-exec");
    }
    start_command(&mut command, folder, options.port, START_LIMIT)
}

/// Starts a command that prints `ready on 127.0.0.1:PORT` when it answers; what else it says goes to a log in `folder`.
fn start_command(
    command: &mut Command,
    folder: &Path,
    port: u16,
    limit: Duration,
) -> Result<PracticeProcess, PracticeError> {
    // One log each: two practice Slicers of one process must not write over each other.
    let unique = uuid::Uuid::new_v4().simple().to_string();
    let log = folder.join(format!("practice-{}-{}.log", std::process::id(), &unique[..8]));
    let file = File::create(&log).map_err(file_error(format!("{} could not be made", log.display())))?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file);
    let child = command.spawn().map_err(file_error("the practice Slicer could not be started"))?;
    let mut child = ChildGuard(child);
    let stdout = child.0.stdout.take().map(ready_line);
    match wait_for_ready(&mut child, stdout.as_ref(), limit)? {
        Started::Ready(url) => {
            let pid = child.0.id();
            Ok(PracticeProcess { child, log, url, pid })
        }
        Started::Silent => {
            child.end();
            Err(PracticeError::Silent { said: last_lines(&log) })
        }
        Started::Ended(status) => Err(ended(status, port, &log)),
    }
}

/// What came of a start.
enum Started {
    /// It answers at this base URL.
    Ready(String),
    Ended(ExitStatus),
    /// The time is over.
    Silent,
}

/// Waits for the ready line and for the end of the process, whichever comes first: a process that is gone says nothing.
fn wait_for_ready(
    child: &mut ChildGuard,
    ready: Option<&mpsc::Receiver<String>>,
    limit: Duration,
) -> Result<Started, PracticeError> {
    let deadline = Instant::now() + limit;
    loop {
        match ready.map(|ready| ready.recv_timeout(POLL)) {
            Some(Ok(url)) => return Ok(Started::Ready(url)),
            Some(Err(RecvTimeoutError::Timeout)) => {}
            None | Some(Err(RecvTimeoutError::Disconnected)) => std::thread::sleep(POLL / 5),
        }
        let status = child.0.try_wait().map_err(file_error("the practice Slicer could not be waited for"))?;
        if let Some(status) = status {
            return Ok(Started::Ended(status));
        }
        if Instant::now() >= deadline {
            return Ok(Started::Silent);
        }
    }
}

/// Why it ended while it started. What its exit code and words tell is enough for a taken port; else the log is kept.
fn ended(status: ExitStatus, port: u16, log: &Path) -> PracticeError {
    let said = last_lines(log);
    // It ends with the same code when the port is refused to it for another reason, as one of the first 1023 may be.
    if status.code() == Some(EXIT_PORT_TAKEN) && !said.contains("ermission") {
        remove_log(log);
        return PracticeError::PortTaken { port };
    }
    let code = status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"));
    PracticeError::Ended { code, said }
}

/// Gives the base URL from the line `ready on 127.0.0.1:PORT`; closes when the output ends.
fn ready_line(stdout: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        // Reads to the end, so that the process never meets a closed pipe; nobody listens after the first line.
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if let Some(address) = line.strip_prefix("ready on ") {
                drop(sender.send(format!("http://{}/slicer", address.trim())));
            }
        }
    });
    receiver
}

fn last_lines(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(4)..].join(" · ")
}

fn remove_log(log: &Path) {
    if let Err(error) = fs::remove_file(log) {
        tracing::debug!(%error, "a log of the practice Slicer could not be removed");
    }
}

/// Removes the logs of crashes, and of processes that were ended with us, once nobody will read them any more.
fn remove_old_logs(folder: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_log = name.to_str().is_some_and(|name| name.starts_with("practice-") && name.ends_with(".log"));
        let written = entry.metadata().and_then(|data| data.modified()).ok();
        let age = written.and_then(|written| now.duration_since(written).ok());
        if is_log && age.is_some_and(|age| age > LOG_AGE) {
            remove_log(&entry.path());
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn start_script(folder: &Path, script: &str, limit: Duration) -> Result<PracticeProcess, PracticeError> {
        start_command(Command::new("sh").args(["-c", script]), folder, 2016, limit)
    }

    fn logs(folder: &Path) -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    const READY: &str = "echo ready on 127.0.0.1:2016; echo hello >&2;";
    const LONG: Duration = Duration::from_secs(30);

    /// A practice Slicer that dies while it starts is told with its exit code and its last words, at once, also when
    /// something that it started holds its output open.
    #[test]
    fn a_death_at_the_start_is_told_with_its_code_and_words() {
        for script in ["echo no EGL here >&2; exit 4", "sleep 8 & echo no EGL here >&2; exit 4"] {
            let folder = tempfile::tempdir().unwrap();
            let began = Instant::now();
            let error = start_script(folder.path(), script, LONG).unwrap_err();
            assert_eq!(error.to_string(), "The practice Slicer ended while it started (exit code 4). no EGL here");
            assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
            assert_eq!(logs(folder.path()).len(), 1, "the log of a crash is kept");
        }
        let folder = tempfile::tempdir().unwrap();
        let killed = start_script(folder.path(), "kill -9 $$", LONG).unwrap_err().to_string();
        assert!(killed.contains("signal: 9"), "{killed}");
    }

    /// Only a real time-out is told as one, and the silent process is ended.
    #[test]
    fn silence_is_told_only_after_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let script = format!("echo $$ > {}; echo loading >&2; exec sleep 30 >&-", pid.display());
        let error = start_script(folder.path(), &script, Duration::from_millis(400)).unwrap_err();
        assert!(matches!(&error, PracticeError::Silent { said } if said == "loading"), "{error}");
        let pid = fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        assert!(!platform::is_alive(pid));
    }

    /// A taken port is a sentence with what to do; a port that may not be used is not called taken.
    #[test]
    fn a_taken_port_is_a_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let taken = start_script(folder.path(), "echo Address already in use >&2; exit 6", LONG).unwrap_err();
        assert_eq!(
            taken.to_string(),
            "Port 2016 is in use by another program: choose another with --port, or leave it out"
        );
        assert_eq!(logs(folder.path()).len(), 0, "the sentence says it all");
        let denied = start_script(folder.path(), "echo port 80: Permission denied >&2; exit 6", LONG).unwrap_err();
        assert!(denied.to_string().contains("Permission denied"), "{denied}");
    }

    /// Logs do not pile up: each start has its own, and it goes with a process that ended well or was ended by us.
    #[test]
    fn a_log_stays_only_after_a_crash() {
        let folder = tempfile::tempdir().unwrap();
        let first = start_script(folder.path(), &format!("{READY} exec sleep 30"), LONG).unwrap();
        let second = start_script(folder.path(), &format!("{READY} exec sleep 30"), LONG).unwrap();
        assert_eq!(first.url, "http://127.0.0.1:2016/slicer");
        assert_eq!(logs(folder.path()).len(), 2);
        let pid = first.pid;
        drop((first, second));
        assert!(!platform::is_alive(pid));
        assert_eq!(logs(folder.path()).len(), 0, "ended by us");
        let mut good = start_script(folder.path(), READY, LONG).unwrap();
        assert_eq!(good.wait().unwrap(), Some(0));
        drop(good);
        assert_eq!(logs(folder.path()).len(), 0, "ended well");
        let mut bad = start_script(folder.path(), &format!("{READY} exit 1"), LONG).unwrap();
        assert_eq!(bad.wait().unwrap(), Some(1));
        drop(bad);
        assert_eq!(logs(folder.path()).len(), 1, "crashed");
    }

    /// Old logs go, young ones and other files stay.
    #[test]
    fn old_logs_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["practice-1-aa.log", "practice-2.log", "notes.log", "set-up.lock"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        remove_old_logs(folder.path(), SystemTime::now() + LOG_AGE / 2);
        assert_eq!(logs(folder.path()).len(), 4);
        remove_old_logs(folder.path(), SystemTime::now() + LOG_AGE + Duration::from_secs(60));
        let mut left: Vec<_> =
            logs(folder.path()).iter().filter_map(|path| path.file_name()?.to_str().map(String::from)).collect();
        left.sort();
        assert_eq!(left, ["notes.log", "set-up.lock"]);
    }

    /// Who waits for another set-up can stop waiting.
    #[test]
    fn waiting_for_the_lock_can_be_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set-up.lock");
        let held = take_lock(&path, &|_| (), &|| false).unwrap();
        let began = Instant::now();
        let stopped = take_lock(&path, &|_| (), &|| began.elapsed() > Duration::from_millis(150));
        assert!(matches!(stopped, Err(PracticeError::Cancelled)));
        drop(held);
        take_lock(&path, &|_| (), &|| true).unwrap();
    }
}
