//! `search`: the knowledge as the agent searches it.

use std::time::Instant;

use clap::Args;
use serde_json::json;

use super::{Outcome, console, exit};
use crate::agent::recipes::RecipeBook;
use crate::knowledge::Knowledge;
use crate::store::Paths;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  slicer-ai-agent search \"segment bone by threshold\" --top 5")]
pub struct Arguments {
    /// What to look for
    text: String,
    /// How many passages
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=100))]
    top: u64,
    /// Only this kind of source, for example recipe
    #[arg(long)]
    kind: Option<String>,
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, paths: &Paths) -> Outcome {
    let (recipes, _) = RecipeBook::open(Some(paths.data())).map_err(|error| anyhow::anyhow!(error))?;
    let knowledge = Knowledge::of_recipes(recipes.recipes()).map_err(|error| anyhow::anyhow!(error))?;
    let started = Instant::now();
    let hits = knowledge
        .index
        .search(&arguments.text, arguments.top as usize, arguments.kind.as_deref())
        .map_err(|error| anyhow::anyhow!(error))?;
    let ms = started.elapsed().as_secs_f64() * 1000.0;
    if arguments.json {
        console::print_json(&json!({"subqueries": [arguments.text], "hits": hits, "ms": ms}))?;
    } else if hits.is_empty() {
        console::print_text("Nothing was found.")?;
    } else {
        for hit in &hits {
            let line = format!("{:>2}. {}:{}-{}  {}", hit.rank, hit.path, hit.start_line, hit.end_line, hit.name);
            console::print_text(&line)?;
        }
    }
    Ok(exit::DONE)
}
