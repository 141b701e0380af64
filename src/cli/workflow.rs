//! `workflow`: guided workflows without the window: what there is, whether a package is sound, and a run with answers
//! from a file.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::console::{self, Console};
use super::session::{self, SlicerArguments};
use super::{Failure, Outcome, exit, practice as practice_command, runtime};
use crate::engine::SlicerTarget;
use crate::slicer::practice::{self, PracticeOptions, PracticeProcess};
use crate::slicer::{BridgeCommand, ConnectOptions, Slicer};
use crate::store::Paths;
use crate::workflow::{self, Answers, Found, Journal, LoadError, Origin, Package, RunError, Runner, State, Step};

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  slicer-ai-agent workflow list\n  slicer-ai-agent workflow run ThresholdSegmentation --practice --answers answers.json"
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The workflows that are installed, and why others are not loaded
    #[command(after_help = "Example:\n  slicer-ai-agent workflow list --json")]
    List {
        #[arg(long)]
        json: bool,
    },
    /// The steps of a workflow
    #[command(after_help = "Example:\n  slicer-ai-agent workflow show ThresholdSegmentation")]
    Show {
        /// Id of the workflow
        id: String,
        #[arg(long)]
        json: bool,
    },
    /// Everything that is wrong with the package in a folder
    #[command(after_help = "Example:\n  slicer-ai-agent workflow validate my-workflow")]
    Validate {
        /// Folder of the package
        folder: PathBuf,
        #[arg(long)]
        json: bool,
    },
    /// Run a workflow to its end, with answers from a file
    Run(RunArguments),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  slicer-ai-agent workflow run ThresholdSegmentation --practice --answers answers.json\n\nThe file holds the answers by step, for example\n  {\"answers\": {\"data\": \"Sample data\", \"thresholds\": [250, 3000], \"right\": \"Yes\"}}\nPoints of an interactive step are {\"points\": [[right, anterior, superior], …]} in mm. A choice with a default needs no answer.\nDifferent answers for each visit of a step: {\"each\": [first, second]}."
)]
struct RunArguments {
    /// Id of the workflow
    id: String,
    /// JSON file with the answers
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    /// Go on with the last run of this workflow that was interrupted
    #[arg(long)]
    resume: bool,
    /// With --resume: let a step that failed run again
    #[arg(long, requires = "resume", conflicts_with = "skip")]
    retry: bool,
    /// With --resume: leave a step out that failed
    #[arg(long, requires = "resume")]
    skip: bool,
    #[command(flatten)]
    slicer: SlicerArguments,
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, paths: &Paths, console: Console) -> Outcome {
    match &arguments.command {
        Command::List { json } => list(paths, *json),
        Command::Show { id, json } => show(paths, id, *json),
        Command::Validate { folder, json } => validate(folder, *json),
        Command::Run(arguments) => run_one(arguments, paths, console),
    }
}

fn list(paths: &Paths, as_json: bool) -> Outcome {
    let found = workflow::installed(paths.data());
    if as_json {
        let entries: Vec<Value> = found.iter().map(entry).collect();
        console::print_json(&json!({"workflows": entries}))?;
        return Ok(exit::DONE);
    }
    for one in &found {
        match &one.package {
            Ok(package) => {
                let manifest = &package.manifest;
                let steps = package.workflow.steps.len();
                console::print_text(&format!(
                    "{}  {} ({steps} steps)\n    {}",
                    one.id, manifest.title, manifest.when_to_use
                ))?;
            }
            Err(errors) => console::print_text(&format!("{}  not loaded\n{}", one.id, error_lines(errors)))?,
        }
    }
    Ok(exit::DONE)
}

fn entry(found: &Found) -> Value {
    let origin = match &found.origin {
        Origin::BuiltIn => json!("built-in"),
        Origin::Folder(folder) => json!(folder.display().to_string()),
    };
    match &found.package {
        Ok(package) => {
            let manifest = &package.manifest;
            json!({
                "id": found.id, "origin": origin, "loaded": true, "title": manifest.title, "module": manifest.module,
                "when_to_use": manifest.when_to_use, "status": manifest.status, "steps": manifest.steps,
                "needs": manifest.needs, "errors": [],
            })
        }
        Err(errors) => json!({"id": found.id, "origin": origin, "loaded": false, "errors": errors}),
    }
}

fn show(paths: &Paths, id: &str, as_json: bool) -> Outcome {
    let package = package(paths, id)?;
    if as_json {
        console::print_json(&json!({"manifest": package.manifest, "workflow": package.workflow}))?;
        return Ok(exit::DONE);
    }
    let manifest = &package.manifest;
    let mut lines = vec![manifest.title.clone(), manifest.when_to_use.clone(), String::new()];
    lines.extend(package.workflow.steps.iter().enumerate().map(|(index, step)| step_line(index + 1, step)));
    console::print_text(&lines.join("\n"))?;
    Ok(exit::DONE)
}

fn step_line(number: usize, step: &Step) -> String {
    let ways: Vec<String> = step.options.iter().map(|option| format!("{} → {}", option.text, option.next)).collect();
    let ways = if ways.is_empty() { String::new() } else { format!(" [{}]", ways.join(", ")) };
    format!("{number:>3}. {} ({:?}, {}){ways}\n     {}", step.title, step.kind, step.id, step.brief)
}

fn validate(folder: &Path, as_json: bool) -> Outcome {
    let loaded = Package::load(folder);
    let (id, errors) = match &loaded {
        Ok(package) => (Some(package.manifest.id.as_str()), &[][..]),
        Err(errors) => (None, errors.as_slice()),
    };
    if as_json {
        console::print_json(&json!({"ok": loaded.is_ok(), "id": id, "errors": errors}))?;
    } else if let Some(id) = id {
        console::print_text(&format!("{id} is sound."))?;
    } else {
        console::print_text(&error_lines(errors))?;
    }
    Ok(if loaded.is_ok() { exit::DONE } else { exit::FAILED })
}

