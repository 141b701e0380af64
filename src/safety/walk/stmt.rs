//! Statements: bindings of every kind, definitions, imports.

use tree_sitter::Node;

use super::Walker;
use super::origin::{Origin, Value};
use crate::python;
use crate::safety::limits;
use crate::safety::verdict::Capability;

impl<'t> Walker<'t> {
    /// All statements of a block.
    pub(super) fn block(&mut self, node: Node<'t>) {
        for child in python::children(node) {
            self.statement(child);
        }
    }

    pub(super) fn statement(&mut self, node: Node<'t>) {
        if self.is_late() {
            return;
        }
        match node.kind() {
            "expression_statement" => {
                for child in python::children(node) {
                    self.statement(child);
                }
            }
            "assignment" => {
                self.statement_end = node.end_byte();
                self.assignment(node);
            }
            "augmented_assignment" => {
                self.statement_end = node.end_byte();
                self.augmented(node);
            }
            "import_statement" => self.import(node),
            "import_from_statement" => self.import_from(node),
            "function_definition" => {
                self.function(node, false);
            }
            "class_definition" => {
                self.class(node);
            }
            "decorated_definition" => self.decorated(node),
            "block" => self.block(node),
            "if_statement"
            | "elif_clause"
            | "else_clause"
            | "while_statement"
            | "try_statement"
            | "except_clause"
            | "except_group_clause"
            | "finally_clause"
            | "case_clause" => self.branch(|w| {
                for child in python::children(node) {
                    w.branch_part(child);
                }
            }),
            "match_statement" => self.match_statement(node),
            "for_statement" => self.branch(|w| {
                let source = w.source_of(node);
                if source.has_object("@endless") && !limits::leaves(node) {
                    w.note(node, Capability::Hang, true);
                }
                w.for_target(node, &source);
                for field in ["body", "alternative"] {
                    for part in python::fields(node, field) {
                        w.statement(part);
                    }
                }
            }),
            "with_statement" => {
                for child in python::children(node) {
                    if child.kind() == "with_clause" { self.with_clause(child) } else { self.statement(child) }
                }
            }
            "raise_statement" => {
                self.all(node);
                if let Some(raised) = python::children(node).first() {
                    let class = raised.child_by_field_name("function").unwrap_or(*raised);
                    let class = self.eval(class);
                    let ends = |o: &Origin| matches!(o, Origin::Name(n) if n.strip_prefix("builtins.").is_some_and(|n| self.tables.listed("ending_exceptions", n)));
                    if class.origins().iter().any(ends) {
                        self.note(node, Capability::Quit, true);
                    }
                }
            }
            "return_statement" => {
                let value = self.all(node);
                self.returned(&value);
            }
            "delete_statement" => {
                for child in python::children(node) {
                    self.delete(child);
                }
            }
            "global_statement" => {
                for name in python::children(node) {
                    let name = self.name_of(name);
                    self.declare_global(&name);
                }
            }
            "nonlocal_statement" => {
                for name in python::children(node) {
                    let name = self.name_of(name);
                    self.declare_nonlocal(&name);
                }
            }
            "type_alias_statement" => self.type_alias(node),
            "future_import_statement" => {}
            _ => {
                self.eval(node);
            }
        }
    }

    /// A part of a compound statement: a block or clause, an expression, or a pattern.
    pub(super) fn branch_part(&mut self, node: Node<'t>) {
        match node.kind() {
            "block"
            | "elif_clause"
            | "else_clause"
            | "except_clause"
            | "except_group_clause"
            | "finally_clause"
            | "case_clause" => self.statement(node),
            "case_pattern" => {
                let subject = self.subject.clone();
                self.pattern(node, &subject);
            }
            _ => {
                self.eval(node);
            }
        }
    }

