//! C++ headers by syntax tree: a class with its description is a passage, and each documented declaration is one.
//!
//! What a Python program needs of C++ are the declarations. Accessors that macros make (`vtkSetMacro(Size, double)`) are
//! spelt out, because the name that a program calls stands nowhere in the source. Before parsing, export macros and Qt's
//! section words are blanked out (byte for byte, so that places stay right): the grammar does not know them.

use std::sync::LazyLock;

use regex::Regex;
use tree_sitter::{Node, Parser};

use super::{LEAST_TOKENS, MOST_TOKENS, Passage, Words, pack, stem, tokens_of};
use crate::knowledge::index::KnowledgeError;

/// Words of one declaration in the title; more belong to the code.
const MOST_TITLE_NAMES: usize = 12;

static EXPORT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b[A-Z][A-Z0-9_]*_EXPORTS?\b|\bQ_OBJECT\b|\bQ_GADGET\b").ok());
static SECTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?m)^(\s*)((?:public|protected|private)\s+(?:slots|Q_SLOTS)|signals|Q_SIGNALS)(\s*):").ok()
});
static ACCESSOR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\b(?:vtk|qMRML|itk)\w*?((?:Set|Get|Boolean)\w*)Macro\s*\(\s*(\w+)\s*(?:,\s*([^,)]+))?").ok()
});
static FUNCTION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"([~\w]+)\s*\([^;{]*[;{]?").ok());

/// Members that every VTK class has and nobody asks for.
const BOILERPLATE: &[&str] = &[
    "PrintSelf",
    "New",
    "CreateNodeInstance",
    "ReadXMLAttributes",
    "WriteXML",
    "Copy",
    "CopyContent",
    "GetNodeTagName",
    "vtkTypeMacro",
    "Q_PROPERTY",
    "Q_ENUM",
    "Q_FLAG",
    "Q_DECLARE_PRIVATE",
    "Q_DISABLE_COPY",
];

/// The passages of a C++ header.
///
/// # Errors
/// When the grammar of this build cannot be loaded.
pub fn passages(path: &str, text: &str) -> Result<Vec<Passage>, KnowledgeError> {
    let readable = blanked(text);
    let mut parser = Parser::new();
    let grammar = |why: String| KnowledgeError::Data { file: "the C++ grammar", why };
    parser.set_language(&tree_sitter_cpp::LANGUAGE.into()).map_err(|error| grammar(error.to_string()))?;
    let tree = parser.parse(&readable, None).ok_or_else(|| grammar("no tree".into()))?;
    let mut classes = Vec::new();
    collect_classes(tree.root_node(), &mut classes, 0);
    let header = Header { path, text: &readable, lines: text.lines().collect() };
    let mut found = Vec::new();
    for class in classes {
        header.class(class, &mut found);
    }
    Ok(found)
}

/// The text with what the grammar does not know replaced by blanks of the same length.
fn blanked(text: &str) -> String {
    let blank = |found: &str| " ".repeat(found.len());
    let mut readable = text.to_owned();
    if let Some(export) = EXPORT.as_ref() {
        readable = export.replace_all(&readable, |found: &regex::Captures<'_>| blank(&found[0])).into_owned();
    }
    if let Some(section) = SECTION.as_ref() {
        readable = section
            .replace_all(&readable, |found: &regex::Captures<'_>| {
                let word = if found[2].starts_with("private") {
                    "private"
                } else if found[2].starts_with("protected") {
                    "protected"
                } else {
                    "public"
                };
                format!(
                    "{}{word}{}:",
                    &found[1],
                    " ".repeat((found[2].len() + found[3].len()).saturating_sub(word.len()))
                )
            })
            .into_owned();
    }
    readable
}

fn collect_classes<'t>(node: Node<'t>, classes: &mut Vec<Node<'t>>, depth: usize) {
    if depth > 12 {
        return;
    }
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor) {
        if matches!(child.kind(), "class_specifier" | "struct_specifier") && child.child_by_field_name("body").is_some()
        {
            classes.push(child);
        }
        collect_classes(child, classes, depth + 1);
    }
}

struct Header<'a> {
    path: &'a str,
    text: &'a str,
    lines: Vec<&'a str>,
}

/// Declarations under one comment.
struct Group {
    range: (usize, usize),
    names: Vec<String>,
    documented: bool,
}

