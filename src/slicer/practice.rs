//! The practice Slicer: a private virtual environment made once in the data folder, and the process that runs in it.
//!
//! The Python of the practice Slicer is embedded in the binary and written out beside the environment, in a folder named
//! by its content, so that two versions of the program never run each other's files. The environment is made under a
//! file lock (several of our processes may ask at once) and counts as ready only when its mark was written last.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::platform::{self, ChildGuard, PackageError, PythonError};
use crate::resources;

/// Bytes that must be free before the environment is made: it takes about 0.95 GB, and pip unpacks beside it.
const NEEDED_BYTES: u64 = 2_000_000_000;
/// How long the practice Slicer may take from start to its first answer. It needs 2 s; a machine under load needs more.
const START_LIMIT: Duration = Duration::from_secs(120);

/// Why there is no practice Slicer.
#[derive(Debug, thiserror::Error)]
pub enum PracticeError {
    #[error(transparent)]
    Python(#[from] PythonError),
    #[error(transparent)]
    Package(#[from] PackageError),
    #[error(
        "There is not enough free space in {folder}: the practice Slicer needs 2.0 GB and {free:.1} GB are free. Free some space, or choose another data folder (--data-dir)"
    )]
    Disk { folder: PathBuf, free: f64 },
    #[error(
        "The parts of the practice Slicer could not be downloaded: the package index cannot be reached. Check the network (or the proxy: HTTPS_PROXY), then try again; what arrived is kept. pip said: {said}"
    )]
    Network { said: String },
    #[error("The parts of the practice Slicer could not be installed. pip said: {said}")]
    Install { said: String },
    #[error("{what}: {source}")]
    File { what: String, source: std::io::Error },
    #[error("The practice Slicer ended while it started{code}. {said}")]
    Ended { code: String, said: String },
    #[error("The practice Slicer did not answer within {} s. Its log: {said}", START_LIMIT.as_secs())]
    Silent { said: String },
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

/// A running practice Slicer; it ends when this is dropped.
#[derive(Debug)]
pub struct PracticeProcess {
    child: ChildGuard,
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

/// Makes the environment below `folder` if it is not there, and writes out the source. Blocking: the first time takes
/// about half a minute and a download of 200 MB. `progress` gets one line a step.
///
/// # Errors
/// [`PracticeError`], each with what to do.
pub fn set_up(folder: &Path, progress: &dyn Fn(&str)) -> Result<PracticeHome, PracticeError> {
    platform::ensure(&["pictures", "mesa-driver"], progress)?;
    fs::create_dir_all(folder).map_err(file_error(format!("{} could not be made", folder.display())))?;
    let lock_path = folder.join("set-up.lock");
    let lock = File::create(&lock_path).map_err(file_error(format!("{} could not be made", lock_path.display())))?;
    if lock.try_lock().is_err() {
        progress("Waiting for another set-up of the practice Slicer to end…");
        lock.lock().map_err(file_error("the set-up lock could not be taken"))?;
    }
    let source = write_source(folder)?;
    let python = make_environment(folder, &source, progress)?;
    Ok(PracticeHome { python, source })
}

fn write_source(folder: &Path) -> Result<PathBuf, PracticeError> {
    let mut files = Vec::new();
    collect_files(resources::folder("practice"), &mut files);
    let mut hash = Sha256::new();
    for (path, bytes) in &files {
        hash.update(path.to_string_lossy().as_bytes());
        hash.update(bytes);
    }
    let source = folder.join(format!("source-{}", short_hex(&hash.finalize())));
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

fn short_hex(bytes: &[u8]) -> String {
    bytes.iter().take(6).fold(String::new(), |mut text, byte| {
        text.push_str(&format!("{byte:02x}"));
        text
    })
}

fn make_environment(folder: &Path, source: &Path, progress: &dyn Fn(&str)) -> Result<PathBuf, PracticeError> {
    let requirements = source.join("requirements.txt");
    let wanted = fs::read_to_string(&requirements)
        .map_err(file_error(format!("{} could not be read", requirements.display())))?;
    let environment = folder.join("environment");
    let mark = environment.join("installed-requirements.txt");
    let python = platform::venv_python(&environment);
    if fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) && python.exists() {
        return Ok(python);
    }
    if let Some(free) = platform::free_bytes(folder)
        && free < NEEDED_BYTES
    {
        return Err(PracticeError::Disk { folder: folder.into(), free: free as f64 / 1e9 });
    }
    let found = platform::find_python(progress)?;
    progress(&format!("Making a private Python 3.{} environment…", found.minor));
    if environment.exists() {
        fs::remove_dir_all(&environment)
            .map_err(file_error(format!("{} could not be replaced", environment.display())))?;
    }
    run_step(Command::new(&found.executable).args(["-m", "venv"]).arg(&environment), progress)?;
    progress("Downloading the practice Slicer (200 MB, once)…");
    run_step(
        Command::new(&python)
            .args(["-m", "pip", "install", "--no-deps", "--disable-pip-version-check", "--progress-bar", "off", "-r"])
            .arg(&requirements),
        progress,
    )?;
    fs::write(&mark, wanted).map_err(file_error(format!("{} could not be written", mark.display())))?;
    progress("The practice Slicer is installed.");
    Ok(python)
}

/// Runs one step of the set-up, turning pip's lines into progress and its errors into ours.
fn run_step(command: &mut Command, progress: &dyn Fn(&str)) -> Result<(), PracticeError> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(file_error(format!("{} could not be started", command.get_program().display())))?;
    let errors = child.stderr.take().map(read_in_background);
    for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
        let line = line.trim();
        if line.starts_with("Downloading ") || line.starts_with("Installing collected") {
            progress(line);
        }
    }
    let status = child.wait().map_err(file_error("the set-up step could not be waited for"))?;
    if status.success() {
        return Ok(());
    }
    let text = errors.map(|receiver| receiver.recv().unwrap_or_default()).unwrap_or_default();
    Err(explain_failure(&text))
}

