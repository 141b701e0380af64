//! Reading and searching the knowledge files themselves: what the tools `Grep` and `ReadFile` do.
//!
//! The files are held as values with paths relative to the knowledge roots, so that nothing outside them can be asked
//! for: a path is a key, it never reaches the file system.

use regex::RegexBuilder;

use super::index::KnowledgeError;

/// Longest text that a tool gives back, in characters.
pub const MOST_CHARACTERS: usize = 8_000;
/// A compiled pattern may take this much memory; above, it is refused as too large.
const PATTERN_BYTES: usize = 1 << 20;

/// The knowledge files that a model may read.
#[derive(Debug, Clone, Default)]
pub struct KnowledgeFiles {
    files: Vec<(String, String)>,
}

/// How many matches one file has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMatch {
    pub path: String,
    pub count: usize,
}

/// What a pattern found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrepReport {
    /// Most matches first.
    pub files: Vec<FileMatch>,
    /// Matches with their context, capped, with a note when something was left out.
    pub text: String,
}

impl KnowledgeFiles {
    /// Files by path (relative, with `/`) and text; sorted by path.
    pub fn new(mut files: Vec<(String, String)>) -> Self {
        files.sort();
        Self { files }
    }

    /// What is embedded in the program: the recipes.
    pub fn embedded() -> Self {
        Self::new(super::recipe::files(None).into_iter().filter(|(path, _)| path.ends_with(".md")).collect())
    }

    /// Adds the files of another set.
    pub fn join(&mut self, other: &Self) {
        self.files.extend(other.files.iter().cloned());
        self.files.sort();
    }

    /// All paths, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(path, _)| path.as_str())
    }

    /// Lines that match a regular expression, with `context` lines around each, in the file or folder `path` if one
    /// is given. Upper and lower case are the same unless the pattern holds an upper-case letter.
    ///
    /// # Errors
    /// When the pattern is not a regular expression or the path is not one of ours.
    pub fn grep(&self, pattern: &str, path: Option<&str>, context: usize) -> Result<GrepReport, KnowledgeError> {
        let expression = RegexBuilder::new(pattern)
            .case_insensitive(!pattern.chars().any(char::is_uppercase))
            .size_limit(PATTERN_BYTES)
            .build()
            .map_err(|error| KnowledgeError::Pattern { pattern: pattern.to_owned(), why: error.to_string() })?;
        let folder = path.map(checked).transpose()?;
        let inside = |candidate: &str| {
            folder.as_deref().is_none_or(|folder| {
                candidate == folder || candidate.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
            })
        };
        let mut report = GrepReport::default();
        let mut blocks = Vec::new();
        for (candidate, text) in self.files.iter().filter(|(candidate, _)| inside(candidate)) {
            let lines: Vec<&str> = text.lines().collect();
            let matches: Vec<usize> = (0..lines.len()).filter(|&index| expression.is_match(lines[index])).collect();
            if !matches.is_empty() {
                report.files.push(FileMatch { path: candidate.clone(), count: matches.len() });
                blocks.extend(context_blocks(candidate, &lines, &matches, context));
            }
        }
        report.files.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.path.cmp(&b.path)));
        report.text = cap(&blocks.join("\n--\n"), "Narrow the pattern, or name a `path`, to see the rest.");
        Ok(report)
    }

    /// The text of one file, from `first_line` (1-based) on.
    ///
    /// # Errors
    /// When the path leads outside or there is no such file.
    pub fn read_file(&self, path: &str, first_line: usize) -> Result<String, KnowledgeError> {
        let path = checked(path)?;
        let Some((_, text)) = self.files.iter().find(|(candidate, _)| *candidate == path) else {
            return Err(KnowledgeError::Missing { nearest: self.nearest(&path), path });
        };
        let lines: Vec<&str> = text.lines().collect();
        let skip = first_line.saturating_sub(1).min(lines.len());
        let mut shown = String::new();
        for (index, line) in lines.iter().enumerate().skip(skip) {
            if shown.chars().count() + line.chars().count() + 1 > MOST_CHARACTERS && !shown.is_empty() {
                let total = lines.len();
                let next = index + 1;
                return Ok(format!("{shown}[… {total} lines in all; read on with first_line={next}]"));
            }
            shown.push_str(line);
            shown.push('\n');
        }
        Ok(cap(&shown, "One line is longer than can be shown."))
    }

    fn nearest(&self, path: &str) -> String {
        let name = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".md");
        let similar: Vec<&str> = self.paths().filter(|candidate| candidate.contains(name)).take(3).collect();
        if similar.is_empty() { String::new() } else { format!(" Similar: {}.", similar.join(", ")) }
    }
}

