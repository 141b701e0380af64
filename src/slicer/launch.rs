//! Starting an installed Slicer with its Web Server on, and noticing when it ends.
//!
//! Slicer gets a start-up script of ours (`resources/slicer_startup/`), which puts the Web Server on 127.0.0.1 only and
//! reports through a small file. The process belongs to the person, not to us: it is detached, writes to a log of its
//! own, and goes on when this program ends, because their data is in it. It is ended by us in one case only: when the
//! person cancels the launch, before it was ever handed over.
//!
//! On Linux and Windows the executable is a launcher that stays for as long as the real application, and passes its exit
//! code on. A wrapper script may go away earlier; as long as something that it started lives, that is not an end.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::places::Places;
use crate::bridge::{WebServer, WebServerError};
use crate::platform;
use crate::resources;

/// How long a Slicer may take to start unless something else is said. With many extensions, or from a cold disk, it
/// needs a minute.
pub const LAUNCH_LIMIT: Duration = Duration::from_secs(120);
/// How often what is waited for is looked at again.
const POLL: Duration = Duration::from_millis(100);
/// How often the person is told that the wait goes on.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// Longest wait for one answer of a Slicer that has just come up.
const REPLY_LIMIT: Duration = Duration::from_secs(5);
/// How long logs and left-over files of launches are kept.
const KEEP: Duration = Duration::from_secs(14 * 24 * 3600);
/// Lines of the log that an error shows.
const LAST_LINES: usize = 6;

/// How a Slicer is started.
#[derive(Debug, Clone)]
pub struct LaunchOptions {
    /// What the person named: an executable, or the folder (app bundle) of an installation. `None`: the newest found.
    pub executable: Option<PathBuf>,
    /// Longest wait until it answers.
    pub limit: Duration,
    /// Where the start-up script and its report lie.
    pub data_folder: PathBuf,
    /// Where the log lies.
    pub logs: PathBuf,
    /// Ports to choose from; `None`: those of the table of places.
    pub ports: Option<RangeInclusive<u16>>,
}

/// Why no Slicer was started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("No 3D Slicer was found on this computer.")]
    NotFound,
    #[error("{} is not a program that can be started, nor the folder of a Slicer.", .path.display())]
    NotExecutable { path: PathBuf },
    #[error("{} could not be started: {source}.", .path.display())]
    Start { path: PathBuf, source: std::io::Error },
    #[error("Slicer ended while it started ({end}).{}", said(.last_lines))]
    Ended { end: String, last_lines: String, log: PathBuf },
    #[error("Slicer started, but its Web Server did not: {message}.")]
    Script { kind: String, message: String, log: PathBuf },
    #[error(
        "Slicer (process {pid}) did not get ready within {} s. It was not closed.{}", .limit.as_secs_f64(), said(.last_lines)
    )]
    TimedOut { pid: u32, limit: Duration, last_lines: String, log: PathBuf },
    #[error("The Web Server of Slicer (process {pid}) does not answer as it should: {why}")]
    Answer { pid: u32, why: String, log: PathBuf },
    #[error("The launch was cancelled, and the Slicer that was starting was ended.")]
    Cancelled,
    #[error("{what}: {source}.")]
    File { what: String, source: std::io::Error },
    #[error("{0}")]
    Places(String),
}

fn said(last_lines: &str) -> String {
    if last_lines.is_empty() { String::new() } else { format!(" The last it said:\n{last_lines}") }
}

