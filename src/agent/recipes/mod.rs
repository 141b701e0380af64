//! The provider "Built-in recipes": from a message to a plan and a program without any model.
//!
//! A message is cut into parts, each part is matched to a recipe, the recipe's slots are filled from the message, the
//! scene and what was made before, and its templates are rendered. What is not sure is asked; what fits no recipe is
//! said to fit none. Everything here is a function of its arguments: the same message in the same scene gives the same
//! program.

mod book;
mod compound;
mod lexicon;
mod matching;
mod render;
mod slots;
mod value;
mod words;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use book::RecipeBook;
pub use render::final_answer;
pub use value::SlotValue;

use crate::agent::Plan;
use crate::knowledge::SlotKind;
use crate::slicer::{NodeSummary, SceneSnapshot};
use compound::{Whole, cover, opening_verb, with_verbs};
use lexicon::Lexicon;
use matching::{Match, rank, stands_as};

/// What the provider says to a message.
#[derive(Debug, Clone, PartialEq)]
pub enum RecipeAnswer {
    /// A plan and a program whose value is the list of the parts' results.
    Program {
        plan: Plan,
        code: String,
        parts: Vec<RecipePart>,
        /// Paths of the recipes.
        evidence: Vec<String>,
    },
    /// Something is open. The next message fills it: hand `pending` back with it.
    Ask { question: String, recipe: String, slot: String, pending: PendingRecipe },
    /// No recipe fits.
    NoMatch {
        /// Title and an example of what to say, nearest first.
        nearest: Vec<(String, String)>,
    },
}

/// One recipe of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipePart {
    /// Recipe id.
    pub recipe: String,
    /// Slots as people read them.
    pub slots: BTreeMap<String, String>,
}

/// A request that waits for the answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingRecipe {
    /// The request as it was made.
    pub message: String,
    /// What was answered so far, by part and slot.
    pub given: BTreeMap<usize, BTreeMap<String, SlotValue>>,
    pub part: usize,
    pub recipe: String,
    pub slot: String,
    pub question: String,
    /// What the person may choose from, in the order of the question.
    pub candidates: Vec<SlotValue>,
}

/// What earlier requests of the conversation made, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecipeContext {
    pub earlier: Vec<EarlierResult>,
}

/// The result of one recipe that ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EarlierResult {
    pub recipe: String,
    /// What the code left in `result`.
    pub result: serde_json::Value,
}

impl RecipeContext {
    /// Adds what a program did; `value` is the run's value, the list of results.
    pub fn push(&mut self, parts: &[RecipePart], value: &serde_json::Value) {
        for (index, part) in parts.iter().enumerate() {
            if let Some(result) = value.get(index) {
                self.earlier.push(EarlierResult { recipe: part.recipe.clone(), result: result.clone() });
            }
        }
    }

    /// The newest node that a result names, that is still in the scene, and that is `wanted`.
    fn newest_node<'a>(
        &self,
        scene: &'a SceneSnapshot,
        wanted: impl Fn(&NodeSummary) -> bool,
    ) -> Option<&'a NodeSummary> {
        self.earlier.iter().rev().find_map(|earlier| {
            let values = earlier.result.as_object()?.values();
            values.filter_map(|value| scene.node(value.as_str()?)).find(|node| wanted(node))
        })
    }

    /// The segment that the newest result with a segment names, if the scene still has it.
    fn newest_segment(&self, scene: &SceneSnapshot) -> Option<SlotValue> {
        self.earlier.iter().rev().find_map(|earlier| {
            let id = earlier.result.get("segment")?.as_str()?;
            let node = scene.node(earlier.result.get("segmentation")?.as_str()?)?;
            let segment = node.content.segments.as_ref()?.iter().find(|segment| segment.id == id)?;
            Some(SlotValue::Segment { id: id.to_owned(), name: segment.name.clone(), segmentation: node.id.clone() })
        })
    }
}

