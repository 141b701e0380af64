//! What goes to the terminal: progress on stderr, one JSON object on stdout, a permission question.

use std::io::{self, BufRead, IsTerminal, Write};

use serde::Serialize;

use super::{Failure, exit};
use crate::engine::{Capability, Decision, Finding, Problem};

/// The terminal as the person wants it.
#[derive(Debug, Clone, Copy)]
pub struct Console {
    pub quiet: bool,
}

impl Console {
    /// One line of progress on stderr.
    pub fn progress(self, line: &str) {
        if !self.quiet {
            eprintln!("{line}");
        }
    }
}

/// Prints the one object of `--json`.
///
/// # Errors
/// When stdout is closed.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| anyhow::anyhow!(error))?;
    print_text(&text)
}

/// Prints text and a line break on stdout.
///
/// # Errors
/// When stdout is closed.
pub fn print_text(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")
        .and_then(|()| out.flush())
        .map_err(|error| Failure::new(exit::FAILED, "Failed", format!("The output could not be written: {error}"), ""))
}

/// A problem in one or two sentences.
pub fn in_words(problem: &Problem) -> String {
    if problem.advice.is_empty() { problem.message.clone() } else { format!("{} {}", problem.message, problem.advice) }
}

/// The findings as lines for people.
pub fn findings_text(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let instead =
            if finding.instead.is_empty() { String::new() } else { format!("\n      Instead: {}", finding.instead) };
        if finding.capability == Capability::Spend {
            return format!("  - {}", finding.why);
        }
        format!(
            "  - line {}, {}: {}\n      {}{instead}",
            finding.line,
            finding.capability.name(),
            finding.why,
            finding.text
        )
    };
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Asks on the terminal whether a program may run. Where nobody can answer, the answer is no.
pub fn ask_permission(findings: &[Finding]) -> Decision {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        eprintln!("This needs your permission, and there is no terminal to ask on (allow it with --allow or --yes):");
        eprintln!("{}", findings_text(findings));
        return Decision::Deny;
    }
    eprintln!("This needs your permission:\n{}", findings_text(findings));
    loop {
        eprint!("Allow? [y] once, [c] for this conversation, [n] no: ");
        let mut answer = String::new();
        if !matches!(io::stdin().lock().read_line(&mut answer), Ok(1..)) {
            return Decision::Deny;
        }
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Decision::AllowOnce,
            "c" => return Decision::AllowConversation,
            "n" | "no" | "" => return Decision::Deny,
            _ => {}
        }
    }
}
