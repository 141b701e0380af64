//! The recorded replies once more, through the program as a script runs it: `ask --json --no-slicer`. What it protects: what
//! the reader of replies finds out is what a person or a script is told.

#[path = "support/model_server.rs"]
mod model_server;
#[path = "support/program.rs"]
mod program;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;

use model_server::{ModelServer, ScriptedReply};
use serde_json::{Value, json};

fn ask(case: &Value, body: Vec<u8>) -> Value {
    let headers = case["http"]["headers"].as_object().unwrap().iter();
    let reply = ScriptedReply::Raw {
        status: case["http"]["status"].as_u64().unwrap() as u16,
        headers: headers.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect(),
        cuts: (0..body.len()).step_by(7).collect(),
        body,
    };
    // What comes after the result of a call.
    let server = ModelServer::start(vec![reply, ScriptedReply::text("")]);
    let data = tempfile::tempdir().unwrap();
    let provider = if case["protocol"] == "anthropic-messages" { "custom-anthropic" } else { "custom" };
    let mut command = program::program(data.path());
    command.args(["ask", "hi", "--json", "--no-slicer", "--provider", provider, "--model", "scripted-model"]);
    command.args(["--base-url", &server.base_url()]).env("SLICER_AI_AGENT_MAX_RETRIES", "0").stdin(Stdio::null());
    program::json(&mut command).1
}

fn differences(case: &Value, turn: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut same = |what: &str, got: &Value, expected: Value| {
        if *got != expected {
            wrong.push(format!("{what}: got {got}, expected {expected}"));
        }
    };
    let outcome = &case["outcome"];
    let trimmed = |value: &Value| json!(value.as_str().unwrap_or_default().trim());
    if outcome["kind"] == "error" {
        let kinds: &[&str] = match outcome["error"]["kind"].as_str().unwrap() {
            "stream_truncated" | "empty_response" | "tool_arguments_truncated" => &["BadReply"],
            "auth" => &["KeyRefused"],
            "not_found" => &["ModelUnknown"],
            "rate_limit" => &["RateLimited"],
            "context_length" => &["ContextTooLong"],
            "bad_request" => &["BadRequest"],
            _ => &["Overloaded"],
        };
        same("error", &turn["error"]["kind"], json!(kinds[0]));
        same("advice", &json!(turn["error"]["advice"].as_str().is_some_and(|advice| !advice.is_empty())), json!(true));
        same("kept text", &trimmed(&turn["answer"]), trimmed(&outcome["partial"]["text"]));
        same("kept thinking", &turn["reasoning"], outcome["partial"]["reasoning"].clone());
        same("no call ran", &turn["tool_calls"], json!([]));
        return wrong;
    }
    let text =
        outcome["text"].as_str().unwrap_or_default().to_owned() + outcome["refusal"].as_str().unwrap_or_default();
    same("answer", &trimmed(&turn["answer"]), json!(text.trim()));
    same("thinking", &turn["reasoning"], outcome["reasoning"].clone());
    let called = turn["tool_calls"].as_array().unwrap().iter();
    let called: Vec<Value> = called.map(|call| json!([call["name"], call["arguments"]])).collect();
    let expected = outcome["tool_calls"].as_array().unwrap().iter();
    let expected: Vec<Value> = expected.map(|call| json!([call["name"], call["arguments"]])).collect();
    same("calls", &json!(called), json!(expected));
    if expected.is_empty() {
        let finish = match outcome["finish"].as_str().unwrap_or("stop") {
            "stop" => "answer",
            other => other,
        };
        same("finish", &turn["finish"], json!(finish));
        let (usage, told) = (&turn["usage"], &outcome["usage"]);
        same("estimated", &usage["estimated"], json!(told.is_null()));
        if !told.is_null() {
            let all = usage["input"].as_u64().unwrap() + usage["cached"].as_u64().unwrap();
            same("tokens", &json!([all, usage["output"]]), json!([told["prompt"], told["completion"]]));
        }
    }
    wrong
}

fn check(path: &Path) -> Option<String> {
    let case: Value = serde_json::from_str(&std::fs::read_to_string(path.join("expected.json")).unwrap()).unwrap();
    let turn = ask(&case, std::fs::read(path.join("body.bin")).unwrap());
    let wrong = differences(&case, &turn);
    (!wrong.is_empty()).then(|| format!("{}\n  {}", case["id"].as_str().unwrap(), wrong.join("\n  ")))
}

#[test]
fn ask_tells_what_came() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/llm_streams");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.is_dir());
    cases.sort();
    let (total, waiting, failed) = (cases.len(), Mutex::new(cases), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let Some(path) = waiting.lock().unwrap().pop() else { return };
                    if let Some(wrong) = check(&path) {
                        failed.lock().unwrap().push(wrong);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    println!("{} of {total} replies are told as expected by ask --json", total - failed.len());
    assert!(failed.is_empty(), "{} of {total} differ:\n{}", failed.len(), failed.join("\n"));
}

/// Thinking of which only the end is marked is no answer, also when a part of it was on the screen already.
#[test]
fn thinking_that_was_shown_is_taken_back() {
    let piece =
        |text: &str| format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": { "content": text } }] }));
    let stop = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let thought = "I must think about this for a while. ".repeat(20);
    let body = format!("{}{}data: {stop}\n\ndata: [DONE]\n\n", piece(&thought), piece("So.</think>\n\nThe answer."));
    let case = json!({ "protocol": "openai-chat", "http": { "status": 200, "headers": { "content-type": "text/event-stream" } } });
    let turn = ask(&case, body.into_bytes());
    assert_eq!(turn["answer"], "The answer.", "{turn:#}");
    assert_eq!(turn["reasoning"], json!(thought + "So."));
}
