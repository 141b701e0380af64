//! From rankings to what a request gets: parts brought together, near-copies dropped, whole files, a limit on text.

use std::collections::{HashMap, HashSet};

use super::{Library, query};
use crate::knowledge::cut::tokens_of;
use crate::knowledge::index::{Hit, KnowledgeError};

/// What is looked at of each ranking.
const POOL: usize = 200;
/// The constant of reciprocal rank: large enough that the first places do not decide alone.
const FUSION: f64 = 60.0;
/// A markdown file with so many hits is told whole, if it fits.
const WHOLE_FILE_HITS: usize = 5;
/// Passages that share more of their words are the same text twice.
const NEAR_COPY: f64 = 0.9;

/// How much a request gets.
#[derive(Debug, Clone)]
pub struct RetrievalOptions {
    pub top: usize,
    /// Only this kind.
    pub kind: Option<String>,
    /// Most text in tokens; `None`: no limit.
    pub budget: Option<usize>,
    /// Whether a file with many hits is told whole, if that stays within the budget.
    pub whole_files: bool,
}

impl Default for RetrievalOptions {
    fn default() -> Self {
        Self { top: 10, kind: None, budget: Some(6_000), whole_files: true }
    }
}

/// What a request got.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Retrieval {
    pub subqueries: Vec<String>,
    pub hits: Vec<Hit>,
    /// Our own recipes for it, in a list of their own: they neither take places from the sources nor lose theirs.
    pub recipes: Vec<Hit>,
    /// What was searched and found, in a line each, for the model.
    pub coverage: Vec<String>,
}

impl Retrieval {
    /// Recipes and passages as one list, ranked anew.
    pub fn into_list(self) -> Vec<Hit> {
        let mut hits = self.recipes;
        hits.extend(self.hits);
        for (index, hit) in hits.iter_mut().enumerate() {
            hit.rank = index + 1;
        }
        hits
    }
}