/// Replies that drop the question.
const CANCEL: &[&str] =
    &["cancel", "never mind", "nevermind", "forget it", "stop", "none", "no", "nothing", "abort", "leave it"];

/// Answers a message. `pending` is the open question of the turn before, if there is one.
pub fn answer(
    message: &str,
    scene: &SceneSnapshot,
    pending: Option<&PendingRecipe>,
    context: &RecipeContext,
    recipes: &RecipeBook,
) -> RecipeAnswer {
    match pending {
        Some(pending) => reply(message, scene, pending, context, recipes),
        None => fresh(message, scene, &BTreeMap::new(), context, recipes),
    }
}

/// A message that answers a question, or turns to something else.
fn reply(
    message: &str,
    scene: &SceneSnapshot,
    pending: &PendingRecipe,
    context: &RecipeContext,
    book: &RecipeBook,
) -> RecipeAnswer {
    let said = message.trim().trim_end_matches(['.', '!']).to_lowercase();
    let offered = pending.candidates.iter().any(|candidate| candidate.bare().to_lowercase() == said);
    if CANCEL.contains(&said.as_str()) && !offered {
        return RecipeAnswer::NoMatch { nearest: Vec::new() };
    }
    let words = book.words(message, &names(scene));
    let nothing = BTreeMap::new();
    let classes = Lexicon::shared().class_mentions(&words);
    let whole = Whole { message, words: &words, classes: &classes, scene, context, given: &BTreeMap::new() };
    let request = whole.request((0, words.len()), &[], &nothing);
    let entry = book.entries.iter().find(|entry| entry.recipe.id == pending.recipe);
    let slot = entry.and_then(|entry| Some((entry, entry.recipe.slot(&pending.slot)?)));
    let value = slot.and_then(|(entry, slot)| slots::value_from_reply(entry, slot, &request, &pending.candidates));
    // A whole new request is not an answer, even if a word of it would fit.
    let is_offer = value.as_ref().is_some_and(|value| pending.candidates.contains(value));
    let answers = is_offer && opening_verb(book, &request).is_none();
    let other = (!answers && (words.len() > 2 || value.is_none()))
        .then(|| fresh(message, scene, &BTreeMap::new(), context, book));
    let turned = matches!(&other, Some(RecipeAnswer::Program { .. } | RecipeAnswer::Ask { .. }));
    let same_recipe = matches!(&other, Some(RecipeAnswer::Ask { recipe, .. }) if *recipe == pending.recipe);
    match (value, other) {
        (Some(value), other) if !turned || same_recipe || other.is_none() => {
            let mut given = pending.given.clone();
            given.entry(pending.part).or_default().insert(pending.slot.clone(), value);
            fresh(&pending.message, scene, &given, context, book)
        }
        (_, Some(other)) if turned => other,
        _ => RecipeAnswer::Ask {
            question: pending.question.clone(),
            recipe: pending.recipe.clone(),
            slot: pending.slot.clone(),
            pending: pending.clone(),
        },
    }
}

fn fresh(
    message: &str,
    scene: &SceneSnapshot,
    given: &BTreeMap<usize, BTreeMap<String, SlotValue>>,
    context: &RecipeContext,
    book: &RecipeBook,
) -> RecipeAnswer {
    let words = book.words(message, &names(scene));
    let classes = Lexicon::shared().class_mentions(&words);
    let whole = Whole { message, words: &words, classes: &classes, scene, context, given };
    let Some(parts) = cover(book, &whole) else {
        // "Load MRHead and CTChest" leaves a verb out; with it repeated the parts may be clear.
        return match with_verbs(book, &whole).map(|longer| fresh_once(&longer, scene, given, context, book)) {
            Some(found @ RecipeAnswer::Program { .. }) => found,
            _ => RecipeAnswer::NoMatch { nearest: nearest(book, &whole) },
        };
    };
    understood(&whole, &parts, book)
}

