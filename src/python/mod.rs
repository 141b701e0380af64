//! Reading Python source with tree-sitter: the small set of helpers that safety, knowledge and workflow share.
//!
//! A syntax tree and not the interpreter, because the text is judged before any Python runs and often without Slicer
//! being there. tree-sitter never fails on bad text; `first_problem` says whether the tree can be trusted.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use thiserror::Error;
use tree_sitter::{Node, ParseOptions, ParseState, Parser, Point, Tree};
use unicode_normalization::UnicodeNormalization;

/// A text of the length that is checked at all is read in a small part of this.
const PARSE_LIMIT: Duration = Duration::from_millis(800);

/// Why a text could not be read as Python.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum ParseError {
    /// The grammar could not be loaded: the program was built against an incompatible tree-sitter.
    #[error("the Python grammar of this build cannot be loaded")]
    Grammar,
    /// tree-sitter gave no tree.
    #[error("the code could not be read as Python")]
    NoTree,
}

/// Parses `code`. Text that is not valid Python still gives a tree; ask `first_problem`.
pub fn parse(code: &str) -> Result<Tree, ParseError> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_python::LANGUAGE.into()).map_err(|_| ParseError::Grammar)?;
    // Some texts cost the grammar far more than their length; nobody waits for them.
    let start = Instant::now();
    let mut watch = |_: &ParseState| {
        if start.elapsed() > PARSE_LIMIT { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let bytes = code.as_bytes();
    let mut read = |at: usize, _: Point| bytes.get(at..).unwrap_or_default();
    let options = ParseOptions::new().progress_callback(&mut watch);
    parser.parse_with_options(&mut read, None, Some(options)).ok_or(ParseError::NoTree)
}

/// The source text of `node`; empty when the node does not lie in `code` on character borders.
pub fn text<'a>(node: Node<'_>, code: &'a str) -> &'a str {
    code.get(node.byte_range()).unwrap_or("")
}

/// An identifier as Python sees it: NFKC-normalised.
pub fn identifier(raw: &str) -> String {
    if raw.is_ascii() { raw.to_owned() } else { raw.nfkc().collect() }
}

/// The named children of `node`, comments left out.
pub fn children<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).filter(|child| child.kind() != "comment").collect()
}

/// The children of `node` in the field `name`, in order.
pub fn fields<'t>(node: Node<'t>, name: &str) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.children_by_field_name(name, &mut cursor)
        .filter(|child| child.is_named() && child.kind() != "comment")
        .collect()
}

/// What stands in the way of trusting a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// Not valid Python here (byte offset).
    Syntax(usize),
    /// Deeper nesting than `limit` here (byte offset).
    Depth(usize),
}

/// The first error node of `tree`, or the first place that is nested deeper than `limit` levels. Chains of operators,
/// attributes and calls are deep in the tree but not to a reader: of those, five times as many. Walks without recursion,
/// so that hostile nesting cannot exhaust the stack.
pub fn first_problem(tree: &Tree, limit: usize) -> Option<Problem> {
    let mut cursor = tree.walk();
    let (mut depth, mut nesting) = (0usize, 0usize);
    let chained =
        |kind: &str| matches!(kind, "binary_operator" | "boolean_operator" | "attribute" | "call" | "subscript");
    loop {
        let node = cursor.node();
        if node.is_error() || node.is_missing() {
            return Some(Problem::Syntax(node.start_byte()));
        }
        if nesting > limit || depth > 5 * limit {
            return Some(Problem::Depth(node.start_byte()));
        }
        if cursor.goto_first_child() {
            depth += 1;
            nesting += usize::from(!chained(node.kind()));
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return None;
            }
            depth -= 1;
            nesting -= usize::from(!chained(cursor.node().kind()));
        }
    }
}

/// Line starts of a text, to turn byte offsets into places that a person can find.
pub struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    /// Indexes `code`; a line ends at `\n`, `\r\n` or a lone `\r`, as Python and editors count.
    pub fn new(code: &str) -> Self {
        let bytes = code.as_bytes();
        let ends = |at: usize| bytes[at] == b'\n' || (bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        let starts = std::iter::once(0).chain((0..bytes.len()).filter(|at| ends(*at)).map(|at| at + 1)).collect();
        Self { starts }
    }

    /// Line and column of a byte offset, both 1-based; the column counts characters.
    pub fn place(&self, code: &str, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts[line - 1];
        let column = code.get(start..offset).map_or(1, |before| before.chars().count() + 1);
        (line, column)
    }
}

