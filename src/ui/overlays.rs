//! What lies over the window: short messages at its edge, and the sheet of keys.

use egui::{Align2, Area, Frame, Grid, Id, Modal, Order, RichText, Ui, vec2};

use super::icons::{self, Icon};
use super::state::{Action, State};
use super::tokens::{self, font, palette, radius, size, space};
use super::widgets::{icon_button, plain_button, sized_icon_button, small, soft};

/// Shows the short messages above the composer.
pub fn toasts_ui(context: &egui::Context, state: &State, actions: &mut Vec<Action>) {
    if state.toasts.is_empty() {
        return;
    }
    let width = (context.content_rect().width() - 32.0).min(380.0);
    let area = Area::new(Id::unique("toasts"))
        .order(Order::Foreground)
        .anchor(Align2::RIGHT_TOP, vec2(-16.0, size::TOP_BAR + 12.0));
    area.show(context, |ui| {
        ui.set_width(width);
        for toast in &state.toasts {
            let p = palette(ui);
            let (ground, line) = if toast.bad { (p.bad_ground, p.bad) } else { (p.card, p.line_strong) };
            let frame = Frame::popup(ui.style()).fill(ground).stroke((1.0, line)).corner_radius(radius::CARD);
            frame.inner_margin(egui::Margin::symmetric(12, 8)).show(ui, |ui| {
                ui.set_width(width - 26.0);
                ui.horizontal_top(|ui| {
                    if toast.bad {
                        let (rect, _) = ui.allocate_exact_size(vec2(size::ICON, 22.0), egui::Sense::hover());
                        icons::paint(ui.painter(), Icon::Warning, rect, 14.0, p.bad);
                    }
                    let tools = if toast.button.is_some() { 104.0 } else { 32.0 };
                    ui.allocate_ui(vec2(ui.available_width() - tools, 0.0), |ui| {
                        ui.vertical(|ui| {
                            ui.add_space(space::TINY);
                            ui.add(egui::Label::new(&toast.text).wrap());
                            if !toast.advice.is_empty() {
                                soft(ui, &toast.advice);
                            }
                        });
                    });
                    ui.with_layout(egui::Layout::right_to_left(egui::Align::Min), |ui| {
                        if sized_icon_button(ui, Icon::Cross, "Dismiss the message", "Dismiss", 24.0).clicked() {
                            actions.push(Action::DismissToast(toast.id));
                        }
                        if let Some((label, action)) = &toast.button
                            && plain_button(ui, label).clicked()
                        {
                            actions.push(action.clone());
                            actions.push(Action::DismissToast(toast.id));
                        }
                    });
                });
            });
        }
    });
}

/// Every key of the window.
const KEYS: [(&str, &str); 12] = [
    ("Enter", "Send (or Ctrl+Enter, as set)"),
    ("Shift+Enter", "Break the line"),
    ("Up", "Recall an earlier message (empty composer)"),
    ("Esc", "Stop the turn, or close what is open"),
    ("Ctrl+Z", "Undo the last run (empty composer)"),
    ("Ctrl+N", "New conversation"),
    ("Ctrl+K", "Search the conversations"),
    ("Ctrl+,", "Settings"),
    ("Ctrl++  Ctrl+-", "Larger, smaller"),
    ("Ctrl+0", "Normal size"),
    ("Tab", "Next control, also in a permission question"),
    ("F1", "This sheet"),
];

pub fn help_ui(context: &egui::Context, state: &mut State) {
    if !state.help {
        return;
    }
    let width = (context.content_rect().width() - 72.0).min(440.0);
    let frame = Frame::popup(&context.global_style()).inner_margin(20).corner_radius(radius::DIALOG);
    let response = Modal::new(Id::unique("help")).frame(frame).show(context, |ui| {
        ui.set_width(width);
        let mut close = false;
        ui.horizontal(|ui| {
            let p = palette(ui);
            ui.label(RichText::new("Keys").font(tokens::strong_font(font::HEADING)).color(p.text_strong));
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                close = icon_button(ui, Icon::Cross, "Close the sheet", "Close (Esc)").clicked();
            });
        });
        ui.add_space(space::BASE);
        Grid::new("keys").num_columns(2).spacing(vec2(space::HUGE, space::HALF)).show(ui, |ui| {
            for (key, what) in KEYS {
                key_ui(ui, key);
                ui.add(egui::Label::new(what).wrap());
                ui.end_row();
            }
        });
        ui.add_space(space::BASE);
        small(ui, "On a Mac, Cmd takes the place of Ctrl.");
        close
    });
    if response.inner || response.should_close() {
        state.help = false;
        state.focus_composer = true;
    }
}

fn key_ui(ui: &mut Ui, key: &str) {
    let p = palette(ui);
    Frame::new()
        .fill(p.well)
        .stroke((1.0, p.line))
        .corner_radius(radius::CONTROL)
        .inner_margin(egui::Margin::symmetric(6, 2))
        .show(ui, |ui| ui.add(egui::Label::new(RichText::new(key).size(font::SMALL).color(p.text)).extend()));
}
