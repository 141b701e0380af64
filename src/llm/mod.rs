//! Models: the provider catalogue, wire formats, streaming, retries, prices and the connection test.
//!
//! This room knows providers' JSON and nobody else does. It knows nothing of Slicer, of settings or of files: the
//! catalogue comes in as TOML text, the key as a string. One [`Client`] serves one endpoint; keep it for as long as a
//! tool loop lasts, because it remembers what the provider wants back (signed thinking blocks) and what it refused.

mod anthropic;
mod catalogue;
mod client;
mod error;
mod http_error;
mod intake;
mod mask;
mod memory;
mod openai;
mod probe;
mod recorded;
mod reply;
mod retry;
mod sse;
mod types;

pub use catalogue::*;
pub use client::{Client, Timeouts, Transport};
pub use error::*;
pub use mask::mask;
pub use memory::Learnt;
pub use probe::TestOutcome;
pub use recorded::{Recorded, read_recorded};
pub use types::*;
