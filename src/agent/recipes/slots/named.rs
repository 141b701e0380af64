//! Slots whose values are words with a fixed meaning: choices, samples, flags, colours, views, layouts, axes,
//! orientations.
//!
//! The recipe's own options come first; the tables here serve recipes that have none. The longest wording wins, so that
//! "soft tissue" is not "tissue" and "four up" is not "four".

use super::{Filling, Request, Source};
use crate::agent::recipes::book::Entry;
use crate::agent::recipes::lexicon::{sequence_length, stems};
use crate::agent::recipes::value::SlotValue;
use crate::agent::recipes::words::WordKind;
use crate::knowledge::{Slot, SlotKind};

/// Canonical value and the words people use for it.
type Table = &'static [(&'static str, &'static [&'static str])];

const FLAGS: Table = &[
    (
        "true",
        &["on", "yes", "true", "show", "enable", "enabled", "visible", "turn on", "switch on", "with", "activate"],
    ),
    (
        "false",
        &[
            "off",
            "no",
            "false",
            "hide",
            "disable",
            "disabled",
            "invisible",
            "turn off",
            "switch off",
            "without",
            "deactivate",
            "do not show",
            "don't show",
            "not visible",
        ],
    ),
];

const VIEWS: Table = &[
    ("Red", &["red", "axial", "transverse", "transaxial", "axial view", "axial slice", "red slice", "red view"]),
    ("Yellow", &["yellow", "sagittal", "sagittal view", "sagittal slice", "yellow slice", "yellow view"]),
    ("Green", &["green", "coronal", "coronal view", "coronal slice", "green slice", "green view"]),
    ("1", &["3d", "3d view", "three dimensional view", "rendering view"]),
];

const ORIENTATIONS: Table = &[
    ("axial", &["axial", "transverse", "transaxial", "horizontal"]),
    ("sagittal", &["sagittal", "lateral"]),
    ("coronal", &["coronal", "frontal"]),
];

const LAYOUTS: Table = &[
    ("conventional", &["conventional", "conventional layout", "default", "standard", "normal", "default layout"]),
    ("conventional_widescreen", &["conventional widescreen", "widescreen", "wide screen"]),
    (
        "four_up",
        &[
            "four up",
            "4 up",
            "4up",
            "fourup",
            "four views",
            "quad",
            "quad view",
            "2x2",
            "2 by 2",
            "two by two",
            "four panes",
        ],
    ),
    (
        "one_up_3d",
        &[
            "3d only",
            "only 3d",
            "one up 3d",
            "just 3d",
            "only the 3d view",
            "3d full screen",
            "single 3d",
            "just the 3d view",
        ],
    ),
    (
        "one_up_red",
        &[
            "red only",
            "only red",
            "red slice only",
            "one up red",
            "axial only",
            "only axial",
            "just axial",
            "only the axial",
            "just the axial",
            "only the red",
            "just red",
        ],
    ),
    (
        "one_up_yellow",
        &[
            "yellow only",
            "only yellow",
            "yellow slice only",
            "one up yellow",
            "sagittal only",
            "only sagittal",
            "just sagittal",
            "only the sagittal",
            "just the sagittal",
            "only the yellow",
        ],
    ),
    (
        "one_up_green",
        &[
            "green only",
            "only green",
            "green slice only",
            "one up green",
            "coronal only",
            "only coronal",
            "just coronal",
            "only the coronal",
            "just the coronal",
            "only the green",
        ],
    ),
    ("dual_3d", &["dual 3d", "two 3d views", "double 3d"]),
    ("triple_3d", &["triple 3d", "three 3d views"]),
    ("tabbed_3d", &["tabbed 3d"]),
    ("tabbed_slice", &["tabbed slice", "tabbed slices"]),
    ("side_by_side", &["side by side"]),
    ("compare", &["compare", "compare view", "comparison"]),
    ("three_over_three", &["three over three", "3 over 3", "six slices"]),
    ("four_over_four", &["four over four", "4 over 4"]),
    ("four_up_table", &["four up table", "table view"]),
    ("four_up_plot", &["four up plot", "plot view"]),
    ("conventional_plot", &["conventional plot"]),
];

