//! The connection and the helper against a real Slicer (the practice Slicer will do), through a real bridge process.
//!
//! They start a practice Slicer of their own, or use the Slicer whose Web Server `SLICER_URL` names (its scene is
//! cleared). The bridge is this program's own, or the MCP server that `SLICER_TEST_BRIDGE` names as a JSON list
//! `["program", "argument", …]`, for example mcp-slicer: everything here must hold with either.

#[path = "support/practice.rs"]
mod practice;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use slicer_ai_agent::slicer::practice::PracticeProcess;
use slicer_ai_agent::slicer::{BridgeCommand, ConnectOptions, RunRequest, Slicer, ViewRequest};
use tokio_util::sync::CancellationToken;

/// The tests share one Slicer and clear its scene.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// The Slicer of these tests. It ends with this process, which it watches.
fn slicer_url() -> String {
    static PRACTICE: OnceLock<PracticeProcess> = OnceLock::new();
    match std::env::var("SLICER_URL").ok().filter(|url| !url.is_empty()) {
        Some(url) => url,
        None => PRACTICE.get_or_init(practice::start).url.clone(),
    }
}

fn options(url: &str) -> ConnectOptions {
    let bridge = match std::env::var("SLICER_TEST_BRIDGE") {
        Ok(text) => {
            let mut words: Vec<String> = serde_json::from_str(&text).expect("SLICER_TEST_BRIDGE is a JSON list");
            BridgeCommand::Command { program: words.remove(0), args: words, env: Vec::new() }
        }
        Err(_) => BridgeCommand::BuiltIn { slicer_url: url.to_owned() },
    };
    ConnectOptions { bridge, executable: Some(PathBuf::from(env!("CARGO_BIN_EXE_slicer-ai-agent"))) }
}

fn request(id: &str, code: &str) -> RunRequest {
    RunRequest {
        id: id.into(),
        code: code.into(),
        timeout_ms: 20_000,
        restore_on_failure: true,
        ..RunRequest::default()
    }
}

async fn fresh(url: &str) -> Slicer {
    let slicer = Slicer::connect(options(url)).await.expect("a bridge");
    let cleared = slicer.run(request("clear", "slicer.mrmlScene.Clear()"), &CancellationToken::new()).await.unwrap();
    assert!(cleared.ok, "{:?}", cleared.error);
    slicer
}

/// What the person sees of a run, and that undo is proved, all the way through process, MCP and HTTP.
#[tokio::test]
async fn a_run_is_compared_and_can_be_taken_back() {
    let url = slicer_url();
    let _alone = ONE_AT_A_TIME.lock().await;
    let slicer = fresh(&url).await;
    let never = CancellationToken::new();
    let code = "n = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLMarkupsFiducialNode', 'größe \"頭\"')\n\
                n.AddControlPoint([1, 2, 3], 'a')\nprint('done')\nn";
    let outcome = slicer.run(request("add", code), &never).await.unwrap();
    assert!(outcome.ok, "{:?}", outcome.error);
    assert_eq!(outcome.stdout, "done\n");
    assert_eq!(outcome.value["name"], "größe \"頭\"");
    assert_eq!(outcome.diff.added.len(), 1);
    let node = outcome.after.nodes_of_class("vtkMRMLMarkupsNode").next().unwrap();
    assert_eq!((node.content.points, node.has_display), (Some(1), true));
    let listed = slicer.list_nodes(Some("vtkMRMLMarkupsNode"), None).await.unwrap();
    assert_eq!(listed[0]["id"], *node.id);
    let properties = slicer.node_properties(std::slice::from_ref(&node.id)).await.unwrap();
    assert_eq!(properties[&node.id]["control_points"][0]["position"], serde_json::json!([1.0, 2.0, 3.0]));

    let failed =
        slicer.run(request("bad", "n.RemoveAllControlPoints()\nraise ValueError('no')"), &never).await.unwrap();
    let error = failed.error.unwrap();
    assert_eq!((error.kind.as_str(), error.message.as_str(), error.line), ("ValueError", "no", Some(2)));
    assert!(failed.restored.unwrap().complete);
    assert_eq!(slicer.snapshot().await.unwrap(), outcome.after);

    assert!(slicer.undo("add").await.unwrap().complete);
    assert_eq!(slicer.snapshot().await.unwrap(), outcome.before);
    assert!(slicer.status().await.unwrap().connected);
}

/// A person who presses Stop gets Slicer back at once, and the scene as it was.
#[tokio::test]
async fn stop_ends_an_endless_run() {
    let url = slicer_url();
    let _alone = ONE_AT_A_TIME.lock().await;
    let slicer = fresh(&url).await;
    let cancel = CancellationToken::new();
    let canceller = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        canceller.cancel();
    });
    let code = "slicer.mrmlScene.AddNewNodeByClass('vtkMRMLTextNode', 'half')\nwhile True: pass";
    let started = Instant::now();
    let outcome = slicer.run(request("endless", code), &cancel).await.unwrap();
    assert_eq!(outcome.error.unwrap().kind, "Stopped");
    assert!(outcome.restored.unwrap().complete);
    assert!(started.elapsed() < Duration::from_secs(6));
    assert!(slicer.list_nodes(None, Some("half")).await.unwrap().as_array().unwrap().is_empty());
}

#[tokio::test]
async fn a_picture_of_a_slice_view_is_a_picture() {
    let url = slicer_url();
    let _alone = ONE_AT_A_TIME.lock().await;
    let slicer = fresh(&url).await;
    let view = ViewRequest { view_type: "slice".into(), view_name: Some("Red".into()), ..ViewRequest::application() };
    let shot = slicer.screenshot(&view).await.unwrap();
    let picture = image::load_from_memory(&shot.bytes).unwrap();
    assert!(picture.width() > 50 && picture.height() > 50);
}

/// Nothing listens there: the person is told to start Slicer, not that a bridge failed.
#[tokio::test]
async fn no_slicer_is_said_as_such() {
    if std::env::var("SLICER_TEST_BRIDGE").is_ok() {
        return; // another bridge goes where it was told to
    }
    let slicer = Slicer::connect(options("http://127.0.0.1:9/slicer")).await.unwrap();
    let error = slicer.status().await.unwrap_err();
    assert_eq!(error.kind(), "NoSlicer");
    assert!(error.advice().contains("Web Server"));
}

#[tokio::test]
async fn a_bridge_that_cannot_start_is_named() {
    let bridge = BridgeCommand::Command { program: "/no/such/bridge".into(), args: vec![], env: vec![] };
    let error = Slicer::connect(ConnectOptions { bridge, executable: None }).await.unwrap_err();
    assert_eq!(error.kind(), "BridgeFailed");
    assert!(error.to_string().contains("/no/such/bridge"));
}

/// The helper's own tests, which look at the scene from inside Slicer.
#[tokio::test]
async fn the_helper_keeps_its_promises() {
    let url = slicer_url();
    let _alone = ONE_AT_A_TIME.lock().await;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/test_slicer_helper.py");
    let output = tokio::task::spawn_blocking(move || {
        let python = if cfg!(windows) { "python" } else { "python3" };
        Command::new(python).arg(file).env("SLICER_URL", url).output()
    })
    .await
    .unwrap()
    .expect("Python 3 runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("OK") && !text.contains("skipped"), "{text}");
}
