//! Imports: what a module needs by being imported, and what its names then stand for.

use tree_sitter::Node;

use super::Walker;
use super::origin::{Origin, Value};
use crate::python;
use crate::safety::verdict::Capability;

impl<'t> Walker<'t> {
    pub(super) fn import(&mut self, node: Node<'t>) {
        for name in python::fields(node, "name") {
            let (path, alias) = self.import_name(name);
            let module = self.import_path(&path, name);
            match alias {
                Some(alias) => self.bind_import(&alias, &module, node, name),
                None => {
                    let root = path.split('.').next().unwrap_or(&path).to_owned();
                    let value = if root == path { module } else { self.module_value(&root) };
                    self.bind_import(&root, &value, node, name);
                }
            }
        }
    }

    pub(super) fn import_from(&mut self, node: Node<'t>) {
        let Some(module) = node.child_by_field_name("module_name") else {
            return;
        };
        if module.kind() == "relative_import" {
            self.note(module, Capability::UnknownModule, false);
        }
        let path = self.name_of(module).split_whitespace().collect::<String>();
        let base = self.import_path(&path, module);
        if python::children(node).iter().any(|c| c.kind() == "wildcard_import") {
            if self.tables.space(&path).is_some() && !self.stars.contains(&path) {
                self.stars.push(path);
                self.meaningless.clear();
            }
            return;
        }
        for name in python::fields(node, "name") {
            let (path, alias) = self.import_name(name);
            let value = self.member(&base, &path, name);
            let bound = alias.unwrap_or(path);
            self.bind_import(&bound, &value, node, name);
        }
    }

    fn bind_import(&mut self, name: &str, value: &Value, node: Node<'t>, at: Node<'t>) {
        let builtin = self.tables.need("builtins", name).is_some();
        let module = value.origins().iter().any(|o| matches!(o, Origin::Name(n) if self.tables.space(n).is_some()));
        // `import numpy as json`: read as one module, is another.
        let origin = value.origins().iter().find_map(|o| match o {
            Origin::Name(n) => Some(n.rsplit('.').next().unwrap_or(n).to_owned()),
            _ => None,
        });
        let other = module && origin.is_some_and(|o| !o.starts_with(name)) && self.tables.space(name).is_some();
        if other {
            self.note_why(at, Capability::Reflection, true, "A module is given the name of another module.");
        }
        if builtin && module {
            self.note_why(at, Capability::Reflection, true, "A module is given the name of a builtin function.");
        }
        self.bind(name, value, node.end_byte());
    }

    fn import_name(&mut self, node: Node<'t>) -> (String, Option<String>) {
        let path = node.child_by_field_name("name").unwrap_or(node);
        let alias = node.child_by_field_name("alias").map(|a| self.name_of(a));
        let raw = self.text(path);
        let name = self.name_of(path).split_whitespace().collect::<String>();
        if !raw.is_ascii() && name.is_ascii() {
            self.note_why(path, Capability::Reflection, true, "A module name is written with look-alike letters.");
        }
        (name, alias)
    }

    /// Imports `path`: what it needs by itself, and the module.
    fn import_path(&mut self, path: &str, node: Node<'t>) -> Value {
        let mut prefix = String::new();
        let mut value = Value::unknown();
        for part in path.split('.') {
            if prefix.is_empty() {
                prefix.push_str(part);
                if self.tables.import(&prefix).is_none() && self.tables.space(&prefix).is_none() {
                    let why = format!("The module `{path}` is not on the list of modules known to be harmless.");
                    self.note_with(node, Capability::UnknownModule, false, Some(why), None, Some(path.to_owned()));
                    return Value::unknown();
                }
                if let Some(need) = self.tables.import(&prefix) {
                    self.note_need(node, need);
                    if self.tables.space(&prefix).is_none() {
                        return Value::unknown();
                    }
                }
                value = self.module_value(&prefix);
            } else {
                let full = format!("{prefix}.{part}");
                let known = self.tables.need(&prefix, part).is_some()
                    || self.tables.space(&full).is_some()
                    || self.tables.import(&full).is_some();
                if self.tables.space(&prefix).is_some() && !known {
                    let why = format!("The module `{full}` is not on the list of modules known to be harmless.");
                    self.note_with(node, Capability::UnknownModule, false, Some(why), None, Some(full));
                    return Value::unknown();
                }
                value = self.member(&value, part, node);
                prefix = format!("{prefix}.{part}");
            }
        }
        value
    }

    fn module_value(&self, name: &str) -> Value {
        if self.tables.space(name).is_some() { Value::of(Origin::Name(name.into())) } else { Value::unknown() }
    }
}
