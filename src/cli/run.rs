//! `run`: one piece of Python through all three rings: verdict, guarded run, restore when it fails.

use clap::Args;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::console::{self, Console};
use super::session::{self, PermissionArguments, SlicerArguments};
use super::{Failure, Outcome, exit, practice as practice_command, runtime, validate};
use crate::engine::{Decision, SlicerTarget};
use crate::safety::{self, Policy, Verdict, VerdictKind};
use crate::slicer::practice::{self, PracticeOptions, PracticeProcess};
use crate::slicer::{
    BridgeCommand, ConnectOptions, DialogNote, RunGrants, RunOutcome, RunRequest, Slicer, SlicerError,
};
use crate::store::Paths;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  slicer-ai-agent run program.py\n  echo 'slicer.mrmlScene.GetNumberOfNodes()' | slicer-ai-agent run - --practice --json"
)]
pub struct Arguments {
    /// A Python file, or - for stdin
    file: String,
    /// Time limit of the run in seconds
    #[arg(long, value_name = "S", default_value_t = 30.0)]
    timeout: f64,
    #[command(flatten)]
    slicer: SlicerArguments,
    #[command(flatten)]
    permission: PermissionArguments,
    /// The whole result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, paths: &Paths, console: Console) -> Outcome {
    let limit = arguments.timeout;
    if !limit.is_finite() || !(0.001..=86_400.0).contains(&limit) {
        let message = "--timeout must be a number of seconds from 0.001 to 86400.";
        return Err(Failure::new(exit::USAGE, "BadRequest", message, ""));
    }
    let bytes = validate::read(&arguments.file)?;
    let mut policy = Policy::default();
    for capability in arguments.permission.capabilities()? {
        policy.allow(capability);
    }
    let verdict = safety::validate_bytes(&bytes, &policy);
    // What is not UTF-8 was blocked by the verdict, so nothing is lost here.
    let code = String::from_utf8_lossy(&bytes).into_owned();
    if !may_run(&verdict, arguments.permission.yes) {
        return refused(&verdict, arguments.json);
    }
    let settings = session::settings(paths, console)?;
    let (url, process) = match arguments.slicer.target(&settings) {
        SlicerTarget::Url(url) => (url, None),
        SlicerTarget::Practice | SlicerTarget::None => {
            let process = start_practice(paths, console)?;
            (process.url.clone(), Some(process))
        }
    };
    // Without a question left, everything that was found is allowed, and nothing else is.
    let grants = crate::agent::grants(&verdict.findings, &policy);
    let outcome = runtime()?.block_on(guarded_run(url, code, grants, (limit * 1000.0) as u64));
    drop(process);
    let outcome = outcome.map_err(|error| {
        let code = if matches!(error.kind(), "NoSlicer" | "ExecOff") { exit::NO_CONNECTION } else { exit::FAILED };
        Failure::new(code, error.kind(), error.to_string(), error.advice())
    })?;
    if arguments.json {
        console::print_json(&report(&verdict, Some(&outcome)))?;
    } else {
        console::print_text(&text(&outcome))?;
    }
    Ok(if outcome.ok { exit::DONE } else { exit::FAILED })
}

fn start_practice(paths: &Paths, console: Console) -> Result<PracticeProcess, Failure> {
    let home = practice::set_up(&paths.practice(), &|line| console.progress(line)).map_err(practice_command::failed)?;
    practice::start(&home, &PracticeOptions::default()).map_err(practice_command::failed)
}

fn may_run(verdict: &Verdict, yes: bool) -> bool {
    match verdict.verdict {
        VerdictKind::Allow => true,
        VerdictKind::Ask => yes || console::ask_permission(&verdict.findings) != Decision::Deny,
        VerdictKind::Block => false,
    }
}

fn refused(verdict: &Verdict, json: bool) -> Outcome {
    if json {
        console::print_json(&report(verdict, None))?;
    } else {
        let head = if verdict.verdict == VerdictKind::Block { "Blocked" } else { "Not allowed" };
        console::print_text(&format!("{head}; nothing was run.\n{}", console::findings_text(&verdict.findings)))?;
    }
    Ok(exit::REFUSED)
}

async fn guarded_run(
    url: String,
    code: String,
    grants: Option<RunGrants>,
    timeout_ms: u64,
) -> Result<RunOutcome, SlicerError> {
    let options = ConnectOptions { bridge: BridgeCommand::BuiltIn { slicer_url: url }, executable: None };
    let slicer = Slicer::connect(options).await?;
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let watcher = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    });
    let id = uuid::Uuid::new_v4().simple().to_string();
    let request = RunRequest { id, code, timeout_ms, restore_on_failure: true, grants, ..RunRequest::default() };
    let outcome = slicer.run(request, &cancel).await;
    watcher.abort();
    outcome
}

fn report(verdict: &Verdict, outcome: Option<&RunOutcome>) -> serde_json::Value {
    let empty = RunOutcome::default();
    let outcome_or_empty = outcome.unwrap_or(&empty);
    let error = match outcome {
        Some(outcome) => json!(outcome.error),
        None => {
            json!({"type": "Refused", "message": "The program was not allowed to run.", "line": null, "traceback": ""})
        }
    };
    json!({
        "verdict": verdict.verdict,
        "findings": verdict.findings,
        "ok": outcome.is_some_and(|outcome| outcome.ok),
        "value": outcome_or_empty.value,
        "stdout": outcome_or_empty.stdout,
        "stderr": outcome_or_empty.stderr,
        "vtk": outcome_or_empty.vtk,
        "error": error,
        "duration_ms": outcome_or_empty.duration_ms,
        "diff": outcome_or_empty.diff,
        "restored": outcome_or_empty.restored,
        "touched": outcome_or_empty.touched,
        "refused": outcome_or_empty.refused,
        "dialogs": outcome_or_empty.dialogs,
    })
}

fn text(outcome: &RunOutcome) -> String {
    let mut lines = Vec::new();
    for part in [&outcome.stdout, &outcome.stderr] {
        if !part.trim().is_empty() {
            lines.push(part.trim_end().to_owned());
        }
    }
    lines.extend(outcome.vtk.iter().map(|message| format!("VTK {}: {}", message.kind, message.text.trim())));
    lines.extend(outcome.refused.iter().map(|what| format!("Not allowed here, and stopped: {what}")));
    lines.extend(outcome.dialogs.iter().map(DialogNote::in_words));
    if let Some(error) = &outcome.error {
        lines.push(error.traceback.trim_end().to_owned());
        lines.push(format!("{}: {}", error.kind, error.message));
    }
    if !outcome.value.is_null() {
        lines.push(outcome.value.to_string());
    }
    let diff = &outcome.diff;
    lines.extend(diff.added.iter().map(|node| format!("+ {} {}", node.class, node.name)));
    lines.extend(diff.removed.iter().map(|node| format!("- {} {}", node.class, node.name)));
    lines.extend(diff.changed.iter().map(|node| format!("~ {} {} ({})", node.class, node.name, node.what.join(", "))));
    lines.extend(diff.views.iter().map(|change| format!("~ {change}")));
    match &outcome.restored {
        Some(restored) if restored.complete => lines.push("The scene is as it was before.".into()),
        Some(restored) => lines.push(format!("Not everything could be put back: {}", restored.missing.join("; "))),
        None => {}
    }
    lines.join("\n")
}