impl Header<'_> {
    fn class(&self, class: Node<'_>, found: &mut Vec<Passage>) {
        let Some(name) = class.child_by_field_name("name").map(|node| self.of(node).to_owned()) else { return };
        let Some(body) = class.child_by_field_name("body") else { return };
        let groups = self.groups(body);
        let names: Vec<String> = groups.iter().flat_map(|group| group.names.iter().cloned()).collect();
        if names.is_empty() {
            return;
        }
        self.description(class, body, &name, &names, found);
        let mut open: Option<Group> = None;
        for group in groups {
            match open.as_mut() {
                Some(last) if self.may_join(last, &group) => {
                    last.range.1 = group.range.1;
                    last.names.extend(group.names);
                    last.documented |= group.documented;
                }
                _ => {
                    if let Some(last) = open.replace(group) {
                        self.push(&name, &last, found);
                    }
                }
            }
        }
        if let Some(last) = open {
            self.push(&name, &last, found);
        }
    }

    /// Small neighbours are told together, so that ten hits are more than ten lines.
    fn may_join(&self, last: &Group, next: &Group) -> bool {
        let size = |range: (usize, usize)| tokens_of(&self.slice(range));
        next.range.0 <= last.range.1 + 2
            && size(last.range) < LEAST_TOKENS
            && size((last.range.0, next.range.1)) <= LEAST_TOKENS * 2
    }

    /// The class itself: the comment above it, its bases, and what it offers.
    fn description(&self, class: Node<'_>, body: Node<'_>, name: &str, members: &[String], found: &mut Vec<Passage>) {
        let declared = class.start_position().row;
        let mut start = declared;
        while start > 0 && is_comment(self.lines[start - 1]) {
            start -= 1;
        }
        let end = body.start_position().row + 1;
        let head = self.slice((start, end.min(self.lines.len())));
        let mut unique: Vec<&str> = Vec::new();
        for member in members {
            if !unique.contains(&member.as_str()) {
                unique.push(member);
            }
        }
        let mut list = unique.join(", ");
        if tokens_of(&list) > LEAST_TOKENS {
            list = list.chars().take(LEAST_TOKENS * 4).collect();
            list.push_str(" …");
        }
        let prose: Vec<&str> = self.lines[start..declared].to_vec();
        found.push(Passage {
            language: "cpp",
            name: name.to_owned(),
            start_line: start + 1,
            end_line: end,
            text: format!("{head}\n// Members: {list}"),
            declares: vec![name.to_owned()],
            words: Words {
                title: name.to_owned(),
                context: stem(self.path).to_owned(),
                prose: prose.join("\n"),
                code: list,
            },
        });
    }

    /// Public and protected members in groups: comments, then what they describe, up to a blank line or the next comment.
    fn groups(&self, body: Node<'_>) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut comment: Option<(usize, usize)> = None;
        let mut hidden = false;
        let mut cursor = body.walk();
        for child in body.named_children(&mut cursor) {
            let range =
                (child.start_position().row, child.end_position().row + usize::from(child.end_position().column > 0));
            match child.kind() {
                "comment" => match groups.last_mut() {
                    // A remark behind a declaration, or an end of line that the grammar counts in.
                    Some(last) if range.0 < last.range.1 => {}
                    _ => {
                        comment = Some(
                            comment.filter(|(_, end)| *end == range.0).map_or(range, |(start, _)| (start, range.1)),
                        )
                    }
                },
                "access_specifier" => {
                    hidden = self.of(child).starts_with("private");
                    comment = None;
                }
                _ if hidden => comment = None,
                _ => {
                    let names = self.names(child);
                    let joins = comment.is_none() && groups.last().is_some_and(|last| last.range.1 >= range.0);
                    match groups.last_mut().filter(|_| joins) {
                        Some(last) => {
                            last.range.1 = last.range.1.max(range.1);
                            last.names.extend(names);
                        }
                        None => {
                            let start =
                                comment.filter(|(_, end)| *end + 1 >= range.0).map_or(range.0, |(start, _)| start);
                            groups.push(Group { range: (start, range.1), names, documented: start < range.0 });
                        }
                    }
                    comment = None;
                }
            }
        }
        groups.retain(|group| {
            !group.names.is_empty() && group.names.iter().any(|name| !BOILERPLATE.contains(&name.as_str()))
        });
        groups
    }

    /// The names that a member declares, accessors of macros spelt out.
    fn names(&self, member: Node<'_>) -> Vec<String> {
        let code = self.of(member);
        let mut names = accessors(code).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        if names.is_empty() && member.kind() != "enum_specifier" {
            let declared =
                FUNCTION.as_ref().and_then(|function| function.captures(code)).map(|found| found[1].to_owned());
            let plain = |name: &String| {
                !name.is_empty()
                    && !BOILERPLATE.contains(&name.as_str())
                    && !name.starts_with('~')
                    && !name.ends_with("Macro")
                    && !matches!(name.as_str(), "if" | "for" | "while")
            };
            names.extend(declared.filter(plain));
        }
        if names.is_empty() && code.trim_start().starts_with("enum") {
            names.push(
                code.split(|c: char| !c.is_alphanumeric() && c != '_')
                    .nth(1)
                    .filter(|name| !name.is_empty())
                    .unwrap_or("enum")
                    .to_owned(),
            );
        }
        names
    }

    fn push(&self, class: &str, group: &Group, found: &mut Vec<Passage>) {
        let code_of = |range| self.slice(range);
        let whole = code_of(group.range);
        let made: Vec<String> =
            accessors(&whole).into_iter().map(|(name, argument)| format!("{name}({argument})")).collect();
        let lines: Vec<(usize, usize)> = (group.range.0..group.range.1).map(|line| (line, line + 1)).collect();
        let mut unique: Vec<String> = Vec::new();
        for name in &group.names {
            if !unique.contains(name) {
                unique.push(name.clone());
            }
        }
        let shown = unique.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
        for (start, end) in pack(&self.lines, &lines, MOST_TOKENS) {
            let body = code_of((start, end));
            let (prose, mut code) = split_comments(&body);
            code.push_str(&made.join(" "));
            let title = unique.iter().take(MOST_TITLE_NAMES).cloned().collect::<Vec<_>>().join(" ");
            let methods = if made.is_empty() { String::new() } else { format!("\n  // makes: {}", made.join(", ")) };
            found.push(Passage {
                language: "cpp",
                name: format!("{class} › {shown}"),
                start_line: start + 1,
                end_line: end,
                text: format!("// {class}\n{body}{methods}"),
                declares: unique.clone(),
                words: Words { title, context: class.to_owned(), prose, code },
            });
        }
    }

    fn of(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    fn slice(&self, (start, end): (usize, usize)) -> String {
        self.lines.get(start..end.min(self.lines.len())).unwrap_or_default().join("\n")
    }
}

