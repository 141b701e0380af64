//! The history on disk: what was acknowledged is there after the process was killed, what is deleted is gone, and what
//! was said is found.

use serde_json::{Value, json};
use slicer_ai_agent::store::{Conversations, Paths, StoreError};

fn open() -> (tempfile::TempDir, Paths, Conversations) {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::new(Some(folder.path().join("data"))).unwrap();
    let history = Conversations::open(&paths.database()).unwrap();
    (folder, paths, history)
}

fn say(history: &Conversations, id: &str, question: &str, pieces: &[&str]) {
    history.append(id, &json!({ "event": "user_message", "turn": 1, "text": question })).unwrap();
    for piece in pieces {
        history.append(id, &json!({ "event": "text_delta", "text": piece })).unwrap();
    }
    history.append(id, &json!({ "event": "finished", "finish": "answer" })).unwrap();
}

fn ids(found: Vec<slicer_ai_agent::store::ConversationSummary>) -> Vec<String> {
    found.into_iter().map(|conversation| conversation.id).collect()
}

/// Events come back in order, as they were, also after the file was opened anew.
#[test]
fn events_come_back_as_they_were() {
    let (_folder, paths, history) = open();
    history.create("a", "First").unwrap();
    let values =
        [json!({ "event": "user_message", "text": "Größe 脑", "turn": 1 }), json!({ "z": 1, "a": [null, 2.5] })];
    for (place, value) in values.iter().enumerate() {
        let (sequence, at_ms) = history.append("a", value).unwrap();
        assert_eq!(sequence, place as i64 + 1);
        assert!(at_ms > 1_700_000_000_000, "{at_ms}");
    }
    drop(history);
    let history = Conversations::open(&paths.database()).unwrap();
    let events = history.events("a").unwrap();
    assert_eq!(events.iter().map(|event| event.value.clone()).collect::<Vec<_>>(), values);
    // The order of keys is kept too: what is exported is what came.
    assert_eq!(events[1].value.to_string(), values[1].to_string());
    let summary = history.get("a").unwrap();
    assert_eq!((summary.title.as_str(), summary.turns, summary.pinned), ("First", 1, false));
    assert!(matches!(history.events("none"), Err(StoreError::NoConversation(_))));
    assert!(matches!(history.append("none", &json!({})), Err(StoreError::NoConversation(_))));
}

/// The list shows pinned ones first and the latest next, and deletion can be taken back until it is made final.
#[test]
fn the_list_is_kept_in_order_and_deletion_can_be_taken_back() {
    let (_folder, paths, history) = open();
    for id in ["a", "b", "c"] {
        history.create(id, id).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(3));
        history.append(id, &json!({ "event": "user_message", "text": "secret plan of b" })).unwrap();
    }
    history.pin("a", true).unwrap();
    history.rename("c", "Renamed").unwrap();
    assert_eq!(ids(history.list(false).unwrap()), ["a", "c", "b"]);
    assert_eq!(history.get("c").unwrap().title, "Renamed");
    history.mark_deleted("b").unwrap();
    assert_eq!(ids(history.list(false).unwrap()), ["a", "c"]);
    assert_eq!(ids(history.list(true).unwrap()), ["a", "c", "b"]);
    history.restore("b").unwrap();
    assert_eq!(history.list(false).unwrap().len(), 3);
    for id in ["a", "b", "c"] {
        history.mark_deleted(id).unwrap();
    }
    assert_eq!(history.purge_deleted().unwrap(), 3);
    assert!(history.list(true).unwrap().is_empty());
    assert!(matches!(history.rename("b", "x"), Err(StoreError::NoConversation(_))));
    drop(history);
    let left = std::fs::read(paths.database()).unwrap();
    assert!(!left.windows(11).any(|bytes| bytes == b"secret plan"), "what was deleted is still in the file");
}

/// A search finds titles, questions and answers, in any case and script, across the pieces of a streamed answer.
#[test]
fn a_search_finds_what_was_said() {
    let (_folder, _paths, history) = open();
    history.create("a", "Liver volume").unwrap();
    say(&history, "a", "Wie GROSS ist das Volumen?", &["The vol", "ume is 5", " µm; 100% of Ärmel"]);
    history.create("b", "Other").unwrap();
    say(&history, "b", "测量肝脏体积", &["draft words"]);
    let search = |text: &str| ids(history.search(text).unwrap());
    assert_eq!(search("volume"), ["a"]);
    assert_eq!(search("liver gross"), ["a"]);
    assert_eq!(search("ärmel"), ["a"]);
    assert_eq!(search("肝脏"), ["b"]);
    assert_eq!(search("100%"), ["a"]);
    assert!(search("100_").is_empty(), "signs of a pattern are plain text here");
    assert!(search("liver draft").is_empty(), "the words must stand in one conversation");
    assert_eq!(search(" ").len(), 2);
    history.mark_deleted("a").unwrap();
    assert!(search("volume").is_empty());
}