    fn assignment(&mut self, node: Node<'t>) -> Value {
        if let Some(annotation) = node.child_by_field_name("type") {
            self.all(annotation);
            // `match [x]:` with a `case` below can be read as the annotation of `match[x]`, which hides what is captured.
            if self.text(node).starts_with("match") && annotation.end_position().row > node.start_position().row {
                self.note_why(node, Capability::Syntax, true, "This `match` can be read in two ways.");
            }
        }
        let Some(left) = node.child_by_field_name("left") else {
            return self.all(node);
        };
        let Some(right) = node.child_by_field_name("right") else {
            if left.kind() != "identifier" {
                self.eval(left);
            }
            return Value::unknown();
        };
        let value = if right.kind() == "assignment" { self.assignment(right) } else { self.eval(right) };
        self.assign(left, &value, Some(right));
        value
    }

    /// Binds `target` to `value`; `source` is the expression, to match tuples part by part.
    pub(super) fn assign(&mut self, target: Node<'t>, value: &Value, source: Option<Node<'t>>) {
        match target.kind() {
            "identifier" => {
                let name = self.name_of(target);
                let end = self.statement_end.max(target.end_byte());
                self.bind(&name, value, end);
            }
            "as_pattern_target"
            | "parenthesized_expression"
            | "list_splat_pattern"
            | "list_splat"
            | "dictionary_splat_pattern" => {
                for child in python::children(target) {
                    let inner = if target.kind().contains("splat") { Value::unknown() } else { value.clone() };
                    self.assign(child, &inner, source);
                }
            }
            "pattern_list" | "tuple_pattern" | "list_pattern" | "tuple" | "list" | "expression_list" => {
                let targets = python::children(target);
                let parts = source
                    .filter(|s| matches!(s.kind(), "tuple" | "list" | "expression_list"))
                    .map(python::children)
                    .filter(|parts| {
                        parts.len() == targets.len()
                            && parts.iter().chain(&targets).all(|p| !p.kind().contains("splat"))
                    });
                let element = self.elements(value);
                for (position, inner) in targets.iter().enumerate() {
                    match parts.as_ref().map(|p| p[position]) {
                        // Taken apart further below; evaluating every level anew would cost the square of the depth.
                        Some(part) if matches!(part.kind(), "tuple" | "list") && inner.kind().contains("pattern") => {
                            self.assign(*inner, &element, Some(part));
                        }
                        Some(part) => {
                            let part_value = self.eval(part);
                            self.assign(*inner, &part_value, Some(part));
                        }
                        None => self.assign(*inner, &element, None),
                    }
                }
            }
            "attribute" => {
                if let (Some(object), Some(attribute)) =
                    (target.child_by_field_name("object"), target.child_by_field_name("attribute"))
                {
                    let base = self.eval(object);
                    let name = self.name_of(attribute);
                    self.store_member(&base, &name, value, target);
                }
            }
            "subscript" => self.store_item(target, value),
            _ => {
                self.eval(target);
            }
        }
    }

    fn store_item(&mut self, target: Node<'t>, value: &Value) {
        let base = match target.child_by_field_name("value") {
            Some(base) => self.eval(base),
            None => Value::unknown(),
        };
        for index in python::fields(target, "subscript") {
            let key = self.eval(index);
            self.leak(&key, target);
        }
        self.leak(value, target);
        self.lose(value);
        for origin in base.origins() {
            match origin {
                Origin::Items(index) => self.items[*index].merge(value),
                Origin::Object(kind) => {
                    if let Some(need) = self.tables.need(kind, "[]=") {
                        self.note_need(target, need);
                    }
                }
                Origin::Name(name) if self.tables.space(name).is_some() && !name.starts_with("@any") => {
                    self.note(target, Capability::Reflection, true);
                }
                _ => {}
            }
        }
    }

