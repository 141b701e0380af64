//! The connection to Slicer against a bridge that answers as the test says: what is sent, what is made of each answer,
//! and that nothing is sent twice that may only happen once. A real Slicer is in `slicer_live.rs`.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use slicer_ai_agent::slicer::{RunRequest, Slicer, ViewRequest};
use tokio_util::sync::CancellationToken;

/// Gets the request inside the line of Python (`null` for the installer) and says what `__execResult` is.
type Script = Box<dyn FnMut(&Value) -> Answer + Send>;

enum Answer {
    /// `{"success": true, "message": …}`.
    Result(Value),
    /// `{"success": false, "message": …}`.
    Failure(&'static str),
    /// Nothing, ever.
    Silence,
    /// The result, when the file exists that the run names as its stop file.
    WhenStopped(Value),
}

#[derive(Clone)]
struct Bridge {
    script: Arc<Mutex<Script>>,
    seen: Arc<Mutex<Vec<Value>>>,
}

/// The request in a line of Python that calls the helper.
fn request_in(code: &str) -> Value {
    let Some((_, rest)) = code.split_once("m.call(\"") else { return Value::Null };
    let (inside, _) = rest.split_once("\") if getattr").expect("the line of a call");
    serde_json::from_str(&inside.replace("\\\"", "\"").replace("\\\\", "\\")).expect("a request in JSON")
}

impl Bridge {
    async fn execute(&self, code: &str) -> Value {
        let request = request_in(code);
        self.seen.lock().unwrap().push(request.clone());
        let answer = (self.script.lock().unwrap())(&request);
        match answer {
            Answer::Result(value) => json!({"success": true, "message": value}),
            Answer::Failure(text) => json!({"success": false, "message": text}),
            Answer::Silence => std::future::pending().await,
            Answer::WhenStopped(value) => {
                let stop = std::path::PathBuf::from(request["run"]["stop_path"].as_str().expect("a stop file"));
                while !stop.exists() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                json!({"success": true, "message": value})
            }
        }
    }
}

impl ServerHandler for Bridge {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::default();
        info.capabilities = ServerCapabilities::builder().enable_tools().build();
        info
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let content = if request.name == "capture_screenshot" {
            match arguments["view_type"].as_str() {
                Some("3d") => vec![ContentBlock::text("Connection error: Connection refused.")],
                _ => vec![
                    ContentBlock::text("Screenshot of Red"),
                    ContentBlock::image(base64::engine::general_purpose::STANDARD.encode(b"picture"), "image/jpeg"),
                ],
            }
        } else {
            let code = arguments["code"].as_str().expect("code").to_owned();
            vec![ContentBlock::text(self.execute(&code).await.to_string())]
        };
        Ok(CallToolResult::success(content).into())
    }
}

async fn connect(script: impl FnMut(&Value) -> Answer + Send + 'static) -> (Slicer, Arc<Mutex<Vec<Value>>>) {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let bridge = Bridge { script: Arc::new(Mutex::new(Box::new(script))), seen: Arc::clone(&seen) };
    tokio::spawn(async move {
        let running = bridge.serve(theirs).await.expect("the handshake");
        running.waiting().await.expect("the bridge runs to its end");
    });
    (Slicer::over_transport(ours, "test bridge").await.expect("a connection"), seen)
}

fn reply(request: &Value, result: Value) -> Answer {
    Answer::Result(json!({"request": request["request"], "ok": true, "result": result}))
}

fn run_request(code: &str) -> RunRequest {
    RunRequest { id: "r1".into(), code: code.into(), timeout_ms: 1000, ..RunRequest::default() }
}

fn actions(seen: &Arc<Mutex<Vec<Value>>>) -> Vec<String> {
    seen.lock().unwrap().iter().map(|request| request["action"].as_str().unwrap_or("install").to_owned()).collect()
}

/// A Slicer that was restarted has no helper: it gets it, and the call is made again without the caller's doing.
#[tokio::test]
async fn the_helper_is_sent_when_it_is_missing() {
    let mut there = false;
    let (slicer, seen) = connect(move |request| {
        if request.is_null() {
            there = true;
            return Answer::Result(json!({"helper": "ready"}));
        }
        if !there {
            return Answer::Result(json!({"helper": "missing"}));
        }
        reply(request, json!({"version": "5.8.1", "practice": false, "nodes": 3}))
    })
    .await;
    let status = slicer.status().await.unwrap();
    assert_eq!((status.version.as_str(), status.nodes, status.connected), ("5.8.1", 3, true));
    assert_eq!(status.url, "test bridge");
    slicer.status().await.unwrap();
    assert_eq!(actions(&seen), ["status", "install", "status", "status"]);
}

/// Slicer can give the reply of another request; ours is asked for by its id, and code is never sent twice.
#[tokio::test]
async fn a_swapped_reply_is_asked_for_and_the_run_is_not_repeated() {
    let kept: Arc<Mutex<Option<Value>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let (slicer, seen) = connect(move |request| {
        if request["action"] == "run" {
            let outcome = json!({"id": "r1", "ok": true, "value": 42});
            *keep.lock().unwrap() = Some(json!({"request": request["request"], "ok": true, "result": outcome}));
            return Answer::Result(json!({"request": "of somebody else", "ok": true, "result": 7}));
        }
        assert_eq!(request["of"], keep.lock().unwrap().as_ref().unwrap()["request"]);
        reply(request, keep.lock().unwrap().clone().unwrap())
    })
    .await;
    let outcome = slicer.run(run_request("42"), &CancellationToken::new()).await.unwrap();
    assert_eq!((outcome.ok, outcome.value), (true, json!(42)));
    assert_eq!(actions(&seen), ["run", "reply"]);
}

