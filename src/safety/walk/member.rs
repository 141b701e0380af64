//! Attributes: what `base.name` is, and what it needs.

use tree_sitter::Node;

use super::Walker;
use super::origin::{Origin, Value};
use crate::safety::checks;
use crate::safety::source;
use crate::safety::tables::{Need, Unlisted};
use crate::safety::verdict::Capability;

impl Walker<'_> {
    /// Reads `base.name`; `node` is the whole expression, where findings are put.
    pub(in crate::safety) fn member(&mut self, base: &Value, name: &str, node: Node<'_>) -> Value {
        if self.inner_name(base, name, node) {
            return Value::unknown();
        }
        let mut value = Value::nothing();
        let classes: Vec<usize> = base
            .origins()
            .iter()
            .filter_map(|o| match o {
                Origin::Instance(class) | Origin::Class(class) => Some(*class),
                _ => None,
            })
            .collect();
        if !classes.is_empty() {
            value = self.member_of_classes(classes, name, node);
        }
        for origin in base.origins() {
            let part = match origin {
                Origin::Name(space) => self.member_of_name(space, name, node),
                Origin::Object(kind) => self.member_of_object(kind, name, node),
                // All at once: they may share bases.
                Origin::Instance(_) | Origin::Class(_) => continue,
                Origin::Items(index) => self.member_of_items(*index, name, node),
                Origin::Text(text) => {
                    if name == "format" && !self.callees.contains(&node.id()) && checks::field_reaches(text) {
                        self.note(node, Capability::Reflection, false);
                    }
                    self.member_of_object("@text", name, node)
                }
                Origin::Plain | Origin::Number(_) | Origin::Function(_) => self.stored_or(name, Value::unknown()),
                Origin::Super => self.member_of_super(name, node),
                Origin::TooMany => {
                    self.too_many(node);
                    Value::unknown()
                }
                Origin::Unknown => self.member_of_unknown(name, node),
            };
            value.merge(&part);
        }
        value.or_unknown()
    }

    pub(super) fn too_many(&mut self, node: Node<'_>) {
        let why = "This name is bound in more ways than can be followed.";
        self.note_why(node, Capability::Reflection, true, why);
    }

    /// Names that lead inside the interpreter from any object. True when the name was one.
    fn inner_name(&mut self, base: &Value, name: &str, node: Node<'_>) -> bool {
        let dunder = name.len() > 4 && name.starts_with("__") && name.ends_with("__");
        if !dunder && !self.tables.listed("inner_attributes", name) {
            return false;
        }
        if self.tables.listed("plain_dunder_attributes", name) {
            return dunder;
        }
        // `X.__init__(self)` and its like, called on the spot, are how Python code calls its base class.
        let called = self.callees.contains(&node.id());
        if dunder
            && called
            && (self.tables.listed("called_dunder_attributes", name)
                || (base.origins() == [Origin::Super] && self.tables.listed("super_dunder_attributes", name)))
        {
            return true;
        }
        // `x.__class__.__name__` only names a type.
        let named = self.named.contains(&node.id());
        if !(name == "__class__" && named) {
            self.note(node, Capability::Reflection, false);
        }
        true
    }

    /// Reads `space.name` of a module, class or function of the tables.
    pub(super) fn member_of_name(&mut self, space: &str, name: &str, node: Node<'_>) -> Value {
        let full = format!("{space}.{name}");
        if let Some(need) = self.tables.need(space, name) {
            self.note_member(space, name, node, need);
            return match self.tables.value(space, name) {
                Some(target) => self.target(target),
                None => Value::of(Origin::Name(full.as_str().into())),
            };
        }
        // What this code itself has put there before.
        if let Some(stored) = self.stored.get(&full) {
            return stored.clone().or_unknown();
        }
        if let Some(need) = self.tables.import(&full) {
            self.note_need(node, need);
            return Value::unknown();
        }
        if self.tables.space(&full).is_some() {
            return Value::of(Origin::Name(full.as_str().into()));
        }
        let Some(unlisted) = self.tables.space(space).map(|s| s.unlisted) else {
            return self.member_of_unknown(name, node);
        };
        if name.starts_with('_') || self.tables.listed("module_names", name) {
            let why = format!("`{full}` reaches another module through `{space}`, past what can be checked.");
            self.note_with(node, Capability::Reflection, true, Some(why), Some(full), None);
            return Value::unknown();
        }
        match unlisted {
            Unlisted::Ask => {
                let why = format!("`{full}` is not on the list of things known to be harmless.");
                let what = Some(full.clone());
                self.note_with(node, Capability::UnknownModule, false, Some(why), what.clone(), what);
                Value::of(Origin::Name(full.as_str().into()))
            }
            Unlisted::Harmless => {
                self.sink(name, node);
                Value::of(Origin::Name(full.as_str().into()))
            }
        }
    }

    /// Reads an attribute of an object of a known kind.
    fn member_of_object(&mut self, kind: &str, name: &str, node: Node<'_>) -> Value {
        if let Some(need) = self.tables.need(kind, name) {
            self.note_member(kind, name, node, need);
            if let Some(target) = self.tables.value(kind, name) {
                return self.target(target);
            }
            return Value::of(Origin::Name(format!("{kind}.{name}").as_str().into()));
        }
        if self.tables.space(kind).is_some_and(|s| s.unlisted == Unlisted::Ask) {
            self.note(node, Capability::UnknownModule, false);
        } else {
            self.sink(name, node);
        }
        if let Some(stored) = self.stored.get(name) {
            return stored.clone().or_unknown();
        }
        Value::of(Origin::Name(format!("{kind}.{name}").as_str().into()))
    }

    /// Reads an attribute of classes of this code or of their objects: its own, or what its bases bring.
    fn member_of_classes(&mut self, classes: Vec<usize>, name: &str, node: Node<'_>) -> Value {
        const MOST_BASES: usize = 40;
        let mut value = self.stored.get(name).cloned().unwrap_or_default();
        let mut waiting = classes;
        let mut seen = Vec::new();
        while let Some(at) = waiting.pop() {
            if seen.contains(&at) {
                continue;
            }
            seen.push(at);
            if seen.len() > MOST_BASES {
                self.too_many(node);
                break;
            }
            let own = self.own_variable(self.classes[at].scope, name).filter(|v| !v.is_empty());
            if let Some(own) = own {
                value.merge(&own.clone());
                continue;
            }
            for base in self.classes[at].bases.clone().origins() {
                let part = match base {
                    Origin::Class(other) => {
                        waiting.push(*other);
                        continue;
                    }
                    Origin::Name(full) if self.tables.space(full).is_some() => self.member_of_object(full, name, node),
                    _ => self.member_of_unknown(name, node),
                };
                value.merge(&part);
            }
        }
        // A name that none of the classes has comes from `__getattr__`, a descriptor or a metaclass.
        if value.is_empty() { self.member_of_unknown(name, node) } else { value }
    }

    /// A method of a container; a generator or tuple of this code may also be a named tuple or an object in disguise.
    fn member_of_items(&mut self, index: usize, name: &str, node: Node<'_>) -> Value {
        match name {
            "get" | "pop" | "popitem" | "values" | "items" | "copy" | "setdefault" | "append" | "add" | "extend"
            | "insert" | "update" => Value::of(Origin::Items(index)),
            _ => {
                self.lost_member(name, node);
                Value::unknown()
            }
        }
    }

    /// `super().name`: what the bases of the class around bring.
    fn member_of_super(&mut self, name: &str, node: Node<'_>) -> Value {
        let mut scope = self.scope;
        while !self.class_of_scope.contains_key(&scope) {
            if scope == 0 {
                return Value::unknown();
            }
            scope = self.parent_scope(scope);
        }
        let bases = self.class_of_scope.get(&scope).map(|class| self.classes[*class].bases.clone()).unwrap_or_default();
        let own: Vec<usize> = bases
            .origins()
            .iter()
            .filter_map(|o| if let Origin::Class(class) = o { Some(*class) } else { None })
            .collect();
        if own.is_empty() { Value::unknown() } else { self.member_of_classes(own, name, node) }
    }

    /// Objects that go where they are not followed are remembered by kind: what an unknown object is asked for is
    /// held against them too.
    pub(in crate::safety) fn lose(&mut self, value: &Value) {
        // What is inside a container was looked at when it was put there.
        for origin in value.origins() {
            if let Origin::Object(kind) = origin
                && self.tables.listed("followed_when_lost", kind)
                && !self.lost.contains(kind)
            {
                self.lost.push(kind.clone());
            }
        }
    }

    /// Notes what `name` would need on any of the objects that were lost from sight.
    fn lost_member(&mut self, name: &str, node: Node<'_>) {
        if self.lost.is_empty() || self.tables.listed("plain_methods", name) {
            return;
        }
        for kind in self.lost.clone() {
            let Some(Need::Capability { capability, grave }) = self.tables.need(&kind, name) else {
                continue;
            };
            let checked = self.tables.check(&kind, name).is_some();
            self.note(node, capability, grave && !checked);
        }
    }

    fn stored_or(&self, name: &str, other: Value) -> Value {
        self.stored.get(name).cloned().unwrap_or(other)
    }

    fn member_of_unknown(&mut self, name: &str, node: Node<'_>) -> Value {
        self.sink(name, node);
        self.lost_member(name, node);
        if let Some(stored) = self.stored.get(name) {
            let mut value = stored.clone();
            value.add(Origin::Unknown);
            return value;
        }
        match self.tables.value("@any", name) {
            Some(target) => self.target(target),
            None => Value::of(Origin::Name(format!("@any.{name}").as_str().into())),
        }
    }

    /// Names that mean the same on whatever object they are found.
    fn sink(&mut self, name: &str, node: Node<'_>) {
        if let Some(need) = self.tables.need("@any", name) {
            self.note_member("@any", name, node, need);
        } else if self.tables.listed("hidden_modules", name) {
            self.note(node, Capability::Reflection, true);
        }
    }

    /// Stores `value` in `base.name`.
    pub(in crate::safety) fn store_member(&mut self, base: &Value, name: &str, value: &Value, node: Node<'_>) {
        for origin in base.origins() {
            match origin {
                Origin::Name(space) if !space.starts_with('@') => self.store_in_name(&space.clone(), name, node),
                Origin::Object(kind) => {
                    let method = self.tables.listed("singletons", kind) && self.tables.check(kind, name).is_some();
                    if method || self.tables.listed("shared_objects", kind) {
                        self.note(node, Capability::Reflection, true);
                    }
                    // `name=` in a table is about storing, where it differs from reading.
                    let need = self
                        .tables
                        .need(kind, &format!("{name}="))
                        .or_else(|| self.tables.need(kind, name))
                        .or_else(|| self.tables.need("@any", name));
                    if let Some(need) = need {
                        self.note_need(node, need);
                    }
                }
                Origin::Unknown | Origin::Name(_) => {
                    if let Some(need @ Need::Capability { .. }) = self.tables.need("@any", name) {
                        self.note_need(node, need);
                    }
                }
                _ => {}
            }
        }
        // A person cannot tell whose computer a bare public address is.
        if matches!(name, "host" | "address" | "url") && value.text().is_some_and(source::is_public_number) {
            let why = "This names a computer on the internet only by a number, so nobody can tell whose it is.";
            self.note_why(node, Capability::Network, true, why);
        }
        let dunder = name.starts_with("__") && name.ends_with("__");
        if dunder || self.tables.listed("inner_attributes", name) {
            self.note(node, Capability::Reflection, false);
        }
        self.leak(value, node);
        let mut keys: Vec<String> = Vec::new();
        for origin in base.origins() {
            let key = match origin {
                Origin::Name(space) => format!("{space}.{name}"),
                _ => name.to_owned(),
            };
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        for key in keys {
            self.stored.entry(key).or_default().merge(value);
        }
    }

    /// Notes a path to keys or to what the system keeps for itself, as soon as it is put together: where it is read or
    /// written may be out of sight.
    pub(in crate::safety) fn guarded_path(&mut self, node: Node<'_>, path: &str) {
        if source::is_secret_path(path) {
            self.note_with(node, Capability::Secrets, false, None, None, Some(path.to_owned()));
        } else if source::is_system_path(path) {
            self.note_with(node, Capability::ReadFile, true, None, None, Some(path.to_owned()));
        }
    }

    fn store_in_name(&mut self, space: &str, name: &str, node: Node<'_>) {
        let own = self.tables.listed("open_for_own_names", space)
            && !self.tables.names(space, name)
            && self.tables.space(&format!("{space}.{name}")).is_none()
            && !self.tables.listed("module_names", name);
        // Objects stand for themselves; modules, classes and functions belong to everyone.
        if !own {
            self.note_with(
                node,
                Capability::Reflection,
                true,
                Some(format!("`{space}.{name}` is replaced for everything that runs in Slicer from then on.")),
                None,
                None,
            );
        }
    }

    /// Values that are handed to something that we do not follow. A module would go out of sight with all it can do.
    pub(super) fn leak(&mut self, value: &Value, node: Node<'_>) {
        for origin in value.origins() {
            match origin {
                Origin::Function(index) => self.functions[*index].escaped = true,
                // The types of the language (`map(str, …)`) are written in lower case like modules and are none.
                Origin::Name(name) if self.is_module(name) && !name.starts_with("builtins.") => {
                    let why = format!(
                        "The module `{name}` is passed on as a value, so what is done with it cannot be checked."
                    );
                    let closed = self.tables.space(name).is_some_and(|s| s.unlisted == Unlisted::Ask)
                        || self.tables.listed("powerful_modules", name);
                    let capability = if closed { Capability::Reflection } else { Capability::UnknownModule };
                    self.note_with(node, capability, closed, Some(why), None, None);
                }
                _ => {}
            }
        }
    }

    /// Notes what a member needs, unless it is called here and a check of its arguments will say it better.
    fn note_member(&mut self, space: &str, name: &str, node: Node<'_>, need: Need) {
        let called = self.callees.contains(&node.id());
        if !(called && self.tables.check(space, name).is_some()) {
            self.note_need(node, need);
        }
    }

    /// Whether a name of the tables is a module: modules are written in lower case, classes are not.
    fn is_module(&self, name: &str) -> bool {
        let last = name.rsplit('.').next().unwrap_or(name);
        let class = last.chars().any(char::is_uppercase);
        !name.starts_with('@') && !class && self.tables.space(name).is_some()
    }
}
