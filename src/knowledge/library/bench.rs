//! How good retrieval is, over a file of questions with known answers.
//!
//! A hit is a passage that holds the section or the definition that a question names as gold. A question is answerable
//! when the text of the hits names all that a right answer must use.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::build::{BuildOptions, NewSource, refresh};
use super::{Library, Ranking, RetrievalOptions, store};
use crate::knowledge::index::{Hit, KnowledgeError};
use crate::knowledge::source::SourceRules;

/// Text that fits a small model's context: recall and answers are also counted within it.
const CHARACTERS: usize = 16_000;

/// A question of the file.
#[derive(Debug, Clone, Deserialize)]
pub struct Question {
    pub id: String,
    #[serde(default)]
    pub kind: String,
    pub question: String,
    #[serde(default)]
    pub gold: Vec<String>,
    pub gold_detail: Vec<Gold>,
    #[serde(default)]
    pub must_use: Vec<String>,
}

/// A place that answers a question.
#[derive(Debug, Clone, Deserialize)]
pub struct Gold {
    pub path: String,
    #[serde(default)]
    pub line: usize,
    #[serde(default)]
    pub definition_lines: Vec<usize>,
    pub heading: Option<String>,
}

/// A question that the first ten hits do not answer.
#[derive(Debug, Clone, Serialize)]
pub struct Miss {
    pub id: String,
    pub kind: String,
    pub question: String,
    pub gold: Vec<String>,
    /// Rank of the first gold place among the first hundred.
    pub rank: Option<usize>,
    /// What is found instead.
    pub found: Vec<String>,
}

/// The figures of one way of searching.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Figures {
    pub questions: usize,
    pub recall_at_1: f64,
    pub recall_at_5: f64,
    pub recall_at_10: f64,
    pub mrr: f64,
    pub answerable_at_10: f64,
    pub ui_questions: usize,
    pub ui_recall_at_10: f64,
    pub recall_within_16000: f64,
    pub answerable_within_16000: f64,
    pub ms_median: f64,
    pub ms_p95: f64,
    pub misses: Vec<Miss>,
}

/// Reads a file of questions, one JSON object a line.
///
/// # Errors
/// When it cannot be read or a line is not a question.
pub fn questions(file: &Path) -> Result<Vec<Question>, KnowledgeError> {
    let failed = |why: String| KnowledgeError::Folder { path: file.to_owned(), why };
    let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| serde_json::from_str(line).map_err(|error| failed(format!("line {}: {error}", at + 1))))
        .collect()
}

/// Searches for every question and counts.
///
/// # Errors
/// When the index fails.
pub fn measure(library: &Library, questions: &[Question]) -> Result<Figures, KnowledgeError> {
    let mut figures = Figures { questions: questions.len(), ..Figures::default() };
    let mut times = Vec::new();
    let wide = RetrievalOptions { top: 50, kind: None, budget: None, whole_files: false };
    let real = RetrievalOptions::default();
    for question in questions {
        let started = Instant::now();
        let hits = library.retrieve(&question.question, &real)?.hits;
        times.push(started.elapsed().as_secs_f64() * 1000.0);
        let all = library.retrieve(&question.question, &wide)?.hits;
        count(question, &hits, &all, &mut figures);
    }
    let share = |value: &mut f64, of: usize| *value /= of.max(1) as f64;
    for value in [
        &mut figures.recall_at_1,
        &mut figures.recall_at_5,
        &mut figures.recall_at_10,
        &mut figures.mrr,
        &mut figures.answerable_at_10,
        &mut figures.recall_within_16000,
        &mut figures.answerable_within_16000,
    ] {
        share(value, questions.len());
    }
    share(&mut figures.ui_recall_at_10, figures.ui_questions);
    times.sort_by(f64::total_cmp);
    figures.ms_median = times.get(times.len() / 2).copied().unwrap_or(0.0);
    figures.ms_p95 = times.get(times.len() * 95 / 100).copied().unwrap_or(0.0);
    Ok(figures)
}

