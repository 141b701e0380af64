//! The practice Slicer for tests: set up once for all of them (in cargo's own temporary folder), then one process each.

use std::path::PathBuf;
use std::sync::OnceLock;

use slicer_ai_agent::slicer::practice::{self, PracticeHome, PracticeOptions, PracticeProcess};

/// The data folder whose practice environment all tests share.
pub fn shared_data() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("shared-data")
}

/// The environment, made on first use.
pub fn home() -> &'static PracticeHome {
    static HOME: OnceLock<PracticeHome> = OnceLock::new();
    HOME.get_or_init(|| {
        practice::set_up(&shared_data().join("practice"), &|line| eprintln!("{line}"))
            .unwrap_or_else(|error| panic!("the practice Slicer could not be set up: {error}"))
    })
}

/// A practice Slicer of the test's own.
pub fn start() -> PracticeProcess {
    start_with(&PracticeOptions::default())
}

/// A practice Slicer with these options.
pub fn start_with(options: &PracticeOptions) -> PracticeProcess {
    practice::start(home(), options).unwrap_or_else(|error| panic!("the practice Slicer did not start: {error}"))
}
