//! The texts of a chunk that become vectors: the whole, and its parts.
//!
//! One vector for a long section is the average of everything in it, and a question about one of its examples is near to
//! none of that. So a section also has a vector for each paragraph and each piece of code that a comment introduces, and
//! a function one for its signature and the first words of its docstring. The chunk counts with the best of them and is
//! still returned whole.

/// More parts than this are not taken from one chunk; the whole stands for the rest.
const MOST_PARTS: usize = 12;
/// A shorter part says nothing by itself.
const SHORTEST: usize = 24;

/// What is known of a chunk when its texts are made.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Kind of knowledge in words, for example "example from the documentation".
    pub label: &'a str,
    /// Heading path or qualified name.
    pub name: &'a str,
    /// True for prose with code blocks in it, false for code.
    pub is_markdown: bool,
    pub text: &'a str,
}

/// The texts to embed, the whole first.
pub fn views(source: Source<'_>) -> Vec<String> {
    let Source { label, name, is_markdown, text } = source;
    let mut views = vec![format!("{label}: {name}\n{}", text.trim())];
    let parts = if is_markdown { markdown_parts(text) } else { head_of_code(text).into_iter().collect() };
    // A chunk of one part has been said by the whole.
    if parts.len() > 1 || !is_markdown {
        let long_enough = parts.into_iter().filter(|part| part.len() >= SHORTEST && part.len() < text.trim().len());
        views.extend(long_enough.take(MOST_PARTS).map(|part| format!("{name}\n{part}")));
    }
    views
}

/// Paragraphs, and pieces of code blocks that begin with a comment.
fn markdown_parts(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut in_code = false;
    let mut after_comment = false;
    for line in text.lines() {
        let trimmed = line.trim();
        let is_fence = trimmed.starts_with("```") || trimmed.starts_with("~~~");
        let is_comment = in_code && (trimmed.starts_with('#') || trimmed.starts_with("//"));
        let ends_part = is_fence || (!in_code && trimmed.is_empty()) || (is_comment && !after_comment);
        if ends_part && !part.trim().is_empty() {
            parts.push(std::mem::take(&mut part).trim().to_owned());
        }
        if is_fence {
            in_code = !in_code;
        } else {
            part.push_str(line);
            part.push('\n');
        }
        after_comment = is_comment;
    }
    if !part.trim().is_empty() {
        parts.push(part.trim().to_owned());
    }
    // Headings are in the name already.
    parts.retain(|part| !part.starts_with('#') || part.contains('\n'));
    parts
}

/// The signature and the first paragraph of a docstring or leading comment: what a reader looks at first.
fn head_of_code(text: &str) -> Option<String> {
    let mut head: Vec<&str> = Vec::new();
    let mut in_signature = true;
    for line in text.trim().lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            break;
        }
        let is_said = ["\"\"\"", "'''", "#", "//", "/*", "*", "///"].iter().any(|mark| trimmed.starts_with(mark));
        head.push(trimmed);
        if in_signature && !is_said && (trimmed.ends_with(':') || trimmed.ends_with('{') || trimmed.ends_with(';')) {
            in_signature = false;
        }
        if head.len() >= 8 || (!in_signature && head.len() > 1 && trimmed.ends_with("\"\"\"")) {
            break;
        }
    }
    (!head.is_empty()).then(|| head.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTION: &str = "### Load volume from file\n\nReads any format that Slicer knows.\n\n```python\n\
        # The usual way\nnode = slicer.util.loadVolume('a.nrrd')\n\n# Show it in red\n# and only there\n\
        slicer.app.layoutManager()\n```\n\nMore is said of formats in the user guide.\n";

    /// Each paragraph and each commented piece of code stands alone, and comments inside code are no headings.
    #[test]
    fn a_section_has_its_parts() {
        let source = Source { label: "Example", name: "Volumes › Load", is_markdown: true, text: SECTION };
        let views = views(source);
        let parts: Vec<&str> = views[1..].iter().map(|view| view.split_once('\n').unwrap().1).collect();
        assert!(views[0].starts_with("Example: Volumes › Load\n### Load"));
        assert_eq!(
            parts,
            [
                "Reads any format that Slicer knows.",
                "# The usual way\nnode = slicer.util.loadVolume('a.nrrd')",
                "# Show it in red\n# and only there\nslicer.app.layoutManager()",
                "More is said of formats in the user guide.",
            ]
        );
    }

    #[test]
    fn a_function_has_its_head() {
        let text = "def loadVolume(filename, properties={}, returnNode=False):\n    \"\"\"Load node from file.\n\n    \
                    :param filename: full path\n    \"\"\"\n    return loadNodeFromFile(filename)";
        let views = views(Source { label: "API", name: "slicer.util.loadVolume", is_markdown: false, text });
        assert_eq!(views.len(), 2);
        assert_eq!(
            views[1],
            "slicer.util.loadVolume\ndef loadVolume(filename, properties={}, returnNode=False):\n\"\"\"Load node from file."
        );
    }

    /// What is one short piece is embedded once; what has hundreds of parts does not take hundreds of vectors.
    #[test]
    fn the_number_of_texts_is_bounded() {
        let short = Source { label: "Doc", name: "A", is_markdown: true, text: "One sentence that stands alone here." };
        assert_eq!(views(short).len(), 1);
        let text = "A paragraph with enough words in it.\n\n".repeat(300);
        assert_eq!(views(Source { text: &text, ..short }).len(), 1 + MOST_PARTS);
    }
}
