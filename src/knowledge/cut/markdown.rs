//! Markdown by heading: `#` lines inside a code block are comments of code, not headings, and a code block stays whole.

use super::{MOST_TOKENS, PART_TOKENS, Passage, Words, is_long, pack, stem};

/// One passage a heading that has text of its own; sections that are too long are cut between paragraphs.
pub fn passages(path: &str, text: &str) -> Vec<Passage> {
    let lines: Vec<&str> = text.lines().collect();
    let fenced = fences(&lines);
    let mut found = Vec::new();
    let mut headings: Vec<(usize, String)> = Vec::new();
    let mut start = 0;
    for at in 0..=lines.len() {
        let heading = lines.get(at).filter(|_| !fenced[at]).and_then(|line| heading_of(line));
        if at < lines.len() && heading.is_none() {
            continue;
        }
        section(&mut found, path, &headings, &lines, &fenced, (start, at));
        if let Some((level, heading)) = heading {
            headings.retain(|(other, _)| *other < level);
            headings.push((level, heading.to_owned()));
            start = at;
        }
    }
    found
}

/// For each line whether it belongs to a code block, its fences included.
fn fences(lines: &[&str]) -> Vec<bool> {
    let mut open: Option<&str> = None;
    let mut inside = Vec::with_capacity(lines.len() + 1);
    for line in lines {
        let line = line.trim_start();
        let marker = ["```", "~~~", ":::"].into_iter().find(|marker| *marker != ":::" && line.starts_with(marker));
        match (open, marker) {
            (None, Some(marker)) => {
                open = Some(marker);
                inside.push(true);
            }
            (Some(this), Some(marker)) if this == marker && line.trim_end().trim_matches(['`', '~']).is_empty() => {
                open = None;
                inside.push(true);
            }
            (state, _) => inside.push(state.is_some()),
        }
    }
    inside.push(false);
    inside
}

fn heading_of(line: &str) -> Option<(usize, &str)> {
    let level = line.chars().take_while(|&c| c == '#').count();
    let rest = line.get(level..)?;
    ((1..=6).contains(&level) && rest.starts_with(' ')).then(|| (level, rest.trim().trim_end_matches('#').trim()))
}

fn section(
    found: &mut Vec<Passage>,
    path: &str,
    headings: &[(usize, String)],
    lines: &[&str],
    fenced: &[bool],
    (start, end): (usize, usize),
) {
    let mut end = end;
    // An anchor line belongs to the heading that follows it.
    while end > start && (lines[end - 1].trim().is_empty() || is_anchor(lines[end - 1])) {
        end -= 1;
    }
    let first_text = start + usize::from(start < end && !fenced[start] && heading_of(lines[start]).is_some());
    if lines[first_text..end].iter().all(|line| line.trim().is_empty()) {
        return; // A heading alone says nothing that its children's names do not say.
    }
    let names: Vec<&str> = headings.iter().map(|(_, heading)| heading.as_str()).collect();
    let name = if names.is_empty() { stem(path).to_owned() } else { names.join(" › ") };
    let whole = lines[start..end].join("\n");
    let parts = if is_long(&whole, MOST_TOKENS) {
        pack(lines, &paragraphs(lines, fenced, (start, end)), PART_TOKENS)
    } else {
        vec![(start, end)]
    };
    for (index, &(from, to)) in parts.iter().enumerate() {
        let mut words = words(lines, fenced, (from.max(first_text), to));
        words.title = names.last().map_or_else(|| stem(path).replace(['_', '-'], " "), |title| (*title).to_owned());
        let above = &names[..names.len().saturating_sub(1)];
        words.context = format!("{} {}", above.join(" "), stem(path).replace(['_', '-'], " "));
        let body = lines[from..to].join("\n");
        let text = if index == 0 { body } else { format!("{}\n{body}", lines[start]) };
        found.push(Passage {
            language: "markdown",
            name: name.clone(),
            start_line: from + 1,
            end_line: to,
            text,
            declares: Vec::new(),
            words,
        });
    }
}

fn is_anchor(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('(') && line.ends_with(")=")
}

/// Ranges between blank lines outside code blocks.
fn paragraphs(lines: &[&str], fenced: &[bool], (start, end): (usize, usize)) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    let mut from = start;
    for at in start..end {
        if lines[at].trim().is_empty() && !fenced[at] && at + 1 > from {
            ranges.push((from, at + 1));
            from = at + 1;
        }
    }
    if from < end {
        ranges.push((from, end));
    }
    ranges
}

/// Prose is what stands outside code, and the comments inside.
fn words(lines: &[&str], fenced: &[bool], (start, end): (usize, usize)) -> Words {
    let mut words = Words::default();
    for at in start..end {
        let line = lines[at];
        if !fenced[at] {
            push(&mut words.prose, line);
        } else if let Some((code, comment)) = line.split_once('#') {
            push(&mut words.code, code);
            push(&mut words.prose, comment);
        } else if !line.trim_start().starts_with("```") {
            push(&mut words.code, line);
        }
    }
    words
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Volumes\n\n(anchor)=\n\n## Read voxels\n\nHow to read.\n\n```python\n# Get the array\na = f()\n```\n\n## Empty\n\n### Deep\ntext\n";

    /// Protects code blocks from being cut at comments, the heading path, and the fields that words go to.
    #[test]
    fn sections_are_whole() {
        let found = passages("Docs/volume_page.md", PAGE);
        let places: Vec<(&str, usize, usize)> =
            found.iter().map(|p| (p.name.as_str(), p.start_line, p.end_line)).collect();
        assert_eq!(places, [("Volumes › Read voxels", 5, 12), ("Volumes › Empty › Deep", 16, 17)]);
        let words = &found[0].words;
        assert_eq!((words.title.as_str(), words.context.as_str()), ("Read voxels", "Volumes volume page"));
        assert!(words.prose.contains("Get the array") && !words.code.contains("Get the array"));
        assert!(words.code.contains("a = f()"));
    }

    /// Protects that long sections are cut between paragraphs only, and that no line is lost.
    #[test]
    fn long_sections_are_cut_between_paragraphs() {
        let block = format!("```python\n{}```\n\n", "value = 1\n\n".repeat(120));
        let page = format!("# Long\n\n{}", block.repeat(4));
        let found = passages("x.md", &page);
        assert!(found.len() > 1, "one passage of {} lines", page.lines().count());
        for passage in &found {
            assert_eq!(passage.text.matches("```").count() % 2, 0, "a fence was cut");
        }
        for pair in found.windows(2) {
            assert_eq!(pair[1].start_line, pair[0].end_line + 1);
        }
    }
}
