//! Mutated programs against ring 1: no text makes it fail or wait.
//!
//! A harness on stable Rust: the sets of the other tests are cut into tokens and lines, which are mixed, repeated,
//! nested and broken. `SLICER_AI_AGENT_FUZZ_SECONDS` says for how long (2 unless told), `SLICER_AI_AGENT_FUZZ_SEED`
//! where to begin, so that a failure can be met again.

#[path = "support/random.rs"]
mod random;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use random::Random;
use slicer_ai_agent::safety::{Policy, VerdictKind, validate_bytes};

const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    "=",
    ":=",
    ".",
    "*",
    "**",
    "@",
    "->",
    "\n",
    "\n    ",
    "\t",
    "\r",
    "\r\n",
    "\x0c",
    "\\\n",
    "\0",
    "\u{feff}",
    "é",
    "𝒂",
    "'",
    "\"",
    "'''",
    "f'",
    "f'{",
    "}'",
    "r'",
    "b'",
    "# ",
    "def f(",
    "class C(",
    "lambda ",
    "lambda: ",
    "async ",
    "await ",
    "match x:\n  case ",
    "type X = ",
    "except* ",
    "for x in ",
    "while ",
    "with ",
    "if ",
    "else ",
    "not ",
    "del ",
    "global ",
    "nonlocal ",
    "yield ",
    "return ",
    "import ",
    "from ",
    "as ",
    "0",
    "10**9",
    "1e999",
    "0x",
    "__class__",
    "eval",
    "slicer.app",
    "slicer.util",
    "os",
    "x",
];

/// Identifiers, runs of blanks, and single characters.
fn tokens(code: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let same = |c: char| if word(first) { word(c) } else { first == ' ' && c == ' ' };
        let end = rest.char_indices().skip(1).find(|(_, c)| !same(*c)).map_or(rest.len(), |(at, _)| at);
        out.push(&rest[..end]);
        rest = &rest[end..];
    }
    out
}

fn seeds() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut seeds = Vec::new();
    for name in [
        "safety_malicious.jsonl",
        "safety_near_miss.jsonl",
        "safety_hostile_kinds.jsonl",
        "safety_harmless_kinds.jsonl",
    ] {
        let text = fs::read_to_string(folder.join(name)).expect("the set is part of the tests");
        for line in text.lines() {
            let entry: serde_json::Value = serde_json::from_str(line).expect("one entry a line");
            seeds.push(entry["code"].as_str().expect("code is text").to_owned());
        }
    }
    seeds
}

/// One mutation of a list of tokens; `other` is another program.
fn mutate<'a>(random: &mut Random, tokens: &mut Vec<&'a str>, other: &[&'a str]) {
    let at = random.below(tokens.len());
    match random.below(9) {
        0 if !tokens.is_empty() => {
            tokens.remove(at);
        }
        1 => tokens.insert(at, PIECES[random.below(PIECES.len())]),
        2 if !tokens.is_empty() => tokens[at] = PIECES[random.below(PIECES.len())],
        3 if !tokens.is_empty() => {
            let to = random.below(tokens.len());
            tokens.swap(at, to);
        }
        // A part of another program in the middle of this one.
        4 if !other.is_empty() => {
            let from = random.below(other.len());
            let end = (from + random.below(40)).min(other.len());
            tokens.splice(at..at, other[from..end].iter().copied());
        }
        // A part many times over.
        5 if !tokens.is_empty() => {
            let end = (at + 1 + random.below(8)).min(tokens.len());
            let part: Vec<&str> = tokens[at..end].to_vec();
            for _ in 0..random.below(60) {
                tokens.splice(at..at, part.iter().copied());
            }
        }
        // A part in deep brackets.
        6 => {
            let (open, close) =
                [("(", ")"), ("[", "]"), ("{", "}"), ("f(", ")"), ("f'{", "}'"), ("not ", "")][random.below(6)];
            let depth = random.below(250);
            let end = (at + random.below(6)).min(tokens.len());
            tokens.splice(end..end, std::iter::repeat_n(close, depth));
            tokens.splice(at..at, std::iter::repeat_n(open, depth));
        }
        // Another indentation from here on.
        7 => tokens.insert(at, ["\n", "\n ", "\n\t", "\n        "][random.below(4)]),
        _ => tokens.truncate(at),
    }
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn no_mutation_breaks_the_check() {
    let budget = Duration::from_secs(setting("SLICER_AI_AGENT_FUZZ_SECONDS", 2));
    let seed = setting("SLICER_AI_AGENT_FUZZ_SEED", 0x5eed_cafe);
    let mut random = Random::new(seed | 1);
    let seeds = seeds();
    let cut: Vec<Vec<&str>> = seeds.iter().map(|s| tokens(s)).collect();
    let policy = Policy::default();
    let (start, mut runs, mut slowest) = (Instant::now(), 0u64, Duration::ZERO);
    while start.elapsed() < budget {
        let mut program = cut[random.below(cut.len())].clone();
        let other = &cut[random.below(cut.len())];
        for _ in 0..=random.below(6) {
            mutate(&mut random, &mut program, other);
        }
        let mut code = program.concat().into_bytes();
        if random.below(20) == 0 && !code.is_empty() {
            let at = random.below(code.len());
            code[at] = (random.next() & 0xff) as u8;
        }
        let began = Instant::now();
        let verdict = validate_bytes(&code, &policy);
        let took = began.elapsed();
        slowest = slowest.max(took);
        // Unoptimised code, and a machine that does other things besides.
        let bound = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 2 });
        assert!(took < bound, "{took:?} for {} bytes, seed {seed}, run {runs}", code.len());
        if verdict.findings.is_empty() {
            assert_eq!(verdict.verdict, VerdictKind::Allow);
        }
        assert!(verdict.findings.iter().all(|f| f.line >= 1 && f.column >= 1 && !f.why.is_empty()));
        runs += 1;
    }
    println!("{runs} programs, the slowest took {slowest:?}");
    assert!(runs > 0);
}
