//! What is sent to models: pictures, marks for the provider's cache, how long to think, what must come back within a tool
//! loop, and what an endpoint refused before. What it protects: a request is one that the provider takes, and is no dearer
//! than it has to be.

#[path = "support/model_server.rs"]
mod model_server;

use model_server::{ModelServer, Piece, ScriptedReply};
use serde_json::{Value, json};
use slicer_ai_agent::llm::{
    Catalogue, ChatReply, ChatRequest, Client, Delta, Effort, Endpoint, Learnt, LlmError, Message, ToolCall,
    ToolDefinition, Usage,
};
use tokio_util::sync::CancellationToken;

fn client(provider: &str, model: &str, server: &ModelServer) -> Client {
    let catalogue = Catalogue::from_toml(include_str!("../resources/models.toml")).unwrap();
    let endpoint = Endpoint {
        provider: provider.into(),
        base_url: server.base_url(),
        model: model.into(),
        api_key: Some("sk-planted-0123456789".into()),
    };
    Client::new(endpoint, &catalogue).unwrap()
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

/// The body of the one request that is sent.
async fn sent(provider: &str, model: &str, request: &ChatRequest) -> Value {
    let server = ModelServer::start(vec![ScriptedReply::error(400, r#"{"error":{"message":"the script ends here"}}"#)]);
    assert!(chat(&client(provider, model, &server), request).await.0.is_err());
    server.chats().remove(0)
}

fn says(text: &str) -> Message {
    Message::User { text: text.into() }
}

fn picture() -> Message {
    Message::Picture { about: "the Red view".into(), mime: "image/png".into(), data: "iVBORw0KGgo=".into() }
}

fn called(id: &str) -> [Message; 2] {
    let call = ToolCall { id: id.into(), name: "Grep".into(), arguments: json!({ "pattern": "x" }) };
    [
        Message::Assistant { text: String::new(), reasoning: None, tool_calls: vec![call] },
        Message::Tool { call: id.into(), name: "Grep".into(), text: "2 hits".into() },
    ]
}

fn tool() -> ToolDefinition {
    let parameters = json!({ "type": "object", "properties": {} });
    ToolDefinition { name: "Grep".into(), description: "Finds lines".into(), parameters }
}

/// A picture goes with the person's words in one message, in each format's own way; a model that is known not to see gets
/// words about it.
#[tokio::test]
async fn pictures_go_to_models_that_see() {
    let request = ChatRequest { messages: vec![picture(), says("What is this?")], ..ChatRequest::default() };
    let body = sent("openai", "gpt-4.1", &request).await;
    let content = &body["messages"][0]["content"];
    assert_eq!(body["messages"].as_array().unwrap().len(), 1, "{body}");
    assert_eq!(content[1]["image_url"]["url"], "data:image/png;base64,iVBORw0KGgo=");
    assert_eq!(content[2]["text"], "What is this?");
    let body = sent("claude", "claude-haiku-4-5", &request).await;
    let content = &body["messages"][0]["content"];
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=" });
    assert_eq!((&content[1]["type"], &content[1]["source"]), (&json!("image"), &source), "{body}");
    assert_eq!(content[2]["text"], "What is this?");
    let body = sent("deepseek", "deepseek-v4-pro", &request).await.to_string();
    assert!(body.contains("which you cannot see: the Red view") && !body.contains("iVBOR"), "{body}");
}

/// A picture that a tool took follows the results of all tools: between a call and its result nothing may stand.
#[tokio::test]
async fn a_tools_picture_follows_the_results() {
    let mut messages = vec![says("Look")];
    messages.extend(called("c1"));
    messages.push(picture());
    let request = ChatRequest { messages, ..ChatRequest::default() };
    let body = sent("openai", "gpt-4.1", &request).await;
    let roles: Vec<_> = body["messages"].as_array().unwrap().iter().map(|m| m["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user"]);
    let body = sent("claude", "claude-haiku-4-5", &request).await;
    let kinds: Vec<_> = body["messages"][2]["content"].as_array().unwrap().iter().map(|b| b["type"].clone()).collect();
    assert_eq!(kinds, ["tool_result", "text", "image"], "{body}");
}

/// The same beginning is paid once: the system text, the history up to this turn, and the tool loop are marked; never more
/// than the four marks that the provider takes, and none on thinking.
#[tokio::test]
async fn what_stays_the_same_is_marked_for_the_cache() {
    let mut messages = vec![Message::System { text: "Be brief.".into() }, says("Earlier")];
    messages.push(Message::Assistant { text: "Yes.".into(), reasoning: None, tool_calls: Vec::new() });
    messages.push(says("Now"));
    messages.extend(called("c1"));
    let request = ChatRequest { messages, tools: vec![tool()], ..ChatRequest::default() };
    let body = sent("claude", "claude-haiku-4-5", &request).await;
    let mark = json!({ "type": "ephemeral" });
    assert_eq!(body["system"][0]["cache_control"], mark);
    assert_eq!(body["messages"][1]["content"][0]["cache_control"], mark, "the last turn: {body}");
    assert_eq!(body["messages"][4]["content"][0]["cache_control"], mark, "the tool loop: {body}");
    assert_eq!(body.to_string().matches("cache_control").count(), 3);
    let alone = ChatRequest { messages: vec![says("Hi")], ..ChatRequest::default() };
    assert!(!sent("claude", "claude-haiku-4-5", &alone).await.to_string().contains("cache_control"));
    assert!(!sent("openai", "gpt-4.1", &request).await.to_string().contains("cache_control"));
}

/// How long to think goes out in each provider's own words, and not at all unless the person set it. A temperature does
/// not go where it would be refused.
#[tokio::test]
async fn the_effort_is_asked_for_in_each_providers_way() {
    let effort = Some(Effort::High);
    let request = ChatRequest { messages: vec![says("Hi")], effort, temperature: Some(0.3), ..ChatRequest::default() };
    assert_eq!(sent("openai", "gpt-5.2", &request).await["reasoning_effort"], "high");
    assert_eq!(sent("openrouter", "some/model", &request).await["reasoning"], json!({ "effort": "high" }));
    assert_eq!(sent("qwen", "qwen3-max", &request).await["enable_thinking"], true);
    assert!(sent("openai", "gpt-4.1", &request).await.get("reasoning_effort").is_none(), "it does not think");
    let adaptive = sent("claude", "claude-sonnet-5-5", &request).await;
    assert_eq!(
        (&adaptive["thinking"]["type"], &adaptive["output_config"]["effort"]),
        (&json!("adaptive"), &json!("high"))
    );
    assert!(adaptive.get("temperature").is_none());
    let budget = sent("claude", "claude-haiku-4-5", &request).await;
    assert!(budget["thinking"]["budget_tokens"].as_u64() < budget["max_tokens"].as_u64(), "{budget}");
    assert!(budget.get("temperature").is_none(), "thinking takes no temperature");
    let quiet = ChatRequest { effort: None, ..request };
    for (provider, model) in [("openai", "gpt-5.2"), ("claude", "claude-haiku-4-5"), ("qwen", "qwen3-max")] {
        let body = sent(provider, model, &quiet).await;
        assert!(
            ["reasoning_effort", "thinking", "enable_thinking"].iter().all(|name| body.get(*name).is_none()),
            "{body}"
        );
        assert_eq!(body["temperature"], 0.3);
    }
    assert!(sent("claude", "claude-sonnet-5-5", &quiet).await.get("temperature").is_none(), "it refuses one");
}

/// What came signed beside a call goes back beside it, whether or not the server named the call.
#[tokio::test]
async fn what_came_beside_a_call_goes_back() {
    for id in ["fc-1", ""] {
        let call = json!({ "id": id, "type": "function", "function": { "name": "Grep", "arguments": "{\"pattern\":\"x\"}" },
            "extra_content": { "google": { "thought_signature": "S" } } });
        let whole = json!({ "choices": [{ "message": { "content": null, "tool_calls": [call] }, "finish_reason": "tool_calls" }] });
        let server = ModelServer::start(vec![
            ScriptedReply::Http { status: 200, headers: vec![], body: whole.to_string() },
            ScriptedReply::text("done"),
        ]);
        let client = client("gemini", "gemini-3.5-flash", &server);
        let mut request = ChatRequest { messages: vec![says("Look")], ..ChatRequest::default() };
        let reply = chat(&client, &request).await.0.unwrap();
        let call = reply.tool_calls[0].clone();
        request.messages.push(Message::Assistant { text: reply.text, reasoning: None, tool_calls: reply.tool_calls });
        request.messages.push(Message::Tool { call: call.id.clone(), name: call.name, text: "2 hits".into() });
        chat(&client, &request).await.0.unwrap();
        let back = &server.chats()[1]["messages"][1]["tool_calls"][0];
        assert_eq!(back["extra_content"]["google"]["thought_signature"], "S", "{back}");
        assert_eq!(back["id"], json!(call.id));
    }
}

/// What one client learnt about a model holds for the next one, and not for another model.
#[tokio::test]
async fn a_refusal_is_remembered_for_the_model() {
    let refuse = || {
        ScriptedReply::error(
            400,
            r#"{"error":{"message":"Unsupported parameter: 'temperature'","param":"temperature"}}"#,
        )
    };
    let server = ModelServer::start(vec![
        refuse(),
        ScriptedReply::text("1"),
        ScriptedReply::text("2"),
        ScriptedReply::text("3"),
    ]);
    let learnt = Learnt::default();
    let request = ChatRequest { messages: vec![says("Hi")], temperature: Some(0.5), ..ChatRequest::default() };
    for model in ["one", "one", "two"] {
        chat(&client("custom", model, &server).with_learnt(learnt.clone()), &request).await.0.unwrap();
    }
    let sent: Vec<bool> = server.chats().iter().map(|chat| chat.get("temperature").is_some()).collect();
    assert_eq!(sent, [true, false, false, true]);
}

/// A model that has no tools or no eyes says so in words; it is asked again without them.
#[tokio::test]
async fn missing_abilities_are_worked_around() {
    let refuse = |text: &str| ScriptedReply::error(400, &json!({ "error": { "message": text } }).to_string());
    let server = ModelServer::start(vec![
        refuse("registry/library/small:latest does not support tools"),
        refuse("This model does not support image input"),
        ScriptedReply::text("done"),
    ]);
    let messages = vec![picture(), says("Hi")];
    let request = ChatRequest { messages, tools: vec![tool()], ..ChatRequest::default() };
    assert_eq!(chat(&client("ollama", "small", &server), &request).await.0.unwrap().text, "done");
    let last = &server.chats()[2];
    assert!(last.get("tools").is_none() && !last.to_string().contains("image_url"), "{last}");
}

/// A retry that must wait for nothing, and one that failed after it had cost something: the tokens are told.
#[tokio::test]
async fn failed_attempts_are_paid_for_and_counted() {
    let usage = Piece::Usage { input: 40, cached: 10, output: 5, reasoning: 5 };
    let server = ModelServer::start(vec![
        // Thinking arrived, then the connection broke: nobody told how much it was.
        ScriptedReply::Stream(vec![Piece::Reasoning("a long thought".into()), Piece::Break]),
        // Nothing but usage arrived: it is tried again, and the provider told how much it was.
        ScriptedReply::Stream(vec![usage]),
        ScriptedReply::text("done"),
    ]);
    let request = ChatRequest { messages: vec![says("Hi")], ..ChatRequest::default() };
    let (reply, deltas) = chat(&client("custom", "m", &server), &request).await;
    assert_eq!(reply.unwrap().text, "done");
    let spent: Vec<Usage> =
        deltas.iter().filter_map(|d| if let Delta::Spent(usage) = d { Some(*usage) } else { None }).collect();
    assert_eq!(spent.len(), 2, "{deltas:?}");
    assert!(spent[0].estimated && spent[0].output > 0);
    assert_eq!((spent[1].input, spent[1].cached, spent[1].output, spent[1].estimated), (40, 10, 5, false));
}
