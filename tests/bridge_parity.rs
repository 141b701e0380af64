//! The bridge beside the package `mcp-slicer`, whose place it takes: both are asked the same, of one practice Slicer, and
//! must give the same. What may differ is listed with its reason in `support/parity_differences.rs`; a difference that
//! is not listed fails, and so does a listed one that is gone. `docs/mcp-slicer.md` shows the list as it was measured;
//! when it is out of date this test fails, and writes it anew when run with `UPDATE_DOCS=1`.
//!
//! Compared is what a program reads: whether the reply is an error, the kinds of its parts, the JSON of the two plain
//! tools with every value in it, type and size of pictures. Not compared are free words: the sentence beside a picture,
//! and the text of a refusal that is no JSON.

#[path = "support/mcp_slicer.rs"]
mod mcp_slicer;
#[path = "support/mcp_stdio.rs"]
mod mcp_stdio;
#[path = "support/parity_cases.rs"]
mod parity_cases;
#[path = "support/parity_differences.rs"]
mod parity_differences;
#[path = "support/practice.rs"]
mod practice;
#[path = "support/python_environment.rs"]
mod python_environment;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mcp_stdio::Server;
use parity_cases::{Before, Case, Slicer};
use parity_differences::{DIFFERENCES, reason};
use serde_json::{Value, json};
use slicer_ai_agent::slicer::practice::{PracticeOptions, PracticeProcess};

/// How long a reply may take; nothing here takes longer than a second or two on an idle machine.
const BOUND: Duration = Duration::from_secs(60);
/// How long a reply is waited for that may never come.
const BOUND_OF_SILENCE: Duration = Duration::from_secs(5);
/// Longest text of a value in the table, in characters.
const SHOWN: usize = 150;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Which {
    Theirs(&'static str),
    Ours,
}

fn serve(which: Which, url: &str) -> Server {
    match which {
        Which::Theirs(version) => Server::start(&mut mcp_slicer::command(version, url)),
        Which::Ours => {
            let mut command = Command::new(env!("CARGO_BIN_EXE_slicer-ai-agent"));
            Server::start(command.args(["bridge", "--slicer-url", url]).env_remove("SLICER_URL"))
        }
    }
}

/// The Slicers that calls share, and the servers of both sides to each.
struct Stage {
    version: &'static str,
    shared: PracticeProcess,
    pairs: Vec<(Slicer, Server, Server)>,
    _exec_off: PracticeProcess,
}

impl Stage {
    fn new(version: &'static str) -> Self {
        let shared = practice::start();
        let exec_off = practice::start_with(&PracticeOptions { no_exec: true, ..PracticeOptions::default() });
        practice::load_sample(&exec_off.url, "MRHead");
        let urls =
            [(Slicer::Shared, shared.url.clone()), (Slicer::ExecOff, exec_off.url.clone()), (Slicer::Absent, absent())];
        let pairs = urls
            .map(|(slicer, url)| (slicer, serve(Which::Theirs(version), &url), serve(Which::Ours, &url)))
            .into_iter()
            .collect();
        let mut stage = Self { version, shared, pairs, _exec_off: exec_off };
        let ours = &mut stage.pairs[0].2;
        let made = ours.call("execute_python_code", &json!({"code": parity_cases::SCENE}), BOUND);
        assert!(made.is_some_and(|reply| reply.to_string().contains("true")), "the scene could not be made");
        // What is drawn late would else change times that properties tell, between one server's call and the other's.
        assert!(ours.call("capture_screenshot", &json!({}), BOUND).is_some());
        stage
    }

    /// What both say to the case: theirs, ours.
    fn ask(&mut self, case: &Case) -> (Value, Value) {
        if case.slicer == Slicer::Own {
            return (self.ask_own(Which::Theirs(self.version), case), self.ask_own(Which::Ours, case));
        }
        let (_, theirs, ours) = self.pairs.iter_mut().find(|pair| pair.0 == case.slicer).unwrap();
        let said_theirs = ask(theirs, ours, case);
        (said_theirs, ask(ours, theirs, case))
    }

    fn ask_own(&self, which: Which, case: &Case) -> Value {
        let slicer = practice::start_with(&PracticeOptions { no_data: true, ..PracticeOptions::default() });
        let mut server = serve(which, &slicer.url);
        seen(server.call(case.tool, &case.arguments, BOUND_OF_SILENCE))
    }
}

/// An address where nothing listens.
fn absent() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/slicer", listener.local_addr().unwrap())
}

fn ask(server: &mut Server, other: &mut Server, case: &Case) -> Value {
    let run = |server: &mut Server, code: &str| {
        assert!(server.call("execute_python_code", &json!({"code": code}), BOUND).is_some(), "{code}");
    };
    match case.before {
        Before::Nothing => {}
        Before::Same(code) => run(server, code),
        Before::Other(code) => run(other, code),
    }
    seen(server.call(case.tool, &case.arguments, BOUND))
}

/// What a program sees of a reply.
fn seen(reply: Option<Value>) -> Value {
    let Some(reply) = reply else {
        return json!("no reply");
    };
    if let Some(error) = reply.get("error") {
        return json!({"protocol error": error["code"]});
    }
    let result = &reply["result"];
    let parts: Vec<Value> = result["content"].as_array().unwrap().iter().map(part).collect();
    let error = result["isError"].as_bool().unwrap_or(false);
    if error { json!({"isError": true, "content": parts}) } else { json!({"content": parts}) }
}

