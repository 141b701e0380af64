//! A stand-in for Slicer's Web Server on a raw socket, with its habits and its weak spots.
//!
//! It reads requests as Slicer does: a body counts only after a header spelled `Content-Length:`; a request whose header
//! comes in two pieces with the whole body in the last one waits for ever; other methods and HTTP/1.0 are never
//! answered; the connection ends after each reply. What it answers is the test's choice, so that a client can be shown
//! every way in which Slicer fails. A test that passes here with a client that Slicer would not understand is a mistake
//! of this file, which `bridge_http.rs` guards against.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How Slicer answers one request.
pub enum Answer {
    /// 200 with this JSON text, written as Python would.
    Json(String),
    /// 500 with `{"success": false, "message": "Server error: …"}`.
    Error(String),
    /// What Slicer sends when a handler gives nothing: a bare 404 without a length.
    NotFound,
    /// Closed without a byte: Slicer ended.
    Ended,
    /// No reply, and the connection stays open.
    Never,
    /// These bytes, with a pause between the pieces.
    Pieces(Vec<Vec<u8>>),
    /// The same, later.
    After(Duration, Box<Answer>),
}

/// One request as it was understood.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    pub target: String,
    /// The header, unchanged.
    pub head: String,
    /// The body that counts. Of a call through our helper it is the code that the helper would run.
    pub body: String,
    /// The body as it was sent.
    pub sent: String,
    /// In how many reads the request came.
    pub reads: usize,
    /// The port of the client's end.
    pub from: SocketAddr,
}

type Handler = dyn Fn(&Seen) -> Answer + Send + Sync;

/// A running stand-in; it ends with the test's runtime.
pub struct SlicerStub {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    most_at_once: Arc<AtomicUsize>,
}

impl SlicerStub {
    /// Starts on a free port of the loopback.
    pub async fn start(handler: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_on("127.0.0.1:0", handler).await
    }

    pub async fn start_on(address: &str, handler: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let stub = Self { address: listener.local_addr().unwrap(), seen: Arc::default(), most_at_once: Arc::default() };
        let (seen, most) = (Arc::clone(&stub.seen), Arc::clone(&stub.most_at_once));
        let now = Arc::new(AtomicUsize::new(0));
        let handler: Arc<Handler> = Arc::new(handler);
        tokio::spawn(async move {
            loop {
                let (stream, from) = listener.accept().await.unwrap();
                let (seen, most, now) = (Arc::clone(&seen), Arc::clone(&most), Arc::clone(&now));
                let handler = Arc::clone(&handler);
                tokio::spawn(async move {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    connection(stream, from, &seen, &handler).await;
                    now.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        stub
    }

    /// The address to give a client.
    pub fn url(&self) -> String {
        format!("http://{}/slicer", self.address)
    }

    /// The requests so far, in the order in which they were complete.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// How many connections were open at the same time, at most.
    pub fn most_at_once(&self) -> usize {
        self.most_at_once.load(Ordering::SeqCst)
    }
}

async fn connection(mut stream: TcpStream, from: SocketAddr, seen: &Mutex<Vec<Seen>>, handler: &Arc<Handler>) {
    let Some(request) = read_request(&mut stream, from).await else {
        return;
    };
    let first = request.head.lines().next().unwrap_or_default().to_owned();
    let methods = HashSet::from(["GET", "POST", "PUT", "DELETE", "OPTIONS"]);
    let understood = first.ends_with(" HTTP/1.1") && methods.contains(request.method.as_str());
    let answer = if !understood {
        Answer::Never
    } else if request.method == "OPTIONS" {
        Answer::Pieces(vec![b"HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n".to_vec()])
    } else if request.target.starts_with("/slicer/exec") && request.body.is_empty() {
        Answer::NotFound
    } else {
        handler(&request)
    };
    seen.lock().unwrap().push(request);
    reply(&mut stream, answer).await;
}

/// Reads as Slicer does; `None` when the request never becomes complete.
async fn read_request(stream: &mut TcpStream, from: SocketAddr) -> Option<Seen> {
    let mut got: Vec<u8> = Vec::new();
    let mut whole = None;
    let mut reads = 0;
    let mut part = vec![0; 1 << 20];
    loop {
        let count = stream.read(&mut part).await.ok()?;
        if count == 0 {
            return None;
        }
        reads += 1;
        got.extend_from_slice(&part[..count]);
        let Some(end) = find(&got, b"\r\n\r\n").map(|at| at + 4) else {
            continue;
        };
        let done = match whole {
            Some(whole) => got.len() >= whole,
            None => match find(&got, b"Content-Length:") {
                None => {
                    whole = Some(end);
                    true
                }
                Some(at) => {
                    let line = got[at + 15..].split(|byte| *byte == b'\r').next()?;
                    let length: usize = std::str::from_utf8(line).ok()?.trim().parse().ok()?;
                    whole = Some(end + length);
                    // The weak spot: the last piece alone is compared with the whole size.
                    count == end + length
                }
            },
        };
        if done {
            let head = String::from_utf8_lossy(&got[..end]).into_owned();
            let mut words = head.split(' ').map(str::to_owned);
            let (method, target) = (words.next()?, words.next()?);
            let sent = String::from_utf8_lossy(&got[end..whole?]).into_owned();
            let body = inner_code(&sent).unwrap_or_else(|| sent.clone());
            return Some(Seen { method, target, head, body, sent, reads, from });
        }
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

/// The code in a call of the helper's `execute`, whose argument is a string literal with JSON in it.
fn inner_code(sent: &str) -> Option<String> {
    let literal = sent.split_once("m.execute(globals(), ")?.1;
    let text = serde_json::Deserializer::from_str(literal).into_iter::<String>().next()?.ok()?;
    let request: serde_json::Value = serde_json::from_str(&text).ok()?;
    request["code"].as_str().map(str::to_owned)
}

/// A complete reply with a body, headed as Slicer does it.
pub fn reply_bytes(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nCache-Control: \
         no-cache\r\n\r\n{body}"
    )
    .into_bytes()
}

async fn reply(stream: &mut TcpStream, mut answer: Answer) {
    while let Answer::After(time, later) = answer {
        tokio::time::sleep(time).await;
        answer = *later;
    }
    let pieces = match answer {
        Answer::Json(text) => vec![reply_bytes("200 OK", &text)],
        Answer::Error(text) => {
            let message = format!("Server error: {text}");
            let body = serde_json::json!({"success": false, "message": message});
            vec![reply_bytes("500 Internal Server Error", &body.to_string())]
        }
        Answer::NotFound => vec![b"HTTP/1.1 404 Not Found\r\n\r\n".to_vec()],
        Answer::Ended => vec![],
        Answer::Never => {
            std::future::pending::<()>().await;
            vec![]
        }
        Answer::Pieces(pieces) => pieces,
        Answer::After(..) => vec![],
    };
    for (index, piece) in pieces.iter().enumerate() {
        if index > 0 {
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        if stream.write_all(piece).await.is_err() {
            return;
        }
    }
}
