//! The settings dialog. Each change applies at once: there is no OK button, and Esc closes.

use egui::{Button, Id, Modal, RichText, ScrollArea, TextEdit, Ui, vec2};

use crate::engine::{ConnectionReport, KeyOrigin};

use super::icons::Icon;
use super::settings_slicer::slicer_ui;
use super::state::{Action, SettingsTab, State, Test};
use super::tokens::{self, font, palette, size, space};
use super::top_bar::choose_provider;
use super::widgets::{combo, danger_button, icon_button, icon_text, plain_button, primary_button, small, soft, strong};
use super::words;

const TABS: [(SettingsTab, &str); 5] = [
    (SettingsTab::Model, "Model"),
    (SettingsTab::Slicer, "Slicer"),
    (SettingsTab::Safety, "Safety"),
    (SettingsTab::Appearance, "Appearance"),
    (SettingsTab::About, "About"),
];

/// Shows the dialog when it is open.
pub fn settings_ui(context: &egui::Context, state: &mut State, actions: &mut Vec<Action>) {
    let Some(tab) = state.dialog else { return };
    let screen = context.content_rect().size();
    let width = (screen.x - 32.0).min(size::DIALOG) - 40.0;
    let height = (screen.y - 48.0).min(540.0) - 40.0;
    let frame = egui::Frame::popup(&context.global_style()).inner_margin(20).corner_radius(tokens::radius::DIALOG);
    let shade = if context.global_style().visuals.dark_mode { tokens::DARK.shade } else { tokens::LIGHT.shade };
    let modal = Modal::new(Id::unique("settings")).frame(frame).backdrop_color(shade);
    let response = modal.show(context, |ui| {
        ui.set_width(width);
        ui.set_height(height);
        ui.horizontal(|ui| {
            ui.label(RichText::new("Settings").font(tokens::strong_font(font::HEADING)).color(palette(ui).text_strong));
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                if icon_button(ui, Icon::Cross, "Close settings", "Close (Esc)").clicked() {
                    actions.push(Action::CloseSettings);
                }
            });
        });
        ui.add_space(space::BASE);
        if width >= 520.0 {
            ui.horizontal_top(|ui| {
                ui.vertical(|ui| {
                    ui.set_width(120.0);
                    tabs_ui(ui, tab, vec2(120.0, size::ROW), actions);
                });
                ui.add_space(space::LARGE);
                ui.vertical(|ui| page_ui(ui, tab, state, actions));
            });
        } else {
            ui.horizontal_wrapped(|ui| {
                ui.spacing_mut().item_spacing.x = space::TINY;
                tabs_ui(ui, tab, vec2(0.0, size::ROW), actions);
            });
            ui.add_space(space::BASE);
            page_ui(ui, tab, state, actions);
        }
    });
    if response.should_close() {
        actions.push(Action::CloseSettings);
    }
}

fn tabs_ui(ui: &mut Ui, shown: SettingsTab, least: egui::Vec2, actions: &mut Vec<Action>) {
    for (tab, name) in TABS {
        let button = Button::selectable(shown == tab, name).min_size(least);
        if ui.add(button).clicked() {
            actions.push(Action::OpenSettings(tab));
        }
    }
}

fn page_ui(ui: &mut Ui, tab: SettingsTab, state: &mut State, actions: &mut Vec<Action>) {
    ScrollArea::vertical().id_salt(tab as u8).auto_shrink(false).show(ui, |ui| {
        ui.spacing_mut().item_spacing.y = space::HALF;
        match tab {
            SettingsTab::Model => model_ui(ui, state, actions),
            SettingsTab::Slicer => slicer_ui(ui, state, actions),
            SettingsTab::Safety => safety_ui(ui, state, actions),
            SettingsTab::Appearance => appearance_ui(ui, state, actions),
            SettingsTab::About => about_ui(ui),
        }
    });
}

/// A label above its control.
pub(super) fn field<R>(ui: &mut Ui, label: &str, add: impl FnOnce(&mut Ui) -> R) -> R {
    strong(ui, label);
    let inner = add(ui);
    ui.add_space(space::SMALL);
    inner
}

/// A text that is saved when the person leaves it.
pub(super) fn text_ui(ui: &mut Ui, text: &mut String, name: &str, hint: &str, width: f32, actions: &mut Vec<Action>) {
    let hint = RichText::new(hint).color(palette(ui).text_soft);
    let response = ui.add(TextEdit::singleline(text).hint_text(hint).desired_width(width)).accessible_name(name);
    if response.lost_focus() {
        actions.push(Action::SettingsChanged);
    }
}

