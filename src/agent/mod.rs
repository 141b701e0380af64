//! One turn: from a person's message to an answer, with or without code that ran.

mod event;
mod plan;
pub mod recipes;

pub use event::*;
pub use plan::*;
