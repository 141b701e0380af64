//! Models: the provider catalogue, wire formats, streaming, retries, prices and the connection test.

mod types;

pub use types::*;
