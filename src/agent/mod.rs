//! One turn: from a person's message to an answer, with or without code that ran.

mod event;
mod plan;

pub use event::*;
pub use plan::*;
