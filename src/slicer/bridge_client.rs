//! The MCP side: starting a bridge, and calling its three tools.
//!
//! Any Slicer MCP server will do, so only what all of them have is used: `list_nodes` is not needed, code goes through
//! `execute_python_code`, pictures come from `capture_screenshot`. A bridge that ended is started again at the next call.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rmcp::model::{CallToolRequestParams, CallToolResult, ClientConfig, Implementation};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService, ServiceError};
use rmcp::transport::{IntoTransport, TokioChildProcess};
use rmcp::{Peer, RoleClient};
use serde_json::{Map, Value};
use tokio::process::Command;
use tokio::sync::Mutex;

use super::error::{SlicerError, shorten};
use super::types::{Screenshot, ViewRequest};

/// Longest wait for a bridge to start; Python ones take a second or two, and more on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Which MCP server reaches Slicer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BridgeCommand {
    /// This program's own bridge, to the Web Server at this base URL.
    BuiltIn { slicer_url: String },
    /// Any other Slicer MCP server over stdio, for example `mcp-slicer`.
    Command { program: String, args: Vec<String>, env: Vec<(String, String)> },
}

/// How to connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectOptions {
    pub bridge: BridgeCommand,
    /// The program to run as the built-in bridge; `None`: this one.
    pub executable: Option<PathBuf>,
}

impl ConnectOptions {
    /// What is connected to, for people: the Web Server's URL, or the bridge command.
    pub(super) fn label(&self) -> String {
        match &self.bridge {
            BridgeCommand::BuiltIn { slicer_url } => slicer_url.clone(),
            BridgeCommand::Command { program, args, .. } => {
                std::iter::once(program).chain(args).cloned().collect::<Vec<_>>().join(" ")
            }
        }
    }

    fn command(&self) -> Result<Command, SlicerError> {
        let mut command = match &self.bridge {
            BridgeCommand::BuiltIn { slicer_url } => {
                let program = match &self.executable {
                    Some(program) => program.clone(),
                    None => std::env::current_exe().map_err(|error| self.not_started(&error))?,
                };
                let mut command = Command::new(program);
                command.args(["bridge", "--slicer-url", slicer_url]);
                command
            }
            BridgeCommand::Command { program, args, env } => {
                let mut command = Command::new(program);
                command.args(args).envs(env.iter().cloned());
                command
            }
        };
        // The bridge must not outlive us, whatever ends us.
        command.kill_on_drop(true);
        Ok(command)
    }

    fn not_started(&self, why: &dyn std::fmt::Display) -> SlicerError {
        SlicerError::BridgeStart { program: self.label(), why: shorten(&why.to_string()) }
    }
}

type Running = RunningService<RoleClient, ClientConfig>;

/// A running bridge.
pub(super) struct BridgeClient {
    /// `None` when the transport was given (it cannot be made again).
    options: Option<ConnectOptions>,
    running: Mutex<Running>,
}

impl BridgeClient {
    /// Starts the bridge.
    ///
    /// # Errors
    /// [`SlicerError::BridgeStart`] and [`SlicerError::Bridge`].
    pub async fn start(options: ConnectOptions) -> Result<Self, SlicerError> {
        let running = start(&options).await?;
        Ok(Self { options: Some(options), running: Mutex::new(running) })
    }

