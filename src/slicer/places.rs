//! Where 3D Slicer may be installed on this computer, newest first. What the places are called is data
//! (`resources/slicer_places.toml`); nothing is started to find out: a version is read from names and files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::platform;
use crate::resources;

/// How an installed Slicer was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlicerOrigin {
    /// Named by the person, in the settings or on the command line.
    Setting,
    /// By its name in PATH.
    Path,
    /// In one of the usual folders.
    Folder,
    /// It runs.
    Process,
}

/// An installed Slicer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledSlicer {
    pub executable: PathBuf,
    /// For example `5.8.1`, or `5.9.0-2025-04-08` for a preview; `None` when neither names nor files tell.
    pub version: Option<String>,
    pub origin: SlicerOrigin,
}

/// The places of one operating system.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct System {
    commands: Vec<String>,
    files: Vec<String>,
    inside: Vec<String>,
    processes: Vec<String>,
    launcher: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Ports {
    first: u16,
    last: u16,
}

#[derive(Debug, Clone, Deserialize)]
struct Table {
    ports: Ports,
    linux: System,
    macos: System,
    windows: System,
}

/// Where to look, and with whose eyes: home folder, PATH and variables can be another's in tests.
#[derive(Debug, Clone)]
pub struct Places {
    system: System,
    ports: (u16, u16),
    home: Option<PathBuf>,
    path: Option<OsString>,
    variable: fn(&str) -> Option<OsString>,
}

impl Places {
    /// The places of this computer, preferring the person's own table in `<data_folder>/resources/`.
    ///
    /// # Errors
    /// What is wrong with the table.
    pub fn of_this_computer(data_folder: &Path) -> Result<Self, String> {
        let text = resources::text_with_override(data_folder, "slicer_places.toml")
            .ok_or_else(|| "the program lacks its file slicer_places.toml".to_owned())?;
        let table: Table =
            toml::from_str(&text).map_err(|error| format!("slicer_places.toml is damaged: {}", error.message()))?;
        let system = match std::env::consts::OS {
            "macos" => table.macos,
            "windows" => table.windows,
            _ => table.linux,
        };
        Ok(Self {
            system,
            ports: (table.ports.first, table.ports.last),
            home: std::env::home_dir(),
            path: std::env::var_os("PATH"),
            variable: |name| std::env::var_os(name),
        })
    }

    /// The ports on which a Slicer's Web Server is looked for, and started.
    pub fn ports(&self) -> std::ops::RangeInclusive<u16> {
        self.ports.0..=self.ports.1
    }

    /// All installed Slicers, newest version first; the one that the person named comes before all others. Each file is
    /// named once, however many ways lead to it.
    pub fn installed(&self, named: Option<&Path>) -> Vec<InstalledSlicer> {
        let mut found: Vec<InstalledSlicer> = Vec::new();
        let mut seen: Vec<PathBuf> = Vec::new();
        let candidates = named
            .and_then(|path| self.executable(path))
            .map(|path| (path, SlicerOrigin::Setting))
            .into_iter()
            .chain(self.running().into_iter().map(|path| (path, SlicerOrigin::Process)))
            .chain(self.in_path().into_iter().map(|path| (path, SlicerOrigin::Path)))
            .chain(self.in_folders().into_iter().map(|path| (path, SlicerOrigin::Folder)));
        for (executable, origin) in candidates {
            let same = executable.canonicalize().unwrap_or_else(|_| executable.clone());
            if !seen.contains(&same) {
                let version = version_of(&same);
                seen.push(same);
                found.push(InstalledSlicer { executable, version, origin });
            }
        }
        found.sort_by_key(|one| {
            (one.origin != SlicerOrigin::Setting, std::cmp::Reverse(one.version.as_deref().map(numbers)))
        });
        found
    }

    /// The executable that a person means by this path: itself, or the one in this installation folder (or app bundle).
    pub fn executable(&self, path: &Path) -> Option<PathBuf> {
        if path.is_dir() {
            return self.system.inside.iter().map(|inside| path.join(inside)).find(|file| is_executable(file));
        }
        is_executable(path).then(|| path.to_owned())
    }

    /// Whether this is the name of a running Slicer's process. Linux cuts the names that it tells after 15 characters.
    pub fn is_process_name(&self, name: &str) -> bool {
        self.system.processes.iter().any(|one| one == name || (name.len() == 15 && one.starts_with(name)))
    }

    fn running(&self) -> Vec<PathBuf> {
        let launcher = |program: platform::RunningProgram| {
            let folder = program.executable.parent()?;
            // Without `..` in it: people read it.
            let file = folder.join(&self.system.launcher).canonicalize().ok()?;
            is_executable(&file).then_some(file)
        };
        platform::running_programs(&self.system.processes).into_iter().filter_map(launcher).collect()
    }

