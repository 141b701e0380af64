//! The bridge over streamable HTTP: several clients share one queue to Slicer, and only who shows the token gets in.
//!
//! The bridge is the real program; the clients are `rmcp`'s and, where a request has to be wrong on purpose, a socket.

#[path = "support/http_bridge.rs"]
mod http_bridge;
#[path = "support/practice.rs"]
mod practice;
#[path = "support/slicer_stub.rs"]
mod slicer_stub;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use http_bridge::HttpBridgeProcess;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, PeerRequestOptions, RequestHandle, RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::{Value, json};
use slicer_ai_agent::bridge::types::{CAPTURE_SCREENSHOT, EXECUTE_PYTHON_CODE, LIST_NODES};
use slicer_stub::{Answer, SlicerStub};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

type Client = RunningService<RoleClient, ()>;

fn transport(bridge: &HttpBridgeProcess, token: &str) -> StreamableHttpClientTransport<reqwest::Client> {
    // The client is built for TLS of the program's choice, also where it speaks plain HTTP. A second choice is refused.
    drop(rustls::crypto::ring::default_provider().install_default());
    let config = StreamableHttpClientTransportConfig::with_uri(bridge.url.as_str()).auth_header(token);
    StreamableHttpClientTransport::with_client(reqwest::Client::builder().no_proxy().build().unwrap(), config)
}

async fn connect(bridge: &HttpBridgeProcess) -> Client {
    ().serve(transport(bridge, &bridge.token)).await.unwrap()
}

fn request(code: &str) -> CallToolRequestParams {
    let Value::Object(arguments) = json!({"code": code}) else { unreachable!() };
    CallToolRequestParams::new(EXECUTE_PYTHON_CODE).with_arguments(arguments)
}

fn reply(result: &CallToolResult) -> Value {
    result.structured_content.clone().unwrap()
}

async fn run(client: &Client, code: &str) -> Value {
    reply(&client.call_tool(request(code)).await.unwrap())
}

async fn send(client: &Client, code: &str) -> RequestHandle<RoleClient> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(request(code)));
    client.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap()
}

/// A Slicer that gives each code back, after a little work.
async fn echo() -> SlicerStub {
    SlicerStub::start(|seen| {
        let answer = Answer::Json(json!({"code": seen.body}).to_string());
        Answer::After(Duration::from_millis(1), Box::new(answer))
    })
    .await
}

async fn until(what: &str, done: impl Fn() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(30), "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Sends one request as it is, and gives status line, header and body.
async fn raw(bridge: &HttpBridgeProcess, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(bridge.authority()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut bytes)).await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let status = text.split(' ').nth(1).unwrap_or_default().parse().unwrap_or_else(|_| panic!("no reply: {text:?}"));
    (status, text)
}

