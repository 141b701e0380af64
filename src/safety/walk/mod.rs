//! The walk over one program: names and values are followed, and every use of something that the tables say needs a
//! capability is noted where it is *named*, not only where it is called: a dangerous function that is passed on, stored
//! or renamed is found at that point, so nothing has to be proved about what becomes of it.
//!
//! The walk does not follow the order in which code runs. All bindings of a name count everywhere in its scope, which
//! can only add origins. Two silent rounds collect bindings, stored attributes and results; the third notes findings.

pub(super) mod call;
mod expr;
mod import;
mod member;
mod names;
pub(super) mod origin;
mod pattern;
mod stmt;

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use tree_sitter::{Node, Tree};

use super::Raw;
use super::tables::Tables;
use super::verdict::Capability;
use crate::python;
use names::{Scope, ScopeKind};
use origin::{Origin, Value};

const ROUNDS: usize = 3;
/// Findings after which those that only ask are not kept any more.
const ENOUGH: usize = 2000;

/// A function or lambda of the program.
#[derive(Debug, Default)]
pub(super) struct Function {
    pub(super) scope: usize,
    pub(super) parameters: Vec<String>,
    pub(super) returns: Value,
    /// Handed to something that we do not follow, so its parameters can be anything.
    pub(super) escaped: bool,
    pub(super) method: bool,
}

/// A class of the program.
#[derive(Debug, Default)]
pub(super) struct Class {
    pub(super) scope: usize,
    pub(super) bases: Value,
}

pub(super) struct Walker<'t> {
    pub(super) code: &'t str,
    pub(super) tables: &'static Tables,
    pub(super) scopes: Vec<Scope>,
    scope_of: HashMap<usize, usize>,
    pub(super) scope: usize,
    pub(super) functions: Vec<Function>,
    function_of: HashMap<usize, usize>,
    pub(super) classes: Vec<Class>,
    class_of: HashMap<usize, usize>,
    /// Elements of the containers that the program makes.
    pub(super) items: Vec<Value>,
    items_of: HashMap<usize, usize>,
    /// What the program stores in attributes, by the attribute's name alone.
    pub(super) stored: HashMap<String, Value>,
    /// Kinds of objects that went where they are not followed.
    pub(super) lost: Vec<std::rc::Rc<str>>,
    /// Modules whose names are all brought in by `from … import *`.
    pub(super) stars: Vec<String>,
    /// Free names that no table knows; asked for again and again in long lists.
    pub(super) meaningless: HashSet<String>,
    /// Non-zero inside a branch, loop or `try`: what is bound there may not be bound at all.
    pub(super) branches: usize,
    pub(super) current_function: Option<usize>,
    /// Whether the code makes its timers fire once.
    pub(super) single_shot: bool,
    class_of_scope: HashMap<usize, usize>,
    /// Expressions that are called where they stand. Asking a node for its parent walks down from the root each time.
    pub(super) callees: HashSet<usize>,
    /// Expressions of which only `__name__` is read.
    pub(super) named: HashSet<usize>,
    /// Where the statement that is being walked ends.
    pub(super) statement_end: usize,
    /// What the innermost `match` looks at.
    pub(super) subject: Value,
    /// Whether this is the round that notes findings.
    emit: bool,
    seen: HashSet<(usize, usize, Capability)>,
    found: Vec<Raw>,
    /// When the findings must be known.
    end: Option<Instant>,
    late: bool,
}

/// All findings of the program in `tree`, in no particular order; `None` when they are not all known by `end`.
pub(super) fn walk(code: &str, tree: &Tree, end: Option<Instant>) -> Option<Vec<Raw>> {
    let mut walker = Walker {
        code,
        tables: Tables::get(),
        scopes: vec![Scope::new(ScopeKind::Module, 0)],
        scope_of: HashMap::new(),
        scope: 0,
        functions: Vec::new(),
        function_of: HashMap::new(),
        classes: Vec::new(),
        class_of: HashMap::new(),
        items: Vec::new(),
        items_of: HashMap::new(),
        stored: HashMap::new(),
        lost: Vec::new(),
        stars: Vec::new(),
        meaningless: HashSet::new(),
        branches: 0,
        current_function: None,
        single_shot: false,
        class_of_scope: HashMap::new(),
        callees: HashSet::new(),
        named: HashSet::new(),
        statement_end: 0,
        subject: Value::unknown(),
        emit: false,
        seen: HashSet::new(),
        found: Vec::new(),
        end,
        late: false,
    };
    for round in 0..ROUNDS {
        walker.emit = round + 1 == ROUNDS;
        walker.block(tree.root_node());
    }
    if !walker.is_late() {
        super::limits::look(&mut walker, tree.root_node());
    }
    (!walker.is_late()).then_some(walker.found)
}