/// The value of a string node, when it is a plain literal (no interpolation). Escapes that matter are decoded; bytes
/// literals give their text.
pub fn string_value(node: Node<'_>, code: &str) -> Option<String> {
    match node.kind() {
        "string" => {}
        "concatenated_string" => {
            return children(node).into_iter().map(|part| string_value(part, code)).collect();
        }
        "parenthesized_expression" => {
            let inner = children(node);
            return (inner.len() == 1).then(|| string_value(inner[0], code)).flatten();
        }
        _ => return None,
    }
    let parts = children(node);
    if parts.iter().any(|part| part.kind() == "interpolation") {
        return None;
    }
    let raw = parts.first().is_some_and(|start| text(*start, code).chars().any(|c| matches!(c, 'r' | 'R')));
    let mut value = String::new();
    for part in parts.iter().filter(|part| part.kind() == "string_content") {
        let body = text(*part, code);
        if raw { value.push_str(body) } else { unescape(body, &mut value)? }
    }
    Some(value)
}

/// Decodes Python's escapes. `None` for `\N{…}`, whose names are not known here: the value then counts as computed.
fn unescape(body: &str, out: &mut String) -> Option<()> {
    let mut chars = body.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next()? {
            '\n' => {}
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'a' => out.push('\x07'),
            'b' => out.push('\x08'),
            'f' => out.push('\x0c'),
            'v' => out.push('\x0b'),
            'N' => return None,
            'x' => out.push(code_point(&mut chars, 2, 16)?),
            'u' => out.push(code_point(&mut chars, 4, 16)?),
            'U' => out.push(code_point(&mut chars, 8, 16)?),
            digit @ '0'..='7' => {
                let mut value = digit.to_digit(8)?;
                for _ in 0..2 {
                    let mut ahead = chars.clone();
                    let Some(next) = ahead.next().and_then(|c| c.to_digit(8)) else {
                        break;
                    };
                    value = value * 8 + next;
                    chars = ahead;
                }
                out.push(char::from_u32(value)?);
            }
            other @ ('\\' | '\'' | '"') => out.push(other),
            other => {
                out.push('\\');
                out.push(other);
            }
        }
    }
    Some(())
}

fn code_point(chars: &mut std::str::Chars<'_>, digits: usize, radix: u32) -> Option<char> {
    let mut value = 0;
    for _ in 0..digits {
        value = value * radix + chars.next()?.to_digit(radix)?;
    }
    char::from_u32(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_values_are_decoded_or_unknown() {
        let value = |code: &str| {
            let tree = parse(code).expect("grammar");
            let statement = children(tree.root_node())[0];
            string_value(children(statement)[0], code)
        };
        assert_eq!(value(r"'\x6f\163'"), Some("os".into()));
        assert_eq!(value(r"r'\x6f'"), Some(r"\x6f".into()));
        assert_eq!(value("'o' 's'"), Some("os".into()));
        assert_eq!(value("f'{a}'"), None);
        assert_eq!(value(r"'\N{LATIN SMALL LETTER O}'"), None);
    }

    #[test]
    fn problems_are_found_in_order() {
        let problem = |code: &str| first_problem(&parse(code).expect("grammar"), 100);
        assert_eq!(problem("a = 1\n"), None);
        assert!(matches!(problem("a = (\n"), Some(Problem::Syntax(_))));
        let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
        assert!(matches!(problem(&deep), Some(Problem::Depth(_))));
    }

    #[test]
    fn places_count_from_one_in_characters() {
        let code = "a\né = b\n";
        let index = LineIndex::new(code);
        assert_eq!(index.place(code, 0), (1, 1));
        assert_eq!(index.place(code, 5), (2, 3));
        assert_eq!(index.place("", 0), (1, 1));
        // A lone carriage return ends a line too; with a line feed it ends one line and not two.
        assert_eq!(LineIndex::new("a\rb\r\nc").place("a\rb\r\nc", 5), (3, 1));
    }
}
