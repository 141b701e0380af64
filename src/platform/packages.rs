//! System packages: which are missing, and installing them where the program may (root on Debian and its kin). Elsewhere
//! the person gets one sentence with the command to type. The table is data: `resources/system_packages.toml`.

use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use super::process::run_step;
use crate::resources;

/// Why a system package could not be brought.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error("{what} is missing. Install it with: {command}")]
    Missing { what: String, command: String },
    #[error("{what} is missing and could not be installed: {reason}. Try it yourself with: {command}")]
    InstallFailed { what: String, command: String, reason: String },
    #[error("the installation of system packages was stopped")]
    Cancelled,
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
    ensure_unless(ids, progress, &|| false)
}

/// As [`ensure`], stopped when `cancelled` says so. Only the download is broken off: unpacking takes seconds, and a
/// package manager that is killed while it unpacks leaves a system that must be repaired by hand.
///
/// # Errors
/// As [`ensure`], and [`PackageError::Cancelled`].
pub fn ensure_unless(ids: &[&str], progress: &dyn Fn(&str), cancelled: &dyn Fn() -> bool) -> Result<(), PackageError> {
    let needs = missing_needs(ids)?;
    install(&needs, progress, cancelled, |needs| needs.iter().filter(|need| !is_met(need)).cloned().collect())
}

/// The command that would bring what is missing of `ids`, for a person to type; `None` when nothing is.
pub fn install_command(ids: &[&str]) -> Option<String> {
    let needs = missing_needs(ids).ok().filter(|needs| !needs.is_empty())?;
    Some(command_for(&needs, Installer::on_this_machine(), is_root()))
}

/// As [`ensure_unless`] for one need whose absence was found out in another way than by the table.
pub(super) fn install_one(id: &str, progress: &dyn Fn(&str), cancelled: &dyn Fn() -> bool) -> Result<(), PackageError> {
    let needs: Vec<Need> = table()?.into_iter().filter(|need| need.id == id).collect();
    install(&needs, progress, cancelled, |_| Vec::new())
}

/// The package managers that are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Installer {
    Apt,
    Dnf,
    Pacman,
}

impl Installer {
    fn on_this_machine() -> Option<Self> {
        [("apt-get", Self::Apt), ("dnf", Self::Dnf), ("pacman", Self::Pacman)]
            .into_iter()
            .find(|(command, _)| find_command(command).is_some())
            .map(|(_, installer)| installer)
    }
}

fn package_names(needs: &[Need], pick: fn(&Need) -> &Vec<String>) -> Vec<String> {
    let mut names: Vec<String> = needs.iter().flat_map(|need| pick(need).clone()).collect();
    names.sort();
    names.dedup();
    names
}

fn command_for(needs: &[Need], installer: Option<Installer>, is_root: bool) -> String {
    let debian = package_names(needs, |need| &need.debian).join(" ");
    let command = match installer {
        Some(Installer::Apt) => format!("apt-get install -y {debian}"),
        Some(Installer::Dnf) => format!("dnf install {}", package_names(needs, |need| &need.fedora).join(" ")),
        Some(Installer::Pacman) => format!("pacman -S {}", package_names(needs, |need| &need.arch).join(" ")),
        None => return format!("your package manager (Debian names: {debian})"),
    };
    // Root needs no sudo, and a bare container has none.
    if is_root { command } else { format!("sudo {command}") }
}

/// The Debian packages to install, or the sentence for the person where this process may not install.
fn decide(needs: &[Need], installer: Option<Installer>, is_root: bool) -> Result<Vec<String>, PackageError> {
    if is_root && installer == Some(Installer::Apt) {
        return Ok(package_names(needs, |need| &need.debian));
    }
    let what = joined(needs.iter().map(|need| need.what.clone()));
    Err(PackageError::Missing { what, command: command_for(needs, installer, is_root) })
}

fn install(
    needs: &[Need],
    progress: &dyn Fn(&str),
    cancelled: &dyn Fn() -> bool,
    still_missing: impl Fn(&[Need]) -> Vec<Need>,
) -> Result<(), PackageError> {
    if needs.is_empty() {
        return Ok(());
    }
    let names = decide(needs, Installer::on_this_machine(), is_root())?;
    let what = joined(needs.iter().map(|need| need.what.clone()));
    progress(&format!("Installing {what} ({})…", names.join(" ")));
    let command = command_for(needs, Some(Installer::Apt), true);
    let failed = |reason: String| PackageError::InstallFailed { what: what.clone(), command: command.clone(), reason };
    match apt_install(&names, cancelled) {
        Ok(()) => {}
        Err(AptError::Cancelled) => return Err(PackageError::Cancelled),
        Err(AptError::Failed(reason)) => return Err(failed(reason)),
    }
    let left = still_missing(needs);
    if left.is_empty() {
        return Ok(());
    }
    Err(failed(format!("{} is still missing afterwards", joined(left.into_iter().map(|need| need.what)))))
}

