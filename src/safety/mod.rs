//! What a piece of Python can do, and what the policy says of it, before anything runs.
//!
//! Not a list of bad words: whatever a list does not name would pass. Every expression is followed to where it comes
//! from (module, class, kind of object, local function), and the allow tables in `resources/safety/` say what each
//! named thing needs. What is not known to be harmless is asked about; what cannot be checked is blocked.
//!
//! The judgement is of the text alone. It cannot know what a name holds that the text does not define, so the guard
//! inside Slicer holds the same lines while the code runs.

mod checks;
mod limits;
mod policy;
mod source;
mod syntax;
mod tables;
mod verdict;
mod walk;

pub use policy::Policy;
pub use verdict::{Capability, Finding, UnknownCapability, Verdict, VerdictKind};

use std::time::{Duration, Instant};

use crate::python::{self, LineIndex, Problem};

/// Deeper nesting than this is refused: Python itself gives up soon after, and people write far less.
const DEPTH_LIMIT: usize = 200;
/// Enough for five times `DEPTH_LIMIT` levels in an unoptimised build, whatever the caller's own stack.
const STACK_BYTES: usize = 64 << 20;
/// Longer code is refused: nobody reads that before saying yes.
const LENGTH_LIMIT: usize = 2 << 20;
/// Every text up to here is judged however long it takes, which is well below a second. The verdict on a longer one must
/// be there in time: what is not judged by then is refused.
const LEISURE: usize = 128 << 10;
const TIME_LIMIT: Duration = Duration::from_millis(950);
/// More findings say nothing more to a person.
const FINDING_LIMIT: usize = 200;

/// A finding before the policy has spoken.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Raw {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) capability: Capability,
    pub(crate) grave: bool,
    pub(crate) why: Option<String>,
    pub(crate) instead: Option<String>,
    pub(crate) scope: Option<String>,
    /// What the standard sentence names, where it is not the source text.
    pub(crate) what: Option<String>,
}

/// Judges `code`. Never panics; the time grows with the length of the text.
pub fn validate(code: &str, policy: &Policy) -> Verdict {
    let lines = LineIndex::new(code);
    // The verdict is over all findings; only the list of what is shown is cut, the gravest kept.
    let mut verdict = Verdict::of(judge(code).into_iter().map(|raw| finish(raw, code, &lines, policy)).collect());
    if verdict.findings.len() > FINDING_LIMIT {
        verdict.findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
        verdict.findings.truncate(FINDING_LIMIT);
    }
    verdict
}

/// Judges code as the bytes that Slicer would get. Python decides from the bytes how to decode them, so an encoding
/// line, a byte order mark in the wrong place or a null byte can make it see other text than a reader does.
pub fn validate_bytes(code: &[u8], policy: &Policy) -> Verdict {
    match source::decode(code) {
        Ok(text) => validate(text, policy),
        Err(raw) => {
            let readable = String::from_utf8_lossy(code);
            let lines = LineIndex::new(&readable);
            Verdict::of(vec![finish(*raw, &readable, &lines, policy)])
        }
    }
}

fn judge(code: &str) -> Vec<Raw> {
    if code.len() > LENGTH_LIMIT {
        return vec![source::too_long()];
    }
    let end = (code.len() > LEISURE).then(|| Instant::now() + TIME_LIMIT);
    let mut findings = source::look(code);
    if tables::Tables::get().broken {
        findings.push(source::unreadable(0, "The safety tables of this program cannot be read.".to_owned()));
    }
    if findings.iter().any(source::is_gap) {
        return findings;
    }
    match python::parse(code) {
        Err(error) => findings.push(source::unreadable(0, error.to_string())),
        Ok(tree) => match python::first_problem(&tree, DEPTH_LIMIT) {
            Some(Problem::Syntax(at)) => {
                let line = LineIndex::new(code).place(code, at).0;
                findings.push(source::unreadable(at, format!("The code is not valid Python at line {line}.")));
            }
            Some(Problem::Depth(at)) => {
                findings.push(source::unreadable(at, "The code is nested too deeply to be checked.".to_owned()));
            }
            None => match syntax::look(code, &tree) {
                Some((at, why)) => findings.push(source::unreadable(at, why.to_owned())),
                None => findings.extend(walk_on_own_stack(code, &tree, end)),
            },
        },
    }
    findings.sort_by_key(|f| (f.start, f.capability, std::cmp::Reverse(f.end)));
    findings
}

fn walk_on_own_stack(code: &str, tree: &tree_sitter::Tree, end: Option<Instant>) -> Vec<Raw> {
    let found = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("safety".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || walk::walk(code, tree, end))
            .ok()
            .and_then(|handle| handle.join().ok())
    });
    let found = found.unwrap_or_else(|| Some(vec![source::unreadable(0, "The code could not be checked.".to_owned())]));
    found.unwrap_or_else(|| vec![source::too_long()])
}

fn finish(mut raw: Raw, code: &str, lines: &LineIndex, policy: &Policy) -> Finding {
    let (line, column) = lines.place(code, raw.start);
    let text = shorten(code.get(raw.start..raw.end).unwrap_or(""));
    let what = raw.what.unwrap_or_else(|| text.clone());
    let file = matches!(raw.capability, Capability::ReadFile | Capability::WriteFile);
    if file && raw.scope.as_deref().is_some_and(source::is_secret_path) {
        raw.capability = Capability::Secrets;
    }
    let grave = raw.grave || (file && raw.scope.as_deref().is_some_and(source::is_system_path));
    let verdict = policy.judge(raw.capability, grave, raw.scope.as_deref());
    let mut instead = raw.instead.unwrap_or_else(|| raw.capability.instead().to_owned());
    // What is blocked cannot be allowed once.
    if verdict == VerdictKind::Block {
        instead = instead.replace(", or allow this once.", ".");
    }
    Finding {
        capability: raw.capability,
        line,
        column,
        why: raw.why.unwrap_or_else(|| raw.capability.why(&what)),
        instead,
        verdict,
        text,
        scope: raw.scope,
    }
}

/// One line, at most 80 characters.
fn shorten(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= 80 {
        return line;
    }
    line.chars().take(79).chain(std::iter::once('…')).collect()
}

#[cfg(test)]
mod tests;
