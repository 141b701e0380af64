//! Where a value can come from. A value has a set of origins, because a name can be bound in more than one place.

use std::rc::Rc;

/// More different origins than this are not told apart any more.
const WIDTH: usize = 32;

/// One place where a value can come from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Origin {
    /// A number, a truth value, `None`, text that is computed.
    Plain,
    /// A string whose text is known.
    Text(Rc<str>),
    /// A number whose value is known.
    Number(f64),
    /// A module, class or function of the tables by its full name, or a method (`@scene.RemoveNode`).
    Name(Rc<str>),
    /// An object of a kind that the tables know.
    Object(Rc<str>),
    /// A function or lambda of this code.
    Function(usize),
    /// A class of this code.
    Class(usize),
    /// An object of a class of this code.
    Instance(usize),
    /// A list, tuple, set, dict or generator that is made here; the number is where its elements are kept.
    Items(usize),
    /// What `super()` gives.
    Super,
    /// More different things than are followed: using it is a finding, since what is left out could be anything.
    TooMany,
    /// Not known.
    Unknown,
}

/// The set of origins of one value.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Value(Vec<Origin>);

impl Value {
    pub(crate) fn nothing() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn unknown() -> Self {
        Self(vec![Origin::Unknown])
    }

    pub(crate) fn plain() -> Self {
        Self(vec![Origin::Plain])
    }

    pub(crate) fn of(origin: Origin) -> Self {
        Self(vec![origin])
    }

    pub(crate) fn origins(&self) -> &[Origin] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn or_unknown(self) -> Self {
        if self.0.is_empty() { Self::unknown() } else { self }
    }

    /// Adds an origin. When there are too many, literals fall together; anything else becomes `TooMany`.
    pub(crate) fn add(&mut self, origin: Origin) {
        if self.0.contains(&origin) {
            return;
        }
        let literal = matches!(origin, Origin::Number(_) | Origin::Text(_) | Origin::Items(_));
        if literal && self.0.len() >= WIDTH {
            return self.add(Origin::Unknown);
        }
        let extra = matches!(origin, Origin::Unknown | Origin::Plain | Origin::TooMany);
        if !extra && self.0.len() >= 2 * WIDTH {
            return self.add(Origin::TooMany);
        }
        self.0.push(origin);
    }

    pub(crate) fn merge(&mut self, other: &Value) {
        for origin in &other.0 {
            self.add(origin.clone());
        }
    }

    /// The text, when it is one known string.
    pub(crate) fn text(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Origin::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The largest number that this can be, when every origin is a known number.
    pub(crate) fn number(&self) -> Option<f64> {
        self.0
            .iter()
            .try_fold(f64::NEG_INFINITY, |most, origin| match origin {
                Origin::Number(n) => Some(most.max(*n)),
                _ => None,
            })
            .filter(|n| *n != f64::NEG_INFINITY)
    }

    /// Whether any origin is an object of the kind `kind`.
    pub(crate) fn has_object(&self, kind: &str) -> bool {
        self.0.iter().any(|o| matches!(o, Origin::Object(k) if &**k == kind))
    }
}
