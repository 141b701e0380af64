//! System packages: which are missing, and installing them where the program may (root on Debian and its kin). Elsewhere
//! the person gets one sentence with the command to type. The table is data: `resources/system_packages.toml`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::resources;

/// Why a system package could not be brought.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error("{what} is missing. Install it with: {command}")]
    Missing { what: String, command: String },
    #[error("{what} is missing and could not be installed: {reason}. Try it yourself with: {command}")]
    InstallFailed { what: String, command: String, reason: String },
    #[error("the table of system packages is damaged: {0}")]
    Table(String),
}

#[derive(Debug, Clone, Deserialize)]
struct Need {
    id: String,
    what: String,
    #[serde(default)]
    any_library: Vec<String>,
    #[serde(default)]
    any_command: Vec<String>,
    debian: Vec<String>,
    fedora: Vec<String>,
    arch: Vec<String>,
}

#[derive(Deserialize)]
struct Table {
    need: Vec<Need>,
}

fn table() -> Result<Vec<Need>, PackageError> {
    let text =
        resources::text("system_packages.toml").ok_or_else(|| PackageError::Table("it is not embedded".into()))?;
    let table: Table = toml::from_str(text).map_err(|error| PackageError::Table(error.to_string()))?;
    Ok(table.need)
}

/// Which of the needs named by `ids` are not met. Only Linux is asked: macOS and Windows bring all of this themselves.
pub fn missing(ids: &[&str]) -> Result<Vec<String>, PackageError> {
    Ok(missing_needs(ids)?.into_iter().map(|need| need.id).collect())
}

fn missing_needs(ids: &[&str]) -> Result<Vec<Need>, PackageError> {
    if !cfg!(target_os = "linux") {
        return Ok(Vec::new());
    }
    let table = table()?;
    if let Some(unknown) = ids.iter().find(|id| !table.iter().any(|need| need.id == **id)) {
        return Err(PackageError::Table(format!("there is no need called {unknown}")));
    }
    Ok(table.into_iter().filter(|need| ids.contains(&need.id.as_str()) && !is_met(need)).collect())
}

fn is_met(need: &Need) -> bool {
    // SAFETY: these are well-known system libraries; loading them runs only their own initialisers, as drawing with
    // them would.
    let library = need.any_library.iter().any(|name| unsafe { libloading::Library::new(name).is_ok() });
    library || need.any_command.iter().any(|name| find_command(name).is_some())
}

/// The file that `name` on the search path stands for.
pub(super) fn find_command(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Makes sure that the needs named by `ids` are met: installs what is missing when this process may, else says in one
/// sentence what to type. `progress` gets one line before anything is installed.
///
/// # Errors
/// [`PackageError::Missing`] when it may not install, [`PackageError::InstallFailed`] when the installer failed.
pub fn ensure(ids: &[&str], progress: &dyn Fn(&str)) -> Result<(), PackageError> {
    let needs = missing_needs(ids)?;
    install(&needs, progress, |needs| needs.iter().filter(|need| !is_met(need)).cloned().collect())
}

/// The command that would bring what is missing of `ids`, for a person to type; `None` when nothing is.
pub fn install_command(ids: &[&str]) -> Option<String> {
    let needs = missing_needs(ids).ok().filter(|needs| !needs.is_empty())?;
    Some(command_for(&needs))
}

/// As [`ensure`] for one need whose absence was found out in another way than by the table.
pub(super) fn install_one(id: &str, progress: &dyn Fn(&str)) -> Result<(), PackageError> {
    let needs: Vec<Need> = table()?.into_iter().filter(|need| need.id == id).collect();
    install(&needs, progress, |_| Vec::new())
}

fn package_names(needs: &[Need], pick: fn(&Need) -> &Vec<String>) -> Vec<String> {
    let mut names: Vec<String> = needs.iter().flat_map(|need| pick(need).clone()).collect();
    names.sort();
    names.dedup();
    names
}

fn command_for(needs: &[Need]) -> String {
    let debian = package_names(needs, |need| &need.debian).join(" ");
    if find_command("apt-get").is_some() {
        format!("sudo apt-get install -y {debian}")
    } else if find_command("dnf").is_some() {
        format!("sudo dnf install {}", package_names(needs, |need| &need.fedora).join(" "))
    } else if find_command("pacman").is_some() {
        format!("sudo pacman -S {}", package_names(needs, |need| &need.arch).join(" "))
    } else {
        format!("your package manager (Debian names: {debian})")
    }
}

fn install(
    needs: &[Need],
    progress: &dyn Fn(&str),
    still_missing: impl Fn(&[Need]) -> Vec<Need>,
) -> Result<(), PackageError> {
    if needs.is_empty() {
        return Ok(());
    }
    let what = joined(needs.iter().map(|need| need.what.clone()));
    let command = command_for(needs);
    if find_command("apt-get").is_none() || !is_root() {
        return Err(PackageError::Missing { what, command });
    }
    let names = package_names(needs, |need| &need.debian);
    progress(&format!("Installing {what} ({})…", names.join(" ")));
    let failed = |reason: String| PackageError::InstallFailed { what: what.clone(), command: command.clone(), reason };
    apt_install(&names).map_err(failed)?;
    let left = still_missing(needs);
    if left.is_empty() {
        return Ok(());
    }
    Err(failed(format!("{} is still missing afterwards", joined(left.into_iter().map(|need| need.what)))))
}

/// Tries with the package lists as they are, and fetches new lists only when that fails: a bare machine has none.
fn apt_install(names: &[String]) -> Result<(), String> {
    let apt = |arguments: &[&str], names: &[String]| -> Result<(), String> {
        let output = Command::new("apt-get")
            .args(arguments)
            .args(names)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        Err(text
            .lines()
            .rfind(|line| line.starts_with("E:"))
            .or(text.lines().last())
            .unwrap_or("no reason given")
            .into())
    };
    // A machine where another program holds the package lock for a moment is common: wait rather than fail.
    let install = ["-o", "DPkg::Lock::Timeout=300", "install", "-y", "-q", "--no-install-recommends"];
    apt(&install, names).or_else(|_| {
        apt(&["-o", "DPkg::Lock::Timeout=300", "update", "-q"], &[])?;
        apt(&install, names)
    })
}

#[cfg(unix)]
fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

fn joined(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects the table: every need can be detected, and names a package for each family of systems.
    #[test]
    fn every_need_is_complete() {
        for need in table().unwrap() {
            assert!(!need.what.is_empty(), "{} has no description", need.id);
            for packages in [&need.debian, &need.fedora, &need.arch] {
                assert!(!packages.is_empty(), "{} names no package", need.id);
            }
        }
    }

    /// A need that nobody defined is a programming error and must not pass as met.
    #[test]
    #[cfg(target_os = "linux")]
    fn an_unknown_need_is_an_error() {
        assert!(missing(&["no-such-need"]).is_err());
    }

    /// A command that exists is found, one that does not is not.
    #[test]
    #[cfg(unix)]
    fn commands_are_found_on_the_path() {
        assert!(find_command("sh").is_some());
        assert!(find_command("no-such-command-anywhere").is_none());
    }
}
