//! What a run is held to inside Slicer: nothing but what the check found and somebody allowed.
//!
//! The check before the run and the guard inside it watch the same things in different ways. What the check saw and the
//! policy or the person allowed is granted, as narrowly as it is known: the folder of a named file, or every file when
//! the name is made while the code runs. Everything else is refused by the guard, so what the check missed still does
//! not happen unseen.

use std::path::Path;

use crate::safety::{Capability, Finding, Policy};
use crate::slicer::{EVERYWHERE, RunGrants};

/// The grants for a program that is about to run with these findings, all of which are allowed.
///
/// `None` means that the run is not held: installing software needs processes, files and the network at places that
/// nobody can name beforehand.
pub(super) fn grants(findings: &[Finding], policy: &Policy) -> Option<RunGrants> {
    let mut grants = RunGrants::default();
    grants.read.extend(policy.readable_paths.iter().map(|path| path.to_string_lossy().into_owned()));
    for finding in findings {
        match finding.capability {
            Capability::Install => return None,
            Capability::ReadFile => add(&mut grants.read, finding.scope.as_deref()),
            Capability::WriteFile => add(&mut grants.write, finding.scope.as_deref()),
            Capability::Network | Capability::SampleData => grants.network = true,
            _ => {}
        }
    }
    Some(grants)
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
    fn a_harmless_program_is_granted_nothing() {
        assert_eq!(grants(&[], &Policy::default()), Some(RunGrants::default()));
        let gui = grants(&[finding(Capability::Gui, None)], &Policy::default());
        assert_eq!(gui, Some(RunGrants::default()));
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