/// The first request of a client, with these header lines.
fn first_request(lines: &str) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
    .to_string();
    format!(
        "POST /mcp HTTP/1.1\r\n{lines}Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

// ------------------------------------------------------------------ clients

#[tokio::test]
async fn a_client_gets_the_tools_and_calls_them() {
    let stub = echo().await;
    let bridge = HttpBridgeProcess::start(&stub.url(), &[]);
    let client = connect(&bridge).await;
    assert_eq!(client.peer_info().unwrap().server_info.as_ref().unwrap().name, "slicer-ai-agent");
    let names: HashSet<String> =
        client.list_all_tools().await.unwrap().into_iter().map(|tool| tool.name.to_string()).collect();
    for name in [LIST_NODES, EXECUTE_PYTHON_CODE, CAPTURE_SCREENSHOT] {
        assert!(names.contains(name), "{names:?}");
    }
    assert_eq!(run(&client, "x = 1").await, json!({"success": true, "message": {"code": "x = 1"}}));
    client.cancel().await.unwrap();
    #[cfg(unix)]
    {
        let mut bridge = bridge;
        assert!(bridge.terminate().success());
        assert_eq!(bridge.output(), "", "stdout is not for the bridge's own words");
    }
}

/// The revision of MCP without sessions is spoken too.
#[tokio::test]
async fn a_client_of_the_protocol_without_sessions_is_served() {
    let stub = echo().await;
    let bridge = HttpBridgeProcess::start(&stub.url(), &[]);
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let client = ().serve_with_lifecycle(transport(&bridge, &bridge.token), lifecycle).await.unwrap();
    assert!(client.list_all_tools().await.unwrap().len() >= 3);
    assert_eq!(run(&client, "x = 2").await["message"]["code"], "x = 2");
}

/// Eight clients, 125 calls each and sixteen at a time: every reply belongs to its call, and Slicer never gets two.
async fn many_calls(bridge: &HttpBridgeProcess, code: fn(usize, usize) -> String, expected: fn(usize, usize) -> Value) {
    let mut clients = Vec::new();
    for number in 0..8 {
        let client = connect(bridge).await;
        clients.push(tokio::spawn(async move {
            let calls = (0..125).map(|call| {
                let client = &client;
                async move { (call, run(client, &code(number, call)).await) }
            });
            let replies: Vec<(usize, Value)> =
                futures::StreamExt::collect(futures::StreamExt::buffer_unordered(futures::stream::iter(calls), 16))
                    .await;
            assert_eq!(replies.len(), 125);
            for (call, reply) in replies {
                assert_eq!(reply, json!({"success": true, "message": expected(number, call)}));
            }
        }));
    }
    for client in clients {
        tokio::time::timeout(Duration::from_secs(300), client).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_thousand_calls_of_eight_clients_never_meet_in_slicer() {
    let stub = echo().await;
    let bridge = HttpBridgeProcess::start(&stub.url(), &[]);
    let started = Instant::now();
    let code = |client: usize, call: usize| format!("client {client} call {call}");
    many_calls(&bridge, code, |client, call| json!({"code": format!("client {client} call {call}")})).await;
    eprintln!("1000 calls of 8 clients: {:.2} s", started.elapsed().as_secs_f64());
    let seen = stub.seen();
    assert_eq!(seen.len(), 1000);
    assert_eq!(seen.iter().map(|seen| &seen.body).collect::<HashSet<_>>().len(), 1000);
    assert_eq!(stub.most_at_once(), 1);
}

#[tokio::test]
async fn a_thousand_calls_of_eight_clients_in_a_practice_slicer() {
    let slicer = tokio::task::spawn_blocking(practice::start).await.unwrap();
    let bridge = HttpBridgeProcess::start(&slicer.url, &[]);
    let first = connect(&bridge).await;
    let set_up = "import builtins; builtins.call_count = 0; builtins.call_inside = 0";
    assert_eq!(run(&first, set_up).await["success"], true);
    let started = Instant::now();
    let code = |client: usize, call: usize| {
        format!(
            "import builtins\nbuiltins.call_inside += 1\nbuiltins.call_count += 1\n__execResult = {{'client': {client}, \
             'call': {call}, 'inside': builtins.call_inside}}\nbuiltins.call_inside -= 1"
        )
    };
    many_calls(&bridge, code, |client, call| json!({"client": client, "call": call, "inside": 1})).await;
    eprintln!("1000 calls of 8 clients in a practice Slicer: {:.2} s", started.elapsed().as_secs_f64());
    assert_eq!(run(&first, "import builtins; __execResult = builtins.call_count").await["message"], 1000);
}

#[tokio::test]
async fn a_cancelled_call_is_withdrawn_and_the_others_go_on() {
    let stub = SlicerStub::start(|seen| {
        let answer = Box::new(Answer::Json(json!({"code": seen.body}).to_string()));
        Answer::After(Duration::from_millis(if seen.body == "first" { 3000 } else { 1 }), answer)
    })
    .await;
    let bridge = HttpBridgeProcess::start(&stub.url(), &[]);
    let (one, two) = (connect(&bridge).await, connect(&bridge).await);
    let first = send(&one, "first").await;
    until("the first call is in Slicer", || stub.seen().len() == 1).await;
    let given_up = send(&one, "given up").await;
    tokio::time::sleep(Duration::from_millis(150)).await;
    let of_other = send(&two, "of the other").await;
    tokio::time::sleep(Duration::from_millis(150)).await;
    given_up.cancel(None).await.unwrap();
    first.await_response().await.unwrap();
    of_other.await_response().await.unwrap();
    assert_eq!(run(&one, "last").await["message"]["code"], "last");
    let bodies: Vec<String> = stub.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies, ["first", "of the other", "last"]);
    assert_eq!(stub.most_at_once(), 1);
}

/// A client without sessions that goes away has given its call up; that is how it cancels.
#[tokio::test]
async fn a_client_that_vanishes_does_not_disturb_the_others() {
    let stub = SlicerStub::start(|seen| {
        let answer = Box::new(Answer::Json(json!({"code": seen.body}).to_string()));
        Answer::After(Duration::from_millis(if seen.body == "first" { 3000 } else { 1 }), answer)
    })
    .await;
    let bridge = HttpBridgeProcess::start(&stub.url(), &[]);
    let stays = connect(&bridge).await;
    let first = send(&stays, "first").await;
    until("the first call is in Slicer", || stub.seen().len() == 1).await;

    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": EXECUTE_PYTHON_CODE, "arguments": {"code": "of the vanished"}, "_meta": meta}})
    .to_string();
    let mut vanishes = TcpStream::connect(bridge.authority()).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        bridge.authority(),
        bridge.token,
        EXECUTE_PYTHON_CODE,
        body.len()
    );
    vanishes.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    drop(vanishes);

    assert_eq!(run(&stays, "second").await["message"]["code"], "second");
    first.await_response().await.unwrap();
    let bodies: Vec<String> = stub.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies, ["first", "second"]);

    // A client in a session that vanishes while its call runs leaves the queue in order too.
    let leaves = connect(&bridge).await;
    let running = send(&leaves, "left behind").await;
    until("its call is in Slicer", || stub.seen().iter().any(|seen| seen.body == "left behind")).await;
    drop((running, leaves));
    assert_eq!(run(&stays, "third").await["message"]["code"], "third");
    assert_eq!(stub.most_at_once(), 1);
}

