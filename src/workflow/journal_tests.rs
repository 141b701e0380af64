//! A journal that is cut off anywhere gives the run as it was, or says that it cannot.

use serde_json::json;

use super::*;

fn package() -> Package {
    Package::embedded("ThresholdSegmentation").unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Some events of a run, written as the runner does.
fn written(folder: &std::path::Path) -> (std::path::PathBuf, Vec<State>) {
    let package = package();
    let mut journal = Journal::create(folder, &package).unwrap();
    let mut states = vec![begin()];
    let events = [
        Event::Start,
        Event::Chose { value: json!("Sample data") },
        Event::Said { id: "m".into(), text: "what is this? größe \"頭\"\n".into() },
        Event::ConnectionLost,
        Event::Resumed { missing: vec![], taken_back: false },
    ];
    for event in events {
        journal.append(&event).unwrap();
        let state = update(&package.workflow, states.last().unwrap().clone(), event).0;
        states.push(state);
    }
    (journal.path().to_owned(), states)
}

/// The program may be killed while it writes: at every byte, the run comes back as of the last whole line.
#[test]
fn a_journal_cut_anywhere_gives_the_state_of_its_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let (path, states) = written(folder.path());
    let whole = std::fs::read(&path).unwrap();
    let head = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    let package = package();
    for length in head..=whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let lines = whole[..length].iter().filter(|&&byte| byte == b'\n').count();
        let (mut journal, state) = Journal::open(&path, &package).unwrap();
        assert_eq!(state, states[lines - 1], "cut at byte {length}");
        journal.append(&Event::Cancel).unwrap();
        drop(journal);
        assert_eq!(Journal::open(&path, &package).unwrap().1.phase, Phase::Cancelled, "it can be written on");
    }
}

#[test]
fn what_was_changed_is_not_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = written(folder.path());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("Sample data", "A volume of")).unwrap();
    assert!(matches!(Journal::open(&path, &package()), Err(JournalError::Damaged { line: 3, .. })));
    std::fs::write(&path, text.replace(&package().hash, &"0".repeat(64))).unwrap();
    assert!(matches!(Journal::open(&path, &package()), Err(JournalError::Damaged { line: 1, .. })));
    std::fs::write(&path, "").unwrap();
    assert!(matches!(Journal::open(&path, &package()), Err(JournalError::Damaged { .. })));
}

/// Two programs must not drive one run; runs that have not ended are found.
#[test]
fn an_unfinished_run_is_found_and_belongs_to_one_program() {
    let folder = tempfile::tempdir().unwrap();
    let (path, states) = written(folder.path());
    let package_of = |id: &str| Package::embedded(id).ok();
    let found = Journal::unfinished(folder.path(), package_of);
    assert_eq!((found.len(), &found[0].2), (1, states.last().unwrap()));
    let (mut journal, _) = Journal::open(&path, &package()).unwrap();
    assert!(matches!(Journal::open(&path, &package()), Err(JournalError::InUse { .. })));
    journal.append(&Event::Cancel).unwrap();
    drop(journal);
    assert!(Journal::unfinished(folder.path(), package_of).is_empty());
}