/// A message that is taken as it is.
fn fresh_once(
    message: &str,
    scene: &SceneSnapshot,
    given: &BTreeMap<usize, BTreeMap<String, SlotValue>>,
    context: &RecipeContext,
    book: &RecipeBook,
) -> RecipeAnswer {
    let words = book.words(message, &names(scene));
    let classes = Lexicon::shared().class_mentions(&words);
    let whole = Whole { message, words: &words, classes: &classes, scene, context, given };
    match cover(book, &whole) {
        Some(parts) => understood(&whole, &parts, book),
        None => RecipeAnswer::NoMatch { nearest: Vec::new() },
    }
}

/// The program of the parts, or the first thing that must be asked.
fn understood(whole: &Whole, parts: &[Match], book: &RecipeBook) -> RecipeAnswer {
    for (index, part) in parts.iter().enumerate() {
        if let Some(ask) = question(book, whole, index, part) {
            return ask;
        }
    }
    let filled: Vec<_> = parts.iter().map(|part| (&book.entries[part.entry].recipe, &part.filling)).collect();
    let plan = render::joined(filled.iter().map(|(recipe, filling)| render::plan(recipe, filling)).collect());
    let mut evidence: Vec<String> = Vec::new();
    for (recipe, _) in &filled {
        if !evidence.contains(&recipe.path) {
            evidence.push(recipe.path.clone());
        }
    }
    RecipeAnswer::Program {
        plan,
        code: render::code(&filled),
        parts: filled.iter().map(|(recipe, filling)| render::part(recipe, filling)).collect(),
        evidence,
    }
}

/// The first open slot of a part as a question.
fn question(book: &RecipeBook, whole: &Whole, index: usize, part: &Match) -> Option<RecipeAnswer> {
    let recipe = &book.entries[part.entry].recipe;
    let (slot, text, candidates) = unknown_name(book, whole, part).or_else(|| {
        recipe.slots.iter().find_map(|slot| {
            let question = part.filling.slots.get(&slot.name)?.question.clone()?;
            Some((slot.name.clone(), question.text, question.candidates))
        })
    })?;
    let pending = PendingRecipe {
        message: whole.message.to_owned(),
        given: whole.given.clone(),
        part: index,
        recipe: recipe.id.clone(),
        slot: slot.clone(),
        question: text.clone(),
        candidates,
    };
    Some(RecipeAnswer::Ask { question: text, recipe: recipe.id.clone(), slot, pending })
}

/// "Show the liver in 3D" when nothing is called liver: the default would show something else, so it is asked.
fn unknown_name(book: &RecipeBook, whole: &Whole, part: &Match) -> Option<(String, String, Vec<SlotValue>)> {
    let recipe = &book.entries[part.entry].recipe;
    let in_place = |slot: &crate::knowledge::Slot, index| {
        stands_as(&book.entries[part.entry], &slot.name, whole.words, &part.filling, index)
    };
    let unknown_for = |slot: &crate::knowledge::Slot| -> Vec<usize> {
        let could_be_name = |index: &usize| {
            let word = &whole.words[*index];
            let plain = word.kind == words::WordKind::Word && word.text.chars().count() > 1;
            word.kind == words::WordKind::Quoted || (plain && (!book.knows(&word.stem) || in_place(slot, *index)))
        };
        part.unexplained.iter().copied().filter(could_be_name).collect()
    };
    let (slot, unknown) = recipe.slots.iter().find_map(|slot| {
        let unsaid = part.filling.slots.get(&slot.name).is_some_and(|filled| filled.source != slots::Source::Said);
        let given = whole.given.values().any(|given| given.contains_key(&slot.name));
        let names = matches!(slot.kind, SlotKind::Node | SlotKind::Segment);
        let named = part.phrasing_slots.contains(&slot.name);
        let unknown = if names && unsaid && !given { unknown_for(slot) } else { Vec::new() };
        let placed = unknown.iter().any(|index| in_place(slot, *index));
        (!unknown.is_empty() && (named || placed)).then_some((slot, unknown))
    })?;
    let unknown: Vec<&str> = unknown.into_iter().map(|index| whole.words[index].text.as_str()).collect();
    let candidates = slots::all_candidates(slot, whole.scene);
    if candidates.is_empty() {
        return None;
    }
    let said = unknown.join(" ");
    let text = format!("Nothing here is called \"{said}\". {}", slots::which_one(slot, &candidates));
    Some((slot.name.clone(), text, candidates))
}