/// The path as the files are keyed; refuses what is absolute or climbs.
pub(super) fn checked(path: &str) -> Result<String, KnowledgeError> {
    let outside = || KnowledgeError::Outside { path: path.to_owned() };
    let clean = path.trim().trim_start_matches("./").trim_end_matches('/');
    // Extensions are named `ext:<Name>/…`.
    let behind_scheme = clean.strip_prefix("ext:").unwrap_or(clean);
    let climbs = clean.split(['/', '\\']).any(|part| part == "..");
    if clean.starts_with(['/', '\\', '~'])
        || behind_scheme.contains(':')
        || behind_scheme.starts_with(['/', '\\'])
        || clean.contains('\0')
        || climbs
    {
        return Err(outside());
    }
    Ok(clean.to_owned())
}

/// Each run of matches with the lines around it, as `path:line: text`.
fn context_blocks(path: &str, lines: &[&str], matches: &[usize], context: usize) -> Vec<String> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &at in matches {
        let (start, end) = (at.saturating_sub(context), at.saturating_add(context + 1).min(lines.len()));
        match ranges.last_mut() {
            Some(last) if start <= last.1 => last.1 = end,
            _ => ranges.push((start, end)),
        }
    }
    ranges
        .into_iter()
        .map(|(start, end)| {
            let shown = (start..end).map(|index| format!("{path}:{}: {}", index + 1, lines[index]));
            shown.collect::<Vec<_>>().join("\n")
        })
        .collect()
}

fn cap(text: &str, note: &str) -> String {
    match text.char_indices().nth(MOST_CHARACTERS) {
        Some((at, _)) => format!("{}\n[… cut at {MOST_CHARACTERS} characters. {note}]", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> KnowledgeFiles {
        let long = (0..2_000).map(|n| format!("line {n}\n")).collect::<String>();
        KnowledgeFiles::new(vec![("recipes/a.md".into(), "one\nTwo\nthree\n".into()), ("recipes/long.md".into(), long)])
    }

    /// Protects the fence around the knowledge roots.
    #[test]
    fn nothing_outside_can_be_named() {
        for path in ["/etc/passwd", "../x", "recipes/../../x", "C:\\x", "~/x", "recipes\\..\\x"] {
            assert!(matches!(files().read_file(path, 1), Err(KnowledgeError::Outside { .. })), "{path}");
            assert!(matches!(files().grep("x", Some(path), 0), Err(KnowledgeError::Outside { .. })), "{path}");
        }
    }

    /// Protects the cap and that the note leads to the rest.
    #[test]
    fn long_files_are_read_in_pieces() {
        let first = files().read_file("recipes/long.md", 1).expect("read");
        assert!(first.chars().count() < MOST_CHARACTERS + 100);
        let next = first.rsplit("first_line=").next().and_then(|rest| rest.trim_end_matches(']').parse().ok());
        let next: usize = next.expect("a line to read on from");
        assert!(files().read_file("recipes/long.md", next).expect("read").starts_with(&format!("line {}\n", next - 1)));
    }

    /// Protects counts, context, smart case and the error for a bad pattern.
    #[test]
    fn grep_counts_and_shows() {
        let report = files().grep("two", None, 1).expect("grep");
        assert_eq!(report.files, [FileMatch { path: "recipes/a.md".into(), count: 1 }]);
        assert_eq!(report.text, "recipes/a.md:1: one\nrecipes/a.md:2: Two\nrecipes/a.md:3: three");
        assert!(files().grep("TWO", None, 0).expect("grep").files.is_empty());
        assert!(matches!(files().grep("(", None, 0), Err(KnowledgeError::Pattern { .. })));
        assert!(matches!(files().read_file("recipes/lon", 1), Err(KnowledgeError::Missing { .. })));
    }
}
