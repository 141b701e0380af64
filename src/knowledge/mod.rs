//! What the program knows of Slicer: sources, chunks, indexes and search tools.

pub mod chunks;
pub mod dense;
pub mod embed;
pub mod files;
pub mod index;
pub mod models;
pub mod recipe;
pub mod template;
pub mod tokens;
pub mod vector_scan;
pub mod vectors;
pub mod views;

pub use files::{FileMatch, GrepReport, KnowledgeFiles};
pub use index::{Hit, KnowledgeError, KnowledgeIndex};
pub use recipe::{Recipe, RecipeError, Risk, Slot, SlotKind};

/// Everything that a turn can look up: the index to search, and the files to read.
pub struct Knowledge {
    pub index: KnowledgeIndex,
    pub files: KnowledgeFiles,
}

impl Knowledge {
    /// The knowledge that is there at once: the recipes.
    ///
    /// # Errors
    /// When the index cannot be made.
    pub fn of_recipes<'a>(recipes: impl IntoIterator<Item = &'a Recipe>) -> Result<Self, KnowledgeError> {
        let index = KnowledgeIndex::in_memory()?;
        for recipe in recipes {
            index.add(&chunks::recipe(recipe))?;
        }
        Ok(Self { index, files: KnowledgeFiles::embedded() })
    }
}
