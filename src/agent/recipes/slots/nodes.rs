//! Nodes and segments that the message names.
//!
//! A name is found however its parts are written: "mr head", "MRHead" and "mr-head" are one name. A part of a name is
//! enough when it fits one node alone; when it fits several, the person is asked, since on patient data the wrong node is
//! worse than a question.

use super::{Filling, Question, Request, Source};
use crate::agent::recipes::book::Entry;
use crate::agent::recipes::lexicon::Lexicon;
use crate::agent::recipes::value::{SlotValue, class_words};
use crate::agent::recipes::words::{WordKind, stem};
use crate::knowledge::tokens::tokens;
use crate::knowledge::{Slot, SlotKind};
use crate::slicer::{NodeSummary, SceneSnapshot};

/// Longest name, in words of the message.
const MOST_NAME_WORDS: usize = 10;

/// Base classes by class, where a snapshot does not tell (classes of results that do not exist yet).
const ANCESTORS: &[(&str, &str)] = &[
    ("vtkMRMLLabelMapVolumeNode", "vtkMRMLScalarVolumeNode"),
    ("vtkMRMLVectorVolumeNode", "vtkMRMLScalarVolumeNode"),
    ("vtkMRMLScalarVolumeNode", "vtkMRMLVolumeNode"),
    ("vtkMRMLVolumeNode", "vtkMRMLDisplayableNode"),
    ("vtkMRMLModelNode", "vtkMRMLDisplayableNode"),
    ("vtkMRMLSegmentationNode", "vtkMRMLDisplayableNode"),
    ("vtkMRMLMarkupsClosedCurveNode", "vtkMRMLMarkupsCurveNode"),
    ("vtkMRMLMarkupsFiducialNode", "vtkMRMLMarkupsNode"),
    ("vtkMRMLMarkupsLineNode", "vtkMRMLMarkupsNode"),
    ("vtkMRMLMarkupsAngleNode", "vtkMRMLMarkupsNode"),
    ("vtkMRMLMarkupsCurveNode", "vtkMRMLMarkupsNode"),
    ("vtkMRMLMarkupsPlaneNode", "vtkMRMLMarkupsNode"),
    ("vtkMRMLMarkupsROINode", "vtkMRMLMarkupsNode"),
    ("vtkMRMLMarkupsNode", "vtkMRMLDisplayableNode"),
    ("vtkMRMLLinearTransformNode", "vtkMRMLTransformNode"),
    ("vtkMRMLBSplineTransformNode", "vtkMRMLTransformNode"),
    ("vtkMRMLGridTransformNode", "vtkMRMLTransformNode"),
    ("vtkMRMLTransformNode", "vtkMRMLDisplayableNode"),
    ("vtkMRMLDisplayableNode", "vtkMRMLTransformableNode"),
    ("vtkMRMLTransformableNode", "vtkMRMLStorableNode"),
    ("vtkMRMLTableNode", "vtkMRMLStorableNode"),
    ("vtkMRMLTextNode", "vtkMRMLStorableNode"),
    ("vtkMRMLSequenceNode", "vtkMRMLStorableNode"),
    ("vtkMRMLColorTableNode", "vtkMRMLColorNode"),
    ("vtkMRMLColorNode", "vtkMRMLStorableNode"),
    ("vtkMRMLStorableNode", "vtkMRMLNode"),
];

/// Whether a class is `wanted` or derived from it.
pub fn is_a(class: &str, wanted: &str) -> bool {
    let mut class = class;
    loop {
        if class == wanted || wanted == "vtkMRMLNode" {
            return true;
        }
        match ANCESTORS.iter().find(|(child, _)| *child == class) {
            Some((_, parent)) => class = parent,
            None => return false,
        }
    }
}

/// How many steps of inheritance lie between a class and `wanted`; large when they are not related.
fn distance(class: &str, wanted: &str) -> usize {
    let mut class = class;
    let mut steps = 0;
    while class != wanted {
        match ANCESTORS.iter().find(|(child, _)| *child == class) {
            Some((_, parent)) => class = parent,
            None => return usize::MAX,
        }
        steps += 1;
    }
    steps
}

