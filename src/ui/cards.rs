//! The cards of the timeline: messages, answers, thinking, tools, errors. The cards of a run are in `cards_run`.
//!
//! A card that is done and unremarkable is one line; answers and pictures have the room.

use std::collections::HashMap;

use egui::{CornerRadius, FontSelection, Label, Margin, Rect, RichText, TextStyle, TextWrapMode, Ui, UiBuilder, vec2};

use crate::engine::{Problem, Timings, UsageTotal};

use super::cards_run;
use super::icons::Icon;
use super::markdown::Markdown;
use super::pictures::Pictures;
use super::state::{Action, SettingsTab};
use super::timeline::{Card, CardKind, ToolOutcome};
use super::tokens::{font, palette, radius, size, space};
use super::widgets::{
    Line, card_frame, icon_text, inset_ui, line_ui, plain_button, primary_button, sized_icon_button, small, soft,
    strong,
};
use super::words;

/// What cards may look at and change.
pub struct CardView<'a> {
    pub opened: &'a mut HashMap<i64, bool>,
    pub edited: &'a mut HashMap<i64, String>,
    pub markdown: &'a mut Markdown,
    pub pictures: &'a mut Pictures,
    pub actions: &'a mut Vec<Action>,
    /// A card was opened or closed in this frame.
    pub toggled: bool,
    pub running: bool,
    /// Does Slicer answer?
    pub connected: bool,
    /// A Slicer is installed that can be launched.
    pub can_launch: bool,
    /// The one run that can be undone now.
    pub undoable: Option<String>,
    pub now_ms: i64,
    /// The newest turn; only its error offers to start over.
    pub last_turn: u64,
}

impl CardView<'_> {
    /// Is this card open, given what it is by default?
    pub fn is_open(&self, card: i64, default: bool) -> bool {
        self.opened.get(&card).copied().unwrap_or(default)
    }

    /// A one-line card that opens. Returns whether it is open.
    pub fn folding(&mut self, ui: &mut Ui, card: i64, default: bool, line: Line<'_>, reserve: f32) -> bool {
        let open = self.is_open(card, default);
        let response = line_ui(ui, &Line { open: Some(open), ..line }, reserve);
        if response.clicked() {
            self.opened.insert(card, !open);
            self.toggled = true;
        }
        open
    }
}

/// The distance above the first card of a turn.
pub const GAP_ABOVE_TURN: f32 = space::LARGE + space::SMALL;

/// The distance above a card: lines of one turn stand close together, a new turn has air above it.
pub fn gap_above(card: &Card) -> f32 {
    match card.kind {
        CardKind::User { .. } => GAP_ABOVE_TURN,
        CardKind::Answer { .. }
        | CardKind::Screenshot { .. }
        | CardKind::Permission { .. }
        | CardKind::Error { .. } => space::BASE,
        CardKind::Footer { .. } => space::SMALL,
        _ => 0.0,
    }
}

/// A first guess of the height before a card was ever laid out.
pub fn guessed_height(card: &Card, width: f32) -> f32 {
    let lines = |text: &str| (text.len() as f32 * 6.5 / width.max(100.0)).ceil() + text.matches('\n').count() as f32;
    match &card.kind {
        CardKind::User { text } => lines(text) * 18.0 + 40.0,
        CardKind::Answer { text, .. } => lines(text) * 19.0 + 10.0,
        CardKind::Screenshot { .. } => size::THUMBNAIL_HEIGHT + 30.0,
        CardKind::Permission { decision: None, expired: false, .. } => 160.0,
        CardKind::Error { .. } => 120.0,
        CardKind::Result { report, .. } if !report.ok => 140.0,
        _ => size::ROW,
    }
}