/// The methods that accessor macros make, each with its argument.
fn accessors(code: &str) -> Vec<(String, String)> {
    let mut made = Vec::new();
    let Some(pattern) = ACCESSOR.as_ref() else { return made };
    for found in pattern.captures_iter(code) {
        let property = &found[2];
        let argument = found.get(3).map_or("", |kind| kind.as_str().trim());
        let kind = &found[1];
        if kind.starts_with("Boolean") {
            made.push((format!("{property}On"), String::new()));
            made.push((format!("{property}Off"), String::new()));
            continue;
        }
        if kind.contains("Set") {
            made.push((format!("Set{property}"), argument.to_owned()));
        }
        if kind.contains("Get") {
            made.push((format!("Get{property}"), String::new()));
        }
    }
    made
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//") || line.starts_with('*') || line.starts_with("/*")
}

/// Comments without their markers, and the rest.
fn split_comments(text: &str) -> (String, String) {
    let (mut prose, mut code) = (String::new(), String::new());
    let mut block = false;
    for line in text.lines() {
        let trimmed = line.trim_start();
        let opens = trimmed.starts_with("/*");
        if block || opens {
            block = !line.contains("*/");
            prose.push_str(trimmed.trim_start_matches(['/', '*']));
        } else {
            let (before, after) = line.split_once("//").unwrap_or((line, ""));
            code.push_str(before);
            prose.push_str(after.trim_start_matches(['/', '!', '<', '@']));
        }
        code.push('\n');
        prose.push('\n');
    }
    (prose, code)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "#ifndef x\n#define x\n/// \\brief Shows things.\n///\n/// More of it.\nclass VTK_THING_EXPORT vtkThingNode : public vtkBase\n{\npublic:\n  static vtkThingNode* New();\n  vtkTypeMacro(vtkThingNode, vtkBase);\n\n  //@{\n  /// Size of a thing in mm.\n  vtkSetMacro(Size, double);\n  vtkGetMacro(Size, double);\n  vtkBooleanMacro(Shown, bool);\n  //@}\n\n  /// Finds the nearest thing.\n  /// \\return index\n  int FindNearest(const double point[3]);\n\nprotected slots:\n  void onChange();\nprivate:\n  int Secret();\n};\n#endif\n";

    /// Protects that macros are spelt out, that comments stay with what they describe, and that private things stay so.
    #[test]
    fn declarations_are_found_by_their_real_names() {
        let found = passages("Libs/vtkThingNode.h", HEADER).expect("grammar");
        let class = &found[0];
        assert_eq!((class.name.as_str(), class.start_line), ("vtkThingNode", 3));
        assert!(class.words.prose.contains("Shows things"));
        let declared: Vec<&str> = found[1..].iter().flat_map(|p| p.declares.iter().map(String::as_str)).collect();
        assert_eq!(declared, ["SetSize", "GetSize", "ShownOn", "ShownOff", "FindNearest", "onChange"]);
        let member = found.iter().find(|p| p.declares.iter().any(|name| name == "SetSize")).expect("member");
        assert!(member.text.contains("makes: SetSize(double), GetSize()") && member.text.contains("Size of a thing"));
        assert!(member.start_line <= 14 && member.end_line >= 16, "{}-{}", member.start_line, member.end_line);
        assert!(found.iter().all(|p| !p.text.contains("Secret")));
    }

    /// Protects the places: blanking must not move a byte.
    #[test]
    fn blanking_keeps_places() {
        let readable = blanked(HEADER);
        assert_eq!(readable.len(), HEADER.len());
        assert!(readable.contains("protected      :") && !readable.contains("_EXPORT"));
    }
}
