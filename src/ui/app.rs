//! The shell around the state: takes events from the engine, lays out the parts, and sends commands. It never waits.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use egui::{CentralPanel, Context, Frame, Id, Key, Margin, Modal, Modifiers, Panel, ThemePreference, Ui, gui_zoom};
use tokio::sync::mpsc::error::{TryRecvError, TrySendError};

use crate::engine::{Command, Problem};

use super::markdown::Markdown;
use super::pane::Lens;
use super::pictures::Pictures;
use super::settings_dialog::zoomed;
use super::state::{Action, SettingsTab, State};
use super::timeline_view::Heights;
use super::tokens::{palette, size, space};
use super::{EngineLink, composer, conversations, overlays, pane, settings_dialog, timeline_view, tokens, top_bar};

/// How often the running times are painted anew.
const TICK: Duration = Duration::from_millis(200);

/// Says whether the window shows what a screenshot is wanted of.
pub type Ready = Box<dyn FnMut(&State) -> bool + Send>;

/// A picture of the window, after which it closes.
pub struct Portrait {
    pub path: PathBuf,
    pub ready: Option<Ready>,
    asked: bool,
    /// Frames that were painted since everything was there.
    settled: u32,
}

impl Portrait {
    pub fn new(path: PathBuf, ready: Option<Ready>) -> Self {
        Self { path, ready, asked: false, settled: 0 }
    }
}

/// The window's content, without a native window around it: tests drive it as it is.
pub struct Window {
    pub state: State,
    link: EngineLink,
    /// Commands that found the channel full.
    waiting: VecDeque<Command>,
    engine_gone: bool,
    markdown: Markdown,
    pictures: Pictures,
    heights: Heights,
    lens: Lens,
    generation: u64,
    clock: fn() -> i64,
    pub portrait: Option<Portrait>,
}

/// Unix time in milliseconds.
fn wall_clock() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

impl Window {
    /// Puts fonts and themes into `context` and asks the engine for what is shown first.
    pub fn new(context: &Context, link: EngineLink, initial_messages: Vec<String>) -> Self {
        tokens::install(context);
        super::markdown::warm_up();
        context.options_mut(|options| options.zoom_with_keyboard = false);
        let mut window = Self {
            state: State::new(initial_messages),
            link,
            waiting: State::opening_commands().into(),
            engine_gone: false,
            markdown: Markdown::default(),
            pictures: Pictures::new(context.clone()),
            heights: Heights::default(),
            lens: Lens::default(),
            generation: 0,
            clock: wall_clock,
            portrait: None,
        };
        window.send_waiting();
        window
    }

    /// Replaces the clock, so that a test decides what time it is.
    pub fn with_clock(mut self, clock: fn() -> i64) -> Self {
        self.clock = clock;
        self
    }

    /// Paints one frame.
    pub fn ui(&mut self, ui: &mut Ui) {
        let context = ui.ctx().clone();
        self.state.now_ms = (self.clock)();
        self.receive();
        self.pictures.receive(&context);
        self.follow_settings(&context);
        if self.generation != self.state.generation {
            self.generation = self.state.generation;
            self.markdown.forget();
            self.pictures.forget();
        }
        let mut actions = Vec::new();
        self.shortcuts(&context, &mut actions);
        self.layout(ui, &mut actions);
        settings_dialog::settings_ui(&context, &mut self.state, &mut actions);
        overlays::help_ui(&context, &mut self.state);
        overlays::toasts_ui(&context, &self.state, &mut actions);
        let acted = !actions.is_empty();
        for action in actions {
            let commands = self.state.update(action);
            self.waiting.extend(commands);
        }
        self.send_waiting();
        self.ask_for_repaint(&context, acted);
        self.take_portrait(&context);
    }

    fn receive(&mut self) {
        loop {
            match self.link.events.try_recv() {
                Ok(event) => {
                    let commands = self.state.apply(event);
                    self.waiting.extend(commands);
                }
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => return self.engine_has_gone(),
            }
        }
    }

    fn send_waiting(&mut self) {
        while let Some(command) = self.waiting.pop_front() {
            match self.link.commands.try_send(command) {
                Ok(()) => {}
                Err(TrySendError::Full(command)) => return self.waiting.push_front(command),
                Err(TrySendError::Closed(_)) => return self.engine_has_gone(),
            }
        }
    }

    fn engine_has_gone(&mut self) {
        if std::mem::replace(&mut self.engine_gone, true) {
            return;
        }
        self.state.sending = None;
        let problem = Problem {
            kind: "EngineStopped".into(),
            message: "The part of the program that does the work has stopped.".into(),
            advice: "Close the window and start the program again. Your conversations are kept.".into(),
        };
        let commands = self.state.apply(crate::engine::Event::Problem { problem });
        self.waiting.extend(commands);
    }

