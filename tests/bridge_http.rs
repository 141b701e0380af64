//! The client of Slicer's Web Server against every habit and weak spot of that server.

#[path = "support/slicer_stub.rs"]
mod slicer_stub;

use std::time::{Duration, Instant};

use serde_json::json;
use slicer_ai_agent::bridge::web_server::{NodeFilter, NodeListing};
use slicer_ai_agent::bridge::{WebServer, WebServerError};
use slicer_stub::{Answer, SlicerStub, reply_bytes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn client(stub: &SlicerStub) -> WebServer {
    WebServer::new(&stub.url(), Some(Duration::from_secs(20))).unwrap()
}

async fn stub_that_says(json: &'static str) -> SlicerStub {
    SlicerStub::start(move |_| Answer::Json(json.to_owned())).await
}

async fn error_of(answer: fn() -> Answer) -> WebServerError {
    let stub = SlicerStub::start(move |_| answer()).await;
    client(&stub).exec("x = 1", None).await.unwrap_err()
}

// ------------------------------------------------------------------ the stand-in itself

/// Sends the pieces with a pause between them and gives what comes back within 300 ms.
async fn raw(stub: &SlicerStub, pieces: &[&str]) -> String {
    let mut stream = TcpStream::connect(stub.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for piece in pieces {
        stream.write_all(piece.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    let mut got = Vec::new();
    let reading = stream.read_to_end(&mut got);
    if let Ok(read) = tokio::time::timeout(Duration::from_millis(300), reading).await {
        read.unwrap();
    }
    String::from_utf8(got).unwrap()
}

/// A stand-in that is more forgiving than Slicer would let a client pass that Slicer does not understand.
#[tokio::test]
async fn the_stand_in_has_slicers_weak_spots() {
    let stub = stub_that_says("1").await;
    let post = "POST /slicer/exec HTTP/1.1\r\n";
    let good = raw(&stub, &[&format!("{post}Content-Length: 5\r\n\r\nx = 1")]).await;
    assert!(good.starts_with("HTTP/1.1 200 OK\r\n"), "{good}");
    let lower = raw(&stub, &[&format!("{post}content-length: 5\r\n\r\nx = 1")]).await;
    assert_eq!(lower, "HTTP/1.1 404 Not Found\r\n\r\n");
    let body_apart = raw(&stub, &[&format!("{post}Content-Length: 5\r\n\r\n"), "x =", " 1"]).await;
    assert!(body_apart.starts_with("HTTP/1.1 200"), "{body_apart}");
    let split_head = raw(&stub, &[post, "Content-Length: 5\r\n\r\nx = 1"]).await;
    assert_eq!(split_head, "", "a header in two pieces with the body in the last is never answered");
    let old = raw(&stub, &["GET /slicer/mrml/names HTTP/1.0\r\n\r\n"]).await;
    assert_eq!(old, "");
}

// ------------------------------------------------------------------ what is sent

#[tokio::test]
async fn code_arrives_whole_and_its_result_comes_back() {
    let stub = stub_that_says(r#"{"größe": "\u982d\u90e8 \ud83e\uddb4", "n": [1, 2.5, null]}"#).await;
    let code = "__execResult = {'größe': '頭部 🦴'}\r\n# \u{2028} end";
    let value = client(&stub).exec(code, None).await.unwrap();
    assert_eq!(value, json!({"größe": "頭部 🦴", "n": [1, 2.5, null]}));
    let seen = stub.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].method.as_str(), seen[0].target.as_str()), ("POST", "/slicer/exec"));
    assert_eq!(seen[0].body, code);
    assert_eq!(seen[0].reads, 1, "header and body leave in one write");
    assert!(seen[0].head.contains("\r\nConnection: close\r\n"), "{}", seen[0].head);
}

/// The server closes after each reply without saying so: a connection that is used again fails.
#[tokio::test]
async fn every_request_has_a_connection_of_its_own() {
    let stub = stub_that_says("{}").await;
    let slicer = client(&stub);
    for _ in 0..50 {
        slicer.exec("pass", None).await.unwrap();
    }
    let mut ports: Vec<_> = stub.seen().iter().map(|seen| seen.from).collect();
    ports.sort();
    ports.dedup();
    assert_eq!(ports.len(), 50);
}

#[tokio::test]
async fn twenty_megabytes_go_both_ways() {
    let stub =
        SlicerStub::start(|seen| Answer::Json(format!("[{}, \"{}\"]", seen.body.len(), "y".repeat(20_000_000)))).await;
    let code = format!("x = '{}'", "a".repeat(20_000_000));
    let value = client(&stub).exec(&code, None).await.unwrap();
    assert_eq!(value[0], code.len());
    assert_eq!(value[1].as_str().unwrap().len(), 20_000_000);
}

#[tokio::test]
async fn nodes_are_asked_for_with_every_filter_and_any_name() {
    let stub = SlicerStub::start(|seen| {
        let properties = seen.target.contains("properties");
        Answer::Json(if properties { "{\"vtkMRMLModelNode4\": {}}" } else { "[\"a\"]" }.to_owned())
    })
    .await;
    let slicer = client(&stub);
    let all = NodeFilter::default();
    assert_eq!(slicer.nodes(NodeListing::Names, &all).await.unwrap(), json!(["a"]));
    let some = NodeFilter {
        class_name: Some("vtkMRMLModelNode".to_owned()),
        name: Some("Skull & größe+1/2".to_owned()),
        id: Some("vtkMRMLModelNode4".to_owned()),
    };
    let tree = slicer.nodes(NodeListing::Properties, &some).await.unwrap();
    assert_eq!(tree, json!({"vtkMRMLModelNode4": {}}));
    slicer.nodes(NodeListing::Ids, &all).await.unwrap();
    let targets: Vec<_> = stub.seen().into_iter().map(|seen| seen.target).collect();
    assert_eq!(
        targets,
        [
            "/slicer/mrml/names",
            "/slicer/mrml/properties?class=vtkMRMLModelNode&name=Skull%20%26%20gr%C3%B6%C3%9Fe%2B1%2F2&id=vtkMRMLModelNode4",
            "/slicer/mrml/ids",
        ]
    );
}

#[tokio::test]
async fn no_code_is_never_sent() {
    let stub = stub_that_says("{}").await;
    let error = client(&stub).exec("", None).await.unwrap_err();
    assert!(matches!(error, WebServerError::NoCode));
    assert!(stub.seen().is_empty());
}

// ------------------------------------------------------------------ what comes back

#[tokio::test]
async fn numbers_that_are_not_finite_are_read() {
    let stub = stub_that_says(r#"{"mean": NaN, "max": Infinity, "min": -Infinity}"#).await;
    let value = client(&stub).exec("x = 1", None).await.unwrap();
    assert_eq!(value, json!({"mean": "NaN", "max": "Infinity", "min": "-Infinity"}));
}

#[tokio::test]
async fn a_reply_in_many_pieces_is_put_together() {
    let whole = reply_bytes("200 OK", "[1, 2, 3]");
    let stub = SlicerStub::start(move |_| Answer::Pieces(whole.chunks(17).map(<[u8]>::to_vec).collect())).await;
    assert_eq!(client(&stub).exec("x = 1", None).await.unwrap(), json!([1, 2, 3]));
}

#[tokio::test]
async fn an_exception_of_the_code_comes_with_its_text() {
    let error = error_of(|| Answer::Error("name 'nope' is not defined".to_owned())).await;
    assert!(matches!(error, WebServerError::Server { .. }));
    assert_eq!(error.to_string(), "Server error: name 'nope' is not defined");
}

#[tokio::test]
async fn exec_switched_off_is_told_from_no_server_and_names_the_box() {
    let off = error_of(|| Answer::Error("unknown command \"b'/exec'\"".to_owned())).await;
    assert!(matches!(off, WebServerError::ExecOff));
    assert!(off.to_string().contains("tick \"Slicer API exec\""), "{off}");

    let stub = SlicerStub::start(|_| Answer::Ended).await;
    let url = stub.url().replace(&stub.address.port().to_string(), &free_port().to_string());
    let none = WebServer::new(&url, None).unwrap().exec("x = 1", None).await.unwrap_err();
    assert!(matches!(none, WebServerError::NotRunning { .. }), "{none:?}");
    for word in [url.as_str(), "Start 3D Slicer", "Web Server", "Slicer API exec"] {
        assert!(none.to_string().contains(word), "{none}");
    }
}

/// A port of the loopback on which nothing listens.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[tokio::test]
async fn a_bare_404_does_not_hang_and_says_what_to_check() {
    let error = error_of(|| Answer::NotFound).await;
    assert!(matches!(error, WebServerError::Http { status: 404 }), "{error:?}");
    assert!(error.to_string().contains("\"Slicer API\""), "{error}");
}

#[tokio::test]
async fn closed_without_a_reply_means_that_slicer_ended() {
    let silent = error_of(|| Answer::Ended).await;
    assert!(matches!(silent, WebServerError::Ended), "{silent:?}");
    let broken = error_of(|| {
        let mut bytes = reply_bytes("200 OK", "[1, 2, 3]");
        bytes.truncate(bytes.len() - 3);
        Answer::Pieces(vec![bytes])
    })
    .await;
    assert!(matches!(broken, WebServerError::Ended), "{broken:?}");
}

#[tokio::test]
async fn a_reply_that_is_not_json_is_shown_from_its_beginning() {
    let error = error_of(|| Answer::Json("{'status': 'success'}".to_owned())).await;
    assert!(matches!(error, WebServerError::BadJson { .. }), "{error:?}");
    assert!(error.to_string().contains("{'status': 'success'}"), "{error}");
    let other = error_of(|| Answer::Pieces(vec![b"SSH-2.0-OpenSSH_9\r\n\r\n".to_vec()])).await;
    assert!(matches!(other, WebServerError::NotSlicer { .. }), "{other:?}");
}

#[tokio::test]
async fn a_hanging_reply_ends_in_time_and_the_error_names_the_time() {
    let stub = SlicerStub::start(|_| Answer::Never).await;
    let started = Instant::now();
    let limit = Some(Duration::from_millis(250));
    let error = client(&stub).exec("while True: pass", limit).await.unwrap_err();
    assert!(matches!(error, WebServerError::TimedOut { .. }), "{error:?}");
    assert!(error.to_string().contains("within 0.25 s"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(2));
}

// ------------------------------------------------------------------ one at a time

/// Code that pumps events in Slicer lets the next request run inside it, and then both get the wrong reply.
#[tokio::test]
async fn requests_wait_for_each_other_in_their_order() {
    let stub = SlicerStub::start(|seen| {
        Answer::After(Duration::from_millis(20), Box::new(Answer::Json(format!("{:?}", seen.body))))
    })
    .await;
    let slicer = client(&stub);
    let mut calls = Vec::new();
    for number in 0..8 {
        let slicer = slicer.clone();
        calls.push(tokio::spawn(async move {
            let code = format!("x = {number}");
            assert_eq!(slicer.exec(&code, None).await.unwrap(), json!(code));
        }));
        tokio::task::yield_now().await;
    }
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(stub.most_at_once(), 1);
    let order: Vec<_> = stub.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(order, (0..8).map(|number| format!("x = {number}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_request_that_still_waits_is_withdrawn_without_a_trace() {
    let stub =
        SlicerStub::start(|_| Answer::After(Duration::from_millis(500), Box::new(Answer::Json("1".to_owned())))).await;
    let slicer = client(&stub);
    let first = tokio::spawn({
        let slicer = slicer.clone();
        async move { slicer.exec("first", None).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let second = tokio::spawn({
        let slicer = slicer.clone();
        async move { slicer.exec("second", None).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    second.abort();
    first.await.unwrap().unwrap();
    slicer.exec("third", None).await.unwrap();
    let bodies: Vec<_> = stub.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies, ["first", "third"]);
}

/// Slicer still works on a request whose caller gave up, so the next one may not overtake it.
#[tokio::test]
async fn a_request_that_was_given_up_keeps_its_turn_until_slicer_answers() {
    let stub = SlicerStub::start(|seen| {
        let time = if seen.body == "slow" { 3000 } else { 0 };
        Answer::After(Duration::from_millis(time), Box::new(Answer::Json("1".to_owned())))
    })
    .await;
    let slicer = client(&stub);
    let started = Instant::now();
    let error = slicer.exec("slow", Some(Duration::from_millis(50))).await.unwrap_err();
    assert!(matches!(error, WebServerError::TimedOut { .. }));
    assert!(started.elapsed() < Duration::from_millis(2000), "giving up does not wait");
    slicer.exec("next", None).await.unwrap();
    assert!(started.elapsed() >= Duration::from_millis(3000));
    assert_eq!(stub.most_at_once(), 1);
}
