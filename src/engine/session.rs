//! What the engine remembers of one open conversation: its queue, its running turn, what was allowed in it, and what the
//! next turn needs to know of the earlier ones.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::record;
use super::types::{Capability, TurnEvent};
use crate::agent::recipes::{PendingRecipe, RecipeContext, RecipePart};
use crate::agent::{PastTurn, TurnResult};

/// Title of a conversation before its first message.
pub const NEW_TITLE: &str = "New conversation";
/// Titles made from the first message are cut here (characters).
const TITLE_LENGTH: usize = 60;

/// One open conversation.
#[derive(Default)]
pub struct Session {
    pub title: String,
    /// True once the database has it.
    pub stored: bool,
    pub turns: u64,
    pub queue: VecDeque<Job>,
    /// Set while a turn runs.
    pub running: Option<CancellationToken>,
    pub history: Vec<PastTurn>,
    pub pending: Option<PendingRecipe>,
    pub recipes: RecipeContext,
    /// Capabilities that the person allowed for this conversation.
    pub granted: BTreeSet<Capability>,
}

/// Something that waits for its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    Message(String),
    /// A message with pictures: files to be read when its turn begins.
    Seen {
        text: String,
        pictures: Vec<PathBuf>,
    },
    /// A program of the person's own.
    Program(String),
}

impl Job {
    /// What the person sees of it.
    pub fn text(&self) -> String {
        match self {
            Job::Message(text) | Job::Seen { text, .. } => text.clone(),
            Job::Program(_) => "Run this program".to_owned(),
        }
    }
}

impl Session {
    /// A session over what the database holds of a conversation.
    pub fn from_history(id: &str, title: String, events: &[TurnEvent]) -> Self {
        let turns = record::turns(id, events);
        Self {
            title,
            stored: true,
            turns: turns.iter().map(|turn| turn.turn).max().unwrap_or(0),
            history: turns.iter().map(record::TurnRecord::past).collect(),
            ..Self::default()
        }
    }

    /// Takes what a finished turn leaves.
    pub fn take_result(&mut self, result: TurnResult) {
        self.history.push(result.past);
        self.pending = result.pending;
        if let Some((parts, value)) = result.recipe_run {
            self.remember_recipe_run(&parts, &value);
        }
    }

    fn remember_recipe_run(&mut self, parts: &[RecipePart], value: &Value) {
        self.recipes.push(parts, value);
    }

    /// The texts that wait, for the surface.
    pub fn queued(&self) -> Vec<String> {
        self.queue.iter().map(Job::text).collect()
    }
}

/// A title from a first message: its first line, shortened at a word.
pub fn title_from(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or(NEW_TITLE);
    if line.chars().count() <= TITLE_LENGTH {
        return line.to_owned();
    }
    let cut: String = line.chars().take(TITLE_LENGTH).collect();
    let cut = cut.rsplit_once(' ').map_or(cut.as_str(), |(head, _)| head);
    format!("{}…", cut.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A title is one short line, whatever was pasted.
    #[test]
    fn titles_are_short() {
        assert_eq!(title_from("\n  Segment the bone\nand more"), "Segment the bone");
        let long = title_from(&"word ".repeat(40));
        assert!(long.chars().count() <= TITLE_LENGTH + 1 && long.ends_with('…'));
        assert_eq!(title_from("  "), NEW_TITLE);
    }
}
