//! The practice Slicer's Python environment: made in place, because its scripts hold their own paths and it cannot be
//! moved once it is there.
//!
//! The folder is named by what is to be installed, so a new version of the program makes its own and takes nothing away
//! from one that still runs. Those of other versions stay until a person removes them (they are named
//! `environment-…` in the folder `practice` of the data folder, about 1 GB each). An environment counts as made only
//! when its mark was written last. While one is being made, files `building-<process id>` name the processes that write
//! in it: an unfinished one is made anew only when all of these are gone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::{PracticeError, file_error, hash_of};
use crate::platform;
use crate::resources;

/// Bytes that must be free before the environment is made: it takes about 0.95 GB, and pip unpacks beside it.
const NEEDED_BYTES: u64 = 2_000_000_000;
/// How long a process is waited for that still writes in an unfinished environment. pip needs half a minute.
const BUILDER_LIMIT: Duration = Duration::from_secs(60);
/// How long a process that was killed just now may hold files in the folder that is removed.
const REMOVE_LIMIT: Duration = Duration::from_secs(5);
const MARK: &str = "installed-requirements.txt";
const BUILDING: &str = "building-";

/// What is installed, as pip reads it.
fn requirements() -> &'static str {
    resources::text("practice/requirements.txt").unwrap_or_default()
}

/// The environment that belongs to this version of the program.
pub(super) fn folder_of(practice: &Path) -> PathBuf {
    practice.join(format!("environment-{}", hash_of([requirements().as_bytes()])))
}

/// Its Python, when the environment is complete.
pub(super) fn ready(environment: &Path) -> Option<PathBuf> {
    let python = platform::venv_python(environment);
    let marked = fs::read_to_string(environment.join(MARK)).is_ok_and(|installed| installed == requirements());
    // A Python that this account may not look at is no reason to make the environment anew: only one that is gone is.
    (marked && !matches!(python.try_exists(), Ok(false))).then_some(python)
}

/// Makes the environment if it is not there, and gives its Python. The caller holds the set-up lock.
pub(super) fn make(
    practice: &Path,
    progress: &dyn Fn(&str),
    cancelled: &dyn Fn() -> bool,
) -> Result<PathBuf, PracticeError> {
    let environment = folder_of(practice);
    if let Some(python) = ready(&environment) {
        return Ok(python);
    }
    if let Some(free) = platform::free_bytes(practice)
        && free < NEEDED_BYTES
    {
        return Err(PracticeError::Disk { folder: practice.into(), free: free as f64 / 1e9 });
    }
    let found = platform::find_python_unless(progress, cancelled)?;
    remove_unfinished(&environment, BUILDER_LIMIT, progress, cancelled)?;
    let made = fill(&environment, &found, progress, cancelled);
    if made.is_err()
        && let Err(error) = remove_unfinished(&environment, Duration::ZERO, &|_| (), &|| false)
    {
        // The next set-up removes it; that this one failed is what the person must hear.
        tracing::warn!(%error, "the unfinished environment of the practice Slicer stays");
    }
    made
}

fn fill(
    environment: &Path,
    found: &platform::Python,
    progress: &dyn Fn(&str),
    cancelled: &dyn Fn() -> bool,
) -> Result<PathBuf, PracticeError> {
    progress(&format!("Making a private Python 3.{} environment…", found.minor));
    fs::create_dir_all(environment).map_err(file_error(format!("{} could not be made", environment.display())))?;
    let building = Building::by(environment, std::process::id())?;
    run(Command::new(&found.executable).args(["-m", "venv"]).arg(environment), environment, progress, cancelled)?;
    progress("Downloading the practice Slicer (200 MB, once)…");
    let list = environment.join("requirements.txt");
    fs::write(&list, requirements()).map_err(file_error(format!("{} could not be written", list.display())))?;
    let python = platform::venv_python(environment);
    run(
        Command::new(&python)
            .args(["-m", "pip", "install", "--no-deps", "--disable-pip-version-check", "--progress-bar", "off", "-r"])
            .arg(&list),
        environment,
        progress,
        cancelled,
    )?;
    drop(building);
    let mark = environment.join(MARK);
    fs::write(&mark, requirements()).map_err(file_error(format!("{} could not be written", mark.display())))?;
    progress("The practice Slicer is installed.");
    Ok(python)
}