    fn follow_settings(&self, context: &Context) {
        let appearance = &self.state.settings.appearance;
        let theme = match appearance.theme.as_str() {
            "light" => ThemePreference::Light,
            "dark" => ThemePreference::Dark,
            _ => ThemePreference::System,
        };
        if self.state.settings_known && context.options(|options| options.theme_preference) != theme {
            context.set_theme(theme);
        }
        if (context.zoom_factor() - appearance.zoom).abs() > 0.001 {
            context.set_zoom_factor(appearance.zoom.clamp(0.5, 3.0));
        }
    }

    fn shortcuts(&mut self, context: &Context, actions: &mut Vec<Action>) {
        let state = &mut self.state;
        let pressed = |modifiers, key| context.input_mut(|input| input.consume_key(modifiers, key));
        if pressed(Modifiers::NONE, Key::F1) {
            state.help = !state.help;
        }
        let zoom = state.settings.appearance.zoom;
        let shortcut = |shortcut| context.input_mut(|input| input.consume_shortcut(&shortcut));
        let larger = shortcut(gui_zoom::kb_shortcuts::ZOOM_IN) || shortcut(gui_zoom::kb_shortcuts::ZOOM_IN_SECONDARY);
        let wanted = if larger {
            zoomed(zoom, 0.1)
        } else if shortcut(gui_zoom::kb_shortcuts::ZOOM_OUT) {
            zoomed(zoom, -0.1)
        } else if shortcut(gui_zoom::kb_shortcuts::ZOOM_RESET) {
            1.0
        } else {
            zoom
        };
        if (wanted - zoom).abs() > 0.001 {
            state.draft.appearance.zoom = wanted;
            actions.push(Action::SettingsChanged);
        }
        if state.dialog.is_some() || state.help {
            return;
        }
        if pressed(Modifiers::COMMAND, Key::N) {
            actions.push(Action::NewConversation);
        }
        if pressed(Modifiers::COMMAND, Key::K) {
            if state.narrow {
                state.sidebar_over = true
            } else {
                state.sidebar_open = true
            }
            state.focus_search = true;
        }
        if pressed(Modifiers::COMMAND, Key::Comma) {
            actions.push(Action::OpenSettings(SettingsTab::Model));
        }
        let over =
            state.sidebar_over || state.pane_over || egui::Popup::is_any_open(context) || state.renaming.is_some();
        if state.running() && !over && pressed(Modifiers::NONE, Key::Escape) {
            actions.push(Action::Stop);
        }
        let typing = context.text_edit_focused();
        if !typing && pressed(Modifiers::COMMAND, Key::Z) {
            actions.push(Action::UndoLast);
        }
    }

    fn layout(&mut self, ui: &mut Ui, actions: &mut Vec<Action>) {
        let width = ui.available_width();
        self.state.narrow = width < size::NARROW;
        if !self.state.narrow {
            self.state.sidebar_over = false;
            self.state.pane_over = false;
        }
        let p = palette(ui);
        let bar = Frame::new().fill(p.bar).inner_margin(Margin::symmetric(8, 0));
        Panel::top("top").exact_size(size::TOP_BAR).resizable(false).frame(bar).show(ui, |ui| {
            top_bar_ui(ui, &mut self.state, actions);
        });
        let sidebar = !self.state.narrow && self.state.sidebar_open;
        if sidebar {
            let frame = conversations::frame(ui);
            Panel::left("conversations").exact_size(size::SIDEBAR).resizable(false).frame(frame).show(ui, |ui| {
                conversations::conversations_ui(ui, &mut self.state, actions);
            });
        }
        if !self.state.narrow && self.state.pane_open {
            self.pane_beside(ui, width, sidebar, actions);
        }
        let below = Frame::new().fill(p.ground).inner_margin(Margin { left: 0, right: 0, top: 6, bottom: 8 });
        Panel::bottom("composer").resizable(false).show_separator_line(false).frame(below).show(ui, |ui| {
            composer::composer_ui(ui, &mut self.state, actions);
        });
        CentralPanel::default().frame(Frame::new().fill(p.ground)).show(ui, |ui| {
            let (state, heights, markdown) = (&mut self.state, &mut self.heights, &mut self.markdown);
            timeline_view::timeline_ui(ui, state, heights, markdown, &mut self.pictures, actions);
        });
        self.sides_over(ui.ctx(), actions);
    }

    fn pane_beside(&mut self, ui: &mut Ui, width: f32, sidebar: bool, actions: &mut Vec<Action>) {
        let taken = if sidebar { size::SIDEBAR } else { 0.0 };
        let room = (width - taken - size::CENTRE_MIN).max(size::PANE_MIN);
        let most = room.min(size::PANE_MAX);
        let frame = Frame::new().fill(palette(ui).bar).inner_margin(Margin::same(8));
        let usual = (width * 0.34).clamp(size::PANE_MIN, most);
        let panel = Panel::right("pane").default_size(usual).size_range(size::PANE_MIN..=most).frame(frame);
        panel.show(ui, |ui| {
            pane::pane_ui(ui, &mut self.state, &mut self.lens, &mut self.pictures, actions);
        });
    }