impl Library {
    /// The passages for a request.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn retrieve(&self, message: &str, options: &RetrievalOptions) -> Result<Retrieval, KnowledgeError> {
        let subqueries = query::parts(message);
        let mut ranked = self.ranked(message, POOL, options.kind.as_deref());
        let mut coverage = Vec::new();
        if subqueries.len() > 1 {
            let mut lists: Vec<Vec<u32>> = vec![ranked.iter().map(|(document, _)| *document).collect()];
            for part in &subqueries {
                lists.push(
                    self.ranked(part, POOL, options.kind.as_deref())
                        .into_iter()
                        .map(|(document, _)| document)
                        .collect(),
                );
            }
            ranked = fuse(&lists, POOL);
        }
        let mut hits: Vec<Hit> = Vec::new();
        let mut bags: Vec<HashSet<String>> = Vec::new();
        for (document, score) in self.with_declarations(ranked) {
            if hits.len() >= options.top {
                break;
            }
            let Some(hit) = self.hit(document, score)? else { continue };
            let bag: HashSet<String> = hit.text.split_whitespace().map(str::to_owned).collect();
            let same_name = hits.iter().filter(|other| other.name == hit.name && other.path == hit.path).count();
            if same_name >= self.ranking.per_name {
                continue;
            }
            if !bags.iter().any(|other| likeness(&bag, other) > NEAR_COPY) {
                bags.push(bag);
                hits.push(hit);
            }
        }
        if let Some(budget) = options.budget {
            if options.whole_files {
                self.whole_file(&mut hits, budget)?;
            }
            within(&mut hits, budget);
        }
        for (index, hit) in hits.iter_mut().enumerate() {
            hit.rank = index + 1;
        }
        for part in &subqueries {
            coverage.push(format!("searched: {part}"));
        }
        let mut kinds: HashMap<&str, usize> = HashMap::new();
        hits.iter().for_each(|hit| *kinds.entry(hit.kind.as_str()).or_default() += 1);
        let mut kinds: Vec<(&str, usize)> = kinds.into_iter().collect();
        kinds.sort_unstable();
        coverage.extend(kinds.iter().map(|(kind, count)| format!("found: {count} of kind {kind}")));
        Ok(Retrieval { subqueries, hits, recipes: Vec::new(), coverage })
    }

    /// The ranking with enough declarations in its first places: the best ones that stand further down take the last of
    /// those places.
    fn with_declarations(&self, mut ranked: Vec<(u32, f64)>) -> Vec<(u32, f64)> {
        let (places, wanted) = (self.ranking.places, self.ranking.declarations);
        let declares = |document: u32| {
            self.documents
                .get(document as usize)
                .is_some_and(|known| self.ranking.declaring_kinds.contains(&known.kind))
        };
        let mut first: Vec<(u32, f64)> = ranked.drain(..places.min(ranked.len())).collect();
        let mut have = first.iter().filter(|(document, _)| declares(*document)).count();
        let mut at = first.len();
        while have < wanted && at > 0 {
            let Some(next) = ranked.iter().position(|(document, _)| declares(*document)) else { break };
            // The last place that holds no declaration makes room.
            let Some(place) = (0..at).rev().find(|place| !declares(first[*place].0)) else { break };
            let better = ranked.remove(next);
            let moved = std::mem::replace(&mut first[place], better);
            ranked.insert(0, moved);
            at = place;
            have += 1;
        }
        first.extend(ranked);
        first
    }

    /// Puts a markdown file in place of its passages when it has most of the hits and fits.
    fn whole_file(&self, hits: &mut Vec<Hit>, budget: usize) -> Result<(), KnowledgeError> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for hit in hits.iter().filter(|hit| hit.path.ends_with(".md")) {
            *counts.entry(hit.path.clone()).or_default() += 1;
        }
        let Some((path, _)) =
            counts.into_iter().filter(|(_, count)| *count >= WHOLE_FILE_HITS).max_by_key(|(_, count)| *count)
        else {
            return Ok(());
        };
        let Ok(text) = self.read_whole(&path) else { return Ok(()) };
        let rest: usize = hits.iter().filter(|hit| hit.path != path).map(|hit| tokens_of(&hit.text)).sum();
        if tokens_of(&text) + rest > budget {
            return Ok(());
        }
        let Some(first) = hits.iter().position(|hit| hit.path == path) else { return Ok(()) };
        let whole =
            Hit { start_line: 1, end_line: text.lines().count(), name: path.clone(), text, ..hits[first].clone() };
        hits.retain(|hit| hit.path != path);
        hits.insert(first.min(hits.len()), whole);
        Ok(())
    }
}

/// Keeps the hits that fit a number of tokens; the first that does not is cut at a line, and later ones may still fit.
fn within(hits: &mut Vec<Hit>, budget: usize) {
    let mut left = budget;
    let mut cut = false;
    hits.retain_mut(|hit| {
        let size = tokens_of(&hit.text);
        if size <= left {
            left -= size;
            return true;
        }
        let room = (0..=(left * 4).min(hit.text.len())).rev().find(|at| hit.text.is_char_boundary(*at)).unwrap_or(0);
        let end = hit.text[..room].rfind('\n').unwrap_or(0);
        if cut || end < 200 {
            return false;
        }
        cut = true;
        hit.end_line = hit.start_line + hit.text[..end].matches('\n').count();
        hit.text.truncate(end);
        left -= tokens_of(&hit.text).min(left);
        true
    });
}

fn likeness(a: &HashSet<String>, b: &HashSet<String>) -> f64 {
    let (small, large) = if a.len() < b.len() { (a, b) } else { (b, a) };
    if (small.len() as f64) < NEAR_COPY * large.len() as f64 || small.is_empty() {
        return 0.0;
    }
    let shared = small.iter().filter(|word| large.contains(*word)).count() as f64;
    shared / (a.len() as f64 + b.len() as f64 - shared)
}

/// Rankings brought together by reciprocal rank.
pub fn fuse(lists: &[Vec<u32>], top: usize) -> Vec<(u32, f64)> {
    let mut scores: HashMap<u32, f64> = HashMap::new();
    for list in lists {
        for (rank, document) in list.iter().enumerate() {
            *scores.entry(*document).or_default() += 1.0 / (FUSION + rank as f64 + 1.0);
        }
    }
    let mut fused: Vec<(u32, f64)> = scores.into_iter().collect();
    fused.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    fused.truncate(top);
    fused
}
