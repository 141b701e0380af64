//! Plays replies of real model servers, cut into pieces in several ways, through a real HTTP server and holds what comes
//! out against what was written down beforehand. What it protects: a person never loses text, never sees half an answer
//! as a whole one, and no tool runs with arguments that were cut.

#[path = "support/model_server.rs"]
mod model_server;

use std::path::Path;

use model_server::{ModelServer, ScriptedReply};
use serde_json::{Value, json};
use slicer_ai_agent::llm::{
    Catalogue, ChatReply, ChatRequest, Client, Delta, Endpoint, LlmError, Message, ReplyFault, StopReason,
};
use tokio_util::sync::CancellationToken;

fn client(server: &ModelServer, wire: &str) -> Client {
    let catalogue = Catalogue::from_toml(include_str!("../resources/models.toml")).unwrap();
    let endpoint = Endpoint {
        provider: if wire == "anthropic-messages" { "custom-anthropic" } else { "custom" }.into(),
        base_url: server.base_url(),
        model: "scripted-model".into(),
        api_key: None,
    };
    Client::new(endpoint, &catalogue).unwrap().with_max_retries(0)
}

fn cuts(feed: &Value, length: usize) -> Vec<usize> {
    match feed["mode"].as_str().unwrap() {
        "whole" => Vec::new(),
        "fixed" => (0..length).step_by(feed["size"].as_u64().unwrap() as usize).collect(),
        "cuts" => feed["at"].as_array().unwrap().iter().map(|at| at.as_u64().unwrap() as usize).collect(),
        other => panic!("a feed that this test does not know: {other}"),
    }
}

async fn play(case: &Value, body: &[u8], feed: &Value) -> (Result<ChatReply, LlmError>, String) {
    let headers = case["http"]["headers"].as_object().unwrap().iter();
    let server = ModelServer::start(vec![ScriptedReply::Raw {
        status: case["http"]["status"].as_u64().unwrap() as u16,
        headers: headers.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect(),
        body: body.to_vec(),
        cuts: cuts(feed, body.len()),
    }]);
    let (sender, mut receiver) = tokio::sync::mpsc::channel(10_000);
    let request = ChatRequest { messages: vec![Message::User { text: "hi".into() }], ..ChatRequest::default() };
    let client = client(&server, case["protocol"].as_str().unwrap());
    let reply = client.chat(&request, &CancellationToken::new(), &sender).await;
    drop(sender);
    let mut shown = String::new();
    while let Some(delta) = receiver.recv().await {
        if let Delta::Text(piece) = delta {
            shown.push_str(&piece);
        }
    }
    (reply, shown)
}