/// Whether a node can fill a slot of this class.
pub fn fits(node: &NodeSummary, class: &str) -> bool {
    is_a(&node.class, class) || node.classes.iter().any(|ancestor| ancestor == class)
}

/// The nodes that can fill the slot, in scene order. Label maps count as volumes only when there is no other.
pub fn candidates<'a>(slot: &Slot, scene: &'a SceneSnapshot) -> Vec<&'a NodeSummary> {
    let class = slot.class.as_deref().unwrap_or("vtkMRMLNode");
    let all: Vec<&NodeSummary> = scene.nodes.iter().filter(|node| fits(node, class)).collect();
    let plain: Vec<&NodeSummary> =
        all.iter().copied().filter(|node| !fits(node, "vtkMRMLLabelMapVolumeNode")).collect();
    if class.ends_with("VolumeNode") && !class.contains("LabelMap") && !plain.is_empty() { plain } else { all }
}

/// A node as a value.
pub fn value(node: &NodeSummary) -> SlotValue {
    SlotValue::Node { id: node.id.clone(), name: node.name.clone() }
}

/// All segments of the scene, with the segmentation they belong to.
pub fn segments(scene: &SceneSnapshot) -> Vec<SlotValue> {
    let mut found = Vec::new();
    for node in &scene.nodes {
        for segment in node.content.segments.iter().flatten() {
            found.push(SlotValue::Segment {
                id: segment.id.clone(),
                name: segment.name.clone(),
                segmentation: node.id.clone(),
            });
        }
    }
    found
}

