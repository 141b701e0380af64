//! The handle to a connected Slicer: snapshots, guarded runs, undo, pictures.
//!
//! Slicer's Web Server breaks when two pieces of code overlap, so one call at a time goes out; others wait their turn,
//! but a cancelled run never waits: it leaves a stop file that the watchdog inside Slicer sees. Replies carry the id of
//! their request, because Slicer can give the reply of one request to another; a swapped one is asked for again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::transport::IntoTransport;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::bridge::helper::{self, ExchangeError, Execute};

use super::bridge_client::{BridgeClient, ConnectOptions};
use super::error::SlicerError;
use super::types::{
    RestoreReport, RunError, RunOutcome, RunRequest, SceneSnapshot, Screenshot, SlicerStatus, ViewRequest,
};

/// Longest wait for what only reads.
const READ_LIMIT: Duration = Duration::from_secs(30);
/// Longest wait for the status: it decides what the window says of the connection.
const STATUS_LIMIT: Duration = Duration::from_secs(5);
/// Longest wait for an undo, which may copy a lot.
const UNDO_LIMIT: Duration = Duration::from_secs(120);
/// What a run may take beyond its own limit: checkpoint, comparison, restore.
const RUN_GRACE: Duration = Duration::from_secs(15);
/// How long a stopped run may take to end.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// A connected Slicer. Clones share the connection.
#[derive(Clone)]
pub struct Slicer {
    inner: Arc<Inner>,
}

struct Inner {
    bridge: BridgeClient,
    label: String,
    /// Held by the call that is on its way.
    turn: Mutex<()>,
    last_status: StdMutex<Option<SlicerStatus>>,
    /// Where the stop files of runs are.
    stop_folder: PathBuf,
}

impl std::fmt::Debug for Slicer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slicer").field("label", &self.inner.label).finish_non_exhaustive()
    }
}

impl Slicer {
    /// Starts the bridge. Whether Slicer is there shows at the first call.
    ///
    /// # Errors
    /// [`SlicerError::BridgeStart`].
    pub async fn connect(options: ConnectOptions) -> Result<Self, SlicerError> {
        let label = options.label();
        Self::new(BridgeClient::start(options).await?, label, std::env::temp_dir())
    }

