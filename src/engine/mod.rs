//! The engine owns the session: commands in, events out. It is the only writer of history and starts and stops
//! everything else (Slicer connections, the practice Slicer, turns, connection tests).
//!
//! [`start`] makes one task, the loop in `control`; whatever takes time is a task of its own that reports back. `turns`
//! runs a turn with `host` as its surroundings, `record` folds facts into the record that the command line prints.

mod control;
mod events;
mod host;
mod launched;
mod preferences;
mod record;
mod session;
mod slicer_link;
mod turns;
mod types;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::agent::recipes::RecipeBook;
use crate::knowledge::{Knowledge, KnowledgeError};
use crate::llm::{Catalogue, CatalogueError};
use crate::resources;
use crate::store::{self, Conversations, Keys, Paths, RunFolder, StoreError};

pub use events::EventSender;
pub use preferences::test_connection;
pub use record::{ToolCallRecord, TurnRecord, turns};
pub use slicer_link::SlicerTarget;
pub use turns::read_events;
pub use types::*;

/// Commands that may wait. A person cannot fill this; a script that does waits.
const COMMAND_CAPACITY: usize = 256;

/// How an engine is started.
pub struct EngineOptions {
    pub paths: Paths,
    /// Settings that replace the person's own for this process and are not written back.
    pub settings: Option<Settings>,
    pub slicer: SlicerTarget,
    /// Capabilities allowed for this process.
    pub granted: BTreeSet<Capability>,
    pub api_key: Option<Secret>,
    pub max_attempts: Option<u32>,
    /// The program to start as the bridge; `None`: this one.
    pub executable: Option<PathBuf>,
}

/// Why an engine could not start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Knowledge(#[from] KnowledgeError),
    #[error("the provider table is damaged: {0}")]
    Catalogue(#[from] CatalogueError),
}

/// A running engine.
pub struct Engine {
    pub commands: mpsc::Sender<Command>,
    pub events: mpsc::Receiver<Event>,
    /// For a surface that sleeps between events.
    pub sender: EventSender,
}

/// Run folders are kept this long, and this many bytes of them.
const KEEP_RUNS: (Duration, u64) = (Duration::from_secs(30 * 24 * 3600), 500_000_000);

/// What the window does at its start: conversations that were deleted before are gone for good, old run folders too. A
/// command beside an open window must not do it: "Restore" may still be on its screen.
fn tidy(store: &Conversations, paths: &Paths) -> Result<(), StoreError> {
    store.purge_deleted()?;
    let paths = paths.clone();
    tokio::task::spawn_blocking(move || {
        if let Err(error) = RunFolder::prune(&paths, KEEP_RUNS.0, KEEP_RUNS.1) {
            tracing::warn!("old run folders could not be removed: {error}");
        }
    });
    Ok(())
}

/// Starts an engine on the current runtime.
///
/// # Errors
/// [`EngineError`] when the history or the embedded data cannot be opened.
pub fn start(options: EngineOptions) -> Result<Engine, EngineError> {
    let paths = options.paths;
    let (sender, events) = EventSender::new();
    let loaded = store::load(&paths)?;
    let settings_are_fixed = options.settings.is_some();
    let settings = options.settings.unwrap_or(loaded.settings);
    let store = Arc::new(Conversations::open(&paths.database())?);
    if !settings_are_fixed {
        tidy(&store, &paths)?;
    }
    let models = resources::text_with_override(paths.data(), "models.toml").unwrap_or_default();
    let (recipes, damaged) = RecipeBook::open(Some(paths.data()))?;
    for error in damaged {
        tracing::warn!("a recipe was left out: {error}");
    }
    let knowledge = Knowledge::of_recipes(recipes.recipes())?;
    let shared = Arc::new(turns::Shared {
        store,
        keys: Arc::new(Keys::new()),
        catalogue: Catalogue::from_toml(&models)?,
        recipes,
        knowledge,
        events: sender.clone(),
        questions: Arc::default(),
        granted: options.granted,
        api_key: options.api_key,
        max_attempts: options.max_attempts,
        connected_once: CancellationToken::new(),
        paths: paths.clone(),
    });
    if options.slicer == SlicerTarget::None {
        shared.connected_once.cancel();
    }
    let link = slicer_link::SlicerLink::new(sender.clone(), paths.practice(), options.executable);
    let (commands, command_receiver) = mpsc::channel(COMMAND_CAPACITY);
    let (reports, report_receiver) = mpsc::channel(COMMAND_CAPACITY);
    let control = control::Control {
        shared,
        settings,
        link,
        target: options.slicer,
        sessions: HashMap::new(),
        reports,
        test: None,
        settings_are_fixed,
    };
    if let Some(warning) = loaded.warning {
        let sender = sender.clone();
        tokio::spawn(async move {
            let problem = Problem { kind: "Settings".into(), message: warning, advice: "Set them again.".into() };
            sender.send(Event::Problem { problem }).await;
        });
    }
    tokio::spawn(control.run(command_receiver, report_receiver));
    Ok(Engine { commands, events, sender })
}
