//! Ring 1 against kinds of code: every way to reach a dangerous thing is tried with every dangerous thing, and programs
//! as people write them for Slicer are not held up.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use slicer_ai_agent::safety::{Policy, VerdictKind, validate_bytes};

#[derive(Deserialize)]
struct Entry {
    id: String,
    /// The mildest verdict that is right: `allow` means that nothing else is.
    least: VerdictKind,
    code: String,
}

/// What can be reached: lines before, the object, its member, and the mildest verdict.
const TARGETS: &[(&str, &str, &str, VerdictKind)] = &[
    ("", "slicer.util", "quit", VerdictKind::Block),
    ("", "slicer.app", "exit", VerdictKind::Block),
    ("import os\n", "os", "system", VerdictKind::Block),
    ("", "slicer.mrmlScene", "Clear", VerdictKind::Ask),
    ("", "slicer.util.mainWindow()", "close", VerdictKind::Block),
    // Naming the settings asks already; `clear` is also what lists have.
    ("", "qt.QSettings()", "clear", VerdictKind::Ask),
    ("import pathlib\n", "pathlib.Path('/tmp/x')", "unlink", VerdictKind::Block),
    ("", "slicer.dicomDatabase", "removePatient", VerdictKind::Block),
];

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    fs::read_to_string(path).expect("the set is part of the tests")
}

fn entries(name: &str) -> Vec<Entry> {
    read(name).lines().map(|line| serde_json::from_str(line).expect("one entry a line")).collect()
}

fn verdict(code: &str) -> VerdictKind {
    validate_bytes(code.as_bytes(), &Policy::default()).verdict
}

/// A dangerous member is found whichever way leads to it.
#[test]
fn every_way_to_every_target_is_seen() {
    let ways: Vec<String> = serde_json::from_str(&read("safety_ways.json")).expect("a list of programs");
    assert!(ways.len() > 100, "the ways were cut short");
    let mut missed = Vec::new();
    for way in &ways {
        for (before, object, member, least) in TARGETS {
            let (head, tail) = member.split_at(2);
            let code =
                way.replace("HEAD", head).replace("TAIL", tail).replace("OBJECT", object).replace("MEMBER", member);
            let code = format!("{before}{code}\n");
            if verdict(&code) < *least {
                missed.push(code);
            }
        }
    }
    assert!(missed.is_empty(), "{} were missed:\n{}", missed.len(), missed.join("\n---\n"));
}

/// One snippet a kind of harm.
#[test]
fn every_kind_of_harm_is_seen() {
    let set = entries("safety_hostile_kinds.jsonl");
    assert!(set.len() > 400, "the set was cut short");
    let missed: Vec<_> = set.iter().filter(|e| verdict(&e.code) < e.least).map(|e| (&e.id, &e.code)).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Programs as people write them for Slicer run unasked.
#[test]
fn everyday_programs_are_not_held_up() {
    let set = entries("safety_harmless_kinds.jsonl");
    assert!(set.len() >= 150, "the set was cut short");
    for entry in &set {
        let verdict = validate_bytes(entry.code.as_bytes(), &Policy::default());
        assert_eq!(verdict.verdict, VerdictKind::Allow, "{}: {}\n{:#?}", entry.id, entry.code, verdict.findings);
    }
}
