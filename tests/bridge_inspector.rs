//! The official MCP inspector (npm) in its CLI mode against the bridge, with the practice Slicer behind it.

#[path = "support/practice.rs"]
mod practice;

use std::process::Command;

use serde_json::Value;

const INSPECTOR: &str = "@modelcontextprotocol/inspector@2.12.0";

/// What the inspector prints for these arguments, as JSON.
fn inspect(url: &str, arguments: &[&str]) -> Value {
    let mut command = Command::new("npx");
    command.args(["--yes", INSPECTOR, "--cli", env!("CARGO_BIN_EXE_slicer-ai-agent"), "bridge", "--slicer-url", url]);
    let output = command.args(arguments).env("MCP_INSPECTOR_SECRET_STORE", "memory").output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {printed} {errors}");
    let start = printed.find('{').unwrap_or_else(|| panic!("{arguments:?}: {printed} {errors}"));
    serde_json::from_str(&printed[start..]).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {printed}"))
}

#[test]
#[ignore = "needs npx of Node.js 22.19 or newer, which Debian 12 does not have; run it with: cargo test --test bridge_inspector -- --ignored"]
fn the_official_inspector_lists_calls_and_reads() {
    let slicer = practice::start();
    let tools = inspect(&slicer.url, &["--method", "tools/list"]);
    assert_eq!(tools["tools"].as_array().unwrap().len(), 7, "{tools}");
    let call = |tool: &str, arguments: &[&str]| {
        let mut all = vec!["--method", "tools/call", "--tool-name", tool];
        for argument in arguments {
            all.extend(["--tool-arg", argument]);
        }
        inspect(&slicer.url, &all)
    };
    let run = call("execute_python_code", &["code=__execResult = 40 + 2"]);
    assert_eq!(run["structuredContent"], serde_json::json!({"success": true, "message": 42}));
    let nodes = call("list_nodes", &["filter_type=ids", "class_name=vtkMRMLSliceNode"]);
    assert_eq!(nodes["structuredContent"]["nodes"].as_array().unwrap().len(), 3, "{nodes}");
    assert_eq!(call("get_status", &[])["structuredContent"]["running"], true);
    let picture = call("capture_screenshot", &["view_type=slice", "view_name=red", "image_size=200"]);
    assert_eq!(picture["content"][1]["mimeType"], "image/jpeg", "{picture}");
    assert_eq!(inspect(&slicer.url, &["--method", "resources/list"])["resources"].as_array().unwrap().len(), 2);
    let scene = inspect(&slicer.url, &["--method", "resources/read", "--uri", "slicer://scene"]);
    assert!(scene["contents"][0]["text"].as_str().unwrap().contains("\"nodes\""), "{scene}");
}