    /// A Slicer behind an MCP server at the other end of `transport`.
    ///
    /// # Errors
    /// [`SlicerError::Bridge`].
    pub async fn over_transport<T, E, A>(transport: T, label: &str) -> Result<Self, SlicerError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        Self::new(BridgeClient::over(transport).await?, label.to_owned(), std::env::temp_dir())
    }

    fn new(bridge: BridgeClient, label: String, stop_folder: PathBuf) -> Result<Self, SlicerError> {
        let (turn, last_status) = (Mutex::new(()), StdMutex::new(None));
        Ok(Self { inner: Arc::new(Inner { bridge, label, turn, last_status, stop_folder }) })
    }

    /// Version and number of nodes. While a call of ours is on its way the last known status is given at once.
    ///
    /// # Errors
    /// Any [`SlicerError`].
    pub async fn status(&self) -> Result<SlicerStatus, SlicerError> {
        let known = self.inner.last_status.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let (Some(known), Err(_)) = (known, self.inner.turn.try_lock()) {
            return Ok(known);
        }
        let value = self.ask("status", json!({}), STATUS_LIMIT).await?;
        let status = SlicerStatus {
            connected: true,
            url: self.inner.label.clone(),
            version: value["version"].as_str().unwrap_or_default().to_owned(),
            practice: value["practice"] == true,
            nodes: value["nodes"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or_default(),
            problem: None,
        };
        *self.inner.last_status.lock().unwrap_or_else(PoisonError::into_inner) = Some(status.clone());
        Ok(status)
    }

    /// The scene and the views as they are now.
    ///
    /// # Errors
    /// Any [`SlicerError`].
    pub async fn snapshot(&self) -> Result<SceneSnapshot, SlicerError> {
        typed(self.ask("snapshot", json!({}), READ_LIMIT).await?)
    }

    /// Runs code once, guarded: what it did is in the outcome, also when it failed.
    ///
    /// A cancelled run is stopped inside Slicer, and its outcome says `Stopped`; cancelled before its turn came, it is
    /// never sent. A future that is dropped stops its run as well.
    ///
    /// # Errors
    /// [`SlicerError::Busy`] when Slicer did not answer after the limit, or within 2 s after a stop; any other
    /// [`SlicerError`].
    pub async fn run(&self, mut request: RunRequest, cancel: &CancellationToken) -> Result<RunOutcome, SlicerError> {
        let limit = Duration::from_millis(request.timeout_ms) + RUN_GRACE;
        let turn = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(stopped_before(&request)),
            turn = self.inner.turn.lock() => turn,
        };
        // Only a run that is sent has one: what never began needs no file to stop it.
        let mut stop = StopFile::new(&self.inner.stop_folder);
        request.stop_path = Some(stop.path.to_string_lossy().into_owned());
        let mut run = std::pin::pin!(self.exchange("run", json!({"run": request}), limit));
        let answer = tokio::select! {
            answer = &mut run => answer,
            () = cancel.cancelled() => {
                stop.raise();
                tokio::time::timeout(STOP_LIMIT, run).await.unwrap_or_else(|_| {
                    Err(SlicerError::Busy { what: "the run was told to stop, but has not ended yet".into() })
                })
            }
        };
        drop(turn);
        if !matches!(answer, Err(SlicerError::Busy { .. })) {
            stop.done();
        }
        typed(answer?)
    }

    /// Undoes a run, and before it the runs that came after it.
    ///
    /// # Errors
    /// Any [`SlicerError`].
    pub async fn undo(&self, run: &str) -> Result<RestoreReport, SlicerError> {
        typed(self.ask("undo", json!({"run": run}), UNDO_LIMIT).await?)
    }

    /// A picture of a view.
    ///
    /// # Errors
    /// Any [`SlicerError`].
    pub async fn screenshot(&self, view: &ViewRequest) -> Result<Screenshot, SlicerError> {
        let _turn = self.inner.turn.lock().await;
        self.inner.bridge.screenshot(view, READ_LIMIT).await
    }

    /// Properties of nodes: an object by id; an unknown id has `error`.
    ///
    /// # Errors
    /// Any [`SlicerError`].
    pub async fn node_properties(&self, ids: &[String]) -> Result<Value, SlicerError> {
        self.ask("node_properties", json!({"ids": ids}), READ_LIMIT).await
    }

    /// Id, name and class of the nodes that a person works with; with a class (or a derived one) or an exact name, of
    /// all nodes that match, hidden ones too.
    ///
    /// # Errors
    /// Any [`SlicerError`].
    pub async fn list_nodes(&self, class: Option<&str>, name: Option<&str>) -> Result<Value, SlicerError> {
        self.ask("list_nodes", json!({"class": class, "name": name}), READ_LIMIT).await
    }

    async fn ask(&self, action: &str, fields: Value, limit: Duration) -> Result<Value, SlicerError> {
        let _turn = self.inner.turn.lock().await;
        self.exchange(action, fields, limit).await
    }

    /// One request to the helper, which is installed when it is missing.
    async fn exchange(&self, action: &str, fields: Value, limit: Duration) -> Result<Value, SlicerError> {
        let over_mcp = OverMcp { bridge: &self.inner.bridge, limit };
        helper::exchange(&over_mcp, action, fields).await.map_err(|error| match error {
            ExchangeError::Execute(error) => error,
            ExchangeError::Install(why) => {
                SlicerError::Answer { said: format!("our helper could not be installed in Slicer ({why})") }
            }
            ExchangeError::Helper { kind, message } if kind == "Busy" => SlicerError::Busy { what: message },
            ExchangeError::Helper { kind, message } => SlicerError::Answer { said: format!("{kind}: {message}") },
            ExchangeError::Mixed => {
                SlicerError::Busy { what: "other code in Slicer takes the replies to our requests".into() }
            }
        })
    }
}

/// Python goes to Slicer through the MCP server.
struct OverMcp<'a> {
    bridge: &'a BridgeClient,
    limit: Duration,
}

