//! Requests that take several recipes: "load the chest CT, segment the bone and show it in 3D".
//!
//! The message is cut wherever it could go on to something new, and neighbouring pieces are joined in every way. What
//! fits best with the fewest parts wins; one recipe for the whole message is simply the case of one part. If a part of
//! the message fits nothing, nothing is done: half of a request is not what was asked.

use std::collections::BTreeMap;

use super::RecipeContext;
use super::book::RecipeBook;
use super::lexicon::{Lexicon, Term};
use super::matching::{Match, as_earlier, own_terms, rank};
use super::slots::{EarlierPart, Request, all_names};
use super::value::SlotValue;
use super::words::{Word, WordKind};
use crate::slicer::SceneSnapshot;

/// More pieces than this are joined from the end.
const MOST_PIECES: usize = 8;
/// What each further part must gain to be worth it.
const PART_COST: f64 = 0.05;
/// What it costs one recipe to reach over a place where a new order begins.
const REACH_COST: f64 = 0.15;

/// What the whole message is matched against.
pub(super) struct Whole<'a> {
    pub message: &'a str,
    pub words: &'a [Word],
    /// Where classes of nodes are named.
    pub classes: &'a [(&'static str, usize, usize)],
    pub scene: &'a SceneSnapshot,
    pub context: &'a RecipeContext,
    /// Answers to questions, by part and slot.
    pub given: &'a BTreeMap<usize, BTreeMap<String, SlotValue>>,
}

impl<'a> Whole<'a> {
    /// The request for one part.
    pub fn request(
        &self,
        range: (usize, usize),
        earlier: &'a [EarlierPart],
        given: &'a BTreeMap<String, SlotValue>,
    ) -> Request<'a> {
        let Self { message, words, classes, scene, context, .. } = *self;
        let mut request = Request { message, words, range, classes, names: Vec::new(), scene, earlier, context, given };
        request.names = all_names(&request);
        request
    }
}

/// The parts of the message with their recipes, or `None` when it cannot be covered.
pub(super) fn cover(book: &RecipeBook, whole: &Whole) -> Option<Vec<Match>> {
    let pieces = pieces(whole);
    let count = pieces.len();
    if count == 0 {
        return None;
    }
    let none = BTreeMap::new();
    // Best text score of each run of pieces, judged without what earlier parts would give.
    let mut scores = vec![vec![None; count + 1]; count];
    for (start, row) in scores.iter_mut().enumerate() {
        for end in start + 1..=count {
            let range = (pieces[start].0, pieces[end - 1].1);
            let request = whole.request(range, &[], &none);
            let best = rank(book, &request, false).into_iter().find(|found| found.fits(book));
            row[end] = best.map(|found| {
                let phrasing = &book.entries[found.entry].phrasings[found.phrasing];
                // "… and call it {name}" is one order with two verbs.
                let known = if phrasing.text.contains(" and ") { &phrasing.terms[..] } else { &[] };
                let reached =
                    (start + 1..end).filter(|piece| begins_order(book, whole, &pieces, *piece, known)).count();
                let cost = REACH_COST * u32::try_from(reached).map_or(f64::INFINITY, f64::from);
                (found.score - cost, weight(book, &request))
            });
        }
    }
    let cuts = best_cuts(&scores)?;
    assign(book, whole, &pieces, &cuts)
}

/// Whether a piece clearly starts something new: after "then" or the end of a sentence, or with a verb that gives
/// an order and is not `known` to belong to the phrasing.
fn begins_order(book: &RecipeBook, whole: &Whole, pieces: &[(usize, usize)], piece: usize, known: &[String]) -> bool {
    let (start, end) = pieces[piece];
    let between = &whole.words[pieces[piece - 1].1..start];
    let parted = between.iter().any(|word| {
        word.is("then") || word.is("afterwards") || matches!(word.kind, WordKind::Mark(';' | '.' | '!' | '?'))
    });
    let none = BTreeMap::new();
    let verb = opening_verb(book, &whole.request((start, end), &[], &none));
    parted || verb.is_some_and(|term| !known.contains(&term.text))
}

/// The verb that gives an order at the beginning of a part, if there is one ("delete", but not "called").
pub(super) fn opening_verb(book: &RecipeBook, request: &Request) -> Option<Term> {
    let first = own_terms(request).into_iter().next()?;
    let idle = (request.range.0..first.start).all(|index| Lexicon::shared().is_stop(&request.words[index].text));
    (idle && book.is_verb(&first.text) && !request.words[first.start].text.ends_with("ed")).then_some(first)
}

/// The message with the verb of each part repeated where it was left out ("load MRHead and CTChest"), if it was.
pub(super) fn with_verbs(book: &RecipeBook, whole: &Whole) -> Option<String> {
    let none = BTreeMap::new();
    let mut verb: Option<String> = None;
    let mut text = String::new();
    let mut changed = false;
    let mut at = 0;
    for (start, end) in pieces(whole) {
        let request = whole.request((start, end), &[], &none);
        text.push_str(whole.message.get(at..whole.words[start].start)?);
        match (opening_verb(book, &request), &verb) {
            (Some(term), _) => verb = Some(request.raw(term.start, term.end)),
            (None, Some(verb)) => {
                text.push_str(verb);
                text.push(' ');
                changed = true;
            }
            (None, None) => {}
        }
        text.push_str(&request.raw(start, end));
        at = whole.words[end - 1].end;
    }
    text.push_str(whole.message.get(at..)?);
    changed.then_some(text)
}

