//! `bridge`: the MCP server over stdio. It starts on one thread and loads nothing that it does not need.

use std::time::Duration;

use clap::Args;

use super::{Failure, Outcome, exit};
use crate::bridge::{self, BridgeOptions};

#[derive(Debug, Args)]
#[command(
    after_help = "Example, for any MCP client:\n  command: slicer-ai-agent\n  args: [\"bridge\", \"--slicer-url\", \"http://127.0.0.1:2016/slicer\"]"
)]
pub struct Arguments {
    /// Base URL of Slicer's Web Server
    #[arg(long, value_name = "URL", env = "SLICER_URL", default_value = bridge::DEFAULT_URL)]
    slicer_url: String,
    /// Longest wait for a reply of Slicer in seconds
    #[arg(long, value_name = "S")]
    timeout: Option<f64>,
    /// Let calls wait until Slicer is there
    #[arg(long)]
    wait: bool,
    /// Refuse what changes the scene
    #[arg(long)]
    read_only: bool,
}

/// Runs the command until its client is gone.
pub fn run(arguments: &Arguments) -> Outcome {
    let timeout = match arguments.timeout.map(Duration::try_from_secs_f64) {
        None => None,
        Some(Ok(timeout)) if !timeout.is_zero() => Some(timeout),
        Some(_) => {
            return Err(Failure::new(exit::USAGE, "BadRequest", "--timeout must be a number of seconds above 0.", ""));
        }
    };
    let options = BridgeOptions {
        slicer_url: arguments.slicer_url.clone(),
        timeout,
        wait: arguments.wait,
        read_only: arguments.read_only,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(exit::FAILED, "Failed", error.to_string(), ""))?;
    let served = runtime.block_on(bridge::serve_stdio(options));
    // A reader of stdin cannot be interrupted; the process must not wait for it.
    runtime.shutdown_background();
    served.map_err(|error| Failure::new(exit::FAILED, "Failed", error.to_string(), ""))?;
    Ok(exit::DONE)
}
