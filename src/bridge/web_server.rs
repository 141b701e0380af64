//! The client of Slicer's Web Server: one request at a time, and an error that says what to do.
//!
//! Slicer handles requests on its main thread, and code that pumps events lets the next request run inside the first,
//! after which both get the wrong reply. So every request waits here for its turn (first come, first served) and the
//! turn ends only when Slicer has answered. A caller may give up earlier, by a time-out or by dropping the future:
//! while it still waits for its turn it is simply withdrawn, and once the request is on its way the turn is held a
//! little longer for the answer that may still come. Nothing can be taken back from Slicer once it was sent, but code
//! that runs under our helper watches for a stop file, which is written here when its caller gives up.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};

use super::http::{self, ReadError, Reply};
use super::json::parse_python_json;

/// Where Slicer's Web Server is unless something else is said.
pub const DEFAULT_URL: &str = "http://127.0.0.1:2016/slicer";
/// The environment variable that says where it is.
pub const URL_ENV: &str = "SLICER_URL";

/// Longest wait for a connection. Slicer accepts at once unless its queue of five is full.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for a reply unless the caller says otherwise. Some filters do run for minutes.
const REPLY_TIMEOUT: Duration = Duration::from_secs(600);
/// How long the turn is kept for the reply to a request that nobody waits for any more.
const HELD_AFTER_GIVING_UP: Duration = Duration::from_secs(10);

/// What can go wrong between the bridge and Slicer. Each text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum WebServerError {
    /// The address is not one that can be used.
    #[error("{url:?} is not an address of Slicer's Web Server ({why}). Write it like {DEFAULT_URL}.")]
    BadUrl { url: String, why: String },
    /// Nothing listens there.
    #[error(
        "Slicer's Web Server is not running at {url}. Start 3D Slicer, open Modules > Servers > Web Server, tick \
         \"Slicer API exec\" and press Start."
    )]
    NotRunning { url: String },
    /// The machine or the port cannot be reached.
    #[error("{url} cannot be reached: {why}. Check the address, and whether Slicer is busy or hangs.")]
    Unreachable { url: String, why: String },
    /// The server runs, but does not take code.
    #[error(
        "Slicer's Web Server does not accept Python code. In Slicer, open Modules > Servers > Web Server, tick \
         \"Slicer API exec\", then press Stop and Start."
    )]
    ExecOff,
    /// The connection was closed without a (whole) reply.
    #[error(
        "Slicer closed the connection without answering: it has probably ended or crashed. Check Slicer, start it \
         again if it is gone, and look at what was asked last."
    )]
    Ended,
    /// No reply in time.
    #[error(
        "Slicer did not answer within {} s. It may still be working on it; wait until it is idle, or allow more time.",
        .after.as_secs_f64()
    )]
    TimedOut { after: Duration },
    /// Slicer answered with an error of its own, for example an exception of the code that was sent.
    #[error("{message}")]
    Server { message: String },
    /// Slicer answered with a status that says nothing more.
    #[error("{}", http_advice(*.status))]
    Http { status: u16 },
    /// The reply is not what Slicer sends.
    #[error("{why}. Is it Slicer that listens there?")]
    NotSlicer { why: String },
    /// The body of the reply is not JSON.
    #[error("{why}; the reply begins with {start:?}")]
    BadJson { why: String, start: String },
    /// The reply belongs to another request.
    #[error(
        "Slicer gave the answer to another request: code that is running there lets requests overtake each other. \
         Try again when Slicer is idle."
    )]
    Swapped,
    /// There is no code to send; Slicer answers an empty request with a bare 404.
    #[error("there is no code to run. Give at least one statement.")]
    NoCode,
}

fn http_advice(status: u16) -> String {
    match status {
        404 => "Slicer's Web Server has nothing at that address. Check the address, and in Modules > Servers > Web \
                Server whether \"Slicer API\" is ticked."
            .to_owned(),
        other => format!("Slicer's Web Server answered with HTTP status {other} and no explanation."),
    }
}

/// What `/mrml/…` gives of each node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeListing {
    /// The names, in the order of the scene.
    Names,
    /// The ids, in the order of the scene.
    Ids,
    /// An object that maps each id to what the node prints.
    Properties,
}

