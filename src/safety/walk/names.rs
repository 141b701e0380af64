//! Names: scopes, binding, and what a name means where it is read.

use std::collections::{HashMap, HashSet};

use tree_sitter::Node;

use super::Walker;
use super::origin::{Origin, Value};
use crate::safety::tables::Need;
use crate::safety::verdict::Capability;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::safety) enum ScopeKind {
    Module,
    Function,
    Class,
    Comprehension,
}

#[derive(Debug, Default)]
struct Variable {
    value: Value,
    /// From this byte on the name is certainly bound: a statement that always runs has bound it.
    certain: Option<usize>,
    deleted: bool,
}

#[derive(Debug)]
pub(in crate::safety) struct Scope {
    kind: ScopeKind,
    parent: usize,
    variables: HashMap<String, Variable>,
    globals: HashSet<String>,
    /// Names that belong to a function around this one.
    outer: HashSet<String>,
}

impl Scope {
    pub(super) fn new(kind: ScopeKind, parent: usize) -> Self {
        Self { kind, parent, variables: HashMap::new(), globals: HashSet::new(), outer: HashSet::new() }
    }
}

impl Walker<'_> {
    /// Declares `name` as `global`.
    pub(super) fn declare_global(&mut self, name: &str) {
        let scope = self.scope;
        self.scopes[scope].globals.insert(name.to_owned());
    }

    /// Declares `name` as `nonlocal`: it is bound in the functions around, whichever has it.
    pub(super) fn declare_nonlocal(&mut self, name: &str) {
        let scope = self.scope;
        self.scopes[scope].outer.insert(name.to_owned());
    }

    /// The scope that `scope` lies in.
    pub(super) fn parent_scope(&self, scope: usize) -> usize {
        self.scopes[scope].parent
    }

    /// Binds `name` in the current scope. `end` is where the binding statement ends.
    pub(super) fn bind(&mut self, name: &str, value: &Value, end: usize) {
        let mut scope = self.scope;
        if self.scopes[scope].outer.contains(name) {
            let mut around = self.scopes[scope].parent;
            while around != 0 {
                if self.scopes[around].kind == ScopeKind::Function {
                    self.bind_in(around, name, value, None);
                }
                around = self.scopes[around].parent;
            }
        }
        let target = if self.scopes[scope].globals.contains(name) { 0 } else { scope };
        if target != scope {
            scope = target;
        }
        let certain = self.branches == 0 && scope == self.scope;
        self.bind_in(scope, name, value, certain.then_some(end));
    }

    /// Binds `name` in `scope`.
    pub(super) fn bind_in(&mut self, scope: usize, name: &str, value: &Value, certain: Option<usize>) {
        let variable = self.scopes[scope].variables.entry(name.to_owned()).or_default();
        variable.value.merge(value);
        if let Some(end) = certain {
            variable.certain = Some(variable.certain.map_or(end, |known| known.min(end)));
        }
    }

    /// A walrus inside a comprehension binds outside of it.
    pub(super) fn bind_outside(&mut self, name: &str, value: &Value) {
        let mut scope = self.scope;
        while self.scopes[scope].kind == ScopeKind::Comprehension {
            scope = self.scopes[scope].parent;
        }
        if self.scopes[scope].globals.contains(name) {
            scope = 0;
        }
        self.bind_in(scope, name, value, None);
    }

    /// `del name`.
    pub(super) fn unbind(&mut self, name: &str) {
        let scope = if self.scopes[self.scope].globals.contains(name) { 0 } else { self.scope };
        self.scopes[scope].variables.entry(name.to_owned()).or_default().deleted = true;
    }

    /// What is bound to `name` in `scope`, nothing else.
    pub(super) fn own_variable(&self, scope: usize, name: &str) -> Option<&Value> {
        self.scopes[scope].variables.get(name).map(|v| &v.value)
    }

    /// Everything that is bound in `scope`.
    pub(super) fn values_of(&self, scope: usize) -> Vec<Value> {
        self.scopes[scope].variables.values().map(|v| v.value.clone()).collect()
    }

    /// What `name` can be, read at `node`.
    pub(super) fn read(&mut self, name: &str, node: Node<'_>) -> Value {
        let mut value = Value::nothing();
        let mut scope = self.scope;
        let mut innermost = true;
        loop {
            let here = &self.scopes[scope];
            let kind = here.kind;
            // The body of a class is not seen from the functions inside it.
            let visible = kind != ScopeKind::Class || innermost;
            if visible
                && !(kind == ScopeKind::Function && here.globals.contains(name))
                && let Some(variable) = here.variables.get(name)
            {
                value.merge(&variable.value);
                let certain = variable.certain.is_some_and(|end| node.start_byte() >= end) && !variable.deleted;
                let closed = match kind {
                    ScopeKind::Function | ScopeKind::Comprehension => true,
                    ScopeKind::Module | ScopeKind::Class => certain,
                };
                if closed {
                    return value.or_unknown();
                }
            }
            if kind == ScopeKind::Module {
                break;
            }
            innermost = innermost && kind == ScopeKind::Comprehension;
            scope = here.parent;
        }
        let bound = !value.is_empty() || self.scopes[0].variables.contains_key(name);
        let outside = self.free(name, node, bound);
        value.merge(&outside);
        value.or_unknown()
    }

    /// What a name means that this code may not have bound: a builtin, one of the names that Slicer's console has
    /// from the start, or a module that an earlier piece of code may have imported.
    fn free(&mut self, name: &str, node: Node<'_>, bound: bool) -> Value {
        if name.starts_with("__") {
            let plain = bound || self.tables.listed("plain_dunder_names", name) || !name.ends_with("__");
            if !plain {
                let kind = if name == "__import__" { Capability::DynamicCode } else { Capability::Reflection };
                self.note(node, kind, false);
            }
            return Value::unknown();
        }
        if self.meaningless.contains(name) {
            return Value::nothing();
        }
        if self.tables.need("builtins", name).is_some() {
            return self.member_of_name("builtins", name, node);
        }
        // A name that this code binds somewhere is its own; only builtins can show through before that.
        if bound {
            return Value::nothing();
        }
        for star in self.stars.clone() {
            if self.tables.listed("module_names", name) || self.tables.need(&star, name).is_some() {
                return self.member_of_name(&star, name, node);
            }
        }
        if let Some(target) = self.tables.value("@console", name) {
            return self.target(target);
        }
        if self.tables.need("slicer.util", name).is_some() {
            return self.member_of_name("slicer.util", name, node);
        }
        if let Some(need) = self.tables.import(name) {
            self.note_need(node, need);
            return Value::unknown();
        }
        if self.tables.space(name).is_some() {
            return Value::of(Origin::Name(name.into()));
        }
        if self.stars.is_empty() {
            self.meaningless.insert(name.to_owned());
        }
        let mut value = Value::nothing();
        // `import *` leaves out names with an underscore.
        for star in self.stars.clone().iter().filter(|_| !name.starts_with('_')) {
            value.merge(&self.member_of_name(star, name, node));
        }
        value
    }

    pub(super) fn note_need(&mut self, node: Node<'_>, need: Need) {
        if let Need::Capability { capability, grave } = need {
            self.note(node, capability, grave);
        }
    }

    /// What a table entry leads to: `@kind` is an object, anything else a name.
    pub(super) fn target(&self, target: &str) -> Value {
        match target {
            "plain" => Value::plain(),
            kind if kind.starts_with('@') => Value::of(Origin::Object(kind.into())),
            name => Value::of(Origin::Name(name.into())),
        }
    }
}
