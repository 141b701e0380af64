//! The bridge on the practice Slicer: what its tools do there, and that calls neither harm Slicer nor each other.

#[path = "support/practice.rs"]
mod support;

use std::time::{Duration, Instant};

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ReadResourceRequestParams, ResourceContents};
use rmcp::service::{PeerRequestOptions, RunningService};
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use slicer_ai_agent::bridge::types::{
    EXECUTE_PYTHON_CODE, GET_NODE_PROPERTIES, GET_STATUS, LIST_NODES, LOAD_SAMPLE_DATA, UNDO_LAST_RUN,
};
use slicer_ai_agent::bridge::{BridgeOptions, WebServer, serve};
use slicer_ai_agent::slicer::practice::PracticeProcess;

type Client = RunningService<RoleClient, ()>;

struct Bridge {
    client: Client,
    slicer: PracticeProcess,
}

impl Bridge {
    async fn start() -> Self {
        let slicer = tokio::task::spawn_blocking(support::start).await.unwrap();
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let options = BridgeOptions { slicer_url: slicer.url.clone(), ..BridgeOptions::default() };
        tokio::spawn(serve(theirs, options));
        Self { client: ().serve(ours).await.unwrap(), slicer }
    }

    async fn call(&self, tool: &'static str, arguments: Value) -> Value {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        self.client.call_tool(params).await.unwrap().structured_content.unwrap()
    }

    async fn run(&self, code: &str) -> Value {
        self.call(EXECUTE_PYTHON_CODE, json!({"code": code})).await
    }

    async fn result(&self, code: &str) -> Value {
        let mut reply = self.run(code).await;
        assert_eq!(reply["success"], true, "{code}: {reply}");
        reply["message"].take()
    }

    /// Runs code on Slicer's route itself, as a client would that knows nothing of us.
    async fn direct(&self, code: &str) -> Value {
        WebServer::new(&self.slicer.url, None).unwrap().exec(code, None).await.unwrap()
    }
}

// ------------------------------------------------------------------ running code

/// Names stay from call to call, and are those that a client without us sees: people use both.
#[tokio::test]
async fn code_runs_in_the_namespace_of_the_route() {
    let bridge = Bridge::start().await;
    bridge.run("kept = 41").await;
    assert_eq!(bridge.direct("__execResult = kept + 1").await, 42);
    bridge.direct("theirs = 'größe 頭部 🦴'").await;
    assert_eq!(bridge.result("__execResult = theirs").await, "größe 頭部 🦴");
    assert_eq!(bridge.result("__execResult = __name__").await, "WebServerLib.SlicerRequestHandler");
    let left = bridge.direct("__execResult = [n for n in globals() if n.startswith('__execResult_')]").await;
    assert_eq!(left, json!([]), "nothing of ours stays behind");
}

#[tokio::test]
async fn every_way_to_set_the_result_is_understood() {
    let bridge = Bridge::start().await;
    for (code, expected) in [
        ("__execResult = 1 + 1", json!(2)),
        ("__execResult['a'] = 1", json!({"a": 1})),
        ("x = 1", json!({})),
        ("def f():\n    global __execResult\n    __execResult = 'f'\nf()", json!("f")),
        ("globals()['__execResult'] = 'g'", json!("g")),
        ("exec('__execResult = 7')", json!(7)),
        ("__execResult = 1\ndel __execResult\n__execResult = 3", json!(3)),
        ("for __execResult in range(4): pass", json!(3)),
        ("import os as __execResult\n__execResult = __execResult.name", json!("posix")),
        ("__execResult = [(lambda: n)() for n in (1, 2)]", json!([1, 2])),
        ("\u{feff}__execResult = 'bom'\r\n", json!("bom")),
        ("# -*- coding: latin-1 -*-\n__execResult = 'größe'", json!("größe")),
    ] {
        assert_eq!(bridge.result(code).await, expected, "{code}");
    }
    for (code, said) in [
        ("del __execResult", "Server error: name '__execResult' is not defined"),
        ("del __execResult\n__execResult", "Server error: name '__execResult' is not defined"),
        ("def (:", "Server error: invalid syntax (<string>, line 1)"),
        ("raise ValueError('bad')", "Server error: bad"),
        ("raise ValueError", "Server error: ValueError"),
        ("__execResult = {1, 2}", "Server error: Object of type set is not JSON serializable"),
    ] {
        assert_eq!(bridge.run(code).await, json!({"success": false, "message": said}), "{code}");
    }
}

/// On the bare route these end Slicer or are never answered.
#[tokio::test]
async fn code_that_would_end_slicer_does_not() {
    let bridge = Bridge::start().await;
    for code in
        ["import sys\nsys.exit(3)", "exit()", "raise KeyboardInterrupt", "raise SystemExit", "raise GeneratorExit"]
    {
        let reply = bridge.run(code).await;
        assert_eq!(reply["success"], false, "{code}: {reply}");
    }
    assert_eq!(bridge.result("__execResult = 'alive'").await, "alive");
}