#[tokio::test]
async fn a_lost_reply_to_a_run_is_an_error_and_not_a_second_run() {
    let (slicer, seen) = connect(|request| match request["action"].as_str() {
        Some("run") => Answer::Result(json!("nonsense")),
        _ => reply(request, Value::Null),
    })
    .await;
    let error = slicer.run(run_request("x"), &CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.kind(), "SlicerBusy");
    assert_eq!(actions(&seen).iter().filter(|action| *action == "run").count(), 1);
}

#[tokio::test]
async fn failures_have_the_kind_that_machine_output_names() {
    for (text, kind) in [
        ("Connection error: Slicer's Web Server is not running at http://127.0.0.1:2016/slicer.", "NoSlicer"),
        ("Server error: unknown command \"b'/exec'\"", "ExecOff"),
        ("Connection error: ('Connection aborted.', RemoteDisconnected('…'))", "SlicerEnded"),
    ] {
        let (slicer, _) = connect(move |_| Answer::Failure(text)).await;
        assert_eq!(slicer.snapshot().await.unwrap_err().kind(), kind);
    }
    let (slicer, _) = connect(|request| {
        Answer::Result(json!({
            "request": request["request"], "ok": false, "error": {"type": "Busy", "message": "run a is still going on"}
        }))
    })
    .await;
    assert_eq!(slicer.snapshot().await.unwrap_err().kind(), "SlicerBusy");
}

#[tokio::test]
async fn a_cancelled_run_is_stopped_through_its_file() {
    let (slicer, seen) = connect(|request| {
        Answer::WhenStopped(json!({
            "request": request["request"], "ok": true,
            "result": {"id": "r1", "ok": false, "error": {"type": "Stopped", "message": "the run was stopped"}}
        }))
    })
    .await;
    let cancel = CancellationToken::new();
    let canceller = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        canceller.cancel();
    });
    let outcome = slicer.run(run_request("while True: pass"), &cancel).await.unwrap();
    assert_eq!(outcome.error.unwrap().kind, "Stopped");
    let stop = seen.lock().unwrap()[0]["run"]["stop_path"].as_str().unwrap().to_owned();
    assert!(!std::path::Path::new(&stop).exists(), "the stop file is cleaned up");
}

/// Slicer hangs in a C++ call: the person hears of it within about two seconds, and the stop stays in force.
#[tokio::test]
async fn a_run_that_does_not_stop_is_reported_as_busy() {
    let (slicer, seen) = connect(|_| Answer::Silence).await;
    let cancel = CancellationToken::new();
    let canceller = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        canceller.cancel();
    });
    let started = Instant::now();
    let error = slicer.run(run_request("hang()"), &cancel).await.unwrap_err();
    assert_eq!(error.kind(), "SlicerBusy");
    assert!(started.elapsed() < Duration::from_secs(4));
    let stop = seen.lock().unwrap()[0]["run"]["stop_path"].as_str().unwrap().to_owned();
    assert!(std::path::Path::new(&stop).exists());
    std::fs::remove_file(stop).unwrap();
}

#[tokio::test]
async fn a_run_cancelled_before_its_turn_is_never_sent() {
    let (slicer, seen) = connect(|_| Answer::Silence).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let outcome = slicer.run(run_request("x"), &cancel).await.unwrap();
    assert!(!outcome.ok);
    assert_eq!(outcome.error.unwrap().kind, "Stopped");
    assert!(seen.lock().unwrap().is_empty());
}

/// Two calls at once would run inside one another in Slicer.
#[tokio::test]
async fn one_call_at_a_time_and_a_status_that_does_not_wait() {
    let (slicer, seen) = connect(|request| match request["action"].as_str() {
        Some("status") => reply(request, json!({"version": "5.8.1", "nodes": 1})),
        _ => Answer::Silence,
    })
    .await;
    slicer.status().await.unwrap();
    let other = slicer.clone();
    let hanging = tokio::spawn(async move { other.snapshot().await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let second = slicer.clone();
    let waiting = tokio::spawn(async move { second.list_nodes(None, None).await });
    let started = Instant::now();
    assert_eq!(slicer.status().await.unwrap().version, "5.8.1");
    assert!(started.elapsed() < Duration::from_secs(3), "the status waited for the call that hangs");
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(actions(&seen), ["status", "snapshot"], "the third call waits its turn");
    hanging.abort();
    waiting.abort();
}

#[tokio::test]
async fn pictures_come_as_bytes_and_their_failures_as_causes() {
    let (slicer, _) = connect(|_| Answer::Silence).await;
    let shot = slicer.screenshot(&ViewRequest::application()).await.unwrap();
    assert_eq!((shot.mime.as_str(), shot.bytes.as_slice()), ("image/jpeg", b"picture".as_slice()));
    let view = ViewRequest { view_type: "3d".into(), ..ViewRequest::application() };
    assert_eq!(slicer.screenshot(&view).await.unwrap_err().kind(), "NoSlicer");
}