/// A turn that was cut off, or still runs, is found as well; when it goes on, no word is lost at the seam.
#[test]
fn a_turn_that_has_not_ended_is_found() {
    let (_folder, _paths, history) = open();
    history.create("a", "").unwrap();
    history.append("a", &json!({ "event": "user_message", "text": "ask" })).unwrap();
    history.append("a", &json!({ "event": "text_delta", "text": "isthmus hippo" })).unwrap();
    assert_eq!(history.search("isthmus").unwrap().len(), 1);
    history.append("a", &json!({ "event": "text_delta", "text": "campus" })).unwrap();
    history.append("a", &json!({ "event": "finished" })).unwrap();
    assert_eq!(history.search("hippocampus").unwrap().len(), 1);
}

/// An older program must not write into a newer format, and a file that is no history is not taken for one.
#[test]
fn a_newer_or_foreign_file_is_refused() {
    let (_folder, paths, history) = open();
    drop(history);
    let raw = rusqlite::Connection::open(paths.database()).unwrap();
    raw.pragma_update(None, "user_version", 999).unwrap();
    drop(raw);
    assert!(matches!(Conversations::open(&paths.database()), Err(StoreError::NewerHistory { found: 999, .. })));
    let foreign = paths.data().join("foreign.sqlite");
    std::fs::write(&foreign, "no database, only text that is long enough to be looked at".repeat(20)).unwrap();
    assert!(matches!(Conversations::open(&foreign), Err(StoreError::Database(_))));
}

/// A window and a command line may write at the same time: no event is lost, no place is given twice.
#[test]
fn two_connections_write_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::new(Some(folder.path().to_owned())).unwrap();
    // The very first start, by several at once, is the hardest: one of them makes the tables.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| Conversations::open(&paths.database()).unwrap());
        }
    });
    let history = Conversations::open(&paths.database()).unwrap();
    history.create("a", "").unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let paths = &paths;
            scope.spawn(move || {
                let own = Conversations::open(&paths.database()).unwrap();
                for number in 0..50 {
                    own.append("a", &json!({ "writer": writer, "number": number })).unwrap();
                }
            });
        }
    });
    let events = history.events("a").unwrap();
    assert_eq!(events.len(), 200);
    assert!(events.iter().enumerate().all(|(place, event)| event.sequence == place as i64 + 1));
}

#[cfg(unix)]
const KILLED: &str = "SLICER_AI_AGENT_TEST_APPENDS_TO";

/// The child of the test below; without its variable it has nothing to do.
#[cfg(unix)]
#[test]
fn child_that_appends_until_it_is_killed() {
    use std::io::Write;
    let Some(file) = std::env::var_os(KILLED) else { return };
    let history = Conversations::open(file.as_ref()).unwrap();
    history.create("a", "").unwrap();
    for number in 0_i64.. {
        let (sequence, _) = history.append("a", &json!({ "number": number, "text": "x".repeat(500) })).unwrap();
        // An acknowledgement that a parent can count on: one write, no buffer.
        std::io::stderr().write_all(format!("{sequence}\n").as_bytes()).unwrap();
    }
}

/// A process that is killed in the middle of writing loses nothing that `append` had acknowledged.
#[cfg(unix)]
#[test]
fn a_killed_process_loses_nothing_that_was_acknowledged() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().unwrap();
    for round in 0..3_usize {
        let file = folder.path().join(format!("history-{round}.sqlite"));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_appends_until_it_is_killed", "--nocapture"])
            .env(KILLED, &file)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut last: i64 = 0;
        let read = |line: Option<std::io::Result<String>>| line?.ok()?.trim().parse::<i64>().ok();
        while last < 40 + 37 * round as i64 {
            last = read(lines.next()).expect("the child acknowledges");
        }
        // `kill` is SIGKILL: the child gets no chance to tidy up.
        child.kill().unwrap();
        child.wait().unwrap();
        // What it acknowledged before it died is still in the pipe.
        while let Some(next) = read(lines.next()) {
            last = next;
        }
        let events = Conversations::open(&file).unwrap().events("a").unwrap();
        assert!(events.len() as i64 >= last, "round {round}: {last} were acknowledged, {} are there", events.len());
        for (place, event) in events.iter().enumerate() {
            assert_eq!((event.sequence, &event.value["number"]), (place as i64 + 1, &Value::from(place)));
        }
    }
}

/// What a person said is nobody else's business on a shared computer.
#[cfg(unix)]
#[test]
fn files_and_folders_belong_to_the_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, paths, history) = open();
    history.create("a", "").unwrap();
    let rights = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for folder in [paths.data().to_owned(), paths.runs(), paths.logs(), paths.practice()] {
        assert_eq!(rights(&folder), 0o700, "{}", folder.display());
    }
    for entry in std::fs::read_dir(paths.data()).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        assert_eq!(rights(&entry.path()), 0o600, "{}", entry.path().display());
    }
}
