//! `index`: adds folders to the knowledge, and brings what is there up to date.

use std::path::PathBuf;

use clap::Args;

use super::console::Console;
use super::{Failure, Outcome, console, exit};
use crate::knowledge::{Library, NewSource};
use crate::store::Paths;

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  slicer-ai-agent index --source ~/Slicer --source ~/SlicerMyExtension\n\nWithout --source the known folders are refreshed. Only what changed is read."
)]
pub struct Arguments {
    /// Folder to add: a Slicer source tree, an extension, any folder with Python, C++ headers or markdown
    #[arg(long, value_name = "DIR")]
    source: Vec<PathBuf>,
    /// Kind of everything in these folders, for example extension or forum (default: told by the path of each file)
    #[arg(long, requires = "source")]
    kind: Option<String>,
    /// Read every file again
    #[arg(long)]
    rebuild: bool,
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, paths: &Paths, console: Console) -> Outcome {
    let missing = arguments.source.iter().find(|folder| !folder.is_dir());
    if let Some(folder) = missing {
        let message = format!("{} is not a folder.", folder.display());
        return Err(Failure::new(exit::USAGE, "Usage", message, "Name the folder that holds the sources."));
    }
    let sources: Vec<NewSource> =
        arguments.source.iter().map(|root| NewSource { root: root.clone(), kind: arguments.kind.clone() }).collect();
    let mut told = 0;
    let mut progress = |done: usize, all: usize| {
        if done >= told + 500 {
            told = done;
            console.progress(&format!("{done} of {all} files"));
        }
    };
    let report = Library::refresh(paths.data(), &sources, arguments.rebuild, &mut progress)
        .map_err(|error| anyhow::anyhow!(error))?;
    let bytes = std::fs::metadata(Library::file(paths.data())).map_or(0, |data| data.len());
    if arguments.json {
        let mut value = serde_json::to_value(&report).map_err(|error| anyhow::anyhow!(error))?;
        value["bytes"] = bytes.into();
        console::print_json(&value)?;
    } else {
        let [controls, labelled, linked] = report.controls;
        console::print_text(&format!(
            "{} files, {} passages, {controls} controls ({labelled} with a label, {linked} linked to an API); \
             {} files read, {} removed; {:.1} s, {:.1} MB",
            report.files,
            report.chunks,
            report.changed,
            report.removed,
            report.seconds,
            bytes as f64 / 1e6
        ))?;
    }
    Ok(exit::DONE)
}