const AXES: Table = &[
    ("A", &["anterior", "front", "from the front", "frontal", "anteriorly", "forward", "ventral", "a", "y"]),
    (
        "P",
        &[
            "posterior",
            "back",
            "behind",
            "from behind",
            "from the back",
            "rear",
            "posteriorly",
            "backward",
            "dorsal",
            "p",
        ],
    ),
    ("L", &["left", "patient left", "from the left", "left side", "l"]),
    ("R", &["right", "patient right", "from the right", "right side", "r", "x"]),
    (
        "S",
        &[
            "superior",
            "top",
            "above",
            "from above",
            "from the top",
            "head",
            "up",
            "upward",
            "cranial",
            "superiorly",
            "s",
            "z",
        ],
    ),
    (
        "I",
        &[
            "inferior",
            "bottom",
            "below",
            "from below",
            "from the bottom",
            "feet",
            "down",
            "downward",
            "caudal",
            "inferiorly",
            "foot",
            "i",
        ],
    ),
];

/// Colour names and their RGB values from 0 to 255.
const COLORS: &[(&str, [u8; 3])] = &[
    ("red", [255, 0, 0]),
    ("dark red", [139, 0, 0]),
    ("green", [0, 255, 0]),
    ("dark green", [0, 100, 0]),
    ("light green", [144, 238, 144]),
    ("blue", [0, 0, 255]),
    ("dark blue", [0, 0, 139]),
    ("light blue", [173, 216, 230]),
    ("sky blue", [135, 206, 235]),
    ("navy", [0, 0, 128]),
    ("yellow", [255, 255, 0]),
    ("orange", [255, 165, 0]),
    ("purple", [128, 0, 128]),
    ("violet", [238, 130, 238]),
    ("magenta", [255, 0, 255]),
    ("pink", [255, 192, 203]),
    ("cyan", [0, 255, 255]),
    ("turquoise", [64, 224, 208]),
    ("teal", [0, 128, 128]),
    ("brown", [165, 42, 42]),
    ("beige", [245, 245, 220]),
    ("gold", [255, 215, 0]),
    ("silver", [192, 192, 192]),
    ("white", [255, 255, 255]),
    ("black", [0, 0, 0]),
    ("grey", [128, 128, 128]),
    ("gray", [128, 128, 128]),
    ("dark grey", [64, 64, 64]),
    ("dark gray", [64, 64, 64]),
    ("light grey", [211, 211, 211]),
    ("light gray", [211, 211, 211]),
    ("lime", [0, 255, 0]),
    ("olive", [128, 128, 0]),
    ("maroon", [128, 0, 0]),
    ("salmon", [250, 128, 114]),
    ("ivory", [255, 255, 240]),
    ("bone", [241, 214, 145]),
    ("skin", [177, 122, 101]),
];

/// Fills every slot whose value is a word with a fixed meaning.
pub fn fill(entry: &Entry, request: &Request, filling: &mut Filling) {
    for slot in &entry.recipe.slots {
        if filling.has(slot) {
            continue;
        }
        if slot.kind == SlotKind::Color {
            fill_color(entry, slot, request, filling);
        } else if table_of(slot.kind).is_some() {
            let wordings = entry.options.get(&slot.name).map_or(&[][..], Vec::as_slice);
            if let Some(found) = longest(entry, slot, wordings, request, filling) {
                let value = match slot.kind {
                    SlotKind::Flag => SlotValue::Flag(matches!(found.canonical, "true" | "on" | "yes" | "show")),
                    _ => SlotValue::Text(found.canonical.to_owned()),
                };
                filling.put(slot, value, Source::Said);
                for index in found.words {
                    filling.take(slot, index, index + 1);
                }
            }
        }
    }
}

fn table_of(kind: SlotKind) -> Option<Table> {
    match kind {
        SlotKind::Choice | SlotKind::Sample => Some(&[]),
        SlotKind::Flag => Some(FLAGS),
        SlotKind::View => Some(VIEWS),
        SlotKind::Layout => Some(LAYOUTS),
        SlotKind::Axis => Some(AXES),
        SlotKind::Orientation => Some(ORIENTATIONS),
        _ => None,
    }
}