/// Shows one card.
pub fn card_ui(ui: &mut Ui, card: &Card, view: &mut CardView<'_>) {
    match &card.kind {
        CardKind::User { text } => user_ui(ui, text, view),
        CardKind::Answer { text, .. } => view.markdown.show(ui, card.id, card.revision, text),
        CardKind::Thinking { text, took_ms } => thinking_ui(ui, card, text, *took_ms, view),
        CardKind::Knowledge { hits, ms } => knowledge_ui(ui, card, hits, *ms, view),
        CardKind::Tool { name, arguments, outcome, .. } => tool_ui(ui, card, name, arguments, outcome.as_ref(), view),
        CardKind::Plan { plan } => cards_run::plan_ui(ui, card, plan, view),
        CardKind::Code { .. } => cards_run::code_card_ui(ui, card, view),
        CardKind::Permission { .. } => cards_run::permission_ui(ui, card, view),
        CardKind::Result { report, undone } => cards_run::result_ui(ui, card, report, undone.as_ref(), view),
        CardKind::Screenshot { title, path, width, height } => {
            cards_run::screenshot_ui(ui, title, path, vec2(*width as f32, *height as f32), view);
        }
        CardKind::Repair { attempt, of, why, inside } => {
            cards_run::repair_ui(ui, card, *attempt, *of, why, inside, view);
        }
        CardKind::Retrying { attempt, wait_ms, why } => retrying_ui(ui, card, *attempt, *wait_ms, why, view),
        CardKind::Error { problem, retry } => error_ui(ui, card, problem, retry, view),
        CardKind::Note { text } => {
            soft(ui, text);
        }
        CardKind::Footer { timings, usage, cost_usd, answer, run_folder } => {
            footer_ui(ui, timings, usage.as_ref(), *cost_usd, answer, run_folder.as_deref(), view);
        }
    }
}

/// The person's message: at the right, on a ground of its own.
pub fn user_ui(ui: &mut Ui, text: &str, view: &mut CardView<'_>) {
    let p = palette(ui);
    let column = ui.available_width();
    let margin = Margin::symmetric(12, 8);
    let room = (column * 0.85).min(600.0) - margin.sum().x;
    let words = RichText::new(text).color(p.text_strong);
    let font = FontSelection::Style(TextStyle::Body);
    let galley = egui::WidgetText::from(words.clone()).into_galley(ui, Some(TextWrapMode::Wrap), room, font);
    let bubble = galley.size() + margin.sum();
    let (row, _) = ui.allocate_exact_size(vec2(column, bubble.y), egui::Sense::hover());
    let rect = Rect::from_min_max(egui::pos2(row.right() - bubble.x, row.top()), row.max);
    ui.painter().rect_filled(rect, CornerRadius::same(radius::CARD), p.own);
    let inner = Rect::from_min_size(rect.min + margin.left_top(), galley.size() + vec2(1.0, 0.0));
    ui.scope_builder(UiBuilder::new().max_rect(inner), |ui| ui.add(Label::new(words).wrap().selectable(true)));
    if ui.rect_contains_pointer(row) {
        let tools = Rect::from_min_max(row.min, egui::pos2(rect.left() - space::SMALL, row.top() + size::ROW));
        let layout = egui::Layout::right_to_left(egui::Align::Center);
        ui.scope_builder(UiBuilder::new().max_rect(tools).layout(layout), |ui| {
            ui.spacing_mut().item_spacing.x = 0.0;
            if sized_icon_button(ui, Icon::Pencil, "Edit this message", "Edit and send again", 24.0).clicked() {
                view.actions.push(Action::Compose(text.to_owned()));
            }
            if sized_icon_button(ui, Icon::Copy, "Copy this message", "Copy", 24.0).clicked() {
                ui.copy_text(text.to_owned());
                view.actions.push(Action::Copied("Message"));
            }
        });
    }
    ui.add_space(space::SMALL);
}

fn thinking_ui(ui: &mut Ui, card: &Card, text: &str, took_ms: Option<i64>, view: &mut CardView<'_>) {
    let p = palette(ui);
    let (title, meta) = match took_ms {
        Some(ms) => ("Thought", words::duration(ms as f64)),
        None if view.running => ("Thinking…", words::duration((view.now_ms - card.at_ms).max(0) as f64)),
        None => ("Thought", String::new()),
    };
    let last = text.trim().lines().next().unwrap_or_default();
    let line = Line { icon: Icon::Thinking, colour: p.text_soft, title, detail: last, meta: &meta, open: None };
    if view.folding(ui, card.id, false, line, 0.0) {
        inset_ui(ui, |ui| soft(ui, text.trim()));
    }
}

fn knowledge_ui(ui: &mut Ui, card: &Card, hits: &[String], ms: f64, view: &mut CardView<'_>) {
    let p = palette(ui);
    let detail = words::count(hits.len(), "passage", "passages");
    let meta = words::duration(ms);
    let title = "Looked up knowledge";
    let line = Line { icon: Icon::Book, colour: p.text_soft, title, detail: &detail, meta: &meta, open: None };
    if hits.is_empty() {
        line_ui(ui, &line, 0.0);
    } else if view.folding(ui, card.id, false, line, 0.0) {
        inset_ui(ui, |ui| {
            for hit in hits {
                ui.add(Label::new(RichText::new(hit).monospace().size(font::SMALL).color(p.text_soft)).wrap());
            }
        });
    }
}

