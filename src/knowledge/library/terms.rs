//! The words of the ranking: tokens brought to a common root, so that "rotating", "rotation" and "rotate" meet.
//!
//! The roots are cruder than those of a linguist, on purpose: code is full of nouns made of verbs, and a rare false
//! meeting costs less than a missed one.

use crate::knowledge::tokens::tokens;

/// Endings that are taken off, with the least number of letters that must stay. Longest first.
const ENDINGS: &[(&str, usize)] = &[
    ("izations", 4),
    ("ization", 4),
    ("ations", 4),
    ("ation", 4),
    ("itions", 4),
    ("ition", 4),
    ("ments", 4),
    ("ment", 4),
    ("ibility", 3),
    ("ability", 4),
    ("ility", 4),
    ("iously", 4),
    ("ities", 4),
    ("ically", 4),
    ("ity", 5),
    ("ible", 3),
    ("able", 4),
    ("ions", 4),
    ("ion", 4),
    ("ings", 3),
    ("ing", 3),
    ("ness", 4),
    ("ical", 4),
    ("ized", 4),
    ("izes", 4),
    ("ize", 4),
    ("ated", 4),
    ("ates", 4),
    ("ate", 4),
    ("ally", 4),
    ("ers", 5),
    ("er", 5),
    ("ors", 5),
    ("or", 5),
    ("ed", 3),
    ("es", 4),
    ("ly", 4),
    ("al", 5),
    ("ic", 5),
    ("s", 3),
];
/// Words whose root would meet another word's.
const KEPT: &[&str] = &[
    "slicer",
    "parameter",
    "always",
    "series",
    "axis",
    "canvas",
    "process",
    "class",
    "bias",
    "status",
    "address",
    "access",
];

/// The roots of all tokens of a text, in order.
pub fn roots(text: &str) -> Vec<String> {
    tokens(text).iter().map(|token| root(token)).collect()
}

/// The roots without the cut of identifiers: what a plain search would see. For the benchmark's comparison only.
pub fn plain_roots(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    words.map(|word| root(&word.to_lowercase())).collect()
}

/// The root of one lower-case word.
pub fn root(word: &str) -> String {
    if !word.is_ascii()
        || word.len() < 4
        || KEPT.contains(&word)
        || word.bytes().any(|b| b.is_ascii_digit() || b == b'_')
    {
        return word.to_owned();
    }
    let mut stem = word;
    for (ending, least) in ENDINGS {
        if let Some(rest) = stem.strip_suffix(ending)
            && rest.len() >= *least
            && !(*ending == "s" && rest.ends_with('s'))
        {
            stem = rest;
            break;
        }
    }
    let stem = if stem.len() > 4 { stem.strip_suffix('e').unwrap_or(stem) } else { stem };
    let mut stem = stem.to_owned();
    let bytes = stem.as_bytes();
    if bytes.len() > 4 && bytes[bytes.len() - 1] == bytes[bytes.len() - 2] && !stem.ends_with("ss") {
        stem.pop();
    }
    if stem.len() > 3 && stem.ends_with('y') {
        stem.pop();
        stem.push('i');
    }
    stem
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects the meeting of word forms that people and code use for the same thing.
    #[test]
    fn forms_of_a_word_meet() {
        for forms in [
            &["transform", "transforms", "transformation", "transforming", "transformed"][..],
            &["display", "displayed", "displays"],
            &["rotate", "rotation", "rotating", "rotated"],
            &["orientation", "orientations"],
            &["threshold", "thresholding"],
            &["control", "controller", "controlling"],
            &["visible", "visibility"],
            &["copy", "copies", "copied"],
        ] {
            let found: std::collections::BTreeSet<String> = forms.iter().map(|form| root(form)).collect();
            assert_eq!(found.len(), 1, "{forms:?} gives {found:?}");
        }
    }

    /// Protects words that must not meet.
    #[test]
    fn different_words_stay_apart() {
        assert_ne!(root("slicer"), root("slice"));
        assert_ne!(root("marker"), root("markup"));
        assert_eq!(roots("SetGlyphSize").len(), 4);
    }
}
