//! Free texts: new names, search words, captions.
//!
//! A text is what stands in quotes, or what follows the word that introduces it in the recipe's phrasings. Without
//! quotes it ends where the request goes on ("and", a comma), so that it never swallows another request.

use super::{Filling, Request, Source};
use crate::agent::recipes::book::Entry;
use crate::agent::recipes::matching::own_terms;
use crate::agent::recipes::value::SlotValue;
use crate::agent::recipes::words::{Word, WordKind};
use crate::knowledge::SlotKind;

/// Words that introduce a name in any recipe.
const INTRODUCE_NAMES: &[&str] = &["called", "named", "titled", "labelled", "labeled"];
/// Single words that may introduce a text when a phrasing of the recipe says so.
const MAY_INTRODUCE: &[&str] =
    &["to", "as", "name", "text", "saying", "says", "for", "with", "label", "caption", "title"];
/// A text without quotes has at most this many words.
const MOST_WORDS: usize = 6;

/// Fills text slots whose text is introduced by a word.
pub fn fill_introduced(entry: &Entry, request: &Request, filling: &mut Filling) {
    for slot in entry.recipe.slots.iter().filter(|slot| slot.kind == SlotKind::Text) {
        if filling.has(slot) {
            continue;
        }
        let anchors = entry.anchors.get(&slot.name);
        let names_things = slot.name.contains("name") || slot.name.contains("label");
        let introduces = |index: usize, word: &Word| {
            let own = |text: &str| anchors.is_some_and(|anchors| anchors.before.contains(text));
            let two = (request.range.0..index)
                .rev()
                .find(|before| !matches!(request.words[*before].text.as_str(), "the" | "a" | "an"))
                .is_some_and(|before| own(&format!("{} {}", request.words[before].text, word.text)));
            (names_things && INTRODUCE_NAMES.contains(&word.text.as_str()))
                || (MAY_INTRODUCE.contains(&word.text.as_str()) && own(&word.text))
                || two
        };
        let starts: Vec<usize> = request
            .own_words()
            .filter(|(index, word)| word.kind == WordKind::Word && introduces(*index, word))
            .map(|(index, _)| index + 1)
            .collect();
        let found = starts.into_iter().find_map(|start| span(entry, &slot.name, request, filling, start));
        if let Some((start, end)) = found {
            filling.put(slot, SlotValue::Text(text_of(request, start, end)), Source::Said);
            filling.take(slot, start, end);
        }
    }
}

/// Fills open text slots with a quoted text, or with what stands at the end behind everything that is understood.
pub fn fill_trailing(entry: &Entry, request: &Request, filling: &mut Filling) {
    for slot in entry.recipe.slots.iter().filter(|slot| slot.kind == SlotKind::Text) {
        if filling.has(slot) {
            continue;
        }
        let quoted = request
            .own_words()
            .find(|(index, word)| word.kind == WordKind::Quoted && filling.is_free(*index, index + 1));
        if let Some((index, word)) = quoted {
            filling.put(slot, SlotValue::Text(word.text.clone()), Source::Said);
            filling.take(slot, index, index + 1);
            continue;
        }
        // "call Segment_1 Liver": the text stands behind the name, with nothing between.
        let behind = (request.range.0..request.range.1).rev().find(|index| filling.taken[*index].is_some());
        let said = own_terms(request);
        let follows_slot = entry.phrasings.iter().any(|phrasing| {
            phrasing.text.contains(&format!("}} {{{}}}", slot.name))
                && phrasing.terms.iter().all(|term| said.iter().any(|other| other.text == *term))
        });
        if follows_slot
            && !slot.optional
            && let Some((start, end)) = behind.and_then(|index| span(entry, &slot.name, request, filling, index + 1))
        {
            filling.put(slot, SlotValue::Text(text_of(request, start, end)), Source::Said);
            filling.take(slot, start, end);
        }
    }
}

/// The whole of a reply as a text.
pub fn whole(request: &Request) -> Option<String> {
    let quoted = request.own_words().find(|(_, word)| word.kind == WordKind::Quoted).map(|(_, word)| word.text.clone());
    if quoted.is_some() {
        return quoted;
    }
    let (start, end) = request.range;
    let mut start = start;
    while start < end && matches!(request.words[start].text.as_str(), "call" | "it" | "name" | "to" | "as" | "please") {
        start += 1;
    }
    let end = trimmed_end(request, start, end);
    (start < end).then(|| text_of(request, start, end))
}

/// The range of a text that starts at `start`.
fn span(entry: &Entry, slot: &str, request: &Request, filling: &Filling, start: usize) -> Option<(usize, usize)> {
    let mut start = start;
    while start < request.range.1 && matches!(request.words[start].text.as_str(), "be" | ":" | "=" | "called" | "named")
    {
        start += 1;
    }
    if start >= request.range.1 || !filling.is_free(start, start + 1) {
        return None;
    }
    if request.words[start].kind == WordKind::Quoted {
        return Some((start, start + 1));
    }
    let after = entry.anchors.get(slot).map(|anchors| &anchors.after);
    let mut end = start;
    while end < request.range.1 && end - start < MOST_WORDS && filling.is_free(end, end + 1) {
        let word = &request.words[end];
        let ends = match word.kind {
            WordKind::Mark(mark) => !matches!(mark, '-' | '.' | '/' | '+') || !glued(request, end),
            WordKind::Quoted => true,
            _ if matches!(word.text.as_str(), "at" | "from" | "with" | "by" | "between" | "around" | "through") => {
                (end..request.range.1).any(|later| request.words[later].number().is_some())
            }
            _ => matches!(word.text.as_str(), "and" | "then") || after.is_some_and(|after| after.contains(&word.text)),
        };
        if ends && end > start {
            break;
        }
        if ends {
            return None;
        }
        end += 1;
    }
    let end = trimmed_end(request, start, end);
    // A file has a folder or an ending; "as RTSTRUCT" is a format.
    let is_file = slot.contains("file") || slot.contains("path");
    let suits = !is_file || request.raw(start, end).contains(['.', '/', '\\']);
    (start < end && suits).then_some((start, end))
}

/// Whether a mark stands without a space between two words ("Left-Kidney").
fn glued(request: &Request, index: usize) -> bool {
    let after = request.words.get(index + 1);
    index > 0
        && request.words[index - 1].end == request.words[index].start
        && after.is_some_and(|after| after.start == request.words[index].end)
}

fn trimmed_end(request: &Request, start: usize, end: usize) -> usize {
    let mut end = end;
    while end > start {
        let last = &request.words[end - 1];
        let idle = matches!(last.kind, WordKind::Mark(_))
            || matches!(last.text.as_str(), "please" | "thanks" | "now" | "instead");
        if !idle {
            break;
        }
        end -= 1;
    }
    end
}

/// The text as the person wrote it.
fn text_of(request: &Request, start: usize, end: usize) -> String {
    if end == start + 1 && request.words[start].kind == WordKind::Quoted {
        return request.words[start].text.clone();
    }
    request.raw(start, end).trim_start_matches(['"', '\'']).to_owned()
}