/// A session by hand: its id, and a way to send calls over connections of their own.
struct Session<'a> {
    bridge: &'a HttpBridgeProcess,
    id: String,
}

impl<'a> Session<'a> {
    async fn begin(bridge: &'a HttpBridgeProcess) -> Self {
        let lines = format!("Host: {}\r\nAuthorization: Bearer {}\r\n", bridge.authority(), bridge.token);
        let (status, text) = raw(bridge, &first_request(&lines)).await;
        assert_eq!(status, 200, "{text}");
        let id = text.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().to_owned();
        let session = Self { bridge, id };
        let mut stream = session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        assert!(stream.read(&mut [0; 64]).await.unwrap() > 0);
        session
    }

    async fn send(&self, message: &Value) -> TcpStream {
        let body = message.to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nMcp-Session-Id: {}\r\nAccept: \
             application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.bridge.authority(),
            self.bridge.token,
            self.id,
            body.len()
        );
        let mut stream = TcpStream::connect(self.bridge.authority()).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    async fn call(&self, id: u32, code: &str) -> TcpStream {
        let params = json!({"name": EXECUTE_PYTHON_CODE, "arguments": {"code": code}});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await
    }
}

/// Reads until this text has come.
async fn read_until(stream: &mut TcpStream, text: &str) {
    let mut got = Vec::new();
    while !String::from_utf8_lossy(&got).contains(text) {
        let count = tokio::time::timeout(Duration::from_secs(20), stream.read_buf(&mut got)).await.unwrap().unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&got));
    }
}

/// What a client that was killed had still asked for is not run when it is long gone; a client that only closes its
/// connections after each answer keeps its session.
#[tokio::test]
async fn the_waiting_call_of_a_session_whose_client_is_gone_is_withdrawn() {
    let stub = SlicerStub::start(|seen| {
        let answer = Box::new(Answer::Json(json!({"code": seen.body}).to_string()));
        Answer::After(Duration::from_secs(if seen.body == "long" { 20 } else { 0 }), answer)
    })
    .await;
    let bridge = HttpBridgeProcess::start(&stub.url(), &[]);
    let (gone, tidy) = (Session::begin(&bridge).await, Session::begin(&bridge).await);
    read_until(&mut tidy.call(1, "before").await, "before").await;

    let stays = connect(&bridge).await;
    let long = send(&stays, "long").await;
    until("the long call is in Slicer", || stub.seen().iter().any(|seen| seen.body == "long")).await;
    let waiting = gone.call(1, "of the gone").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(waiting);
    long.await_response().await.unwrap();
    assert_eq!(run(&stays, "after").await["message"]["code"], "after");
    let bodies: Vec<String> = stub.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies, ["before", "long", "after"]);

    read_until(&mut tidy.call(2, "still here").await, "still here").await;
    read_until(&mut gone.call(2, "back again").await, "404").await;
}

