//! Expressions: every one is visited, and gives the set of its origins.

use tree_sitter::Node;

use super::Walker;
use super::names::ScopeKind;
use super::origin::{Origin, Value};
use crate::python;
use crate::safety::limits;
use crate::safety::verdict::Capability;

impl<'t> Walker<'t> {
    /// The origins of an expression. Kinds that are not named here have all their parts visited and give unknown.
    pub(in crate::safety) fn eval(&mut self, node: Node<'t>) -> Value {
        match node.kind() {
            "identifier" => {
                let name = self.name_of(node);
                if name != self.text(node) && self.name_is_disguised(node, &name) {
                    let why =
                        format!("The name `{name}` is written with look-alike letters, which hides it from a reader.");
                    self.note_why(node, Capability::Reflection, true, &why);
                }
                self.read(&name, node)
            }
            "integer" | "float" => {
                limits::literal(self.text(node)).map_or_else(Value::plain, |n| Value::of(Origin::Number(n)))
            }
            "true" | "false" | "none" | "ellipsis" => Value::plain(),
            "string" | "concatenated_string" => self.string(node),
            "attribute" => self.attribute(node),
            "call" => self.call(node),
            "subscript" => self.subscript(node),
            "list" | "tuple" | "set" | "expression_list" => self.display(node),
            "dictionary" => self.dictionary(node),
            "list_comprehension" | "set_comprehension" | "dictionary_comprehension" | "generator_expression" => {
                self.comprehension(node)
            }
            "lambda" => self.lambda(node),
            "parenthesized_expression" => self.all(node),
            "conditional_expression" => self.conditional(node),
            "boolean_operator" => self.all(node),
            "named_expression" => self.walrus(node),
            "binary_operator" => self.binary(node),
            "unary_operator" | "not_operator" | "comparison_operator" => {
                let inner = self.all(node);
                match (node.kind(), inner.number(), node.child(0).map(|c| c.kind())) {
                    ("unary_operator", Some(n), Some("-")) => Value::of(Origin::Number(-n)),
                    // An operator of a class of this code gives what its method gives.
                    _ if inner.origins().iter().any(|o| matches!(o, Origin::Instance(_))) => Value::unknown(),
                    _ => Value::plain(),
                }
            }
            "await" => self.all(node),
            "yield" => {
                let value = self.all(node);
                self.leak(&value, node);
                self.lose(&value);
                self.returned(&value);
                Value::unknown()
            }
            "as_pattern" => self.as_pattern(node),
            "print_statement" | "exec_statement" => {
                self.all(node);
                self.note_why(node, Capability::Syntax, true, "This is Python 2, which Slicer cannot run.");
                Value::unknown()
            }
            _ => {
                self.all(node);
                Value::unknown()
            }
        }
    }

    /// Visits all parts; the union of what they give.
    pub(super) fn all(&mut self, node: Node<'t>) -> Value {
        let mut value = Value::nothing();
        for child in python::children(node) {
            value.merge(&self.eval(child));
        }
        value.or_unknown()
    }

    /// Letters that Python folds to others: harmless in words of other languages, a disguise in plain ones.
    fn name_is_disguised(&self, node: Node<'_>, folded: &str) -> bool {
        folded.is_ascii() && !self.text(node).is_ascii()
    }

    fn string(&mut self, node: Node<'t>) -> Value {
        if let Some(text) = python::string_value(node, self.code) {
            return Value::of(Origin::Text(text.as_str().into()));
        }
        self.interpolations(node);
        Value::of(Origin::Text("\0computed".into()))
    }

    fn interpolations(&mut self, node: Node<'t>) {
        for part in python::children(node) {
            match part.kind() {
                "string" | "interpolation" | "format_specifier" | "format_expression" => self.interpolations(part),
                "string_start" | "string_content" | "string_end" | "type_conversion" | "escape_sequence" => {}
                _ => {
                    self.eval(part);
                }
            }
        }
    }

    fn attribute(&mut self, node: Node<'t>) -> Value {
        let (Some(object), Some(attribute)) =
            (node.child_by_field_name("object"), node.child_by_field_name("attribute"))
        else {
            return self.all(node);
        };
        let name = self.name_of(attribute);
        if name == "__name__" {
            self.named.insert(object.id());
        }
        let base = self.eval(object);
        if name != self.text(attribute) && self.name_is_disguised(attribute, &name) {
            self.note_why(node, Capability::Reflection, true, "A name is written with look-alike letters.");
        }
        self.member(&base, &name, node)
    }

