//! Ring 1 against the script repository of the Slicer documentation, the style in which programs for Slicer are written.
//!
//! The programs stay where they are: `tests/data/safety_script_repository.jsonl` names each by file, line and heading, and
//! says what it does (`pure`: must run unasked; `asks`: must ask and not be refused; `not_agent`: either). To run it, get
//! the Slicer source and say where it lies, as a work tree or as a bare git folder:
//!
//!     SLICER_AI_AGENT_SLICER_SOURCE=DIR cargo test --test safety_script_repository -- --ignored --nocapture
//!
//! `SLICER_AI_AGENT_SCRIPT_LABELS=FILE` takes another file of labels.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;
use slicer_ai_agent::safety::{Policy, VerdictKind, validate_bytes};

#[derive(Deserialize)]
struct Label {
    id: String,
    file: String,
    line: usize,
    heading: String,
    label: String,
    accept: Vec<String>,
}

/// The text of `file` in a work tree, or at the newest commit of a git folder.
fn page(source: &Path, file: &str) -> Option<String> {
    if let Ok(text) = std::fs::read_to_string(source.join(file)) {
        return Some(text);
    }
    let shown =
        Command::new("git").arg("--git-dir").arg(source).args(["show", &format!("HEAD:{file}")]).output().ok()?;
    shown.status.success().then(|| String::from_utf8_lossy(&shown.stdout).into_owned())
}

/// The program in the fenced block that starts at `line` (1-based), without the indentation of the fence.
fn block(page: &str, line: usize) -> Option<String> {
    let lines: Vec<&str> = page.lines().collect();
    let fence = lines.get(line.checked_sub(1)?)?;
    let indent = fence.len() - fence.trim_start().len();
    if !fence.trim_start().starts_with("```") {
        return None;
    }
    let body = lines[line..].iter().take_while(|l| !l.trim_start().starts_with("```"));
    Some(body.map(|l| l.get(indent..).unwrap_or("")).collect::<Vec<_>>().join("\n"))
}

#[test]
#[ignore = "needs the Slicer source, which is not part of this repository"]
fn the_script_repository_is_judged_as_people_would() {
    let Some(source) = std::env::var_os("SLICER_AI_AGENT_SLICER_SOURCE").map(PathBuf::from) else {
        panic!("SLICER_AI_AGENT_SLICER_SOURCE does not say where the Slicer source is");
    };
    let labels = std::env::var_os("SLICER_AI_AGENT_SCRIPT_LABELS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/safety_script_repository.jsonl"),
        PathBuf::from,
    );
    let text = std::fs::read_to_string(labels).expect("the labels can be read");
    let mut pages: HashMap<String, String> = HashMap::new();
    let (mut right, mut refused) = (HashMap::<String, (usize, usize)>::new(), Vec::new());
    let mut times: Vec<Duration> = Vec::new();
    for line in text.lines() {
        let label: Label = serde_json::from_str(line).expect("one label a line");
        let page = pages
            .entry(label.file.clone())
            .or_insert_with(|| page(&source, &label.file).unwrap_or_else(|| panic!("{} is not there", label.file)));
        let code = block(page, label.line).unwrap_or_else(|| panic!("no block at {}:{}", label.file, label.line));
        let start = Instant::now();
        let verdict = validate_bytes(code.as_bytes(), &Policy::default());
        times.push(start.elapsed());
        let is = match verdict.verdict {
            VerdictKind::Allow => "pure",
            VerdictKind::Ask => "asks",
            VerdictKind::Block => "refused",
        };
        let fine = label.label == "not_agent" || label.accept.iter().any(|a| a == is);
        let count = right.entry(label.label.clone()).or_default();
        count.0 += usize::from(fine);
        count.1 += 1;
        if !fine {
            println!(
                "{} {} ({}): {is}, not {}: {:?}",
                label.id, label.heading, label.file, label.label, verdict.findings
            );
        }
        if is == "refused" && label.label != "not_agent" {
            refused.push(label.id);
        }
    }
    times.sort_unstable();
    println!("{right:?}; median {:?}, p95 {:?}", times[times.len() / 2], times[times.len() * 95 / 100]);
    let share = |label: &str| right.get(label).map_or(100, |(fine, all)| 100 * fine / all.max(&1));
    assert!(refused.is_empty(), "refused: {refused:?}");
    assert!(share("pure") >= 99 && share("asks") >= 97, "{right:?}");
}
