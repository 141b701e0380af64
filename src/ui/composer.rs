//! Where the person types: queue, text, Send or Stop, and the status line below.

use egui::{
    Align, Frame, Key, KeyboardShortcut, Label, Layout, Margin, Modifiers, Rect, RichText, ScrollArea, TextEdit, Ui,
    UiBuilder, vec2,
};

use super::icons::{self, Icon};
use super::state::{Action, State};
use super::tokens::{self, font, palette, radius, size, space};
use super::widgets::{elided, plain_button, primary_button, sized_icon_button};
use super::words;

/// Name of the text field, for tests and assistive technology.
pub const FIELD: &str = "Message";

/// Shows the composer over the whole width; its parts keep to the column of the timeline.
pub fn composer_ui(ui: &mut Ui, state: &mut State, actions: &mut Vec<Action>) {
    let full = ui.available_width();
    let side = if full < 500.0 { space::WIDE } else { space::HUGE };
    let width = (full - 2.0 * side).min(size::COLUMN);
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = 0.0;
        ui.add_space(((full - width) / 2.0).max(side));
        ui.vertical(|ui| {
            ui.set_width(width);
            ui.spacing_mut().item_spacing = vec2(space::BASE, space::SMALL);
            queue_ui(ui, state, actions);
            field_ui(ui, state, actions);
            status_ui(ui, state);
        });
    });
}

fn queue_ui(ui: &mut Ui, state: &State, actions: &mut Vec<Action>) {
    let p = palette(ui);
    for (position, text) in state.queued.iter().enumerate() {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = space::SMALL;
            let width = ui.available_width() - size::ROW;
            let (rect, response) = ui.allocate_exact_size(vec2(width, 24.0), egui::Sense::hover());
            let name = format!("Queued: {text}");
            response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Label, true, &name));
            let label = RichText::new(format!("Next: {text}")).color(p.text_soft);
            elided(ui, label, rect.shrink2(vec2(space::WIDE, 0.0)), p.text_soft);
            let name = format!("Remove queued message {}", position + 1);
            if sized_icon_button(ui, Icon::Cross, &name, "Take this message back", 24.0).clicked() {
                actions.push(Action::Unqueue(position));
            }
        });
    }
}

fn field_ui(ui: &mut Ui, state: &mut State, actions: &mut Vec<Action>) {
    let p = palette(ui);
    let id = egui::Id::unique("composer");
    let focused = ui.memory(|memory| memory.has_focus(id));
    if focused {
        keys(ui, state, actions);
    }
    let line = if focused { p.accent } else { p.line_strong };
    Frame::new()
        .fill(p.card)
        .stroke((1.0, line))
        .corner_radius(radius::DIALOG)
        .inner_margin(Margin { left: 12, right: 8, top: 8, bottom: 8 })
        .show(ui, |ui| {
            let whole = ui.available_width();
            let buttons = buttons_width(state);
            let width = whole - buttons - space::BASE;
            let left = ui.cursor().left();
            let text = ui.scope(|ui| text_ui(ui, state, id, width)).response.rect;
            // The buttons stand beside the last line of the text.
            let corner = egui::pos2(left + whole, text.bottom());
            let slot = Rect::from_min_max(egui::pos2(text.right() + space::BASE, corner.y - size::ROW), corner);
            let builder = UiBuilder::new().max_rect(slot).layout(Layout::right_to_left(Align::Center));
            ui.scope_builder(builder, |ui| send_or_stop_ui(ui, state, actions));
        });
}

fn text_ui(ui: &mut Ui, state: &mut State, id: egui::Id, width: f32) {
    let limit = if ui.ctx().content_rect().height() < 600.0 { 90.0 } else { 180.0 };
    let field = ScrollArea::vertical().max_height(limit).max_width(width).min_scrolled_height(0.0);
    field.auto_shrink([false, true]).id_salt("composer-scroll").show(ui, |ui| {
        let break_line = if state.settings.appearance.enter_sends { Modifiers::SHIFT } else { Modifiers::NONE };
        let hint = RichText::new(hint(state)).color(palette(ui).text_soft);
        let edit = TextEdit::multiline(&mut state.composer)
            .id(id)
            .hint_text(hint)
            .desired_rows(1)
            .desired_width(width)
            .frame(Frame::NONE)
            .margin(Margin::symmetric(0, 5))
            .align(egui::Align2::LEFT_CENTER)
            .return_key(KeyboardShortcut::new(break_line, Key::Enter));
        let response = ui.add(edit).accessible_name(FIELD);
        if std::mem::take(&mut state.focus_composer) && state.dialog.is_none() {
            response.request_focus();
        }
    });
}

