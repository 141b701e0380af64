//! A scripted model server for tests: an OpenAI-compatible server on loopback that gives prepared replies one after the
//! other and keeps the requests that it got. It runs in a thread of its own, so that tests of the command line can use
//! it as well as tests with a runtime.

// Each test program takes its own part of this file.
#![allow(dead_code)]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, Uri};
use axum::routing::any;
use serde_json::{Value, json};

/// One piece of a streamed answer.
#[derive(Debug, Clone)]
pub enum Piece {
    Text(String),
    Reasoning(String),
    ToolCall {
        id: String,
        name: String,
        arguments: Value,
    },
    DelayMs(u64),
    Usage {
        input: u64,
        cached: u64,
        output: u64,
        reasoning: u64,
    },
    /// The finish reason; without one it is `tool_calls` or `stop`, as fits.
    Finish(String),
    /// The stream ends here in good order, but without its end being told.
    End,
    /// The connection breaks here.
    Break,
    /// Nothing more comes and the connection stays open.
    Hang,
}

/// One reply of the script.
#[derive(Debug, Clone)]
pub enum ScriptedReply {
    Stream(Vec<Piece>),
    Http {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// These bytes in these cuts (positions in the body, ascending).
    Raw {
        status: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
        cuts: Vec<usize>,
    },
}

impl ScriptedReply {
    /// An answer of one piece of text.
    pub fn text(text: &str) -> Self {
        Self::Stream(vec![Piece::Text(text.into())])
    }

    /// An answer that calls one tool.
    pub fn tool_call(id: &str, name: &str, arguments: Value) -> Self {
        Self::Stream(vec![Piece::ToolCall { id: id.into(), name: name.into(), arguments }])
    }

    /// A refused request.
    pub fn error(status: u16, body: &str) -> Self {
        Self::Http { status, headers: Vec::new(), body: body.into() }
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub path: String,
    pub headers: HeaderMap,
    /// `Null` for a request without a JSON body.
    pub body: Value,
    pub at: Instant,
}

struct Shared {
    replies: Mutex<VecDeque<ScriptedReply>>,
    requests: Mutex<Vec<RecordedRequest>>,
    models: Vec<String>,
}

/// The running server; it ends when this is dropped.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
}

impl ModelServer {
    /// Starts a server that offers the model `scripted-model`.
    pub fn start(replies: Vec<ScriptedReply>) -> Self {
        Self::start_with_models(replies, &["scripted-model"])
    }

    pub fn start_with_models(replies: Vec<ScriptedReply>, models: &[&str]) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let address = listener.local_addr().expect("the address of the listener");
        let shared = Arc::new(Shared {
            replies: Mutex::new(replies.into()),
            requests: Mutex::default(),
            models: models.iter().map(|model| (*model).to_owned()).collect(),
        });
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let router = Router::new().fallback(any(answer)).with_state(shared.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("the listener in the runtime");
                // Dropping the server also drops streams that hang on purpose; a graceful end would wait for them.
                tokio::select! {
                    served = axum::serve(listener, router) => served.expect("serving"),
                    _ = stopped => {}
                }
            });
        });
        Self { address, shared, stop: Some(stop) }
    }

    /// The base URL, ending in `/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Every request so far, also those for the list of models.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// The bodies of the requests for an answer.
    pub fn chats(&self) -> Vec<Value> {
        let chats = self.requests().into_iter().filter(|request| !request.path.ends_with("/models"));
        chats.map(|request| request.body).collect()
    }

    /// How many replies were not asked for.
    pub fn replies_left(&self) -> usize {
        self.shared.replies.lock().unwrap().len()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread may have ended by itself.
            stop.send(()).ok();
        }
    }
}

async fn answer(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let path = uri.path().to_owned();
    let recorded = RecordedRequest {
        path: path.clone(),
        headers,
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        at: Instant::now(),
    };
    shared.requests.lock().unwrap().push(recorded);
    if path.ends_with("/models") {
        let models: Vec<Value> = shared.models.iter().map(|id| json!({ "id": id, "object": "model" })).collect();
        return whole(200, &[], json!({ "object": "list", "data": models }).to_string());
    }
    let reply = shared.replies.lock().unwrap().pop_front();
    match reply {
        Some(ScriptedReply::Stream(pieces)) => stream(pieces),
        Some(ScriptedReply::Http { status, headers, body }) => whole(status, &headers, body),
        Some(ScriptedReply::Raw { status, headers, body, cuts }) => raw(status, &headers, &body, &cuts),
        None => whole(400, &[], json!({ "error": { "message": "the script has no more replies" } }).to_string()),
    }
}