impl LaunchError {
    /// The name of the cause, as machine output gives it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotFound | Self::NotExecutable { .. } => "NoSlicer",
            Self::Ended { .. } => "SlicerEnded",
            Self::TimedOut { .. } => "TimedOut",
            Self::Cancelled => "Cancelled",
            _ => "LaunchFailed",
        }
    }

    /// What the person can do about it.
    pub fn advice(&self) -> String {
        let see = |log: &Path| format!("All that it said is in {}.", log.display());
        match self {
            Self::NotFound => {
                "Install it from download.slicer.org, or name its executable (--slicer PATH, or Settings → \
                 Slicer), or use the practice Slicer."
                    .to_owned()
            }
            Self::NotExecutable { .. } => {
                "Name the program itself (Slicer, Slicer.exe) or the folder or app that it is in.".to_owned()
            }
            Self::Start { .. } => "Check that you may run it, and that it was made for this computer.".to_owned(),
            Self::Ended { log, .. } => format!("Start Slicer by itself to see whether it works. {}", see(log)),
            Self::Script { kind, log, .. } => match kind.as_str() {
                "NoWebServer" => "Slicer 5.2 or newer is needed, with its Web Server module on (Edit → Application \
                     Settings → Modules). Slicer stays open."
                    .to_owned(),
                "PortsTaken" => {
                    "Close Slicers that you do not need, or stop their Web Servers. Slicer stays open.".to_owned()
                }
                _ => format!("Slicer stays open. {}", see(log)),
            },
            Self::TimedOut { log, .. } => format!(
                "Look whether it shows a dialog. When it is up it appears among the running Slicers; allow more time \
                 (--timeout) if it is slow. {}",
                see(log)
            ),
            Self::Answer { log, .. } => see(log),
            Self::Cancelled | Self::Places(_) => String::new(),
            Self::File { .. } => "Check the disk and the rights of the data folder.".to_owned(),
        }
    }
}

fn file_error(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> LaunchError {
    let what = format!("{} could not be {what}", path.display());
    move |source| LaunchError::File { what, source }
}

/// A Slicer that we started. Dropping this does not end it.
#[derive(Debug)]
pub struct LaunchedSlicer {
    /// Base URL of its Web Server.
    pub url: String,
    /// Process of the application itself, which is not always the one that we started.
    pub pid: u32,
    pub version: String,
    /// What it prints.
    pub log: PathBuf,
    child: Child,
    ended: Option<String>,
}

impl LaunchedSlicer {
    /// How it ended, for example `exit code 0`; `None` while it runs.
    pub fn end(&mut self) -> Option<String> {
        if self.ended.is_none() {
            self.ended = match self.child.try_wait() {
                // The launcher is what knows how the application ended; it says so a moment after it.
                Ok(Some(status)) if self.child.id() == self.pid || !platform::is_alive(self.pid) => {
                    Some(in_words(status))
                }
                Err(error) => Some(format!("it cannot be asked: {error}")),
                _ => None,
            };
        }
        self.ended.clone()
    }

    /// The last lines of what it printed.
    pub fn last_lines(&self) -> String {
        last_lines(&self.log)
    }
}

fn in_words(status: std::process::ExitStatus) -> String {
    status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"))
}

/// What the start-up script reports.
#[derive(Debug, Deserialize)]
struct Report {
    ok: bool,
    #[serde(default)]
    port: u16,
    #[serde(default)]
    pid: u32,
    #[serde(default)]
    version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    message: String,
}

/// Starts a Slicer and waits until its Web Server answers. `progress` gets a line now and then.
///
/// When `cancel` is set the Slicer that is starting is ended. When the future is dropped, or the time is over, it goes on.
///
/// # Errors
/// [`LaunchError`], each with what to do.
pub async fn launch(
    options: &LaunchOptions,
    progress: &(dyn Fn(&str) + Send + Sync),
    cancel: &CancellationToken,
) -> Result<LaunchedSlicer, LaunchError> {
    let places = Places::of_this_computer(&options.data_folder).map_err(LaunchError::Places)?;
    let executable = executable(options, &places)?;
    let folder = Folder::new(options)?;
    let ports = options.ports.clone().unwrap_or_else(|| places.ports());
    progress(&format!("Starting {}…", executable.display()));
    let mut child = spawn(&executable, &folder, &ports)?;
    let report = match wait_for_report(&mut child, &folder, options.limit, progress, cancel).await {
        Ok(report) => report,
        Err(error) => {
            // A Slicer that is still starting has yet to read its script.
            folder.forget(!matches!(error, LaunchError::TimedOut { .. }));
            leave(child);
            return Err(error);
        }
    };
    folder.forget(true);
    if !report.ok {
        leave(child);
        return Err(LaunchError::Script { kind: report.kind, message: report.message, log: folder.log });
    }
    progress(&format!("Slicer {} is up; asking its Web Server…", report.version));
    let url = format!("http://127.0.0.1:{}/slicer", report.port);
    let mut slicer =
        LaunchedSlicer { url, pid: report.pid, version: report.version, log: folder.log, child, ended: None };
    match check_answer(&mut slicer, options.limit, cancel).await {
        Ok(()) => Ok(slicer),
        Err(error) => {
            leave(slicer.child);
            Err(error)
        }
    }
}

/// Lets a Slicer go on by itself: it is only waited for, so that its end leaves nothing in the system's table.
fn leave(mut child: Child) {
    std::thread::spawn(move || drop(child.wait()));
}

fn executable(options: &LaunchOptions, places: &Places) -> Result<PathBuf, LaunchError> {
    match &options.executable {
        Some(path) => {
            let path = std::path::absolute(path).map_err(file_error("used", path))?;
            places.executable(&path).ok_or(LaunchError::NotExecutable { path })
        }
        None => places.installed(None).into_iter().next().map(|one| one.executable).ok_or(LaunchError::NotFound),
    }
}

/// The files of one launch.
struct Folder {
    path: PathBuf,
    script: PathBuf,
    report: PathBuf,
    log: PathBuf,
}

impl Folder {
    fn new(options: &LaunchOptions) -> Result<Self, LaunchError> {
        let parent = options.data_folder.join("launch");
        remove_old(&parent);
        remove_old(&options.logs);
        let name = &uuid::Uuid::new_v4().simple().to_string()[..12];
        let path = parent.join(name);
        for folder in [&path, &options.logs] {
            fs::create_dir_all(folder).map_err(file_error("made", folder))?;
        }
        let script = path.join("start_web_server.py");
        let text = resources::text("slicer_startup/start_web_server.py").unwrap_or_default();
        fs::write(&script, text).map_err(file_error("written", &script))?;
        Ok(Self {
            script,
            report: path.join("report.json"),
            path,
            log: options.logs.join(format!("slicer-{name}.log")),
        })
    }

    /// Removes what is not needed any more; the log stays.
    fn forget(&self, done: bool) {
        if done && let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::debug!(%error, "files of a launch stay until the next one");
        }
    }
}

