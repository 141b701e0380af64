//! All recipes, made ready for matching: the terms of each phrasing, how rare each term is, where slots stand.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use super::lexicon::{Lexicon, sequence_length, stems};
use super::words::{Word, WordKind, cut};
use crate::knowledge::chunks::recipe as recipe_chunks;
use crate::knowledge::recipe::{files, load, phrasing_slots};
use crate::knowledge::{KnowledgeError, KnowledgeIndex, Recipe, RecipeError, Slot, SlotKind};

/// Weight of a term that no recipe knows: as telling as a rare one, because it asks for something else.
const UNKNOWN_WEIGHT: f64 = 1.0;
/// Stands in [`Anchors::before`] for a slot right before the slot ("{direction} the {segment}").
pub(super) const BEHIND_SLOT: &str = "{}";
/// Least weight of a term, however common.
const LEAST_WEIGHT: f64 = 0.15;

/// The recipes of the built-in provider.
pub struct RecipeBook {
    pub(super) entries: Vec<Entry>,
    weights: HashMap<String, f64>,
    /// First words of phrasings that give an order ("segment", "show").
    verbs: HashSet<String>,
    /// Stems that a misspelt word may be corrected to.
    vocabulary: BTreeSet<String>,
    index: KnowledgeIndex,
}

/// A recipe with what matching needs of it.
pub(super) struct Entry {
    pub recipe: Recipe,
    pub phrasings: Vec<Phrasing>,
    /// Terms of title, phrasings, keywords and options.
    pub terms: HashSet<String>,
    /// Per slot, the words that stand directly before it in phrasings ("to", "from").
    pub anchors: BTreeMap<String, Anchors>,
    /// Per slot, its options with the stems of each wording.
    pub options: BTreeMap<String, Vec<(String, Vec<String>)>>,
}

/// A phrasing without its slots.
pub(super) struct Phrasing {
    pub text: String,
    pub terms: Vec<String>,
    /// When hardly a word of it has a meaning ("are there any {kind}"): the others, which then must be said.
    pub idle_words: Vec<String>,
    /// Whether that is so.
    pub says_little: bool,
    pub slots: Vec<String>,
}

/// The words around a slot in phrasings.
#[derive(Default)]
pub(super) struct Anchors {
    pub before: HashSet<String>,
    pub after: HashSet<String>,
    /// Position among the slots of the phrasings; smaller stands earlier.
    pub order: usize,
}

impl RecipeBook {
    /// The recipes of the program, with the person's own from `<data_folder>/resources/recipes/` in front of them, and
    /// what was wrong with files that had to be left out.
    ///
    /// # Errors
    /// When the index cannot be made.
    pub fn open(data_folder: Option<&Path>) -> Result<(Self, Vec<RecipeError>), KnowledgeError> {
        let (recipes, errors) = load(files(data_folder).into_iter());
        Ok((Self::new(recipes)?, errors))
    }

    /// A book of these recipes.
    ///
    /// # Errors
    /// When the index cannot be made.
    pub fn new(recipes: Vec<Recipe>) -> Result<Self, KnowledgeError> {
        let index = KnowledgeIndex::in_memory()?;
        for recipe in &recipes {
            index.add(&recipe_chunks(recipe))?;
        }
        let entries: Vec<Entry> = recipes.into_iter().map(Entry::new).collect();
        let weights = weights(&entries);
        let mut vocabulary: BTreeSet<String> = Lexicon::shared().known_stems().map(str::to_owned).collect();
        vocabulary.extend(weights.keys().cloned());
        for entry in &entries {
            vocabulary.extend(entry.options.values().flatten().flat_map(|(_, stems)| stems.iter().cloned()));
        }
        let verbs = entries.iter().flat_map(|entry| entry.phrasings.iter().filter_map(Phrasing::verb)).collect();
        Ok(Self { entries, weights, verbs, vocabulary, index })
    }

    /// The recipes, by id.
    pub fn recipes(&self) -> impl Iterator<Item = &Recipe> {
        self.entries.iter().map(|entry| &entry.recipe)
    }

    /// The recipe with this id.
    pub fn recipe(&self, id: &str) -> Option<&Recipe> {
        self.recipes().find(|recipe| recipe.id == id)
    }

    /// How telling a term is, from 0 to 1.
    pub(super) fn weight(&self, term: &str) -> f64 {
        self.weights.get(term).copied().unwrap_or(UNKNOWN_WEIGHT)
    }

    /// Whether any recipe uses the term.
    pub(super) fn knows(&self, term: &str) -> bool {
        self.weights.contains_key(term)
    }