fn whole(status: u16, headers: &[(String, String)], body: String) -> Response<Body> {
    let mut response = Response::builder().status(status);
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        response = response.header("content-type", "application/json");
    }
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(Body::from(body)).expect("a response")
}

fn raw(status: u16, headers: &[(String, String)], body: &[u8], cuts: &[usize]) -> Response<Body> {
    let mut chunks = Vec::new();
    let mut start = 0;
    for cut in cuts.iter().copied().chain([body.len()]) {
        if cut > start {
            chunks.push(Ok::<_, Infallible>(Bytes::copy_from_slice(&body[start..cut])));
            start = cut;
        }
    }
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(Body::from_stream(futures::stream::iter(chunks))).expect("a response")
}

fn stream(pieces: Vec<Piece>) -> Response<Body> {
    let steps = steps(pieces);
    let body = futures::stream::unfold(steps.into_iter(), |mut steps| async move {
        loop {
            match steps.next()? {
                Step::Send(bytes) => return Some((Ok(bytes), steps)),
                Step::Wait(time) => tokio::time::sleep(time).await,
                Step::Break => {
                    // What was sent so far must be on its way before the connection is dropped.
                    tokio::time::sleep(Duration::from_millis(30)).await;
                    return Some((Err(std::io::Error::other("broken on purpose")), steps));
                }
                Step::Hang => std::future::pending::<()>().await,
            }
        }
    });
    let response = Response::builder().header("content-type", "text/event-stream");
    response.body(Body::from_stream(body)).expect("a response")
}

enum Step {
    Send(Bytes),
    Wait(Duration),
    Break,
    Hang,
}

fn steps(pieces: Vec<Piece>) -> Vec<Step> {
    let (mut steps, mut calls, mut finished) = (vec![chunk(json!({ "role": "assistant" }), None)], 0, false);
    for piece in pieces {
        match piece {
            Piece::Text(text) => steps.push(chunk(json!({ "content": text }), None)),
            Piece::Reasoning(text) => steps.push(chunk(json!({ "reasoning_content": text }), None)),
            Piece::ToolCall { id, name, arguments } => {
                let arguments = arguments.to_string();
                let half = (0..=arguments.len() / 2).rev().find(|at| arguments.is_char_boundary(*at)).unwrap_or(0);
                let (first, second) = arguments.split_at(half);
                let start = json!({ "index": calls, "id": id, "type": "function",
                    "function": { "name": name, "arguments": first } });
                let rest = json!({ "index": calls, "function": { "arguments": second } });
                steps.push(chunk(json!({ "tool_calls": [start] }), None));
                steps.push(chunk(json!({ "tool_calls": [rest] }), None));
                calls += 1;
            }
            Piece::DelayMs(ms) => steps.push(Step::Wait(Duration::from_millis(ms))),
            Piece::Usage { input, cached, output, reasoning } => {
                if !finished {
                    steps.push(chunk(json!({}), Some(if calls > 0 { "tool_calls" } else { "stop" })));
                    finished = true;
                }
                let usage = json!({ "choices": [], "usage": {
                    "prompt_tokens": input + cached, "completion_tokens": output, "total_tokens": input + cached + output,
                    "prompt_tokens_details": { "cached_tokens": cached },
                    "completion_tokens_details": { "reasoning_tokens": reasoning } } });
                steps.push(Step::Send(Bytes::from(format!("data: {usage}\n\n"))));
            }
            Piece::Finish(reason) => {
                steps.push(chunk(json!({}), Some(&reason)));
                finished = true;
            }
            Piece::End => return steps,
            Piece::Break => {
                steps.push(Step::Break);
                return steps;
            }
            Piece::Hang => {
                steps.push(Step::Hang);
                return steps;
            }
        }
    }
    if !finished {
        steps.push(chunk(json!({}), Some(if calls > 0 { "tool_calls" } else { "stop" })));
    }
    steps.push(Step::Send(Bytes::from_static(b"data: [DONE]\n\n")));
    steps
}

fn chunk(delta: Value, finish: Option<&str>) -> Step {
    let chunk = json!({ "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "model": "scripted-model",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
    Step::Send(Bytes::from(format!("data: {chunk}\n\n")))
}
