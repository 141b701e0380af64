//! The engine owns the session: commands in, events out. It is the only writer of history and starts and stops
//! everything else (Slicer connections, the practice Slicer, turns, connection tests).

mod types;

pub use types::*;
