//! What Python refuses and the grammar accepts: the grammar is made for editors, which must read unfinished text. Code
//! that Python would not run is never allowed, so that a yes always means code that was understood.

use tree_sitter::{Node, Tree, TreeCursor};

use crate::python;

/// Where a node lies, as far as the rules of Python care.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    function: bool,
    coroutine: bool,
    looped: bool,
}

/// The first place (byte offset) that Python would refuse, and why.
pub(super) fn look(code: &str, tree: &Tree) -> Option<(usize, &'static str)> {
    let mut stack = vec![(tree.root_node(), Place::default())];
    let mut cursor = tree.walk();
    let mut first: Option<(usize, &'static str)> = None;
    while let Some((node, place)) = stack.pop() {
        if let Some(why) = refused(code, node, place) {
            let at = node.start_byte();
            if first.is_none_or(|(known, _)| at < known) {
                first = Some((at, why));
            }
        }
        push_children(code, node, place, &mut cursor, &mut stack);
    }
    let line = broken_line(code, tree);
    [first, line].into_iter().flatten().min_by_key(|(at, _)| *at)
}

/// Where a statement goes on in a new line without brackets or `\`, or two statements share a line without `;`.
fn broken_line(code: &str, tree: &Tree) -> Option<(usize, &'static str)> {
    let mut cursor = tree.walk();
    let (mut brackets, mut end) = (0usize, 0usize);
    // Whether the next token is the first of a statement or of a clause such as `else`.
    let mut opens = true;
    loop {
        let node = cursor.node();
        let kind = node.kind();
        opens |= is_statement(node) || kind.ends_with("_clause") && kind != "with_clause" || kind == "decorator";
        let whole = kind == "string" || kind == "comment";
        if !whole && cursor.goto_first_child() {
            continue;
        }
        let start = node.start_byte();
        if node.end_byte() > start {
            let gap = code.get(end..start).unwrap_or("");
            let token = code.get(start..node.end_byte()).unwrap_or("");
            let new_line = starts_line(code, start) && !continued(code, start) && end > 0;
            if brackets == 0 && new_line && !opens && kind != "comment" && !gap.is_empty() {
                return Some((start, "A statement goes on in a new line without brackets."));
            }
            match token {
                "(" | "[" | "{" => brackets += 1,
                ")" | "]" | "}" => brackets = brackets.saturating_sub(1),
                _ => {}
            }
            if kind == "string" && torn(token) && !has_interpolation(node) {
                return Some((start, "A text runs over the end of its line."));
            }
            if kind != "comment" {
                opens = matches!(token, ";" | ":") && brackets == 0;
                end = node.end_byte();
            }
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return None;
            }
        }
    }
}

fn is_statement(node: Node<'_>) -> bool {
    let kind = node.kind();
    kind.ends_with("_statement") || kind.ends_with("_definition")
}

fn has_interpolation(node: Node<'_>) -> bool {
    python::children(node).iter().any(|part| part.kind() == "interpolation")
}

/// Whether a text in single quotes holds a line end that is not escaped.
fn torn(text: &str) -> bool {
    let body = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    if body.starts_with("\"\"\"") || body.starts_with("'''") {
        return false;
    }
    let bytes = body.as_bytes();
    (1..bytes.len()).any(|at| {
        let slashes = bytes[..at].iter().rev().skip_while(|b| **b == b'\r').take_while(|b| **b == b'\\').count();
        bytes[at] == b'\n' && slashes % 2 == 0
    })
}

/// Whether two statements of `node` stand on one line with nothing between them.
fn unseparated(code: &str, node: Node<'_>) -> bool {
    python::children(node).windows(2).any(|pair| {
        let before = code.get(..pair[0].end_byte()).unwrap_or("");
        let gap = code.get(pair[0].end_byte()..pair[1].start_byte()).unwrap_or(";");
        !gap.contains(['\n', '\r', ';']) && !before.ends_with(['\n', '\r', ';'])
    })
}

fn push_children<'t>(
    code: &str,
    node: Node<'t>,
    place: Place,
    cursor: &mut TreeCursor<'t>,
    stack: &mut Vec<(Node<'t>, Place)>,
) {
    let inner = match node.kind() {
        "function_definition" => {
            let coroutine = python::text(node, code).starts_with("async");
            Place { function: true, coroutine, looped: false }
        }
        "lambda" => Place { function: true, coroutine: false, looped: false },
        "class_definition" => Place::default(),
        "for_statement" | "while_statement" => Place { looped: true, ..place },
        _ => place,
    };
    for child in node.named_children(cursor) {
        // What stands in the head of a definition belongs to the code around it; `else` of a loop is outside of it.
        let own = match node.kind() {
            "function_definition" | "lambda" | "class_definition" | "for_statement" | "while_statement" => {
                child.kind() == "block" || (node.kind() == "lambda" && child.kind() != "lambda_parameters")
            }
            _ => true,
        };
        stack.push((child, if own { inner } else { place }));
    }
}

