//! `validate`: the safety check alone, for one program or for a file of many.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use clap::Args;
use serde_json::{Value, json};

use super::{Failure, Outcome, console, exit};
use crate::safety::{self, Policy, Verdict, VerdictKind};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  slicer-ai-agent validate program.py\n  echo 'import os' | slicer-ai-agent validate - --json\n  slicer-ai-agent validate --jsonl programs.jsonl"
)]
pub struct Arguments {
    /// A Python file, or - for stdin
    #[arg(required_unless_present = "jsonl")]
    file: Option<String>,
    /// A file of {"id", "code"} lines; prints one {"id", "verdict", "findings"} a line
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    jsonl: Option<String>,
    /// {verdict, findings} as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command. Allowed is 0, everything else 4.
pub fn run(arguments: &Arguments) -> Outcome {
    let policy = Policy::default();
    if let Some(file) = &arguments.jsonl {
        return many(file, &policy);
    }
    let file = arguments.file.as_deref().unwrap_or("-");
    let verdict = safety::validate_bytes(&read(file)?, &policy);
    if arguments.json {
        console::print_json(&verdict)?;
    } else {
        console::print_text(&text(&verdict))?;
    }
    Ok(if verdict.verdict == VerdictKind::Allow { exit::DONE } else { exit::REFUSED })
}

fn text(verdict: &Verdict) -> String {
    let head = match verdict.verdict {
        VerdictKind::Allow => return "Allowed: nothing in it needs a question.".to_owned(),
        VerdictKind::Ask => "Asks before it runs:",
        VerdictKind::Block => "Blocked:",
    };
    format!("{head}\n{}", console::findings_text(&verdict.findings))
}

/// The bytes of a file, or of stdin for `-`.
///
/// # Errors
/// When it cannot be read.
pub fn read(file: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let outcome = if file == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes).map(drop)
    } else {
        std::fs::read(Path::new(file)).map(|read| bytes = read)
    };
    outcome.map_err(|error| unreadable(file, &error))?;
    Ok(bytes)
}

fn unreadable(file: &str, error: &std::io::Error) -> Failure {
    Failure::new(exit::USAGE, "BadRequest", format!("{file} cannot be read: {error}."), "Check the path.")
}

fn many(file: &str, policy: &Policy) -> Outcome {
    let input: Box<dyn BufRead> = if file == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(BufReader::new(std::fs::File::open(file).map_err(|error| unreadable(file, &error))?))
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for (number, line) in input.lines().enumerate() {
        let line = line.map_err(|error| unreadable(file, &error))?;
        if line.trim().is_empty() {
            continue;
        }
        let entry: Value = serde_json::from_str(&line).map_err(|error| {
            let message = format!("{file}, line {}: not JSON ({error}).", number + 1);
            Failure::new(exit::USAGE, "BadRequest", message, "Each line must be an object with id and code.")
        })?;
        let Some(code) = entry["code"].as_str() else {
            let message = format!("{file}, line {}: there is no code.", number + 1);
            return Err(Failure::new(exit::USAGE, "BadRequest", message, "Each line needs id and code."));
        };
        let verdict = safety::validate_bytes(code.as_bytes(), policy);
        let reply = json!({"id": entry["id"], "verdict": verdict.verdict, "findings": verdict.findings});
        writeln!(out, "{reply}").map_err(|error| anyhow::anyhow!(error))?;
    }
    out.flush().map_err(|error| anyhow::anyhow!(error))?;
    Ok(exit::DONE)
}
