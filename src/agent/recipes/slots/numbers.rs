//! Numbers with units, and coordinates.
//!
//! Each number goes to the slot that it fits best: by unit, by the words around it ("above", "to", "radius"), and by
//! the order of the recipe's phrasings. A number outside the allowed range is asked about, never clipped.

use super::{Filled, Filling, Question, Request, Source};
use crate::agent::recipes::book::Entry;
use crate::agent::recipes::value::SlotValue;
use crate::agent::recipes::words::{WordKind, number_word, stem, unit_of};
use crate::knowledge::{Slot, SlotKind};

const LOWER_WORDS: &[&str] = &[
    "above",
    "over",
    "from",
    "least",
    "than",
    "greater",
    "higher",
    "brighter",
    "exceeding",
    "between",
    ">",
    "≥",
    "minimum",
    "min",
    "lower",
];
const UPPER_WORDS: &[&str] = &[
    "below", "under", "to", "most", "less", "smaller", "darker", "until", "till", "<", "≤", "maximum", "max", "upper",
    "and", "-", "–",
];

/// A number in the message.
struct Number {
    index: usize,
    value: f64,
    unit: Option<String>,
    /// True for "three", "half".
    word: bool,
}

/// Fills number and integer slots.
pub fn fill(entry: &Entry, request: &Request, filling: &mut Filling) {
    let mut slots: Vec<&Slot> = entry
        .recipe
        .slots
        .iter()
        .filter(|slot| matches!(slot.kind, SlotKind::Number | SlotKind::Integer) && !filling.has(slot))
        .collect();
    let mut numbers = numbers(request, filling);
    let order = |slot: &Slot| entry.anchors.get(&slot.name).map_or(9, |anchors| anchors.order);
    slots.sort_by_key(|slot| order(slot));
    while !slots.is_empty() && !numbers.is_empty() {
        let mut best: Option<(i32, usize, usize)> = None;
        for (n, number) in numbers.iter().enumerate() {
            for (s, slot) in slots.iter().enumerate() {
                let Some(score) = suitability(entry, slot, number, request) else { continue };
                // Of equals the earlier number goes to the earlier slot.
                if best.is_none_or(|(other, _, _)| score > other) {
                    best = Some((score, n, s));
                }
            }
        }
        let Some((_, n, s)) = best else { break };
        let number = numbers.remove(n);
        let slot = slots.remove(s);
        put(slot, &number, filling);
    }
    swap_reversed(entry, filling);
}

fn numbers(request: &Request, filling: &Filling) -> Vec<Number> {
    let mut found = Vec::new();
    for (index, word) in request.own_words() {
        if !filling.is_free(index, index + 1) {
            continue;
        }
        match &word.kind {
            WordKind::Number { value, unit } => {
                found.push(Number { index, value: *value, unit: unit.clone(), word: false });
            }
            WordKind::Word => {
                if word.is("half") {
                    // "half a centimetre"; "half transparent" is no number.
                    let behind =
                        request.words[index + 1..request.range.1].iter().find(|next| !next.is("a") && !next.is("an"));
                    if let Some(unit) = behind.and_then(|next| unit_of(&next.text)) {
                        found.push(Number { index, value: 0.5, unit: Some(unit.to_owned()), word: true });
                    }
                } else if let Some(value) = number_word(&word.text) {
                    let unit = request.words.get(index + 1).and_then(|next| unit_of(&next.text)).map(str::to_owned);
                    found.push(Number { index, value, unit, word: true });
                }
            }
            _ => {}
        }
    }
    found
}

