//! How well a recipe fits a piece of a message.
//!
//! Two questions are asked. How much of one phrasing does the message say (its words and its slots)? And how much of
//! the message does the recipe explain: by that phrasing, by what its slots took, by its other words? A word that nothing
//! explains, a number that no slot takes, a negation or a question that the recipe does not know pull the score down,
//! because a recipe that ignores part of what was said would do something else than what was asked.

use std::collections::{HashMap, HashSet};

use super::book::{BEHIND_SLOT, Entry, Phrasing, RecipeBook};
use super::lexicon::{Lexicon, Term, sequence_length};
use super::slots::{EarlierPart, Filling, Request, Source, fill};
use super::words::{Word, WordKind};
use crate::knowledge::{Risk, SlotKind};

/// Below this a recipe does not fit.
pub(super) const THRESHOLD: f64 = 0.60;
/// A recipe that deletes must fit better than one that shows.
const THRESHOLD_HIGH_RISK: f64 = 0.68;
/// What a slot of a phrasing weighs, against 1 for the most telling word.
const SLOT_WEIGHT: f64 = 0.35;
/// The same for slots whose value is a word of fixed meaning.
const WORD_SLOT_WEIGHT: f64 = 0.55;
/// An idle word of a phrasing that has no other ("are there any …").
const IDLE_WORD_WEIGHT: f64 = 0.25;
/// How much a word counts as explained that stands where a name would.
const MAYBE_NAME: f64 = 0.5;
/// What is left of the score when one of message and phrasing asks and the other does not.
const MOOD_FACTOR: f64 = 0.92;
/// What is left of the score when the word that the message opens with, mostly its verb, is not explained.
const UNKNOWN_ORDER_FACTOR: f64 = 0.8;
/// What is left of the score when the message has values but no word of the phrasing.
const NOTHING_LITERAL_FACTOR: f64 = 0.75;
/// What is left of the score when something of the scene is named and left aside.
const LEFT_NAME_FACTOR: f64 = 0.85;
/// What is left of the score when a number or a quoted text is left over.
const LOOSE_VALUE_FACTOR: f64 = 0.9;
/// What is left of the score when the message asks or denies what the phrasing does not.
const TURNED_FACTOR: f64 = 0.6;
/// What a phrasing loses when its words come in another order.
const ORDER_COST: f64 = 0.06;
/// Share of the score that says how much was said in so many words: it decides between a phrasing that has the words
/// and one that has slots.
const LITERAL_SHARE: f64 = 0.03;
/// A number or quoted text that no slot takes.
const LOOSE_VALUE_WEIGHT: f64 = 1.0;
/// How much a word counts as explained that the recipe knows, but not this phrasing of it.
const KNOWN_ELSEWHERE: f64 = 0.75;
/// Share of the score that retrieval adds.
const RETRIEVAL_SHARE: f64 = 0.05;
/// What a required slot costs that neither the scene nor the message can fill.
const IMPOSSIBLE_COST: f64 = 0.10;

/// A recipe that was tried on a piece of a message.
#[derive(Clone)]
pub(super) struct Match {
    /// Index of the entry in the book.
    pub entry: usize,
    pub score: f64,
    pub filling: Filling,
    /// Indices of the words that nothing explains.
    pub unexplained: Vec<usize>,
    /// Slots that the best phrasing has.
    pub phrasing_slots: Vec<String>,
    pub phrasing: usize,
}

impl Match {
    /// Whether the recipe may be used.
    pub fn fits(&self, book: &RecipeBook) -> bool {
        let high = book.entries[self.entry].recipe.risk == Risk::High;
        self.score >= if high { THRESHOLD_HIGH_RISK } else { THRESHOLD }
    }
}

/// Tries every recipe on a piece of the message, best first. `plausible` asks whether the scene can serve the recipe.
pub(super) fn rank(book: &RecipeBook, request: &Request, plausible: bool) -> Vec<Match> {
    let terms = own_terms(request);
    if terms.is_empty() && request.given.is_empty() {
        return Vec::new();
    }
    let retrieval = book.retrieval(&request.raw(request.range.0, request.range.1));
    let mut found: Vec<Match> =
        (0..book.entries.len()).map(|entry| try_entry(book, entry, request, &terms, &retrieval, plausible)).collect();
    found.sort_by(|a, b| {
        let risk = |found: &Match| book.entries[found.entry].recipe.risk;
        b.score.total_cmp(&a.score).then_with(|| risk(a).cmp(&risk(b))).then_with(|| a.entry.cmp(&b.entry))
    });
    found
}

