//! `match`: patterns take a value apart, attributes included.

use tree_sitter::Node;

use super::Walker;
use super::origin::Value;
use crate::python;

impl<'t> Walker<'t> {
    /// A `match` statement: the patterns take the subject apart.
    pub(super) fn match_statement(&mut self, node: Node<'t>) {
        let mut subject = Value::nothing();
        for part in python::fields(node, "subject") {
            let value = self.eval(part);
            subject.merge(&value);
        }
        let outer = std::mem::replace(&mut self.subject, subject.or_unknown());
        for body in python::fields(node, "body") {
            self.branch(|w| {
                for child in python::children(body) {
                    w.branch_part(child);
                }
            });
        }
        self.subject = outer;
    }

    /// A pattern of `match` that is held against `value`.
    pub(super) fn pattern(&mut self, node: Node<'t>, value: &Value) {
        match node.kind() {
            "identifier" => {
                let name = self.name_of(node);
                self.bind(&name, value, node.end_byte());
            }
            "class_pattern" => {
                for child in python::children(node) {
                    if child.kind() == "dotted_name" {
                        self.dotted(child);
                    } else {
                        self.pattern(child, value);
                    }
                }
            }
            "keyword_pattern" => {
                let parts = python::children(node);
                let Some(key) = parts.first() else { return };
                let name = self.name_of(*key);
                let inner = self.member(value, &name, node);
                for part in parts.iter().skip(1) {
                    self.pattern(*part, &inner);
                }
            }
            "dotted_name" => {
                let parts = python::children(node);
                if parts.len() == 1 {
                    self.pattern(parts[0], value);
                } else {
                    self.dotted(node);
                }
            }
            "list_pattern" | "tuple_pattern" | "dict_pattern" | "splat_pattern" => {
                let inner = self.elements(value);
                for child in python::children(node) {
                    self.pattern(child, &inner);
                }
            }
            _ => {
                for child in python::children(node) {
                    self.pattern(child, value);
                }
            }
        }
    }

    /// `a.b.c` where the grammar has a dotted name and not attributes.
    fn dotted(&mut self, node: Node<'t>) -> Value {
        let parts = python::children(node);
        let mut value = Value::unknown();
        for (position, part) in parts.iter().enumerate() {
            let name = self.name_of(*part);
            value = if position == 0 { self.read(&name, node) } else { self.member(&value, &name, node) };
        }
        value
    }
}
