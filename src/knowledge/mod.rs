//! What the program knows of Slicer: sources, chunks, indexes and search tools.

pub mod chunks;
pub mod files;
pub mod index;
pub mod recipe;
pub mod template;
pub mod tokens;

pub use files::{FileMatch, GrepReport, KnowledgeFiles};
pub use index::{Hit, KnowledgeError, KnowledgeIndex};
pub use recipe::{Recipe, RecipeError, Risk, Slot, SlotKind};