fn tool_ui(
    ui: &mut Ui,
    card: &Card,
    name: &str,
    arguments: &serde_json::Value,
    outcome: Option<&ToolOutcome>,
    view: &mut CardView<'_>,
) {
    let p = palette(ui);
    let (icon, colour, meta) = match outcome {
        Some(outcome) if outcome.ok => (Icon::Tool, p.text_soft, words::duration(outcome.ms)),
        Some(outcome) => (Icon::Cross, p.bad, words::duration(outcome.ms)),
        None if view.running => (Icon::Tool, p.accent, "running…".into()),
        None => (Icon::Tool, p.text_soft, "no answer".into()),
    };
    let detail = match outcome {
        Some(ToolOutcome { error: Some(error), .. }) => error.clone(),
        Some(outcome) => outcome.summary.clone(),
        None => brief(arguments),
    };
    let title = name.replace('_', " ");
    let title = words::capitalised(&title);
    let line = Line { icon, colour, title: &title, detail: &detail, meta: &meta, open: None };
    if !view.folding(ui, card.id, false, line, 0.0) {
        return;
    }
    inset_ui(ui, |ui| {
        let arguments = serde_json::to_string_pretty(arguments).unwrap_or_default();
        if arguments != "{}" && arguments != "null" {
            small(ui, "Asked with");
            text_well(ui, &arguments, "Arguments of the tool");
        }
        if let Some(outcome) = outcome {
            small(ui, if outcome.ok { "Answer" } else { "It failed" });
            let text = outcome.error.as_deref().filter(|_| outcome.text.is_empty()).unwrap_or(&outcome.text);
            text_well(ui, text, "Answer of the tool");
        }
    });
}

