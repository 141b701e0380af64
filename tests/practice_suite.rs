//! The practice Slicer's own tests (Python, in `resources/practice/tests`), run in the environment that the program makes:
//! that set-up itself is what every other test stands on.

#[path = "support/practice.rs"]
mod practice;

use std::net::TcpListener;

use slicer_ai_agent::slicer::practice::{PracticeError, PracticeOptions, is_set_up, set_up_with, start};

#[test]
fn the_practice_slicer_passes_its_own_tests() {
    let output = practice::home()
        .python()
        .args(["-m", "unittest", "discover", "-s", "tests"])
        .output()
        .expect("the environment's Python runs");
    let text = String::from_utf8_lossy(&output.stderr);
    let ran = text.lines().find(|line| line.starts_with("Ran ")).unwrap_or_default().to_owned();
    println!("{ran}");
    assert!(output.status.success(), "{text}");
    assert!(ran.contains(" tests in "), "no tests were found: {text}");
}

/// The exit code of the real practice Slicer for a taken port must be the one that is turned into a sentence.
#[test]
fn a_taken_port_is_told_in_a_sentence() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = taken.local_addr().expect("its address").port();
    let options = PracticeOptions { port, ..PracticeOptions::default() };
    let error = start(practice::home(), &options).expect_err("the port is taken");
    assert!(matches!(error, PracticeError::PortTaken { port: told } if told == port), "{error}");
    assert!(is_set_up(&practice::shared_data().join("practice")));
}

/// Two practice Slicers of one process run side by side, each with its own port and log.
#[test]
fn two_run_side_by_side() {
    let options = PracticeOptions { no_data: true, ..PracticeOptions::default() };
    let (mut first, mut second) = (practice::start_with(&options), practice::start_with(&options));
    assert_ne!(first.url, second.url);
    assert!(first.is_running() && second.is_running());
}

/// A set-up that nobody wants any more ends at once and leaves nothing that passes for an environment.
#[test]
fn a_set_up_that_is_stopped_leaves_no_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let stopped = set_up_with(folder.path(), &|line| eprintln!("{line}"), &|| true);
    assert!(matches!(stopped, Err(PracticeError::Cancelled)), "{stopped:?}");
    assert!(!is_set_up(folder.path()));
    let names: Vec<_> = std::fs::read_dir(folder.path()).expect("it is there").flatten().collect();
    assert!(names.iter().all(|entry| !entry.file_name().to_string_lossy().starts_with("environment-")), "{names:?}");
}
