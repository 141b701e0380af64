//! The bridge as other programs use it: an official MCP client (PyPI package `mcp`) starts it over stdio, lists the
//! tools and calls each, reads the scene, with the practice Slicer behind it; and the same over HTTP with a bridge that
//! runs already.

#[path = "support/http_bridge.rs"]
mod http_bridge;
#[path = "support/practice.rs"]
mod practice;
#[path = "support/python_environment.rs"]
mod python_environment;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use slicer_ai_agent::platform;

/// Python with the client.
fn client_python() -> PathBuf {
    platform::venv_python(&python_environment::environment("mcp-client", &[&["mcp==2.3.0"]]))
}

#[test]
fn an_official_client_lists_and_calls_the_tools() {
    let slicer = practice::start();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mcp_client.py");
    let output = Command::new(client_python())
        .arg(script)
        .args([env!("CARGO_BIN_EXE_slicer-ai-agent"), "bridge", "--slicer-url", &slicer.url])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"));
    let tools = report["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 7, "{tools:?}");

    let text =
        |name: &str| -> Value { serde_json::from_str(report[name]["content"][0]["text"].as_str().unwrap()).unwrap() };
    let names = text("list_nodes");
    assert!(names["nodes"].as_array().unwrap().iter().any(|name| name == "Red"), "{names}");
    let done = text("execute_python_code");
    assert_eq!(done, serde_json::json!({"success": true, "message": {"sum": 42, "text": "größe 頭部"}}));
    let failed = text("failing_code");
    assert_eq!(failed["success"], false);
    assert!(failed["message"].as_str().unwrap().contains("no"), "{failed}");
    for tool in tools {
        let tool = tool.as_str().unwrap();
        assert_eq!(report[tool]["error"], false, "the client checks replies against their schemas: {tool}");
    }
    assert_eq!(text("get_status")["running"], true);
    assert!(text("get_node_properties")["nodes"]["vtkMRMLSliceNodeRed"]["name"].is_string());
    assert_eq!(text("load_sample_data")["loaded"][0]["name"], "MRHead");
    assert_eq!(text("undo_last_run")["success"], true);
    assert_eq!(report["resources"][0], "slicer://scene");
    assert_eq!(report["templates"], 2);
    assert!(report["scene"]["nodes"].is_array(), "{}", report["scene"]);
    assert_eq!(report["large"], 20_000_000, "code and result of 20 MB pass whole");
    let parts = report["capture_screenshot"]["content"].as_array().unwrap();
    let picture = parts.iter().find(|part| part["type"] == "image").unwrap();
    assert_eq!(picture["mime"], "image/jpeg");
    assert!(picture["bytes"].as_u64().unwrap() > 1000, "{picture}");
}

#[test]
fn an_official_client_uses_a_bridge_over_http() {
    let slicer = practice::start();
    let bridge = http_bridge::HttpBridgeProcess::start(&slicer.url, &[]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mcp_client.py");
    let run = |token: &str| {
        let mut command = Command::new(client_python());
        command.arg(&script).arg(&bridge.url).env("MCP_TOKEN", token).env("NO_PROXY", "127.0.0.1").output().unwrap()
    };
    let output = run(&bridge.token);
    let errors = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"));
    let tools = report["tools"].as_array().unwrap();
    for name in ["capture_screenshot", "execute_python_code", "list_nodes"] {
        assert!(tools.iter().any(|tool| tool == name), "{report}");
    }
    let done = report["execute_python_code"]["content"][0]["text"].as_str().unwrap();
    assert!(done.contains("42") && done.contains("größe 頭部"), "{done}");
    assert_eq!(report["large"], 20_000_000, "code of 20 MB passes whole");
    let parts = report["capture_screenshot"]["content"].as_array().unwrap();
    assert!(parts.iter().any(|part| part["type"] == "image" && part["bytes"].as_u64() > Some(1000)), "{report}");
    assert!(!run("wrong").status.success());
}
