//! `search`: the knowledge as the agent searches it.

use std::time::Instant;

use clap::Args;
use serde_json::json;

use super::{Outcome, console, exit};
use crate::agent::recipes::RecipeBook;
use crate::knowledge::{Knowledge, RetrievalOptions};
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
    let knowledge = Knowledge::open(recipes.recipes(), paths.data()).map_err(|error| anyhow::anyhow!(error))?;
    let started = Instant::now();
    let usual = RetrievalOptions::default();
    let top = arguments.top as usize;
    // Whoever asks for more passages than a turn gets also gets the room for them.
    let budget = usual.budget.map(|budget| budget * top.div_ceil(usual.top));
    let options = RetrievalOptions { top, kind: arguments.kind.clone(), budget, ..usual };
    let found = knowledge.retrieve(&arguments.text, &options).map_err(|error| anyhow::anyhow!(error))?;
    let ms = started.elapsed().as_secs_f64() * 1000.0;
    if arguments.json {
        let value = json!({"subqueries": found.subqueries, "hits": found.hits, "recipes": found.recipes, "coverage": found.coverage, "ms": ms});
        console::print_json(&value)?;
    } else if found.hits.is_empty() && found.recipes.is_empty() {
        console::print_text("Nothing was found.")?;
    } else {
        for hit in found.hits.iter().chain(&found.recipes) {
            let line = format!("{:>2}. {}:{}-{}  {}", hit.rank, hit.path, hit.start_line, hit.end_line, hit.name);
            console::print_text(&line)?;
        }
    }
    Ok(exit::DONE)
}