    /// In a narrow window the sides lie over the middle.
    fn sides_over(&mut self, context: &Context, actions: &mut Vec<Action>) {
        let screen = context.content_rect();
        let over = |name: &'static str, left: bool, width: f32| {
            let (align, place) = if left {
                (egui::Align2::LEFT_TOP, screen.left_top())
            } else {
                (egui::Align2::RIGHT_TOP, screen.right_top())
            };
            let area = egui::Area::new(Id::unique(name)).kind(egui::UiKind::Modal).order(egui::Order::Foreground);
            let dark = context.global_style().visuals.dark_mode;
            let shade = if dark { tokens::DARK.shade } else { tokens::LIGHT.shade };
            let fill = if dark { tokens::DARK.bar } else { tokens::LIGHT.bar };
            let frame = Frame::new().fill(fill).inner_margin(Margin::same(8));
            let modal = Modal::new(Id::unique(name)).area(area.pivot(align).fixed_pos(place));
            (modal.backdrop_color(shade).frame(frame), width)
        };
        if self.state.sidebar_over {
            let (modal, width) = over("conversations-over", true, (screen.width() - 56.0).min(300.0));
            let response = modal.show(context, |ui| {
                ui.set_width(width - 16.0);
                ui.set_height(screen.height() - 16.0);
                conversations::conversations_ui(ui, &mut self.state, actions);
            });
            if response.should_close() {
                self.state.sidebar_over = false;
            }
        }
        if self.state.pane_over {
            let (modal, width) = over("pane-over", false, (screen.width() - 40.0).min(size::PANE_MAX));
            let response = modal.show(context, |ui| {
                ui.set_width(width - 16.0);
                ui.set_height(screen.height() - 16.0);
                pane::pane_ui(ui, &mut self.state, &mut self.lens, &mut self.pictures, actions);
            });
            if response.should_close() {
                self.state.pane_over = false;
            }
        }
    }

    /// An idle window is not painted again; a running turn is, because its time is shown.
    fn ask_for_repaint(&mut self, context: &Context, acted: bool) {
        if acted || self.state.focus_composer {
            context.request_repaint();
        }
        if self.state.busy() || !self.waiting.is_empty() {
            context.request_repaint_after(TICK);
        }
        if let Some(left) = self.state.age_toasts() {
            context.request_repaint_after(Duration::from_millis(left.max(50).unsigned_abs()));
        }
    }

    fn take_portrait(&mut self, context: &Context) {
        let Some(portrait) = &mut self.portrait else { return };
        if portrait.asked {
            return;
        }
        context.request_repaint_after(Duration::from_millis(50));
        let state = &self.state;
        let shown = state.current.is_some() && state.settings_known && !state.busy() && !self.pictures.loading();
        let ready = portrait.ready.as_mut().map_or(shown, |ready| ready(state) && !self.pictures.loading());
        portrait.settled = if ready { portrait.settled + 1 } else { 0 };
        if portrait.settled < 4 {
            return;
        }
        portrait.asked = true;
        let path = portrait.path.clone();
        let closing = context.clone();
        context.request_screenshot(move |image| {
            // Encoding takes a moment; the thread of the window is not held up for it.
            std::thread::spawn(move || {
                let [width, height] = image.size;
                let pixels = image.pixels.iter().flat_map(|pixel| pixel.to_array()).collect::<Vec<u8>>();
                let saved =
                    image::RgbaImage::from_raw(width as u32, height as u32, pixels).map(|image| image.save(&path));
                match saved {
                    Some(Ok(())) => {}
                    Some(Err(error)) => tracing::error!(%error, "cannot save the picture of the window"),
                    None => tracing::error!("the picture of the window has an odd size"),
                }
                closing.send_viewport_cmd(egui::ViewportCommand::Close);
                closing.request_repaint();
            });
        });
    }
}

/// The top bar, set apart so that its frame is all that the layout knows of it.
fn top_bar_ui(ui: &mut Ui, state: &mut State, actions: &mut Vec<Action>) {
    ui.spacing_mut().item_spacing.x = space::SMALL;
    top_bar::top_bar_ui(ui, state, actions);
}

impl eframe::App for Window {
    fn ui(&mut self, ui: &mut Ui, _frame: &mut eframe::Frame) {
        Window::ui(self, ui);
    }

    fn on_exit(&mut self, _gl: Option<&eframe::glow::Context>) {
        // A full or closed channel is no reason to stay: the engine also ends when the channel does.
        if let Err(error) = self.link.commands.try_send(Command::Shutdown) {
            tracing::debug!(%error, "the engine was not told that the window closes");
        }
    }
}