/// How well a number suits a slot; `None` when its unit says it is something else.
fn suitability(entry: &Entry, slot: &Slot, number: &Number, request: &Request) -> Option<i32> {
    let mut score = 0;
    match (unit_kind(slot), number.unit.as_deref()) {
        (Some(wanted), Some(unit)) if factor(unit, wanted).is_some() => score += 6,
        (None, Some("%")) if is_fraction(slot) => score += 4,
        (None, Some("voxels")) if slot.kind == SlotKind::Integer => score += 3,
        (None, None) | (Some(_), None) => {}
        _ => return None,
    }
    if number.word && number.unit.is_none() && slot.kind == SlotKind::Number {
        score -= 3;
    }
    if slot.kind == SlotKind::Integer && number.value.fract() != 0.0 {
        return None;
    }
    let near = |steps: usize| {
        let first = number.index.saturating_sub(steps).max(request.range.0);
        request.words[first..number.index].iter().rev()
    };
    let anchors = entry.anchors.get(&slot.name);
    if near(1).any(|word| anchors.is_some_and(|anchors| anchors.before.contains(&word.text))) {
        score += 3;
    }
    let behind = request.words.get(number.index + 1).filter(|_| number.index + 1 < request.range.1);
    if behind.is_some_and(|word| anchors.is_some_and(|anchors| anchors.after.contains(&word.text))) {
        score += 1;
    }
    let (is_lower, is_upper) = bound(slot);
    // "between 100 and 300" and "100-300": a mark or "and" counts only between two numbers.
    let follows_number = near(2).nth(1).is_some_and(|word| word.number().is_some());
    for word in near(3).take_while(|word| word.number().is_none()) {
        let text = word.text.as_str();
        let joins = matches!(text, "and" | "-" | "–" | "to");
        if is_lower && LOWER_WORDS.contains(&text) && !joins {
            score += 5;
            break;
        }
        if is_upper && UPPER_WORDS.contains(&text) && (!joins || follows_number || text == "to") {
            score += 5;
            break;
        }
        if (is_lower && UPPER_WORDS.contains(&text) && !joins) || (is_upper && LOWER_WORDS.contains(&text)) {
            score -= 5;
            break;
        }
    }
    let parts: Vec<String> = slot.name.split('_').map(stem).collect();
    if near(3).take_while(|word| word.number().is_none()).any(|word| parts.contains(&word.stem)) {
        score += 4;
    }
    if behind.is_some_and(|word| parts.contains(&word.stem)) {
        score += 2;
    }
    Some(score)
}

/// Whether the slot is the lower or the upper end of a range.
fn bound(slot: &Slot) -> (bool, bool) {
    let parts: Vec<&str> = slot.name.split('_').collect();
    let is = |words: &[&str]| parts.iter().any(|part| words.contains(part));
    (
        is(&["minimum", "min", "lower", "low", "from", "start"]),
        is(&["maximum", "max", "upper", "high", "to", "end", "stop"]),
    )
}

fn unit_kind(slot: &Slot) -> Option<&'static str> {
    slot.unit.as_deref().and_then(|unit| unit_of(&unit.to_lowercase()))
}

fn is_fraction(slot: &Slot) -> bool {
    slot.minimum.is_some_and(|minimum| minimum >= 0.0) && slot.maximum.is_some_and(|maximum| maximum <= 1.0)
}

/// What a number in `unit` must be multiplied by to be in `wanted`.
fn factor(unit: &str, wanted: &str) -> Option<f64> {
    match (unit, wanted) {
        ("cm", "mm") => Some(10.0),
        ("mm", "cm") => Some(0.1),
        ("mm3", "ml") => Some(0.001),
        ("ml", "mm3") => Some(1000.0),
        _ => (unit == wanted).then_some(1.0),
    }
}

fn put(slot: &Slot, number: &Number, filling: &mut Filling) {
    let mut value = number.value;
    if let (Some(unit), Some(wanted)) = (number.unit.as_deref(), unit_kind(slot)) {
        value *= factor(unit, wanted).unwrap_or(1.0);
    } else if number.unit.as_deref() == Some("%") && is_fraction(slot) {
        value /= 100.0;
    }
    filling.take(slot, number.index, number.index + 1);
    if let Some(text) = out_of_range(slot, value) {
        let question = Some(Question { text, candidates: Vec::new(), impossible: false });
        filling
            .slots
            .insert(slot.name.clone(), Filled { value: SlotValue::Nothing, source: Source::Missing, question });
    } else if slot.kind == SlotKind::Integer {
        filling.put(slot, integer(value), Source::Said);
    } else {
        filling.put(slot, SlotValue::Number(value), Source::Said);
    }
}

/// A whole number as a value. Magnitudes beyond 2⁵³ never come from a person; they are cut there.
pub fn integer(value: f64) -> SlotValue {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    #[allow(clippy::cast_possible_truncation)] // Rounded and inside the range that converts without loss.
    SlotValue::Integer(value.round().clamp(-LIMIT, LIMIT) as i64)
}

fn out_of_range(slot: &Slot, value: f64) -> Option<String> {
    let below = slot.minimum.is_some_and(|minimum| value < minimum);
    let above = slot.maximum.is_some_and(|maximum| value > maximum);
    if !below && !above {
        return None;
    }
    let unit = slot.unit.as_deref().map_or(String::new(), |unit| format!(" {unit}"));
    let allowed = match (slot.minimum, slot.maximum) {
        (Some(minimum), Some(maximum)) => format!("between {minimum} and {maximum}{unit}"),
        (Some(minimum), None) => format!("at least {minimum}{unit}"),
        (None, Some(maximum)) => format!("at most {maximum}{unit}"),
        (None, None) => return None,
    };
    let name = slot.name.replace('_', " ");
    Some(format!("The {name} must be {allowed}; {value}{unit} is outside of that. Which value should it be?"))
}