/// Runs one step, turning pip's lines into progress and its errors into ours.
fn run(
    command: &mut Command,
    environment: &Path,
    progress: &dyn Fn(&str),
    cancelled: &dyn Fn() -> bool,
) -> Result<(), PracticeError> {
    let program = command.get_program().display().to_string();
    let mut building = None;
    // pip tells why it could not reach the index on its standard output.
    let mut notes = String::new();
    let end = platform::run_step(
        command,
        Some(cancelled),
        |pid| building = Building::by(environment, pid).ok(),
        |line| {
            if line.starts_with("Could not fetch") || line.contains("rror") {
                notes.push_str(line);
                notes.push('\n');
            }
            if line.starts_with("Downloading ") || line.starts_with("Installing collected") {
                progress(line);
            }
        },
    );
    drop(building);
    match end.map_err(file_error(format!("{program} could not be run")))? {
        None => Err(PracticeError::Cancelled),
        Some(end) if end.status.success() => Ok(()),
        Some(end) => Err(explain_failure(&format!("{notes}{}", end.errors))),
    }
}

/// The file that tells that a process writes in an environment.
struct Building(PathBuf);

impl Building {
    fn by(environment: &Path, pid: u32) -> Result<Self, PracticeError> {
        let file = environment.join(format!("{BUILDING}{pid}"));
        fs::write(&file, "").map_err(file_error(format!("{} could not be written", file.display())))?;
        Ok(Self(file))
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::debug!(%error, "a building file could not be removed");
        }
    }
}

/// A living process that writes in the environment. This one does not: it holds the set-up lock and has not begun.
fn builder(environment: &Path) -> Option<u32> {
    let entries = fs::read_dir(environment).ok()?.flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix(BUILDING)?.parse().ok())
        .find(|pid| *pid != std::process::id() && platform::is_alive(*pid))
}

