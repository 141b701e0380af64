//! The model client against a server that misbehaves on purpose: retries, waits, stops, refused options, keys that must
//! stay hidden. What it protects: a person always gets an answer or a reason, pays for nothing twice, and can stop.

#[path = "support/model_server.rs"]
mod model_server;

use std::time::{Duration, Instant};

use model_server::{ModelServer, Piece, ScriptedReply};
use serde_json::{Value, json};
use slicer_ai_agent::llm::{
    Catalogue, ChatReply, ChatRequest, Client, Delta, Endpoint, LlmError, Message, NetworkCause, ReplyFault,
    StopReason, Timeouts, ToolDefinition,
};
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk-planted-0123456789-abcdefghij";

fn catalogue() -> Catalogue {
    Catalogue::from_toml(include_str!("../resources/models.toml")).unwrap()
}

fn endpoint(provider: &str, base_url: &str) -> Endpoint {
    Endpoint {
        provider: provider.into(),
        base_url: base_url.into(),
        model: "scripted-model".into(),
        api_key: Some(KEY.into()),
    }
}

fn client(provider: &str, server: &ModelServer) -> Client {
    Client::new(endpoint(provider, &server.base_url()), &catalogue()).unwrap()
}

fn request() -> ChatRequest {
    ChatRequest {
        messages: vec![Message::System { text: "Be brief.".into() }, Message::User { text: "Hello".into() }],
        ..ChatRequest::default()
    }
}

async fn chat(client: &Client, request: &ChatRequest) -> (Result<ChatReply, LlmError>, Vec<Delta>) {
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1000);
    let reply = client.chat(request, &CancellationToken::new(), &sender).await;
    drop(sender);
    let mut deltas = Vec::new();
    while let Some(delta) = receiver.recv().await {
        deltas.push(delta);
    }
    (reply, deltas)
}

fn retries(deltas: &[Delta]) -> Vec<u64> {
    let waits = deltas.iter().filter_map(|delta| match delta {
        Delta::Retrying { wait_ms, .. } => Some(*wait_ms),
        _ => None,
    });
    waits.collect()
}

fn http(status: u16, headers: &[(&str, &str)], body: &str) -> ScriptedReply {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ScriptedReply::Http { status, headers, body: body.into() }
}

/// Text, thinking, tool calls and usage arrive, in order and counted once.
#[tokio::test]
async fn a_whole_answer_arrives() {
    let server = ModelServer::start(vec![ScriptedReply::Stream(vec![
        Piece::Reasoning("Let me see.".into()),
        Piece::Text("I look ".into()),
        Piece::DelayMs(20),
        Piece::Text("first.".into()),
        Piece::ToolCall { id: "c1".into(), name: "ListNodes".into(), arguments: json!({ "class_name": "Größe" }) },
        Piece::ToolCall { id: "c2".into(), name: "Grep".into(), arguments: json!({ "pattern": "a\"b" }) },
        Piece::Usage { input: 100, cached: 60, output: 30, reasoning: 10 },
    ])]);
    let mut request = request();
    request.temperature = Some(0.2);
    request.max_output = Some(500);
    let parameters = json!({ "type": "object", "properties": {} });
    request.tools = vec![ToolDefinition { name: "ListNodes".into(), description: "Lists.".into(), parameters }];
    let client = client("custom", &server);
    let (reply, deltas) = chat(&client, &request).await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.reasoning.as_str()), ("I look first.", "Let me see."));
    assert_eq!(reply.stop, StopReason::ToolCalls);
    assert_eq!(reply.tool_calls[0].arguments, json!({ "class_name": "Größe" }));
    assert_eq!((reply.tool_calls[1].id.as_str(), reply.tool_calls[1].name.as_str()), ("c2", "Grep"));
    let usage = reply.usage;
    assert_eq!((usage.input, usage.cached, usage.output, usage.reasoning), (100, 60, 30, 10));
    assert!(!usage.estimated);
    let expected =
        [Delta::Reasoning("Let me see.".into()), Delta::Text("I look ".into()), Delta::Text("first.".into())];
    assert_eq!(deltas, expected);
    let body = &server.chats()[0];
    assert_eq!(body["model"], "scripted-model");
    assert_eq!((&body["stream"], &body["stream_options"]["include_usage"]), (&json!(true), &json!(true)));
    assert_eq!((&body["temperature"], &body["max_tokens"]), (&json!(0.2), &json!(500)));
    assert_eq!(body["tools"][0]["function"]["name"], "ListNodes");
    assert_eq!(server.requests()[0].headers["authorization"], format!("Bearer {KEY}"));
}

