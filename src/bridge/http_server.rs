//! The bridge for several MCP clients at once, over streamable HTTP on this machine.
//!
//! One process then serves every client, and all their calls wait in one queue for Slicer, which two bridges beside
//! each other could not promise. The transport is `rmcp`'s; what is added here is the gate in front of it. A port of the
//! loopback is open to every program of the machine and, through a browser, to every web page, so a request passes only
//! when it names this port as its host (a page that has pointed its own name at 127.0.0.1 does not), when it does not
//! come from a page of another host, and when it shows the token.
//!
//! Two instances of the transport share their sessions, so that the bridge can end in two steps: first the sessions
//! end, which lets every call that waits answer, then, when those answers are out, the streams that carry them.

use std::future::IntoFuture;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures::StreamExt;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::http_presence::{Presence, until_sent};
use super::http_token::Token;
use super::server::{BridgeError, BridgeOptions, SlicerBridge};

/// Where MCP is below the address.
const PATH: &str = "/mcp";
/// Largest request in bytes. Code of 20 MB fits, also where a client escapes much of it.
const MAX_REQUEST: usize = 64 << 20;
/// How much of a larger request is read and dropped, so that its sender gets to read the refusal.
const MAX_DROPPED: usize = 512 << 20;
/// Most calls that may wait for their answers at the same time.
const MAX_OPEN: u32 = 4096;
/// How long a session may be silent. Clients seldom begin a new one by themselves, and a person may come back the next
/// morning; what a forgotten session holds is small.
const SESSION_SILENCE: Duration = Duration::from_secs(24 * 3600);
/// Longest wait for the last answers to go out when the bridge ends.
const LAST_ANSWERS: Duration = Duration::from_secs(3);
/// Longest wait for the connections to close after that.
const LAST_CONNECTIONS: Duration = Duration::from_secs(2);
/// The header that names a session of MCP.
const SESSION: &str = "mcp-session-id";

const STOPPING: &str = "The bridge is being stopped.";

/// How the bridge is reached over HTTP.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The address to listen on; only of the loopback. Port 0 means any free one.
    pub listen: SocketAddr,
    /// What a client has to show.
    pub token: Token,
}

/// Why the bridge cannot be offered over HTTP.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address is not one.
    #[error("{text:?} is not an address to listen on. Write it like 127.0.0.1:8016; port 0 picks a free one.")]
    NotAnAddress { text: String },
    /// Others than this machine would reach it.
    #[error(
        "{address} could be reached from other machines, and whoever reaches the bridge can run code in Slicer. Listen \
         on 127.0.0.1:{port} instead; from another machine use a tunnel: ssh -L {port}:127.0.0.1:{port} USER@THIS-MACHINE",
        port = .address.port()
    )]
    NotLoopback { address: SocketAddr },
    /// Something else listens there.
    #[error(
        "port {port} is taken by another program, perhaps another bridge. Name another port, or 0 for any free one.",
        port = .address.port()
    )]
    Taken { address: SocketAddr },
    /// The system does not allow it.
    #[error("{address} cannot be listened on: {why}. Try another port.")]
    Listen { address: SocketAddr, why: std::io::Error },
}

/// The address that a text names: `127.0.0.1:8016`, `[::1]:8016` or `localhost:8016`.
///
/// # Errors
/// [`HttpError::NotAnAddress`] and [`HttpError::NotLoopback`].
pub fn listen_address(text: &str) -> Result<SocketAddr, HttpError> {
    let text = text.trim();
    let not_one = || HttpError::NotAnAddress { text: text.to_owned() };
    let address = match text.rsplit_once(':') {
        Some((name, port)) if name.eq_ignore_ascii_case("localhost") => {
            SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().map_err(|_| not_one())?)
        }
        _ => text.parse().map_err(|_| not_one())?,
    };
    if address.ip().is_loopback() { Ok(address) } else { Err(HttpError::NotLoopback { address }) }
}

/// The bridge with its port open, not serving yet.
pub struct HttpBridge {
    listener: TcpListener,
    address: SocketAddr,
    bridge: SlicerBridge,
    token: Token,
}

impl HttpBridge {
    /// Opens the port. An absent Slicer is no error.
    ///
    /// # Errors
    /// [`BridgeError`].
    pub async fn bind(options: &BridgeOptions, http: HttpOptions) -> Result<Self, BridgeError> {
        let address = http.listen;
        if !address.ip().is_loopback() {
            return Err(HttpError::NotLoopback { address }.into());
        }
        let bridge = SlicerBridge::new(options)?;
        let listener = TcpListener::bind(address).await.map_err(|why| match why.kind() {
            std::io::ErrorKind::AddrInUse => HttpError::Taken { address },
            _ => HttpError::Listen { address, why },
        })?;
        let address = listener.local_addr().map_err(|why| HttpError::Listen { address, why })?;
        Ok(Self { listener, address, bridge, token: http.token })
    }