/// Which nodes are meant; all when nothing is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeFilter {
    /// A MRML class, for example `vtkMRMLScalarVolumeNode`; derived classes count.
    pub class_name: Option<String>,
    /// The exact name.
    pub name: Option<String>,
    /// The exact id; Slicer then looks at nothing else.
    pub id: Option<String>,
}

/// One Slicer's Web Server. Clones share the queue.
#[derive(Debug, Clone)]
pub struct WebServer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// As shown to people, without a slash at the end.
    url: String,
    /// `host:port`, as connected to and as sent in `Host`.
    authority: String,
    /// The path of the API, `/slicer`.
    base: String,
    reply_timeout: Duration,
    queue: Arc<Mutex<()>>,
    /// Since when a request is on its way.
    busy: StdMutex<Option<Instant>>,
}

/// The turn of one request. While it lives no other is sent.
struct Turn {
    inner: Arc<Inner>,
    _place: OwnedMutexGuard<()>,
}

impl Turn {
    fn new(inner: Arc<Inner>, place: OwnedMutexGuard<()>) -> Self {
        *inner.busy.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Self { inner, _place: place }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.inner.busy.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// How long one piece of code may take, and how it is stopped.
#[derive(Debug, Clone, Default)]
pub struct Patience {
    /// Longest wait for the reply; `None` means that of the server.
    pub timeout: Option<Duration>,
    /// The file that the running code watches for, written when the caller gives up.
    pub stop_file: Option<PathBuf>,
    /// Whether a time-out stops the code, too; otherwise only a caller that goes away does.
    pub stop_at_timeout: bool,
}

impl WebServer {
    /// The server at `url` (`http://host:port/slicer`; a missing path means `/slicer`). Nothing is sent yet.
    ///
    /// `reply_timeout` bounds each reply, counted from the moment the request is sent; `None` means 600 s.
    ///
    /// # Errors
    /// [`WebServerError::BadUrl`].
    pub fn new(url: &str, reply_timeout: Option<Duration>) -> Result<Self, WebServerError> {
        let bad = |why: &str| WebServerError::BadUrl { url: url.to_owned(), why: why.to_owned() };
        let parsed = reqwest::Url::parse(url.trim()).map_err(|error| bad(&error.to_string()))?;
        if parsed.scheme() != "http" {
            return Err(bad("it must begin with http://"));
        }
        let host = parsed.host_str().ok_or_else(|| bad("it names no host"))?;
        let port = parsed.port_or_known_default().unwrap_or(80);
        let base = match parsed.path().trim_end_matches('/') {
            "" => "/slicer",
            path => path,
        };
        let authority = format!("{host}:{port}");
        Ok(Self {
            inner: Arc::new(Inner {
                url: format!("http://{authority}{base}"),
                base: base.to_owned(),
                authority,
                reply_timeout: reply_timeout.unwrap_or(REPLY_TIMEOUT),
                queue: Arc::new(Mutex::new(())),
                busy: StdMutex::new(None),
            }),
        })
    }

    /// The address, as shown to people.
    pub fn url(&self) -> &str {
        &self.inner.url
    }

    /// How long the request that is on its way has taken; `None` when there is none.
    pub fn busy_for(&self) -> Option<Duration> {
        self.inner.busy.lock().unwrap_or_else(PoisonError::into_inner).map(|since| since.elapsed())
    }

    /// Runs Python in Slicer and gives what the code left in `__execResult` (`{}` when it set nothing).
    ///
    /// `timeout` replaces the general one for this call.
    ///
    /// # Errors
    /// Any [`WebServerError`] but `BadUrl`; an exception of the code is [`WebServerError::Server`].
    pub async fn exec(&self, code: &str, timeout: Option<Duration>) -> Result<Value, WebServerError> {
        self.exec_with(code, Patience { timeout, ..Patience::default() }).await
    }

    /// Like [`WebServer::exec`], for code that can be stopped.
    ///
    /// # Errors
    /// Those of [`WebServer::exec`].
    pub async fn exec_with(&self, code: &str, patience: Patience) -> Result<Value, WebServerError> {
        if code.is_empty() {
            return Err(WebServerError::NoCode);
        }
        let reply = self.ask("POST", "/exec", code.as_bytes(), patience).await?;
        decode(&reply).map_err(|error| match error {
            WebServerError::Server { message } if says_exec_is_off(&message) => WebServerError::ExecOff,
            other => other,
        })
    }

    /// Lists nodes of the scene: an array of names or ids, or an object of properties.
    ///
    /// # Errors
    /// Any [`WebServerError`] but `BadUrl` and `ExecOff`; no match among properties is [`WebServerError::Server`].
    pub async fn nodes(&self, listing: NodeListing, filter: &NodeFilter) -> Result<Value, WebServerError> {
        let mut target = match listing {
            NodeListing::Names => "/mrml/names",
            NodeListing::Ids => "/mrml/ids",
            NodeListing::Properties => "/mrml/properties",
        }
        .to_owned();
        let mut separator = '?';
        for (key, value) in [("class", &filter.class_name), ("name", &filter.name), ("id", &filter.id)] {
            if let Some(value) = value {
                target.push(separator);
                target.push_str(key);
                target.push('=');
                target.push_str(&http::encode(value));
                separator = '&';
            }
        }
        decode(&self.ask("GET", &target, b"", Patience::default()).await?)
    }

    /// A PNG file from one of Slicer's picture routes, for example `/screenshot`. They answer with exec off too.
    ///
    /// # Errors
    /// Any [`WebServerError`] but `BadUrl` and `ExecOff`.
    pub async fn picture(&self, target: &str) -> Result<Vec<u8>, WebServerError> {
        let reply = self.ask("GET", target, b"", Patience::default()).await?;
        if reply.body.starts_with(b"\x89PNG") {
            return Ok(reply.body);
        }
        decode(&reply)?;
        Err(WebServerError::NotSlicer { why: format!("{target} gave something that is no picture") })
    }

    /// What the application says of itself (`applicationName`, `applicationVersion`, …). It works with exec off too.
    ///
    /// # Errors
    /// Any [`WebServerError`] but `BadUrl` and `ExecOff`.
    pub async fn version(&self, timeout: Option<Duration>) -> Result<Value, WebServerError> {
        let patience = Patience { timeout, ..Patience::default() };
        decode(&self.ask("GET", "/system/version", b"", patience).await?)
    }

    /// Ends the application within about a second, without asking about unsaved data: the caller must have asked.
    ///
    /// # Errors
    /// Any [`WebServerError`] but `BadUrl` and `ExecOff`.
    pub async fn quit(&self, timeout: Option<Duration>) -> Result<(), WebServerError> {
        let patience = Patience { timeout, ..Patience::default() };
        decode(&self.ask("DELETE", "/system", b"", patience).await?).map(drop)
    }

    /// Sends one request when its turn has come, and waits for the reply.
    async fn ask(&self, method: &str, target: &str, body: &[u8], patience: Patience) -> Result<Reply, WebServerError> {
        let inner = &self.inner;
        let place = Arc::clone(&inner.queue).lock_owned().await;
        let turn = Turn::new(Arc::clone(inner), place);
        let stream = self.connect().await?;
        let target = format!("{}{target}", inner.base);
        let bytes = http::request(method, &inner.authority, &target, body);
        let (answer, mut waiting) = oneshot::channel();
        let goes_on = Arc::new(AtomicBool::new(false));
        let stop = Stop { file: patience.stop_file, goes_on: Arc::clone(&goes_on) };
        tokio::spawn(hold_turn(turn, stream, bytes, answer, stop));
        let after = patience.timeout.unwrap_or(inner.reply_timeout);
        // The receiver outlives the time-out, so that the flag is set before its end is seen.
        match tokio::time::timeout(after, &mut waiting).await {
            Ok(Ok(reply)) => reply,
            // The task went away with the runtime.
            Ok(Err(_)) => Err(WebServerError::Ended),
            Err(_) => {
                goes_on.store(!patience.stop_at_timeout, Ordering::SeqCst);
                Err(WebServerError::TimedOut { after })
            }
        }
    }

    async fn connect(&self) -> Result<TcpStream, WebServerError> {
        let unreachable = |why: String| WebServerError::Unreachable { url: self.inner.url.clone(), why };
        let connecting = TcpStream::connect(&self.inner.authority);
        match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                Err(WebServerError::NotRunning { url: self.inner.url.clone() })
            }
            Ok(Err(error)) => Err(unreachable(error.to_string())),
            Err(_) => Err(unreachable(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()))),
        }
    }
}