/// A tool loop goes back as the provider wants it, thinking included where it is wanted.
#[tokio::test]
async fn a_tool_loop_goes_back_whole() {
    let call = |arguments: Value| slicer_ai_agent::llm::ToolCall { id: "c1".into(), name: "Grep".into(), arguments };
    let assistant = |arguments| Message::Assistant {
        text: String::new(),
        reasoning: Some("I must search.".into()),
        tool_calls: vec![call(arguments)],
    };
    let mut request = request();
    request.messages.push(assistant(json!({ "pattern": "x" })));
    request.messages.push(Message::Tool { call: "c1".into(), name: "Grep".into(), text: "2 hits".into() });
    request.messages.push(assistant(json!("{\"pattern\":")));
    for (provider, goes_back) in [("deepseek", true), ("openai", false)] {
        let server = ModelServer::start(vec![ScriptedReply::text("done")]);
        chat(&client(provider, &server), &request).await.0.unwrap();
        let messages = server.chats()[0]["messages"].clone();
        assert_eq!(messages[2]["content"], Value::Null);
        assert_eq!(messages[2]["tool_calls"][0]["function"]["arguments"], "{\"pattern\":\"x\"}");
        assert_eq!(messages[2].get("reasoning_content").is_some(), goes_back, "{provider}");
        assert_eq!(messages[3], json!({ "role": "tool", "tool_call_id": "c1", "content": "2 hits" }));
        // Arguments that were no JSON when they came are sent as an object, or the provider refuses all of it.
        let text = messages[4]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
        assert!(serde_json::from_str::<Value>(text).unwrap().is_object());
    }
}

