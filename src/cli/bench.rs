//! `bench retrieval`: how well the knowledge is found, over a file of questions with known answers.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Failure, Outcome, console, exit};
use crate::knowledge::Library;
use crate::knowledge::library::bench::{self, Figures};
use crate::store::Paths;

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Recall, answers and time of retrieval
    #[command(after_help = "Example:\n  slicer-ai-agent bench retrieval questions.jsonl --parts")]
    Retrieval {
        /// One question a line: id, question, gold_detail, must_use
        file: PathBuf,
        /// Also what each part of the ranking adds
        #[arg(long)]
        parts: bool,
        /// Only every second question: 0 the even, 1 the odd ones (to see whether a change holds on both)
        #[arg(long, value_parser = clap::value_parser!(u8).range(0..=1))]
        half: Option<u8>,
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub fn run(arguments: &Arguments, paths: &Paths) -> Outcome {
    let What::Retrieval { file, parts, half, json } = &arguments.what;
    let failed = |error: crate::knowledge::KnowledgeError| Failure::from(anyhow::anyhow!(error));
    let mut questions = bench::questions(file).map_err(failed)?;
    if let Some(half) = half {
        let mut number = 0;
        questions.retain(|_| {
            number += 1;
            (number - 1) % 2 == usize::from(*half)
        });
    }
    let Some(library) = Library::open(paths.data()).map_err(failed)? else {
        let advice = "First: slicer-ai-agent index --source <folder of the Slicer sources>";
        return Err(Failure::new(exit::FAILED, "NoIndex", "Nothing is indexed yet.", advice));
    };
    let figures = bench::measure(&library, &questions).map_err(failed)?;
    let table = if *parts { bench::parts(paths.data(), &questions).map_err(failed)? } else { Vec::new() };
    if *json {
        let mut value = serde_json::to_value(&figures).map_err(|error| anyhow::anyhow!(error))?;
        value["megabytes"] =
            json!(std::fs::metadata(Library::file(paths.data())).map_or(0.0, |data| data.len() as f64 / 1e6));
        let parts = table.iter().map(|(name, figures)| {
            let mut value = json!(figures);
            value["misses"] = json!(figures.misses.len());
            (name.to_string(), value)
        });
        value["parts"] = serde_json::Value::Object(parts.collect());
        console::print_json(&value)?;
        return Ok(exit::DONE);
    }
    console::print_text(&format!("{:<28}   R@1   R@5  R@10   MRR  ans@10  UI R@10  16k R  16k ans    ms", ""))?;
    console::print_text(&line("as it is", &figures))?;
    for (name, figures) in &table {
        console::print_text(&line(name, figures))?;
    }
    for miss in &figures.misses {
        let rank = miss.rank.map_or_else(|| "not found".to_owned(), |rank| format!("rank {rank}"));
        console::print_text(&format!(
            "{} ({rank}) {}\n    gold:  {}\n    found: {}",
            miss.id,
            miss.question,
            miss.gold.join(", "),
            miss.found.join(" | ")
        ))?;
    }
    Ok(exit::DONE)
}

fn line(name: &str, figures: &Figures) -> String {
    let percent = |value: f64| format!("{:5.1}", value * 100.0);
    format!(
        "{name:<28} {} {} {} {:.3}  {}   {}   {}  {}  {:6.2}",
        percent(figures.recall_at_1),
        percent(figures.recall_at_5),
        percent(figures.recall_at_10),
        figures.mrr,
        percent(figures.answerable_at_10),
        percent(figures.ui_recall_at_10),
        percent(figures.recall_within_16000),
        percent(figures.answerable_within_16000),
        figures.ms_median
    )
}
