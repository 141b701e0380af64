//! Work without an end and absurd sizes, where they can be seen from the text.

use std::collections::HashMap;

use tree_sitter::Node;

use super::verdict::Capability;
use super::walk::Walker;
use super::walk::call::Call;
use super::walk::origin::Value;
use crate::python;

/// Loop rounds that a person can wait for are far below this.
const MANY_ROUNDS: f64 = 1e8;
/// Elements or bytes at once: more than a large volume.
const MANY_ELEMENTS: f64 = 2e9;
/// Seconds of waiting that freeze the window for longer than a person expects.
const LONG_SLEEP: f64 = 10.0;
const ENDLESS_SLEEP: f64 = 120.0;

/// The value of a number as Python writes it.
pub(super) fn literal(text: &str) -> Option<f64> {
    let text = text.replace('_', "");
    let lower = text.to_ascii_lowercase();
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = lower.strip_prefix(prefix) {
            return Some(u64::from_str_radix(digits, radix).map_or(f64::INFINITY, |n| n as f64));
        }
    }
    text.parse().ok()
}

/// Two known numbers and an operator.
pub(super) fn fold(a: f64, operator: &str, b: f64) -> Option<f64> {
    let value = match operator {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" if b != 0.0 => a / b,
        "//" if b != 0.0 => (a / b).floor(),
        "%" if b != 0.0 => a.rem_euclid(b),
        "**" => a.powf(b),
        "<<" => a * b.exp2(),
        _ => return None,
    };
    (!value.is_nan()).then_some(value)
}

impl Walker<'_> {
    /// Repetition and powers that no memory holds.
    pub(super) fn huge(&mut self, node: Node<'_>, left: &Value, operator: &str, right: &Value) {
        let container = |v: &Value| {
            v.origins().iter().any(|o| {
                use super::walk::origin::Origin;
                matches!(o, Origin::Text(_) | Origin::Items(_))
            })
        };
        let times = match operator {
            "*" if container(left) => right.number(),
            "*" if container(right) => left.number(),
            // The size of the result in bits.
            "**" => match (left.number(), right.number()) {
                (Some(a), Some(b)) if a.fract() == 0.0 && a.abs() > 1.0 => Some(b * a.abs().log2() * 50.0),
                _ => None,
            },
            "<<" => right.number().map(|bits| bits * 50.0),
            _ => None,
        };
        if times.is_some_and(|n| n > 5e8) {
            self.note(node, Capability::Memory, true);
        }
    }
}

fn last_bound(call: &Call<'_>) -> Option<f64> {
    let bounds: Vec<f64> = call.arguments.iter().map(|a| a.value.number()).collect::<Option<_>>()?;
    match bounds.as_slice() {
        [stop] => Some(*stop),
        [start, stop] => Some(stop - start),
        [start, stop, step] if *step != 0.0 => Some((stop - start) / step),
        _ => None,
    }
}

pub(super) fn range<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    if last_bound(call).is_some_and(|n| n > MANY_ROUNDS) {
        walker.note(call.node, Capability::Hang, true);
    }
    None
}

pub(super) fn sleep<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let seconds = call.argument(0, &[]).and_then(|a| a.value.number());
    if let Some(seconds) = seconds.filter(|s| *s > LONG_SLEEP) {
        walker.note(call.node, Capability::Hang, seconds > ENDLESS_SLEEP);
    }
    Some(Value::plain())
}

/// `slicer.util.delayDisplay(text, milliseconds)`.
pub(super) fn delay_display<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let seconds = call.argument(1, &["autoCloseMsec"]).and_then(|a| a.value.number()).map(|ms| ms / 1000.0);
    if let Some(seconds) = seconds.filter(|s| *s > LONG_SLEEP) {
        walker.note(call.node, Capability::Hang, seconds > ENDLESS_SLEEP);
    }
    Some(Value::plain())
}

/// `SetDimensions(x, y, z)` and `SetExtent(x0, x1, y0, y1, z0, z1)` of an image, also with one list.
pub(super) fn allocate_box<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let sizes: Option<Vec<f64>> = match call.arguments.as_slice() {
        [one] if matches!(one.node.kind(), "list" | "tuple") => {
            python::children(one.node).into_iter().map(|part| walker.eval(part).number()).collect()
        }
        several => several.iter().map(|a| a.value.number()).collect(),
    };
    let sizes = sizes.map(|s| match s.as_slice() {
        [x0, x1, y0, y1, z0, z1] => vec![x1 - x0 + 1.0, y1 - y0 + 1.0, z1 - z0 + 1.0],
        _ => s,
    });
    if sizes.is_some_and(|s| s.len() > 1 && s.iter().product::<f64>() > MANY_ELEMENTS) {
        walker.note(call.node, Capability::Memory, true);
    }
    None
}

