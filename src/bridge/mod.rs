//! The bridge: an MCP server for 3D Slicer, and the client of Slicer's Web Server behind it.
//!
//! It runs as `slicer-ai-agent bridge`, a small process of its own, so that any MCP client can use it and so that a
//! Slicer that hangs or ends never takes the window with it. Only this room knows Slicer's HTTP: everybody else speaks
//! MCP to it, with the names and shapes in [`types`].
//!
//! [`server`] answers MCP, [`http_server`] serves it to several clients over HTTP when they show the token of
//! [`http_token`]; [`tools`] says what the tools are and does the two oldest ones, [`more_tools`] the others,
//! [`screenshot`] takes pictures, [`mcp_resources`] gives the scene, nodes and views to read. [`calls`] runs Python under
//! our [`helper`] inside Slicer, [`web_server`] asks Slicer one thing at a time, and [`http`] and [`json`] are the wire.

pub mod calls;
pub mod helper;
pub mod http;
mod http_presence;
pub mod http_server;
pub mod http_token;
pub mod json;
pub mod mcp_resources;
pub mod more_tools;
pub mod screenshot;
pub mod server;
pub mod tools;
pub mod types;
pub mod web_server;

pub use http_server::{HttpBridge, HttpError, HttpOptions, listen_address};
pub use http_token::{Token, TokenError};
pub use server::{BridgeError, BridgeOptions, SlicerBridge, serve, serve_stdio};
pub use web_server::{DEFAULT_URL, URL_ENV, WebServer, WebServerError};
