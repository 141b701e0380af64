//! Python by syntax tree: a function, a method or a class without its methods is a passage; what else stands in the
//! module is one too. A function that is too long is cut between statements, with its signature repeated.

use tree_sitter::Node;

use super::{MOST_CODE_TOKENS, Passage, Words, is_long, pack, stem};
use crate::knowledge::index::KnowledgeError;
use crate::python;

struct File<'a> {
    path: &'a str,
    text: &'a str,
    lines: Vec<&'a str>,
    found: Vec<Passage>,
}

/// The passages of a Python file. Text that is not valid Python gives those that could be read.
///
/// # Errors
/// When the grammar of this build cannot be loaded.
pub fn passages(path: &str, text: &str) -> Result<Vec<Passage>, KnowledgeError> {
    let tree = python::parse(text)
        .map_err(|error| KnowledgeError::Data { file: "the Python grammar", why: error.to_string() })?;
    let mut file = File { path, text, lines: text.lines().collect(), found: Vec::new() };
    let mut loose = Vec::new();
    for node in python::children(tree.root_node()) {
        match definition(node).map(|inner| inner.kind()) {
            Some("function_definition") => file.function(node, ""),
            Some("class_definition") => file.class(node),
            _ if is_import(node) => {}
            _ => loose.push(rows(node)),
        }
    }
    file.loose(&loose);
    file.found.sort_by_key(|passage| passage.start_line);
    Ok(file.found)
}

/// The function or class of a node, also below decorators.
fn definition<'t>(node: Node<'t>) -> Option<Node<'t>> {
    match node.kind() {
        "function_definition" | "class_definition" => Some(node),
        "decorated_definition" => node.child_by_field_name("definition"),
        _ => None,
    }
}

fn is_import(node: Node<'_>) -> bool {
    matches!(node.kind(), "import_statement" | "import_from_statement" | "future_import_statement")
}

/// Lines of a node, 0-based, end exclusive.
fn rows(node: Node<'_>) -> (usize, usize) {
    (node.start_position().row, node.end_position().row + 1)
}

impl File<'_> {
    fn class(&mut self, node: Node<'_>) {
        let Some(inner) = definition(node) else { return };
        let name = self.name_of(inner);
        let Some(body) = inner.child_by_field_name("body") else { return };
        let mut own = vec![(node.start_position().row, body.start_position().row.max(node.start_position().row + 1))];
        let mut methods = Vec::new();
        for child in python::children(body) {
            match definition(child).map(|inner| inner.kind()) {
                Some("function_definition") => {
                    self.function(child, &name);
                    methods.push(definition(child).map(|inner| self.name_of(inner)).unwrap_or_default());
                }
                Some("class_definition") => self.class(child),
                _ => own.push(rows(child)),
            }
        }
        let list = format!("\n    # methods: {}", methods.join(", "));
        for (index, range) in pack(&self.lines, &own, MOST_CODE_TOKENS).into_iter().enumerate() {
            let mut text: Vec<&str> = Vec::new();
            for &(start, end) in &own {
                text.extend(self.lines.get(start.max(range.0)..end.min(range.1)).unwrap_or_default());
            }
            let mut text = text.join("\n");
            if index == 0 && !methods.is_empty() && methods.len() <= 60 {
                text.push_str(&list);
            }
            self.push(&name, &name, range, &text, vec![name.clone()]);
        }
    }

    fn function(&mut self, node: Node<'_>, class: &str) {
        let Some(inner) = definition(node) else { return };
        let name = self.name_of(inner);
        let qualified = if class.is_empty() { name.clone() } else { format!("{class}.{name}") };
        let range = rows(node);
        let text = self.slice(range);
        if !is_long(&text, MOST_CODE_TOKENS) {
            self.push(&qualified, &name, range, &text, vec![name.clone()]);
            return;
        }
        let Some(body) = inner.child_by_field_name("body") else { return };
        let signature_end = body.start_position().row.max(range.0 + 1);
        let signature = self.slice((range.0, signature_end));
        let mut cuts: Vec<(usize, usize)> = Vec::new();
        self.statements(body, &mut cuts, range.1);
        if let Some(first) = cuts.first_mut() {
            first.0 = range.0;
        }
        for (index, part) in pack(&self.lines, &cuts, MOST_CODE_TOKENS).into_iter().enumerate() {
            let body = self.slice(part);
            let text = if index == 0 { body } else { format!("{signature}\n    # …\n{body}") };
            self.push(&qualified, &name, part, &text, vec![name.clone()]);
        }
    }

    /// Line ranges of statements that lie side by side up to `end`; a statement that is too long is cut inside, too.
    fn statements(&self, body: Node<'_>, cuts: &mut Vec<(usize, usize)>, end: usize) {
        let children = python::children(body);
        for (index, child) in children.iter().enumerate() {
            let next = children.get(index + 1).map_or(end, |next| next.start_position().row);
            let start = child.start_position().row;
            if start >= next {
                continue;
            }
            let inner = child.child_by_field_name("body").or_else(|| child.child_by_field_name("consequence"));
            match inner {
                Some(inner)
                    if is_long(&self.slice((start, next)), MOST_CODE_TOKENS) && inner.start_position().row > start =>
                {
                    cuts.push((start, inner.start_position().row));
                    self.statements(inner, cuts, next);
                }
                _ => cuts.push((start, next)),
            }
        }
    }

    /// What stands in the module beside its functions and classes.
    fn loose(&mut self, ranges: &[(usize, usize)]) {
        let module = stem(self.path).to_owned();
        for range in pack(&self.lines, ranges, MOST_CODE_TOKENS) {
            // `pack` spans what lies between: only the loose statements are shown.
            let own = ranges.iter().map(|own| (own.0.max(range.0), own.1.min(range.1))).filter(|own| own.0 < own.1);
            let text = own.map(|own| self.slice(own)).collect::<Vec<_>>().join("\n");
            if text.trim().len() > 40 {
                self.push(&module, &module, range, &text, Vec::new());
            }
        }
    }

    fn push(&mut self, qualified: &str, name: &str, (start, end): (usize, usize), text: &str, declares: Vec<String>) {
        let (prose, code) = split_comments(text);
        let context = format!("{} {}", qualified.strip_suffix(name).unwrap_or(""), stem(self.path));
        self.found.push(Passage {
            language: "python",
            name: format!("{} › {qualified}", stem(self.path)),
            start_line: start + 1,
            end_line: end,
            text: text.to_owned(),
            declares,
            words: Words { title: name.to_owned(), context, prose, code },
        });
    }

    fn name_of(&self, node: Node<'_>) -> String {
        node.child_by_field_name("name").map(|name| python::text(name, self.text).to_owned()).unwrap_or_default()
    }

    fn slice(&self, (start, end): (usize, usize)) -> String {
        self.lines.get(start..end.min(self.lines.len())).unwrap_or_default().join("\n")
    }
}

