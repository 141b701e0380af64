//! Slicer as the program sees it: the MCP client of the bridge, the helper module that is sent to Slicer once per
//! connection, scene snapshots, guarded runs, checkpoints and undo, and starting a Slicer (the practice one too).

mod types;

pub use types::*;
