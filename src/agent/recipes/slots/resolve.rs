//! Slots that the message does not name: "it", what earlier parts made, defaults, and questions.

use super::nodes::{candidates, fits, is_a, nothing_there, segments, value, which_one};
use super::numbers::integer;
use super::{Filled, Filling, Question, Request, Source};
use crate::agent::recipes::book::Entry;
use crate::agent::recipes::value::SlotValue;
use crate::knowledge::{Risk, Slot, SlotKind};

const PRONOUNS: &[&str] = &["it", "that", "this", "them", "these", "those", "its", "result"];

/// Fills every slot that is still open.
pub fn fill(entry: &Entry, request: &Request, filling: &mut Filling) {
    // Segments first: a segment that was named decides which segmentation is meant.
    let mut open: Vec<&Slot> = entry.recipe.slots.iter().filter(|slot| !filling.has(slot)).collect();
    open.sort_by_key(|slot| slot.kind != SlotKind::Segment);
    let owner = segmentation_of_named_segment(entry, filling);
    for slot in open {
        match slot.kind {
            SlotKind::Segment => fill_segment(entry, slot, request, filling),
            SlotKind::Node => fill_node(entry, slot, request, owner.as_deref(), filling),
            _ => fill_literal(slot, filling),
        }
    }
}

/// The segmentation that holds the segment which the message names.
fn segmentation_of_named_segment(entry: &Entry, filling: &Filling) -> Option<String> {
    entry.recipe.slots.iter().find_map(|slot| match &filling.slots.get(&slot.name)?.value {
        SlotValue::Segment { segmentation, .. } => Some(segmentation.clone()),
        _ => None,
    })
}

fn says_pronoun(request: &Request) -> bool {
    request.own_words().any(|(_, word)| PRONOUNS.contains(&word.text.as_str()))
}

/// The newest thing of this class that an earlier part makes.
fn from_earlier(class: &str, request: &Request) -> Option<(SlotValue, Source)> {
    request.earlier.iter().enumerate().rev().find_map(|(part, earlier)| {
        let fits = |provided: &str| {
            if class == "segment" { provided == "segment" } else { provided != "segment" && is_a(provided, class) }
        };
        let mut keys: Vec<(&String, &String)> =
            earlier.provides.iter().filter(|(_, provided)| fits(provided)).collect();
        // What the part made comes before what it was given.
        keys.sort_by_key(|(key, provided)| {
            (earlier.inputs.contains(key), provided.as_str() != class, key.len(), (*key).clone())
        });
        let (key, provided) = keys.first()?;
        let source = if earlier.inputs.contains(key) { Source::HandedOn } else { Source::Earlier };
        Some((SlotValue::Earlier { part, key: (*key).clone(), class: (*provided).clone() }, source))
    })
}

fn fill_segment(entry: &Entry, slot: &Slot, request: &Request, filling: &mut Filling) {
    if let Some((value, source)) = from_earlier("segment", request) {
        take_value_words(slot, request, filling);
        filling.put(slot, value, source);
        return;
    }
    let named_segmentation = entry.recipe.slots.iter().find_map(|other| match filling.slots.get(&other.name)?.value {
        SlotValue::Node { ref id, .. } => Some(id.clone()),
        _ => None,
    });
    let mut all = segments(request.scene);
    if let Some(owner) =
        named_segmentation.filter(|owner| request.scene.node(owner).is_some_and(|node| node.content.segments.is_some()))
    {
        all.retain(|value| matches!(value, SlotValue::Segment { segmentation, .. } if *segmentation == owner));
    }
    let recent = request.context.newest_segment(request.scene);
    let pointed = says_pronoun(request);
    let wants_default = slot.default.is_some() || pointed;
    match (all.len(), recent) {
        (0, _) if slot.optional => filling.put(slot, SlotValue::Nothing, Source::Open),
        (0, _) => put_question(slot, nothing_there(slot), filling),
        (_, Some(value)) if wants_default && all.contains(&value) => filling.put(slot, value, Source::Earlier),
        (count, _) if wants_default || count == 1 => {
            let source = if pointed { Source::Pointed } else { Source::Default };
            if let Some(last) = all.pop() {
                filling.put(slot, last, source);
            }
        }
        _ if slot.optional => filling.put(slot, SlotValue::Nothing, Source::Open),
        _ => {
            let text = which_one(slot, &all);
            filling.ask(slot, text, all, false);
        }
    }
}

/// "the bone" in a later part means what an earlier part made of it: these words are explained.
fn take_value_words(slot: &Slot, request: &Request, filling: &mut Filling) {
    for index in request.range.0..request.range.1 {
        let word = &request.words[index];
        let of_earlier = request.earlier.iter().any(|earlier| earlier.value_stems.contains(&word.stem));
        if of_earlier && !word.stem.is_empty() && filling.is_free(index, index + 1) {
            filling.take(slot, index, index + 1);
        }
    }
}