/// Half-open word ranges of the pieces that the message could be cut into.
fn pieces(whole: &Whole) -> Vec<(usize, usize)> {
    let words = whole.words;
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut start = 0;
    let mut depth = 0i32;
    for (index, word) in words.iter().enumerate() {
        match word.kind {
            WordKind::Mark('(' | '[') => depth += 1,
            WordKind::Mark(')' | ']') => depth -= 1,
            _ => {}
        }
        let between_numbers = index > 0
            && words[index - 1].number().is_some()
            && words.get(index + 1).is_some_and(|next| next.number().is_some());
        let glued = words.get(index + 1).is_some_and(|next| next.start == word.end);
        let cuts = match word.kind {
            WordKind::Mark('.') => !glued,
            WordKind::Mark(',' | ';' | '!' | '?' | '&') => true,
            WordKind::Word => matches!(word.text.as_str(), "and" | "then" | "afterwards" | "plus"),
            _ => false,
        };
        if cuts && depth <= 0 && !between_numbers {
            push_piece(whole, &mut found, start, index);
            start = index + 1;
        }
    }
    push_piece(whole, &mut found, start, words.len());
    while found.len() > MOST_PIECES {
        let last = found.pop().map_or(words.len(), |(_, end)| end);
        if let Some(before) = found.last_mut() {
            before.1 = last;
        }
    }
    if found.is_empty() && !words.is_empty() { vec![(0, words.len())] } else { found }
}

/// A piece without meaning of its own ("please", "the") stays with the one before it.
fn push_piece(whole: &Whole, found: &mut Vec<(usize, usize)>, start: usize, end: usize) {
    if start >= end {
        return;
    }
    let none = BTreeMap::new();
    let request = whole.request((start, end), &[], &none);
    let has_value = whole.words[start..end].iter().any(|word| !matches!(word.kind, WordKind::Word | WordKind::Mark(_)));
    if own_terms(&request).is_empty() && !has_value {
        if let Some(before) = found.last_mut() {
            before.1 = end;
        }
        return;
    }
    found.push((start, end));
}

/// How much a run of pieces says.
fn weight(book: &RecipeBook, request: &Request) -> f64 {
    own_terms(request).iter().map(|term| book.weight(&term.text)).sum::<f64>().max(0.1)
}

/// Sum of weighted scores, sum of weights, and the runs of pieces that gave them.
type Cuts = (f64, f64, Vec<(usize, usize)>);

/// The runs of pieces with the best mean score, fewest parts preferred, as half-open ranges of piece indices.
fn best_cuts(scores: &[Vec<Option<(f64, f64)>>]) -> Option<Vec<(usize, usize)>> {
    let count = scores.len();
    // Per number of pieces: the best way to cover them.
    let mut best: Vec<Option<Cuts>> = vec![None; count + 1];
    best[0] = Some((0.0, 0.0, Vec::new()));
    let value = |score: f64, weight: f64, parts: usize| {
        let further = u32::try_from(parts.saturating_sub(1)).map_or(f64::INFINITY, f64::from);
        if weight > 0.0 { score / weight - PART_COST * further } else { 0.0 }
    };
    for end in 1..=count {
        for start in 0..end {
            let (Some((score, weight, runs)), Some((own, own_weight))) = (best[start].clone(), scores[start][end])
            else {
                continue;
            };
            let (score, weight) = (score + own * own_weight, weight + own_weight);
            let mut runs = runs;
            runs.push((start, end));
            let better = best[end].as_ref().is_none_or(|(other, other_weight, other_runs)| {
                value(score, weight, runs.len()) > value(*other, *other_weight, other_runs.len())
            });
            if better {
                best[end] = Some((score, weight, runs));
            }
        }
    }
    best[count].take().map(|(_, _, runs)| runs)
}

/// Gives each part its recipe, from left to right, now with what the parts before it make.
fn assign(book: &RecipeBook, whole: &Whole, pieces: &[(usize, usize)], cuts: &[(usize, usize)]) -> Option<Vec<Match>> {
    let mut parts: Vec<Match> = Vec::new();
    let mut earlier: Vec<EarlierPart> = Vec::new();
    let none = BTreeMap::new();
    for (part, (start, end)) in cuts.iter().enumerate() {
        let range = (pieces[*start].0, pieces[*end - 1].1);
        let given = whole.given.get(&part).unwrap_or(&none);
        let (found, told) = {
            let request = Whole { ..*whole }.request(range, &earlier, given);
            let found = best_of(rank(book, &request, true), book)?;
            let told = as_earlier(book, &found, &request);
            (found, told)
        };
        parts.push(found);
        earlier.push(told);
    }
    Some(parts)
}

/// The best match that fits; the cost of an empty scene may reorder matches but not turn a fitting one away.
fn best_of(ranked: Vec<Match>, book: &RecipeBook) -> Option<Match> {
    let first = ranked.into_iter().next()?;
    let slack = Match { score: first.score + 0.11, ..first.clone() };
    let impossible =
        first.filling.slots.values().any(|filled| filled.question.as_ref().is_some_and(|question| question.impossible));
    (first.fits(book) || (impossible && slack.fits(book))).then_some(first)
}