/// Code that pumps events lets another request run inside it; on the bare route the outer reply is then the inner's.
#[tokio::test]
async fn a_request_inside_another_does_not_take_its_reply() {
    let bridge = Bridge::start().await;
    let outer = "import time\n__execResult = 'outer'\nend = time.monotonic() + 1.5\n\
                 while time.monotonic() < end:\n    slicer.app.processEvents()\n    time.sleep(0.01)";
    let inner = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        bridge.direct("__execResult = 'inner'").await
    };
    let started = Instant::now();
    let (outer, inner) = tokio::join!(bridge.run(outer), async { (inner.await, started.elapsed()) });
    assert!(inner.1 < Duration::from_millis(1400), "the inner one ran inside: {:?}", inner.1);
    assert_eq!(inner.0, "inner");
    assert_eq!(outer, json!({"success": true, "message": "outer"}));
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_stopped() {
    let bridge = Bridge::start().await;
    let started = Instant::now();
    let reply = bridge.call(EXECUTE_PYTHON_CODE, json!({"code": "while True: pass", "timeout_s": 0.4})).await;
    let said = "Server error: the code took longer than 0.4 s and was stopped";
    assert_eq!(reply, json!({"success": false, "message": said}));
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    assert_eq!(bridge.result("__execResult = 'alive'").await, "alive");
}

