//! slicer-ai-agent: an assistant that works in 3D Slicer from plain words.
//!
//! The crate is cut into rooms, one module each; `ARCHITECTURE.md` has the picture and says which room may use which,
//! and `tests/room_edges.rs` holds the code to it.

pub mod agent;
pub mod bridge;
pub mod cli;
pub mod engine;
pub mod knowledge;
pub mod llm;
pub mod platform;
pub mod python;
pub mod resources;
pub mod safety;
pub mod slicer;
pub mod store;
pub mod ui;
pub mod workflow;