struct Listener(tokio::sync::mpsc::UnboundedSender<ProgressNotificationParam>);

impl ClientHandler for Listener {
    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.0.send(params).unwrap();
    }
}

#[tokio::test]
async fn progress_reaches_the_client_that_waits_and_no_other() {
    let stub =
        SlicerStub::start(|_| Answer::After(Duration::from_millis(5600), Box::new(Answer::Json("1".to_owned())))).await;
    let bridge = HttpBridgeProcess::start(&stub.url(), &[]);
    let listen = async || {
        let (heard, progress) = tokio::sync::mpsc::unbounded_channel();
        (Listener(heard).serve(transport(&bridge, &bridge.token)).await.unwrap(), progress)
    };
    let ((asks, mut its_progress), (_idle, mut others)) = (listen().await, listen().await);
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(request("long")));
    let call = asks.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap();
    call.await_response().await.unwrap();
    let said = its_progress.try_recv().unwrap();
    assert!(said.progress >= 2.0, "{said:?}");
    assert!(others.try_recv().is_err());
}

// ------------------------------------------------------------------ the gate

#[tokio::test]
async fn only_who_shows_the_token_gets_in() {
    let stub = echo().await;
    let bridge = HttpBridgeProcess::start(&stub.url(), &[]);
    let host = format!("Host: {}\r\n", bridge.authority());
    let right = format!("Authorization: Bearer {}\r\n", bridge.token);
    assert_eq!(raw(&bridge, &first_request(&format!("{host}{right}"))).await.0, 200);
    for wrong in [
        String::new(),
        "Authorization: Bearer\r\n".to_owned(),
        "Authorization: Bearer wrong\r\n".to_owned(),
        format!("Authorization: Basic {}\r\n", bridge.token),
        format!("Authorization: Bearer {}x\r\n", bridge.token),
        format!("Authorization: Bearer {}\r\n", &bridge.token[1..]),
        format!("Authorization: Bearer wrong\r\n{right}"),
        format!("X-Authorization: Bearer {}\r\n", bridge.token),
    ] {
        let (status, text) = raw(&bridge, &first_request(&format!("{host}{wrong}"))).await;
        assert_eq!(status, 401, "{wrong}");
        assert!(text.to_lowercase().contains("\r\nwww-authenticate: bearer\r\n"), "{text}");
        assert!(text.contains("--token-file"), "{text}");
        assert!(!text.contains(&bridge.token), "{text}");
    }
    let refused = ().serve(transport(&bridge, "wrong")).await;
    assert!(refused.is_err());
    for other in ["GET", "DELETE"] {
        let request = format!("{other} /mcp HTTP/1.1\r\n{host}Connection: close\r\n\r\n");
        assert_eq!(raw(&bridge, &request).await.0, 401, "{other}");
    }
    let (status, text) = raw(&bridge, &format!("GET / HTTP/1.1\r\n{host}Connection: close\r\n\r\n")).await;
    assert_eq!(status, 404);
    assert!(text.contains("/mcp"), "{text}");
    assert!(stub.seen().is_empty());
}

#[tokio::test]
async fn other_hosts_and_other_pages_are_refused() {
    let bridge = HttpBridgeProcess::start("http://127.0.0.1:9/slicer", &[]);
    let token = format!("Authorization: Bearer {}\r\n", bridge.token);
    let port = bridge.authority().rsplit(':').next().unwrap().to_owned();
    for (host, expected) in [
        (format!("127.0.0.1:{port}"), 200),
        (format!("localhost:{port}"), 200),
        (format!("LocalHost:{port}"), 200),
        (format!("[::1]:{port}"), 200),
        ("127.0.0.1".to_owned(), 403),
        ("127.0.0.1:1".to_owned(), 403),
        (format!("evil.example:{port}"), 403),
        (format!("127.0.0.1.evil.example:{port}"), 403),
        (format!("user@127.0.0.1:{port}"), 403),
        (String::new(), 403),
    ] {
        let (status, text) = raw(&bridge, &first_request(&format!("Host: {host}\r\n{token}"))).await;
        assert_eq!(status, expected, "{host}: {text}");
    }
    assert_eq!(raw(&bridge, &first_request(&token)).await.0, 403, "no Host at all");
    let host = format!("Host: {}\r\n", bridge.authority());
    for (origin, expected) in [
        ("http://localhost:6274", 200),
        ("http://127.0.0.1", 200),
        ("https://evil.example", 403),
        ("http://localhost.evil.example", 403),
        ("null", 403),
        ("", 403),
    ] {
        let lines = format!("{host}{token}Origin: {origin}\r\n");
        let (status, text) = raw(&bridge, &first_request(&lines)).await;
        assert_eq!(status, expected, "{origin}: {text}");
    }
    // Refused before it is known who asks.
    let (status, _) = raw(&bridge, &first_request(&format!("{host}Origin: https://evil.example\r\n"))).await;
    assert_eq!(status, 403);
}