impl<'t> Walker<'t> {
    /// Whether the time is over: the rest need not be looked at, the code is refused.
    pub(super) fn is_late(&mut self) -> bool {
        self.late = self.late || self.end.is_some_and(|end| Instant::now() > end);
        self.late
    }

    pub(super) fn text(&self, node: Node<'_>) -> &'t str {
        python::text(node, self.code)
    }

    pub(super) fn name_of(&self, node: Node<'_>) -> String {
        python::identifier(self.text(node))
    }

    /// Notes that the code at `node` needs `capability`.
    pub(super) fn note(&mut self, node: Node<'_>, capability: Capability, grave: bool) {
        self.note_with(node, capability, grave, None, None, None);
    }

    /// The same with a sentence of its own.
    pub(super) fn note_why(&mut self, node: Node<'_>, capability: Capability, grave: bool, why: &str) {
        self.note_with(node, capability, grave, Some(why.to_owned()), None, None);
    }

    pub(super) fn note_with(
        &mut self,
        node: Node<'_>,
        capability: Capability,
        grave: bool,
        why: Option<String>,
        what: Option<String>,
        scope: Option<String>,
    ) {
        let key = (node.start_byte(), node.end_byte(), capability);
        let strict = grave || capability.is_final();
        // Enough to show and enough to block; a program with more is not read to the end by anybody.
        if !self.emit || self.found.len() >= if strict { 2 * ENOUGH } else { ENOUGH } {
            return;
        }
        if !self.seen.insert(key) {
            if grave
                && let Some(known) =
                    self.found.iter_mut().rev().take(64).find(|f| (f.start, f.end, f.capability) == key)
            {
                known.grave = true;
            }
            return;
        }
        self.found.push(Raw {
            start: node.start_byte(),
            end: node.end_byte(),
            capability,
            grave,
            why,
            instead: None,
            scope,
            what,
        });
    }

    /// Puts `scope` on the findings that lie exactly on `node`: the path or host is known only at the call.
    pub(super) fn set_scope(&mut self, node: Node<'_>, scope: &str) {
        let (start, end) = (node.start_byte(), node.end_byte());
        for raw in self.found.iter_mut().rev().take(8) {
            if raw.start == start
                && raw.end == end
                && matches!(raw.capability, Capability::ReadFile | Capability::WriteFile | Capability::Network)
            {
                raw.scope.get_or_insert_with(|| scope.to_owned());
            }
        }
    }

    /// The container made at `node`.
    pub(super) fn container(&mut self, node: Node<'_>, elements: &Value) -> Value {
        let next = self.items.len();
        let index = *self.items_of.entry(node.id()).or_insert(next);
        if index == next {
            self.items.push(Value::nothing());
        }
        self.items[index].merge(elements);
        Value::of(Origin::Items(index))
    }

    /// The function defined at `node`, made on first sight.
    pub(super) fn function_at(&mut self, node: Node<'_>) -> usize {
        let next = self.functions.len();
        let index = *self.function_of.entry(node.id()).or_insert(next);
        if index == next {
            let scope = self.scope_at(node, ScopeKind::Function);
            self.functions.push(Function { scope, ..Function::default() });
        }
        index
    }

    /// The class defined at `node`, made on first sight.
    pub(super) fn class_at(&mut self, node: Node<'_>) -> usize {
        let next = self.classes.len();
        let index = *self.class_of.entry(node.id()).or_insert(next);
        if index == next {
            let scope = self.scope_at(node, ScopeKind::Class);
            self.class_of_scope.insert(scope, index);
            self.classes.push(Class { scope, ..Class::default() });
        }
        index
    }

    /// The scope that `node` opens, made on first sight below the current one.
    pub(super) fn scope_at(&mut self, node: Node<'_>, kind: ScopeKind) -> usize {
        let next = self.scopes.len();
        let index = *self.scope_of.entry(node.id()).or_insert(next);
        if index == next {
            self.scopes.push(Scope::new(kind, self.scope));
        }
        index
    }

    /// Runs `work` inside the scope `scope`.
    pub(super) fn inside<T>(&mut self, scope: usize, work: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.scope, scope);
        let result = work(self);
        self.scope = outer;
        result
    }

    /// Runs `work` as part of a branch.
    pub(super) fn branch<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        self.branches += 1;
        let result = work(self);
        self.branches -= 1;
        result
    }
}
