//! Calls: arguments go into the parameters of this code's own functions, or to the checks that a table names.

use tree_sitter::Node;

use super::Walker;
use super::origin::{Origin, Value};
use crate::python;
use crate::safety::checks;

/// One argument.
pub(in crate::safety) struct Argument<'t> {
    pub(in crate::safety) keyword: Option<String>,
    pub(in crate::safety) value: Value,
    pub(in crate::safety) node: Node<'t>,
}

/// A call that is being looked at.
pub(in crate::safety) struct Call<'t> {
    /// The whole call.
    pub(in crate::safety) node: Node<'t>,
    /// What is called.
    pub(in crate::safety) callee: Node<'t>,
    pub(in crate::safety) arguments: Vec<Argument<'t>>,
    /// `*` or `**` among the arguments: their places are not known.
    pub(in crate::safety) splat: bool,
}

impl<'t> Call<'t> {
    /// The argument in place `position` or named one of `keywords`.
    pub(in crate::safety) fn argument(&self, position: usize, keywords: &[&str]) -> Option<&Argument<'t>> {
        self.arguments
            .iter()
            .find(|a| a.keyword.as_deref().is_some_and(|k| keywords.contains(&k)))
            .or_else(|| self.arguments.iter().filter(|a| a.keyword.is_none()).nth(position))
    }

    pub(in crate::safety) fn keyword(&self, name: &str) -> Option<&Argument<'t>> {
        self.arguments.iter().find(|a| a.keyword.as_deref() == Some(name))
    }
}

impl<'t> Walker<'t> {
    pub(super) fn call(&mut self, node: Node<'t>) -> Value {
        let Some(callee) = node.child_by_field_name("function") else {
            return self.all(node);
        };
        self.callees.insert(callee.id());
        let target = self.eval(callee);
        let call = self.collect(node, callee);
        if target.origins().iter().all(|o| !self.follows(o)) {
            let sees = target.origins().iter().all(
                |o| matches!(o, Origin::Name(n) if n.strip_prefix("builtins.").is_some_and(|b| self.tables.listed("may_see_modules", b))),
            );
            // Builtin functions do not change the lists that they are given; anything else may.
            let plain = target
                .origins()
                .iter()
                .all(|o| matches!(o, Origin::Name(n) if n.strip_prefix("builtins.").is_some_and(|b| !b.contains('.'))));
            for argument in &call.arguments {
                if !sees {
                    self.leak(&argument.value, argument.node);
                }
                if !plain {
                    self.may_fill(&argument.value);
                }
                if !sees && self.keeps(&target) {
                    self.lose(&argument.value);
                }
            }
        }
        self.path_scope(&call);
        let mut value = Value::nothing();
        for origin in target.origins() {
            let part = self.call_one(origin, &call);
            value.merge(&part);
        }
        value.or_unknown()
    }

    /// Whether what is called may give its argument back or keep it for others: Python's own functions and containers
    /// do, the setters of Qt, VTK and MRML do not.
    fn keeps(&self, target: &Value) -> bool {
        target.origins().iter().any(|origin| match origin {
            Origin::Name(name) => match name.strip_prefix("@any.") {
                Some(method) => self.tables.listed("keeping_methods", method),
                None => {
                    let root = name.split('.').next().unwrap_or(name);
                    !root.starts_with('@') && !matches!(root, "slicer" | "vtk" | "qt" | "ctk")
                }
            },
            Origin::Unknown | Origin::Instance(_) | Origin::Items(_) => true,
            _ => false,
        })
    }

    /// Containers handed to code that we do not follow can have anything in them afterwards.
    fn may_fill(&mut self, value: &Value) {
        for origin in value.origins() {
            if let Origin::Items(index) = origin {
                self.items[*index].add(Origin::Unknown);
            }
        }
    }

    /// Whether a call of this origin is followed into this code.
    fn follows(&self, origin: &Origin) -> bool {
        match origin {
            Origin::Function(_) | Origin::Class(_) => true,
            Origin::Name(name) => name
                .strip_prefix("builtins.")
                .is_some_and(|b| matches!(b, "getattr" | "setattr" | "delattr" | "hasattr")),
            _ => false,
        }
    }