/// Removes what an interrupted set-up left, once nobody writes in it any more.
fn remove_unfinished(
    environment: &Path,
    patience: Duration,
    progress: &dyn Fn(&str),
    cancelled: &dyn Fn() -> bool,
) -> Result<(), PracticeError> {
    let deadline = Instant::now() + patience;
    let mut told = false;
    while let Some(pid) = builder(environment) {
        if cancelled() {
            return Err(PracticeError::Cancelled);
        }
        if Instant::now() >= deadline {
            return Err(PracticeError::InUse { folder: environment.into(), pid });
        }
        if !std::mem::replace(&mut told, true) {
            progress(&format!("Waiting for process {pid}, which still writes in the environment…"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let deadline = Instant::now() + REMOVE_LIMIT;
    while environment.exists() {
        match fs::remove_dir_all(environment) {
            Err(error) if Instant::now() >= deadline => {
                return Err(file_error(format!("{} could not be replaced", environment.display()))(error));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(200)),
            Ok(()) => {}
        }
    }
    Ok(())
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
    if ["CERTIFICATE_VERIFY_FAILED", "SSLCertVerificationError", "SSLError"].iter().any(|sign| text.contains(sign)) {
        return PracticeError::Certificate { said };
    }
    if NETWORK.iter().any(|sign| text.contains(sign)) {
        return PracticeError::Network { said };
    }
    PracticeError::Install { said }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unfinished(practice: &Path, builder: u32) -> PathBuf {
        let environment = folder_of(practice);
        fs::create_dir_all(environment.join("lib")).unwrap();
        fs::write(environment.join(format!("building-{builder}")), "").unwrap();
        environment
    }

    fn remove(environment: &Path, cancelled: bool) -> Result<(), PracticeError> {
        remove_unfinished(environment, Duration::from_millis(150), &|_| (), &|| cancelled)
    }

    /// A person without a network must read that the network is missing, not a pip backtrace.
    #[test]
    fn failures_are_told_apart() {
        let offline = "WARNING: Retrying … Failed to establish a new connection: [Errno -3] Temporary failure in name resolution\nERROR: Could not find a version that satisfies the requirement vtk==9.6.2\nERROR: No matching distribution found for vtk==9.6.2\n";
        assert!(matches!(explain_failure(offline), PracticeError::Network { .. }));
        let intercepted = "Could not fetch URL: There was a problem confirming the ssl certificate: Max retries exceeded (Caused by SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]')))\nERROR: No matching distribution found for vtk==9.6.2\n";
        assert!(explain_failure(intercepted).to_string().contains("PIP_CERT"));
        let full = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n";
        assert!(explain_failure(full).to_string().contains("Free some space"));
        let other = "ERROR: No matching distribution found for slicer-core==0\n";
        assert!(matches!(explain_failure(other), PracticeError::Install { said } if said.contains("slicer-core")));
    }

    /// The environment must hold exactly what the practice Slicer was tested with.
    #[test]
    fn requirements_are_pinned() {
        let lines: Vec<&str> =
            requirements().lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        assert!(lines.len() >= 4);
        assert!(lines.iter().all(|line| line.contains("==")), "{lines:?}");
    }

    /// An environment is ready only with its mark, written for these very requirements, and with its Python.
    #[test]
    fn only_a_marked_environment_is_ready() {
        let practice = tempfile::tempdir().unwrap();
        let environment = folder_of(practice.path());
        let python = platform::venv_python(&environment);
        fs::create_dir_all(python.parent().unwrap()).unwrap();
        fs::write(&python, "").unwrap();
        assert!(!super::super::is_set_up(practice.path()), "without a mark");
        fs::write(environment.join(MARK), "vtk==1\n").unwrap();
        assert!(!super::super::is_set_up(practice.path()), "with the mark of something else");
        fs::write(environment.join(MARK), requirements()).unwrap();
        assert!(super::super::is_set_up(practice.path()));
        assert_eq!(ready(&environment), Some(python.clone()));
        fs::remove_file(python).unwrap();
        assert!(!super::super::is_set_up(practice.path()), "without its Python");
    }

    /// What another process (also pip, left behind by a killed set-up) still writes must not be pulled from under it.
    #[test]
    #[cfg(unix)]
    fn an_environment_is_kept_while_somebody_builds_it() {
        let practice = tempfile::tempdir().unwrap();
        let mut builder = platform::ChildGuard(Command::new("sleep").arg("30").spawn().unwrap());
        let environment = unfinished(practice.path(), builder.0.id());
        let error = remove(&environment, false).unwrap_err();
        assert!(matches!(error, PracticeError::InUse { pid, .. } if pid == builder.0.id()), "{error}");
        assert!(matches!(remove(&environment, true), Err(PracticeError::Cancelled)));
        assert!(environment.join("lib").exists());
        builder.0.kill().unwrap();
        builder.0.wait().unwrap();
        remove(&environment, false).unwrap();
        assert!(!environment.exists());
    }

    /// Process ids come again: a file with our own id was left by an earlier process, as this one has not begun.
    #[test]
    fn a_file_with_our_own_id_is_stale() {
        let practice = tempfile::tempdir().unwrap();
        let environment = unfinished(practice.path(), std::process::id());
        remove(&environment, false).unwrap();
        assert!(!environment.exists());
    }

    /// A set-up that is stopped ends soon with its own error, leaves nothing half-made, and touches no other version.
    #[test]
    #[cfg(unix)]
    fn a_stopped_set_up_leaves_other_versions_alone() {
        let practice = tempfile::tempdir().unwrap();
        let other = practice.path().join("environment-000000000000");
        fs::create_dir_all(&other).unwrap();
        let environment = folder_of(practice.path());
        fs::create_dir_all(&environment).unwrap();
        let began = Instant::now();
        let cancelled = || began.elapsed() > Duration::from_millis(200);
        let ended = run(Command::new("sleep").arg("30"), &environment, &|_| (), &cancelled);
        assert!(matches!(ended, Err(PracticeError::Cancelled)));
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(builder(&environment), None, "its building file is gone");
        remove(&environment, false).unwrap();
        assert!(other.exists());
    }
}
