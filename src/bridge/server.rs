//! The MCP server: hands tool calls to the tools, and keeps to the client's wishes while they run.
//!
//! It starts whether or not Slicer is there, because a client that finds a dead server shows nothing useful to anyone:
//! each call then answers with what to do. A cancelled call is dropped at once, which withdraws a request that still
//! waits for its turn; a long call tells a client that asked for it that it is still alive. [`SlicerBridge`] is cheap to
//! clone and the clones share one queue to Slicer, so the same handler can serve several transports.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::transport::IntoTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::http_server::HttpError;
use super::screenshot::{self, CaptureError};
use super::types::{
    CAPTURE_SCREENSHOT, CaptureArgs, EXECUTE_PYTHON_CODE, ExecuteArgs, GET_NODE_PROPERTIES, GET_STATUS, LIST_NODES,
    LOAD_SAMPLE_DATA, ListNodesArgs, LoadSampleArgs, NoArgs, NodePropertiesArgs, UNDO_LAST_RUN, UndoArgs,
};
use super::web_server::{DEFAULT_URL, WebServer, WebServerError};
use super::{mcp_resources, more_tools, tools};

/// Longest message from a client, in bytes. The kit's own limit of 16 MiB would drop large code without a word.
const MAX_MESSAGE: usize = 256 << 20;
/// How often a client that asked for progress hears of a call that runs.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);
/// How often Slicer is looked for while a call waits for it.
const LOOK_EVERY: Duration = Duration::from_millis(500);

const INSTRUCTIONS: &str = "Tools for a running 3D Slicer. List nodes before acting on them, run Python to change the \
    scene, and take a screenshot to see the result. Slicer handles one call at a time; get_status says what it is doing. \
    When a reply says that Slicer's Web Server is not running, tell the person what the reply says to do.";
const READ_ONLY: &str = "Refused: this bridge was started with --read-only and changes nothing. Start it without that \
    option to allow it.";

/// How the bridge runs.
#[derive(Debug, Clone, PartialEq)]
pub struct BridgeOptions {
    /// Where Slicer's Web Server is, for example `http://127.0.0.1:2016/slicer`.
    pub slicer_url: String,
    /// Longest wait for one reply of Slicer; `None` means 600 s.
    pub timeout: Option<Duration>,
    /// Whether a call waits until Slicer is there, instead of answering that it is not.
    pub wait: bool,
    /// Whether everything that could change the scene is refused, running code above all.
    pub read_only: bool,
}

impl Default for BridgeOptions {
    fn default() -> Self {
        Self { slicer_url: DEFAULT_URL.to_owned(), timeout: None, wait: false, read_only: false }
    }
}

/// Why the bridge could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The address of Slicer cannot be used.
    #[error(transparent)]
    Url(#[from] WebServerError),
    /// The bridge cannot be offered over HTTP.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// A tool could not be described.
    #[error("a tool cannot be described: {0}")]
    Definition(String),
    /// The client did not speak MCP.
    #[error("the MCP client could not be served: {0}")]
    Client(String),
    /// The server ended on its own.
    #[error("the bridge ended unexpectedly: {0}")]
    Ended(String),
}

/// Serves one MCP client over standard input and output, until it closes its end.
///
/// # Errors
/// [`BridgeError`]. An absent Slicer is not one.
pub async fn serve_stdio(options: BridgeOptions) -> Result<(), BridgeError> {
    let (input, output) = rmcp::transport::stdio_pipes();
    serve(AsyncRwTransport::new(input, output).with_max_line_length(MAX_MESSAGE), options).await
}

/// Serves one MCP client over any transport, until it closes its end.
///
/// # Errors
/// [`BridgeError`]. An absent Slicer is not one.
pub async fn serve<T, E, A>(transport: T, options: BridgeOptions) -> Result<(), BridgeError>
where
    T: IntoTransport<RoleServer, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let bridge = SlicerBridge::new(&options)?;
    let running = match bridge.serve(transport).await {
        Ok(running) => running,
        // A client that leaves before it said anything is no failure of the bridge.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(BridgeError::Client(error.to_string())),
    };
    match running.waiting().await {
        Ok(reason) => {
            tracing::debug!(?reason, "the MCP client is gone");
            Ok(())
        }
        Err(error) => Err(BridgeError::Ended(error.to_string())),
    }
}