fn model_ui(ui: &mut Ui, state: &mut State, actions: &mut Vec<Action>) {
    let provider = state.providers.iter().find(|one| one.id == state.draft.model.provider).cloned().unwrap_or_default();
    field(ui, "Provider", |ui| {
        // All of them fit: a list that scrolls hides the last ones, among them the person's own server.
        let combo = combo("provider", &provider.name, ui.available_width().min(300.0)).height(460.0);
        let response = combo.show_ui(ui, |ui| {
            for one in &state.providers {
                if ui.selectable_label(one.id == provider.id, &one.name).clicked() && one.id != provider.id {
                    let current = state.draft.clone();
                    choose_provider(&mut state.draft, &current, one);
                    actions.push(Action::SettingsChanged);
                }
            }
        });
        response.response.accessible_name("Provider");
    });
    if provider.id == "recipes" {
        soft(
            ui,
            "Built-in recipes answer common requests without a model: no key, no network, no cost. Choose a provider for \
             free-form requests.",
        );
        return;
    }
    field(ui, "Model", |ui| {
        ui.horizontal(|ui| {
            let width = (ui.available_width() - 110.0).min(300.0);
            text_ui(ui, &mut state.draft.model.model, "Model name", "Type the model's name", width, actions);
            if !provider.models.is_empty() {
                let combo = combo("models", "Choose", 90.0);
                let response = combo.show_ui(ui, |ui| {
                    for model in &provider.models {
                        if ui.selectable_label(*model == state.draft.model.model, model).clicked() {
                            state.draft.model.model.clone_from(model);
                            actions.push(Action::SettingsChanged);
                        }
                    }
                });
                response.response.accessible_name("Choose a model");
            }
        });
    });
    field(ui, "Address (base URL)", |ui| {
        let width = ui.available_width().min(420.0);
        let hint = if provider.base_url.is_empty() { "https://server.example/v1" } else { &provider.base_url };
        text_ui(ui, &mut state.draft.model.base_url, "Address of the provider", hint, width, actions);
    });
    // A server of one's own may ask for a key as well.
    key_ui(ui, state, provider.needs_key, provider.key_variable.as_deref(), actions);
    test_ui(ui, state, actions);
}

fn key_ui(ui: &mut Ui, state: &mut State, needed: bool, variable: Option<&str>, actions: &mut Vec<Action>) {
    field(ui, if needed { "API key" } else { "API key, if the server asks for one" }, |ui| {
        ui.horizontal(|ui| {
            let width = (ui.available_width() - 110.0).min(300.0);
            let none = matches!(state.key, KeyOrigin::NotSet | KeyOrigin::NotNeeded);
            let hint = if none { "Paste the key" } else { "Paste a new key to replace it" };
            let hint = RichText::new(hint).color(palette(ui).text_soft);
            let edit = TextEdit::singleline(&mut state.key_text).password(!state.key_revealed).hint_text(hint);
            ui.add(edit.desired_width(width)).accessible_name("API key to save");
            let (icon, name) =
                if state.key_revealed { (Icon::EyeOff, "Hide the key") } else { (Icon::Eye, "Show the key") };
            if icon_button(ui, icon, name, name).clicked() {
                state.key_revealed = !state.key_revealed;
            }
            let ready = !state.key_text.trim().is_empty();
            if ui
                .add_enabled_ui(ready, |ui| plain_button(ui, "Save"))
                .inner
                .on_hover_text("Into the system's keyring")
                .clicked()
            {
                actions.push(Action::SaveKey);
            }
        });
        ui.horizontal(|ui| {
            let p = palette(ui);
            let (icon, colour) = match state.key {
                KeyOrigin::NotSet if needed => (Icon::Warning, p.warn),
                _ => (Icon::Check, p.ok),
            };
            let text = match (state.key, variable) {
                (KeyOrigin::Environment, Some(variable)) => format!("From the environment variable {variable}."),
                (KeyOrigin::NotSet, _) if !needed => "No key is needed.".to_owned(),
                (KeyOrigin::NotSet, Some(variable)) => format!("No key is set. Save one here, or set {variable}."),
                (origin, _) => words::key_origin(origin).to_owned(),
            };
            if !matches!(state.key, KeyOrigin::Keyring | KeyOrigin::Session) {
                icon_text(ui, icon, colour, &text);
                return;
            }
            // In one line with its button, so that both stand on the same middle.
            let (slot, _) = ui.allocate_exact_size(vec2(size::ICON, size::ROW), egui::Sense::hover());
            super::icons::paint(ui.painter(), icon, slot, 13.0, colour);
            ui.label(text);
            if danger_button(ui, "Remove").clicked() {
                actions.push(Action::RemoveKey);
            }
        });
    });
}

fn test_ui(ui: &mut Ui, state: &mut State, actions: &mut Vec<Action>) {
    ui.horizontal_wrapped(|ui| match &state.test {
        Test::Running => {
            ui.add(egui::Spinner::new().size(16.0).color(palette(ui).accent));
            ui.label("Asking the provider…");
            if plain_button(ui, "Cancel").clicked() {
                actions.push(Action::CancelTest);
            }
        }
        _ => {
            if primary_button(ui, "Test").on_hover_text("Ask the provider for one word").clicked() {
                actions.push(Action::SettingsChanged);
                actions.push(Action::Test);
            }
        }
    });
    if let Test::Done(report) = &state.test {
        report_ui(ui, report);
    }
}

