//! `bridge`: the MCP server over stdio or HTTP. It starts on one thread and loads nothing that it does not need.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::print_config::{self, Wanted};
use super::{Failure, Outcome, exit};
use crate::bridge::{self, BridgeError, BridgeOptions, HttpBridge, HttpError, HttpOptions, Token};
use crate::platform;

/// By then a client has said who it is and has the list of tools.
const HANDSHAKE: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  slicer-ai-agent bridge --print-config claude-desktop          what to paste into a client
  slicer-ai-agent bridge --http 127.0.0.1:8016 --token-file F   several clients at once")]
pub struct Arguments {
    /// Base URL of Slicer's Web Server [default: http://127.0.0.1:2016/slicer]
    #[arg(long, value_name = "URL", env = "SLICER_URL")]
    slicer_url: Option<String>,
    /// Longest wait for a reply of Slicer in seconds
    #[arg(long, value_name = "S")]
    timeout: Option<f64>,
    /// Let calls wait until Slicer is there
    #[arg(long)]
    wait: bool,
    /// Refuse what changes the scene
    #[arg(long)]
    read_only: bool,
    /// Serve several clients over streamable HTTP on this machine, at http://ADDRESS/mcp; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    http: Option<String>,
    /// File with the token that clients have to show; made with a fresh one when it does not exist
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Print the entry for an MCP client instead of serving; without a name, the names that are known
    #[arg(long, value_name = "CLIENT", num_args = 0..=1, default_missing_value = "list")]
    print_config: Option<String>,
}

/// Runs the command until its client is gone or it is told to end.
pub fn run(arguments: &Arguments) -> Outcome {
    let timeout = match arguments.timeout.map(Duration::try_from_secs_f64) {
        None => None,
        Some(Ok(timeout)) if !timeout.is_zero() => Some(timeout),
        Some(_) => return Err(usage("--timeout must be a number of seconds above 0.")),
    };
    let listen =
        arguments.http.as_deref().map(bridge::listen_address).transpose().map_err(|error| failure(error.into()))?;
    if let Some(client) = &arguments.print_config {
        return print_config::run(client, &wanted(arguments)?);
    }
    let options = BridgeOptions {
        slicer_url: arguments.slicer_url.clone().unwrap_or_else(|| bridge::DEFAULT_URL.to_owned()),
        timeout,
        wait: arguments.wait,
        read_only: arguments.read_only,
    };
    let http = match (listen, &arguments.token_file) {
        (None, None) => None,
        (Some(listen), Some(file)) => {
            let (token, fresh) = Token::from_file(file)
                .map_err(|error| Failure::new(exit::FAILED, "Failed", sentence(&error.to_string()), ""))?;
            if fresh {
                eprintln!("A fresh token is in {}. Only you can read it.", file.display());
            }
            Some(HttpOptions { listen, token })
        }
        (Some(_), None) => {
            return Err(usage(
                "--http needs --token-file FILE: without a token, any program or web page on this machine could drive \
                 Slicer. The file is made when it does not exist.",
            ));
        }
        (None, Some(_)) => return Err(usage("--token-file is for --http ADDRESS:PORT; over stdio there is no token.")),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(exit::FAILED, "Failed", error.to_string(), ""))?;
    // From here on it only passes messages on, often for days; the handshake is over soon, too.
    platform::forget_start();
    runtime.spawn(async {
        tokio::time::sleep(HANDSHAKE).await;
        platform::forget_start();
    });
    let served = match http {
        None => runtime.block_on(bridge::serve_stdio(options)),
        Some(http) => runtime.block_on(serve_http(options, http)),
    };
    // A reader of stdin cannot be interrupted; the process must not wait for it.
    runtime.shutdown_background();
    served.map_err(failure)?;
    Ok(exit::DONE)
}

async fn serve_http(options: BridgeOptions, http: HttpOptions) -> Result<(), BridgeError> {
    let stop = CancellationToken::new();
    let told = stop.clone();
    let asked_to_end = asked_to_end().map_err(|error| BridgeError::Ended(error.to_string()))?;
    tokio::spawn(async move {
        asked_to_end.await;
        told.cancel();
    });
    let bridge = HttpBridge::bind(&options, http).await?;
    eprintln!("MCP on {}", bridge.url());
    bridge.serve(stop).await
}

/// Ends when the system or the person asks the process to end. A second request ends it at once.
#[cfg(unix)]
fn asked_to_end() -> std::io::Result<impl Future<Output = ()> + Send> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            std::process::exit(i32::from(exit::DONE));
        });
    })
}

/// Ends when the person asks the process to end.
#[cfg(not(unix))]
fn asked_to_end() -> std::io::Result<impl Future<Output = ()> + Send> {
    Ok(async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::warn!(%error, "Ctrl+C cannot be listened to; end the process from outside");
            std::future::pending::<()>().await;
        }
    })
}

/// What an entry for a client has to pass on.
fn wanted(arguments: &Arguments) -> Result<Wanted, Failure> {
    let mut given = Vec::new();
    if let Some(url) = &arguments.slicer_url {
        given.extend(["--slicer-url".to_owned(), url.clone()]);
    }
    if let Some(timeout) = arguments.timeout {
        given.extend(["--timeout".to_owned(), timeout.to_string()]);
    }
    for (flag, set) in [("--wait", arguments.wait), ("--read-only", arguments.read_only)] {
        if set {
            given.push(flag.to_owned());
        }
    }
    // The command that is shown has to work from any folder.
    let token_file = arguments.token_file.as_deref().map(std::path::absolute).transpose();
    let token_file = token_file.map_err(|error| usage(&format!("--token-file is no path: {error}.")))?;
    Ok(Wanted { arguments: given, timeout: arguments.timeout, http: arguments.http.clone(), token_file })
}

fn usage(message: &str) -> Failure {
    Failure::new(exit::USAGE, "BadRequest", message, "")
}

/// A bridge that cannot start: wrong usage when the address is at fault, a failure otherwise.
fn failure(error: BridgeError) -> Failure {
    let code = match &error {
        BridgeError::Http(HttpError::NotAnAddress { .. } | HttpError::NotLoopback { .. }) => exit::USAGE,
        _ => exit::FAILED,
    };
    Failure::new(code, if code == exit::USAGE { "BadRequest" } else { "Failed" }, sentence(&error.to_string()), "")
}

/// A text that begins as a sentence does.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