/// The arguments of a call in one short line.
fn brief(arguments: &serde_json::Value) -> String {
    match arguments {
        serde_json::Value::Object(map) => {
            let parts = map.iter().map(|(key, value)| match value {
                serde_json::Value::String(text) => format!("{key}: {text}"),
                other => format!("{key}: {other}"),
            });
            parts.collect::<Vec<_>>().join(", ")
        }
        serde_json::Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Plain text in a well; long text scrolls.
pub fn text_well(ui: &mut Ui, text: &str, name: &str) {
    let p = palette(ui);
    egui::Frame::new().fill(p.well).stroke((1.0, p.line)).corner_radius(radius::CONTROL).inner_margin(8).show(
        ui,
        |ui| {
            ui.set_width(ui.available_width());
            let scroll = egui::ScrollArea::vertical().max_height(220.0).auto_shrink([false, true]);
            scroll.id_salt(name).show(ui, |ui| {
                let words = RichText::new(text.trim_end()).monospace().color(p.text);
                ui.add(Label::new(words).wrap().selectable(true)).accessible_name(name);
            });
        },
    );
}

fn retrying_ui(ui: &mut Ui, card: &Card, attempt: u32, wait_ms: u64, why: &str, view: &CardView<'_>) {
    let p = palette(ui);
    let left = card.at_ms + wait_ms as i64 - view.now_ms;
    let meta = if left > 0 && view.running { format!("again in {:.0} s", left as f64 / 1000.0) } else { String::new() };
    let title = format!("Asking the model again (attempt {attempt})");
    let line = Line { icon: Icon::Refresh, colour: p.warn, title: &title, detail: why, meta: &meta, open: None };
    line_ui(ui, &line, 0.0);
}

/// What happened, what to do, and the buttons that do it.
fn error_ui(ui: &mut Ui, card: &Card, problem: &Problem, retry: &str, view: &mut CardView<'_>) {
    let p = palette(ui);
    card_frame(p.bad_ground, p.bad).show(ui, |ui| {
        ui.set_width(ui.available_width());
        let (headline, rest) = words::headline(&problem.message, &problem.advice);
        icon_heading(ui, Icon::Warning, p.bad, headline);
        if !rest.is_empty() {
            ui.add(Label::new(RichText::new(rest).color(p.text)).wrap());
        }
        if !problem.advice.is_empty() {
            ui.add(Label::new(RichText::new(&problem.advice).color(p.text)).wrap());
        }
        if card.turn != view.last_turn || view.running {
            return;
        }
        ui.add_space(space::TINY);
        ui.horizontal_wrapped(|ui| {
            let kind = problem.kind.as_str();
            // Without Slicer, trying again is of no use; with it, starting another one is not.
            let no_slicer = kind.contains("Slicer") && !view.connected;
            if no_slicer {
                if view.can_launch {
                    let hint = "Starts the Slicer that is installed, then sends the same message again";
                    if primary_button(ui, "Launch Slicer").on_hover_text(hint).clicked() {
                        view.actions.push(Action::LaunchSlicer);
                        view.actions.push(Action::RetryOnceConnected(retry.to_owned()));
                    }
                }
                let hint = "Starts a small Slicer without a window, then sends the same message again";
                let practice = "Start the practice Slicer";
                let button = if view.can_launch { plain_button(ui, practice) } else { primary_button(ui, practice) };
                if button.on_hover_text(hint).clicked() {
                    view.actions.push(Action::StartPractice);
                    view.actions.push(Action::RetryOnceConnected(retry.to_owned()));
                }
            }
            if !retry.is_empty() {
                let again = if no_slicer { plain_button(ui, "Retry") } else { primary_button(ui, "Retry") };
                if again.on_hover_text("Send the same message again").clicked() {
                    view.actions.push(Action::SendText(retry.to_owned()));
                }
            }
            if kind.contains("Slicer") {
                if view.connected {
                    soft(ui, "Slicer answers now.");
                }
                if plain_button(ui, "Slicer settings").clicked() {
                    view.actions.push(Action::OpenSettings(SettingsTab::Slicer));
                }
            } else if ["Key", "Model", "Provider", "Host", "Credit", "Network", "Rate"]
                .iter()
                .any(|part| kind.contains(part))
                && plain_button(ui, "Model settings").clicked()
            {
                view.actions.push(Action::OpenSettings(SettingsTab::Model));
            }
        });
    });
}

/// A semibold line with an icon in front.
pub fn icon_heading(ui: &mut Ui, icon: Icon, colour: egui::Color32, text: &str) {
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = space::BASE;
        let height = ui.text_style_height(&TextStyle::Body);
        let (rect, _) = ui.allocate_exact_size(vec2(size::ICON, height), egui::Sense::hover());
        super::icons::paint(ui.painter(), icon, rect, 15.0, colour);
        strong(ui, text);
    });
}

fn footer_ui(
    ui: &mut Ui,
    timings: &Timings,
    usage: Option<&UsageTotal>,
    cost_usd: Option<f64>,
    answer: &str,
    run_folder: Option<&str>,
    view: &mut CardView<'_>,
) {
    let mut parts = vec![words::duration(timings.total_ms)];
    match usage {
        Some(usage) if usage.calls > 0 => {
            parts.push(words::usage(usage));
            parts.push(words::cost(usage, cost_usd));
        }
        _ => parts.push("free".into()),
    }
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = space::SMALL;
        if !answer.is_empty()
            && sized_icon_button(ui, Icon::Copy, "Copy the answer", "Copy the answer as markdown", 24.0).clicked()
        {
            ui.copy_text(answer.to_owned());
            view.actions.push(Action::Copied("Answer"));
        }
        let label = small(ui, &parts.join(" · "));
        label.on_hover_ui(|ui| timings_ui(ui, timings, run_folder));
    });
}

fn timings_ui(ui: &mut Ui, timings: &Timings, run_folder: Option<&str>) {
    for (what, ms) in [
        ("Knowledge", timings.retrieval_ms),
        ("Model", timings.model_ms),
        ("Tools", timings.tools_ms),
        ("Safety checks", timings.checks_ms),
        ("Run in Slicer", timings.run_ms),
    ] {
        if ms > 0.0 {
            small(ui, &format!("{what}: {}", words::duration(ms)));
        }
    }
    if let Some(folder) = run_folder {
        small(ui, &format!("Kept in {folder}"));
    }
}

/// A short list with a sign in front of each entry.
pub fn bullets(ui: &mut Ui, icon: Icon, colour: egui::Color32, entries: &[String]) {
    for entry in entries {
        icon_text(ui, icon, colour, entry);
    }
}