fn read_in_background(mut stream: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // A broken pipe only means that less was read; what arrived is still the best explanation there is.
        drop(stream.read_to_end(&mut bytes));
        drop(sender.send(String::from_utf8_lossy(&bytes).into_owned()));
    });
    receiver
}

fn explain_failure(text: &str) -> PracticeError {
    const NETWORK: [&str; 9] = [
        "name resolution",
        "Name or service not known",
        "nodename nor servname",
        "getaddrinfo failed",
        "Connection refused",
        "Network is unreachable",
        "Max retries",
        "timed out",
        "ProxyError",
    ];
    let said = text.lines().rfind(|line| line.contains("ERROR")).or(text.lines().last()).unwrap_or("nothing").trim();
    let said = said.to_owned();
    if text.contains("No space left") {
        return PracticeError::Install { said: "no space left on the disk. Free some space, then try again".into() };
    }
    if NETWORK.iter().any(|sign| text.contains(sign)) {
        return PracticeError::Network { said };
    }
    PracticeError::Install { said }
}

/// Starts a practice Slicer and waits until it answers. Blocking (about 2 s).
///
/// # Errors
/// [`PracticeError::Ended`] with what it said, or [`PracticeError::Silent`].
pub fn start(home: &PracticeHome, options: &PracticeOptions) -> Result<PracticeProcess, PracticeError> {
    let log_path = home.source.with_file_name(format!("practice-{}.log", std::process::id()));
    let log = File::create(&log_path).map_err(file_error(format!("{} could not be made", log_path.display())))?;
    let mut command = home.python();
    command
        .args(["-m", "practice_slicer", "--port", &options.port.to_string()])
        .args(["--parent-pid", &std::process::id().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    if options.no_data {
        command.arg("--no-data");
    }
    if options.no_exec {
        command.arg("--no-exec");
    }
    let mut child = ChildGuard(command.spawn().map_err(file_error("the practice Slicer could not be started"))?);
    let stdout = child.0.stdout.take();
    let said = || last_lines(&log_path);
    match stdout.and_then(wait_for_ready) {
        Some(url) => {
            let pid = child.0.id();
            Ok(PracticeProcess { child, url, pid })
        }
        None if matches!(child.0.try_wait(), Ok(None)) => Err(PracticeError::Silent { said: said() }),
        None => Err(ended(&mut child.0, said())),
    }
}

fn ended(child: &mut Child, said: String) -> PracticeError {
    let code = child.wait().ok().and_then(|status| status.code());
    PracticeError::Ended { code: code.map(|code| format!(" (exit code {code})")).unwrap_or_default(), said }
}

/// The base URL from the line `ready on 127.0.0.1:PORT`; `None` when the output ends or the time is over before it.
fn wait_for_ready(stdout: ChildStdout) -> Option<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        // Reads to the end, so that the process never meets a closed pipe; nobody listens after the first line.
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if let Some(address) = line.strip_prefix("ready on ") {
                drop(sender.send(format!("http://{}/slicer", address.trim())));
            }
        }
    });
    let deadline = Instant::now() + START_LIMIT;
    receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
}

fn last_lines(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(4)..].join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A person without a network must read that the network is missing, not a pip backtrace.
    #[test]
    fn failures_are_told_apart() {
        let offline = "WARNING: Retrying … Failed to establish a new connection: [Errno -3] Temporary failure in name resolution\nERROR: Could not find a version that satisfies the requirement vtk==9.6.2\nERROR: No matching distribution found for vtk==9.6.2\n";
        assert!(matches!(explain_failure(offline), PracticeError::Network { .. }));
        let full = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n";
        assert!(explain_failure(full).to_string().contains("Free some space"));
        let other = "ERROR: No matching distribution found for slicer-core==0\n";
        assert!(matches!(explain_failure(other), PracticeError::Install { said } if said.contains("slicer-core")));
    }

    /// The environment must hold exactly what the practice Slicer was tested with.
    #[test]
    fn requirements_are_pinned() {
        let text = resources::text("practice/requirements.txt").unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        assert!(lines.len() >= 4);
        assert!(lines.iter().all(|line| line.contains("==")), "{lines:?}");
    }
}