/// `numpy.zeros(shape)`, `bytes(n)` and their like.
pub(super) fn allocate<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let shape = call.argument(0, &["shape", "size"])?;
    if size_of(walker, shape.node).is_some_and(|n| n > MANY_ELEMENTS) {
        walker.note(call.node, Capability::Memory, true);
    }
    None
}

/// The number of elements of a shape: a number, numbers in a row, or `(n,) * k`.
fn size_of<'t>(walker: &mut Walker<'t>, shape: Node<'t>) -> Option<f64> {
    match shape.kind() {
        "tuple" | "list" => {
            python::children(shape).into_iter().try_fold(1.0, |size, part| walker.eval(part).number().map(|n| size * n))
        }
        "binary_operator" if walker.text(shape.child_by_field_name("operator")?) == "*" => {
            let (left, right) = (shape.child_by_field_name("left")?, shape.child_by_field_name("right")?);
            if matches!(left.kind(), "tuple" | "list") {
                Some(size_of(walker, left)?.powf(walker.eval(right).number()?))
            } else {
                walker.eval(shape).number()
            }
        }
        _ => walker.eval(shape).number(),
    }
}

/// `itertools.repeat(x)` without a count.
pub(super) fn endless_repeat<'t>(_: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    use super::walk::origin::Origin;
    (call.arguments.len() == 1).then(|| Value::of(Origin::Object("@endless".into())))
}

/// `pow(a, b)`.
pub(super) fn power<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    if let [a, b] = call.arguments.as_slice() {
        let (a, b) = (a.value.clone(), b.value.clone());
        walker.huge(call.node, &a, "**", &b);
    }
    None
}

/// `numpy.random.normal(…, size=shape)`.
pub(super) fn sized<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    let shape = call.keyword("size")?;
    if size_of(walker, shape.node).is_some_and(|n| n > MANY_ELEMENTS) {
        walker.note(call.node, Capability::Memory, true);
    }
    None
}

/// `numpy.eye(n)` has n times n elements.
pub(super) fn square<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    if call.argument(0, &["N", "n"]).and_then(|a| a.value.number()).is_some_and(|n| n * n > MANY_ELEMENTS) {
        walker.note(call.node, Capability::Memory, true);
    }
    None
}

/// `numpy.linspace(from, to, n)`.
pub(super) fn steps<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    if call.argument(2, &["num"]).and_then(|a| a.value.number()).is_some_and(|n| n > MANY_ELEMENTS) {
        walker.note(call.node, Capability::Memory, true);
    }
    None
}

/// `numpy.tile(x, n)`.
pub(super) fn repeats<'t>(walker: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    if call.argument(1, &["reps", "repeats"]).and_then(|a| a.value.number()).is_some_and(|n| n > MANY_ELEMENTS) {
        walker.note(call.node, Capability::Memory, true);
    }
    None
}

/// `iter(int, 1)` never meets its sentinel; with a function of this code it may.
pub(super) fn endless_iter<'t>(_: &mut Walker<'t>, call: &Call<'t>) -> Option<Value> {
    use super::walk::origin::Origin;
    let first = call.argument(0, &[])?;
    if call.arguments.len() < 2 {
        return Some(first.value.clone());
    }
    let builtin = first.value.origins().iter().any(|o| matches!(o, Origin::Name(n) if n.starts_with("builtins.")));
    builtin.then(|| Value::of(Origin::Object("@endless".into())))
}

/// Looks at the loops and functions of the whole program, after it has been walked.
pub(super) fn look<'t>(walker: &mut Walker<'t>, root: Node<'t>) {
    let mut bodies = HashMap::new();
    let mut stack = vec![(root, 1.0f64, false)];
    while let Some((node, rounds, in_class)) = stack.pop() {
        let mut inner = rounds;
        match node.kind() {
            "while_statement" => endless_while(walker, node),
            "for_statement" => {
                inner *= rounds_of(walker, node);
                growing_list(walker, node);
            }
            "function_definition" => {
                if let (Some(name), Some(body)) = (node.child_by_field_name("name"), node.child_by_field_name("body")) {
                    // A method is called through the object.
                    let owner = if in_class { "self." } else { "" };
                    bodies.insert(format!("{owner}{}", walker.text(name)), body);
                }
                inner = 1.0;
            }
            "assignment" => {
                if let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right"))
                    && right.kind() == "lambda"
                    && let Some(body) = right.child_by_field_name("body")
                {
                    bodies.insert(walker.text(left).to_owned(), body);
                }
            }
            "lambda" => inner = 1.0,
            "call" => self_application(walker, node),
            kind if kind.ends_with("comprehension") || kind == "generator_expression" => {
                for part in python::children(node) {
                    if part.kind() == "for_in_clause" {
                        inner *= rounds_of(walker, part);
                    }
                }
            }
            _ => {}
        }
        // A bare name does not call a method.
        let class = match node.kind() {
            "class_definition" => true,
            "block" | "decorated_definition" => in_class,
            _ => false,
        };
        if inner > 1e10 && rounds <= 1e10 {
            walker.note(node, Capability::Hang, true);
        }
        stack.extend(python::children(node).into_iter().map(|child| (child, inner, class)));
    }
    endless_recursion(walker, &bodies);
}

