//! Fills the slots of one recipe from a piece of a message, the scene and what was made before.
//!
//! The order matters: texts that are introduced by a word ("called", "to") are taken first, so that a new name is never
//! read as a node, a colour or a number; then names of nodes and segments; then words with a fixed meaning; then
//! coordinates and numbers; at last what was not said: earlier results, defaults, and what must be asked.

mod named;
mod nodes;
mod numbers;
mod resolve;
mod texts;

use std::collections::BTreeMap;

use super::RecipeContext;
use super::book::Entry;
use super::value::SlotValue;
use super::words::{Word, WordKind};
use crate::knowledge::{Slot, SlotKind};
use crate::slicer::SceneSnapshot;

pub(super) use named::table_wordings;
pub(super) use nodes::{all_names, which_one};

/// What there is to fill slots from.
pub(super) struct Request<'a> {
    /// The whole message.
    pub message: &'a str,
    pub words: &'a [Word],
    /// Half-open range of the words that this part of the request consists of.
    pub range: (usize, usize),
    /// Where the whole message names classes of nodes: class and half-open range of words.
    pub classes: &'a [(&'static str, usize, usize)],
    /// Nodes and segments whose whole name this part spells, with the range of words.
    pub names: Vec<(SlotValue, usize, usize)>,
    pub scene: &'a SceneSnapshot,
    /// Earlier parts of the same request.
    pub earlier: &'a [EarlierPart],
    /// Results of earlier requests.
    pub context: &'a RecipeContext,
    /// Values that the person gave in answer to a question, by slot.
    pub given: &'a BTreeMap<String, SlotValue>,
}

impl Request<'_> {
    /// The message as written, from one word to another (half-open).
    pub fn raw(&self, start: usize, end: usize) -> String {
        if start >= end {
            return String::new();
        }
        self.message.get(self.words[start].start..self.words[end - 1].end).unwrap_or_default().to_owned()
    }

    /// The words of this part with their index.
    pub fn own_words(&self) -> impl DoubleEndedIterator<Item = (usize, &Word)> {
        (self.range.0..self.range.1).map(|index| (index, &self.words[index]))
    }
}

/// A part of the request that comes before this one.
#[derive(Debug, Clone)]
pub(super) struct EarlierPart {
    /// Key of `result` → class.
    pub provides: BTreeMap<String, String>,
    /// Keys that only hand on what the part was given.
    pub inputs: Vec<String>,
    /// Stems of the words that stood for its values: "the bone" in a later part is what it made.
    pub value_stems: Vec<String>,
}

/// How a slot came to its value; decides how much it speaks for the recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Said in the message, or given as the answer to a question.
    Said,
    /// Named by its class ("the model") or by a pronoun.
    Pointed,
    /// Made by an earlier part or an earlier request.
    Earlier,
    /// Only handed on by an earlier part, not made by it.
    HandedOn,
    Default,
    /// Optional and not said.
    Open,
    /// Must be asked.
    Missing,
}

/// A slot after filling.
#[derive(Debug, Clone)]
pub(super) struct Filled {
    pub value: SlotValue,
    pub source: Source,
    /// What to ask when it is missing.
    pub question: Option<Question>,
}

/// A question about a slot.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub text: String,
    pub candidates: Vec<SlotValue>,
    /// True when nothing in the scene could fill the slot.
    pub impossible: bool,
}

/// All slots of a recipe after filling.
#[derive(Debug, Clone)]
pub(super) struct Filling {
    pub slots: BTreeMap<String, Filled>,
    /// Per word of the message, the slot that took it.
    pub taken: Vec<Option<String>>,
}

impl Filling {
    fn put(&mut self, slot: &Slot, value: SlotValue, source: Source) {
        self.slots.insert(slot.name.clone(), Filled { value, source, question: None });
    }

    fn ask(&mut self, slot: &Slot, text: String, candidates: Vec<SlotValue>, impossible: bool) {
        let question = Some(Question { text, candidates, impossible });
        self.slots.insert(slot.name.clone(), Filled { value: SlotValue::Nothing, source: Source::Missing, question });
    }