    fn in_path(&self) -> Vec<PathBuf> {
        let folders =
            self.path.as_ref().map(|path| std::env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
        let files = folders.iter().flat_map(|folder| self.system.commands.iter().map(|name| folder.join(name)));
        files.filter(|file| file.is_absolute() && is_executable(file)).collect()
    }

    fn in_folders(&self) -> Vec<PathBuf> {
        self.system.files.iter().flat_map(|pattern| self.matching(pattern)).filter(|file| is_executable(file)).collect()
    }

    /// Where a pattern begins.
    fn root(&self, name: &str) -> Option<PathBuf> {
        match name {
            "~" => self.home.clone(),
            "" => Some(PathBuf::from("/")),
            _ => {
                let variable = name.strip_prefix('%')?.strip_suffix('%')?;
                let mut folder = (self.variable)(variable).filter(|value| !value.is_empty())?;
                // A drive alone (`C:`) means its current folder; its root is what people mean.
                folder.push(std::path::MAIN_SEPARATOR_STR);
                Some(folder.into())
            }
        }
    }

    /// The existing paths that a pattern stands for.
    fn matching(&self, pattern: &str) -> Vec<PathBuf> {
        let mut parts = pattern.split('/');
        let mut paths: Vec<PathBuf> = parts.next().and_then(|name| self.root(name)).into_iter().collect();
        for part in parts {
            paths = paths.iter().flat_map(|folder| children(folder, part)).collect();
        }
        paths
    }
}

/// The entries of `folder` that a part of a pattern stands for.
fn children(folder: &Path, part: &str) -> Vec<PathBuf> {
    if !part.contains('*') {
        let path = folder.join(part);
        return if path.exists() { vec![path] } else { Vec::new() };
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| fits(name, part)))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// Whether a name fits a pattern in which `*` stands for any text.
fn fits(name: &str, pattern: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;

    file.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

/// The version of an installed Slicer: from the name of its folder, from its property list (macOS), or from the name of
/// its folder of modules.
fn version_of(executable: &Path) -> Option<String> {
    let folder = executable.parent()?;
    let property_list = folder.parent().map(|contents| contents.join("Info.plist"));
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    name.as_deref()
        .and_then(version_in)
        .or_else(|| version_in_property_list(&std::fs::read_to_string(property_list?).ok()?))
        .or_else(|| {
            let names = children(&folder.join("lib"), "Slicer-*");
            names.iter().find_map(|path| version_in(&path.file_name()?.to_string_lossy()))
        })
}

/// A version in a name such as `Slicer-5.8.1-linux-amd64` or `Slicer 5.9.0-2025-04-08`.
fn version_in(name: &str) -> Option<String> {
    let start = name.find(|character: char| character.is_ascii_digit())?;
    let rest = &name[start..];
    let end = rest.find(|character: char| !(character.is_ascii_digit() || character == '.')).unwrap_or(rest.len());
    let number = rest[..end].trim_end_matches('.');
    if !number.contains('.') {
        return None;
    }
    let date = rest[end..].get(..11).filter(|date| {
        date.char_indices().all(|(at, character)| match at {
            0 | 5 | 8 => character == '-',
            _ => character.is_ascii_digit(),
        })
    });
    Some(format!("{number}{}", date.unwrap_or_default()))
}

fn version_in_property_list(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("<key>CFBundleShortVersionString</key>")?;
    let (_, value) = rest.split_once("<string>")?;
    version_in(value.split_once("</string>")?.0)
}

/// The numbers of a version, for comparing: 5.10.0 is newer than 5.9.0.
fn numbers(version: &str) -> Vec<u64> {
    version.split(|character: char| !character.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program(folder: &Path, file: &str) -> PathBuf {
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn linux(home: &Path, path: &str) -> Places {
        let table: Table = toml::from_str(resources::text("slicer_places.toml").unwrap()).unwrap();
        let mut places = Places {
            system: table.linux,
            ports: (table.ports.first, table.ports.last),
            home: Some(home.to_owned()),
            path: Some(path.into()),
            variable: |_| None,
        };
        // Only what this test has put there.
        places.system.files.retain(|pattern| pattern.starts_with('~'));
        places.system.processes.clear();
        places
    }

    /// The newest one is what a person expects to be started; 5.10 is newer than 5.9 and than a preview of 5.9.
    #[test]
    fn the_newest_comes_first_and_each_once() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path();
        program(folder, "Slicer-5.9.0-2025-04-08-linux-amd64/Slicer");
        program(folder, "Downloads/Slicer-5.10.0-linux-amd64/Slicer");
        let old = program(folder, "Slicer-5.2.2-linux-amd64/Slicer");
        std::fs::create_dir_all(folder.join("Slicer-5.11.0-linux-amd64")).unwrap();
        std::fs::create_dir_all(folder.join("bin")).unwrap();
        std::os::unix::fs::symlink(&old, folder.join("bin/Slicer")).unwrap();
        let places = linux(folder, folder.join("bin").to_str().unwrap());
        let versions = |list: &[InstalledSlicer]| {
            list.iter().map(|one| one.version.clone().unwrap_or_default()).collect::<Vec<_>>()
        };
        let found = places.installed(None);
        assert_eq!(versions(&found), ["5.10.0", "5.9.0-2025-04-08", "5.2.2"]);
        assert_eq!(found[2].origin, SlicerOrigin::Path);
        // The person's own choice goes before a newer one.
        let chosen = places.installed(Some(&folder.join("Slicer-5.2.2-linux-amd64")));
        assert_eq!(versions(&chosen), ["5.2.2", "5.10.0", "5.9.0-2025-04-08"]);
        assert_eq!((chosen[0].origin, &chosen[0].executable), (SlicerOrigin::Setting, &old));
    }

    /// A bundle keeps its version in its property list, a build from source in the name of its folder of modules.
    #[test]
    fn versions_are_read_without_starting_anything() {
        let home = tempfile::tempdir().unwrap();
        let bundle = program(home.path(), "Slicer.app/Contents/MacOS/Slicer");
        let list = "<dict><key>CFBundleShortVersionString</key>\n <string>5.8.1</string></dict>";
        std::fs::write(home.path().join("Slicer.app/Contents/Info.plist"), list).unwrap();
        assert_eq!(version_of(&bundle).as_deref(), Some("5.8.1"));
        let built = program(home.path(), "build/Slicer");
        std::fs::create_dir_all(home.path().join("build/lib/Slicer-5.6")).unwrap();
        assert_eq!(version_of(&built).as_deref(), Some("5.6"));
        for (name, version) in [
            ("Slicer 5.8.1", Some("5.8.1")),
            ("Slicer-5.9.0-2025-04-08-linux-amd64", Some("5.9.0-2025-04-08")),
            ("Slicer3D", None),
            ("Slicer", None),
        ] {
            assert_eq!(version_in(name).as_deref(), version, "{name}");
        }
    }

    /// The table is readable and has something for every system.
    #[test]
    fn every_system_has_its_places() {
        let table: Table = toml::from_str(resources::text("slicer_places.toml").unwrap()).unwrap();
        for system in [&table.linux, &table.macos, &table.windows] {
            assert!(!system.commands.is_empty() && !system.files.is_empty() && !system.inside.is_empty());
            assert!(!system.processes.is_empty() && !system.launcher.is_empty());
            assert!(system.files.iter().all(|file| file.starts_with(['~', '/', '%'])), "{:?}", system.files);
        }
        assert!(table.ports.first <= table.ports.last);
    }

    /// A pattern may begin at a variable, as they do on Windows; without its value it stands for nothing.
    #[test]
    fn patterns_begin_at_variables() {
        let home = tempfile::tempdir().unwrap();
        program(home.path(), "slicer.org/Slicer 5.8.1/Slicer.exe");
        let mut places = linux(home.path(), "");
        places.system.files = vec!["%LOCALAPPDATA%/slicer.org/Slicer */Slicer.exe".into()];
        assert!(places.installed(None).is_empty());
        places.variable = |_| Some(OsString::new());
        assert!(places.installed(None).is_empty());
        places.variable = |name| (name == "SLICER_TEST_PLACE").then(|| std::env::temp_dir().into_os_string());
        let inside = home.path().strip_prefix(std::env::temp_dir()).unwrap().to_str().unwrap();
        places.system.files = vec![format!("%SLICER_TEST_PLACE%/{inside}/slicer.org/Slicer */Slicer.exe")];
        assert_eq!(places.installed(None)[0].version.as_deref(), Some("5.8.1"));
    }

    #[test]
    fn stars_stand_for_any_text() {
        for (name, pattern, yes) in [
            ("Slicer-5.8.1-linux-amd64", "Slicer-*", true),
            ("Slicer", "Slicer*", true),
            ("PrusaSlicer-2", "Slicer-*", false),
            ("Slicer-5.8.app", "Slicer*.app", true),
            ("Slicer.app", "Slicer*.app", true),
            ("Slicer", "Slicer-*", false),
            ("Slicer-5", "Slicer", false),
        ] {
            assert_eq!(fits(name, pattern), yes, "{name} {pattern}");
        }
    }
}
