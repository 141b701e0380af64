//! What a run is held to inside Slicer: nothing but what the check found and somebody allowed.
//!
//! The check before the run and the guard inside it watch the same things in different ways. What the check saw and the
//! policy or the person allowed is granted, as narrowly as it is known: the folder of a named file, or every file when
//! the name is made while the code runs. Everything else is refused by the guard, so what the check missed still does
//! not happen unseen.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::resources;
use crate::safety::{Capability, Finding, Policy};
use crate::slicer::{EVERYWHERE, RunGrants};

/// The grants for a program that is about to run with these findings, all of which are allowed.
///
/// `None` means that the run is not held: installing software needs processes, files and the network at places that
/// nobody can name beforehand.
pub fn grants(findings: &[Finding], policy: &Policy) -> Option<RunGrants> {
    let mut grants = RunGrants { modules: Some(MODULES.known.clone()), ..RunGrants::default() };
    grants.read.extend(policy.readable_paths.iter().map(|path| path.to_string_lossy().into_owned()));
    for finding in findings {
        match finding.capability {
            Capability::Install => return None,
            Capability::ReadFile => add(&mut grants.read, finding.scope.as_deref()),
            Capability::WriteFile => add(&mut grants.write, finding.scope.as_deref()),
            Capability::Network | Capability::SampleData => grants.network = true,
            Capability::Quit => grants.quit = true,
            _ => {}
        }
        let modules = grants.modules.get_or_insert_default();
        match (finding.capability, &finding.scope) {
            (Capability::UnknownModule, Some(module)) => modules.push(module.clone()),
            (Capability::UnknownModule, None) => modules.push(EVERYWHERE.to_owned()),
            (capability, _) => modules.extend(MODULES.asking.get(&capability).into_iter().flatten().cloned()),
        }
    }
    Some(grants)
}

/// What the tables of the check say of modules.
struct Modules {
    /// Those that may be imported without a word.
    known: Vec<String>,
    /// Those that need a capability to be imported.
    asking: BTreeMap<Capability, Vec<String>>,
}

static MODULES: LazyLock<Modules> = LazyLock::new(|| {
    let mut modules = Modules { known: Vec::new(), asking: BTreeMap::new() };
    let files = resources::folder("safety").into_iter().flat_map(|folder| folder.files());
    for text in files.filter_map(|file| file.contents_utf8()) {
        // A table that cannot be read stops the check itself; here it only grants nothing.
        let Ok(table) = toml::from_str::<Table>(text) else { continue };
        modules.known.extend(table.space.into_iter().flat_map(|space| words(&space.name)));
        for (capability, names) in table.imports {
            if let Ok(capability) = Capability::from_str(capability.trim_end_matches('!')) {
                modules.asking.entry(capability).or_default().extend(words(&names));
            }
        }
    }
    // A module whose members are told and whose import asks all the same: the import decides.
    modules.known.retain(|name| !modules.asking.values().flatten().any(|asking| asking == name));
    modules.known.sort();
    modules.known.dedup();
    modules
});

fn words(names: &str) -> Vec<String> {
    names.split_whitespace().map(str::to_owned).collect()
}

/// The part of a table that tells of modules.
#[derive(Deserialize)]
struct Table {
    #[serde(default)]
    imports: BTreeMap<String, String>,
    #[serde(default)]
    space: Vec<Space>,
}

#[derive(Deserialize)]
struct Space {
    #[serde(default)]
    name: String,
}

/// The folder of a named file: its neighbours belong to it (a header and its voxels, an object and its material).
fn add(places: &mut Vec<String>, scope: Option<&str>) {
    let folder = scope.map(Path::new).filter(|path| path.is_absolute()).and_then(Path::parent);
    let place = match folder {
        // A file directly below the root would open everything.
        Some(folder) if folder.parent().is_some() => folder.to_string_lossy().into_owned(),
        Some(_) => scope.unwrap_or(EVERYWHERE).to_owned(),
        None => EVERYWHERE.to_owned(),
    };
    if !places.contains(&place) {
        places.push(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::safety::VerdictKind;

    fn finding(capability: Capability, scope: Option<&str>) -> Finding {
        Finding {
            capability,
            line: 1,
            column: 1,
            text: String::new(),
            why: String::new(),
            instead: String::new(),
            verdict: VerdictKind::Ask,
            scope: scope.map(str::to_owned),
        }
    }

    #[test]
    fn a_harmless_program_is_granted_nothing_but_known_modules() {
        let granted = grants(&[], &Policy::default()).unwrap();
        let modules = granted.modules.clone().unwrap();
        assert_eq!(granted, RunGrants { modules: granted.modules.clone(), ..RunGrants::default() });
        let has = |name: &str| modules.iter().any(|module| module == name);
        assert!(has("numpy") && has("slicer") && has("vtk") && has("json"), "{modules:?}");
        assert!(!has("ctypes") && !has("subprocess") && !has("socket") && !has("builtins") && !has(EVERYWHERE));
        assert_eq!(grants(&[finding(Capability::Gui, None)], &Policy::default()), Some(granted));
    }

    #[test]
    fn a_module_that_somebody_allowed_may_be_imported() {
        let found = [finding(Capability::UnknownModule, Some("pandas")), finding(Capability::Network, None)];
        let modules = grants(&found, &Policy::default()).unwrap().modules.unwrap();
        assert!(modules.iter().any(|name| name == "pandas") && modules.iter().any(|name| name == "socket"));
        assert!(!modules.iter().any(|name| name == "ctypes"));
    }

    #[test]
    fn what_is_named_is_granted_and_no_more() {
        let found = [
            finding(Capability::ReadFile, Some("/data/study/ct.nrrd")),
            finding(Capability::ReadFile, Some("/data/study/mr.nrrd")),
            finding(Capability::WriteFile, Some("/out.csv")),
            finding(Capability::SampleData, Some("CTChest")),
        ];
        let granted = grants(&found, &Policy::default()).unwrap();
        assert_eq!((granted.read, granted.write), (vec!["/data/study".to_owned()], vec!["/out.csv".to_owned()]));
        assert!(granted.network && !granted.process);
    }

    #[test]
    fn a_name_that_is_made_while_the_code_runs_opens_every_file_of_its_kind() {
        for scope in [None, Some("ct.nrrd")] {
            let granted = grants(&[finding(Capability::ReadFile, scope)], &Policy::default()).unwrap();
            assert_eq!((granted.read, granted.write.len()), (vec![EVERYWHERE.to_owned()], 0));
        }
    }

    #[test]
    fn approved_folders_may_be_read_and_an_installation_is_not_held() {
        let policy = Policy { readable_paths: vec!["/data".into()], ..Policy::default() };
        assert_eq!(grants(&[], &policy).unwrap().read, ["/data"]);
        assert_eq!(grants(&[finding(Capability::Install, None)], &policy), None);
    }
}
