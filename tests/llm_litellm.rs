//! An independent implementation of both wire formats agrees with ours: the LiteLLM proxy (PyPI package `litellm`), with
//! canned replies of its own and with our scripted server behind it. What it protects: that we and our own test server do
//! not merely agree with each other.
//!
//! The package is installed once, into cargo's temporary folder; on a busy machine that takes several minutes, so the test
//! runs only when it is asked for:
//!
//!     cargo test --test llm_litellm -- --ignored --nocapture
//!
//! The proxy speaks to nobody but this computer.

#[path = "support/model_server.rs"]
mod model_server;
#[path = "support/python_environment.rs"]
mod python_environment;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use model_server::{ModelServer, Piece, ScriptedReply};
use serde_json::{Value, json};
use slicer_ai_agent::llm::{
    Catalogue, ChatReply, ChatRequest, Client, Endpoint, LlmError, Message, StopReason, ToolDefinition,
};
use slicer_ai_agent::platform;
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk-proxy-0123456789";

/// The running proxy; it ends when this is dropped.
struct Proxy {
    child: Child,
    base_url: String,
    _folder: tempfile::TempDir,
}

impl Proxy {
    /// Starts it with a model of canned words and one that our server answers for.
    fn start(upstream: &ModelServer) -> Self {
        let environment = python_environment::environment("litellm", &[&["litellm[proxy]==1.108.7"]]);
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.json");
        let model = |name: &str, parameters: Value| json!({ "model_name": name, "litellm_params": parameters });
        let settings = json!({
            "model_list": [
                model("canned", json!({ "model": "openai/canned", "api_key": "none", "mock_response": "The volume is loaded." })),
                model("behind", json!({ "model": "hosted_vllm/behind", "api_key": "none", "api_base": upstream.base_url() })),
            ],
            "litellm_settings": { "telemetry": false, "num_retries": 0 },
            "router_settings": { "num_retries": 0, "disable_cooldowns": true },
            "general_settings": { "master_key": KEY },
        });
        // JSON is YAML.
        std::fs::write(&config, settings.to_string()).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let program = platform::venv_python(&environment).with_file_name("litellm");
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new(program)
            .args(["--config", config.to_str().unwrap(), "--host", "127.0.0.1", "--port", &port.to_string()])
            // Otherwise it fetches a table of prices from the network.
            .envs([
                ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
                ("LITELLM_TELEMETRY", "False"),
                ("HOME", folder.path().to_str().unwrap()),
            ])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let proxy = Self { child, base_url: format!("http://127.0.0.1:{port}/v1"), _folder: folder };
        let deadline = Instant::now() + Duration::from_secs(180);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = std::fs::read_to_string(proxy._folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "the proxy did not start: {log}");
            std::thread::sleep(Duration::from_millis(200));
        }
        proxy
    }

    fn client(&self, provider: &str, model: &str, key: &str) -> Client {
        let catalogue = Catalogue::from_toml(include_str!("../resources/models.toml")).unwrap();
        let endpoint = Endpoint {
            provider: provider.into(),
            base_url: self.base_url.clone(),
            model: model.into(),
            api_key: Some(key.into()),
        };
        Client::new(endpoint, &catalogue).unwrap().with_max_retries(0)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

async fn chat(client: &Client, request: &ChatRequest) -> Result<ChatReply, LlmError> {
    let (sender, _receiver) = tokio::sync::mpsc::channel(10_000);
    client.chat(request, &CancellationToken::new(), &sender).await
}

fn request() -> ChatRequest {
    let parameters =
        json!({ "type": "object", "properties": { "pattern": { "type": "string" } }, "required": ["pattern"] });
    let tool =
        |name: &str| ToolDefinition { name: name.into(), description: "Looks.".into(), parameters: parameters.clone() };
    ChatRequest {
        messages: vec![Message::System { text: "Be brief.".into() }, Message::User { text: "Look for Größe.".into() }],
        tools: vec![tool("Grep"), tool("ReadFile")],
        max_output: Some(500),
        ..ChatRequest::default()
    }
}

fn with_tools() -> ScriptedReply {
    ScriptedReply::Stream(vec![
        Piece::Text("I look ".into()),
        Piece::Text("first: 脑.".into()),
        Piece::ToolCall { id: "call_1".into(), name: "Grep".into(), arguments: json!({ "pattern": "Größe" }) },
        Piece::ToolCall { id: "call_2".into(), name: "ReadFile".into(), arguments: json!({ "pattern": "a\"b" }) },
        Piece::Usage { input: 100, cached: 60, output: 30, reasoning: 0 },
    ])
}

#[tokio::test]
#[ignore = "installing and starting the proxy takes minutes on a busy machine"]
async fn an_independent_proxy_agrees() {
    let (mut said, mut held) = (Vec::new(), 0);
    let mut hold = |what: &str, good: bool, got: String| {
        held += usize::from(good);
        said.push((what.to_owned(), good, got));
    };
    let replies = vec![with_tools(), ScriptedReply::text("Two hits."), with_tools(), ScriptedReply::text("Two hits.")];
    let error = |status: u16, kind: &str| {
        let body = json!({ "error": { "message": kind, "type": kind, "code": kind } }).to_string();
        ScriptedReply::Http { status, headers: vec![], body }
    };
    let errors = [
        (401, "invalid_api_key", "KeyRefused"),
        (429, "rate_limit_exceeded", "RateLimited"),
        (500, "server_error", "Overloaded"),
        (400, "context_length_exceeded", "ContextTooLong"),
    ];
    let told = errors.iter().flat_map(|(status, kind, _)| [error(*status, kind), error(*status, kind)]);
    let upstream = ModelServer::start_with_models(replies.into_iter().chain(told).collect(), &["behind"]);
    let proxy = Proxy::start(&upstream);
    for provider in ["custom", "custom-anthropic"] {
        let reply = chat(&proxy.client(provider, "canned", KEY), &request()).await;
        let good = reply.as_ref().is_ok_and(|reply| {
            reply.text == "The volume is loaded." && reply.stop == StopReason::End && !reply.usage.estimated
        });
        hold(&format!("{provider}: canned text with usage"), good, format!("{reply:?}"));

        let client = proxy.client(provider, "behind", KEY);
        let mut asked = request();
        let reply = chat(&client, &asked).await;
        let good = reply.as_ref().is_ok_and(|reply| {
            let calls: Vec<Value> = reply.tool_calls.iter().map(|call| json!([call.name, call.arguments])).collect();
            reply.text == "I look first: 脑."
                && reply.stop == StopReason::ToolCalls
                && calls == [json!(["Grep", { "pattern": "Größe" }]), json!(["ReadFile", { "pattern": "a\"b" }])]
        });
        hold(&format!("{provider}: text and parallel calls"), good, format!("{reply:?}"));
        let usage = reply.as_ref().map(|reply| reply.usage);
        let good = usage.as_ref().is_ok_and(|u| (u.input + u.cached, u.output, u.estimated) == (160, 30, false));
        hold(&format!("{provider}: usage"), good, format!("{usage:?}"));

        let reply = reply.unwrap();
        let results: Vec<Message> = reply
            .tool_calls
            .iter()
            .map(|call| Message::Tool { call: call.id.clone(), name: call.name.clone(), text: "2 hits".into() })
            .collect();
        asked.messages.push(Message::Assistant { text: reply.text, reasoning: None, tool_calls: reply.tool_calls });
        asked.messages.extend(results);
        let answer = chat(&client, &asked).await;
        let good = answer.as_ref().is_ok_and(|reply| reply.text == "Two hits.");
        hold(&format!("{provider}: the answer after the calls"), good, format!("{answer:?}"));
    }
    // Whichever way it went, the server behind got the same conversation.
    let chats = upstream.chats();
    let conversation = |chat: &Value| -> Vec<Value> {
        let messages = chat["messages"].as_array().unwrap().iter();
        messages
            .map(|message| {
                let text = |content: &Value| match content {
                    Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<String>(),
                    other => other.as_str().unwrap_or_default().to_owned(),
                };
                let calls = message["tool_calls"].as_array().into_iter().flatten();
                let calls: Vec<Value> = calls
                    .map(|call| {
                        let arguments: Value =
                            serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
                        json!([call["id"], call["function"]["name"], arguments])
                    })
                    .collect();
                json!([message["role"], text(&message["content"]), calls, message["tool_call_id"]])
            })
            .collect()
    };
    for (what, one, other) in [("first", 0, 2), ("second", 1, 3)] {
        let (one, other) = (conversation(&chats[one]), conversation(&chats[other]));
        hold(&format!("both formats carry the same {what} request"), one == other, format!("{one:?}\n{other:?}"));
    }
    for (status, word, kind) in errors {
        for provider in ["custom", "custom-anthropic"] {
            let reply = chat(&proxy.client(provider, "behind", KEY), &request()).await;
            let got = reply.as_ref().err().map(LlmError::kind);
            hold(&format!("{provider}: {status} {word} from behind"), got == Some(kind), format!("{reply:?}"));
        }
    }
    for provider in ["custom", "custom-anthropic"] {
        let reply = chat(&proxy.client(provider, "behnid", KEY), &request()).await;
        let good = matches!(&reply, Err(LlmError::ModelUnknown { nearest, .. }) if nearest.first().is_some_and(|name| name == "behind"));
        hold(&format!("{provider}: an unknown model, with the nearest name"), good, format!("{reply:?}"));
    }
    let listed = proxy.client("custom", "behind", KEY).list_models().await;
    let good = listed.as_ref().is_ok_and(|models| models.len() == 2);
    hold("the list of models", good, format!("{listed:?}"));
    let test = proxy.client("custom", "canned", KEY).test_connection(&CancellationToken::new()).await;
    hold(
        "the connection test",
        test.as_ref().is_ok_and(|test| test.model_available && test.listed),
        format!("{test:?}"),
    );
    println!("{held} of {} agree", said.len());
    let wrong: Vec<_> = said.iter().filter(|(_, good, _)| !good).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
