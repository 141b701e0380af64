//! The bridge as an MCP client sees it: names, arguments, replies and manners of its tools.

#[path = "support/slicer_stub.rs"]
mod slicer_stub;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use rmcp::model::{CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ProgressNotificationParam};
use rmcp::service::{NotificationContext, PeerRequestOptions, RunningService};
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::{Value, json};
use slicer_ai_agent::bridge::types::{
    CAPTURE_SCREENSHOT, EXECUTE_PYTHON_CODE, GET_NODE_PROPERTIES, GET_STATUS, LIST_NODES, LOAD_SAMPLE_DATA,
    UNDO_LAST_RUN,
};
use slicer_ai_agent::bridge::{BridgeError, BridgeOptions, serve};
use slicer_stub::{Answer, Seen, SlicerStub};
use tokio::task::JoinHandle;

type Client = RunningService<RoleClient, ()>;
type Server = JoinHandle<Result<(), BridgeError>>;

fn options(url: &str) -> BridgeOptions {
    BridgeOptions { slicer_url: url.to_owned(), timeout: Some(Duration::from_secs(20)), ..BridgeOptions::default() }
}

async fn connect(options: BridgeOptions) -> (Client, Server) {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let server = tokio::spawn(serve(theirs, options));
    (().serve(ours).await.unwrap(), server)
}

async fn call(client: &Client, tool: &'static str, arguments: Value) -> CallToolResult {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    client.call_tool(params).await.unwrap()
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

/// The reply, which has to be the same as text and as structured content.
fn reply(result: &CallToolResult) -> Value {
    let structured = result.structured_content.clone().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text(result)).unwrap(), structured);
    structured
}

/// An address at which nothing listens.
fn nowhere() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/slicer", listener.local_addr().unwrap())
}

// ------------------------------------------------------------------ the server

#[tokio::test]
async fn it_starts_without_slicer_and_says_who_it_is() {
    let (client, _server) = connect(options(&nowhere())).await;
    let info = client.peer_info().unwrap();
    let server = info.server_info.as_ref().unwrap();
    assert_eq!(server.name, "slicer-ai-agent");
    assert_eq!(server.version, env!("CARGO_PKG_VERSION"));
    assert!(info.instructions.as_ref().unwrap().contains("3D Slicer"));
    let names: Vec<_> = client.list_all_tools().await.unwrap().into_iter().map(|t| t.name).collect();
    assert_eq!(
        names,
        [
            LIST_NODES,
            EXECUTE_PYTHON_CODE,
            CAPTURE_SCREENSHOT,
            GET_STATUS,
            GET_NODE_PROPERTIES,
            LOAD_SAMPLE_DATA,
            UNDO_LAST_RUN
        ]
    );
}

#[tokio::test]
async fn without_slicer_every_tool_answers_with_what_to_do() {
    let (client, _server) = connect(options(&nowhere())).await;
    let nodes = reply(&call(&client, LIST_NODES, json!({})).await);
    let run = reply(&call(&client, EXECUTE_PYTHON_CODE, json!({"code": "x = 1"})).await);
    let picture = call(&client, CAPTURE_SCREENSHOT, json!({})).await;
    assert_eq!(run["success"], false);
    assert!(run["message"].as_str().unwrap().starts_with("Connection error: "), "{run}");
    assert_eq!(picture.is_error, Some(true));
    for said in [nodes["error"].as_str().unwrap(), run["message"].as_str().unwrap(), text(&picture)] {
        assert!(said.contains("Start 3D Slicer") && said.contains("\"Slicer API exec\""), "{said}");
    }
}