fn fill_node(entry: &Entry, slot: &Slot, request: &Request, owner: Option<&str>, filling: &mut Filling) {
    let class = slot.class.as_deref().unwrap_or("vtkMRMLNode");
    if class == "vtkMRMLSegmentationNode" {
        let of_segment = owner.map(str::to_owned).or_else(|| segmentation_of_named_segment(entry, filling));
        if let Some(node) = of_segment.and_then(|id| request.scene.node(&id)) {
            filling.put(slot, value(node), Source::Pointed);
            return;
        }
    }
    if let Some((value, source)) = from_earlier(class, request) {
        take_value_words(slot, request, filling);
        filling.put(slot, value, source);
        return;
    }
    let mut all = candidates(slot, request.scene);
    let mention = class_mention(entry, slot, request, filling);
    if let Some((mentioned, start, end)) = mention {
        let closer: Vec<_> = all.iter().copied().filter(|node| fits(node, mentioned)).collect();
        if !closer.is_empty() {
            all = closer;
        }
        // "the CT" of two volumes is the one that says so in its name.
        let hinted: Vec<_> = all.iter().copied().filter(|node| has_hint(&node.name, request, start, end)).collect();
        if !hinted.is_empty() {
            all = hinted;
        }
        filling.take(slot, start, end);
    }
    let pointed = says_pronoun(request);
    let policy = slot.default.as_ref().and_then(toml::Value::as_str);
    if (pointed || policy.is_some())
        && mention.is_none_or(|(mentioned, _, _)| is_a(mentioned, class) || is_a(class, mentioned))
        && let Some(node) =
            request.context.newest_node(request.scene, |node| all.iter().any(|other| other.id == node.id))
        && (pointed || policy == Some("newest"))
    {
        filling.put(slot, value(node), Source::Earlier);
        return;
    }
    let source = if mention.is_some() || pointed { Source::Pointed } else { Source::Default };
    let selected =
        request.scene.selected_volume.as_deref().and_then(|id| all.iter().copied().find(|node| node.id == id));
    let careful = entry.recipe.risk == Risk::High && mention.is_none() && !pointed;
    let chosen = match policy {
        Some("selected") => selected.or_else(|| only(&all)),
        Some("newest") => all.last().copied(),
        Some("only") => only(&all),
        _ if careful || (slot.optional && mention.is_none()) => None,
        _ => only(&all),
    };
    match chosen {
        Some(node) => filling.put(slot, value(node), source),
        None if slot.optional && mention.is_none() => filling.put(slot, SlotValue::Nothing, Source::Open),
        None if all.is_empty() => put_question(slot, nothing_there(slot), filling),
        None => {
            let values: Vec<SlotValue> = all.into_iter().map(value).collect();
            let text = which_one(slot, &values);
            filling.ask(slot, text, values, false);
        }
    }
}

fn only<'a, T>(all: &[&'a T]) -> Option<&'a T> {
    if let [one] = all { Some(one) } else { None }
}

/// Words in the part that name the slot's class or one above or below it.
fn class_mention(
    entry: &Entry,
    slot: &Slot,
    request: &Request,
    filling: &Filling,
) -> Option<(&'static str, usize, usize)> {
    let class = slot.class.as_deref().unwrap_or("vtkMRMLNode");
    request
        .classes
        .iter()
        .copied()
        .filter(|(_, start, end)| *start >= request.range.0 && *end <= request.range.1 && filling.is_free(*start, *end))
        // "a segmentation" is any, not one of the scene.
        .filter(|(_, start, _)| *start == 0 || !matches!(request.words[start - 1].text.as_str(), "a" | "an"))
        .filter(|(mentioned, _, _)| is_a(mentioned, class) || is_a(class, mentioned))
        // "Harden the transform of the points": the points are meant, the transform belongs to the order.
        .min_by_key(|(_, start, end)| {
            let literal = (*start..*end).all(|index| {
                entry.phrasings.iter().filter(|phrasing| phrasing.terms.contains(&request.words[index].stem)).count()
                    * 2
                    > entry.phrasings.len()
            });
            (literal, *start)
        })
}

/// Whether a node's name holds the abbreviation by which it was called ("CT", "MR").
fn has_hint(name: &str, request: &Request, start: usize, end: usize) -> bool {
    let lower = name.to_lowercase();
    request.words[start..end].iter().any(|word| {
        let text = word.text.trim_end_matches('i');
        matches!(word.text.as_str(), "ct" | "mr" | "mri" | "pet" | "cbct" | "cta") && lower.contains(text)
    })
}

fn fill_literal(slot: &Slot, filling: &mut Filling) {
    if let Some(value) = slot.default.as_ref().and_then(|default| literal(slot, default)) {
        filling.put(slot, value, Source::Default);
    } else if slot.optional {
        filling.put(slot, SlotValue::Nothing, Source::Open);
    } else {
        let text = slot.ask.clone().unwrap_or_else(|| format!("Which {}?", slot.name.replace('_', " ")));
        filling.ask(slot, text, Vec::new(), false);
    }
}

/// The default of the recipe file as a value.
fn literal(slot: &Slot, default: &toml::Value) -> Option<SlotValue> {
    let number = |value: &toml::Value| match value {
        toml::Value::Float(value) => Some(*value),
        #[allow(clippy::cast_precision_loss)] // Defaults are small numbers.
        toml::Value::Integer(value) => Some(*value as f64),
        _ => None,
    };
    let triple = |value: &toml::Value| {
        let parts: Vec<f64> = value.as_array()?.iter().filter_map(number).collect();
        <[f64; 3]>::try_from(parts).ok()
    };
    match slot.kind {
        SlotKind::Number => number(default).map(SlotValue::Number),
        SlotKind::Integer => number(default).map(integer),
        SlotKind::Flag => default.as_bool().map(SlotValue::Flag),
        SlotKind::Point => triple(default).map(SlotValue::Point),
        SlotKind::Points => Some(SlotValue::Points(default.as_array()?.iter().filter_map(triple).collect())),
        SlotKind::Color => triple(default).map(|color| SlotValue::Color(color, "the default colour".into())),
        _ => default.as_str().map(|text| SlotValue::Text(text.to_owned())),
    }
}

fn put_question(slot: &Slot, question: Question, filling: &mut Filling) {
    let filled = Filled { value: SlotValue::Nothing, source: Source::Missing, question: Some(question) };
    filling.slots.insert(slot.name.clone(), filled);
}