/// What is done to code whose caller has given up.
struct Stop {
    file: Option<PathBuf>,
    /// Set when the code shall go on all the same.
    goes_on: Arc<AtomicBool>,
}

impl Stop {
    fn raise(&self) {
        let Some(file) = self.file.as_ref().filter(|_| !self.goes_on.load(Ordering::SeqCst)) else {
            return;
        };
        if let Err(error) = std::fs::write(file, b"") {
            tracing::warn!(%error, "the stop file could not be written");
        }
    }

    /// The code has ended: the file has no use any more.
    fn clear(&self) {
        if let Some(file) = self.file.as_ref().filter(|file| file.exists())
            && let Err(error) = std::fs::remove_file(file)
        {
            tracing::debug!(%error, "the stop file could not be removed");
        }
    }
}

/// Sends the request and reads the reply, keeping the turn until Slicer is done with it.
async fn hold_turn(
    turn: Turn,
    stream: TcpStream,
    bytes: Vec<u8>,
    mut answer: oneshot::Sender<Result<Reply, WebServerError>>,
    stop: Stop,
) {
    let mut exchange = std::pin::pin!(exchange(stream, bytes));
    let result = tokio::select! {
        result = &mut exchange => Some(result),
        () = answer.closed() => None,
    };
    match result {
        Some(result) => {
            // The turn is over before the caller hears of it, so that its next request does not queue behind this one.
            drop(turn);
            if answer.send(result).is_err() {
                tracing::debug!("a reply of Slicer came when nobody waited for it any more");
            }
        }
        None => {
            stop.raise();
            let late = tokio::time::timeout(HELD_AFTER_GIVING_UP, exchange).await;
            tracing::debug!(answered = late.is_ok(), "a request to Slicer was given up");
            if late.is_ok() {
                stop.clear();
            }
            drop(turn);
        }
    }
}