/// The terms of the piece, with word indices of the whole message.
pub(super) fn own_terms(request: &Request) -> Vec<Term> {
    let (start, end) = request.range;
    let mut terms = Lexicon::shared().terms(&request.words[start..end]);
    for term in &mut terms {
        term.start += start;
        term.end += start;
    }
    terms
}

fn try_entry(
    book: &RecipeBook,
    index: usize,
    request: &Request,
    terms: &[Term],
    retrieval: &HashMap<String, f64>,
    plausible: bool,
) -> Match {
    let entry = &book.entries[index];
    let filling = fill(entry, request);
    let mut best =
        Match { entry: index, score: -1.0, filling, unexplained: Vec::new(), phrasing_slots: Vec::new(), phrasing: 0 };
    for (number, phrasing) in entry.phrasings.iter().enumerate() {
        let (score, unexplained) = compare(book, entry, phrasing, request, terms, &best.filling);
        if score > best.score {
            best.score = score;
            best.unexplained = unexplained;
            best.phrasing_slots.clone_from(&phrasing.slots);
            best.phrasing = number;
        }
    }
    let found = retrieval.get(&entry.recipe.id).copied().unwrap_or(0.0);
    best.score = best.score * (1.0 - RETRIEVAL_SHARE) + found * RETRIEVAL_SHARE;
    if plausible {
        let impossible = |name: &String| {
            best.filling
                .slots
                .get(name)
                .and_then(|filled| filled.question.as_ref())
                .is_some_and(|question| question.impossible)
        };
        if entry.recipe.slots.iter().any(|slot| impossible(&slot.name)) {
            best.score -= IMPOSSIBLE_COST;
        }
    }
    best
}

/// The score of one phrasing from 0 to 1, and the words that nothing explains.
fn compare(
    book: &RecipeBook,
    entry: &Entry,
    phrasing: &Phrasing,
    request: &Request,
    terms: &[Term],
    filling: &Filling,
) -> (f64, Vec<usize>) {
    let said: HashSet<&str> = terms.iter().map(|term| term.text.as_str()).collect();
    let mut phrasing_weight = 0.0;
    let mut matched = 0.0;
    let distinct: HashSet<&str> = phrasing.terms.iter().map(String::as_str).collect();
    for term in &distinct {
        let weight = book.weight(term);
        phrasing_weight += weight;
        if said.contains(term) {
            matched += weight;
        } else if !filling_says(entry, filling, term, request) {
            // A word of the same family elsewhere in the recipe is some evidence, not proof.
            continue;
        } else {
            matched += weight * 0.8;
        }
    }
    for idle in &phrasing.idle_words {
        phrasing_weight += IDLE_WORD_WEIGHT;
        if request.own_words().any(|(_, word)| word.text == *idle) {
            matched += IDLE_WORD_WEIGHT;
        }
    }
    let literal = matched;
    for name in &phrasing.slots {
        let weight = slot_weight(entry, name);
        phrasing_weight += weight;
        matched += weight * filling.slots.get(name).map_or(0.0, |filled| evidence(filled.source));
    }
    let mut recall = if phrasing_weight > 0.0 { matched / phrasing_weight } else { 0.0 };
    if phrasing.says_little {
        // "What is {node}" needs its node said, "what do I have here" all its words.
        let pointed = |name: &String| {
            filling
                .slots
                .get(name)
                .is_some_and(|filled| !matches!(filled.source, Source::Default | Source::Missing | Source::Open))
        };
        let missing = |name: &String| filling.slots.get(name).is_some_and(|filled| filled.source == Source::Missing);
        let enough = phrasing.slots.iter().any(pointed) && !phrasing.slots.iter().any(missing);
        recall *= if enough { 1.0 } else { recall * recall };
    }
    let (precision, unexplained) = explained(book, entry, &distinct, request, terms, filling);
    let order = 1.0 - ORDER_COST * inversions(&phrasing.terms, terms);
    // A question or a negation that the phrasing does not have turns the request into another.
    // One that it has counts only when the rest of it is said too.
    let all_said = distinct.iter().all(|term| said.contains(term));
    let turned = terms.iter().any(|term| {
        term.text.starts_with('?') && !(distinct.contains(term.text.as_str()) && all_said) && !took(filling, term)
    });
    let mut score = recall.powf(0.45) * precision.powf(0.55) * order;
    let said_word = |name: &String| {
        entry.recipe.slot(name).is_some_and(is_word_slot)
            && filling.slots.get(name).is_some_and(|filled| filled.source == Source::Said)
    };
    if literal <= 0.0 && !phrasing.terms.is_empty() && !phrasing.slots.iter().any(said_word) {
        score *= NOTHING_LITERAL_FACTOR;
    }
    if request.own_words().any(|(index, word)| is_loose(request, filling, index, word)) {
        score *= LOOSE_VALUE_FACTOR;
    }
    let leaves_name = request.names.iter().any(|(_, start, _)| unexplained.contains(start));
    if leaves_name {
        score *= LEFT_NAME_FACTOR;
    }
    if turned {
        score *= TURNED_FACTOR;
    }
    // An order is not a question, and the other way round.
    if asks(said.iter().copied()) != asks(distinct.iter().copied()) {
        score *= MOOD_FACTOR;
    }
    if terms.first().is_some_and(|first| unexplained.contains(&first.start)) {
        score *= UNKNOWN_ORDER_FACTOR;
    }
    (score * (1.0 - LITERAL_SHARE) + LITERAL_SHARE * (literal / 2.0).min(1.0), unexplained)
}