/// "from 300 to 100" means the same range as "from 100 to 300".
fn swap_reversed(entry: &Entry, filling: &mut Filling) {
    let lower = entry.recipe.slots.iter().find(|slot| bound(slot).0 && slot.kind == SlotKind::Number);
    let upper = entry.recipe.slots.iter().find(|slot| bound(slot).1 && slot.kind == SlotKind::Number);
    let (Some(lower), Some(upper)) = (lower, upper) else { return };
    let number = |filling: &Filling, slot: &Slot| match filling.slots.get(&slot.name)?.value {
        SlotValue::Number(value) => Some(value),
        _ => None,
    };
    if let (Some(low), Some(high)) = (number(filling, lower), number(filling, upper))
        && low > high
    {
        filling.put(lower, SlotValue::Number(high), Source::Said);
        filling.put(upper, SlotValue::Number(low), Source::Said);
    }
}

/// Fills point slots from triples of numbers (RAS, mm; with L, P, I or "LPS" the signs are turned).
pub fn fill_points(entry: &Entry, request: &Request, filling: &mut Filling) {
    let slots: Vec<&Slot> = entry
        .recipe
        .slots
        .iter()
        .filter(|slot| matches!(slot.kind, SlotKind::Point | SlotKind::Points) && !filling.has(slot))
        .collect();
    if slots.is_empty() {
        return;
    }
    let mut triples = triples(request, filling).into_iter();
    let single = slots.iter().filter(|slot| slot.kind == SlotKind::Point).count();
    let mut order = slots.clone();
    order.sort_by_key(|slot| entry.anchors.get(&slot.name).map_or(9, |anchors| anchors.order));
    for slot in order {
        if slot.kind == SlotKind::Point {
            let Some((point, start, end)) = triples.next() else { return };
            filling.put(slot, SlotValue::Point(point), Source::Said);
            filling.take(slot, start, end);
        } else {
            let rest: Vec<_> = triples.by_ref().collect();
            if rest.is_empty() {
                return;
            }
            debug_assert!(single == 0 || slots.len() > 1, "points follow the single point slots");
            for (_, start, end) in &rest {
                filling.take(slot, *start, *end);
            }
            filling.put(slot, SlotValue::Points(rest.into_iter().map(|(point, _, _)| point).collect()), Source::Said);
        }
    }
}

/// Runs of three numbers with nothing but commas, brackets, axis letters and "mm" between them.
fn triples(request: &Request, filling: &Filling) -> Vec<([f64; 3], usize, usize)> {
    let lps = request.own_words().any(|(_, word)| word.is("lps"));
    let mut found = Vec::new();
    let mut run: Vec<(usize, f64, Option<char>)> = Vec::new();
    let mut letter = None;
    for index in request.range.0..=request.range.1 {
        let word = (index < request.range.1 && filling.is_free(index, index + 1)).then(|| &request.words[index]);
        let Some(word) = word else {
            flush(&mut run, lps, &mut found);
            continue;
        };
        match &word.kind {
            WordKind::Number { value, unit } if unit.as_deref().is_none_or(|unit| unit == "mm") => {
                run.push((index, *value, letter.take()));
                let closes = request.words.get(index + 1).is_none_or(|next| next.is_mark(')') || next.is_mark(']'));
                if run.len() == 3 && closes {
                    flush(&mut run, lps, &mut found);
                }
            }
            WordKind::Mark(',' | '(' | '[' | '{' | '=' | ':' | '/') => {}
            WordKind::Word if matches!(word.text.as_str(), "r" | "a" | "s" | "l" | "p" | "i" | "x" | "y" | "z") => {
                letter = word.text.chars().next();
            }
            _ => {
                flush(&mut run, lps, &mut found);
                letter = None;
            }
        }
    }
    found
}

fn flush(run: &mut Vec<(usize, f64, Option<char>)>, lps: bool, found: &mut Vec<([f64; 3], usize, usize)>) {
    if run.len().is_multiple_of(3) {
        for triple in run.chunks(3) {
            let mut point = [triple[0].1, triple[1].1, triple[2].1];
            for (position, (_, value, letter)) in triple.iter().enumerate() {
                let (axis, sign) = match letter {
                    Some('r' | 'x') => (0, 1.0),
                    Some('l') => (0, -1.0),
                    Some('a' | 'y') => (1, 1.0),
                    Some('p') => (1, -1.0),
                    Some('s' | 'z') => (2, 1.0),
                    Some('i') => (2, -1.0),
                    _ => (position, 1.0),
                };
                point[axis] = value * sign;
            }
            if lps {
                point[0] = -point[0];
                point[1] = -point[1];
            }
            found.push((point, triple[0].0, triple[2].0 + 1));
        }
    }
    run.clear();
}