/// One write, one reply.
async fn exchange(mut stream: TcpStream, bytes: Vec<u8>) -> Result<Reply, WebServerError> {
    // A failed write is a connection that Slicer closed; it may still have said why.
    let written = stream.write_all(&bytes).await;
    drop(bytes);
    match http::read_reply(&mut stream).await {
        Ok(reply) => Ok(reply),
        Err(ReadError::NotHttp(why)) => Err(WebServerError::NotSlicer { why }),
        Err(error) => {
            tracing::debug!(%error, ?written, "no reply from Slicer");
            Err(WebServerError::Ended)
        }
    }
}

/// The JSON of a reply, or the error that its status means.
fn decode(reply: &Reply) -> Result<Value, WebServerError> {
    let parsed = parse_python_json(&reply.body);
    match reply.status {
        200..=299 => parsed.map_err(|error| WebServerError::BadJson {
            why: error.to_string(),
            start: String::from_utf8_lossy(&reply.body).chars().take(80).collect(),
        }),
        status => match parsed.ok().as_ref().and_then(|json| json.get("message")) {
            Some(Value::String(message)) => Err(WebServerError::Server { message: message.clone() }),
            _ => Err(WebServerError::Http { status }),
        },
    }
}

/// Slicer says the same of every path it does not know, and with exec off it does not know `/exec`.
fn says_exec_is_off(message: &str) -> bool {
    message.starts_with("Server error: unknown command") && message.contains("/exec")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        for (given, shown) in [
            ("http://127.0.0.1:2016/slicer", "http://127.0.0.1:2016/slicer"),
            ("http://localhost:2017/slicer/", "http://localhost:2017/slicer"),
            (" http://127.0.0.1:2016 ", "http://127.0.0.1:2016/slicer"),
            ("http://[::1]:2016/slicer", "http://[::1]:2016/slicer"),
        ] {
            assert_eq!(WebServer::new(given, None).unwrap().url(), shown);
        }
    }

    #[test]
    fn an_address_that_cannot_work_is_refused_with_an_example() {
        for given in ["localhost:2016", "https://127.0.0.1:2016/slicer", "", "slicer"] {
            let error = WebServer::new(given, None).unwrap_err();
            assert!(matches!(error, WebServerError::BadUrl { .. }), "{given}");
            assert!(error.to_string().contains(DEFAULT_URL), "{error}");
        }
    }

    #[test]
    fn an_exception_about_an_unknown_command_is_not_taken_for_exec_off() {
        assert!(says_exec_is_off("Server error: unknown command \"b'/exec'\""));
        assert!(!says_exec_is_off("Server error: unknown command \"b'/nothing'\""));
        assert!(!says_exec_is_off("Server error: robot said: unknown command /exec"));
    }
}