enum AptError {
    Cancelled,
    Failed(String),
}

/// Tries with the package lists as they are, and fetches new lists only when that fails: a bare machine has none.
fn apt_install(names: &[String], cancelled: &dyn Fn() -> bool) -> Result<(), AptError> {
    const INSTALL: [&str; 4] = ["install", "-y", "-q", "--no-install-recommends"];
    let download = || apt(&[&INSTALL[..], &["--download-only"]].concat(), names, Some(cancelled));
    match download() {
        Err(AptError::Failed(_)) => {
            apt(&["update", "-q"], &[], Some(cancelled))?;
            download()?;
        }
        other => other?,
    }
    // From here on it runs to its end, see `ensure_unless`.
    apt(&INSTALL, names, None)?;
    if cancelled() { Err(AptError::Cancelled) } else { Ok(()) }
}

fn apt(arguments: &[&str], names: &[String], cancelled: Option<&dyn Fn() -> bool>) -> Result<(), AptError> {
    let end = run_step(&mut apt_command(arguments, names), cancelled, drop, |_| ());
    let Some(end) = end.map_err(|error| AptError::Failed(error.to_string()))? else { return Err(AptError::Cancelled) };
    if end.status.success() {
        return Ok(());
    }
    let said = end.errors.lines().rfind(|line| line.starts_with("E:")).or(end.errors.lines().last());
    Err(AptError::Failed(said.unwrap_or("no reason given").into()))
}

/// An `apt-get` that asks nobody anything: not about services to restart, and not about a changed settings file, which
/// stays as it is. Another program that holds the package lock for a moment is common, so it is waited for.
fn apt_command(arguments: &[&str], names: &[String]) -> Command {
    let mut command = Command::new("apt-get");
    command
        .args(["-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Options::=--force-confold"])
        .args(arguments)
        .args(names)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("NEEDRESTART_MODE", "a");
    command
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

    fn needs(ids: &[&str]) -> Vec<Need> {
        table().unwrap().into_iter().filter(|need| ids.contains(&need.id.as_str())).collect()
    }

    /// Who may not install reads what to type on their system; nothing is tried in their name.
    #[test]
    fn who_may_not_install_gets_the_command() {
        let needs = needs(&["python", "python-venv"]);
        let said = |installer, is_root| decide(&needs, installer, is_root).unwrap_err().to_string();
        let apt = said(Some(Installer::Apt), false);
        assert!(apt.starts_with("Python 3.10 to 3.13, Python's module for virtual environments"), "{apt}");
        assert!(apt.ends_with("is missing. Install it with: sudo apt-get install -y python3 python3-venv"), "{apt}");
        assert!(said(Some(Installer::Dnf), false).ends_with("with: sudo dnf install python3"));
        assert!(said(Some(Installer::Pacman), false).ends_with("with: sudo pacman -S python"));
        assert!(said(None, false).contains("your package manager"));
        // Root of a system without apt: installing there is left to the person, who needs no sudo.
        assert!(said(Some(Installer::Dnf), true).ends_with("with: dnf install python3"));
        assert!(said(None, true).contains("your package manager"));
    }

    /// Root on Debian and its kin gets the packages installed, each once.
    #[test]
    fn root_with_apt_installs() {
        let names = decide(&needs(&["pictures", "mesa-driver"]), Some(Installer::Apt), true).unwrap();
        assert_eq!(names, ["libegl-mesa0", "libegl1", "libgl1-mesa-dri"]);
    }

    /// A question that nobody can answer would hold the set-up for ever.
    #[test]
    fn apt_asks_nothing() {
        let command = apt_command(&["install", "-y"], &["libegl1".into()]);
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert!(words.windows(2).any(|pair| pair == ["-o", "Dpkg::Options::=--force-confold"]), "{words:?}");
        assert_eq!(words.last().map(String::as_str), Some("libegl1"));
        for (name, value) in [("DEBIAN_FRONTEND", "noninteractive"), ("NEEDRESTART_MODE", "a")] {
            assert!(command.get_envs().any(|pair| pair == (name.as_ref(), Some(value.as_ref()))), "{name}");
        }
    }

    /// A command that exists is found, one that does not is not.
    #[test]
    #[cfg(unix)]
    fn commands_are_found_on_the_path() {
        assert!(find_command("sh").is_some());
        assert!(find_command("no-such-command-anywhere").is_none());
    }
}