    fn collect(&mut self, node: Node<'t>, callee: Node<'t>) -> Call<'t> {
        let mut call = Call { node, callee, arguments: Vec::new(), splat: false };
        let Some(list) = node.child_by_field_name("arguments") else {
            return call;
        };
        if list.kind() != "argument_list" {
            let value = self.eval(list);
            call.arguments.push(Argument { keyword: None, value, node: list });
            return call;
        }
        for part in python::children(list) {
            let (keyword, inner) = match part.kind() {
                "keyword_argument" => (
                    part.child_by_field_name("name").map(|n| self.name_of(n)),
                    part.child_by_field_name("value").unwrap_or(part),
                ),
                _ => (None, part),
            };
            let value = if part.kind().contains("splat") {
                call.splat = true;
                let inner = self.all(part);
                self.elements(&inner)
            } else {
                self.eval(inner)
            };
            call.arguments.push(Argument { keyword, value, node: inner });
        }
        call
    }

    /// Names the path or address on a finding when the call says it in so many words.
    fn path_scope(&mut self, call: &Call<'t>) {
        const NAMES: &[&str] = &["path", "filename", "file", "url", "uri", "uris", "directory", "filePath", "filepath"];
        if call.splat {
            return;
        }
        let literal = call
            .arguments
            .iter()
            .filter(|a| a.keyword.as_deref().is_none_or(|k| NAMES.contains(&k)))
            .find_map(|a| a.value.text().filter(|t| !t.starts_with('\0')).map(str::to_owned));
        if let Some(literal) = literal {
            self.set_scope(call.callee, &literal);
        }
    }

    fn call_one(&mut self, origin: &Origin, call: &Call<'t>) -> Value {
        match origin {
            Origin::Function(index) => self.call_function(*index, call, false),
            Origin::Class(index) => {
                let scope = self.classes[*index].scope;
                let init = self.own_variable(scope, "__init__").cloned().unwrap_or_default();
                for origin in init.origins() {
                    if let Origin::Function(function) = origin {
                        self.call_function(*function, call, true);
                    }
                }
                for argument in &call.arguments {
                    self.leak(&argument.value, argument.node);
                    self.lose(&argument.value);
                }
                Value::of(Origin::Instance(*index))
            }
            Origin::Items(index) => self.call_items(*index, call),
            Origin::Name(name) => self.call_name(&name.clone(), call),
            Origin::Instance(_) | Origin::Object(_) => Value::unknown(),
            Origin::TooMany => {
                self.too_many(call.callee);
                Value::unknown()
            }
            _ => Value::unknown(),
        }
    }

    fn call_name(&mut self, name: &str, call: &Call<'t>) -> Value {
        let Some((space, member)) = name.rsplit_once('.') else {
            return Value::unknown();
        };
        if let Some(check) = self.tables.check(space, member)
            && let Some(value) = checks::run(check, self, call)
        {
            return value;
        }
        checks::any_call(self, call);
        if let Some(target) = self.tables.returns(space, member) {
            return self.target(target);
        }
        if self.tables.space(name).is_some() {
            return Value::of(Origin::Object(name.into()));
        }
        Value::unknown()
    }

    /// A call of a method of a container that this code makes.
    fn call_items(&mut self, index: usize, call: &Call<'t>) -> Value {
        let method = call.callee.child_by_field_name("attribute").map_or("", |a| self.text(a));
        for argument in &call.arguments {
            let added = if matches!(method, "extend" | "update") {
                self.elements(&argument.value)
            } else {
                argument.value.clone()
            };
            self.lose(&argument.value);
            self.items[index].merge(&added);
        }
        let mut value = self.items[index].clone();
        // `for key, value in things.items()` unpacks once more.
        if matches!(method, "items" | "values" | "copy" | "popitem") {
            value = Value::of(Origin::Items(index));
        }
        value.or_unknown()
    }

    fn call_function(&mut self, index: usize, call: &Call<'t>, constructing: bool) -> Value {
        let (scope, method) = (self.functions[index].scope, self.functions[index].method);
        let parameters = self.functions[index].parameters.clone();
        let bound = constructing || (method && call.callee.kind() == "attribute");
        let mut position = usize::from(bound);
        for argument in &call.arguments {
            if call.splat {
                for name in &parameters {
                    self.bind_in(scope, name.trim_start_matches('*'), &argument.value, None);
                    self.bind_in(scope, name.trim_start_matches('*'), &Value::unknown(), None);
                }
                continue;
            }
            let target = match &argument.keyword {
                Some(keyword) => parameters.iter().find(|p| p.trim_start_matches('*') == keyword),
                None => {
                    position += 1;
                    parameters.get(position - 1)
                }
            };
            match target {
                Some(name) if !name.starts_with('*') => self.bind_in(scope, &name.clone(), &argument.value, None),
                // Into `*args` and `**kwargs`, or nowhere we know.
                _ => {
                    self.leak(&argument.value, argument.node);
                    self.lose(&argument.value);
                }
            }
        }
        let returns = self.functions[index].returns.clone();
        if returns.is_empty() { Value::plain() } else { returns }
    }
}