    fn augmented(&mut self, node: Node<'t>) {
        let value = node.child_by_field_name("right").map_or_else(Value::unknown, |r| self.eval(r));
        let Some(left) = node.child_by_field_name("left") else {
            return;
        };
        if left.kind() == "subscript" {
            self.eval(left);
            self.store_item(left, &Value::plain());
            return;
        }
        let base = self.eval(left);
        for origin in base.origins() {
            match origin {
                Origin::Object(kind) => {
                    if let Some(need) = self.tables.need(kind, "[]=") {
                        self.note_need(left, need);
                    }
                }
                Origin::Items(index) => {
                    let added = self.elements(&value);
                    self.items[*index].merge(&added);
                }
                _ => {}
            }
        }
        let mut result = base.clone();
        result.add(Origin::Plain);
        self.assign(left, &result, None);
    }

    fn delete(&mut self, node: Node<'t>) {
        match node.kind() {
            "identifier" => {
                let name = self.name_of(node);
                self.unbind(&name);
            }
            "attribute" => {
                if let (Some(object), Some(attribute)) =
                    (node.child_by_field_name("object"), node.child_by_field_name("attribute"))
                {
                    let base = self.eval(object);
                    let name = self.name_of(attribute);
                    self.store_member(&base, &name, &Value::plain(), node);
                }
            }
            "subscript" => {
                self.eval(node);
                self.store_item(node, &Value::plain());
            }
            _ => {
                for child in python::children(node) {
                    self.delete(child);
                }
            }
        }
    }

    fn with_clause(&mut self, node: Node<'t>) {
        for item in python::children(node) {
            let Some(value) = item.child_by_field_name("value") else {
                self.all(item);
                continue;
            };
            self.eval(value);
        }
    }

    fn decorated(&mut self, node: Node<'t>) {
        let mut results = Value::nothing();
        for child in python::children(node) {
            match child.kind() {
                "decorator" => {
                    let value = self.all(child);
                    self.leak(&value, child);
                    for origin in value.origins() {
                        if let Origin::Function(index) = origin {
                            results.merge(&self.functions[*index].returns.clone());
                        }
                    }
                }
                "function_definition" => {
                    let index = self.function(child, true);
                    self.functions[index].escaped = true;
                    // A property gives its result when it is only read; another decorator gives what it likes.
                    let mut read = self.functions[index].returns.clone();
                    self.lose(&read);
                    read.merge(&results);
                    if let Some(name) = child.child_by_field_name("name") {
                        let name = self.name_of(name);
                        self.bind(&name, &read, node.end_byte());
                    }
                }
                "class_definition" => {
                    self.class(child);
                    if let Some(name) = child.child_by_field_name("name") {
                        let name = self.name_of(name);
                        self.bind(&name, &results, node.end_byte());
                    }
                }
                _ => {
                    self.eval(child);
                }
            }
        }
    }

    /// A function definition; gives its number.
    fn function(&mut self, node: Node<'t>, decorated: bool) -> usize {
        let index = self.function_at(node);
        let method = self.class_around();
        if let Some(generics) = node.child_by_field_name("type_parameters") {
            self.all(generics);
        }
        if let Some(result) = node.child_by_field_name("return_type") {
            self.all(result);
        }
        let first = match method {
            Some(class) if !decorated => Some(Value::of(Origin::Instance(class))),
            Some(class) => {
                let mut either = Value::of(Origin::Instance(class));
                either.add(Origin::Unknown);
                Some(either)
            }
            None => None,
        };
        self.functions[index].method = method.is_some();
        if let Some(parameters) = node.child_by_field_name("parameters") {
            self.parameters(index, parameters, first);
        }
        if let Some(name) = node.child_by_field_name("name") {
            let name = self.name_of(name);
            let end = node.end_byte();
            self.bind(&name, &Value::of(Origin::Function(index)), end);
        }
        if let Some(body) = node.child_by_field_name("body") {
            let outer = self.current_function.replace(index);
            let scope = self.functions[index].scope;
            let branches = std::mem::take(&mut self.branches);
            self.inside(scope, |w| w.block(body));
            self.branches = branches;
            self.current_function = outer;
        }
        if let Some(body) = node.child_by_field_name("body")
            && limits::gives_for_ever(self, body)
        {
            self.functions[index].returns.add(Origin::Object("@endless".into()));
        }
        // Python itself calls `__getattr__`, `__enter__` and their like, and others call what was handed on.
        let hidden = node.child_by_field_name("name").is_some_and(|name| self.text(name).starts_with("__"));
        if hidden || self.functions[index].escaped {
            let returns = self.functions[index].returns.clone();
            self.leak(&returns, node);
            self.lose(&returns);
        }
        index
    }

