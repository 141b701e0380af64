//! Slicer as the program sees it: the MCP client of the bridge, the helper module that is sent to Slicer once per
//! connection, scene snapshots, guarded runs, checkpoints and undo, and starting a Slicer (the practice one too).

mod bridge_client;
mod connection;
pub mod discover;
mod error;
pub mod launch;
mod places;
pub mod practice;
mod types;

pub use bridge_client::{BridgeCommand, ConnectOptions};
pub use connection::Slicer;
pub use discover::{FoundSlicers, HeldPort, RunningSlicer};
pub use error::SlicerError;
pub use launch::{LaunchError, LaunchOptions, LaunchedSlicer};
pub use places::{InstalledSlicer, Places, SlicerOrigin};
pub use types::*;