/// The letters and digits of a name in lower case.
fn bare(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Where the message spells the whole name: the longest such range of words.
pub fn name_span(name: &str, request: &Request) -> Option<(usize, usize)> {
    let wanted = bare(name);
    let (first, last) = request.range;
    if wanted.is_empty() {
        return None;
    }
    for start in first..last {
        let mut spelt = String::new();
        for end in start..last.min(start + MOST_NAME_WORDS) {
            let word = &request.words[end];
            if end == start && matches!(word.kind, WordKind::Mark(_)) {
                break;
            }
            spelt.push_str(&bare(&word.text));
            let is_name_alone = word.kind == WordKind::Quoted || !Lexicon::shared().is_stop(&spelt);
            if spelt == wanted && is_name_alone && !(end == start && word.number().is_some()) {
                return Some((start, end + 1));
            }
            if !wanted.starts_with(&spelt) {
                break;
            }
        }
    }
    turned_span(name, request)
}

/// Where the message says the words of a name in another order: "the chest CT" for `CTChest`.
fn turned_span(name: &str, request: &Request) -> Option<(usize, usize)> {
    let sorted = |mut parts: Vec<String>| {
        parts.sort();
        parts
    };
    let parts: Vec<String> = tokens(name).iter().map(|token| stem(token)).collect();
    // The first token of an identifier is the whole of it.
    let parts = if parts.len() > 2 && name.split_whitespace().count() == 1 { parts[1..].to_vec() } else { parts };
    let count = parts.len();
    if !(2..=4).contains(&count) {
        return None;
    }
    let wanted = sorted(parts);
    (request.range.0..request.range.1.saturating_sub(count - 1)).find_map(|start| {
        let words = &request.words[start..start + count];
        let plain = words.iter().all(|word| word.kind == WordKind::Word);
        (plain && sorted(words.iter().map(|word| word.stem.clone()).collect()) == wanted)
            .then_some((start, start + count))
    })
}

/// All nodes and segments whose whole name the part spells.
pub fn all_names(request: &Request) -> Vec<(SlotValue, usize, usize)> {
    let nodes = request.scene.nodes.iter().map(value);
    segments(request.scene)
        .into_iter()
        .chain(nodes)
        .filter_map(|value| name_span(&value.bare(), request).map(|(start, end)| (value, start, end)))
        .collect()
}

struct Mention {
    value: SlotValue,
    start: usize,
    end: usize,
    /// Other values that the same words fit as well.
    rivals: Vec<SlotValue>,
}

/// Fills node and segment slots that the message names.
pub fn fill_named(entry: &Entry, request: &Request, filling: &mut Filling) {
    let mut all: Vec<SlotValue> = segments(request.scene);
    if !entry.recipe.slots.iter().any(|slot| slot.kind == SlotKind::Segment) {
        all.clear();
    }
    let node_slots: Vec<&Slot> = entry.recipe.slots.iter().filter(|slot| slot.kind == SlotKind::Node).collect();
    for node in &request.scene.nodes {
        if node_slots.iter().any(|slot| fits(node, slot.class.as_deref().unwrap_or_default())) {
            all.push(value(node));
        }
    }
    let mut mentions = whole_names(&all, request, filling);
    mentions.extend(by_id(&all, request));
    if mentions.is_empty() {
        mentions.extend(part_of_name(entry, &all, request, filling));
    }
    mentions.sort_by_key(|mention| mention.start);
    let order = |slot: &Slot| entry.anchors.get(&slot.name).map_or(usize::MAX, |anchors| anchors.order);
    for mention in mentions {
        if !filling.is_free(mention.start, mention.end) {
            continue;
        }
        let mut open: Vec<(&Slot, Mention)> = Vec::new();
        for slot in entry.recipe.slots.iter().filter(|slot| !filling.has(slot)) {
            if let Some(found) = restricted(&mention, slot, request.scene) {
                open.push((slot, found));
            }
        }
        let anchored = |slot: &Slot| {
            let before = word_before(request, mention.start);
            entry
                .anchors
                .get(&slot.name)
                .is_some_and(|anchors| before.is_some_and(|word| anchors.before.contains(word)))
        };
        // A transform goes to the slot for transforms before one for any node.
        let steps = |slot: &Slot, found: &Mention| {
            let node = found.value.id().and_then(|id| request.scene.node(id));
            let wanted = slot.class.as_deref().unwrap_or_default();
            node.map_or(0, |node| distance(&node.class, wanted))
        };
        let best = open.into_iter().min_by_key(|(slot, found)| (!anchored(slot), steps(slot, found), order(slot)));
        if let Some((slot, found)) = best {
            place(slot, found, filling);
        }
    }
}

/// The mention as far as it suits the slot.
fn restricted(mention: &Mention, slot: &Slot, scene: &SceneSnapshot) -> Option<Mention> {
    let suits = |value: &SlotValue| match (slot.kind, value) {
        (SlotKind::Segment, SlotValue::Segment { .. }) => true,
        (SlotKind::Node, SlotValue::Node { id, .. }) => {
            scene.node(id).is_some_and(|node| fits(node, slot.class.as_deref().unwrap_or_default()))
        }
        _ => false,
    };
    let mut suiting = std::iter::once(&mention.value).chain(&mention.rivals).filter(|value| suits(value)).cloned();
    let value = suiting.next()?;
    Some(Mention { value, start: mention.start, end: mention.end, rivals: suiting.collect() })
}

fn place(slot: &Slot, mention: Mention, filling: &mut Filling) {
    filling.take(slot, mention.start, mention.end);
    if mention.rivals.is_empty() {
        filling.put(slot, mention.value, Source::Said);
    } else {
        let mut candidates = vec![mention.value];
        candidates.extend(mention.rivals);
        let text = which_one(slot, &candidates);
        filling.ask(slot, text, candidates, false);
    }
}

/// A question that lists what could be meant.
pub fn which_one(slot: &Slot, candidates: &[SlotValue]) -> String {
    let kind = match slot.kind {
        SlotKind::Segment => "segment".to_owned(),
        _ => class_words(slot.class.as_deref().unwrap_or_default()),
    };
    let question = slot.ask.clone().unwrap_or_else(|| format!("Which {kind} do you mean?"));
    let same_names = |name: &str| candidates.iter().filter(|other| other.bare() == name).count() > 1;
    let names: Vec<String> = candidates
        .iter()
        .take(8)
        .map(|value| match value.id() {
            Some(id) if same_names(&value.bare()) => format!("{} ({id})", value.text()),
            _ => value.text(),
        })
        .collect();
    let more = candidates.len().saturating_sub(8);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{question} There are {}: {}{rest}.", candidates.len(), names.join(", "))
}

/// The word before a mention, without its article.
fn word_before<'a>(request: &'a Request, start: usize) -> Option<&'a str> {
    (request.range.0..start)
        .rev()
        .map(|index| request.words[index].text.as_str())
        .find(|word| !matches!(*word, "the" | "a" | "an" | "my" | "this"))
}