/// Signed thinking goes back unchanged before its tool call, and roles alternate as this wire format demands.
#[tokio::test]
async fn anthropic_gets_its_thinking_back() {
    let events = [
        json!({ "type": "message_start", "message": { "usage": { "input_tokens": 20, "output_tokens": 1,
            "cache_read_input_tokens": 300, "cache_creation_input_tokens": 40 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking", "thinking": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "thinking_delta", "thinking": "Hm." } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "signature_delta", "signature": "S1" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "signature_delta", "signature": "S2" } }),
        json!({ "type": "content_block_start", "index": 1,
            "content_block": { "type": "redacted_thinking", "data": "xyz" } }),
        json!({ "type": "content_block_start", "index": 2,
            "content_block": { "type": "tool_use", "id": "t1", "name": "Grep", "input": {} } }),
        json!({ "type": "content_block_delta", "index": 2,
            "delta": { "type": "input_json_delta", "partial_json": "{\"pattern\":\"x\"}" } }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 9 } }),
        json!({ "type": "message_stop" }),
    ];
    let body: String = events.iter().map(|event| format!("event: x\ndata: {event}\n\n")).collect();
    let answer = |body: &str| ScriptedReply::Raw {
        status: 200,
        headers: vec![("content-type".into(), "text/event-stream".into())],
        body: body.into(),
        cuts: Vec::new(),
    };
    let whole = json!({ "type": "message", "content": [{ "type": "text", "text": "Done" }], "stop_reason": "end_turn",
        "usage": { "input_tokens": 5, "output_tokens": 2 } });
    let server = ModelServer::start(vec![answer(&body), answer(&whole.to_string())]);
    let client = client("custom-anthropic", &server);
    let mut request = request();
    let reply = chat(&client, &request).await.0.unwrap();
    assert_eq!((reply.reasoning.as_str(), reply.stop), ("Hm.", StopReason::ToolCalls));
    let usage = reply.usage;
    assert_eq!((usage.input, usage.cache_write, usage.cached, usage.output), (60, 40, 300, 9));
    request.messages.push(Message::Assistant {
        text: reply.text,
        reasoning: Some(reply.reasoning),
        tool_calls: reply.tool_calls,
    });
    request.messages.push(Message::Tool { call: "t1".into(), name: "Grep".into(), text: "2 hits".into() });
    request.messages.push(Message::User { text: "Go on".into() });
    let reply = chat(&client, &request).await.0.unwrap();
    assert_eq!((reply.text.as_str(), reply.stop), ("Done", StopReason::End));
    let sent = &server.chats()[1];
    assert_eq!(sent["system"][0]["text"], "Be brief.");
    assert!(sent["max_tokens"].is_u64());
    let expected = json!([
        { "type": "thinking", "thinking": "Hm.", "signature": "S1S2" },
        { "type": "redacted_thinking", "data": "xyz" },
        { "type": "tool_use", "id": "t1", "name": "Grep", "input": { "pattern": "x" } }
    ]);
    assert_eq!(sent["messages"][1]["content"], expected);
    assert_eq!(sent["messages"][2]["role"], "user");
    assert_eq!(sent["messages"][2]["content"][0]["tool_use_id"], "t1");
    assert_eq!(sent["messages"][2]["content"][1]["text"], "Go on");
    let headers = &server.requests()[0].headers;
    assert_eq!(
        (headers["x-api-key"].to_str().unwrap(), &headers["anthropic-version"]),
        (KEY, &"2023-06-01".parse().unwrap())
    );
    assert!(!headers.contains_key("authorization"));
}

/// What passes is tried again, after the wait that the server asks for, and the person sees that.
#[tokio::test]
async fn what_passes_is_tried_again() {
    let server = ModelServer::start(vec![
        http(429, &[("retry-after-ms", "60")], r#"{"error":{"message":"slow down"}}"#),
        http(503, &[("retry-after", "0")], "busy"),
        http(529, &[], r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
        ScriptedReply::Stream(vec![Piece::Reasoning("hm".into()), Piece::Break]),
        ScriptedReply::text("done"),
    ]);
    let (reply, deltas) = chat(&client("custom", &server), &request()).await;
    assert_eq!(reply.unwrap().text, "done");
    let waits = retries(&deltas);
    assert_eq!((waits.len(), waits[0], waits[1]), (4, 60, 0));
    assert!((1125..=1875).contains(&waits[2]) || (1500..=2500).contains(&waits[2]), "{waits:?}");
    let times: Vec<Instant> = server.requests().iter().map(|request| request.at).collect();
    assert!(times[1] - times[0] >= Duration::from_millis(60));
}

/// What does not pass is told at once, and no more often than was asked it is tried again.
#[tokio::test]
async fn what_does_not_pass_is_told_at_once() {
    for status in [400, 401, 402, 403, 404, 422] {
        let server = ModelServer::start(vec![http(status, &[], r#"{"error":{"message":"no"}}"#)]);
        let (reply, deltas) = chat(&client("custom", &server), &request()).await;
        reply.unwrap_err();
        assert!(retries(&deltas).is_empty(), "{status}");
        assert_eq!(server.chats().len(), 1, "{status}");
    }
    let busy = || http(503, &[("retry-after", "0")], "busy");
    let server = ModelServer::start(vec![busy(), busy(), busy(), busy()]);
    let (reply, deltas) = chat(&client("custom", &server).with_max_retries(2), &request()).await;
    assert_eq!(reply.unwrap_err().kind(), "Overloaded");
    assert_eq!((retries(&deltas).len(), server.replies_left()), (2, 1));
    // Nobody wants to look at a status line for ten minutes.
    let server = ModelServer::start(vec![http(429, &[("retry-after", "600")], "later")]);
    let (reply, _) = chat(&client("custom", &server), &request()).await;
    let error = reply.unwrap_err();
    assert_eq!((error.kind(), error.retry_after()), ("RateLimited", Some(Duration::from_secs(600))));
    assert!(error.advice().contains("10 minutes"), "{}", error.advice());
}

/// Once a person has seen text, it is not asked for again: it would be paid twice and shown twice. It is kept.
#[tokio::test]
async fn shown_text_is_never_asked_for_again() {
    for (end, kind) in [(Piece::Break, "Network"), (Piece::End, "BadReply")] {
        let server = ModelServer::start(vec![
            ScriptedReply::Stream(vec![Piece::Reasoning("why".into()), Piece::Text("half an ans".into()), end]),
            ScriptedReply::text("other"),
        ]);
        let (reply, deltas) = chat(&client("custom", &server), &request()).await;
        let error = reply.unwrap_err();
        assert_eq!(error.kind(), kind);
        let partial = error.partial().unwrap();
        assert_eq!((partial.text.as_str(), partial.reasoning.as_str()), ("half an ans", "why"));
        assert!(retries(&deltas).is_empty());
        assert_eq!(server.replies_left(), 1);
    }
}

/// A stop ends the call within 100 ms, wherever it is: waiting for the server, in the stream, before the next attempt,
/// or because nobody takes the pieces.
#[tokio::test]
async fn a_stop_works_at_any_moment() {
    let scripts: Vec<(&str, Vec<ScriptedReply>)> = vec![
        ("first word", vec![ScriptedReply::Stream(vec![Piece::DelayMs(20_000)])]),
        ("stream", vec![ScriptedReply::Stream(vec![Piece::Text("so far".into()), Piece::Hang])]),
        ("wait", vec![http(503, &[("retry-after", "30")], "busy")]),
        ("full", vec![ScriptedReply::Stream((0..50).map(|_| Piece::Text("x".into())).collect())]),
    ];
    for (what, script) in scripts {
        let server = ModelServer::start(script);
        let client = client("custom", &server);
        let cancel = CancellationToken::new();
        let (sender, _receiver) = tokio::sync::mpsc::channel(if what == "full" { 1 } else { 1000 });
        let stopper = cancel.clone();
        let task = tokio::spawn(async move {
            let reply = client.chat(&request(), &stopper, &sender).await;
            (reply, Instant::now())
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!task.is_finished(), "{what}: it ended before it was stopped");
        let stopped = Instant::now();
        cancel.cancel();
        let (reply, ended) = task.await.unwrap();
        let error = reply.unwrap_err();
        assert_eq!(error.kind(), "Cancelled", "{what}");
        assert!(ended - stopped < Duration::from_millis(100), "{what}: {:?}", ended - stopped);
        if what == "stream" {
            assert_eq!(error.partial().unwrap().text, "so far");
        }
    }
    // A server that takes the request and says nothing at all, not even a status.
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", mute.local_addr().unwrap());
    let client_of_mute = Client::new(endpoint("custom", &base), &catalogue()).unwrap();
    let cancel = CancellationToken::new();
    let stopper = cancel.clone();
    let task = tokio::spawn(async move {
        let (sender, _receiver) = tokio::sync::mpsc::channel(1);
        client_of_mute.chat(&request(), &stopper, &sender).await
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let stopped = Instant::now();
    cancel.cancel();
    assert!(matches!(task.await.unwrap(), Err(LlmError::Cancelled { .. })));
    assert!(stopped.elapsed() < Duration::from_millis(1500));
    let server = ModelServer::start(vec![]);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let (sender, _receiver) = tokio::sync::mpsc::channel(1);
    let reply = client("custom", &server).chat(&request(), &cancel, &sender).await;
    assert!(matches!(reply, Err(LlmError::Cancelled { .. })));
    assert!(server.requests().is_empty(), "a call that was stopped before it began was sent");
}

/// A server that says nothing, or stops talking, is given up after the time that was set.
#[tokio::test]
async fn silence_has_a_limit() {
    let timeouts = Timeouts {
        connect: Duration::from_secs(1),
        first_byte: Duration::from_millis(200),
        between_bytes: Duration::from_millis(100),
    };
    let scripts = [
        vec![Piece::DelayMs(5), Piece::Hang],
        vec![Piece::Text("a".into()), Piece::DelayMs(50), Piece::Text("b".into()), Piece::Hang],
    ];
    for (script, kept) in scripts.into_iter().zip(["", "ab"]) {
        let server = ModelServer::start(vec![ScriptedReply::Stream(script)]);
        let client = client("custom", &server).with_timeouts(timeouts).unwrap();
        let started = Instant::now();
        let error = chat(&client, &request()).await.0.unwrap_err();
        assert!(matches!(error, LlmError::Network { cause: NetworkCause::Timeout, .. }), "{error:?}");
        assert_eq!(error.partial().cloned().unwrap_or_default().text, kept);
        assert!(started.elapsed() < Duration::from_secs(2));
    }
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", mute.local_addr().unwrap());
    let client_of_mute = Client::new(endpoint("custom", &base), &catalogue()).unwrap().with_timeouts(timeouts).unwrap();
    let (reply, deltas) = chat(&client_of_mute, &request()).await;
    assert!(matches!(reply, Err(LlmError::Network { cause: NetworkCause::Timeout, .. })));
    // The wait was long enough once.
    assert!(retries(&deltas).is_empty());
    // A server that told its end and then keeps the line open has answered.
    let server = ModelServer::start(vec![ScriptedReply::Stream(vec![
        Piece::Text("done".into()),
        Piece::Finish("stop".into()),
        Piece::Hang,
    ])]);
    let client = client("custom", &server).with_timeouts(timeouts).unwrap();
    assert_eq!(chat(&client, &request()).await.0.unwrap().text, "done");
}

/// An option that the server refuses is left out, once and from then on.
#[tokio::test]
async fn a_refused_option_is_left_out() {
    let refuse = |text: &str| http(400, &[], &json!({ "error": { "message": text } }).to_string());
    let server = ModelServer::start(vec![
        refuse("Unrecognized request argument supplied: stream_options"),
        refuse("Unsupported parameter: 'max_tokens' is not supported with this model."),
        refuse("Unsupported value: 'temperature' does not support 0.5 with this model."),
        ScriptedReply::text("one"),
        ScriptedReply::text("two"),
        refuse("Unsupported value: 'temperature' does not support 0.5 with this model."),
    ]);
    let client = client("custom", &server);
    let mut request = request();
    request.temperature = Some(0.5);
    request.max_output = Some(9);
    assert_eq!(chat(&client, &request).await.0.unwrap().text, "one");
    assert_eq!(chat(&client, &request).await.0.unwrap().text, "two");
    let last = &server.chats()[4];
    assert_eq!(last["max_completion_tokens"], 9);
    for gone in ["stream_options", "max_tokens", "temperature"] {
        assert!(last.get(gone).is_none(), "{gone} was sent again");
    }
    // A server that refuses what is not sent any more is not asked for ever.
    assert_eq!(chat(&client, &request).await.0.unwrap_err().kind(), "BadRequest");
}

/// A proxy that ignores `stream`, a sign-in page, and a whole reply with a legacy call are told apart.
#[tokio::test]
async fn bodies_that_are_no_stream_are_read() {
    let whole = json!({ "choices": [{ "message": { "role": "assistant", "content": null,
        "function_call": { "name": "Grep", "arguments": "{\"pattern\":\"x\"}" } }, "finish_reason": "function_call" }],
        "usage": { "prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 12 } });
    let server = ModelServer::start(vec![
        http(200, &[], &whole.to_string()),
        http(200, &[("content-type", "text/html")], "<html>sign in</html>"),
        http(200, &[], r#"{"error":{"message":"no such thing","type":"invalid_request_error"}}"#),
        http(200, &[], r#"{"hello":"world"}"#),
    ]);
    let client = client("custom", &server).with_max_retries(0);
    let reply = chat(&client, &request()).await.0.unwrap();
    assert_eq!((reply.tool_calls[0].name.as_str(), reply.stop), ("Grep", StopReason::ToolCalls));
    // Thinking that is in the total but not in the completion is billed as output.
    assert_eq!((reply.usage.output, reply.usage.reasoning), (5, 3));
    let not_a_reply = |error: &LlmError| matches!(error, LlmError::BadReply { fault: ReplyFault::NotAReply, .. });
    assert!(not_a_reply(&chat(&client, &request()).await.0.unwrap_err()));
    assert_eq!(chat(&client, &request()).await.0.unwrap_err().kind(), "BadRequest");
    assert!(not_a_reply(&chat(&client, &request()).await.0.unwrap_err()));
}

/// The key is in no error, however the server echoes it, nor in what is told about retries.
#[tokio::test]
async fn the_key_is_never_told() {
    let echo = json!({ "error": { "message": format!("Bad key {KEY} (…{})", &KEY[12..]), "param": KEY } }).to_string();
    let stream = format!("data: {{\"error\":\"key {KEY} is bad\"}}\n\n");
    let replies = [400, 401, 402, 403, 404, 429, 500].map(|status| http(status, &[], &echo));
    let replies = replies.into_iter().chain([http(200, &[], &stream), http(200, &[], KEY)]);
    for reply in replies {
        let server = ModelServer::start(vec![reply, ScriptedReply::text("done")]);
        let client = client("custom", &server).with_max_retries(1);
        let (reply, deltas) = chat(&client, &request()).await;
        let error = reply.err().map(|error| format!("{error} {error:?} {}", error.advice()));
        let all = format!("{error:?} {deltas:?}");
        assert!(!all.contains("planted") && !all.contains("abcdefghij"), "{all}");
    }
}

/// A missing key, a strange address and a provider that does not exist are told before anything is sent.
#[test]
fn what_cannot_work_is_told_before_it_is_tried() {
    let make = |provider: &str, base: &str, key: Option<&str>| {
        let endpoint = Endpoint { api_key: key.map(str::to_owned), ..endpoint(provider, base) };
        Client::new(endpoint, &catalogue()).err().map(|error| (error.kind(), error.advice()))
    };
    let (kind, advice) = make("kimi", "", None).unwrap();
    assert!(kind == "NoKey" && advice.contains("MOONSHOT_API_KEY"), "{advice}");
    assert_eq!(make("kimi", "", Some("  ")).unwrap().0, "NoKey");
    assert_eq!(make("kimi", "", Some("sk\u{7}x")).unwrap().0, "KeyRefused");
    assert_eq!(make("none", "", None).unwrap().0, "BadRequest");
    assert_eq!(make("recipes", "", None).unwrap().0, "BadRequest");
    assert_eq!(make("custom", "", None).unwrap().0, "BadRequest");
    assert_eq!(make("custom", "file:///etc/passwd", None).unwrap().0, "BadRequest");
    assert_eq!(make("ollama", "", None), None);
    assert_eq!(make("kimi", "", Some(KEY)), None);
}

/// Nothing listens: the person is told that, and where.
#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let endpoint = endpoint("custom", &format!("http://127.0.0.1:{port}/v1"));
    let client = Client::new(endpoint, &catalogue()).unwrap().with_max_retries(1);
    let (reply, deltas) = chat(&client, &request()).await;
    let error = reply.unwrap_err();
    assert!(matches!(error, LlmError::Network { cause: NetworkCause::Refused, .. }), "{error:?}");
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}")));
    assert_eq!(retries(&deltas).len(), 1);
    // A server that speaks plain HTTP where a secure connection was asked for does not change by asking again.
    let server = ModelServer::start(vec![]);
    let base = server.base_url().replace("http:", "https:");
    let client = Client::new(self::endpoint("custom", &base), &catalogue()).unwrap();
    let (reply, deltas) = chat(&client, &request()).await;
    let error = reply.unwrap_err();
    assert!(matches!(error, LlmError::Network { cause: NetworkCause::Tls, .. }), "{error:?}");
    assert!(retries(&deltas).is_empty());
}

/// The connection test tells what works, what is not offered and what is near, and why it does not work at all.
#[tokio::test]
async fn the_connection_test_tells_what_it_found() {
    let unknown = r#"{"error":{"message":"The model does not exist","code":"model_not_found"}}"#;
    let none = CancellationToken::new();
    let server = ModelServer::start(vec![ScriptedReply::Stream(vec![Piece::Finish("length".into())])]);
    let outcome = client("custom", &server).test_connection(&none).await.unwrap();
    assert!(outcome.model_available && outcome.listed && outcome.ms > 0.0, "{outcome:?}");
    assert_eq!(server.chats()[0]["max_tokens"], 1);
    let models = ["scripted-model-2", "embedding"];
    let server = ModelServer::start_with_models(vec![http(404, &[], unknown)], &models);
    let outcome = client("custom", &server).test_connection(&none).await.unwrap();
    assert_eq!((outcome.model_available, outcome.nearest), (false, vec!["scripted-model-2".to_owned()]));
    let server = ModelServer::start(vec![http(401, &[], r#"{"error":{"message":"no"}}"#)]);
    assert_eq!(client("custom", &server).test_connection(&none).await.unwrap_err().kind(), "KeyRefused");
    // The same names are told when a conversation meets it.
    let server = ModelServer::start_with_models(vec![http(404, &[], unknown)], &models);
    let error = chat(&client("custom", &server), &request()).await.0.unwrap_err();
    assert!(error.advice().contains("scripted-model-2"), "{}", error.advice());
    let server = ModelServer::start(vec![ScriptedReply::Stream(vec![Piece::Hang])]);
    let (client, cancel) = (client("custom", &server), CancellationToken::new());
    let stopper = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        stopper.cancel();
    });
    assert_eq!(client.test_connection(&cancel).await.unwrap_err().kind(), "Cancelled");
}

const CHILD: &str = "SLICER_AI_AGENT_TEST_CHILD";

/// A proxy in the environment is used, but never for this computer; the number of retries can be set from outside.
/// Both are read from the environment, so the test runs itself again with one of its own.
#[tokio::test]
async fn the_environment_is_heeded() {
    if let Ok(base) = std::env::var(CHILD) {
        let local = Client::new(endpoint("custom", &base), &catalogue()).unwrap();
        assert_eq!(chat(&local, &request()).await.0.unwrap().text, "direct");
        let far = Client::new(endpoint("custom", "http://model.invalid/v1"), &catalogue()).unwrap();
        let (reply, deltas) = chat(&far, &request()).await;
        assert_eq!(reply.unwrap().text, "through the proxy");
        assert_eq!(retries(&deltas).len(), 1);
        let error = chat(&far, &request()).await.0.unwrap_err();
        assert_eq!(error.kind(), "Overloaded");
        return;
    }
    let server = ModelServer::start(vec![ScriptedReply::text("direct")]);
    let busy = || http(503, &[("retry-after", "0")], "busy");
    let proxy = ModelServer::start(vec![busy(), ScriptedReply::text("through the proxy"), busy(), busy(), busy()]);
    let address = proxy.base_url().replace("/v1", "");
    let output = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_environment_is_heeded", "--nocapture"])
        .env(CHILD, server.base_url())
        .env("SLICER_AI_AGENT_MAX_RETRIES", "1")
        .env("HTTP_PROXY", &address)
        .env("http_proxy", &address)
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .output()
        .await
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!((server.chats().len(), proxy.replies_left()), (1, 1));
}

/// When a model must answer without a further call, one format leaves the tools out, the other must keep their
/// definitions (the conversation holds calls of them) and forbid them.
#[tokio::test]
async fn tools_can_be_withheld() {
    let call =
        slicer_ai_agent::llm::ToolCall { id: "c1".into(), name: "Grep".into(), arguments: json!({"pattern": "x"}) };
    let mut asked = request();
    asked.messages.push(Message::Assistant { text: String::new(), reasoning: None, tool_calls: vec![call] });
    asked.messages.push(Message::Tool { call: "c1".into(), name: "Grep".into(), text: "nothing".into() });
    let parameters = json!({"type": "object", "properties": {}});
    asked.tools = vec![ToolDefinition { name: "Grep".into(), description: "Finds lines".into(), parameters }];
    asked.withhold_tools = true;
    for (provider, kept) in [("custom", false), ("custom-anthropic", true)] {
        let server = ModelServer::start(vec![ScriptedReply::error(400, "{}"), ScriptedReply::error(400, "{}")]);
        let (reply, _) = chat(&client(provider, &server), &asked).await;
        assert!(reply.is_err(), "the script refuses everything");
        let body = server.chats().first().cloned().expect("a request");
        assert_eq!(body.get("tools").is_some(), kept, "{provider}: {body}");
        assert_eq!(body.get("tool_choice").is_some(), kept, "{provider}: {body}");
    }
}
