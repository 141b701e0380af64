//! Costs and budgets through the command line. What it protects: a sum is never invented and never looks whole when it is
//! not, what was paid is counted even when it came to nothing, and a budget is not exceeded unasked.

#[path = "support/model_server.rs"]
mod model_server;
#[path = "support/program.rs"]
mod program;

use std::path::Path;
use std::process::Stdio;

use model_server::{ModelServer, Piece, ScriptedReply};
use serde_json::{Value, json};
use slicer_ai_agent::store::Conversations;

/// gpt-4.1: 2 in, 0.5 cached, 8 out, in US dollars per million tokens.
fn priced(data: &Path, server: &ModelServer, more: &[&str]) -> (i32, Value) {
    ask(data, server, "openai", "gpt-4.1", more)
}

fn ask(data: &Path, server: &ModelServer, provider: &str, model: &str, more: &[&str]) -> (i32, Value) {
    let mut command = program::program(data);
    command.args(["ask", "Hello", "--json", "--no-slicer", "--provider", provider, "--model", model, "--base-url"]);
    command.arg(server.base_url()).args(["--api-key-env", "PLANTED_KEY"]).env("PLANTED_KEY", "sk-0123456789abcdef");
    program::json(command.args(more).env("SLICER_AI_AGENT_MAX_RETRIES", "0").stdin(Stdio::null()))
}

fn costs(data: &Path) -> Value {
    program::json(program::program(data).args(["costs", "--json"])).1
}

fn answer(input: u64, cached: u64, output: u64) -> ScriptedReply {
    ScriptedReply::Stream(vec![Piece::Text("Hi.".into()), Piece::Usage { input, cached, output, reasoning: 0 }])
}

fn near(value: &Value, expected: f64) -> bool {
    value.as_f64().is_some_and(|value| (value - expected).abs() < 1e-9)
}

/// Every call is in the sum of its turn and of the month, with each kind of token at its own price.
#[test]
fn costs_are_summed() {
    let data = tempfile::tempdir().unwrap();
    let tool = Piece::ToolCall { id: "c".into(), name: "Grep".into(), arguments: json!({ "pattern": "x" }) };
    let first = ScriptedReply::Stream(vec![tool, Piece::Usage { input: 1000, cached: 0, output: 100, reasoning: 0 }]);
    let server = ModelServer::start(vec![first, answer(200, 1000, 50), answer(1000, 0, 0)]);
    let (_, turn) = priced(data.path(), &server, &[]);
    let expected = (1000.0 * 2.0 + 100.0 * 8.0 + 200.0 * 2.0 + 1000.0 * 0.5 + 50.0 * 8.0) / 1e6;
    assert!(near(&turn["cost_usd"], expected), "{} and not {expected}", turn["cost_usd"]);
    let conversation = turn["conversation"].as_str().unwrap().to_owned();
    priced(data.path(), &server, &[]);
    let month = costs(data.path())["month"].clone();
    assert!(near(&month["cost_usd"], expected + 0.002), "{month}");
    assert_eq!((&month["calls"], &month["unknown_calls"], &month["estimated"]), (&json!(3), &json!(0), &json!(false)));
    // A conversation that is deleted was paid for all the same.
    let store = Conversations::open(&data.path().join("conversations.sqlite")).unwrap();
    store.mark_deleted(&conversation).unwrap();
    assert_eq!(store.purge_deleted().unwrap(), 1);
    assert_eq!(costs(data.path())["month"], month);
}

/// A price that is not known makes no number: null in the turn, and apart in the sum. Tokens that nobody told are a guess
/// and marked as one.
#[test]
fn what_is_not_known_is_not_invented() {
    let data = tempfile::tempdir().unwrap();
    let server = ModelServer::start(vec![answer(1000, 0, 10), answer(1000, 0, 0), ScriptedReply::text("Hi.")]);
    let (_, turn) = ask(data.path(), &server, "custom", "gpt-4.1", &[]);
    assert!(turn["cost_usd"].is_null(), "{turn}");
    priced(data.path(), &server, &[]);
    let month = costs(data.path())["month"].clone();
    assert!(month["cost_usd"].is_null() && near(&month["known_usd"], 0.002), "{month}");
    assert_eq!(month["unknown_calls"], 1);
    let (_, turn) = priced(data.path(), &server, &[]);
    assert_eq!(turn["usage"]["estimated"], true);
    assert!(turn["cost_usd"].as_f64().unwrap() > 0.0);
    assert_eq!(costs(data.path())["month"]["estimated"], true);
    let output = program::program(data.path()).arg("costs").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains('≈') && said.contains("1 calls whose price is not known"), "{said}");
}

/// An answer that broke off was paid for.
#[test]
fn a_broken_answer_is_counted() {
    let data = tempfile::tempdir().unwrap();
    let broken = ScriptedReply::Stream(vec![Piece::Text("Half an answer".into()), Piece::Break]);
    let (exit, turn) = priced(data.path(), &ModelServer::start(vec![broken]), &[]);
    assert_eq!(exit, 3, "{turn}");
    assert!(turn["cost_usd"].as_f64().unwrap() > 0.0 && turn["usage"]["estimated"] == true, "{turn}");
    assert_eq!(costs(data.path())["month"]["calls"], 1);
}

/// Before a budget is exceeded the person is asked; where nobody can be asked, nothing is sent.
#[test]
fn a_budget_asks_before_it_is_exceeded() {
    let data = tempfile::tempdir().unwrap();
    let settings =
        |text: &str| std::fs::write(data.path().join("settings.toml"), format!("[model]\n{text}\n")).unwrap();
    settings("budget_conversation_usd = 0.0001");
    let server =
        ModelServer::start(vec![answer(100_000, 0, 0), answer(1000, 0, 0), answer(1000, 0, 0), answer(1000, 0, 0)]);
    let (exit, turn) = priced(data.path(), &server, &[]);
    assert_eq!((exit, &turn["error"]["kind"]), (4, &json!("Refused")), "{turn:#}");
    let message = turn["error"]["message"].as_str().unwrap();
    assert!(message.contains("budget") && message.contains("for this conversation"), "{message}");
    assert!(server.chats().is_empty(), "it was asked before the person was");
    // Allowed, it goes on, and what it cost counts for the next one.
    let (exit, _) = priced(data.path(), &server, &["--allow", "Spend"]);
    assert_eq!((exit, server.chats().len()), (0, 1));
    settings("budget_month_usd = 0.21");
    let (exit, turn) = priced(data.path(), &server, &[]);
    assert_eq!((exit, server.chats().len()), (4, 1), "0.20 of the month's 0.21 are spent: {turn:#}");
    assert!(turn["error"]["message"].as_str().unwrap().contains("for this month"), "{turn:#}");
    let (exit, _) = priced(data.path(), &server, &["--yes"]);
    assert_eq!((exit, server.chats().len()), (0, 2));
    settings("budget_month_usd = 50.0");
    assert_eq!(priced(data.path(), &server, &[]).0, 0);
    // A price that is not known cannot be held against a budget where money is asked for.
    let (exit, turn) = ask(data.path(), &server, "openai", "no-such-model", &[]);
    assert_eq!(exit, 4, "{turn:#}");
    assert!(turn["error"]["message"].as_str().unwrap().contains("not known"), "{turn:#}");
    assert_eq!(ask(data.path(), &server, "custom", "own-model", &[]).0, 0, "a server of one's own is not asked about");
}
