//! What the controls of Slicer's windows do: `.ui` files and the C++ and Python beside them, joined.
//!
//! People name what they see ("the Apply button"), programs need what it calls. Each file gives facts of its own, so
//! that a changed file costs one file; the join over all facts is fast and is always made anew.

mod code;
mod form;
mod link;

use serde::{Deserialize, Serialize};

pub use code::facts as code_facts;
pub use form::facts as form_facts;
pub use link::{Control, join};

/// The facts of one file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Controls that the file defines: all of a `.ui` file, or those that code makes with a text.
    pub items: Vec<Item>,
    /// What is connected to what.
    pub connections: Vec<Connection>,
    pub functions: Vec<Function>,
    /// Buttons and the action that each shows.
    pub aliases: Vec<(String, String)>,
    /// Forms that a code file uses (`qSlicerVolumesModuleWidget`).
    pub forms: Vec<String>,
}

impl Facts {
    /// Whether there is nothing worth keeping.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.connections.is_empty()
    }
}

/// A control as its file defines it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Item {
    pub object: String,
    pub class: String,
    pub label: String,
    pub tooltip: String,
    /// Titles of the groups that it stands in, outermost first.
    pub group: String,
    pub line: usize,
    /// A parameter of a parameter node that it edits, if the form says so.
    pub parameter: String,
}

/// A signal of an object and what it runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    pub object: String,
    pub signal: String,
    /// Name of the handler, or empty for code in place.
    pub handler: String,
    /// Calls of code in place.
    pub calls: Vec<String>,
}

/// A function of a code file: what it calls, and which calls share a line with which object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Function {
    pub class: String,
    pub name: String,
    pub calls: Vec<String>,
    /// Object and call on the same line (`d->Box->setChecked(node->GetFlag())`).
    pub beside: Vec<(String, String)>,
}
