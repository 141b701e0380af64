//! `launch`: starts the installed Slicer with its Web Server on, and lists the Slicers of this computer.
//!
//! The Slicer goes on when the command has ended: it belongs to the person.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::console::{self, Console};
use super::{Failure, Outcome, block_on, exit, session};
use crate::slicer::launch::{self, LaunchError, LaunchOptions};
use crate::slicer::{FoundSlicers, InstalledSlicer, RunningSlicer, SlicerOrigin, discover};
use crate::store::Paths;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  slicer-ai-agent launch\n  slicer-ai-agent launch --list --json")]
pub struct Arguments {
    /// Executable, folder or app of the Slicer to start (default: from the settings, else the newest found)
    #[arg(long, value_name = "PATH")]
    slicer: Option<PathBuf>,
    /// Longest wait in seconds until it answers
    #[arg(long, value_name = "S", default_value_t = launch::LAUNCH_LIMIT.as_secs())]
    timeout: u64,
    /// Start nothing; list the Slicers that are installed and that run
    #[arg(long, conflicts_with = "timeout")]
    list: bool,
    /// {url, pid, version}, or with --list {running, held, installed}, as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, paths: &Paths, console: Console) -> Outcome {
    let named = match &arguments.slicer {
        Some(path) => Some(path.clone()),
        None => Some(session::settings(paths, console)?.slicer.executable)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from),
    };
    if arguments.list { list(arguments, named, paths) } else { start(arguments, named, paths, console) }
}

fn start(arguments: &Arguments, named: Option<PathBuf>, paths: &Paths, console: Console) -> Outcome {
    let options = LaunchOptions {
        executable: named,
        limit: Duration::from_secs(arguments.timeout),
        data_folder: paths.data().to_owned(),
        logs: paths.logs(),
        ports: None,
    };
    block_on(async {
        let cancel = CancellationToken::new();
        let stopped = cancel.clone();
        let interrupt = tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                stopped.cancel();
            }
        });
        let launched = launch::launch(&options, &|line| console.progress(line), &cancel).await;
        interrupt.abort();
        let slicer = launched.map_err(|error| failed(&error))?;
        if arguments.json {
            console::print_json(&json!({"url": slicer.url, "pid": slicer.pid, "version": slicer.version}))?;
        } else {
            console::print_text(&format!(
                "Slicer {} answers at {} (process {}).",
                slicer.version, slicer.url, slicer.pid
            ))?;
        }
        Ok(exit::DONE)
    })
}

fn failed(error: &LaunchError) -> Failure {
    let code = if error.kind() == "NoSlicer" { exit::NO_CONNECTION } else { exit::FAILED };
    let advice = match error {
        LaunchError::NotFound => {
            "Install it from download.slicer.org, name its executable with --slicer PATH, or start the practice Slicer: \
             slicer-ai-agent practice."
                .to_owned()
        }
        other => other.advice(),
    };
    Failure::new(code, error.kind(), error.to_string(), advice)
}

fn list(arguments: &Arguments, named: Option<PathBuf>, paths: &Paths) -> Outcome {
    block_on(async {
        let found = discover::find(paths.data(), named.as_deref()).await.map_err(|error| anyhow::anyhow!(error))?;
        if arguments.json {
            console::print_json(&found)?
        } else {
            console::print_text(&in_words(&found))?
        }
        Ok(exit::DONE)
    })
}

fn in_words(found: &FoundSlicers) -> String {
    let mut lines = vec!["Running:".to_owned()];
    lines.extend(found.running.iter().map(|one| format!("  {}", running(one))));
    for one in &found.held {
        let who = match (&one.program, one.pid) {
            (Some(program), Some(pid)) => format!(" ({program}, process {pid})"),
            _ => String::new(),
        };
        lines.push(format!("  port {}{who}: {}", one.port, one.detail));
    }
    if lines.len() == 1 {
        lines.push("  none with its Web Server on".into());
    }
    lines.push("Installed:".into());
    lines.extend(found.installed.iter().map(|one| format!("  {}", installed(one))));
    if found.installed.is_empty() {
        lines.push("  none found; install it from download.slicer.org, or name it with --slicer PATH".into());
    }
    lines.join("\n")
}

/// One line about a running Slicer.
pub fn running(slicer: &RunningSlicer) -> String {
    let kind = if slicer.practice { "practice Slicer" } else { "Slicer" };
    let mut text = format!("{kind} {} at {}", slicer.version.trim_end_matches("-practice"), slicer.url);
    if let Some(pid) = slicer.pid {
        text.push_str(&format!(", process {pid}"));
    }
    if let Some(scene) = &slicer.scene {
        text.push_str(&format!(", scene “{scene}”"));
    }
    match slicer.exec {
        Some(true) => {}
        Some(false) => text.push_str(", takes no code (tick “Slicer API exec” in its Web Server module)"),
        None => text.push_str(", busy"),
    }
    if slicer.loopback == Some(false) {
        text.push_str(", open to the whole network without a password");
    }
    text
}

/// One line about an installed Slicer.
pub fn installed(slicer: &InstalledSlicer) -> String {
    let version = slicer.version.as_deref().unwrap_or("of unknown version");
    let how = match slicer.origin {
        SlicerOrigin::Setting => ", chosen",
        SlicerOrigin::Path => ", in PATH",
        SlicerOrigin::Folder => "",
        SlicerOrigin::Process => ", running",
    };
    format!("Slicer {version} at {}{how}", slicer.executable.display())
}
