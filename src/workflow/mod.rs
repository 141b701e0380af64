//! Guided workflows: procedures that run step by step without a model.
//!
//! A package (`package`) holds a graph of steps (`graph`) and short templates of Python. The machine (`machine`) is pure:
//! it folds events into a state and says what is to be done. The journal (`journal`) keeps the events, so that a run goes
//! on after either program was restarted, and the runner (`run`) is the only part that touches Slicer.

mod choice;
mod graph;
mod journal;
mod machine;
mod package;
mod run;
mod state;
mod template;

pub use choice::{Choice, ChoiceKind};
pub use graph::{BranchOption, END, Expectation, Repeat, Step, StepKind, Times, Wait, WaitMode, Workflow};
pub use journal::{Journal, JournalError, Replay};
pub use machine::{begin, update};
pub use package::{Found, LoadError, Manifest, Origin, Package, Status, find, installed};
pub use run::{Answers, RunError, RunReport, Runner};
pub use state::{Effect, Entry, Event, Marks, Outcome, Part, Phase, State};

#[cfg(test)]
mod journal_tests;
#[cfg(test)]
mod machine_tests;