    fn subscript(&mut self, node: Node<'t>) -> Value {
        let base = match node.child_by_field_name("value") {
            Some(value) => self.eval(value),
            None => Value::unknown(),
        };
        let mut cut = false;
        for index in python::fields(node, "subscript") {
            cut |= index.kind() == "slice";
            let key = self.eval(index);
            if key.text().is_some_and(|t| t.starts_with("__") && t.ends_with("__") && t.len() > 4) {
                self.note(node, Capability::Reflection, false);
            }
        }
        let mut value = self.elements(&base);
        if cut {
            // A part of a list is a list.
            for origin in base.origins().iter().filter(|o| matches!(o, Origin::Items(_))) {
                value.add(origin.clone());
            }
        }
        value
    }

    /// What iterating over or indexing `base` gives.
    pub(in crate::safety) fn elements(&mut self, base: &Value) -> Value {
        let mut value = Value::nothing();
        for origin in base.origins() {
            match origin {
                Origin::Items(index) => {
                    let inner = self.items[*index].clone();
                    value.merge(&inner.or_unknown());
                }
                Origin::Object(kind) => match self.tables.space(kind).and_then(|s| s.element.clone()) {
                    Some(element) => value.merge(&self.target(&element)),
                    None => value.add(Origin::Unknown),
                },
                Origin::Text(_) => value.add(Origin::Plain),
                _ => value.add(Origin::Unknown),
            }
        }
        value.or_unknown()
    }

    fn display(&mut self, node: Node<'t>) -> Value {
        let mut elements = Value::nothing();
        for child in python::children(node) {
            let part = if child.kind() == "list_splat" {
                let inner = self.all(child);
                self.elements(&inner)
            } else {
                self.eval(child)
            };
            self.leak(&part, child);
            self.lose(&part);
            elements.merge(&part);
        }
        self.container(node, &elements)
    }

    fn dictionary(&mut self, node: Node<'t>) -> Value {
        let mut elements = Value::nothing();
        for child in python::children(node) {
            if child.kind() == "pair" {
                if let Some(key) = child.child_by_field_name("key") {
                    let key_value = self.eval(key);
                    self.leak(&key_value, key);
                }
                if let Some(item) = child.child_by_field_name("value") {
                    let value = self.eval(item);
                    self.leak(&value, item);
                    self.lose(&value);
                    elements.merge(&value);
                }
            } else {
                let inner = self.all(child);
                let inner = self.elements(&inner);
                elements.merge(&inner);
            }
        }
        self.container(node, &elements)
    }

    fn comprehension(&mut self, node: Node<'t>) -> Value {
        let parts = python::children(node);
        // The first source is read outside, where names of the comprehension do not hold yet.
        let first = parts.iter().find(|p| p.kind() == "for_in_clause").copied();
        let source = first.map_or_else(Value::unknown, |clause| self.source_of(clause));
        let scope = self.scope_at(node, ScopeKind::Comprehension);
        let elements = self.inside(scope, |walker| {
            let mut body = Vec::new();
            for child in parts {
                match child.kind() {
                    "for_in_clause" => {
                        let source = if Some(child) == first { source.clone() } else { walker.source_of(child) };
                        if source.has_object("@endless") && node.kind() != "generator_expression" {
                            walker.note(child, Capability::Hang, true);
                        }
                        walker.for_target(child, &source);
                    }
                    "if_clause" => {
                        walker.all(child);
                    }
                    _ => body.push(child),
                }
            }
            let mut elements = Value::nothing();
            for part in body {
                let value = walker.comprehension_element(part);
                walker.leak(&value, part);
                walker.lose(&value);
                elements.merge(&value);
            }
            elements
        });
        self.container(node, &elements)
    }

    fn comprehension_element(&mut self, part: Node<'t>) -> Value {
        if part.kind() != "pair" {
            return self.eval(part);
        }
        if let Some(key) = part.child_by_field_name("key") {
            self.eval(key);
        }
        part.child_by_field_name("value").map_or_else(Value::unknown, |v| self.eval(v))
    }