fn count(question: &Question, hits: &[Hit], all: &[Hit], figures: &mut Figures) {
    let is_gold = |hit: &Hit| question.gold_detail.iter().any(|gold| holds(hit, gold));
    let rank = hits.iter().take(10).position(is_gold).map(|at| at + 1);
    let ui = question.kind == "ui";
    figures.ui_questions += usize::from(ui);
    if let Some(rank) = rank {
        figures.recall_at_1 += f64::from(u8::from(rank == 1));
        figures.recall_at_5 += f64::from(u8::from(rank <= 5));
        figures.recall_at_10 += 1.0;
        figures.mrr += 1.0 / rank as f64;
        figures.ui_recall_at_10 += f64::from(u8::from(ui));
    } else {
        figures.misses.push(Miss {
            id: question.id.clone(),
            kind: question.kind.clone(),
            question: question.question.clone(),
            gold: question.gold.clone(),
            rank: all.iter().position(is_gold).map(|at| at + 1),
            found: hits.iter().take(3).map(|hit| format!("{} ({})", hit.name, hit.path)).collect(),
        });
    }
    let text: String = hits.iter().take(10).map(|hit| hit.text.as_str()).collect::<Vec<_>>().join("\n");
    figures.answerable_at_10 += f64::from(u8::from(names_all(&text, &question.must_use)));
    let mut left = CHARACTERS;
    let mut within = String::new();
    let mut seen_gold = false;
    for hit in all {
        if left == 0 {
            break;
        }
        let part: String = hit.text.chars().take(left).collect();
        left -= part.chars().count();
        seen_gold |= is_gold(hit);
        within.push_str(&part);
        within.push('\n');
    }
    figures.recall_within_16000 += f64::from(u8::from(seen_gold));
    figures.answerable_within_16000 += f64::from(u8::from(names_all(&within, &question.must_use)));
}

/// Whether a hit holds a gold place: its line, or for a section a later part of it.
fn holds(hit: &Hit, gold: &Gold) -> bool {
    if hit.path != gold.path {
        return false;
    }
    let lines =
        if gold.definition_lines.is_empty() { std::slice::from_ref(&gold.line) } else { &gold.definition_lines };
    let here = lines.iter().any(|line| (hit.start_line..=hit.end_line).contains(line));
    here || gold.heading.as_deref().is_some_and(|heading| hit.name.rsplit(" › ").next() == Some(heading))
}

/// Whether a text has, of each entry, one of its alternatives; by the last part of a dotted name.
fn names_all(text: &str, wanted: &[String]) -> bool {
    let text = text.to_lowercase();
    wanted.iter().all(|entry| {
        entry.split('|').any(|name| {
            text.contains(name.trim().to_lowercase().as_str())
                || name.rsplit('.').next().is_some_and(|last| name.contains('.') && text.contains(&last.to_lowercase()))
        })
    })
}

/// What each part of the ranking adds: the figures with it taken away. Reads the sources again for the cut of identifiers.
///
/// # Errors
/// When the index or a source fails.
pub fn parts(data_folder: &Path, questions: &[Question]) -> Result<Vec<(&'static str, Figures)>, KnowledgeError> {
    let figures = Library::ranking(Some(data_folder))?;
    let variant = |change: &dyn Fn(&mut Ranking)| -> Result<Figures, KnowledgeError> {
        let mut ranking = figures.clone();
        change(&mut ranking);
        let library = Library::over(store::open(&Library::file(data_folder))?, Some(data_folder), Some(ranking))?;
        measure(&library, questions)
    };
    let mut table = vec![
        ("all parts", variant(&|_| {})?),
        ("without weights of kinds", variant(&|ranking| ranking.use_weights = false)?),
        ("without weights of fields", variant(&|ranking| ranking.fields.values_mut().for_each(|field| field.0 = 1.0))?),
        ("without words of controls", variant(&|ranking| ranking.use_ui = false)?),
        ("without synonyms", variant(&|ranking| ranking.use_synonyms = false)?),
        ("without coverage", variant(&|ranking| ranking.coverage = 0.0)?),
    ];
    let connection = store::open(&Library::file(data_folder))?;
    let sources = {
        let mut statement = connection.prepare("SELECT root, kind FROM source ORDER BY id")?;
        let rows = statement
            .query_map([], |row| Ok(NewSource { root: PathBuf::from(row.get::<_, String>(0)?), kind: row.get(1)? }))?;
        rows.collect::<Result<Vec<_>, _>>()?
    };
    let rules = SourceRules::open(Some(data_folder))?;
    let mut plain = store::in_memory()?;
    refresh(&mut plain, &sources, &BuildOptions { rules: &rules, rebuild: false, split: false }, &mut |_, _| {})?;
    let ranking = Ranking { split_identifiers: false, ..figures.clone() };
    let library = Library::over(plain, Some(data_folder), Some(ranking))?;
    table.push(("without cut of identifiers", measure(&library, questions)?));
    Ok(table)
}
