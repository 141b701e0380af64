//! The Python on the machine: found, asked for its version, and asked whether it can make a virtual environment.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::packages::{self, PackageError};

/// The oldest and newest minor version of Python 3 for which slicer-core has wheels.
const MINORS: std::ops::RangeInclusive<u32> = 10..=13;

/// A Python that can make a virtual environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Python {
    pub executable: PathBuf,
    /// Minor version of Python 3.
    pub minor: u32,
}

/// Why there is no usable Python.
#[derive(Debug, thiserror::Error)]
pub enum PythonError {
    #[error(
        "No Python 3.10 to 3.13 that can make virtual environments was found{seen}. Install one (python.org, or your package manager), then try again"
    )]
    NotFound {
        /// What was found instead, with a leading " (…)", or empty.
        seen: String,
    },
    #[error(transparent)]
    Package(#[from] PackageError),
}

/// Where a virtual environment keeps its interpreter.
pub fn venv_python(environment: &Path) -> PathBuf {
    if cfg!(windows) { environment.join("Scripts").join("python.exe") } else { environment.join("bin").join("python") }
}

/// Finds a Python that slicer-core supports and that can make virtual environments. On Debian as root what is missing
/// is installed; `progress` then gets a line.
///
/// # Errors
/// [`PythonError`] with what to install.
pub fn find_python(progress: &dyn Fn(&str)) -> Result<Python, PythonError> {
    find_python_unless(progress, &|| false)
}

/// As [`find_python`]; an installation is stopped when `cancelled` says so, see [`packages::ensure_unless`].
///
/// # Errors
/// [`PythonError`], also [`PackageError::Cancelled`].
pub fn find_python_unless(progress: &dyn Fn(&str), cancelled: &dyn Fn() -> bool) -> Result<Python, PythonError> {
    let mut seen = Vec::new();
    if let Some(found) = search(&mut seen) {
        return Ok(found);
    }
    if seen.is_empty() && cfg!(target_os = "linux") {
        packages::install_one("python", progress, cancelled)?;
    } else if seen.iter().any(|candidate| candidate.supported) && cfg!(target_os = "linux") {
        packages::install_one("python-venv", progress, cancelled)?;
    }
    look_for_python()
}

/// As [`find_python`], but installs nothing.
///
/// # Errors
/// [`PythonError::NotFound`] with what was found instead.
pub fn look_for_python() -> Result<Python, PythonError> {
    let mut seen = Vec::new();
    search(&mut seen).ok_or_else(|| {
        let list: Vec<String> = seen.into_iter().map(|candidate| candidate.description).collect();
        PythonError::NotFound {
            seen: if list.is_empty() { String::new() } else { format!(" (found: {})", list.join(", ")) },
        }
    })
}

/// A Python that exists and cannot be used.
struct Unusable {
    description: String,
    /// The version is right; only the module for virtual environments is missing.
    supported: bool,
}

fn search(unusable: &mut Vec<Unusable>) -> Option<Python> {
    let mut candidates: Vec<(String, Vec<&str>)> = Vec::new();
    if let Some(chosen) = std::env::var_os("SLICER_AI_AGENT_PYTHON") {
        candidates.push((chosen.to_string_lossy().into_owned(), vec![]));
    }
    if cfg!(windows) {
        candidates.push(("py".into(), vec!["-3"]));
        candidates.push(("python".into(), vec![]));
    } else {
        candidates.push(("python3".into(), vec![]));
        candidates.extend([11, 12, 13, 10].map(|minor| (format!("python3.{minor}"), vec![])));
        candidates.push(("python".into(), vec![]));
    }
    candidates.iter().find_map(|(command, arguments)| probe(command, arguments, unusable))
}

const PROBE: &str = "import sys
try:
    import venv, ensurepip
    able = 1
except ImportError:
    able = 0
print(sys.version_info[0], sys.version_info[1], able, sys.executable)";

fn probe(command: &str, arguments: &[&str], unusable: &mut Vec<Unusable>) -> Option<Python> {
    let output = Command::new(command)
        .args(arguments)
        .args(["-c", PROBE])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut words = text.trim().splitn(4, ' ');
    let major: u32 = words.next()?.parse().ok()?;
    let minor: u32 = words.next()?.parse().ok()?;
    let able = words.next()? == "1";
    let executable = PathBuf::from(words.next()?);
    let supported = major == 3 && MINORS.contains(&minor);
    if supported && able {
        return Some(Python { executable, minor });
    }
    let lack = if supported { " without venv" } else { "" };
    unusable.push(Unusable { description: format!("{} {major}.{minor}{lack}", executable.display()), supported });
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command that is not Python, or not there, is passed over without an error.
    #[test]
    fn what_is_no_python_is_passed_over() {
        let mut unusable = Vec::new();
        assert_eq!(probe("no-such-python-anywhere", &[], &mut unusable), None);
        assert!(unusable.is_empty());
    }

    /// Protects set-up: the Python that is found is of a version that slicer-core has wheels for.
    #[test]
    fn a_found_python_is_supported() {
        let mut unusable = Vec::new();
        if let Some(python) = search(&mut unusable) {
            assert!(MINORS.contains(&python.minor));
            assert!(python.executable.exists());
        } else {
            assert!(unusable.iter().all(|candidate| !candidate.description.is_empty()));
        }
    }
}