fn whole_names(all: &[SlotValue], request: &Request, filling: &Filling) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    for (value, start, end) in &request.names {
        let (start, end) = (*start, *end);
        if !all.contains(value) || !filling.is_free(start, end) {
            continue;
        }
        match found.iter_mut().find(|mention| mention.start == start && mention.end == end) {
            Some(mention) => mention.rivals.push(value.clone()),
            None => found.push(Mention { value: value.clone(), start, end, rivals: Vec::new() }),
        }
    }
    // A name inside a longer name is not meant: "Bone" in "Bone Model".
    let ranges: Vec<(usize, usize)> = found.iter().map(|mention| (mention.start, mention.end)).collect();
    found.retain(|mention| {
        !ranges.iter().any(|(start, end)| {
            *start <= mention.start && mention.end <= *end && end - start > mention.end - mention.start
        })
    });
    found
}

fn by_id(all: &[SlotValue], request: &Request) -> Vec<Mention> {
    let mut found = Vec::new();
    for value in all {
        let SlotValue::Node { id, .. } = value else { continue };
        let wanted = id.to_lowercase();
        for (index, word) in request.own_words() {
            if word.text.to_lowercase() == wanted {
                found.push(Mention { value: value.clone(), start: index, end: index + 1, rivals: Vec::new() });
            }
        }
    }
    found
}

/// A word that stands in the names of few nodes, and means nothing else to this recipe.
fn part_of_name(entry: &Entry, all: &[SlotValue], request: &Request, filling: &Filling) -> Option<Mention> {
    let telling = |index: usize| {
        let word = &request.words[index];
        let option = entry.options.values().flatten().any(|(_, stems)| stems.contains(&word.stem));
        word.kind == WordKind::Word
            && word.text.chars().count() >= 3
            && filling.is_free(index, index + 1)
            && !Lexicon::shared().is_stop(&word.text)
            && !entry.phrasings.iter().any(|phrasing| phrasing.terms.contains(&word.stem))
            && !option
            && !request.classes.iter().any(|(_, start, end)| (*start..*end).contains(&index))
    };
    // What spells the whole name of something else is not a part of this name.
    let spelt = |index: usize| request.names.iter().any(|(_, start, end)| (*start..*end).contains(&index));
    let words: Vec<usize> =
        (request.range.0..request.range.1).filter(|index| telling(*index) && !spelt(*index)).collect();
    if words.is_empty() {
        return None;
    }
    let score = |value: &SlotValue| {
        let parts: Vec<String> = tokens(&value.bare()).iter().map(|token| stem(token)).collect();
        words.iter().filter(|index| parts.contains(&request.words[**index].stem)).count()
    };
    let most = all.iter().map(score).max().filter(|most| *most > 0)?;
    let mut best = all.iter().filter(|value| score(value) == most);
    let value = best.next()?.clone();
    let parts: Vec<String> = tokens(&value.bare()).iter().map(|token| stem(token)).collect();
    let start = *words.iter().find(|index| parts.contains(&request.words[**index].stem))?;
    let mut end = start + 1;
    while words.contains(&end) && parts.contains(&request.words[end].stem) {
        end += 1;
    }
    let rivals: Vec<SlotValue> = best.cloned().collect();
    // "The skull segment" is no model whose name has "skull" in it.
    let is_node = matches!(value, SlotValue::Node { .. });
    let says_segment = |index: usize| request.words.get(index).is_some_and(|word| word.stem == "segment");
    if is_node
        && (says_segment(end) || (start > request.range.0 && says_segment(start - 1) && start - 1 > request.range.0))
    {
        return None;
    }
    Some(Mention { value, start, end, rivals })
}

/// A question for a slot that the scene cannot fill.
pub fn nothing_there(slot: &Slot) -> Question {
    let kind = match slot.kind {
        SlotKind::Segment => "segment".to_owned(),
        _ => class_words(slot.class.as_deref().unwrap_or_default()),
    };
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u', 'R']) { "an" } else { "a" };
    let text = format!("This needs {article} {kind}, and the scene has none. Load or make one, then ask again.");
    Question { text, candidates: Vec::new(), impossible: true }
}