/// Removes files of launches that nobody looks at any more. Only names that a launch makes are touched.
fn remove_old(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let age = path
            .metadata()
            .and_then(|facts| facts.modified())
            .ok()
            .and_then(|at| SystemTime::now().duration_since(at).ok());
        if age.is_none_or(|age| age < KEEP) {
            continue;
        }
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let removed = if path.is_dir() && folder.ends_with("launch") {
            fs::remove_dir_all(&path)
        } else if name.starts_with("slicer-") && name.ends_with(".log") {
            fs::remove_file(&path)
        } else {
            Ok(())
        };
        if let Err(error) = removed {
            tracing::debug!(%error, "an old file of a launch stays");
        }
    }
}

fn spawn(executable: &Path, folder: &Folder, ports: &RangeInclusive<u16>) -> Result<Child, LaunchError> {
    let log = fs::File::create(&folder.log).map_err(file_error("made", &folder.log))?;
    let errors = log.try_clone().map_err(file_error("used", &folder.log))?;
    let mut command = Command::new(executable);
    command
        .arg("--no-splash")
        .arg("--python-script")
        .arg(&folder.script)
        .env("SLICER_AI_AGENT_REPORT", &folder.report)
        .env("SLICER_AI_AGENT_PORTS", format!("{}-{}", ports.start(), ports.end()))
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors);
    platform::detach(&mut command);
    command.spawn().map_err(|source| LaunchError::Start { path: executable.to_owned(), source })
}