    /// The address to give a client.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Serves until `stop`: then calls that wait are answered, and the port is closed. That takes a few seconds at most.
    ///
    /// # Errors
    /// [`BridgeError::Ended`].
    pub async fn serve(self, stop: CancellationToken) -> Result<(), BridgeError> {
        let gate = Arc::new(Gate::new(self.bridge, self.token, self.address, stop.clone()));
        let router = Router::new()
            .route(PATH, any(answer))
            .with_state(Arc::clone(&gate))
            .fallback(nothing_here)
            .layer(middleware::from_fn_with_state(Arc::clone(&gate), admit));
        let streams = gate.streams_end.clone();
        let ending = async move {
            stop.cancelled().await;
            gate.end().await;
        };
        let serving = axum::serve(self.listener, router).with_graceful_shutdown(ending).into_future();
        tokio::select! {
            served = serving => served.map_err(|error| BridgeError::Ended(error.to_string())),
            () = async { streams.cancelled().await; tokio::time::sleep(LAST_CONNECTIONS).await } => {
                tracing::debug!("a client keeps its connection open; it is closed with the process");
                Ok(())
            }
        }
    }
}

type Mcp = StreamableHttpService<SlicerBridge, LocalSessionManager>;

/// What every request needs.
struct Gate {
    token: Token,
    /// The values of `Host` that name this port on this machine.
    hosts: Vec<String>,
    /// Begins sessions, and answers requests that belong to none.
    sessions: Mcp,
    /// Answers requests within a session.
    streams: Mcp,
    presence: Presence,
    open: Arc<Semaphore>,
    stop: CancellationToken,
    sessions_end: CancellationToken,
    streams_end: CancellationToken,
}

impl Gate {
    fn new(bridge: SlicerBridge, token: Token, address: SocketAddr, stop: CancellationToken) -> Self {
        let port = address.port();
        let mut hosts: Vec<String> =
            ["127.0.0.1", "localhost", "[::1]"].iter().map(|name| format!("{name}:{port}")).collect();
        // Any address of 127.0.0.0/8 may be listened on.
        hosts.push(address.to_string());
        let mut sessions = LocalSessionManager::default();
        sessions.session_config = SessionConfig::default();
        sessions.session_config.keep_alive = Some(SESSION_SILENCE);
        let sessions = Arc::new(sessions);
        let (sessions_end, streams_end) = (CancellationToken::new(), CancellationToken::new());
        // The transport looks at Host and Origin too. Its list is kept as strict as ours.
        let service = |end: &CancellationToken| {
            let bridge = bridge.clone();
            let config = StreamableHttpServerConfig::default()
                .with_allowed_hosts(hosts.clone())
                .with_allowed_origins(
                    ["127.0.0.1", "localhost", "[::1]"]
                        .iter()
                        .flat_map(|name| [format!("http://{name}:*"), format!("https://{name}:*")]),
                )
                .enforce_origin_validation()
                .with_max_request_body_bytes(MAX_REQUEST)
                .with_cancellation_token(end.clone());
            StreamableHttpService::new(move || Ok(bridge.clone()), Arc::clone(&sessions), config)
        };
        Self {
            token,
            sessions: service(&sessions_end),
            streams: service(&streams_end),
            presence: Presence::new(sessions),
            hosts,
            open: Arc::new(Semaphore::new(MAX_OPEN as usize)),
            stop,
            sessions_end,
            streams_end,
        }
    }

    /// Lets the calls that wait answer, and then ends the streams.
    async fn end(&self) {
        self.sessions_end.cancel();
        let all = tokio::time::timeout(LAST_ANSWERS, self.open.acquire_many(MAX_OPEN)).await;
        if all.is_err() {
            tracing::warn!("some clients do not read their answers; they are left without");
        }
        self.streams_end.cancel();
    }

    /// Why a request may not pass, before it is known who sends it.
    fn refusal(&self, headers: &HeaderMap) -> Option<&'static str> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        if !self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host)) {
            return Some("Refused: the request names another host than this machine's own (127.0.0.1 or localhost).");
        }
        if headers.get_all(header::ORIGIN).iter().any(|origin| !origin.to_str().is_ok_and(is_local_origin)) {
            return Some("Refused: the request comes from a web page of another host.");
        }
        None
    }

    fn is_known(&self, headers: &HeaderMap) -> bool {
        let mut shown = headers.get_all(header::AUTHORIZATION).iter();
        matches!((shown.next(), shown.next()), (Some(value), None) if self.token.is_shown_by(value.as_bytes()))
    }
}