/// Canonical value and stems of each wording that the program itself knows for this slot. Values that the recipe's options
/// leave out are not offered.
pub fn table_wordings(slot: &Slot) -> Vec<(String, Vec<String>)> {
    if slot.kind == SlotKind::Color {
        return COLORS.iter().map(|(name, _)| ((*name).to_owned(), stems(name))).collect();
    }
    let offered = |canonical: &str| slot.options.is_empty() || slot.options.contains_key(canonical);
    table_of(slot.kind)
        .unwrap_or_default()
        .iter()
        .filter(|(canonical, _)| offered(canonical))
        .flat_map(|(canonical, words)| words.iter().map(|word| ((*canonical).to_owned(), stems(word))))
        .collect()
}

/// A wording in the part: its canonical value and the words it takes.
struct Found<'a> {
    canonical: &'a str,
    words: Vec<usize>,
}

/// The wording that stands where the recipe's phrasings have the slot; else the longest, else the first. A wording inside
/// a longer one is not seen.
fn longest<'a>(
    entry: &Entry,
    slot: &Slot,
    wordings: &'a [(String, Vec<String>)],
    request: &Request,
    filling: &Filling,
) -> Option<Found<'a>> {
    let mut found: Vec<Found> = Vec::new();
    for index in request.range.0..request.range.1 {
        let here = wordings
            .iter()
            .filter_map(|(canonical, sequence)| {
                let length = sequence_length(&request.words[..request.range.1], index, sequence)?;
                let letter = sequence.len() == 1 && sequence[0].chars().count() == 1;
                let seen = !letter || stands_for_axis(entry, slot, request, index);
                (seen && filling.is_free(index, index + length)).then_some((canonical, length))
            })
            .max_by_key(|(_, length)| *length);
        if let Some((canonical, length)) = here
            && !found.iter().any(|other| other.words.contains(&index))
        {
            found.push(Found { canonical, words: (index..index + length).collect() });
        }
    }
    if found.is_empty() {
        return parted(wordings, request, filling);
    }
    let anchors = entry.anchors.get(&slot.name);
    let anchored = |found: &Found| {
        let start = found.words.first().copied().unwrap_or_default();
        let end = found.words.last().copied().unwrap_or_default() + 1;
        let before = word_before(request, start)
            .is_some_and(|word| anchors.is_some_and(|anchors| anchors.before.contains(word)));
        let after = (end < request.range.1).then(|| request.words[end].text.as_str());
        let after = after.is_some_and(|word| anchors.is_some_and(|anchors| anchors.after.contains(word)));
        usize::from(before) + usize::from(after)
    };
    found.into_iter().max_by_key(|found| {
        (anchored(found), found.words.len(), usize::MAX - found.words.first().copied().unwrap_or_default())
    })
}

/// A verb whose particle stands apart: "turn the segment on", "make it visible".
fn parted<'a>(wordings: &'a [(String, Vec<String>)], request: &Request, filling: &Filling) -> Option<Found<'a>> {
    const MOST_BETWEEN: usize = 6;
    let range = request.range.0..request.range.1;
    wordings.iter().filter(|(_, sequence)| sequence.len() == 2).find_map(|(canonical, sequence)| {
        let particle = matches!(sequence[1].as_str(), "on" | "off") || sequence[1].ends_with("visibl");
        let first = range
            .clone()
            .find(|index| request.words[*index].stem == sequence[0] && filling.is_free(*index, index + 1))?;
        let second = (first + 1..range.end.min(first + 2 + MOST_BETWEEN))
            .find(|index| request.words[*index].stem == sequence[1])?;
        (particle && filling.is_free(second, second + 1)).then(|| Found { canonical, words: vec![first, second] })
    })
}