fn hint(state: &State) -> &'static str {
    if state.timeline.open_permission().is_some() {
        "The question above waits for your answer"
    } else if state.running() {
        "Add a message for afterwards"
    } else {
        "Ask for something in Slicer"
    }
}

fn buttons_width(state: &State) -> f32 {
    match (state.running(), state.composer.trim().is_empty()) {
        (true, false) => 136.0,
        _ => 68.0,
    }
}

fn send_or_stop_ui(ui: &mut Ui, state: &State, actions: &mut Vec<Action>) {
    let empty = state.composer.trim().is_empty();
    let send_key = if state.settings.appearance.enter_sends { "Enter" } else { "Ctrl+Enter" };
    if state.running() {
        if !empty && primary_button(ui, "Queue").on_hover_text(format!("Send after this turn ({send_key})")).clicked() {
            actions.push(Action::Send);
        }
        let stop = ui.add_enabled_ui(!state.stopping, |ui| plain_button(ui, "Stop")).inner;
        if stop.on_hover_text("Stop this turn, also inside Slicer (Esc)").clicked() {
            actions.push(Action::Stop);
        }
    } else {
        let send = ui.add_enabled_ui(!empty, |ui| primary_button(ui, "Send")).inner;
        if send.on_hover_text(format!("Send ({send_key})")).clicked() {
            actions.push(Action::Send);
        }
    }
}

/// Keys that mean something while the text has the focus.
fn keys(ui: &Ui, state: &State, actions: &mut Vec<Action>) {
    let send = if state.settings.appearance.enter_sends { Modifiers::NONE } else { Modifiers::COMMAND };
    let empty = state.composer.is_empty();
    ui.input_mut(|input| {
        let pressed = |input: &egui::InputState, modifiers: Modifiers| {
            input.events.iter().any(|event| {
                matches!(event, egui::Event::Key { key: Key::Enter, pressed: true, modifiers: held, .. }
                    if held.matches_exact(modifiers))
            })
        };
        if (pressed(input, send) && input.consume_key(send, Key::Enter))
            || (pressed(input, Modifiers::COMMAND) && input.consume_key(Modifiers::COMMAND, Key::Enter))
        {
            actions.push(Action::Send);
        }
        if (empty || state.recalling()) && input.consume_key(Modifiers::NONE, Key::ArrowUp) {
            actions.push(Action::Recall(true));
        }
        if state.recalling() && input.consume_key(Modifiers::NONE, Key::ArrowDown) {
            actions.push(Action::Recall(false));
        }
        if empty && input.consume_key(Modifiers::COMMAND, Key::Z) {
            actions.push(Action::UndoLast);
        }
    });
}

/// What is going on and for how long; on the right what it costs.
fn status_ui(ui: &mut Ui, state: &State) {
    let p = palette(ui);
    let (icon, colour, text) = status_line(state);
    let text_colour = if colour == Tone::Calm { p.text_soft } else { p.text };
    let icon_colour = match colour {
        Tone::Calm => p.text_soft,
        Tone::Busy => p.accent,
        Tone::Waiting => p.warn,
    };
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 18.0), egui::Sense::hover());
    let cost = cost_line(state, rect.width() > 560.0);
    let name = if text.is_empty() { format!("Status: ready. {cost}") } else { format!("Status: {text} {cost}") };
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Label, true, &name));
    let small = |text: String, colour| RichText::new(text).size(font::SMALL).color(colour);
    let drawn = ui.painter().text(
        egui::pos2(rect.right() - space::SMALL, rect.center().y),
        egui::Align2::RIGHT_CENTER,
        &cost,
        egui::FontId::proportional(font::SMALL),
        p.text_soft,
    );
    let left = rect.left() + space::SMALL;
    let mut words =
        egui::Rect::from_min_max(egui::pos2(left, rect.top()), egui::pos2(drawn.left() - space::BASE, rect.bottom()));
    if let Some(icon) = icon {
        let slot = egui::Rect::from_min_size(words.min, vec2(14.0, rect.height()));
        icons::paint(ui.painter(), icon, slot, 12.0, icon_colour);
        words.min.x = slot.right() + space::HALF;
    }
    elided(ui, small(text, text_colour), words, tokens::CLEAR);
    response.on_hover_ui(|ui| totals_ui(ui, state));
}