/// The handler of MCP requests.
#[derive(Debug, Clone)]
pub struct SlicerBridge {
    slicer: WebServer,
    tools: Arc<Vec<Tool>>,
    wait: bool,
    read_only: bool,
}

impl SlicerBridge {
    /// A bridge to the Slicer that the options name. Nothing is sent yet.
    ///
    /// # Errors
    /// [`BridgeError::Url`] and [`BridgeError::Definition`].
    pub fn new(options: &BridgeOptions) -> Result<Self, BridgeError> {
        Ok(Self {
            slicer: WebServer::new(&options.slicer_url, options.timeout)?,
            tools: Arc::new(tools::definitions(options.read_only).map_err(BridgeError::Definition)?),
            wait: options.wait,
            read_only: options.read_only,
        })
    }

    async fn call(&self, request: CallToolRequestParams) -> Result<CallToolResult, ErrorData> {
        let (name, given) = (request.name.as_ref(), request.arguments);
        let result = match name {
            LIST_NODES => match tools::arguments(name, given) {
                Ok(args) => self.list_nodes(args).await,
                Err(text) => Ok(failed(text)),
            },
            EXECUTE_PYTHON_CODE => match tools::arguments(name, given) {
                Ok(args) => self.execute(args).await,
                Err(text) => Ok(failed(text)),
            },
            CAPTURE_SCREENSHOT => match tools::arguments(name, given) {
                Ok(args) => self.capture(args).await,
                Err(text) => Ok(failed(text)),
            },
            GET_STATUS => match tools::arguments::<NoArgs>(name, given) {
                Ok(NoArgs {}) => {
                    serde_json::to_value(more_tools::status(&self.slicer).await).map(CallToolResult::structured)
                }
                Err(text) => Ok(failed(text)),
            },
            GET_NODE_PROPERTIES => match tools::arguments(name, given) {
                Ok(args) => self.node_properties(args).await,
                Err(text) => Ok(failed(text)),
            },
            LOAD_SAMPLE_DATA => match tools::arguments(name, given) {
                Ok(args) => self.load_sample(args).await,
                Err(text) => Ok(failed(text)),
            },
            UNDO_LAST_RUN => match tools::arguments(name, given) {
                Ok(args) => self.undo(args).await,
                Err(text) => Ok(failed(text)),
            },
            other => {
                return Err(ErrorData::invalid_params(format!("There is no tool named {other:?}."), None));
            }
        };
        result.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn list_nodes(&self, args: ListNodesArgs) -> Result<CallToolResult, serde_json::Error> {
        let reply = self
            .when_running(|| tools::list_nodes(&self.slicer, &args))
            .await
            .unwrap_or_else(|error| tools::listing_failed(tools::error_text(&error)));
        tools::result(&reply, tools::listing_failed)
    }

    async fn execute(&self, args: ExecuteArgs) -> Result<CallToolResult, serde_json::Error> {
        let reply = if self.read_only {
            tools::execution_failed(READ_ONLY.to_owned())
        } else {
            self.when_running(|| tools::execute(&self.slicer, &args))
                .await
                .unwrap_or_else(|error| tools::execution_failed(tools::error_text(&error)))
        };
        tools::result(&reply, |advice| tools::execution_failed(format!("The code ran. {advice}")))
    }

    async fn node_properties(&self, args: NodePropertiesArgs) -> Result<CallToolResult, serde_json::Error> {
        let reply = self
            .when_running(|| more_tools::node_properties(&self.slicer, &args))
            .await
            .unwrap_or_else(|error| more_tools::properties_failed(tools::error_text(&error)));
        tools::result(&reply, more_tools::properties_failed)
    }

    async fn load_sample(&self, args: LoadSampleArgs) -> Result<CallToolResult, serde_json::Error> {
        let reply = if self.read_only {
            more_tools::sample_failed(READ_ONLY.to_owned())
        } else {
            self.when_running(|| more_tools::load_sample(&self.slicer, &args))
                .await
                .unwrap_or_else(|error| more_tools::sample_failed(tools::error_text(&error)))
        };
        tools::result(&reply, more_tools::sample_failed)
    }

    async fn undo(&self, args: UndoArgs) -> Result<CallToolResult, serde_json::Error> {
        let reply = if self.read_only {
            more_tools::undo_failed(READ_ONLY.to_owned())
        } else {
            self.when_running(|| more_tools::undo(&self.slicer, &args))
                .await
                .unwrap_or_else(|error| more_tools::undo_failed(tools::error_text(&error)))
        };
        tools::result(&reply, more_tools::undo_failed)
    }

    async fn capture(&self, args: CaptureArgs) -> Result<CallToolResult, serde_json::Error> {
        let taken = self
            .when_running(|| async {
                match screenshot::capture(&self.slicer, &args).await {
                    Err(CaptureError::Slicer(error @ WebServerError::NotRunning { .. })) => Err(error),
                    other => Ok(other),
                }
            })
            .await;
        let picture = match taken {
            Ok(Ok(picture)) => picture,
            Ok(Err(error)) => return Ok(failed(format!("No screenshot: {error}"))),
            Err(error) => return Ok(failed(format!("No screenshot: {error}"))),
        };
        let about = &picture.about;
        let mut text = format!("Screenshot of {}: {} x {} pixels.", about.views.join(", "), about.width, about.height);
        if let Some(note) = &about.note {
            text.push(' ');
            text.push_str(note);
        }
        let mut result = CallToolResult::success(vec![
            ContentBlock::text(text),
            ContentBlock::image(BASE64.encode(&picture.bytes), about.mime_type.clone()),
        ]);
        result.structured_content = Some(serde_json::to_value(about)?);
        Ok(result)
    }

    /// Asks Slicer; with `--wait`, again and again until it is there.
    async fn when_running<R, F>(&self, mut ask: impl FnMut() -> F) -> Result<R, WebServerError>
    where
        F: Future<Output = Result<R, WebServerError>>,
    {
        loop {
            match ask().await {
                Err(WebServerError::NotRunning { .. }) if self.wait => {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                other => return other,
            }
        }
    }
}

/// A client that has given the call up does not read this; one of a bridge that is stopped does.
fn given_up() -> ErrorData {
    ErrorData::internal_error("The call was given up, or the bridge is being stopped.", None)
}

/// A failure as text, marked as one.
fn failed(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

impl ServerHandler for SlicerBridge {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_resources().build())
            .with_server_info(Implementation::new("slicer-ai-agent", env!("CARGO_PKG_VERSION")).with_title("3D Slicer"))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.to_vec()))
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(mcp_resources::fixed()))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(mcp_resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        tokio::select! {
            biased;
            () = context.ct.cancelled() => Err(given_up()),
            read = mcp_resources::read(&self.slicer, &request.uri) => read.map(ReadResourceResponse::from),
        }
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut call = std::pin::pin!(self.call(request));
        let mut seconds = 0.0;
        loop {
            tokio::select! {
                biased;
                () = context.ct.cancelled() => return Err(given_up()),
                result = &mut call => return result.map(CallToolResponse::from),
                () = tokio::time::sleep(PROGRESS_EVERY) => {
                    seconds += PROGRESS_EVERY.as_secs_f64();
                    tell_progress(&context, seconds).await;
                }
            }
        }
    }
}

/// Tells a client that asked for it how long the call has run.
async fn tell_progress(context: &RequestContext<RoleServer>, seconds: f64) {
    let Some(token) = context.meta.get_progress_token() else {
        return;
    };
    let progress =
        ProgressNotificationParam::new(token, seconds).with_message(format!("Waiting for Slicer ({seconds:.0} s)"));
    if let Err(error) = context.peer.notify_progress(progress).await {
        tracing::debug!(%error, "progress could not be told");
    }
}