/// Whether an `Origin` is a page that this machine serves itself.
fn is_local_origin(origin: &str) -> bool {
    use reqwest::Url;
    let Ok(url) = Url::parse(origin) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    matches!(url.scheme(), "http" | "https") && (host == "localhost" || address.is_ok_and(|ip| ip.is_loopback()))
}

/// Lets a request pass, or answers why not.
async fn admit(State(gate): State<Arc<Gate>>, mut request: Request, next: Next) -> Response {
    if let Some(why) = gate.refusal(request.headers()) {
        tracing::warn!("a request was refused because of its Host or Origin");
        return words(StatusCode::FORBIDDEN, why);
    }
    if request.uri().path() != PATH {
        return next.run(request).await;
    }
    if !gate.is_known(request.headers()) {
        let text = "This bridge needs its token. Send the header \"Authorization: Bearer TOKEN\" with the token from \
                    the file that was named with --token-file.";
        return ([(header::WWW_AUTHENTICATE, "Bearer")], words(StatusCode::UNAUTHORIZED, text)).into_response();
    }
    // The transport hands the header on to the tools and may log it.
    request.headers_mut().remove(header::AUTHORIZATION);
    next.run(request).await
}

async fn nothing_here() -> Response {
    words(StatusCode::NOT_FOUND, "There is nothing here. MCP is at /mcp.")
}

/// Answers a request that has passed.
async fn answer(State(gate): State<Arc<Gate>>, request: Request) -> Response {
    if gate.stop.is_cancelled() {
        return words(StatusCode::SERVICE_UNAVAILABLE, STOPPING);
    }
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: usize| length > MAX_REQUEST) {
        return too_large(request).await;
    }
    let session = request.headers().get(SESSION).and_then(|session| session.to_str().ok());
    let sign = session.map(|session| gate.presence.begin(session));
    let service = if sign.is_some() { &gate.streams } else { &gate.sessions };
    if request.method() != Method::POST {
        return until_sent(service.handle(request).await.map(Body::new), None, sign);
    }
    let Ok(permit) = Arc::clone(&gate.open).try_acquire_owned() else {
        return words(StatusCode::SERVICE_UNAVAILABLE, "Too many calls wait for Slicer. Try again when it is idle.");
    };
    let response = if sign.is_some() {
        service.handle(request).await
    } else {
        gate.presence.tidy().await;
        tokio::select! {
            biased;
            response = service.handle(request) => response,
            () = gate.sessions_end.cancelled() => return words(StatusCode::SERVICE_UNAVAILABLE, STOPPING),
        }
    };
    until_sent(response.map(Body::new), Some(permit), sign)
}

/// Reads what cannot be taken, so that its sender comes to read the answer, and answers.
async fn too_large(request: Request) -> Response {
    let mut body = request.into_body().into_data_stream();
    let mut dropped = 0;
    while let Some(Ok(part)) = body.next().await {
        dropped += part.len();
        if dropped > MAX_DROPPED {
            break;
        }
    }
    let text = format!(
        "The request is too large: at most {} MB are taken. Let the code read its data from a file.",
        MAX_REQUEST >> 20
    );
    (StatusCode::PAYLOAD_TOO_LARGE, text).into_response()
}

fn words(status: StatusCode, text: &'static str) -> Response {
    (status, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_listened_on() {
        for (text, address) in [
            ("127.0.0.1:8016", "127.0.0.1:8016"),
            ("localhost:0", "127.0.0.1:0"),
            ("[::1]:8016", "[::1]:8016"),
            ("127.1.2.3:1", "127.1.2.3:1"),
        ] {
            assert_eq!(listen_address(text).unwrap(), address.parse().unwrap());
        }
        for text in ["0.0.0.0:8016", "[::]:8016", "192.168.1.5:8016"] {
            let error = listen_address(text).unwrap_err();
            assert!(matches!(error, HttpError::NotLoopback { .. }), "{text}");
            assert!(error.to_string().contains("ssh -L 8016:127.0.0.1:8016"), "{error}");
        }
        for text in ["", "8016", "127.0.0.1", "localhost:x", "example.org:80", "127.0.0.1:99999"] {
            assert!(matches!(listen_address(text), Err(HttpError::NotAnAddress { .. })), "{text}");
        }
    }

    #[test]
    fn origins_of_other_hosts_are_told_apart() {
        for origin in ["http://localhost:6274", "http://127.0.0.1", "https://localhost", "http://[::1]:80"] {
            assert!(is_local_origin(origin), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://example.org",
            "http://localhost.example.org",
            "http://127.0.0.1.example.org",
            "file://",
            "chrome-extension://localhost",
        ] {
            assert!(!is_local_origin(origin), "{origin}");
        }
    }
}
