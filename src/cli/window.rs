//! The window: the engine on background threads, egui on the main thread.

use super::console::Console;
use super::session;
use super::{Failure, Outcome, exit, runtime};
use crate::engine::{self, Command, EngineOptions, SlicerTarget};
use crate::platform;
use crate::store::Paths;
use crate::ui;

/// What the window needs of the system.
pub const NEEDS: [&str; 6] =
    ["window-opengl", "window-x11", "window-x11-xcb", "window-cursor", "window-input", "window-keyboard"];

/// Opens the window with the person's settings.
pub fn open(paths: &Paths, console: Console) -> Outcome {
    prepare(console)?;
    let settings = session::settings(paths, console)?;
    let slicer = SlicerTarget::Url(settings.slicer.url.clone());
    // The person's own settings, written back when they change.
    show(EngineOptions { settings: None, ..session::options(paths, settings, slicer) }, Vec::new())
}

/// Opens the window on a prepared session that begins with these messages.
pub fn open_with(options: EngineOptions, messages: Vec<String>, console: Console) -> Outcome {
    prepare(console)?;
    show(options, messages)
}

/// Makes sure that a window can be opened before anything is started.
fn prepare(console: Console) -> Result<(), Failure> {
    if !platform::has_display() {
        return Err(Failure::new(
            exit::FAILED,
            "NoDisplay",
            "There is no display, so the window cannot be opened.",
            "Start it from a desktop session, or work without the window: slicer-ai-agent ask --help",
        ));
    }
    platform::ensure(&NEEDS, &|line| console.progress(line))
        .map_err(|error| Failure::new(exit::FAILED, "NoDisplay", error.to_string(), ""))
}

fn show(options: EngineOptions, messages: Vec<String>) -> Outcome {
    let runtime = runtime()?;
    let engine = {
        let _inside = runtime.enter();
        engine::start(options).map_err(|error| anyhow::anyhow!(error))?
    };
    let closing = engine.commands.clone();
    let sender = engine.sender;
    let link = ui::EngineLink { commands: engine.commands, events: engine.events };
    let options = ui::WindowOptions {
        initial_messages: messages,
        exit_after_screenshot: None,
        ready: None,
        register_waker: Box::new(move |context| sender.set_waker(move || context.request_repaint())),
    };
    let outcome = ui::run(link, options);
    // The loop may have ended already; what it started ends with it either way.
    drop(closing.blocking_send(Command::Shutdown));
    runtime.block_on(closing.closed());
    outcome.map_err(|error| Failure::new(exit::FAILED, "NoDisplay", error.to_string(), ""))?;
    Ok(exit::DONE)
}