/// Docstrings and comments, and the rest. By lines: exact enough for counting words.
fn split_comments(text: &str) -> (String, String) {
    let (mut prose, mut code) = (String::new(), String::new());
    let mut in_string = false;
    for line in text.lines() {
        let quotes = line.matches("\"\"\"").count() + line.matches("'''").count();
        let (own_code, comment) =
            if in_string || quotes > 0 { ("", line) } else { line.split_once('#').unwrap_or((line, "")) };
        if quotes % 2 == 1 {
            in_string = !in_string;
        }
        code.push_str(own_code);
        code.push('\n');
        prose.push_str(comment);
        prose.push('\n');
    }
    (prose, code)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\"\"\"Module text that says what this is for.\"\"\"\nimport os\n\nLIMIT = 3\n\n\n@decorated\ndef first(a, b=1):\n    \"\"\"Does the first thing.\"\"\"\n    return a  # remark\n\n\nclass Thing:\n    \"\"\"A thing.\"\"\"\n\n    size = 2\n\n    def method(self):\n        return 1\n";

    /// Protects units, qualified names, places, and that methods are not repeated in their class.
    #[test]
    fn units_are_functions_methods_and_classes() {
        let found = passages("lib/tool.py", FILE).expect("grammar");
        let places: Vec<(&str, usize, usize)> =
            found.iter().map(|p| (p.name.as_str(), p.start_line, p.end_line)).collect();
        assert_eq!(
            places,
            [("tool › tool", 1, 4), ("tool › first", 7, 10), ("tool › Thing", 13, 16), ("tool › Thing.method", 18, 19)]
        );
        assert!(found[2].text.contains("# methods: method") && !found[2].text.contains("return 1"));
        assert!(found[1].words.prose.contains("first thing") && found[1].words.prose.contains("remark"));
        assert!(!found[1].words.code.contains("remark"));
    }

    /// Protects the limit: long functions are cut between statements, each part with the signature, no line lost.
    #[test]
    fn long_functions_are_cut_between_statements() {
        let body = "    value = compute(value, another_argument)\n".repeat(300);
        let found = passages("x.py", &format!("def long(value):\n{body}    return value\n")).expect("grammar");
        assert!(found.len() > 2);
        for passage in &found {
            assert!(passage.text.starts_with("def long(value):"), "{}", &passage.text[..40]);
            assert!(passage.text.len() / 4 <= MOST_CODE_TOKENS + 40);
        }
        for pair in found.windows(2) {
            assert_eq!(pair[1].start_line, pair[0].end_line + 1);
        }
    }

    /// Protects the index against files that are not Python.
    #[test]
    fn broken_files_do_not_fail() {
        passages("x.py", "def (:\n  '''").expect("no error");
        passages("x.py", "").expect("no error");
    }
}
