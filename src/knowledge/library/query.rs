//! From a message to words: parts of a compound request, words without meaning, and words that stand in for others.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use super::rank::{QueryTerm, Ranking};
use super::terms::{plain_roots, root, roots};
use crate::knowledge::index::KnowledgeError;

/// A request with fewer words stays whole.
const LONG_REQUEST: usize = 28;
const MOST_PARTS: usize = 5;
/// More words than this do not make a query better.
const MOST_WORDS: usize = 64;

#[derive(Deserialize)]
struct Table {
    /// Words that say nothing of the matter.
    stop: Vec<String>,
    /// What people say, and what Slicer says.
    means: Vec<(Vec<String>, Vec<String>)>,
    /// Words for the same thing, in both directions.
    same: Vec<Vec<String>>,
}

/// The words of people and those of Slicer (`resources/knowledge/synonyms.toml`).
pub struct Vocabulary {
    stop: std::collections::HashSet<String>,
    /// Root (or two roots with a space) → roots that may stand in for it.
    stand_ins: HashMap<String, Vec<String>>,
}

impl Vocabulary {
    /// The table, with the person's own in front of ours.
    ///
    /// # Errors
    /// When the table is damaged.
    pub fn open(data_folder: Option<&Path>) -> Result<Self, KnowledgeError> {
        let text = super::super::data_text(data_folder, "knowledge/synonyms.toml");
        let table: Table = toml::from_str(&text)
            .map_err(|error| KnowledgeError::Data { file: "knowledge/synonyms.toml", why: error.to_string() })?;
        let mut stand_ins: HashMap<String, Vec<String>> = HashMap::new();
        let mut add = |from: &str, to: &str| {
            let from = rooted(from);
            for word in to.split_whitespace().map(|word| root(&word.to_lowercase())) {
                let list = stand_ins.entry(from.clone()).or_default();
                if !list.contains(&word) && word != from {
                    list.push(word);
                }
            }
        };
        for (said, meant) in &table.means {
            said.iter().for_each(|from| meant.iter().for_each(|to| add(from, to)));
        }
        for group in &table.same {
            group.iter().for_each(|from| group.iter().filter(|to| *to != from).for_each(|to| add(from, to)));
        }
        Ok(Self { stop: table.stop.iter().map(|word| root(word)).collect(), stand_ins })
    }

    /// The words of a query with their weights.
    pub fn query(&self, text: &str, ranking: &Ranking) -> Vec<QueryTerm> {
        let all = if ranking.split_identifiers { roots(text) } else { plain_roots(text) };
        let mut words: Vec<String> = Vec::new();
        for word in &all {
            if !words.contains(word) && (word.len() > 1 || word.bytes().all(|b| b.is_ascii_digit())) {
                words.push(word.clone());
            }
        }
        let telling: Vec<String> = words.iter().filter(|word| !self.stop.contains(*word)).cloned().collect();
        let words = if telling.is_empty() { words } else { telling };
        let mut terms: Vec<QueryTerm> = words
            .iter()
            .take(MOST_WORDS)
            .enumerate()
            .map(|(group, word)| QueryTerm { text: word.clone(), weight: 1.0, group })
            .collect();
        let quoted = quoted_words(text);
        for term in terms.iter_mut().filter(|term| quoted.contains(&term.text)) {
            term.weight *= ranking.quoted;
        }
        if ranking.joined > 0.0 && ranking.split_identifiers {
            for (group, joined) in joined(text, &self.stop).into_iter().filter(|word| !words.contains(word)).enumerate()
            {
                terms.push(QueryTerm { text: joined, weight: ranking.joined, group: words.len() + group });
            }
        }
        if ranking.use_synonyms {
            let mut extra = Vec::new();
            let pairs = all.windows(2).map(|pair| format!("{} {}", pair[0], pair[1]));
            for said in words.iter().cloned().chain(pairs) {
                let group = words.iter().position(|word| said.split(' ').any(|part| part == word)).unwrap_or(0);
                for meant in self.stand_ins.get(&said).into_iter().flatten().filter(|meant| !words.contains(meant)) {
                    extra.push(QueryTerm { text: meant.clone(), weight: ranking.synonym, group });
                }
            }
            terms.extend(extra);
        }
        terms
    }
}

