//! Cuts files into passages: what a search gives back and a model reads.
//!
//! A passage is one thing that a person would name: a section, a function, a documented method, a command-line module.
//! It carries its text whole, and apart from that the words of each field that the ranking weighs, because a word in a
//! heading says more than the same word in a loop.

mod cli_xml;
mod cpp;
mod markdown;
mod python;

use super::index::KnowledgeError;

/// Characters of a token of code or English, roughly: what the limits below are counted by.
const CHARACTERS_PER_TOKEN: usize = 4;
/// A longer passage is cut at paragraphs.
pub const MOST_TOKENS: usize = 800;
/// A longer function is cut at statements: long bodies push shorter answers out of what a model can be sent.
pub const MOST_CODE_TOKENS: usize = 400;
/// The parts of a section that is too long.
pub const PART_TOKENS: usize = 400;
/// Neighbouring declarations are put together up to this size.
pub const LEAST_TOKENS: usize = 120;

/// A passage with the words that it is found by.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Passage {
    /// `python`, `cpp`, `markdown`, `xml`.
    pub language: &'static str,
    /// Heading path or qualified name, as shown.
    pub name: String,
    /// 1-based, inclusive.
    pub start_line: usize,
    pub end_line: usize,
    /// As a model reads it.
    pub text: String,
    /// Names that the passage declares (`SetGlyphSize`).
    pub declares: Vec<String>,
    pub words: Words,
}

/// The text of each field that the ranking weighs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Words {
    pub title: String,
    pub context: String,
    pub prose: String,
    pub code: String,
}

/// The passages of a file by its ending; none for endings that have none.
///
/// # Errors
/// When a grammar of this build cannot be loaded.
pub fn passages(path: &str, text: &str) -> Result<Vec<Passage>, KnowledgeError> {
    let found = match path.rsplit('.').next().unwrap_or("") {
        "md" => markdown::passages(path, text),
        "py" => python::passages(path, text)?,
        "h" => cpp::passages(path, text)?,
        "xml" => cli_xml::passages(path, text),
        _ => Vec::new(),
    };
    Ok(found.into_iter().map(shortened).collect())
}

/// About how many tokens a text has.
pub fn tokens_of(text: &str) -> usize {
    text.len().div_ceil(CHARACTERS_PER_TOKEN)
}

/// The file's name without folders and ending.
fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name)
}

/// Whether a text is too long for one passage.
fn is_long(text: &str, limit: usize) -> bool {
    tokens_of(text) > limit
}

/// Cuts consecutive line ranges (0-based, end exclusive) into groups that each stay within `limit` tokens. A single range
/// that is longer stays whole up to [`MOST_TOKENS`], and is cut between lines above.
fn pack(lines: &[&str], ranges: &[(usize, usize)], limit: usize) -> Vec<(usize, usize)> {
    let size_of = |range: (usize, usize)| -> usize {
        lines[range.0..range.1].iter().map(|line| line.len() + 1).sum::<usize>().div_ceil(CHARACTERS_PER_TOKEN)
    };
    let mut packed: Vec<(usize, usize)> = Vec::new();
    let mut size = usize::MAX / 2;
    for &(start, end) in ranges {
        let own = size_of((start, end));
        if own > MOST_TOKENS && end > start + 1 {
            let single: Vec<(usize, usize)> = (start..end).map(|line| (line, line + 1)).collect();
            packed.extend(pack(lines, &single, limit));
            size = usize::MAX / 2;
            continue;
        }
        match packed.last_mut() {
            Some(last) if size + own <= limit => {
                last.1 = end;
                size += own;
            }
            _ => {
                packed.push((start, end));
                size = own;
            }
        }
    }
    packed
}

/// A passage that is one endless line (a table, data) is shown in part.
fn shortened(mut passage: Passage) -> Passage {
    let most = 2 * MOST_TOKENS * CHARACTERS_PER_TOKEN;
    if passage.text.len() > most {
        let end = (0..=most).rev().find(|at| passage.text.is_char_boundary(*at)).unwrap_or(0);
        passage.text.truncate(end);
        passage.text.push('…');
    }
    passage
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects the limit against statements and lines without an end.
    #[test]
    fn nothing_is_longer_than_the_limit() {
        let table = format!("TABLE = [\n{}]\n", "    [1, 2, 3],\n".repeat(2_000));
        let found = passages("x.py", &table).expect("grammar");
        assert!(found.len() > 5 && found.iter().all(|passage| tokens_of(&passage.text) <= MOST_TOKENS));
        let line = passages("x.md", &format!("# A\n{}ä", "word ".repeat(20_000))).expect("grammar");
        assert!(line.iter().all(|passage| tokens_of(&passage.text) <= 2 * MOST_TOKENS + 1));
    }
}