/// Whether a number or a quoted text is left over. What was asked about and answered anew may be.
fn is_loose(request: &Request, filling: &Filling, index: usize, word: &Word) -> bool {
    let is_value = matches!(word.kind, WordKind::Number { .. } | WordKind::Quoted | WordKind::Hex);
    is_value && filling.taken[index].is_none() && request.given.is_empty()
}

fn asks<'a>(mut terms: impl Iterator<Item = &'a str>) -> bool {
    terms.any(|term| matches!(term, "what" | "which" | "how" | "where"))
}

/// Whether slots took all words of a term.
fn took(filling: &Filling, term: &Term) -> bool {
    (term.start..term.end).all(|index| filling.taken[index].is_some())
}

/// Whether a word stands where the recipe's phrasings have the slot.
pub(super) fn stands_as(entry: &Entry, slot: &str, words: &[Word], filling: &Filling, index: usize) -> bool {
    let Some(anchors) = entry.anchors.get(slot) else { return false };
    // "A movie" is none of the scene.
    if index > 0 && matches!(words[index - 1].text.as_str(), "a" | "an") {
        return false;
    }
    let before = (0..index).rev().find(|before| words[*before].text != "the");
    let after = words.get(index + 1);
    let behind_slot = |before: usize| filling.taken[before].is_some() && anchors.before.contains(BEHIND_SLOT);
    before.is_some_and(|before| anchors.before.contains(&words[before].text) || behind_slot(before))
        && after.is_none_or(|word| anchors.after.contains(&word.text))
}

/// Whether a word that nothing explains could be the name of something that is not there: then the person is asked.
fn could_be_name(entry: &Entry, request: &Request, filling: &Filling, term: &Term) -> bool {
    let names = |slot: &&crate::knowledge::Slot| matches!(slot.kind, SlotKind::Node | SlotKind::Segment);
    let unsaid = |name: &str| filling.slots.get(name).is_some_and(|filled| filled.source != Source::Said);
    entry.recipe.risk != Risk::High
        && !term.text.starts_with('?')
        && entry.recipe.slots.iter().filter(names).any(|slot| {
            unsaid(&slot.name) && stands_as(entry, &slot.name, &request.words[..request.range.1], filling, term.start)
        })
}

/// Share of neighbouring words of the phrasing that the message says the other way round ("IJK to RAS").
fn inversions(phrasing: &[String], terms: &[Term]) -> f64 {
    let place = |wanted: &String| terms.iter().position(|term| term.text == *wanted);
    let (mut pairs, mut turned) = (0.0, 0.0);
    for pair in phrasing.windows(2) {
        if let (Some(first), Some(second)) = (place(&pair[0]), place(&pair[1])) {
            pairs += 1.0;
            turned += if first > second { 1.0 } else { 0.0 };
        }
    }
    if pairs > 0.0 { turned / pairs } else { 0.0 }
}

/// Whether a slot took a word that is this term ("grow" as a direction).
fn filling_says(entry: &Entry, filling: &Filling, term: &str, request: &Request) -> bool {
    let (start, end) = request.range;
    (start..end).any(|index| {
        let by_word_slot =
            filling.taken[index].as_ref().and_then(|name| entry.recipe.slot(name)).is_some_and(is_word_slot);
        by_word_slot && request.words[index].stem == term
    })
}