    /// A bridge at the other end of `transport`.
    ///
    /// # Errors
    /// [`SlicerError::Bridge`].
    pub async fn over<T, E, A>(transport: T) -> Result<Self, SlicerError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        Ok(Self { options: None, running: Mutex::new(serve(transport).await?) })
    }

    /// The connection; a bridge that ended is started again.
    async fn peer(&self) -> Result<Peer<RoleClient>, SlicerError> {
        let mut running = self.running.lock().await;
        if (running.is_closed() || running.is_transport_closed())
            && let Some(options) = &self.options
        {
            tracing::info!("the bridge to Slicer ended and is started again");
            *running = start(options).await?;
        }
        Ok(running.peer().clone())
    }

    /// Calls a tool and waits at most `limit` for its result.
    async fn call(&self, tool: &'static str, arguments: Value, limit: Duration) -> Result<CallToolResult, SlicerError> {
        let peer = self.peer().await?;
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        match tokio::time::timeout(limit, peer.call_tool(params)).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(ServiceError::McpError(error))) => Err(SlicerError::Bridge { why: shorten(&error.message) }),
            Ok(Err(error)) => Err(SlicerError::Bridge { why: shorten(&error.to_string()) }),
            Err(_) => {
                Err(SlicerError::Busy { what: format!("it did not answer within {} s", limit.as_secs_f64().round()) })
            }
        }
    }

    /// Runs Python in Slicer; gives what it left in `__execResult`.
    ///
    /// # Errors
    /// Any [`SlicerError`]; an exception of the code is [`SlicerError::Answer`].
    pub async fn execute(&self, code: &str, limit: Duration) -> Result<Value, SlicerError> {
        let result = self.call("execute_python_code", serde_json::json!({"code": code}), limit).await?;
        let mut reply = json_of(&result)?;
        if reply["success"] == true {
            return Ok(reply["message"].take());
        }
        let said = reply["message"].as_str().or(reply["error"].as_str());
        Err(SlicerError::from_text(said.unwrap_or("a failure without a word")))
    }

    /// Takes a picture.
    ///
    /// # Errors
    /// Any [`SlicerError`].
    pub async fn screenshot(&self, view: &ViewRequest, limit: Duration) -> Result<Screenshot, SlicerError> {
        let arguments = serde_json::to_value(view).map_err(|error| SlicerError::Answer { said: error.to_string() })?;
        let result = self.call("capture_screenshot", arguments, limit).await?;
        let Some(image) = result.content.iter().find_map(|block| block.as_image()) else {
            return Err(SlicerError::from_text(&text_of(&result)));
        };
        let bytes = BASE64
            .decode(image.data.trim())
            .map_err(|error| SlicerError::Answer { said: format!("the picture cannot be read: {error}") })?;
        Ok(Screenshot { mime: image.mime_type.clone(), bytes })
    }
}

async fn start(options: &ConnectOptions) -> Result<Running, SlicerError> {
    // What the bridge logs is not for the person's terminal.
    let (transport, _) = TokioChildProcess::builder(options.command()?)
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| options.not_started(&error))?;
    match serve(transport).await {
        Err(SlicerError::Bridge { why }) => Err(options.not_started(&why)),
        other => other,
    }
}

async fn serve<T, E, A>(transport: T) -> Result<Running, SlicerError>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let mut info = ClientConfig::default();
    info.client_info = Implementation::new("slicer-ai-agent", env!("CARGO_PKG_VERSION"));
    // Every server in the field knows the handshake; probing for the newer way costs a start-up delay with some.
    let served = info.serve_with_lifecycle(transport, ClientLifecycleMode::Initialize);
    match tokio::time::timeout(START_LIMIT, served).await {
        Ok(Ok(running)) => Ok(running),
        Ok(Err(error)) => Err(SlicerError::Bridge { why: shorten(&error.to_string()) }),
        Err(_) => Err(SlicerError::Bridge { why: "it does not answer as an MCP server".into() }),
    }
}

/// The result as JSON: from its text, or from its structured content when the text is not JSON.
fn json_of(result: &CallToolResult) -> Result<Value, SlicerError> {
    let text = text_of(result);
    if let Ok(value @ Value::Object(_)) = serde_json::from_str(&text) {
        return Ok(value);
    }
    match &result.structured_content {
        Some(value @ Value::Object(_)) => Ok(value.clone()),
        _ => Err(SlicerError::from_text(&text)),
    }
}

fn text_of(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|block| block.as_text()).map(|text| text.text.as_str()).collect()
}
