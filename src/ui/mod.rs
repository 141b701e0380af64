//! The egui window: conversations, timeline and composer, pictures and scene, settings.
//!
//! The window and the engine share nothing but two channels: commands go out, events come in, and neither is ever waited
//! for on the thread of the window. What the window knows is a plain value ([`state::State`]), folded from events by pure
//! functions; views only read it and tell what the person did.

mod action;
mod app;
mod cards;
mod cards_run;
mod composer;
mod conversations;
mod icons;
mod markdown;
mod overlays;
mod pane;
mod pictures;
mod settings_dialog;
mod settings_slicer;
pub mod state;
pub mod timeline;
mod timeline_view;
mod tokens;
mod top_bar;
mod widgets;
mod words;

use std::path::PathBuf;

use tokio::sync::mpsc::{Receiver, Sender};

use crate::engine::{Command, Event};

pub use app::{Portrait, Ready, Window};
pub use timeline_view::EXAMPLES;

/// The window's two ends of the channels to the engine.
pub struct EngineLink {
    pub commands: Sender<Command>,
    pub events: Receiver<Event>,
}

/// How the window starts.
pub struct WindowOptions {
    /// Sent one after the other as the first messages of a new conversation.
    pub initial_messages: Vec<String>,
    /// Save a picture of the window here once it shows what is wanted, then close it.
    pub exit_after_screenshot: Option<PathBuf>,
    /// What that picture waits for. Without it: a conversation and the settings are there, and nothing runs.
    pub ready: Option<Ready>,
    /// Gets the context before the first frame; the engine's side calls `request_repaint` on it after each event.
    pub register_waker: Box<dyn FnOnce(egui::Context) + Send>,
}

/// Why there is no window.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    #[error(
        "There is no display to open a window on. Start the program in a desktop session (or set DISPLAY or \
         WAYLAND_DISPLAY); without one, use the command line: slicer-ai-agent ask \"…\"."
    )]
    NoDisplay,
    #[error(
        "The window cannot be painted because no working OpenGL driver was found. Install one, on Debian and Ubuntu \
         with: sudo apt install libgl1 libegl1 libgl1-mesa-dri."
    )]
    NoGraphics,
    #[error("The window could not be opened: {0}")]
    Other(String),
}

impl From<eframe::Error> for WindowError {
    fn from(error: eframe::Error) -> Self {
        // The details name source files; they help in a log, not in a sentence for a person.
        tracing::warn!(%error, "the window could not be opened");
        match error {
            eframe::Error::WinitEventLoop(_) | eframe::Error::Winit(_) => WindowError::NoDisplay,
            eframe::Error::Glutin(_) | eframe::Error::NoGlutinConfigs(..) | eframe::Error::OpenGL(_) => {
                WindowError::NoGraphics
            }
            // The remaining kinds depend on which renderers the build holds.
            other => WindowError::Other(other.to_string()),
        }
    }
}

/// Opens the window and returns when it is closed. Must be called on the main thread.
///
/// # Errors
/// When there is no display or no graphics driver; the text says what to install.
pub fn run(link: EngineLink, options: WindowOptions) -> Result<(), WindowError> {
    let viewport = egui::ViewportBuilder::default()
        .with_title("Slicer AI Agent")
        .with_app_id("slicer-ai-agent")
        .with_inner_size([1180.0, 800.0])
        .with_min_inner_size([380.0, 420.0]);
    let native =
        eframe::NativeOptions { viewport, renderer: eframe::Renderer::Glow, ..eframe::NativeOptions::default() };
    let WindowOptions { initial_messages, exit_after_screenshot, ready, register_waker } = options;
    let create: eframe::AppCreator<'_> = Box::new(move |creation| {
        let mut window = Window::new(&creation.egui_ctx, link, initial_messages);
        window.portrait = exit_after_screenshot.map(|path| Portrait::new(path, ready));
        register_waker(creation.egui_ctx.clone());
        Ok(Box::new(window))
    });
    eframe::run_native("slicer-ai-agent", native, create).map_err(WindowError::from)
}