fn refused(code: &str, node: Node<'_>, place: Place) -> Option<&'static str> {
    match node.kind() {
        // Code cut out of a page is often indented as a whole; what it means is clear.
        "module" => block(code, node),
        "block" => block(code, node),
        "return_statement" if !place.function => Some("`return` stands outside a function."),
        "yield" if !place.function => Some("`yield` stands outside a function."),
        "await" if !place.coroutine => Some("`await` stands outside an asynchronous function."),
        "break_statement" | "continue_statement" if !place.looped => {
            Some("`break` or `continue` stands outside a loop.")
        }
        "nonlocal_statement" if !place.function => Some("`nonlocal` stands outside a function."),
        "assignment" | "augmented_assignment" | "for_statement" | "for_in_clause" => {
            let left = node.child_by_field_name("left")?;
            (!assignable(left, 0)).then_some("Something is assigned to that cannot hold a value.")
        }
        "try_statement" => {
            let handled =
                python::children(node).iter().any(|c| c.kind().starts_with("except") || c.kind() == "finally_clause");
            (!handled).then_some("`try` has neither `except` nor `finally`.")
        }
        "integer" => number(python::text(node, code)).then_some("A number is written in a way that Python refuses."),
        "if_statement"
        | "elif_clause"
        | "function_definition"
        | "class_definition"
        | "while_statement"
        | "with_statement"
        | "else_clause"
        | "finally_clause" => {
            let body = ["consequence", "body"].iter().find_map(|f| node.child_by_field_name(f));
            let body = body.or_else(|| python::children(node).into_iter().find(|c| c.kind() == "block"));
            let empty = body.is_none_or(|b| python::children(b).is_empty());
            empty.then_some("A block has nothing in it.")
        }
        "parameters" | "lambda_parameters" => parameters(code, node),
        "argument_list" => arguments(node),
        _ => None,
    }
}

/// Whether `text` is a decimal number with a leading zero (`012`), as Python 2 wrote octal.
fn number(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(|b| *b != b'_').collect();
    let wrong_gap = text.contains("__") || text.ends_with('_');
    wrong_gap
        || (digits.len() > 1
            && digits[0] == b'0'
            && digits.iter().all(u8::is_ascii_digit)
            && digits.iter().any(|d| *d != b'0'))
}

/// The column of `at`: tabs go to the next multiple of eight, as in Python.
fn column(code: &str, at: usize) -> usize {
    let start = code[..at].rfind(['\n', '\r']).map_or(0, |end| end + 1);
    code[start..at].bytes().fold(0, |column, byte| match byte {
        b'\t' => (column / 8 + 1) * 8,
        b'\x0c' => 0,
        _ => column + 1,
    })
}

/// Whether nothing but blanks stands before `at` on its line.
fn starts_line(code: &str, at: usize) -> bool {
    let before = &code.as_bytes()[..at];
    let blanks = before.iter().rev().take_while(|b| matches!(b, b' ' | b'\t' | b'\x0c')).count();
    matches!(before.get(..at - blanks).and_then(<[u8]>::last), None | Some(b'\n' | b'\r'))
}

fn indented(code: &str, node: Node<'_>, expected: usize) -> Option<&'static str> {
    python::children(node)
        .into_iter()
        .filter(|child| child.kind() != "line_continuation" && starts_line(code, child.start_byte()))
        .filter(|child| !continued(code, child.start_byte()))
        .any(|child| column(code, child.start_byte()) != expected)
        .then_some("The lines are not indented as Python needs it.")
}

/// Whether the line of `at` goes on from the one before.
fn continued(code: &str, at: usize) -> bool {
    let line = code[..at].trim_end_matches([' ', '\t', '\x0c']);
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line).ends_with('\\')
}

fn block(code: &str, node: Node<'_>) -> Option<&'static str> {
    if unseparated(code, node) {
        return Some("Two statements stand on one line with nothing between them.");
    }
    let first = python::children(node).into_iter().next()?;
    if !starts_line(code, first.start_byte()) || continued(code, first.start_byte()) {
        return None;
    }
    indented(code, node, column(code, first.start_byte()))
}

/// Whether `target` can stand on the left of `=`.
fn assignable(target: Node<'_>, depth: usize) -> bool {
    if depth > 100 {
        return true;
    }
    match target.kind() {
        "identifier" | "attribute" | "subscript" | "keyword_identifier" | "line_continuation" => true,
        "parenthesized_expression"
        | "tuple"
        | "list"
        | "pattern_list"
        | "tuple_pattern"
        | "list_pattern"
        | "expression_list"
        | "list_splat"
        | "list_splat_pattern"
        | "as_pattern_target" => python::children(target).into_iter().all(|child| assignable(child, depth + 1)),
        // Soft keywords (`match`, `type`, `print`, `exec`) are names here.
        kind => !matches!(
            kind,
            "call"
                | "integer"
                | "float"
                | "string"
                | "concatenated_string"
                | "true"
                | "false"
                | "none"
                | "binary_operator"
                | "unary_operator"
                | "boolean_operator"
                | "comparison_operator"
                | "not_operator"
                | "lambda"
                | "conditional_expression"
                | "dictionary"
                | "set"
                | "list_comprehension"
                | "generator_expression"
        ),
    }
}

fn parameters(code: &str, node: Node<'_>) -> Option<&'static str> {
    let mut names = std::collections::HashSet::new();
    let (mut defaults, mut keyword_only) = (false, false);
    for parameter in python::children(node) {
        let name = parameter.child_by_field_name("name").unwrap_or(parameter);
        match parameter.kind() {
            "keyword_separator" => keyword_only = true,
            "default_parameter" | "typed_default_parameter" => defaults = true,
            "identifier" | "typed_parameter" => {
                let splat = python::text(parameter, code).starts_with('*');
                keyword_only |= splat;
                if defaults && !keyword_only {
                    return Some("A parameter without a default follows one with a default.");
                }
            }
            kind if kind.contains("splat") => keyword_only = true,
            _ => continue,
        }
        if name.kind() == "identifier" && !names.insert(python::identifier(python::text(name, code))) {
            return Some("Two parameters have the same name.");
        }
    }
    None
}

fn arguments(node: Node<'_>) -> Option<&'static str> {
    let mut keyword = false;
    for argument in python::children(node) {
        match argument.kind() {
            "keyword_argument" => keyword = true,
            "dictionary_splat" | "list_splat" => {}
            _ if keyword => return Some("An argument without a name follows one with a name."),
            _ => {}
        }
    }
    None
}