#[tokio::test]
async fn a_cancelled_call_is_stopped_inside_slicer() {
    let bridge = Bridge::start().await;
    let params = CallToolRequestParams::new(EXECUTE_PYTHON_CODE)
        .with_arguments(json!({"code": "import time\nwhile True: time.sleep(0.01)"}).as_object().unwrap().clone());
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let handle = bridge.client.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let status = bridge.call(GET_STATUS, json!({})).await;
    assert_eq!((&status["running"], &status["busy"]), (&json!(true), &json!(true)), "{status}");
    assert!(status["busy_s"].as_f64().unwrap() >= 0.3, "{status}");
    let started = Instant::now();
    handle.cancel(None).await.unwrap();
    assert_eq!(bridge.result("__execResult = 'alive'").await, "alive");
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

#[tokio::test]
async fn what_code_prints_and_what_vtk_says_is_captured_when_wanted() {
    let bridge = Bridge::start().await;
    let code = "import sys\nprint('to stdout')\nprint('to stderr', file=sys.stderr)\n\
                slicer.mrmlScene.AddNode(None) if False else None\nvtk.vtkPolyDataReader().Update()\n__execResult = 5";
    let reply = bridge.call(EXECUTE_PYTHON_CODE, json!({"code": code, "capture": true})).await;
    assert_eq!((&reply["success"], &reply["message"]), (&json!(true), &json!(5)), "{reply}");
    let report = &reply["report"];
    assert_eq!((report["stdout"].as_str(), report["stderr"].as_str()), (Some("to stdout\n"), Some("to stderr\n")));
    assert_eq!(report["vtk"][0]["kind"], "error", "{report}");
    assert!(report["duration_ms"].as_f64().unwrap() > 0.0);
    let code = "def deep():\n    raise RuntimeError('deep')\n\ndeep()";
    let failed = bridge.call(EXECUTE_PYTHON_CODE, json!({"code": code, "capture": true})).await;
    assert_eq!(failed["message"], "Server error: deep");
    let error = &failed["report"]["error"];
    assert_eq!((&error["type"], &error["line"]), (&json!("RuntimeError"), &json!(2)), "{error}");
    assert!(error["traceback"].as_str().unwrap().contains("raise RuntimeError('deep')"), "{error}");
    let lost = bridge.call(EXECUTE_PYTHON_CODE, json!({"code": "print(1)\n__execResult = {1}", "capture": true})).await;
    assert_eq!((&lost["success"], &lost["report"]["stdout"]), (&json!(false), &json!("1\n")), "{lost}");
}

// ------------------------------------------------------------------ undo and sample data

#[tokio::test]
async fn the_last_undoable_run_is_taken_back() {
    let bridge = Bridge::start().await;
    let nothing = bridge.call(UNDO_LAST_RUN, json!({})).await;
    assert_eq!(nothing["success"], false);
    let loaded = bridge.call(LOAD_SAMPLE_DATA, json!({"name": "ctchest"})).await;
    assert_eq!(loaded["loaded"][0]["name"], "CTChest", "{loaded}");
    let code = "v = slicer.util.getNode('CTChest')\nv.SetName('Changed')\nslicer.util.arrayFromVolume(v)[:] = 7\n\
                slicer.util.arrayFromVolumeModified(v)\nslicer.mrmlScene.AddNewNodeByClass('vtkMRMLModelNode', 'New')";
    let reply = bridge.call(EXECUTE_PYTHON_CODE, json!({"code": code, "undoable": true})).await;
    assert_eq!(reply["changes"]["added"][0]["name"], "New", "{reply}");
    let undone = bridge.call(UNDO_LAST_RUN, json!({})).await;
    assert_eq!(undone["success"], true, "{undone}");
    let code = "v = slicer.util.getNode('CTChest')\n\
                __execResult = [int(slicer.util.arrayFromVolume(v).max()), slicer.util.getFirstNodeByName('New') is None]";
    let state = bridge.result(code).await;
    assert!(state[0].as_i64().unwrap() > 7 && state[1] == true, "{state}");
    // That look had no checkpoint: going further back takes it along, so it has to be allowed.
    let refused = bridge.call(UNDO_LAST_RUN, json!({})).await;
    assert!(refused["message"].as_str().unwrap().contains("include_later"), "{refused}");
    let undone = bridge.call(UNDO_LAST_RUN, json!({"include_later": true})).await;
    assert_eq!(undone["success"], true, "{undone}");
    let nodes = bridge.call(LIST_NODES, json!({"class_name": "vtkMRMLScalarVolumeNode"})).await;
    assert_eq!(nodes, json!({"nodes": []}));
}

#[tokio::test]
async fn unknown_sample_data_is_answered_with_what_there_is() {
    let bridge = Bridge::start().await;
    let reply = bridge.call(LOAD_SAMPLE_DATA, json!({"name": "nope"})).await;
    assert!(reply["error"].as_str().unwrap().contains("\"nope\""), "{reply}");
    assert!(reply["known"].as_array().unwrap().contains(&json!("MRHead")), "{reply}");
}

// ------------------------------------------------------------------ status, nodes, resources

#[tokio::test]
async fn status_and_nodes_are_told() {
    let bridge = Bridge::start().await;
    let status = bridge.call(GET_STATUS, json!({})).await;
    assert_eq!(
        (&status["running"], &status["exec"], &status["busy"]),
        (&json!(true), &json!(true), &json!(false)),
        "{status}"
    );
    assert_eq!((&status["practice"], &status["pid"]), (&json!(true), &json!(bridge.slicer.pid)), "{status}");
    let code = "m = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLMarkupsFiducialNode', 'Tip')\n\
                m.AddControlPoint(1, 2, 3)\n__execResult = m.GetID()";
    let id = bridge.result(code).await;
    let reply = bridge.call(GET_NODE_PROPERTIES, json!({"ids": [id, "none"]})).await;
    let node = &reply["nodes"][id.as_str().unwrap()];
    assert_eq!((&node["name"], &node["control_points"][0]["position"]), (&json!("Tip"), &json!([1.0, 2.0, 3.0])));
    assert!(reply["nodes"]["none"]["error"].is_string(), "{reply}");
}

#[tokio::test]
async fn scene_nodes_and_views_can_be_read() {
    let bridge = Bridge::start().await;
    bridge.call(LOAD_SAMPLE_DATA, json!({"name": "MRHead"})).await;
    let read = async |uri: &str| bridge.client.read_resource(ReadResourceRequestParams::new(uri)).await;
    let text = |contents: &ResourceContents| match contents {
        ResourceContents::TextResourceContents { text, .. } => serde_json::from_str::<Value>(text).unwrap(),
        other => panic!("{other:?}"),
    };
    let scene = text(&read("slicer://scene").await.unwrap().contents[0]);
    let node = scene["nodes"].as_array().unwrap().iter().find(|node| node["name"] == "MRHead").unwrap();
    let uri = format!("slicer://node/{}", node["id"].as_str().unwrap());
    assert_eq!(text(&read(&uri).await.unwrap().contents[0])["name"], "MRHead");
    for uri in ["slicer://view/Red", "slicer://view/3d", "slicer://view/1", "slicer://view/application"] {
        match &read(uri).await.unwrap().contents[0] {
            ResourceContents::BlobResourceContents { blob, mime_type, .. } => {
                assert!(blob.len() > 5000, "{uri}: {} characters", blob.len());
                assert_eq!(mime_type.as_deref(), Some("image/jpeg"));
            }
            other => panic!("{uri}: {other:?}"),
        }
    }
    for uri in ["slicer://view/none", "slicer://node/none", "slicer://nothing", "slicer://node/", "file:///etc/hosts"] {
        let error = read(uri).await.unwrap_err().to_string();
        assert!(error.contains(uri), "{error}");
    }
    let fixed = bridge.client.list_all_resources().await.unwrap();
    assert_eq!(
        fixed.iter().map(|one| one.uri.as_str()).collect::<Vec<_>>(),
        ["slicer://scene", "slicer://view/application"]
    );
    assert_eq!(bridge.client.list_all_resource_templates().await.unwrap().len(), 2);
}