/// `for x in things: things.append(x)`.
fn growing_list(walker: &mut Walker<'_>, node: Node<'_>) {
    let Some(source) = node.child_by_field_name("right").filter(|r| r.kind() == "identifier") else {
        return;
    };
    if leaves(node) {
        return;
    }
    let name = walker.text(source);
    let Some(body) = node.child_by_field_name("body") else {
        return;
    };
    for statement in python::children(body) {
        let call = statement.named_child(0).filter(|c| c.kind() == "call");
        let function = call.and_then(|c| c.child_by_field_name("function")).map_or("", |f| walker.text(f));
        if function.strip_prefix(name).is_some_and(|m| matches!(m, ".append" | ".extend" | ".insert")) {
            walker.note(node, Capability::Hang, true);
        }
    }
}

/// Rounds of one `for`, when they are written as `range` of known numbers; else 1.
fn rounds_of<'t>(walker: &mut Walker<'t>, node: Node<'t>) -> f64 {
    let Some(source) = node.child_by_field_name("right") else {
        return 1.0;
    };
    let called = source.child_by_field_name("function").map_or("", |f| walker.text(f));
    if source.kind() != "call" || called != "range" {
        return 1.0;
    }
    let Some(list) = source.child_by_field_name("arguments") else {
        return 1.0;
    };
    let numbers: Option<Vec<f64>> = python::children(list).iter().map(|a| walker.constant(*a)).collect();
    match numbers.as_deref() {
        Some([stop]) => stop.max(1.0),
        Some([start, stop]) => (stop - start).max(1.0),
        Some([start, stop, step]) if *step != 0.0 => ((stop - start) / step).max(1.0),
        _ => 1.0,
    }
}

impl<'t> Walker<'t> {
    /// A number written out, possibly with operators. Depth is bounded by the nesting limit of the whole check.
    fn constant(&self, node: Node<'_>) -> Option<f64> {
        match node.kind() {
            "integer" | "float" => literal(self.text(node)),
            "parenthesized_expression" => self.constant(node.named_child(0)?),
            "binary_operator" => fold(
                self.constant(node.child_by_field_name("left")?)?,
                self.text(node.child_by_field_name("operator")?),
                self.constant(node.child_by_field_name("right")?)?,
            ),
            _ => None,
        }
    }
}

