//! `conversations`: the history from the command line.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Failure, Outcome, console, exit, session};
use crate::engine::{self, TurnEvent};
use crate::store::{Conversations, Paths};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  slicer-ai-agent conversations list\n  slicer-ai-agent conversations show ID --json"
)]
pub struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// All conversations, the newest first
    List {
        #[arg(long)]
        json: bool,
    },
    /// One conversation with its turns
    Show {
        /// Its id, or the beginning of it
        id: String,
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub fn run(arguments: &Arguments, paths: &Paths) -> Outcome {
    let store = Conversations::open(&paths.database()).map_err(|error| anyhow::anyhow!(error))?;
    match &arguments.verb {
        Verb::List { json } => list(&store, *json),
        Verb::Show { id, json } => show(&store, id, *json),
    }
}

fn list(store: &Conversations, json: bool) -> Outcome {
    let list = store.list(false).map_err(|error| anyhow::anyhow!(error))?;
    if json {
        console::print_json(&json!({"conversations": list}))?;
    } else if list.is_empty() {
        console::print_text("There are no conversations yet.")?;
    } else {
        for summary in &list {
            let turns = if summary.turns == 1 { "1 turn".to_owned() } else { format!("{} turns", summary.turns) };
            console::print_text(&format!("{}  {}  ({turns})", summary.id, summary.title))?;
        }
    }
    Ok(exit::DONE)
}

fn show(store: &Conversations, id: &str, json: bool) -> Outcome {
    let list = store.list(false).map_err(|error| anyhow::anyhow!(error))?;
    let matching: Vec<_> = list.into_iter().filter(|summary| summary.id.starts_with(id)).collect();
    let [summary] = matching.as_slice() else {
        let (message, advice) = if matching.is_empty() {
            (format!("There is no conversation {id}."), "See `slicer-ai-agent conversations list`.")
        } else {
            (format!("{} conversations begin with {id}.", matching.len()), "Give more of the id.")
        };
        return Err(Failure::new(exit::USAGE, "BadRequest", message, advice));
    };
    let stored = store.events(&summary.id).map_err(|error| anyhow::anyhow!(error))?;
    let events = engine::read_events(stored);
    let facts: Vec<TurnEvent> = events.iter().map(|event| event.event.clone()).collect();
    let turns = engine::turns(&summary.id, &facts);
    if json {
        console::print_json(&json!({"id": summary.id, "title": summary.title, "turns": turns, "events": events}))?;
        return Ok(exit::DONE);
    }
    console::print_text(&format!("{}\n", summary.title))?;
    for (turn, record) in turns.iter().enumerate() {
        console::print_text(&format!("› {}", request_of(&facts, turn)))?;
        console::print_text(&format!("{}\n", session::turn_text(record)))?;
    }
    Ok(exit::DONE)
}

fn request_of(facts: &[TurnEvent], turn: usize) -> String {
    let requests = facts.iter().filter_map(|event| match event {
        TurnEvent::UserMessage { text, .. } => Some(text.clone()),
        _ => None,
    });
    requests.clone().nth(turn).unwrap_or_default()
}