fn totals_ui(ui: &mut Ui, state: &State) {
    let (usage, cost) = state.timeline.total();
    ui.add(Label::new(format!("This conversation: {}", words::usage(&usage))));
    ui.add(Label::new(format!("Cost so far: {}", words::cost(&usage, cost))));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tone {
    Calm,
    Busy,
    Waiting,
}

/// The status line, for example "Executor: running (attempt 1 of 5)… 2.1 s · turn 5.3 s".
fn status_line(state: &State) -> (Option<Icon>, Tone, String) {
    let since = |ms: i64| words::clock((state.now_ms - ms).max(0) as f64);
    if let Some(started) = state.timeline.turn_started_ms {
        let turn = since(started);
        if state.stopping {
            return (Some(Icon::Stop), Tone::Waiting, format!("Stopping… turn {turn}"));
        }
        if state.timeline.open_permission().is_some() {
            return (Some(Icon::Shield), Tone::Waiting, format!("Waiting for your answer · turn {turn}"));
        }
        if let Some((attempt, left)) = state.timeline.waits_for_retry(state.now_ms) {
            let left = words::clock(left as f64);
            let text = format!("Asking the model again in {left} (attempt {attempt}) · turn {turn}");
            return (Some(Icon::Refresh), Tone::Waiting, text);
        }
        return match &state.timeline.live {
            Some(live) => {
                let detail = if live.detail.is_empty() { "working…" } else { live.detail.as_str() };
                let text = format!("{}: {detail} {} · turn {turn}", live.role.label(), since(live.since_ms));
                (Some(Icon::Thinking), Tone::Busy, text)
            }
            None => (Some(Icon::Thinking), Tone::Busy, format!("Starting… turn {turn}")),
        };
    }
    if let Some(sending) = &state.sending {
        let what = match &state.progress {
            _ if state.stopping => "Stopping…".to_owned(),
            Some(progress) => words::progress(progress),
            None => "Starting…".to_owned(),
        };
        return (Some(Icon::Thinking), Tone::Busy, format!("{what} {}", since(sending.since_ms)));
    }
    if let Some(progress) = &state.progress {
        return (Some(Icon::Thinking), Tone::Busy, words::progress(progress));
    }
    let keys = if state.settings.appearance.enter_sends {
        "Enter sends, Shift+Enter breaks the line"
    } else {
        "Ctrl+Enter sends"
    };
    (None, Tone::Calm, keys.into())
}

/// Tokens and cost of the turn that runs or ran last.
fn cost_line(state: &State, wide: bool) -> String {
    let Some(usage) = state.timeline.usage.filter(|usage| usage.calls > 0) else {
        return if state.settings.model.provider == "recipes" { "free".into() } else { String::new() };
    };
    let cost = words::cost(&usage, state.timeline.cost_usd);
    if wide { format!("{} · {cost}", words::usage(&usage)) } else { cost }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Role, StoredTurnEvent, TurnEvent};

    #[test]
    fn the_status_line_names_role_stage_and_turn_time() {
        let mut state = State::new(Vec::new());
        state.now_ms = 6_000;
        let events = [
            TurnEvent::UserMessage { turn: 1, text: "x".into() },
            TurnEvent::Stage { role: Role::Executor, detail: "running (attempt 1 of 5)…".into() },
        ];
        for (index, event) in events.into_iter().enumerate() {
            let at_ms = 700 + index as i64 * 3_200;
            state.timeline.apply(&StoredTurnEvent { sequence: index as i64 + 1, at_ms, event });
        }
        let (_, tone, text) = status_line(&state);
        assert_eq!(text, "Executor: running (attempt 1 of 5)… 2.1 s · turn 5.3 s");
        assert_eq!(tone, Tone::Busy);
    }
}