fn report_ui(ui: &mut Ui, report: &ConnectionReport) {
    let p = palette(ui);
    if report.ok {
        let model = match report.model_available {
            Some(true) => ", the model is available",
            Some(false) => ", but the model is not offered",
            None => "",
        };
        icon_text(ui, Icon::Check, p.ok, &format!("Connected in {}{model}.", words::duration(report.ms)));
        for (known, yes, no) in [
            (
                report.tools,
                "It can use tools.",
                "It cannot use tools: requests that need several steps will work less well.",
            ),
            (report.vision, "It can see pictures.", "It cannot see pictures."),
        ] {
            match known {
                Some(true) => icon_text(ui, Icon::Check, p.ok, yes),
                Some(false) => icon_text(ui, Icon::Question, p.warn, no),
                None => {}
            }
        }
        return;
    }
    match &report.error {
        Some(problem) => {
            icon_text(ui, Icon::Cross, p.bad, &problem.message);
            soft(ui, &problem.advice);
        }
        None => icon_text(ui, Icon::Cross, p.bad, "The provider did not answer as expected."),
    }
}

pub(super) fn number_ui(ui: &mut Ui, value: egui::DragValue<'_>, name: &str, actions: &mut Vec<Action>) {
    let response = ui.add(value).accessible_name(name);
    if response.drag_stopped() || response.lost_focus() || (response.changed() && !response.dragged()) {
        actions.push(Action::SettingsChanged);
    }
}

fn safety_ui(ui: &mut Ui, state: &mut State, actions: &mut Vec<Action>) {
    soft(
        ui,
        "Every piece of code is read before it runs. What can do harm is asked for first; deleting files, starting programs \
         and quitting Slicer stay forbidden unless you allow them.",
    );
    let safety = &mut state.draft.safety;
    let parts = [
        ("Always allowed", "Nothing is always allowed. “Always” in a question adds it here.", &mut safety.always_allow),
        ("Folders that may be read", "No folder may be read without asking.", &mut safety.readable_folders),
    ];
    for (title, nothing, list) in parts {
        ui.add_space(space::BASE);
        field(ui, title, |ui| {
            if list.is_empty() {
                soft(ui, nothing);
            }
            let mut gone = None;
            for (place, entry) in list.iter().enumerate() {
                ui.horizontal(|ui| {
                    ui.add(egui::Label::new(entry).truncate());
                    let name = format!("Remove {entry}");
                    if icon_button(ui, Icon::Trash, &name, "Ask again from now on").clicked() {
                        gone = Some(place);
                    }
                });
            }
            if let Some(place) = gone {
                list.remove(place);
                actions.push(Action::SettingsChanged);
            }
        });
    }
}

fn appearance_ui(ui: &mut Ui, state: &mut State, actions: &mut Vec<Action>) {
    let before = state.draft.appearance.clone();
    let appearance = &mut state.draft.appearance;
    field(ui, "Theme", |ui| {
        ui.horizontal_wrapped(|ui| {
            for (id, name) in [("system", "As the system"), ("light", "Light"), ("dark", "Dark")] {
                ui.radio_value(&mut appearance.theme, id.to_owned(), name);
            }
        });
    });
    field(ui, "Size", |ui| {
        ui.horizontal(|ui| {
            for (sign, name, step) in [(Icon::Minus, "Smaller", -0.1), (Icon::Plus, "Larger", 0.1)] {
                if icon_button(ui, sign, name, &format!("{name} (Ctrl+{})", if step > 0.0 { "+" } else { "-" }))
                    .clicked()
                {
                    appearance.zoom = zoomed(appearance.zoom, step);
                }
            }
            ui.label(format!("{:.0} %", appearance.zoom * 100.0));
            if (appearance.zoom - 1.0).abs() > 0.01 && plain_button(ui, "Normal size").on_hover_text("Ctrl+0").clicked()
            {
                appearance.zoom = 1.0;
            }
        });
    });
    field(ui, "Sending", |ui| {
        ui.radio_value(&mut appearance.enter_sends, true, "Enter sends, Shift+Enter breaks the line");
        ui.radio_value(&mut appearance.enter_sends, false, "Ctrl+Enter sends, Enter breaks the line");
    });
    if *appearance != before {
        actions.push(Action::SettingsChanged);
    }
}

/// The next size, between half and three times the normal one.
pub fn zoomed(zoom: f32, step: f32) -> f32 {
    (((zoom + step) * 10.0).round() / 10.0).clamp(0.5, 3.0)
}

fn about_ui(ui: &mut Ui) {
    strong(ui, &format!("Slicer AI Agent {}", env!("CARGO_PKG_VERSION")));
    soft(ui, env!("CARGO_PKG_DESCRIPTION"));
    ui.add_space(space::BASE);
    soft(ui, "Not a medical device. Check every result before you rely on it.");
    ui.add_space(space::BASE);
    small(ui, &format!("Licence: {}", env!("CARGO_PKG_LICENSE")));
    small(ui, "Text is set in Inter (SIL Open Font License 1.1).");
    ui.add_space(space::BASE);
    if plain_button(ui, "Copy version").clicked() {
        ui.copy_text(format!("slicer-ai-agent {}", env!("CARGO_PKG_VERSION")));
    }
}