/// Whether a single letter is meant as an axis: "around S", "the z axis", but not "a" and "I" of a sentence.
fn stands_for_axis(entry: &Entry, slot: &Slot, request: &Request, index: usize) -> bool {
    let raw = request.raw(index, index + 1);
    let anchors = entry.anchors.get(&slot.name);
    let before =
        word_before(request, index).is_some_and(|word| anchors.is_some_and(|anchors| anchors.before.contains(word)));
    let after = request
        .words
        .get(index + 1)
        .is_some_and(|word| matches!(word.stem.as_str(), "axis" | "direction" | "sid" | "-"));
    raw.chars().all(char::is_uppercase) && before || after
}

/// The word before, without articles.
fn word_before<'a>(request: &'a Request, index: usize) -> Option<&'a str> {
    let before = (request.range.0..index).rev().map(|index| request.words[index].text.as_str());
    before.into_iter().find(|word| !matches!(*word, "the" | "a" | "an"))
}

fn fill_color(entry: &Entry, slot: &Slot, request: &Request, filling: &mut Filling) {
    for (index, word) in request.own_words() {
        if word.kind == WordKind::Hex
            && let Some(rgb) = hex(&word.text)
        {
            filling.put(slot, SlotValue::Color(rgb, format!("#{}", word.text)), Source::Said);
            filling.take(slot, index, index + 1);
            return;
        }
    }
    if let Some((rgb, start, end)) = rgb_numbers(request, filling) {
        filling.put(slot, SlotValue::Color(rgb, request.raw(start, end)), Source::Said);
        filling.take(slot, start, end);
        return;
    }
    let wordings = entry.options.get(&slot.name).map_or(&[][..], Vec::as_slice);
    // "red" of "the red slice" is a view, and what is said last is the new colour: "make the red tumour blue".
    let found = (request.range.0..request.range.1).rev().find_map(|index| {
        let names_view =
            |next: usize| request.words.get(next).is_some_and(|word| matches!(word.stem.as_str(), "slic" | "view"));
        let (canonical, length) = wordings
            .iter()
            .filter_map(|(name, sequence)| {
                Some((name, sequence_length(&request.words[..request.range.1], index, sequence)?))
            })
            .max_by_key(|(_, length)| *length)?;
        // "blue" of "dark blue" is found again one word before.
        let inside_longer = index > request.range.0
            && wordings.iter().any(|(_, sequence)| {
                sequence_length(&request.words[..request.range.1], index - 1, sequence)
                    .is_some_and(|longer| longer > length)
            });
        let free = filling.is_free(index, index + length) && !names_view(index + length) && !inside_longer;
        free.then(|| (canonical.clone(), index, index + length))
    });
    if let Some((name, start, end)) = found
        && let Some((_, rgb)) = COLORS.iter().find(|(known, _)| *known == name)
    {
        filling.put(slot, SlotValue::Color(rgb.map(|part| f64::from(part) / 255.0), name), Source::Said);
        filling.take(slot, start, end);
    }
}

/// `ff8800` or `f80` as RGB from 0 to 1.
fn hex(digits: &str) -> Option<[f64; 3]> {
    let long: String =
        if digits.len() == 3 { digits.chars().flat_map(|c| [c, c]).collect() } else { digits.to_owned() };
    let part = |start: usize| u8::from_str_radix(long.get(start..start + 2)?, 16).ok();
    Some([part(0)?, part(2)?, part(4)?].map(|part| f64::from(part) / 255.0))
}

/// Three numbers in a row, "255, 128, 0" or "1 0.5 0", as RGB from 0 to 1.
fn rgb_numbers(request: &Request, filling: &Filling) -> Option<([f64; 3], usize, usize)> {
    for start in request.range.0..request.range.1 {
        let mut values = Vec::new();
        let mut index = start;
        while index < request.range.1 && values.len() < 3 && filling.is_free(index, index + 1) {
            let word = &request.words[index];
            match word.number() {
                Some(value) if (0.0..=255.0).contains(&value) => values.push(value),
                None if !values.is_empty() && word.is_mark(',') => {}
                _ => break,
            }
            index += 1;
        }
        if let [red, green, blue] = values[..] {
            let scale = if [red, green, blue].iter().all(|value| *value <= 1.0) { 1.0 } else { 255.0 };
            return Some(([red / scale, green / scale, blue / scale], start, index));
        }
    }
    None
}