/// Neighbouring words written as one, as identifiers are.
fn joined(text: &str, stop: &std::collections::HashSet<String>) -> Vec<String> {
    let plain: Vec<String> = text
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '.' | ';' | '?' | '!' | '(' | ')' | ':' | '/'))
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
        .collect();
    let tells =
        |word: &String| word.len() > 1 && word.chars().all(char::is_alphanumeric) && !stop.contains(&root(word));
    let pairs = plain.windows(2).filter(|pair| pair.iter().all(tells)).map(|pair| root(&pair.concat()));
    let triples = plain.windows(3).filter(|three| three.iter().all(tells)).map(|three| root(&three.concat()));
    let mut found: Vec<String> = Vec::new();
    for word in pairs.chain(triples) {
        if !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

/// The roots of what stands in quotes.
fn quoted_words(text: &str) -> std::collections::HashSet<String> {
    let mut found = std::collections::HashSet::new();
    for (open, close) in [('\'', '\''), ('"', '"'), ('“', '”'), ('‘', '’')] {
        let mut rest = text;
        while let Some(start) = rest.find(open) {
            let begins = rest[..start].chars().next_back().is_none_or(|before| !before.is_alphanumeric());
            let after = &rest[start + open.len_utf8()..];
            match after.find(close).filter(|end| begins && *end < 60) {
                Some(end) => {
                    found.extend(roots(&after[..end]));
                    rest = &after[end + close.len_utf8()..];
                }
                None => rest = after,
            }
        }
    }
    found
}

fn rooted(text: &str) -> String {
    text.split_whitespace().map(|word| root(&word.to_lowercase())).collect::<Vec<_>>().join(" ")
}

/// The parts of a compound request, each a query of its own; short and simple requests stay whole.
pub fn parts(message: &str) -> Vec<String> {
    let message = message.trim();
    if message.split_whitespace().count() < LONG_REQUEST {
        return vec![message.to_owned()];
    }
    let mut parts: Vec<String> = vec![String::new()];
    for piece in message.split_inclusive(['.', '?', '!', ';', '\n']) {
        for (number, piece) in split_at_then(piece).into_iter().enumerate() {
            let sentence_goes_on = number == 0 && parts.last().is_some_and(|last| last.split_whitespace().count() < 5);
            match parts.last_mut() {
                Some(last) if sentence_goes_on => last.push_str(piece),
                _ => parts.push(piece.to_owned()),
            }
        }
    }
    let mut parts: Vec<String> = parts
        .into_iter()
        .map(|part| part.trim().to_owned())
        .filter(|part| part.split_whitespace().count() > 1)
        .collect();
    if parts.is_empty() || parts.len() == 1 {
        return vec![message.to_owned()];
    }
    if parts.len() > MOST_PARTS {
        let rest = parts.split_off(MOST_PARTS - 1).join(" ");
        parts.push(rest);
    }
    parts
}

fn split_at_then(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((at, length)) = [", then ", " and then ", ", and then "]
        .iter()
        .filter_map(|mark| rest.find(mark).map(|at| (at, mark.len())))
        .min()
    {
        found.push(&rest[..at]);
        rest = &rest[at + length..];
    }
    found.push(rest);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects that simple requests stay whole and compound ones are cut at their steps.
    #[test]
    fn compound_requests_have_parts() {
        assert_eq!(parts("Load the volume and show it."), ["Load the volume and show it."]);
        let long = "Load the CT series from the folder on my desktop and show it in the slice views, then segment the bones with a threshold of 250. After that export the segments as STL files into the same folder.";
        assert_eq!(parts(long).len(), 3, "{:?}", parts(long));
        assert!(parts(&"do this thing now. ".repeat(40)).len() <= MOST_PARTS);
    }

    /// Protects that stand-ins weigh less and serve the word that was said.
    #[test]
    fn words_of_people_lead_to_words_of_slicer() {
        let vocabulary = Vocabulary::open(None).expect("table");
        let ranking: Ranking =
            toml::from_str(crate::resources::text("knowledge/ranking.toml").unwrap_or_default()).expect("figures");
        let terms = vocabulary.query("How do I delete the landmark?", &ranking);
        let said = terms.iter().find(|term| term.text == root("landmark")).expect("said");
        let meant = terms.iter().find(|term| term.text == root("markups")).expect("meant");
        assert!(said.weight == 1.0 && meant.weight < 1.0 && said.group == meant.group);
        assert!(terms.iter().all(|term| term.text != "how"));
    }
}
