//! `practice`: the practice Slicer by itself, for people without Slicer at hand, for tests and for other MCP clients.

use clap::Args;
use serde_json::json;

use super::console::{self, Console};
use super::{Failure, Outcome, exit, runtime};
use crate::bridge::WebServer;
use crate::slicer::practice::{self, PracticeError, PracticeOptions};
use crate::store::Paths;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  slicer-ai-agent practice --port 2016")]
pub struct Arguments {
    /// Port on 127.0.0.1 (default: a free one)
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Only download and install what it needs
    #[arg(long)]
    setup_only: bool,
    /// Without the sample data
    #[arg(long)]
    no_data: bool,
    /// Answer as a Slicer whose "Slicer API exec" box is not ticked
    #[arg(long)]
    no_exec: bool,
    /// {url, pid, version} as JSON instead of the ready line
    #[arg(long)]
    json: bool,
}

/// What the person must know of it.
const BANNER: &str = "This is the practice Slicer: Slicer's real scene, logics and views, with synthetic data and without the application's \
panels. It has no command-line modules, no DICOM database, no painting in the Segment Editor and no extensions.";

/// Runs the command until the practice Slicer ends.
pub fn run(arguments: &Arguments, paths: &Paths, console: Console) -> Outcome {
    let home = practice::set_up(&paths.practice(), &|line| console.progress(line)).map_err(failed)?;
    if arguments.setup_only {
        console.progress("The practice Slicer is ready to be started.");
        if arguments.json {
            console::print_json(&json!({"url": null, "pid": null, "version": null}))?;
        }
        return Ok(exit::DONE);
    }
    let options = PracticeOptions { port: arguments.port, no_data: arguments.no_data, no_exec: arguments.no_exec };
    let mut process = practice::start(&home, &options).map_err(failed)?;
    console.progress(BANNER);
    if arguments.json {
        let version = version(&process.url)?;
        console::print_json(&json!({"url": process.url, "pid": process.pid, "version": version}))?;
    } else {
        let address = process.url.trim_start_matches("http://").trim_end_matches("/slicer");
        console::print_text(&format!("ready on {address}"))?;
    }
    match process.wait() {
        Ok(Some(0)) => Ok(exit::DONE),
        Ok(code) => {
            let code = code.map_or_else(|| "by a signal".to_owned(), |code| format!("with exit code {code}"));
            Err(Failure::new(
                exit::FAILED,
                "SlicerEnded",
                format!("The practice Slicer ended {code}."),
                "Start it again.",
            ))
        }
        Err(error) => Err(Failure::new(exit::FAILED, "SlicerEnded", error.to_string(), "")),
    }
}

fn version(url: &str) -> Result<serde_json::Value, Failure> {
    let asked = runtime()?.block_on(async {
        WebServer::new(url, None)?.exec("__execResult = slicer.app.applicationVersion", None).await
    });
    asked.map_err(|error| Failure::new(exit::NO_CONNECTION, "NoSlicer", error.to_string(), ""))
}

/// A failure of the practice Slicer as the command's own.
pub fn failed(error: PracticeError) -> Failure {
    Failure::new(exit::NO_CONNECTION, "NoSlicer", error.to_string(), "")
}
