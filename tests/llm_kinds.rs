//! Every kind of reply that model servers are known to give, through a real HTTP server and in several cuts. What it
//! protects: an answer is never lost, halved, doubled or made up, whoever serves it.

#[path = "support/model_server.rs"]
mod model_server;
#[path = "support/reply_kinds.rs"]
mod reply_kinds;

use model_server::{ModelServer, ScriptedReply};
use reply_kinds::{Kind, Outcome};
use serde_json::{Value, json};
use slicer_ai_agent::llm::{Catalogue, ChatReply, ChatRequest, Client, Delta, Endpoint, LlmError, Message, Wire};
use tokio_util::sync::CancellationToken;

async fn play(kind: &Kind, cuts: Vec<usize>) -> (Result<ChatReply, LlmError>, String) {
    let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
    let server = ModelServer::start(vec![ScriptedReply::Raw { status: 200, headers, body: kind.body.clone(), cuts }]);
    let catalogue = Catalogue::from_toml(include_str!("../resources/models.toml")).unwrap();
    let endpoint = Endpoint {
        provider: if kind.wire == Wire::Anthropic { "custom-anthropic" } else { "custom" }.into(),
        base_url: server.base_url(),
        model: "scripted-model".into(),
        api_key: None,
    };
    let client = Client::new(endpoint, &catalogue).unwrap().with_max_retries(0);
    let request = ChatRequest { messages: vec![Message::User { text: "hi".into() }], ..ChatRequest::default() };
    let (sender, mut receiver) = tokio::sync::mpsc::channel(10_000);
    let reply = client.chat(&request, &CancellationToken::new(), &sender).await;
    drop(sender);
    let mut shown = String::new();
    while let Some(delta) = receiver.recv().await {
        match delta {
            Delta::Text(piece) => shown.push_str(&piece),
            Delta::WasThinking => shown.clear(),
            _ => {}
        }
    }
    assert_eq!(server.chats().len(), 1, "{}: it was asked more than once", kind.name);
    (reply, shown)
}

/// What differs, in words; empty when all is as it must be.
fn difference(kind: &Kind, reply: &Result<ChatReply, LlmError>, shown: &str) -> Option<String> {
    let (got, expected) = match (&kind.outcome, reply) {
        (Outcome::Reply { text, reasoning, calls, stop }, Ok(reply)) => {
            let called: Vec<Value> = reply.tool_calls.iter().map(|call| json!([call.name, call.arguments])).collect();
            let usage = (!reply.usage.estimated).then_some((reply.usage.input, reply.usage.cached, reply.usage.output));
            let got = json!([shown, reply.text, reply.reasoning, called, format!("{:?}", reply.stop), usage]);
            (got, json!([text, text, reasoning, calls, stop, kind.usage]))
        }
        (Outcome::Error { kind, kept, says }, Err(error)) => {
            let partial = error.partial().cloned().unwrap_or_default();
            let got = json!([error.kind(), partial.text, shown, error.to_string().contains(says)]);
            (got, json!([kind, kept, kept, true]))
        }
        (expected, got) => return Some(format!("got {got:?}, expected {expected:?}")),
    };
    (got != expected).then(|| format!("got {got}, expected {expected} ({reply:?})"))
}

#[tokio::test]
async fn every_kind_of_reply_is_read() {
    let (mut wrong, mut ways) = (Vec::new(), 0);
    let kinds = reply_kinds::all();
    for kind in &kinds {
        let length = kind.body.len();
        for cuts in [Vec::new(), (0..length).collect(), (0..length).step_by(11).collect()] {
            ways += 1;
            let (reply, shown) = play(kind, cuts).await;
            wrong.extend(difference(kind, &reply, &shown).map(|what| format!("{}: {what}", kind.name)));
        }
    }
    wrong.dedup();
    println!(
        "{} of {} kinds ({ways} ways) read as they must be",
        kinds.len() - wrong.len().min(kinds.len()),
        kinds.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
