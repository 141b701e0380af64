//! `demo`: the main job on the practice Slicer with the built-in recipes, in the window or without one.

use clap::Args;
use serde::Serialize;

use super::console::{self, Console};
use super::session::{self, Session};
use super::{Outcome, block_on, exit, window};
use crate::engine::{EngineOptions, Settings, SlicerTarget, TurnRecord};
use crate::platform;
use crate::store::Paths;

/// The three requests of the demonstration.
pub const REQUESTS: [&str; 3] =
    ["Load the sample chest CT", "Segment the bone and show it in 3D", "How large is the bone segment in ml?"];

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  slicer-ai-agent demo\n  slicer-ai-agent demo --headless --json")]
pub struct Arguments {
    /// Without a window: print the turns and save the screenshot (this is also what happens where there is no display)
    #[arg(long)]
    headless: bool,
    /// One JSON object on stdout (headless)
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    turns: Vec<TurnRecord>,
    screenshot: Option<String>,
    slicer: SlicerReport,
}

#[derive(Serialize)]
struct SlicerReport {
    version: String,
    url: String,
}

/// Settings of the demonstration: the person's look, the built-in recipes.
fn demo_settings(paths: &Paths, console: Console) -> Result<Settings, super::Failure> {
    let own = session::settings(paths, console)?;
    Ok(Settings { appearance: own.appearance, ..Settings::default() })
}

/// Runs the command.
pub fn run(arguments: &Arguments, paths: &Paths, console: Console) -> Outcome {
    let headless = arguments.headless || arguments.json || !platform::has_display();
    if !headless {
        return in_window(paths, console);
    }
    if !arguments.headless && !arguments.json {
        console.progress("There is no display, so the demonstration runs without the window.");
    }
    without_window(arguments.json, paths, console)
}

fn options(paths: &Paths, console: Console) -> Result<EngineOptions, super::Failure> {
    Ok(session::options(paths, demo_settings(paths, console)?, SlicerTarget::Practice))
}

fn in_window(paths: &Paths, console: Console) -> Outcome {
    let requests = REQUESTS.iter().map(|text| (*text).to_owned()).collect();
    window::open_with(options(paths, console)?, requests, console)
}

fn without_window(json: bool, paths: &Paths, console: Console) -> Outcome {
    let options = options(paths, console)?;
    block_on(async {
        let mut session = Session::start(options, console, false)?;
        let status = session.slicer_status().await?;
        let conversation = session.open(None).await?;
        let mut report = Report {
            turns: Vec::new(),
            screenshot: None,
            slicer: SlicerReport { version: status.version, url: status.url },
        };
        for request in REQUESTS {
            if !json {
                console::print_text(&format!("\n› {request}"))?;
            }
            let record = session.turn(&conversation, request).await?;
            if !json {
                console::print_text(&session::turn_text(&record))?;
            }
            let code = session::exit_code(&record);
            report.screenshot = record.screenshots.last().cloned().or(report.screenshot);
            report.turns.push(record);
            if code != exit::DONE {
                break;
            }
        }
        session.close().await;
        let code = report.turns.last().map_or(exit::FAILED, session::exit_code);
        if json {
            console::print_json(&report)?;
        } else if let Some(path) = &report.screenshot {
            console::print_text(&format!("\nScreenshot: {path}"))?;
        }
        Ok(code)
    })
}
