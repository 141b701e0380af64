//! Protects the cut of the crate into rooms: which room may use which. The table is the test's data; a new edge is a
//! decision, made here and in ARCHITECTURE.md, not an accident of an import.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Room → rooms it may use. `resources` (embedded data) and `platform` (operating systems) are leaves without a row of
/// their own in most lists; where they may be used is named like everything else.
const EDGES: &[(&str, &[&str])] = &[
    (
        "cli",
        &[
            "ui",
            "engine",
            "agent",
            "llm",
            "slicer",
            "bridge",
            "safety",
            "knowledge",
            "workflow",
            "python",
            "store",
            "platform",
            "resources",
        ],
    ),
    ("ui", &["engine", "store"]),
    ("engine", &["agent", "slicer", "knowledge", "llm", "store", "safety", "resources"]),
    ("agent", &["llm", "knowledge", "safety", "slicer", "resources"]),
    ("llm", &[]),
    ("slicer", &["bridge", "platform", "resources"]),
    ("bridge", &["resources"]),
    ("safety", &["python", "resources"]),
    ("knowledge", &["python", "store", "resources"]),
    ("workflow", &["python", "slicer", "llm", "safety", "resources"]),
    ("python", &[]),
    ("store", &[]),
    ("platform", &["resources"]),
    ("resources", &[]),
];

/// Crates that must not be seen outside their rooms: wire formats, the window, SQL.
const CONFINED: &[(&str, &[&str])] = &[
    ("egui", &["ui"]),
    ("eframe", &["ui"]),
    ("egui_commonmark", &["ui"]),
    ("rusqlite", &["store", "knowledge"]),
    ("rmcp", &["bridge", "slicer"]),
    // In knowledge for the download of embedding models, which is no conversation with a model.
    ("reqwest", &["llm", "bridge", "knowledge"]),
    ("rten", &["knowledge"]),
    ("ort", &["knowledge"]),
    ("tokenizers", &["knowledge"]),
    ("axum", &["bridge"]),
    ("keyring", &["store"]),
    ("tree_sitter", &["python", "safety", "knowledge"]),
    ("tree_sitter_cpp", &["knowledge"]),
    ("tree_sitter_python", &["python"]),
    ("clap", &["cli"]),
    ("anyhow", &["cli"]),
];

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

/// Room of a file below `src`: its first folder, or its name.
fn room_of(source: &Path, file: &Path) -> String {
    let relative = file.strip_prefix(source).unwrap();
    let first = relative.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// The code of a file without comments, and with its unit tests, which are held to the same edges.
fn code_of(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The rooms that a text names by `crate::room` or in `crate::{room…}`.
fn rooms_used(code: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        // `$crate::` and longer names that only end so.
        if code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == '$') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 1;
            let mut word = String::new();
            for character in group.chars() {
                match character {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    _ => {}
                }
                if depth == 1 && (character.is_alphanumeric() || character == '_') {
                    word.push(character);
                } else if depth <= 1 && !word.is_empty() {
                    rooms.insert(std::mem::take(&mut word));
                }
                if depth == 0 {
                    break;
                }
            }
        } else {
            rooms.insert(
                rest.chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect(),
            );
        }
    }
    rooms
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

#[test]
fn rooms_use_only_what_they_may() {
    let allowed: BTreeMap<&str, &[&str]> = EDGES.iter().copied().collect();
    let source = source();
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    assert!(files.len() > 30, "only {} files were found: the test looks in the wrong place", files.len());
    let mut wrong = Vec::new();
    for file in &files {
        let room = room_of(&source, file);
        if room == "lib" || room == "main" {
            continue;
        }
        let may = allowed.get(room.as_str()).unwrap_or_else(|| panic!("room {room} is not in the table"));
        for used in rooms_used(&code_of(file)) {
            if allowed.contains_key(used.as_str()) && used != room && !may.contains(&used.as_str()) {
                wrong.push(format!("{} uses {used}", file.strip_prefix(&source).unwrap().display()));
            }
        }
    }
    assert!(wrong.is_empty(), "edges that the table does not allow:\n{}", wrong.join("\n"));
}

#[test]
fn wire_formats_stay_in_their_rooms() {
    let source = source();
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    let mut wrong = Vec::new();
    for file in &files {
        let room = room_of(&source, file);
        let code = code_of(file);
        for (name, rooms) in CONFINED {
            let used = [format!("{name}::"), format!("use {name};")].iter().any(|sign| {
                code.match_indices(sign.as_str()).any(|(at, _)| {
                    !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == ':')
                })
            });
            if used && !rooms.contains(&room.as_str()) {
                wrong.push(format!("{} uses {name}", file.strip_prefix(&source).unwrap().display()));
            }
        }
    }
    assert!(wrong.is_empty(), "crates outside their rooms:\n{}", wrong.join("\n"));
}

/// The code of a file up to its unit tests.
fn product_code(file: &Path) -> String {
    let code = code_of(file);
    let end = ["#[cfg(test)]", "#[cfg(all(test"].iter().filter_map(|mark| code.find(mark)).min();
    code[..end.unwrap_or(code.len())].to_owned()
}

fn is_test_file(file: &Path) -> bool {
    file.file_stem().is_some_and(|stem| stem == "tests" || stem.to_string_lossy().ends_with("_tests"))
}

/// No Python reaches Slicer without a verdict: only the places that ask for one before may make a run.
#[test]
fn only_checked_code_runs() {
    const MAY_RUN: [&str; 3] = ["agent/attempt.rs", "cli/run.rs", "workflow/run.rs"];
    let source = source();
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    let mut seen = BTreeSet::new();
    for file in &files {
        let name = file.strip_prefix(&source).unwrap().to_string_lossy().replace('\\', "/");
        let code = product_code(file);
        if name.starts_with("slicer/") || is_test_file(file) || !code.contains("RunRequest {") {
            continue;
        }
        assert!(MAY_RUN.contains(&name.as_str()), "{name} makes a run; only {MAY_RUN:?} may");
        let verdict = code.find("safety::validate").expect("a place that runs code asks for a verdict");
        assert!(verdict < code.find("RunRequest {").unwrap(), "{name}: the verdict comes before the run");
        seen.insert(name);
    }
    assert_eq!(seen.len(), MAY_RUN.len(), "a place that runs code was not found: the test looks for the wrong thing");
}

/// Errors are handled, not unwrapped.
#[test]
fn nothing_is_unwrapped_outside_tests() {
    let source = source();
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| !is_test_file(file)) {
        for (number, line) in product_code(file).lines().enumerate() {
            if line.contains(".unwrap()") || line.contains(".expect(") {
                wrong.push(format!("{}:{}", file.strip_prefix(&source).unwrap().display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "unwrapped outside tests:\n{}", wrong.join("\n"));
}

/// The finder itself must find what it is there for.
#[test]
fn edges_are_found() {
    let code = "use crate::llm::Client;\nuse crate::{store, slicer::{Slicer, agent}};\nlet x = crate::engine::start();";
    let found: Vec<String> = rooms_used(code).into_iter().collect();
    assert_eq!(found, ["engine", "llm", "slicer", "store"]);
}

/// ARCHITECTURE.md shows the same rooms as the code.
#[test]
fn the_architecture_page_names_every_room() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).unwrap();
    for (room, _) in EDGES {
        assert!(page.contains(&format!("`{room}")), "ARCHITECTURE.md does not name the room {room}");
    }
}