fn part(part: &Value) -> Value {
    if part["type"] == "image" {
        let bytes = BASE64.decode(part["data"].as_str().unwrap()).unwrap();
        let image = image::load_from_memory(&bytes).unwrap();
        return json!({"image": part["mimeType"], "width": image.width(), "height": image.height()});
    }
    let text = part["text"].as_str().unwrap();
    match serde_json::from_str::<Value>(text) {
        Ok(value) => value,
        // Python writes numbers that are not finite so that no strict reader can read the reply.
        Err(_) if text.starts_with('{') => json!({"text that is not JSON": text}),
        Err(_) => json!("words"),
    }
}

/// A value as one line of the table: addresses and ports do not belong there.
fn shown(value: &Value) -> String {
    let mut text = value.to_string();
    for _ in 0..8 {
        let Some(at) = text.find("127.0.0.1:").map(|at| at + "127.0.0.1:".len()) else { break };
        let digits = text[at..].chars().take_while(char::is_ascii_digit).count();
        text.replace_range(at - "127.0.0.1:".len()..at + digits, "HOST");
    }
    while let Some(at) = text.find("port=") {
        let digits = text[at + 5..].chars().take_while(char::is_ascii_digit).count();
        text.replace_range(at..at + 5 + digits, "PORT");
    }
    while let Some(at) = text.find(" object at 0x") {
        let digits = text[at + 13..].chars().take_while(char::is_ascii_hexdigit).count();
        text.replace_range(at..at + 13 + digits, " object");
    }
    if text.chars().count() > SHOWN {
        text = text.chars().take(SHOWN).collect::<String>() + "…";
    }
    text.replace('|', "\\|").replace('`', "'")
}

/// Where two values part, for the text of a failure: the whole of a long reply helps nobody.
fn parting(theirs: &Value, ours: &Value, path: &str) -> String {
    match (theirs, ours) {
        (Value::Object(left), Value::Object(right)) if left.keys().eq(right.keys()) => {
            let differing = left.iter().find(|(key, value)| right[*key] != **value);
            differing.map_or_else(String::new, |(key, value)| parting(value, &right[key], &format!("{path}.{key}")))
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let pairs = left.iter().zip(right).enumerate().find(|(_, (one, other))| one != other);
            pairs.map_or_else(String::new, |(at, (one, other))| parting(one, other, &format!("{path}[{at}]")))
        }
        _ => format!("at {path}\n  theirs {theirs:.400}\n  ours   {ours:.400}"),
    }
}

struct Found {
    version: &'static str,
    same: usize,
    all: usize,
    /// Name of the case, theirs, ours.
    different: Vec<(&'static str, Value, Value)>,
}

fn compare(version: &'static str, cases: &[Case]) -> Found {
    let mut stage = Stage::new(version);
    let mut different = Vec::new();
    for case in cases {
        let (theirs, ours) = stage.ask(case);
        if theirs != ours {
            different.push((case.name, theirs, ours));
        }
    }
    assert!(stage.shared.is_running(), "a call ended the Slicer that all share");
    Found { version, same: cases.len() - different.len(), all: cases.len(), different }
}

/// What is wrong between what was found and what is listed.
fn mistakes(found: &[Found]) -> Vec<String> {
    let mut wrong = Vec::new();
    for one in found {
        for (name, theirs, ours) in &one.different {
            if reason(one.version, name).is_none() {
                wrong.push(format!("not listed: {} {name} {}", one.version, parting(theirs, ours, "")));
            }
        }
        for listed in DIFFERENCES.iter().filter(|listed| listed.version == one.version) {
            for name in listed.cases {
                if !one.different.iter().any(|(case, ..)| case == name) {
                    wrong.push(format!("listed, but the same: {} {name}", one.version));
                }
            }
        }
    }
    wrong
}

fn summary(found: &Found) -> String {
    let listed = found.different.iter().filter(|(name, ..)| reason(found.version, name).is_some()).count();
    format!(
        "mcp-slicer {}: {} of {} the same, {listed} different by intention, {} otherwise",
        found.version,
        found.same,
        found.all,
        found.different.len() - listed
    )
}

/// The part of the page that is measured.
fn table(found: &[Found]) -> String {
    let mut text = String::new();
    for one in found {
        writeln!(text, "### {}\n", summary(one)).unwrap();
        text.push_str("| call | mcp-slicer | slicer-ai-agent | why |\n|---|---|---|---|\n");
        for (name, theirs, ours) in &one.different {
            let why = reason(one.version, name).unwrap_or("**not intended**");
            writeln!(text, "| {name} | `{}` | `{}` | {why} |", shown(theirs), shown(ours)).unwrap();
        }
        text.push('\n');
    }
    text
}

/// Compares the page with what was measured, or writes it.
fn check_page(measured: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/mcp-slicer.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- measured -->\n", "<!-- end of what was measured -->");
    let (head, rest) = page.split_once(begin).unwrap();
    let (old, tail) = rest.split_once(end).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{head}{begin}{measured}{end}{tail}")).unwrap();
        return;
    }
    for (line, (was, is)) in old.lines().zip(measured.lines()).enumerate() {
        assert_eq!(was, is, "line {line} of the table is out of date: run this test with UPDATE_DOCS=1");
    }
    assert_eq!(old, measured, "the table is out of date: run this test with UPDATE_DOCS=1");
}

#[test]
fn every_call_is_answered_as_mcp_slicer_answers_it() {
    let all = parity_cases::all();
    let names: BTreeSet<&str> = all.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), all.len(), "two cases have one name");
    let contract = parity_cases::of_the_contract();
    assert!(contract.iter().all(|name| names.contains(name)));
    let older: Vec<Case> = all.iter().filter(|case| contract.contains(&case.name)).cloned().collect();

    let found = [compare("0.3.1", &all), compare("0.2.1", &older), compare("0.1.2", &older)];
    let measured = table(&found);
    println!("{measured}");
    for one in &found {
        println!("{}", summary(one));
    }
    let wrong = mistakes(&found);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    check_page(&measured);
}