/// What differs from what was expected, in words.
fn differences(outcome: &Value, reply: &Result<ChatReply, LlmError>, shown: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut same = |what: &str, got: Value, expected: Value| {
        if got != expected {
            wrong.push(format!("{what}: got {got}, expected {expected}"));
        }
    };
    match reply {
        Ok(reply) => {
            same("kind", json!("ok"), outcome["kind"].clone());
            // A refusal is shown as the answer's text.
            let refusal = outcome["refusal"].as_str().unwrap_or_default();
            let text = outcome["text"].as_str().unwrap_or_default().to_owned() + refusal;
            same("text", json!(reply.text), json!(text));
            same("shown text", json!(shown), json!(text));
            same("reasoning", json!(reply.reasoning), outcome["reasoning"].clone());
            let finish = match reply.stop {
                StopReason::End => "stop",
                StopReason::ToolCalls => "tool_calls",
                StopReason::Length => "length",
                StopReason::ContentFilter => "content_filter",
            };
            same("finish", json!(finish), json!(outcome["finish"].as_str().unwrap_or("stop")));
            let expected = outcome["tool_calls"].as_array().unwrap();
            same("number of calls", json!(reply.tool_calls.len()), json!(expected.len()));
            for (call, expected) in reply.tool_calls.iter().zip(expected) {
                same("name", json!(call.name), expected["name"].clone());
                same("arguments", call.arguments.clone(), expected["arguments"].clone());
                // The client makes an id where the server gave none.
                let id = expected["id"].as_str().unwrap_or(&call.id);
                same("id", json!(call.id), json!(id));
                same("has an id", json!(call.id.is_empty()), json!(false));
            }
            let (usage, told) = (reply.usage, &outcome["usage"]);
            same("usage is an estimate", json!(usage.estimated), json!(told.is_null()));
            let all = json!({ "prompt": usage.input + usage.cached, "completion": usage.output,
                "cached": usage.cached, "reasoning": usage.reasoning });
            for (name, expected) in told.as_object().into_iter().flatten() {
                same(name, all[name].clone(), expected.clone());
            }
        }
        Err(error) => {
            same("kind", json!("error"), outcome["kind"].clone());
            let told = &outcome["error"];
            let fault = match error {
                LlmError::BadReply { fault, .. } => Some(*fault),
                _ => None,
            };
            let expected = match told["kind"].as_str().unwrap_or_default() {
                "stream_truncated" => ("BadReply", Some(ReplyFault::Cut)),
                "empty_response" => ("BadReply", Some(ReplyFault::Empty)),
                "tool_arguments_truncated" => ("BadReply", Some(ReplyFault::ToolCallCut)),
                "auth" => ("KeyRefused", None),
                "not_found" => ("ModelUnknown", None),
                "rate_limit" => ("RateLimited", None),
                "context_length" => ("ContextTooLong", None),
                "bad_request" => ("BadRequest", None),
                "bad_gateway" | "provider_error" | "overloaded" => ("Overloaded", None),
                other => (other, None),
            };
            same("error", json!(format!("{:?}", (error.kind(), fault))), json!(format!("{expected:?}")));
            same("passes", json!(error.passes()), told["retryable"].clone());
            same("wait", json!(error.retry_after().map(|wait| wait.as_secs())), told["retry_after_s"].clone());
            let (message, part) = (error.to_string(), told["message_contains"].as_str().unwrap_or_default());
            same("words", json!(message.contains(part)), json!(true));
            same("no page in the words", json!(message.contains('<')), json!(false));
            same("short words", json!(message.len() < 500), json!(true));
            let partial = error.partial().cloned().unwrap_or_default();
            same("kept text", json!(partial.text), outcome["partial"]["text"].clone());
            same("kept reasoning", json!(partial.reasoning), outcome["partial"]["reasoning"].clone());
        }
    }
    wrong
}

#[tokio::test]
async fn every_recorded_reply_reads_as_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/llm_streams");
    let mut cases: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.is_dir());
    cases.sort();
    assert!(cases.len() > 50, "the set of replies is not there");
    let (mut failed, mut feeds) = (Vec::new(), 0);
    for path in &cases {
        let case: Value = serde_json::from_str(&std::fs::read_to_string(path.join("expected.json")).unwrap()).unwrap();
        let body = std::fs::read(path.join("body.bin")).unwrap();
        assert_eq!(body.len() as u64, case["body_bytes"].as_u64().unwrap(), "{} was changed", path.display());
        let mut wrong = Vec::new();
        for feed in case["feeds"].as_array().unwrap() {
            feeds += 1;
            let (reply, shown) = play(&case, &body, feed).await;
            let differences = differences(&case["outcome"], &reply, &shown);
            wrong.extend(differences.into_iter().map(|difference| format!("{feed}: {difference}")));
        }
        if !wrong.is_empty() {
            failed.push(format!("{}\n  {}", case["id"].as_str().unwrap(), wrong.join("\n  ")));
        }
    }
    println!("{} of {} replies ({feeds} feeds) read as expected", cases.len() - failed.len(), cases.len());
    assert!(failed.is_empty(), "{} of {} differ:\n{}", failed.len(), cases.len(), failed.join("\n"));
}