    /// What a loop or comprehension goes through.
    pub(super) fn source_of(&mut self, node: Node<'t>) -> Value {
        let mut source = Value::nothing();
        for right in python::fields(node, "right") {
            let value = self.eval(right);
            source.merge(&value);
        }
        source.or_unknown()
    }

    /// Binds the names of `for left in right`.
    pub(super) fn for_target(&mut self, node: Node<'t>, source: &Value) {
        let element = self.elements(source);
        if let Some(left) = node.child_by_field_name("left") {
            self.assign(left, &element, None);
        }
    }

    fn lambda(&mut self, node: Node<'t>) -> Value {
        let index = self.function_at(node);
        if let Some(parameters) = node.child_by_field_name("parameters") {
            self.parameters(index, parameters, None);
        }
        if let Some(body) = node.child_by_field_name("body") {
            let scope = self.functions[index].scope;
            let value = self.branch(|w| w.inside(scope, |w| w.eval(body)));
            self.functions[index].returns.merge(&value);
            if self.functions[index].escaped {
                self.leak(&value, body);
                self.lose(&value);
            }
        }
        Value::of(Origin::Function(index))
    }

    fn conditional(&mut self, node: Node<'t>) -> Value {
        let parts = python::children(node);
        let mut value = Value::nothing();
        for (position, part) in parts.iter().enumerate() {
            let branch = self.eval(*part);
            // `a if test else b`: the test is the middle one.
            if position != 1 {
                value.merge(&branch);
            }
        }
        value.or_unknown()
    }

    fn walrus(&mut self, node: Node<'t>) -> Value {
        let value = node.child_by_field_name("value").map_or_else(Value::unknown, |v| self.eval(v));
        if let Some(name) = node.child_by_field_name("name") {
            let name = self.name_of(name);
            self.bind_outside(&name, &value);
        }
        value
    }

    fn binary(&mut self, node: Node<'t>) -> Value {
        let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right")) else {
            return self.all(node);
        };
        let (left, right) = (self.eval(left), self.eval(right));
        let operator = node.child_by_field_name("operator").map_or("", |o| self.text(o));
        self.huge(node, &left, operator, &right);
        if let (Some(a), Some(b)) = (left.number(), right.number())
            && left.origins().len() * right.origins().len() == 1
        {
            return limits::fold(a, operator, b).map_or_else(Value::plain, |n| Value::of(Origin::Number(n)));
        }
        if operator == "/"
            && let Some(part) = right.text()
        {
            let part = part.to_owned();
            self.guarded_path(node, &part);
        }
        if operator == "+"
            && let (Some(a), Some(b)) = (left.text(), right.text())
            && a.len() + b.len() < 1000
        {
            return Value::of(Origin::Text(format!("{a}{b}").as_str().into()));
        }
        let mut value = Value::nothing();
        for origin in left.origins().iter().chain(right.origins()) {
            match origin {
                // Joined lists keep their elements; joined paths (`folder / name`) and text stay what they are.
                Origin::Items(_) | Origin::Object(_) if operator != "*" || matches!(origin, Origin::Items(_)) => {
                    if !matches!(origin, Origin::Object(kind) if self.tables.listed("arithmetic_makes_new", kind)) {
                        value.add(origin.clone());
                    }
                }
                Origin::Instance(_) => value.add(Origin::Unknown),
                _ => value.add(Origin::Plain),
            }
        }
        value.or_unknown()
    }

    fn as_pattern(&mut self, node: Node<'t>) -> Value {
        let parts = python::children(node);
        let mut value = parts.first().map_or_else(Value::unknown, |first| self.eval(*first));
        if value.origins().iter().any(|o| matches!(o, Origin::Instance(_))) {
            // `with x as y` gives what `__enter__` returns.
            value.add(Origin::Unknown);
        }
        if let Some(alias) = node.child_by_field_name("alias") {
            self.assign(alias, &value, None);
        }
        value
    }

    /// Records a result of the function that is being walked.
    pub(super) fn returned(&mut self, value: &Value) {
        if let Some(index) = self.current_function {
            self.functions[index].returns.merge(value);
        }
    }
}