/// At the most talkative level, everything that a request carries may be logged; the token must not.
#[tokio::test]
async fn the_token_is_in_no_log() {
    let stub = echo().await;
    let bridge = HttpBridgeProcess::start(&stub.url(), &["--log", "trace"]);
    let client = connect(&bridge).await;
    run(&client, "x = 1").await;
    let host = format!("Host: {}\r\n", bridge.authority());
    let twice = format!("{host}Authorization: Bearer {0}\r\nAuthorization: Bearer {0}\r\n", bridge.token);
    assert_eq!(raw(&bridge, &first_request(&twice)).await.0, 401);
    client.cancel().await.unwrap();
    let log = bridge.errors();
    assert!(log.contains("TRACE") && log.len() > 1000, "nothing was logged: {log}");
    assert!(!log.contains(&bridge.token) && !log.contains(&bridge.token[..16]));
}

// ------------------------------------------------------------------ bounds

#[tokio::test]
async fn twenty_megabytes_of_code_reach_slicer_and_more_than_fits_is_refused_in_words() {
    let stub = SlicerStub::start(|seen| Answer::Json(seen.body.len().to_string())).await;
    let bridge = HttpBridgeProcess::start(&stub.url(), &[]);
    let client = connect(&bridge).await;
    let code = "# größe \"quoted\"\n".repeat(20_000_000 / 18);
    let started = Instant::now();
    let done = tokio::time::timeout(Duration::from_secs(60), run(&client, &code)).await.unwrap();
    eprintln!("{} bytes of code: {:.2} s", code.len(), started.elapsed().as_secs_f64());
    assert_eq!(done["message"], code.len());
    let code = "x".repeat(70 << 20);
    let refused = tokio::time::timeout(Duration::from_secs(60), client.call_tool(request(&code))).await.unwrap();
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("413") || text.contains("too large"), "{text}");
    assert_eq!(run(&client, "small").await["message"], 5, "the session goes on");
}

// ------------------------------------------------------------------ start and end

#[cfg(unix)]
#[tokio::test]
async fn it_ends_when_told_to_and_answers_who_waits() {
    let stub = SlicerStub::start(|_| Answer::Never).await;
    let mut bridge = HttpBridgeProcess::start(&stub.url(), &[]);
    let (one, two) = (connect(&bridge).await, connect(&bridge).await);
    let running = send(&one, "runs").await;
    until("a call is in Slicer", || stub.seen().len() == 1).await;
    let waiting = send(&two, "waits").await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let told = Instant::now();
    let ended = tokio::task::spawn_blocking(move || (bridge.terminate(), bridge));
    for call in [running, waiting] {
        let error = tokio::time::timeout(Duration::from_secs(10), call.await_response()).await.unwrap().unwrap_err();
        assert!(error.to_string().contains("stopped"), "{error}");
    }
    let (status, _bridge) = ended.await.unwrap();
    assert!(status.success(), "{status:?}");
    assert!(told.elapsed() < Duration::from_secs(10), "{:?}", told.elapsed());
}

#[cfg(unix)]
#[tokio::test]
async fn it_ends_at_once_when_nobody_is_there() {
    let mut bridge = HttpBridgeProcess::start("http://127.0.0.1:9/slicer", &[]);
    let told = Instant::now();
    assert!(bridge.terminate().success());
    assert!(told.elapsed() < Duration::from_secs(2), "{:?}", told.elapsed());
}