    fn class_around(&self) -> Option<usize> {
        self.class_of_scope.get(&self.scope).copied()
    }

    /// Binds parameters: to what calls pass, to defaults, and to unknown where others may call.
    pub(super) fn parameters(&mut self, index: usize, node: Node<'t>, first: Option<Value>) {
        let (scope, escaped) = (self.functions[index].scope, self.functions[index].escaped);
        let mut names = Vec::new();
        for parameter in python::children(node) {
            if let Some(annotation) = parameter.child_by_field_name("type") {
                self.all(annotation);
            }
            let mut value = match parameter.child_by_field_name("value") {
                Some(default) => self.eval(default),
                None => Value::nothing(),
            };
            if names.is_empty()
                && let Some(first) = &first
            {
                value.merge(first);
            }
            let splat = parameter.kind().contains("splat")
                || python::children(parameter).first().is_some_and(|c| c.kind().contains("splat"));
            let target = parameter
                .child_by_field_name("name")
                .or_else(|| (parameter.kind() == "identifier").then_some(parameter))
                .or_else(|| first_identifier(parameter));
            let Some(target) = target else { continue };
            let name = self.name_of(target);
            // Unknown where nothing is known to be passed, and where more callers are possible than we see.
            let passed = self.own_variable(scope, &name).is_some_and(|v| !v.is_empty());
            if splat || escaped || (value.is_empty() && !passed) {
                value.add(Origin::Unknown);
            }
            self.bind_in(scope, &name, &value, Some(0));
            names.push(if splat { format!("*{name}") } else { name });
        }
        self.functions[index].parameters = names;
    }

    fn class(&mut self, node: Node<'t>) {
        let index = self.class_at(node);
        if let Some(generics) = node.child_by_field_name("type_parameters") {
            self.all(generics);
        }
        if let Some(bases) = node.child_by_field_name("superclasses") {
            for base in python::children(bases) {
                let value = if base.kind() == "keyword_argument" {
                    base.child_by_field_name("value").map_or_else(Value::unknown, |v| self.eval(v))
                } else {
                    self.eval(base)
                };
                self.leak(&value, base);
                self.classes[index].bases.merge(&value);
            }
        }
        if let Some(name) = node.child_by_field_name("name") {
            let name = self.name_of(name);
            self.bind(&name, &Value::of(Origin::Class(index)), node.end_byte());
        }
        if let Some(body) = node.child_by_field_name("body") {
            let scope = self.classes[index].scope;
            self.inside(scope, |w| w.block(body));
            if !self.classes[index].bases.is_empty() {
                // An enumeration or a metaclass wraps what the body binds.
                for value in self.values_of(scope) {
                    self.leak(&value, node);
                    self.lose(&value);
                }
            }
        }
    }

    fn type_alias(&mut self, node: Node<'t>) {
        let parts = python::fields(node, "left");
        for child in python::children(node) {
            if parts.contains(&child) {
                continue;
            }
            self.all(child);
        }
        if let Some(name) = parts.first().and_then(|l| first_identifier(*l)) {
            let name = self.name_of(name);
            self.bind(&name, &Value::unknown(), node.end_byte());
        }
    }
}

fn first_identifier(node: Node<'_>) -> Option<Node<'_>> {
    if node.kind() == "identifier" {
        return Some(node);
    }
    python::children(node).into_iter().find_map(first_identifier)
}
