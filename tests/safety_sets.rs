//! Ring 1 against sets of code: hostile code never runs unasked, harmless code is not held up, and no text whatever
//! makes the check fail or wait.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde::Deserialize;
use slicer_ai_agent::safety::{Policy, Verdict, VerdictKind, validate, validate_bytes};

#[derive(Deserialize)]
struct Entry {
    id: String,
    code: String,
    #[serde(default)]
    min_verdict: String,
    #[serde(default)]
    accept: Vec<String>,
}

fn entries(name: &str) -> Vec<Entry> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let text = fs::read_to_string(path).expect("the set is part of the tests");
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).expect("one entry a line"))
        .collect()
}

fn judge(code: &str) -> Verdict {
    validate_bytes(code.as_bytes(), &Policy::default())
}

/// Nothing in the hostile set runs unasked, and nearly all that must be refused is refused.
#[test]
fn hostile_code_never_runs_unasked() {
    let set = entries("safety_malicious.jsonl");
    assert!(set.len() > 200, "the set was cut short");
    let mut allowed = Vec::new();
    let (mut refuse, mut refused, mut soft) = (0, 0, Vec::new());
    for entry in &set {
        let verdict = judge(&entry.code);
        if verdict.verdict == VerdictKind::Allow {
            allowed.push(&entry.id);
        }
        assert_ne!(verdict.findings.is_empty(), verdict.verdict != VerdictKind::Allow, "{}", entry.id);
        if entry.min_verdict == "refuse" {
            refuse += 1;
            if verdict.verdict == VerdictKind::Block {
                refused += 1;
            } else {
                soft.push(&entry.id);
            }
        }
    }
    assert!(allowed.is_empty(), "run unasked: {allowed:?}");
    assert!(refused * 100 >= refuse * 97, "{refused} of {refuse} refused; only asked about: {soft:?}");
}

/// Words that frighten a simple filter are no reason to ask.
#[test]
fn near_misses_are_not_held_up() {
    for entry in entries("safety_near_miss.jsonl") {
        let verdict = judge(&entry.code);
        let fine = match verdict.verdict {
            VerdictKind::Allow => true,
            VerdictKind::Ask => entry.accept.iter().any(|a| a == "asks"),
            VerdictKind::Block => false,
        };
        assert!(fine, "{}: {:?}", entry.id, verdict.findings);
    }
}

/// Deep and long texts are answered, and never with a yes when they could not be read to the end.
#[test]
fn absurd_texts_are_answered_in_time() {
    let deep = 60_000;
    let cases = [
        format!("x = {}1{}", "(".repeat(deep), ")".repeat(deep)),
        format!("x = {}1", "not ".repeat(deep)),
        format!("x = {}", "lambda: ".repeat(deep) + "1"),
        format!("x = a{}", ".b()".repeat(deep)),
        format!("x = 1{}", " + 1".repeat(deep)),
        "(".repeat(deep),
        "class A(A):\n x = A\nA.y\n".repeat(200),
    ];
    for code in cases {
        let start = Instant::now();
        let verdict = judge(&code);
        assert_ne!(verdict.verdict, VerdictKind::Allow, "{}", &code[..40]);
        assert!(start.elapsed() < Duration::from_secs(20), "{}", &code[..40]);
    }
    // Long but plain code is allowed.
    let long = "node = slicer.util.getNode('MRHead')\nprint(node.GetName())\n".repeat(500);
    assert_eq!(judge(&long).verdict, VerdictKind::Allow);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Arbitrary text, and arbitrary bytes, give a verdict.
    #[test]
    fn no_text_breaks_the_check(text in any::<String>(), bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let verdict = validate(&text, &Policy::default());
        prop_assert!(verdict.findings.iter().all(|f| f.line >= 1 && f.column >= 1));
        validate_bytes(&bytes, &Policy::default());
    }

    /// Text put together from pieces of Python gets deeper into the check than random characters.
    #[test]
    fn no_mix_of_python_breaks_the_check(pieces in proptest::collection::vec(0usize..PIECES.len(), 0..60)) {
        let text: String = pieces.iter().map(|i| PIECES[*i]).collect();
        validate(&text, &Policy::default());
    }
}

const PIECES: &[&str] = &[
    "a",
    "b",
    "os",
    "slicer",
    ".",
    "util",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "=",
    ":=",
    ":",
    ",",
    " ",
    "\n",
    "\n  ",
    "def f(a, *b):",
    "class A(a):",
    "lambda x=1: ",
    "for a in ",
    "if ",
    "else",
    "import ",
    "from ",
    " as ",
    "with ",
    "try:",
    "except ",
    "'t'",
    "f'{a}'",
    "\"",
    "0",
    "10**9",
    "return ",
    "yield ",
    "await ",
    "match a:\n  case ",
    "del ",
    "global a",
    "*",
    "**",
    "@",
    "é",
    "\r",
    "getattr(a, 'b')",
    "type(a)",
    "__class__",
    "#x",
    "\\\n",
];
