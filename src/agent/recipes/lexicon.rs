//! The words of the matcher: which mean the same, which mean nothing, which turn a request into a question.
//!
//! The tables are data (`synonyms.toml`), read once. A text becomes a list of *terms*: stems, with several words that
//! stand for one thing taken together, and each term knows the words it came from.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::OnceLock;

use serde::Deserialize;

use super::words::{Word, WordKind, stem};

const TABLES: &str = include_str!("synonyms.toml");

/// A unit of comparison: one or more words of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    pub text: String,
    /// Half-open range of word indices.
    pub start: usize,
    pub end: usize,
}

/// The tables, made ready for look-up.
pub struct Lexicon {
    /// Sequence of stems → the term that stands for it; longest first at each first stem.
    phrases: HashMap<String, Vec<(Vec<String>, String)>>,
    stop: HashSet<String>,
    /// Class → sequences of stems that name a node of it.
    classes: Vec<(String, Vec<Vec<String>>)>,
}

#[derive(Deserialize)]
struct Tables {
    words: BTreeMap<String, Vec<String>>,
    stop: Stop,
    questions: BTreeMap<String, Vec<String>>,
    classes: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct Stop {
    words: Vec<String>,
    #[serde(default)]
    phrases: Vec<String>,
}

impl Lexicon {
    /// The tables of the program.
    pub fn shared() -> &'static Self {
        static LEXICON: OnceLock<Lexicon> = OnceLock::new();
        LEXICON.get_or_init(|| match toml::from_str::<Tables>(TABLES) {
            Ok(tables) => Self::new(tables),
            Err(error) => {
                // The file is part of the program and a test reads it; without it words match only themselves.
                tracing::error!(%error, "synonyms.toml cannot be read");
                Self { phrases: HashMap::new(), stop: HashSet::new(), classes: Vec::new() }
            }
        })
    }

    fn new(tables: Tables) -> Self {
        let mut phrases: HashMap<String, Vec<(Vec<String>, String)>> = HashMap::new();
        let groups = tables.words.iter().map(|(first, others)| (stem(first), others));
        let questions = tables.questions.iter().map(|(marker, others)| (marker.clone(), others));
        let idle = [(String::new(), &tables.stop.phrases)];
        for (canonical, others) in groups.chain(questions).chain(idle) {
            for other in others {
                let sequence = stems(other);
                if let Some(first) = sequence.first().cloned() {
                    phrases.entry(first).or_default().push((sequence, canonical.clone()));
                }
            }
        }
        for list in phrases.values_mut() {
            list.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.0.cmp(&b.0)));
        }
        let stop = tables.stop.words.into_iter().collect();
        let classes = tables
            .classes
            .into_iter()
            .map(|(class, words)| (class, words.iter().map(|word| stems(word)).collect()))
            .collect();
        Self { phrases, stop, classes }
    }

    /// The terms of a text, in order. Numbers, quoted texts and marks are not terms.
    pub fn terms(&self, words: &[Word]) -> Vec<Term> {
        let mut terms = Vec::new();
        let mut index = 0;
        while index < words.len() {
            if words[index].kind != WordKind::Word {
                index += 1;
                continue;
            }
            if let Some((length, canonical)) = self.phrase_at(words, index) {
                if !canonical.is_empty() {
                    terms.push(Term { text: canonical, start: index, end: index + length });
                }
                index += length;
                continue;
            }
            if !self.is_stop(&words[index].text) {
                terms.push(Term { text: words[index].stem.clone(), start: index, end: index + 1 });
            }
            index += 1;
        }
        terms
    }

    fn phrase_at(&self, words: &[Word], index: usize) -> Option<(usize, String)> {
        let candidates = self.phrases.get(&words[index].stem)?;
        candidates.iter().find_map(|(sequence, canonical)| {
            let length = sequence_length(words, index, sequence)?;
            Some((length, canonical.clone()))
        })
    }

    /// Whether a word (lower-case) has no meaning of its own.
    pub fn is_stop(&self, word: &str) -> bool {
        self.stop.contains(word)
    }

    /// All stems that stand in the tables.
    pub fn known_stems(&self) -> impl Iterator<Item = &str> {
        let phrases = self.phrases.values().flatten().flat_map(|(sequence, canonical)| {
            sequence.iter().map(String::as_str).chain(std::iter::once(canonical.as_str()))
        });
        let classes = self.classes.iter().flat_map(|(_, words)| words.iter().flatten().map(String::as_str));
        phrases.chain(classes).chain(self.stop.iter().map(String::as_str))
    }

    /// Every place where a class is named: class and half-open range of words, the longest at each place.
    pub fn class_mentions(&'static self, words: &[Word]) -> Vec<(&'static str, usize, usize)> {
        let mut found: Vec<(&'static str, usize, usize)> = Vec::new();
        let mut index = 0;
        while index < words.len() {
            let best = self
                .classes
                .iter()
                .flat_map(|(class, names)| names.iter().map(move |name| (class, name)))
                .filter_map(|(class, name)| Some((class.as_str(), sequence_length(words, index, name)?)))
                .max_by_key(|(_, length)| *length);
            match best {
                Some((class, length)) => {
                    found.push((class, index, index + length));
                    index += length;
                }
                None => index += 1,
            }
        }
        found
    }
}

/// The stems of a piece of text.
pub fn stems(text: &str) -> Vec<String> {
    super::words::cut(text)
        .into_iter()
        .map(|word| if word.stem.is_empty() { word.text } else { word.stem })
        .filter(|stem| stem != "-" && stem != "/")
        .collect()
}

/// How many words from `index` on spell the sequence of stems; a hyphen or slash between two of them is skipped.
pub fn sequence_length(words: &[Word], index: usize, sequence: &[String]) -> Option<usize> {
    let mut at = index;
    for (position, wanted) in sequence.iter().enumerate() {
        if position > 0 && words.get(at).is_some_and(|word| word.is_mark('-') || word.is_mark('/')) {
            at += 1;
        }
        let word = words.get(at)?;
        let same = match word.kind {
            WordKind::Word => word.stem == *wanted,
            WordKind::Number { .. } => word.text == *wanted,
            _ => false,
        };
        if !same {
            return None;
        }
        at += 1;
    }
    (at > index).then_some(at - index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::recipes::words::cut;

    fn terms(text: &str) -> Vec<String> {
        Lexicon::shared().terms(&cut(text)).into_iter().map(|term| term.text).collect()
    }

    /// Protects the tables from an entry that cannot be read or that says two things at once.
    #[test]
    fn the_tables_are_read_and_unambiguous() {
        let tables: Tables = toml::from_str(TABLES).expect("synonyms.toml is TOML");
        let mut seen: HashMap<Vec<String>, String> = HashMap::new();
        for (canonical, others) in &tables.words {
            for other in others {
                let before = seen.insert(stems(other), canonical.clone());
                assert!(before.is_none() || before.as_ref() == Some(canonical), "`{other}` stands for two words");
            }
        }
    }

    /// Protects that different wordings meet and that questions and negations are seen.
    #[test]
    fn wordings_meet() {
        assert_eq!(terms("please display the segments"), terms("show me the segment"));
        assert_eq!(terms("in three dimensions"), terms("in 3D"));
        assert!(terms("How do I threshold?").contains(&"?howto".to_owned()));
        assert!(terms("don't delete it").contains(&"?not".to_owned()));
        assert_eq!(terms("could you do it"), Vec::<String>::new());
    }
}
