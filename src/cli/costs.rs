//! `costs`: what models have cost, from the history.

use clap::Args;
use serde_json::json;

use super::{Outcome, console, exit};
use crate::store::{Conversations, Paths, SpendingTotal, month_start_ms};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  slicer-ai-agent costs --json")]
pub struct Arguments {
    /// Only this conversation
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, paths: &Paths) -> Outcome {
    let store = Conversations::open(&paths.database()).map_err(|error| anyhow::anyhow!(error))?;
    let conversation = arguments.conversation.as_deref();
    let month = store.spent(month_start_ms(), conversation).map_err(|error| anyhow::anyhow!(error))?;
    let all = store.spent(0, conversation).map_err(|error| anyhow::anyhow!(error))?;
    if arguments.json {
        console::print_json(&json!({"month": object(&month), "all": object(&all)}))?;
    } else {
        console::print_text(&format!("This month: {}\nIn all:     {}", in_words(&month), in_words(&all)))?;
    }
    Ok(exit::DONE)
}

/// A sum in which calls of unknown price are missing is no cost: it is given apart, and the cost is null.
fn object(total: &SpendingTotal) -> serde_json::Value {
    let whole = (total.unknown == 0).then_some(total.cost_usd);
    json!({"calls": total.calls, "input": total.input, "cached": total.cached, "output": total.output,
           "cost_usd": whole, "known_usd": total.cost_usd, "unknown_calls": total.unknown, "estimated": total.estimated})
}

fn in_words(total: &SpendingTotal) -> String {
    let about = if total.estimated { "≈" } else { "" };
    let unknown = match total.unknown {
        0 => String::new(),
        count => format!(", and {count} calls whose price is not known"),
    };
    format!("{about}${:.4} for {} calls{unknown}", total.cost_usd, total.calls)
}