/// How the best recipes fit a message taken as one part: for finding out why a wording is not understood.
pub fn explain(message: &str, scene: &SceneSnapshot, book: &RecipeBook) -> Vec<String> {
    let words = book.words(message, &names(scene));
    let classes = Lexicon::shared().class_mentions(&words);
    let (context, given, nothing) = (RecipeContext::default(), BTreeMap::new(), BTreeMap::new());
    let whole = Whole { message, words: &words, classes: &classes, scene, context: &context, given: &given };
    let request = whole.request((0, words.len()), &[], &nothing);
    let describe = |found: Match| {
        let entry = &book.entries[found.entry];
        let unexplained: Vec<&str> = found.unexplained.iter().map(|index| words[*index].text.as_str()).collect();
        let phrasing = &entry.phrasings[found.phrasing].text;
        format!("{:.2} {} “{phrasing}”, not explained: {}", found.score, entry.recipe.id, unexplained.join(", "))
    };
    rank(book, &request, true).into_iter().take(5).map(describe).collect()
}

/// The three recipes that come nearest, with something to say that works.
fn nearest(book: &RecipeBook, whole: &Whole) -> Vec<(String, String)> {
    let nothing = BTreeMap::new();
    let request = whole.request((0, whole.words.len()), &[], &nothing);
    rank(book, &request, false)
        .into_iter()
        .take(3)
        .map(|found| {
            let entry = &book.entries[found.entry];
            (entry.recipe.title.clone(), example(&entry.recipe, &entry.phrasings[found.phrasing].text))
        })
        .collect()
}

/// A phrasing with its slots written as a person would say them.
fn example(recipe: &crate::knowledge::Recipe, phrasing: &str) -> String {
    let mut text = phrasing.to_owned();
    for slot in &recipe.slots {
        let said = match slot.kind {
            SlotKind::Choice | SlotKind::Sample => {
                slot.options.values().next().and_then(|words| words.first()).cloned().unwrap_or_default()
            }
            SlotKind::Number | SlotKind::Integer => number_example(slot),
            SlotKind::Color => "red".to_owned(),
            SlotKind::Point | SlotKind::Points => "(10, 20, -30)".to_owned(),
            SlotKind::Text => "\"My name\"".to_owned(),
            SlotKind::Segment => "segment".to_owned(),
            SlotKind::Node => value::class_words(slot.class.as_deref().unwrap_or_default()),
            SlotKind::View => "axial".to_owned(),
            SlotKind::Layout => "four-up".to_owned(),
            SlotKind::Axis => "anterior".to_owned(),
            SlotKind::Orientation => "sagittal".to_owned(),
            SlotKind::Flag => "on".to_owned(),
        };
        text = text.replace(&format!("{{{}}}", slot.name), &said);
    }
    text
}

/// The default, or a round number inside the allowed range.
fn number_example(slot: &crate::knowledge::Slot) -> String {
    if let Some(default) = &slot.default {
        return default.to_string();
    }
    let (low, high) = (slot.minimum.unwrap_or(f64::MIN), slot.maximum.unwrap_or(f64::MAX));
    let round = [100.0, 10.0, 5.0, 1.0, 0.5];
    round
        .into_iter()
        .find(|value| (low..=high).contains(value))
        .map_or_else(|| low.to_string(), |value| value.to_string())
}

/// Every name of the scene, so that a name is not taken for a misspelt word.
fn names(scene: &SceneSnapshot) -> Vec<String> {
    let segments = scene.nodes.iter().flat_map(|node| node.content.segments.iter().flatten());
    scene.nodes.iter().map(|node| node.name.clone()).chain(segments.map(|segment| segment.name.clone())).collect()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