#[tokio::test]
async fn it_ends_when_the_client_goes() {
    let (client, server) = connect(options(&nowhere())).await;
    client.cancel().await.unwrap();
    tokio::time::timeout(Duration::from_secs(2), server).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_client_that_goes_before_it_spoke_is_no_failure() {
    let (ours, theirs) = tokio::io::duplex(1024);
    drop(ours);
    serve(theirs, options(&nowhere())).await.unwrap();
}

#[tokio::test]
async fn an_address_that_cannot_work_stops_the_start() {
    let (_ours, theirs) = tokio::io::duplex(1024);
    let error = serve(theirs, options("localhost:2016")).await.unwrap_err();
    assert!(matches!(error, BridgeError::Url(_)), "{error}");
}

#[tokio::test]
async fn wrong_arguments_and_unknown_tools_are_named() {
    let (client, _server) = connect(options(&nowhere())).await;
    let wrong = call(&client, EXECUTE_PYTHON_CODE, json!({})).await;
    assert_eq!(wrong.is_error, Some(true));
    assert!(text(&wrong).contains("code"), "{}", text(&wrong));
    let unknown = client.call_tool(CallToolRequestParams::new("zzz")).await.unwrap_err();
    assert!(unknown.to_string().contains("zzz"), "{unknown}");
}

// ------------------------------------------------------------------ list_nodes

#[tokio::test]
async fn nodes_are_listed_in_the_shapes_of_the_contract() {
    let stub = SlicerStub::start(|seen| match seen.target.as_str() {
        "/slicer/mrml/names?class=vtkMRMLModelNode" => Answer::Json("[\"Skull\", \"Skin\"]".to_owned()),
        "/slicer/mrml/ids?name=Skull" => Answer::Json("[\"vtkMRMLModelNode4\"]".to_owned()),
        "/slicer/mrml/properties?id=vtkMRMLModelNode4" => {
            Answer::Json("{\"vtkMRMLModelNode4\": {\"Name\": \"Skull\", \"Mean\": NaN}}".to_owned())
        }
        _ => Answer::Error("No nodes matched the filter criteria".to_owned()),
    })
    .await;
    let (client, _server) = connect(options(&stub.url())).await;
    for (arguments, expected) in [
        (json!({"class_name": "vtkMRMLModelNode"}), json!({"nodes": ["Skull", "Skin"]})),
        (json!({"filter_type": "ids", "name": "Skull", "id": null}), json!({"nodes": ["vtkMRMLModelNode4"]})),
        (
            json!({"filter_type": "properties", "id": "vtkMRMLModelNode4", "class_name": ""}),
            json!({"nodes": {"vtkMRMLModelNode4": {"Name": "Skull", "Mean": "NaN"}}}),
        ),
        (
            json!({"filter_type": "properties", "name": "none"}),
            json!({"error": "Server error: No nodes matched the filter criteria"}),
        ),
        (json!({"filter_type": "zzz"}), json!({"error": "Invalid filter_type specified"})),
    ] {
        let result = call(&client, LIST_NODES, arguments).await;
        assert_eq!(reply(&result), expected);
        assert_ne!(result.is_error, Some(true), "clients read the failure in the reply");
    }
}

// ------------------------------------------------------------------ execute_python_code

#[tokio::test]
async fn code_is_run_and_every_outcome_has_its_shape() {
    let stub = SlicerStub::start(|seen| match seen.body.as_str() {
        "result" => Answer::Json("{\"volume_ml\": 12.5, \"nan\": NaN}".to_owned()),
        "nothing" => Answer::Json("{}".to_owned()),
        "raise" => Answer::Error("division by zero".to_owned()),
        "off" => Answer::Error("unknown command \"b'/exec'\"".to_owned()),
        "quotes" => Answer::Json("{'a': 1}".to_owned()),
        "crash" => Answer::Ended,
        _ => Answer::NotFound,
    })
    .await;
    let (client, _server) = connect(options(&stub.url())).await;
    let run = async |code: &str| reply(&call(&client, EXECUTE_PYTHON_CODE, json!({"code": code})).await);
    assert_eq!(run("result").await, json!({"success": true, "message": {"volume_ml": 12.5, "nan": "NaN"}}));
    assert_eq!(run("nothing").await, json!({"success": true, "message": {}}));
    assert_eq!(run("raise").await, json!({"success": false, "message": "Server error: division by zero"}));
    for (code, beginning, word) in [
        ("off", "Server error: ", "tick \"Slicer API exec\""),
        ("quotes", "Invalid JSON response: ", "{'a': 1}"),
        ("crash", "Connection error: ", "ended or crashed"),
        ("gone", "HTTP Error 404: ", "Slicer API"),
        ("", "HTTP Error 404: ", "no code"),
    ] {
        let reply = run(code).await;
        assert_eq!(reply["success"], false, "{code}");
        let message = reply["message"].as_str().unwrap();
        assert!(message.starts_with(beginning) && message.contains(word), "{code}: {message}");
    }
}

#[tokio::test]
async fn a_time_out_of_the_call_is_kept() {
    let stub = SlicerStub::start(|_| Answer::Never).await;
    let (client, _server) = connect(options(&stub.url())).await;
    let started = Instant::now();
    let result = call(&client, EXECUTE_PYTHON_CODE, json!({"code": "x", "timeout_s": 0.2})).await;
    assert!(started.elapsed() < Duration::from_secs(2));
    assert!(reply(&result)["message"].as_str().unwrap().contains("within 0.2 s"));
    let wrong = call(&client, EXECUTE_PYTHON_CODE, json!({"code": "x", "timeout_s": -1})).await;
    assert!(reply(&wrong)["message"].as_str().unwrap().contains("timeout_s"));
}

#[tokio::test]
async fn read_only_runs_no_code_and_does_not_offer_it() {
    let stub = SlicerStub::start(|_| Answer::Json("[]".to_owned())).await;
    let (client, _server) = connect(BridgeOptions { read_only: true, ..options(&stub.url()) }).await;
    let names: Vec<_> = client.list_all_tools().await.unwrap().into_iter().map(|t| t.name).collect();
    assert_eq!(names, [LIST_NODES, CAPTURE_SCREENSHOT, GET_STATUS, GET_NODE_PROPERTIES]);
    for (tool, arguments, field) in [
        (EXECUTE_PYTHON_CODE, json!({"code": "x = 1"}), "message"),
        (LOAD_SAMPLE_DATA, json!({"name": "CTChest"}), "error"),
        (UNDO_LAST_RUN, json!({}), "message"),
    ] {
        let refused = reply(&call(&client, tool, arguments).await);
        assert_ne!(refused["success"], true);
        assert!(refused[field].as_str().unwrap().contains("--read-only"), "{tool}: {refused}");
    }
    assert!(stub.seen().is_empty());
}

#[tokio::test]
async fn with_wait_a_call_waits_until_slicer_is_there() {
    let url = nowhere();
    let (client, _server) = connect(BridgeOptions { wait: true, ..options(&url) }).await;
    let waiting = tokio::spawn(async move {
        let result = call(&client, LIST_NODES, json!({})).await;
        (client, reply(&result))
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished());
    let address = url.trim_start_matches("http://").trim_end_matches("/slicer");
    let _stub = SlicerStub::start_on(address, |_| Answer::Json("[\"CT\"]".to_owned())).await;
    let (_client, nodes) = tokio::time::timeout(Duration::from_secs(5), waiting).await.unwrap().unwrap();
    assert_eq!(nodes, json!({"nodes": ["CT"]}));
}

// ------------------------------------------------------------------ capture_screenshot

/// The arguments that our code carries to Slicer, read back from its JSON literal.
fn asked(seen: &Seen) -> Value {
    let literal = seen.body.split(".loads(").nth(1).unwrap().strip_suffix("))").unwrap();
    serde_json::from_str(&serde_json::from_str::<String>(literal).unwrap()).unwrap()
}

fn png(width: u32, height: u32) -> String {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::RgbaImage::from_pixel(width, height, image::Rgba([10, 200, 30, 255]))
        .write_to(&mut bytes, image::ImageFormat::Png)
        .unwrap();
    base64::engine::general_purpose::STANDARD.encode(bytes.into_inner())
}

fn picture_reply(id: &Value, name: &str) -> Answer {
    let picture = json!({"name": name, "shown": true, "png": png(400, 200)});
    Answer::Json(json!({"id": id, "ok": true, "pictures": [picture]}).to_string())
}

#[tokio::test]
async fn a_screenshot_is_text_and_image_in_the_size_and_format_asked_for() {
    let stub = SlicerStub::start(|seen| {
        let asked = asked(seen);
        picture_reply(&asked["id"], if asked["view_type"] == "3d" { "3D view 1" } else { "Red" })
    })
    .await;
    let (client, _server) = connect(options(&stub.url())).await;
    let arguments = json!({
        "view_type": "slice", "view_name": "Red", "slice_offset": -12.5, "slice_orientation": "sagittal",
        "image_size": 100,
    });
    let slice = call(&client, CAPTURE_SCREENSHOT, arguments).await;
    assert_eq!(text(&slice), "Screenshot of Red: 100 x 50 pixels.");
    let image = slice.content[1].as_image().unwrap();
    assert_eq!(image.mime_type, "image/jpeg");
    let bytes = base64::engine::general_purpose::STANDARD.decode(&image.data).unwrap();
    let decoded = image::load_from_memory_with_format(&bytes, image::ImageFormat::Jpeg).unwrap();
    assert_eq!((decoded.width(), decoded.height()), (100, 50));
    let about = slice.structured_content.unwrap();
    assert_eq!(about["views"], json!(["Red"]));
    assert_eq!(about["mime_type"], "image/jpeg");

    let arguments = json!({"view_type": "3d", "camera_axis": "a", "format": "png"});
    let three_d = call(&client, CAPTURE_SCREENSHOT, arguments).await;
    assert_eq!(three_d.content[1].as_image().unwrap().mime_type, "image/png");
    assert_eq!(three_d.structured_content.unwrap()["width"], 400);

    let seen = stub.seen();
    let mut first = asked(&seen[0]);
    assert!(first.as_object_mut().unwrap().shift_remove("id").is_some());
    assert_eq!(
        first,
        json!({
            "view_type": "slice", "view_name": "Red", "slice_offset": -12.5, "slice_orientation": "Sagittal",
            "camera_axis": null,
        })
    );
    assert_eq!(asked(&seen[1])["camera_axis"], "A");
    assert_ne!(asked(&seen[0])["id"], asked(&seen[1])["id"]);
}

#[tokio::test]
async fn a_screenshot_that_fails_is_an_error_in_words() {
    let stub = SlicerStub::start(|seen| {
        let error = "There is no slice view named \"blue\". There are: Red.";
        Answer::Json(json!({"id": asked(seen)["id"], "ok": false, "error": error}).to_string())
    })
    .await;
    let (client, _server) = connect(options(&stub.url())).await;
    let blue = call(&client, CAPTURE_SCREENSHOT, json!({"view_type": "slice", "view_name": "blue"})).await;
    assert_eq!(blue.is_error, Some(true));
    assert!(text(&blue).contains("There are: Red."), "{}", text(&blue));
    let wrong = call(&client, CAPTURE_SCREENSHOT, json!({"view_type": "zzz"})).await;
    assert_eq!(wrong.is_error, Some(true));
    assert_eq!(stub.seen().len(), 1, "a wrong argument is found before Slicer is asked");
}

/// Replies are swapped when code in Slicer pumps events: a picture of another request must not be shown.
#[tokio::test]
async fn the_picture_of_another_request_is_not_taken() {
    let count = AtomicUsize::new(0);
    let stub = SlicerStub::start(move |seen| match count.fetch_add(1, Ordering::SeqCst) {
        0 => picture_reply(&json!("another"), "Yellow"),
        1 => picture_reply(&asked(seen)["id"], "Red"),
        _ => Answer::Json("{\"value\": 7}".to_owned()),
    })
    .await;
    let (client, _server) = connect(options(&stub.url())).await;
    let second_try = call(&client, CAPTURE_SCREENSHOT, json!({"view_type": "slice"})).await;
    assert!(text(&second_try).contains("Red"), "{}", text(&second_try));
    let never = call(&client, CAPTURE_SCREENSHOT, json!({"view_type": "slice"})).await;
    assert_eq!(never.is_error, Some(true));
    assert!(text(&never).contains("another request"), "{}", text(&never));
}

// ------------------------------------------------------------------ manners

fn request(code: &str) -> ClientRequest {
    let Value::Object(arguments) = json!({"code": code}) else { unreachable!() };
    let params = CallToolRequestParams::new(EXECUTE_PYTHON_CODE).with_arguments(arguments);
    ClientRequest::CallToolRequest(CallToolRequest::new(params))
}

#[tokio::test]
async fn a_cancelled_call_that_waits_never_reaches_slicer() {
    let stub =
        SlicerStub::start(|_| Answer::After(Duration::from_millis(500), Box::new(Answer::Json("1".to_owned())))).await;
    let (client, _server) = connect(options(&stub.url())).await;
    let send = async |code: &str| {
        let options = PeerRequestOptions::no_options();
        let handle = client.send_cancellable_request(request(code), options).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        handle
    };
    let first = send("first").await;
    let second = send("second").await;
    let third = send("third").await;
    second.cancel(None).await.unwrap();
    first.await_response().await.unwrap();
    third.await_response().await.unwrap();
    let bodies: Vec<_> = stub.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies, ["first", "third"]);
    assert_eq!(stub.most_at_once(), 1);
}

#[tokio::test]
async fn the_bridge_ends_soon_when_the_client_goes_during_a_call() {
    let stub = SlicerStub::start(|_| Answer::Never).await;
    let (client, server) = connect(options(&stub.url())).await;
    let options = PeerRequestOptions::no_options();
    let handle = client.send_cancellable_request(request("hang"), options).await.unwrap();
    while stub.seen().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    client.cancel().await.unwrap();
    drop(handle);
    tokio::time::timeout(Duration::from_secs(8), server).await.unwrap().unwrap().unwrap();
}

struct Listener(tokio::sync::mpsc::UnboundedSender<ProgressNotificationParam>);

impl ClientHandler for Listener {
    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.0.send(params).unwrap();
    }
}

/// A client that ends calls after some silence would otherwise give a long one up.
#[tokio::test]
async fn a_long_call_says_that_it_is_alive() {
    let stub =
        SlicerStub::start(|_| Answer::After(Duration::from_millis(5500), Box::new(Answer::Json("1".to_owned())))).await;
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    tokio::spawn(serve(theirs, options(&stub.url())));
    let (heard, mut progress) = tokio::sync::mpsc::unbounded_channel();
    let client = Listener(heard).serve(ours).await.unwrap();
    let options = PeerRequestOptions::no_options();
    let handle = client.send_cancellable_request(request("long"), options).await.unwrap();
    handle.await_response().await.unwrap();
    let said = progress.recv().await.unwrap();
    assert_eq!(said.message.as_deref(), Some("Waiting for Slicer (2 s)"));
}