/// Whether the body of the loop `node` has a way out: `break` of this loop, `return`, `raise`, `yield`.
pub(super) fn leaves(node: Node<'_>) -> bool {
    let mut stack: Vec<(Node<'_>, bool)> = python::fields(node, "body").into_iter().map(|body| (body, true)).collect();
    while let Some((at, same_loop)) = stack.pop() {
        match at.kind() {
            "break_statement" if same_loop => return true,
            "return_statement" | "raise_statement" | "yield" => return true,
            "function_definition" | "class_definition" | "lambda" => continue,
            _ => {}
        }
        let same_loop = same_loop && !matches!(at.kind(), "for_statement" | "while_statement");
        stack.extend(python::children(at).into_iter().map(|child| (child, same_loop)));
    }
    false
}

/// Whether a function with this body gives values for ever: `while True` around a `yield`, and no way out.
pub(super) fn gives_for_ever(walker: &Walker<'_>, body: Node<'_>) -> bool {
    python::children(body).into_iter().filter(|s| s.kind() == "while_statement").any(|statement| {
        let always = statement
            .child_by_field_name("condition")
            .is_some_and(|c| matches!(walker.text(c).trim_matches(['(', ')', ' ']), "True" | "1"));
        always
            && has_kind(statement, &["yield"])
            && !has_kind(statement, &["break_statement", "return_statement", "raise_statement"])
    })
}

fn has_kind(node: Node<'_>, kinds: &[&str]) -> bool {
    let mut stack = vec![node];
    while let Some(at) = stack.pop() {
        if kinds.contains(&at.kind()) {
            return true;
        }
        stack.extend(python::children(at));
    }
    false
}

fn endless_while(walker: &mut Walker<'_>, node: Node<'_>) {
    let Some(condition) = node.child_by_field_name("condition") else {
        return;
    };
    let text = walker.text(condition).trim_matches(['(', ')', ' ']);
    let always = match condition.kind() {
        "true" | "integer" | "parenthesized_expression" | "string" | "not_operator" => {
            text == "True"
                || literal(text).is_some_and(|n| n != 0.0)
                || matches!(text, "not False" | "not 0" | "not None")
                || (condition.kind() == "string" && text.len() > 2)
        }
        "comparison_operator" => {
            let parts = python::children(condition);
            parts.len() == 2
                && parts.iter().all(|p| p.kind() == "integer")
                && text.contains("==")
                && walker.text(parts[0]) == walker.text(parts[1])
        }
        _ => false,
    };
    // Nothing in the loop can change what the condition looks at.
    let body = node.child_by_field_name("body");
    let idle = body.is_some_and(|b| {
        python::children(b).iter().all(|s| matches!(s.kind(), "pass_statement" | "continue_statement"))
    });
    let looks_anew = has_kind(condition, &["call", "attribute", "subscript", "named_expression", "await"]);
    if (always && !leaves(node)) || (idle && !looks_anew && condition.kind() != "false") {
        walker.note_why(node, Capability::Hang, true, "This loop never ends, and Slicer would not answer any more.");
    }
}

/// What a function certainly calls before any condition can stop it, by name.
fn certain_calls<'t>(walker: &Walker<'t>, body: Node<'t>) -> Vec<(&'t str, Node<'t>)> {
    let mut calls = Vec::new();
    if body.kind() != "block" {
        calls_in(walker, body, &mut calls);
        return calls;
    }
    for statement in python::children(body) {
        match statement.kind() {
            "expression_statement" | "return_statement" | "assignment" => calls_in(walker, statement, &mut calls),
            "function_definition" | "class_definition" | "pass_statement" | "global_statement" => continue,
            // What has no way out of the function only comes before.
            _ if !has_kind(statement, &["return_statement", "raise_statement", "yield", "assert_statement"]) => {
                continue;
            }
            _ => break,
        }
        if statement.kind() == "return_statement" {
            break;
        }
    }
    calls
}

/// The calls that evaluating `node` certainly makes: not behind a condition, `and`/`or`, a lambda or a comprehension.
fn calls_in<'t>(walker: &Walker<'t>, node: Node<'t>, calls: &mut Vec<(&'t str, Node<'t>)>) {
    let mut stack = vec![node];
    while let Some(at) = stack.pop() {
        match at.kind() {
            "conditional_expression" | "boolean_operator" | "lambda" => continue,
            kind if kind.ends_with("comprehension") || kind == "generator_expression" => continue,
            "call" => {
                if let Some(function) = at.child_by_field_name("function") {
                    let name = walker.text(function);
                    let own_method = name.strip_prefix("self.").filter(|m| !m.contains('.'));
                    if function.kind() == "identifier" || own_method.is_some() {
                        calls.push((name, at));
                    }
                }
            }
            _ => {}
        }
        stack.extend(python::children(at));
    }
}

/// Functions that call each other, or themselves, in a circle that nothing can stop.
fn endless_recursion<'t>(walker: &mut Walker<'t>, bodies: &HashMap<String, Node<'t>>) {
    let calls: HashMap<&str, Vec<(&str, Node<'t>)>> =
        bodies.iter().map(|(name, body)| (name.as_str(), certain_calls(walker, *body))).collect();
    // A function is in a circle if following its first known call comes back to it.
    for (name, out) in &calls {
        for (called, node) in out {
            let (mut at, mut steps) = (*called, 0);
            while at != *name && steps < 16 {
                let next = calls.get(at).and_then(|c| c.iter().find(|(n, _)| calls.contains_key(n)));
                let Some((next, _)) = next else { break };
                at = *next;
                steps += 1;
            }
            if at == *name {
                walker.note_why(*node, Capability::Hang, true, "This function calls itself without an end.");
            }
        }
    }
}

/// `x(x)`: recursion without a name.
fn self_application(walker: &mut Walker<'_>, node: Node<'_>) {
    let (Some(function), Some(list)) = (node.child_by_field_name("function"), node.child_by_field_name("arguments"))
    else {
        return;
    };
    if function.kind() != "identifier" || list.kind() != "argument_list" {
        return;
    }
    let name = walker.text(function);
    if python::children(list).iter().any(|a| a.kind() == "identifier" && walker.text(*a) == name) {
        walker.note_why(node, Capability::Hang, true, "A function that is called with itself does not end.");
    }
}