fn slot_weight(entry: &Entry, name: &str) -> f64 {
    if entry.recipe.slot(name).is_some_and(is_word_slot) { WORD_SLOT_WEIGHT } else { SLOT_WEIGHT }
}

fn is_word_slot(slot: &crate::knowledge::Slot) -> bool {
    use SlotKind::{Axis, Choice, Color, Layout, Orientation, Sample, View};
    matches!(slot.kind, Choice | Sample | Color | View | Layout | Axis | Orientation)
}

/// How much a filled slot speaks for the recipe.
fn evidence(source: Source) -> f64 {
    match source {
        Source::Said => 1.0,
        Source::Pointed | Source::Earlier => 0.9,
        Source::Default | Source::HandedOn => 0.6,
        Source::Missing => 0.2,
        Source::Open => 0.0,
    }
}

/// Which share of what was said the recipe explains, by weight.
fn explained(
    book: &RecipeBook,
    entry: &Entry,
    phrasing: &HashSet<&str>,
    request: &Request,
    terms: &[Term],
    filling: &Filling,
) -> (f64, Vec<usize>) {
    let mut total = 0.0;
    let mut good = 0.0;
    let mut unexplained = Vec::new();
    let mut maybe_names = 0.0;
    for term in terms {
        let weight = book.weight(&term.text);
        let taken = took(filling, term);
        let names_other = request.names.iter().any(|(_, start, end)| (*start..*end).contains(&term.start));
        let share = if phrasing.contains(term.text.as_str()) || taken {
            1.0
        } else if names_other || second_option(entry, filling, request, term) {
            // Something of the scene, or a second choice, that the recipe would leave aside.
            unexplained.extend(term.start..term.end);
            0.0
        } else if entry.terms.contains(&term.text) && !term.text.starts_with('?') {
            KNOWN_ELSEWHERE
        } else if request.earlier.iter().any(|earlier| earlier.value_stems.contains(&term.text)) {
            0.9
        } else {
            unexplained.extend(term.start..term.end);
            if could_be_name(entry, request, filling, term) {
                maybe_names += weight * MAYBE_NAME;
            }
            0.0
        };
        let weight = if names_other && share <= 0.0 { weight.max(1.0) } else { weight };
        total += weight;
        good += weight * share;
    }
    for (index, word) in request.own_words() {
        if is_loose(request, filling, index, word) {
            total += LOOSE_VALUE_WEIGHT;
            unexplained.push(index);
        }
    }
    // One name that is not there is asked about; more that is not explained is another request.
    if let (Some(first), Some(last)) = (unexplained.iter().min(), unexplained.iter().max())
        && last - first < 3
    {
        good += maybe_names;
    }
    let precision = if total > 0.0 { good / total } else { 1.0 };
    (precision, unexplained)
}

/// Whether a term is another option of a choice that is already made ("load MRHead and CTChest").
fn second_option(entry: &Entry, filling: &Filling, request: &Request, term: &Term) -> bool {
    entry.recipe.slots.iter().filter(|slot| matches!(slot.kind, SlotKind::Choice | SlotKind::Sample)).any(|slot| {
        let chosen = filling.slots.get(&slot.name).filter(|filled| filled.source == Source::Said);
        chosen.is_some_and(|chosen| {
            entry.options.get(&slot.name).into_iter().flatten().any(|(canonical, stems)| {
                *canonical != chosen.value.bare()
                    && sequence_length(&request.words[..request.range.1], term.start, stems)
                        == Some(term.end - term.start)
            })
        })
    })
}

/// What an earlier part tells a later one.
pub(super) fn as_earlier(book: &RecipeBook, found: &Match, request: &Request) -> EarlierPart {
    let entry = &book.entries[found.entry];
    let mut value_stems = Vec::new();
    for (index, word) in request.own_words() {
        let slot = found.filling.taken[index].as_ref().and_then(|name| entry.recipe.slot(name));
        let tells = slot.is_some_and(|slot| matches!(slot.kind, SlotKind::Choice | SlotKind::Sample | SlotKind::Text));
        if tells && !word.stem.is_empty() {
            value_stems.push(word.stem.clone());
        }
    }
    let is_input = |key: &&String| entry.recipe.slot(key).is_some_and(|slot| slot.kind == SlotKind::Node);
    let inputs = entry.recipe.provides.keys().filter(is_input).cloned().collect();
    EarlierPart { provides: entry.recipe.provides.clone(), inputs, value_stems }
}