impl Execute for OverMcp<'_> {
    type Error = SlicerError;

    async fn run(&self, code: &str) -> Result<Value, SlicerError> {
        self.bridge.execute(code, self.limit).await
    }
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, SlicerError> {
    serde_json::from_value(value).map_err(|error| SlicerError::Answer { said: error.to_string() })
}

fn stopped_before(request: &RunRequest) -> RunOutcome {
    let message = "the run was stopped before it began".to_owned();
    RunOutcome {
        id: request.id.clone(),
        error: Some(RunError { kind: "Stopped".into(), message, ..RunError::default() }),
        ..RunOutcome::default()
    }
}

/// The file that stops a run as soon as it exists. A run that is given up leaves it there, because it may still be busy
/// and must end as soon as it can; it cannot be told from here when it does.
struct StopFile {
    path: PathBuf,
    done: bool,
}

impl StopFile {
    fn new(folder: &Path) -> Self {
        let name = format!("slicer-ai-agent-stop-{}", uuid::Uuid::new_v4().simple());
        Self { path: folder.join(name), done: false }
    }

    fn raise(&self) {
        if let Err(error) = std::fs::write(&self.path, b"") {
            tracing::warn!(%error, "the stop file could not be written");
        }
    }

    /// The run has ended: the file has no use any more.
    fn done(&mut self) {
        self.done = true;
    }
}

impl Drop for StopFile {
    fn drop(&mut self) {
        if !self.done {
            self.raise();
        } else if self.path.exists()
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::debug!(%error, "the stop file could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolRequestParams, CallToolResponse, ServerCapabilities, ServerConfig};
    use rmcp::service::RequestContext;
    use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};

    use super::*;

    /// A bridge that takes code and never answers.
    struct Mute;

    impl ServerHandler for Mute {
        fn get_info(&self) -> ServerConfig {
            let mut info = ServerConfig::default();
            info.capabilities = ServerCapabilities::builder().enable_tools().build();
            info
        }

        async fn call_tool(
            &self,
            _request: CallToolRequestParams,
            _context: RequestContext<RoleServer>,
        ) -> Result<CallToolResponse, ErrorData> {
            std::future::pending().await
        }
    }

    async fn connected(stop_folder: &Path) -> Slicer {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move {
            let running = Mute.serve(theirs).await.expect("the handshake");
            running.waiting().await.expect("the bridge runs");
        });
        let bridge = BridgeClient::over(ours).await.expect("the handshake");
        Slicer::new(bridge, "a test".into(), stop_folder.to_owned()).expect("the helper is embedded")
    }

    fn files(folder: &Path) -> usize {
        std::fs::read_dir(folder).unwrap().count()
    }

    fn request() -> RunRequest {
        RunRequest { id: "r1".into(), code: "pass".into(), timeout_ms: 60_000, ..RunRequest::default() }
    }

    /// A run that was never sent leaves nothing in the temporary folder: neither cancelled nor dropped before its turn.
    #[tokio::test]
    async fn a_run_before_its_turn_leaves_no_stop_file() {
        let folder = tempfile::tempdir().unwrap();
        let slicer = connected(folder.path()).await;
        let turn = slicer.inner.turn.lock().await;
        let cancel = CancellationToken::new();
        let waiting = slicer.run(request(), &cancel);
        assert!(tokio::time::timeout(Duration::from_millis(50), waiting).await.is_err(), "it waits for its turn");
        assert_eq!(files(folder.path()), 0, "dropped while it waited");
        cancel.cancel();
        let outcome = slicer.run(request(), &cancel).await.unwrap();
        assert_eq!(outcome.error.map(|error| error.kind).as_deref(), Some("Stopped"));
        assert_eq!(files(folder.path()), 0, "cancelled while it waited");
        drop(turn);
    }

    /// A run that is under way when its future is dropped is stopped inside Slicer.
    #[tokio::test]
    async fn a_run_under_way_is_stopped_when_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let slicer = connected(folder.path()).await;
        let cancel = CancellationToken::new();
        let run = slicer.run(request(), &cancel);
        assert!(tokio::time::timeout(Duration::from_millis(200), run).await.is_err(), "it is under way");
        assert_eq!(files(folder.path()), 1);
    }
}
