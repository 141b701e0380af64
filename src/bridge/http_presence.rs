//! Whether the client of a session is still there.
//!
//! In MCP's protocol with sessions, a connection that breaks is not yet a client that has given up: it may come back and
//! ask for what it missed. But a client that was closed or killed never does, and what it had asked for would run in
//! Slicer long after, in front of whoever uses it now. So a session whose connection broke before an answer was sent,
//! and that shows no sign of life for a while, is closed, which withdraws its calls that still wait.
//!
//! A client that closes its connection after it got its answer is not touched: that is how some clients always do it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, BodyDataStream, Bytes};
use axum::response::Response;
use futures::Stream;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::sync::OwnedSemaphorePermit;

/// How long a session may be without any connection after one broke. Clients come back after 1 to 3 s.
const ABSENCE: Duration = Duration::from_secs(6);
/// How every answer of the transport begins, and nothing else that it sends: notifications have no id.
const ANSWER: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

/// The signs of life of all sessions.
#[derive(Clone)]
pub struct Presence {
    sessions: Arc<LocalSessionManager>,
    signs: Arc<Mutex<HashMap<Arc<str>, Signs>>>,
}

struct Signs {
    /// Requests and streams that are open now.
    open: usize,
    /// When the last request began.
    last: Instant,
}

impl Presence {
    /// Watches over the sessions of this manager.
    pub fn new(sessions: Arc<LocalSessionManager>) -> Self {
        Self { sessions, signs: Arc::default() }
    }

    /// Notes that a request of this session has begun.
    pub fn begin(&self, session: &str) -> Open {
        let session: Arc<str> = session.into();
        let now = Instant::now();
        let mut signs = self.lock();
        let sign = signs.entry(Arc::clone(&session)).or_insert(Signs { open: 0, last: now });
        sign.open += 1;
        sign.last = now;
        Open { presence: self.clone(), session }
    }

    /// Forgets sessions that have ended.
    pub async fn tidy(&self) {
        let living = self.sessions.sessions.read().await;
        self.lock().retain(|session, sign| sign.open > 0 || living.contains_key(session));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Signs>> {
        // The map is whole after every change, also when a thread ended while it held the lock.
        self.signs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn close_if_absent(self, session: Arc<str>, since: Instant) {
        tokio::time::sleep(ABSENCE).await;
        let absent = self.lock().get(&session).is_some_and(|sign| sign.open == 0 && sign.last <= since);
        if absent {
            tracing::info!("a client is gone; what it still waited for is withdrawn");
            if let Err(error) = self.sessions.close_session(&session).await {
                tracing::debug!(%error, "the session of a client that is gone could not be closed");
            }
        }
    }
}

/// A request of a session that is open.
pub struct Open {
    presence: Presence,
    session: Arc<str>,
}

impl Open {
    fn broken(&self) {
        // Outside a runtime the process is ending, and every session with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(self.presence.clone().close_if_absent(Arc::clone(&self.session), Instant::now()));
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(sign) = self.presence.lock().get_mut(&self.session) {
            sign.open = sign.open.saturating_sub(1);
        }
    }
}

/// Holds both until the response is sent or its reader is gone.
pub fn until_sent(response: Response, permit: Option<OwnedSemaphorePermit>, open: Option<Open>) -> Response {
    let is_call = permit.is_some();
    response.map(|body| {
        let inner = body.into_data_stream();
        Body::from_stream(Sending { inner, done: !is_call, _permit: permit, open })
    })
}

/// A response on its way.
struct Sending {
    inner: BodyDataStream,
    /// Whether it has carried an answer, has come to its end, or is a stream that never has one.
    done: bool,
    _permit: Option<OwnedSemaphorePermit>,
    open: Option<Open>,
}

impl Stream for Sending {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let part = Pin::new(&mut self.inner).poll_next(context);
        match &part {
            Poll::Ready(Some(Ok(bytes))) => self.done |= holds_answer(bytes),
            Poll::Ready(None) => self.done = true,
            _ => {}
        }
        part
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if let (false, Some(open)) = (self.done, &self.open) {
            open.broken();
        }
    }
}

fn holds_answer(part: &[u8]) -> bool {
    // An answer may be megabytes long; what tells is at its beginning.
    let start = &part[..part.len().min(1024)];
    start.windows(ANSWER.len()).any(|window| window == ANSWER)
}