    /// Whether the term opens an order.
    pub(super) fn is_verb(&self, term: &str) -> bool {
        self.verbs.contains(term)
    }

    /// For each recipe id, how well retrieval finds it for the message: 1 for the best, less for the others.
    pub(super) fn retrieval(&self, message: &str) -> HashMap<String, f64> {
        let mut found: HashMap<String, f64> = HashMap::new();
        let hits = match self.index.search(message, 20, None) {
            Ok(hits) => hits,
            Err(error) => {
                tracing::warn!(%error, "recipes are matched without the index");
                return found;
            }
        };
        let best = hits.first().map_or(1.0, |hit| hit.score.max(f64::EPSILON));
        for hit in hits {
            if let Some(recipe) = self.recipes().find(|recipe| recipe.path == hit.path) {
                let entry = found.entry(recipe.id.clone()).or_insert(0.0);
                *entry = entry.max((hit.score / best).clamp(0.0, 1.0));
            }
        }
        found
    }

    /// Cuts a message and corrects misspelt words: a word that nothing knows, close to exactly one that is known.
    pub(super) fn words(&self, message: &str, known_names: &[String]) -> Vec<Word> {
        let names: HashSet<String> = known_names.iter().flat_map(|name| stems(name)).collect();
        let mut words = cut(message);
        for word in &mut words {
            let known = word.kind != WordKind::Word
                || self.vocabulary.contains(&word.stem)
                || self.vocabulary.contains(&word.text)
                || names.contains(&word.stem)
                || word.text.contains('_');
            if !known && let Some(correction) = self.correction(&word.stem) {
                word.stem = correction;
            }
        }
        words
    }

    /// The one known stem that differs by a slip of the hand. Short words are left alone: too many real words (and
    /// body parts) are one letter apart.
    fn correction(&self, stem: &str) -> Option<String> {
        let length = stem.chars().count();
        if length < 6 {
            return None;
        }
        let allowed = if length >= 9 { 2 } else { 1 };
        let first = stem.chars().next()?;
        let mut best: Option<(usize, &String)> = None;
        let mut tie = false;
        for candidate in self.vocabulary.iter().filter(|known| known.len() >= 5 && known.starts_with(first)) {
            // A longer ending makes another word ("skeletonize"), a slip hardly changes the length.
            let distance = edit_distance(stem, candidate);
            if distance > allowed || candidate.chars().count().abs_diff(length) > 1 {
                continue;
            }
            match best {
                Some((other, _)) if other < distance => {}
                Some((other, _)) if other == distance => tie = true,
                _ => {
                    best = Some((distance, candidate));
                    tie = false;
                }
            }
        }
        best.filter(|_| !tie).map(|(_, candidate)| candidate.clone())
    }
}

impl Entry {
    fn new(recipe: Recipe) -> Self {
        let options: BTreeMap<String, Vec<(String, Vec<String>)>> =
            recipe.slots.iter().map(|slot| (slot.name.clone(), option_stems(slot))).collect();
        let phrasings: Vec<Phrasing> =
            recipe.phrasings.iter().map(|text| Phrasing::new(text, &recipe, &options)).collect();
        let mut terms: HashSet<String> = phrasings.iter().flat_map(|phrasing| phrasing.terms.iter().cloned()).collect();
        let lexicon = Lexicon::shared();
        for text in recipe.keywords.iter().chain(std::iter::once(&recipe.title)) {
            terms.extend(lexicon.terms(&cut(text)).into_iter().map(|term| term.text));
        }
        let anchors = anchors(&recipe);
        Self { phrasings, terms, anchors, options, recipe }
    }
}

impl Phrasing {
    fn new(text: &str, recipe: &Recipe, options: &BTreeMap<String, Vec<(String, Vec<String>)>>) -> Self {
        let mut slots: Vec<String> = phrasing_slots(text).into_iter().map(str::to_owned).collect();
        let plain: String = without_slots(text);
        let words = cut(&plain);
        // A literal option word ("make a bone segmentation") stands for its slot.
        let mut taken = vec![false; words.len()];
        for slot in recipe.slots.iter().filter(|slot| matches!(slot.kind, SlotKind::Choice | SlotKind::Sample)) {
            if slots.contains(&slot.name) {
                continue;
            }
            let wordings = options.get(&slot.name).map_or(&[][..], Vec::as_slice);
            let found = (0..words.len()).find_map(|index| {
                let longest = wordings.iter().filter_map(|(_, stems)| sequence_length(&words, index, stems)).max()?;
                Some((index, longest))
            });
            if let Some((index, length)) = found {
                taken[index..index + length].fill(true);
                slots.push(slot.name.clone());
            }
        }
        let terms: Vec<String> = Lexicon::shared()
            .terms(&words)
            .into_iter()
            .filter(|term| !(term.start..term.end).any(|index| taken[index]))
            .map(|term| term.text)
            .collect();
        // A single question word says little more than none.
        let says_little = terms.iter().all(|term| matches!(term.as_str(), "what" | "which" | "how"));
        let idle = |word: &&Word| word.kind == WordKind::Word && Lexicon::shared().is_stop(&word.text);
        let idle_words =
            if says_little { words.iter().filter(idle).map(|word| word.text.clone()).collect() } else { Vec::new() };
        Self { text: text.to_owned(), terms, idle_words, says_little, slots }
    }
}