fn error_lines(errors: &[LoadError]) -> String {
    errors.iter().map(|error| format!("    {error}")).collect::<Vec<_>>().join("\n")
}

fn package(paths: &Paths, id: &str) -> Result<Package, Failure> {
    let Some(found) = workflow::find(paths.data(), id) else {
        let message = format!("There is no workflow \"{id}\".");
        return Err(Failure::new(exit::USAGE, "BadRequest", message, "See `slicer-ai-agent workflow list`."));
    };
    found.package.map_err(|errors| {
        let message = format!("The workflow {} is not loaded:\n{}", found.id, error_lines(&errors));
        Failure::new(exit::FAILED, "PackageRefused", message, "")
    })
}

fn run_one(arguments: &RunArguments, paths: &Paths, console: Console) -> Outcome {
    let package = package(paths, &arguments.id)?;
    let answers = arguments.answers.as_deref().map_or_else(|| Ok(Answers::default()), read_answers)?;
    let settings = session::settings(paths, console)?;
    let (url, process) = match arguments.slicer.target(&settings) {
        SlicerTarget::Url(url) => (url, None),
        SlicerTarget::Practice | SlicerTarget::None => {
            let process = start_practice(paths, console)?;
            (process.url.clone(), Some(process))
        }
    };
    let ran = runtime()?.block_on(drive(arguments, package, paths, &url, &answers, console));
    drop(process);
    let (journal, report) = ran?;
    let report = match report {
        Ok(report) => report,
        Err(error) => return Err(failure(&error, &journal)),
    };
    if arguments.json {
        console::print_json(&json!({
            "ok": true, "id": arguments.id, "steps": report.steps, "values": report.values, "said": report.said,
            "touched": report.touched, "journal": journal,
        }))?;
    } else {
        let values = serde_json::to_string_pretty(&report.values).map_err(|error| anyhow::anyhow!(error))?;
        console::print_text(&format!("Done: {} steps.\n{values}", report.steps.len()))?;
    }
    Ok(exit::DONE)
}

type Ran = (PathBuf, Result<workflow::RunReport, RunError>);

async fn drive(
    arguments: &RunArguments,
    package: Package,
    paths: &Paths,
    url: &str,
    answers: &Answers,
    console: Console,
) -> Result<Ran, Failure> {
    let options = ConnectOptions { bridge: BridgeCommand::BuiltIn { slicer_url: url.to_owned() }, executable: None };
    let slicer = Slicer::connect(options).await.map_err(|error| failure(&error.into(), Path::new("")))?;
    let folder = paths.data().join("workflow-runs");
    let told = move |line: &str| console.progress(line);
    let no_journal = |error: workflow::JournalError| failure(&error.into(), &folder);
    if !arguments.resume {
        let journal = Journal::create(&folder, &package).map_err(no_journal)?;
        let path = journal.path().to_owned();
        let mut runner = Runner::new(slicer, package, Some(journal), told);
        return Ok((path, runner.run(answers).await));
    }
    let same = |id: &str| (id == package.manifest.id).then(|| package.clone());
    let Some((path, ..)) = Journal::unfinished(&folder, same).pop() else {
        let message = format!("No run of {} was interrupted.", arguments.id);
        return Err(Failure::new(exit::FAILED, "NothingToResume", message, "Start it without --resume."));
    };
    let (journal, state) = Journal::open(&path, &package).map_err(no_journal)?;
    let mut runner = Runner::new(slicer, package, Some(journal), told);
    Ok((path, go_on(&mut runner, state, arguments, answers).await))
}

async fn go_on(
    runner: &mut Runner,
    state: State,
    arguments: &RunArguments,
    answers: &Answers,
) -> Result<workflow::RunReport, RunError> {
    runner.resume(state).await?;
    if arguments.retry || arguments.skip {
        runner.after_failure(arguments.skip).await?;
    }
    runner.run(answers).await
}

fn read_answers(file: &Path) -> Result<Answers, Failure> {
    let wrong = |why: String| {
        let message = format!("{} cannot be used: {why}.", file.display());
        Failure::new(exit::USAGE, "BadRequest", message, "See `slicer-ai-agent workflow run --help`.")
    };
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
}

fn start_practice(paths: &Paths, console: Console) -> Result<PracticeProcess, Failure> {
    let home = practice::set_up(&paths.practice(), &|line| console.progress(line)).map_err(practice_command::failed)?;
    practice::start(&home, &PracticeOptions::default()).map_err(practice_command::failed)
}

fn failure(error: &RunError, journal: &Path) -> Failure {
    let (code, kind, advice) = match error {
        RunError::Slicer(error) if matches!(error.kind(), "NoSlicer" | "ExecOff") => {
            (exit::NO_CONNECTION, error.kind(), error.advice().to_owned())
        }
        RunError::Slicer(error) => (exit::FAILED, error.kind(), error.advice().to_owned()),
        RunError::Needs { .. } => (exit::FAILED, "Needs", String::new()),
        RunError::Journal(_) => (exit::FAILED, "Journal", String::new()),
        RunError::NoAnswer { .. } => (exit::USAGE, "NoAnswer", String::new()),
        RunError::BadAnswer { .. } => (exit::USAGE, "BadAnswer", String::new()),
        RunError::StepFailed { .. } => (
            exit::FAILED,
            "StepFailed",
            format!("The run is kept in {}; --resume --retry goes on with it.", journal.display()),
        ),
    };
    Failure::new(code, kind, error.to_string(), advice)
}
