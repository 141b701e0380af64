//! Cuts markdown into the pieces that are indexed: one a heading, with code blocks never cut.
//!
//! Only `#` lines outside a code block are headings: a Python comment is not one. A recipe has its front matter left
//! out, its plan and answer too (they are for the built-in provider), and its code kept whole under its heading path.

use super::recipe::Recipe;

/// A piece of knowledge with the place it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Path below the knowledge root.
    pub path: String,
    /// Kind of source, for example `recipe`.
    pub kind: String,
    /// Heading path ("Segment by threshold › Code") or qualified name.
    pub name: String,
    /// 1-based, inclusive.
    pub start_line: usize,
    pub end_line: usize,
    pub text: String,
}

/// The pieces of a markdown text under each heading. `first_line` is the 1-based line of its first line in the file.
pub fn markdown(path: &str, kind: &str, text: &str, first_line: usize) -> Vec<Chunk> {
    let lines: Vec<&str> = text.lines().collect();
    let mut chunks = Vec::new();
    let mut headings: Vec<(usize, String)> = Vec::new();
    let mut start = 0;
    let mut in_fence = false;
    for (index, line) in lines.iter().enumerate() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            in_fence = !in_fence;
        }
        let Some((level, heading)) = heading_of(line).filter(|_| !in_fence) else { continue };
        push(&mut chunks, path, kind, &headings, &lines, (start, index), first_line);
        headings.retain(|(other, _)| *other < level);
        headings.push((level, heading.to_owned()));
        start = index;
    }
    push(&mut chunks, path, kind, &headings, &lines, (start, lines.len()), first_line);
    chunks
}

/// The pieces of a recipe that are worth retrieving: prose by heading, and the code whole.
pub fn recipe(recipe: &Recipe) -> Vec<Chunk> {
    let body_at = recipe.text.match_indices("+++\n").nth(1).map_or(0, |(at, marker)| at + marker.len());
    let first_line = recipe.text[..body_at].matches('\n').count() + 1;
    let mut chunks = markdown(&recipe.path, "recipe", &recipe.text[body_at..], first_line);
    chunks.retain(|chunk| !matches!(chunk.name.rsplit(" › ").next(), Some("Plan" | "Answer")));
    if let Some(first) = chunks.first_mut() {
        // The words people use are the best words to be found by.
        first.text = format!("{}\n\nAlso said: {}", first.text, spoken(recipe));
    }
    chunks
}

/// Phrasings and keywords as plain words.
fn spoken(recipe: &Recipe) -> String {
    let phrasings = recipe.phrasings.iter().map(|phrasing| phrasing.replace(['{', '}'], ""));
    phrasings.chain(recipe.keywords.iter().cloned()).collect::<Vec<_>>().join("; ")
}

fn heading_of(line: &str) -> Option<(usize, &str)> {
    let level = line.chars().take_while(|&c| c == '#').count();
    let rest = line.get(level..)?;
    ((1..=6).contains(&level) && rest.starts_with(' ')).then(|| (level, rest.trim()))
}

fn push(
    chunks: &mut Vec<Chunk>,
    path: &str,
    kind: &str,
    headings: &[(usize, String)],
    lines: &[&str],
    (start, end): (usize, usize),
    first_line: usize,
) {
    let mut end = end;
    while end > start && lines[end - 1].trim().is_empty() {
        end -= 1;
    }
    let body = &lines[start..end];
    if body.iter().all(|line| line.trim().is_empty() || heading_of(line).is_some()) {
        return; // A heading alone says nothing that its children's names do not say.
    }
    let name: Vec<&str> = headings.iter().map(|(_, heading)| heading.as_str()).collect();
    chunks.push(Chunk {
        path: path.to_owned(),
        kind: kind.to_owned(),
        name: if name.is_empty() { path.to_owned() } else { name.join(" › ") },
        start_line: first_line + start,
        end_line: first_line + end.max(start + 1) - 1,
        text: body.join("\n"),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects code blocks from being cut at Python comments, and the line numbers.
    #[test]
    fn comments_in_code_are_not_headings() {
        let text = "# Top\nintro\n\n## Code\n```python\n# a comment\nx = 1\n```\n\n## Empty\n\n## Last\nend\n";
        let chunks = markdown("x.md", "doc", text, 11);
        let places: Vec<(&str, usize, usize)> =
            chunks.iter().map(|chunk| (chunk.name.as_str(), chunk.start_line, chunk.end_line)).collect();
        assert_eq!(places, [("Top", 11, 12), ("Top › Code", 14, 18), ("Top › Last", 22, 23)]);
        assert!(chunks[1].text.contains("# a comment\nx = 1"));
    }
}