impl Phrasing {
    /// The term that it opens with, if that gives an order rather than asks.
    fn verb(&self) -> Option<String> {
        let words = cut(&self.text);
        let first = words.first().filter(|word| word.kind == WordKind::Word)?;
        let term = Lexicon::shared().terms(&words).into_iter().next().filter(|term| term.start == 0)?;
        let asks = matches!(first.text.as_str(), "what" | "what's" | "how" | "which" | "where" | "a" | "the" | "i");
        let noun = self.terms.len() < 2 && self.slots.is_empty();
        (!asks && !noun && !term.text.starts_with('?')).then_some(term.text)
    }
}

/// The phrasing with each slot replaced by a mark, so that words on its two sides do not become neighbours.
fn without_slots(text: &str) -> String {
    let mut plain = String::new();
    let mut inside = false;
    for c in text.chars() {
        match c {
            '{' => {
                inside = true;
                plain.push_str(" | ");
            }
            '}' => inside = false,
            _ if !inside => plain.push(c),
            _ => {}
        }
    }
    plain
}

fn option_stems(slot: &Slot) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for (canonical, wordings) in &slot.options {
        for wording in wordings.iter().chain(std::iter::once(canonical)) {
            let sequence = stems(&wording.replace('_', " "));
            if !sequence.is_empty() && !found.contains(&(canonical.clone(), sequence.clone())) {
                found.push((canonical.clone(), sequence));
            }
        }
    }
    found.extend(super::slots::table_wordings(slot));
    found
}

fn anchors(recipe: &Recipe) -> BTreeMap<String, Anchors> {
    let mut found: BTreeMap<String, Anchors> = BTreeMap::new();
    for phrasing in &recipe.phrasings {
        let mut rest = phrasing.as_str();
        let mut order = 0;
        while let Some((before, behind)) = rest.split_once('{') {
            let Some((name, after)) = behind.split_once('}') else { break };
            let entry = found.entry(name.to_owned()).or_default();
            entry.order = entry.order.max(order);
            let left: Vec<Word> = cut(before)
                .into_iter()
                .rev()
                .filter(|word| !matches!(word.text.as_str(), "the" | "a" | "an"))
                .take_while(|word| word.kind == WordKind::Word)
                .take(2)
                .collect();
            if left.is_empty() && order > 0 {
                entry.before.insert(BEHIND_SLOT.to_owned());
            }
            entry.before.extend(left.first().map(|word| word.text.clone()));
            if let [last, first] = &left[..] {
                entry.before.insert(format!("{} {}", first.text, last.text));
            }
            let right = cut(after).into_iter().next();
            entry.after.extend(right.filter(|word| word.kind == WordKind::Word).map(|word| word.text));
            rest = after;
            order += 1;
        }
    }
    found
}

/// Inverse document frequency of each term over recipes, scaled to end at 1.
fn weights(entries: &[Entry]) -> HashMap<String, f64> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for entry in entries {
        for term in &entry.terms {
            *counts.entry(term).or_default() += 1;
        }
    }
    let scale = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let most = (scale(entries.len()) + 2.0).ln();
    counts
        .into_iter()
        .map(|(term, count)| {
            let weight = ((scale(entries.len()) + 2.0) / (scale(count) + 0.5)).ln() / most;
            (term.to_owned(), weight.clamp(LEAST_WEIGHT, 1.0))
        })
        .collect()
}

/// Number of inserted, deleted, changed or swapped letters between two words.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // Row i, column j: distance between the first i and the first j letters.
    let mut rows: Vec<Vec<usize>> = (0..=a.len()).map(|i| (i..=i + b.len()).collect()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects the distance that spelling correction rests on.
    #[test]
    fn slips_of_the_hand_are_near() {
        assert_eq!(edit_distance("treshold", "threshold"), 1);
        assert_eq!(edit_distance("thersholld", "threshold"), 2);
        assert_eq!(edit_distance("show", "show"), 0);
    }
}