/// Waits for the report, the end of the process, the end of the time, or the person's cancel, whichever comes first.
async fn wait_for_report(
    child: &mut Child,
    folder: &Folder,
    limit: Duration,
    progress: &(dyn Fn(&str) + Send + Sync),
    cancel: &CancellationToken,
) -> Result<Report, LaunchError> {
    let began = Instant::now();
    let mut told = Duration::ZERO;
    loop {
        if let Some(report) = read_report(folder)? {
            return Ok(report);
        }
        let status = child.try_wait().map_err(file_error("waited for", &folder.log))?;
        if let Some(status) = status
            && (!status.success() || !platform::group_is_alive(child.id()))
        {
            // It may have reported just before its end.
            if let Some(report) = read_report(folder)?.filter(|report| !report.ok) {
                return Ok(report);
            }
            let (end, log) = (in_words(status), folder.log.clone());
            return Err(LaunchError::Ended { end, last_lines: last_lines(&log), log });
        }
        if began.elapsed() >= limit {
            let log = folder.log.clone();
            return Err(LaunchError::TimedOut { pid: child.id(), limit, last_lines: last_lines(&log), log });
        }
        if began.elapsed() >= told + TELL_EVERY {
            told = began.elapsed();
            progress(&format!("Slicer is starting ({} s)…", told.as_secs()));
        }
        tokio::select! {
            () = cancel.cancelled() => return Err(give_up(child)),
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

/// Ends a Slicer that is still starting: nobody has worked in it yet.
fn give_up(child: &mut Child) -> LaunchError {
    if let Err(error) = platform::end_group(child.id()) {
        tracing::warn!("the Slicer that was starting could not be ended: {error}");
    }
    // Takes its entry out of the system's table; it has ended, or was not ours to end.
    if let Err(error) = child.try_wait() {
        tracing::debug!(%error, "the end of a Slicer was not seen");
    }
    LaunchError::Cancelled
}

fn read_report(folder: &Folder) -> Result<Option<Report>, LaunchError> {
    let text = match fs::read_to_string(&folder.report) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        // Windows does not let a file be read in the moment of its renaming.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Ok(None),
        Err(error) => return Err(file_error("read", &folder.report)(error)),
    };
    serde_json::from_str(&text).map(Some).map_err(|error| file_error("read", &folder.report)(error.into()))
}

/// Asks the Web Server once, by the way that all later requests take. Slicer answers when its start is over.
async fn check_answer(
    slicer: &mut LaunchedSlicer,
    limit: Duration,
    cancel: &CancellationToken,
) -> Result<(), LaunchError> {
    let code = resources::text("slicer_startup/who.py").unwrap_or_default();
    let server = WebServer::new(&slicer.url, Some(REPLY_LIMIT)).map_err(|error| LaunchError::Answer {
        pid: slicer.pid,
        why: error.to_string(),
        log: slicer.log.clone(),
    })?;
    let began = Instant::now();
    loop {
        let answer = tokio::select! {
            () = cancel.cancelled() => return Err(give_up(&mut slicer.child)),
            answer = server.exec(code, None) => answer,
        };
        let (pid, log) = (slicer.pid, slicer.log.clone());
        if let Some(end) = slicer.end() {
            return Err(LaunchError::Ended { end, last_lines: last_lines(&log), log });
        }
        match answer {
            Ok(facts) if facts["pid"].as_u64() == Some(u64::from(pid)) => return Ok(()),
            Ok(_) => {
                return Err(LaunchError::Answer { pid, why: "another Slicer answers at its port.".to_owned(), log });
            }
            Err(WebServerError::TimedOut { .. }) if began.elapsed() >= limit => {
                return Err(LaunchError::TimedOut { pid, limit, last_lines: last_lines(&log), log });
            }
            Err(WebServerError::TimedOut { .. }) => {}
            Err(error) => return Err(LaunchError::Answer { pid, why: error.to_string(), log }),
        }
    }
}

/// Ends the Slicer at this address, without its own question about unsaved data: the person must have been asked.
///
/// # Errors
/// What went wrong, with what to do.
pub async fn quit(url: &str) -> Result<(), String> {
    let server = WebServer::new(url, Some(REPLY_LIMIT)).map_err(|error| error.to_string())?;
    server.quit(None).await.map_err(|error| error.to_string())
}

/// The last lines of a log that say something.
fn last_lines(log: &Path) -> String {
    const ENOUGH: u64 = 8 * 1024;
    let read = || {
        let mut file = fs::File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(ENOUGH)))?;
        let mut bytes = Vec::new();
        file.take(ENOUGH).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}