    fn take(&mut self, slot: &Slot, start: usize, end: usize) {
        self.taken[start..end].fill(Some(slot.name.clone()));
    }

    fn is_free(&self, start: usize, end: usize) -> bool {
        self.taken[start..end].iter().all(Option::is_none)
    }

    fn has(&self, slot: &Slot) -> bool {
        self.slots.contains_key(&slot.name)
    }
}

/// Fills every slot of the recipe.
pub(super) fn fill(entry: &Entry, request: &Request) -> Filling {
    let mut filling = Filling { slots: BTreeMap::new(), taken: vec![None; request.words.len()] };
    for slot in &entry.recipe.slots {
        if let Some(value) = request.given.get(&slot.name) {
            filling.put(slot, value.clone(), Source::Said);
        }
    }
    texts::fill_introduced(entry, request, &mut filling);
    nodes::fill_named(entry, request, &mut filling);
    named::fill(entry, request, &mut filling);
    numbers::fill_points(entry, request, &mut filling);
    numbers::fill(entry, request, &mut filling);
    texts::fill_trailing(entry, request, &mut filling);
    resolve::fill(entry, request, &mut filling);
    filling
}

/// Everything in the scene that could fill a node or segment slot.
pub(super) fn all_candidates(slot: &Slot, scene: &SceneSnapshot) -> Vec<SlotValue> {
    match slot.kind {
        SlotKind::Segment => nodes::segments(scene),
        SlotKind::Node => nodes::candidates(slot, scene).into_iter().map(nodes::value).collect(),
        _ => Vec::new(),
    }
}

/// The value that a reply of the person gives to one slot, read as freely as a reply may be worded. `None` when it says
/// nothing that fits.
pub(super) fn value_from_reply(
    entry: &Entry,
    slot: &Slot,
    request: &Request,
    candidates: &[SlotValue],
) -> Option<SlotValue> {
    if let Some(value) = chosen(request, candidates) {
        return Some(value);
    }
    let filling = fill(entry, request);
    let filled = filling.slots.get(&slot.name)?;
    if filled.source == Source::Said {
        return Some(filled.value.clone());
    }
    match slot.kind {
        SlotKind::Text => texts::whole(request).map(SlotValue::Text),
        _ => None,
    }
}

/// "The second one", "2" or a name, said of a list of candidates.
fn chosen(request: &Request, candidates: &[SlotValue]) -> Option<SlotValue> {
    const ORDINALS: &[&str] = &["first", "second", "third", "fourth", "fifth", "sixth"];
    let named: Vec<&SlotValue> = candidates
        .iter()
        .filter(|candidate| {
            nodes::name_span(&candidate.bare(), request).is_some()
                || candidate.id().is_some_and(|id| request.own_words().any(|(_, word)| word.text == id.to_lowercase()))
        })
        .collect();
    if let Some(longest) = named.iter().max_by_key(|candidate| candidate.bare().len()) {
        return Some((*longest).clone());
    }
    let content: Vec<&Word> =
        request.own_words().map(|(_, word)| word).filter(|word| !matches!(word.kind, WordKind::Mark(_))).collect();
    if content.len() > 4 {
        return None;
    }
    content.iter().find_map(|word| {
        let ordinal = ORDINALS.iter().position(|ordinal| word.text == *ordinal);
        let last = (word.text == "last").then(|| candidates.len().checked_sub(1)).flatten();
        let number = word.number().filter(|value| value.fract() == 0.0 && *value >= 1.0 && content.len() == 1);
        let number = number.and_then(|value| {
            candidates.iter().enumerate().map(|(index, _)| index).find(|index| index_equals(*index, value))
        });
        ordinal.or(last).or(number).and_then(|index| candidates.get(index)).cloned()
    })
}

fn index_equals(index: usize, one_based: f64) -> bool {
    u32::try_from(index + 1).is_ok_and(|number| (f64::from(number) - one_based).abs() < 0.5)
}
