//! The code-aware token stream of the lexical index.
//!
//! People write "segment statistics", code says `vtkMRMLSegmentStatisticsNode` or `get_segment_statistics`. Both must
//! meet, so an identifier yields itself whole, its parts (camelCase, underscores, digits), and itself without the
//! `vtkMRML` and `Node` affixes; every word is lower-cased and English plurals are taken to their singular.

/// Words that carry no meaning in a query. Kept short: in a technical question most words matter.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "has", "have", "how", "i",
    "in", "is", "it", "its", "me", "my", "of", "on", "or", "so", "that", "the", "there", "this", "to", "want", "was",
    "what", "when", "which", "will", "with", "would", "you", "your",
];

/// All tokens of a text, in order, for the index. Tokens hold only lower-case letters, digits and underscores.
pub fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
        let word = word.trim_matches('_');
        if !word.is_empty() {
            push_identifier(word, &mut found);
        }
    }
    found
}

/// The distinct tokens of a query, without words that carry no meaning (unless nothing else is there).
pub fn query_tokens(query: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for token in tokens(query) {
        if !all.contains(&token) {
            all.push(token);
        }
    }
    let meaningful: Vec<String> = all.iter().filter(|token| !STOP_WORDS.contains(&token.as_str())).cloned().collect();
    if meaningful.is_empty() { all } else { meaningful }
}

fn push_identifier(word: &str, found: &mut Vec<String>) {
    let whole = word.to_lowercase();
    let parts = parts(word);
    if parts.len() == 1 {
        found.push(singular(&whole));
        return;
    }
    found.push(whole.clone());
    let bare = strip_affixes(word).to_lowercase();
    if !bare.is_empty() && bare != whole {
        found.push(bare);
    }
    for part in parts {
        let part = singular(&part.to_lowercase());
        if found.last().is_none_or(|last| *last != part) {
            found.push(part);
        }
    }
}

/// The name without the affixes that every MRML class carries.
fn strip_affixes(word: &str) -> &str {
    let word = ["vtkMRML", "qMRML", "vtkSlicer", "qSlicer", "vtk"]
        .iter()
        .find_map(|prefix| word.strip_prefix(prefix))
        .unwrap_or(word);
    word.strip_suffix("Node").unwrap_or(word)
}

/// Cuts an identifier at underscores, between lower and upper case, between letters and digits, and before the last
/// capital of an abbreviation (`RASToIJKMatrix` gives RAS, To, IJK, Matrix).
fn parts(word: &str) -> Vec<&str> {
    let chars: Vec<(usize, char)> = word.char_indices().collect();
    let mut found = Vec::new();
    let mut start = 0;
    for (position, &(offset, this)) in chars.iter().enumerate().skip(1) {
        let before = chars[position - 1].1;
        let after = chars.get(position + 1).map(|&(_, c)| c);
        let cut = (before.is_lowercase() && this.is_uppercase())
            || (before.is_numeric() != this.is_numeric() && before != '_' && this != '_')
            || (before.is_uppercase() && this.is_uppercase() && after.is_some_and(char::is_lowercase));
        if this == '_' || before == '_' || cut {
            push_part(&word[start..offset], &mut found);
            start = offset;
        }
    }
    push_part(&word[start..], &mut found);
    found
}

fn push_part<'a>(part: &'a str, found: &mut Vec<&'a str>) {
    if !part.is_empty() && part != "_" {
        found.push(part);
    }
}

/// The singular of an English plural, by its ending; other words stay as they are.
pub fn singular(word: &str) -> String {
    let length = word.chars().count();
    if length > 4 && word.ends_with("ies") {
        return format!("{}y", &word[..word.len() - 3]);
    }
    let takes_es = ["sses", "xes", "ches", "shes", "zes"];
    if length > 4 && takes_es.iter().any(|ending| word.ends_with(ending)) {
        return word[..word.len() - 2].to_owned();
    }
    let keeps_s = ["ss", "us", "is", "as"];
    if length > 3 && word.ends_with('s') && !keeps_s.iter().any(|ending| word.ends_with(ending)) {
        return word[..word.len() - 1].to_owned();
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects that a class is found by its whole name, its bare name and its words.
    #[test]
    fn class_names_are_found_by_their_words() {
        let found = tokens("vtkMRMLScalarVolumeNode");
        for expected in ["vtkmrmlscalarvolumenode", "scalarvolume", "scalar", "volume"] {
            assert!(found.iter().any(|token| token == expected), "{expected} in {found:?}");
        }
    }

    /// Protects the cut inside abbreviations and at digits, and that plurals meet their singular.
    #[test]
    fn identifiers_are_cut_where_people_put_spaces() {
        assert_eq!(parts("RASToIJKMatrix"), ["RAS", "To", "IJK", "Matrix"]);
        assert_eq!(parts("update_segment2"), ["update", "segment", "2"]);
        assert_eq!(tokens("Volumes, bodies and axes"), ["volume", "body", "and", "axe"]);
        assert_eq!(tokens("radius analysis class"), ["radius", "analysis", "class"]);
    }

    /// Protects short queries that consist of common words alone.
    #[test]
    fn a_query_of_stop_words_is_kept() {
        assert_eq!(query_tokens("what is it"), ["what", "is", "it"]);
        assert_eq!(query_tokens("how do I load the volume"), ["load", "volume"]);
    }
}
