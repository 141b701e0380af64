//! The bar at the top: the sides, the title, the model, Slicer, settings.

use egui::{Popup, PopupCloseBehavior, RichText, Ui, vec2};

use super::icons::Icon;
use super::settings_slicer::launch_button_ui;
use super::state::{Action, SettingsTab, State};
use super::timeline_view::{NO_SLICER, model_name, running_name, slicer_name};
use super::tokens::{self, font, palette, size, space};
use super::widgets::{chip, elided, icon_button, plain_button, primary_button, small, soft, strong};
use super::words;

pub fn top_bar_ui(ui: &mut Ui, state: &mut State, actions: &mut Vec<Action>) {
    let width = ui.available_width();
    ui.horizontal_centered(|ui| {
        ui.spacing_mut().item_spacing.x = space::SMALL;
        if icon_button(ui, Icon::ListSide, "Conversations", "Show or hide the conversations (Ctrl+K searches)")
            .clicked()
        {
            if state.narrow {
                state.sidebar_over = !state.sidebar_over
            } else {
                state.sidebar_open = !state.sidebar_open
            }
        }
        if !state.narrow
            && !state.sidebar_open
            && icon_button(ui, Icon::Plus, "New conversation", "New conversation (Ctrl+N)").clicked()
        {
            actions.push(Action::NewConversation);
        }
        let layout = egui::Layout::right_to_left(egui::Align::Center);
        ui.with_layout(layout, |ui| {
            if icon_button(ui, Icon::PaneSide, "Pictures and scene", "Show or hide pictures and scene").clicked() {
                if state.narrow { state.pane_over = !state.pane_over } else { state.pane_open = !state.pane_open }
            }
            if icon_button(ui, Icon::Gear, "Settings", "Settings (Ctrl+,)").clicked() {
                actions.push(Action::OpenSettings(SettingsTab::Model));
            }
            slicer_chip_ui(ui, state, actions, width);
            model_chip_ui(ui, state, actions, width);
            title_ui(ui, state);
        });
    });
}

fn title_ui(ui: &mut Ui, state: &State) {
    let p = palette(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), size::ROW), egui::Sense::hover());
    if rect.width() < 60.0 {
        return;
    }
    let title = if state.title.is_empty() { "New conversation" } else { &state.title };
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Label, true, title));
    let words = RichText::new(title).font(tokens::strong_font(font::BODY)).color(p.text_strong);
    elided(ui, words, rect.shrink2(vec2(space::SMALL, 0.0)), p.text_strong);
}

fn slicer_chip_ui(ui: &mut Ui, state: &mut State, actions: &mut Vec<Action>, width: f32) {
    let p = palette(ui);
    let (colour, text) = match (&state.progress, &state.slicer) {
        (Some(progress), _) => (p.warn, format!("{}…", progress.what)),
        (None, None) => (p.text_soft, "Looking for Slicer…".into()),
        (None, Some(status)) if !status.connected => {
            (p.bad, if width < 560.0 { "No Slicer" } else { "Slicer not running" }.into())
        }
        (None, Some(status)) => {
            let nodes = words::count(status.nodes, "node", "nodes");
            let version = status.version.trim_end_matches("-practice");
            let kind = if status.practice { "Practice" } else { "Slicer" };
            let short: String = version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
            (p.ok, if width < 560.0 { format!("{kind} {short}") } else { format!("{kind} {version} · {nodes}") })
        }
    };
    let limit = if width < 560.0 { 150.0 } else { 260.0 };
    let response = chip(ui, Some(colour), &text, &format!("Slicer: {text}"), limit);
    menu(&response, 320.0, |ui| {
        slicer_menu_ui(ui, state, actions);
    });
    response.on_hover_text("Connection to Slicer");
}

fn menu(response: &egui::Response, width: f32, add: impl FnOnce(&mut Ui)) {
    Popup::menu(response).close_behavior(PopupCloseBehavior::CloseOnClickOutside).width(width).gap(4.0).show(|ui| {
        // A menu takes the frames off its buttons; here they are ordinary ones.
        ui.reset_style();
        ui.set_width(width);
        egui::Frame::new().inner_margin(6).show(ui, add);
    });
}

fn slicer_menu_ui(ui: &mut Ui, state: &mut State, actions: &mut Vec<Action>) {
    match &state.slicer {
        Some(status) if status.connected => {
            strong(ui, &format!("Connected to {}", slicer_name(status)));
            small(ui, &status.url);
            if let Some(problem) = &status.problem {
                soft(ui, problem);
            }
        }
        Some(status) => {
            strong(ui, "Slicer is not connected");
            if state.slicers.can_launch() {
                soft(ui, "Launch it from here, or connect to one that runs.");
            } else {
                soft(ui, NO_SLICER);
            }
            if let Some(problem) = status.problem.as_deref().filter(|_| state.progress.is_none()) {
                small(ui, problem);
            }
        }
        None => {
            strong(ui, "Looking for Slicer…");
        }
    }
    if let Some(progress) = &state.progress {
        soft(ui, &words::progress(progress));
    }
    let connected = state.slicer.as_ref().is_some_and(|status| status.connected);
    if !connected {
        ui.add_space(space::SMALL);
        ui.horizontal_wrapped(|ui| {
            launch_button_ui(ui, state, actions);
            let url = state.slicer.as_ref().map_or("", |status| status.url.as_str());
            if let Some(one) = state.slicers.ready_elsewhere(url) {
                let name = format!("Connect to {}", running_name(one));
                if plain_button(ui, &name).on_hover_text(&one.url).clicked() {
                    actions.push(Action::Connect(one.url.clone()));
                    ui.close();
                }
            }
        });
    }
    ui.add_space(space::SMALL);
    small(ui, "Address of Slicer's Web Server");
    let mut go = false;
    let line = vec2(ui.available_width(), size::ROW);
    ui.allocate_ui_with_layout(line, egui::Layout::right_to_left(egui::Align::Center), |ui| {
        // One button leads: Launch while there is nothing to connect to.
        go = if connected { primary_button(ui, "Connect") } else { plain_button(ui, "Connect") }.clicked();
        let field = egui::TextEdit::singleline(&mut state.slicer_url).desired_width(f32::INFINITY);
        let response = ui.add(field).accessible_name("Address of Slicer");
        go |= response.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
    });
    if go {
        actions.push(Action::Connect(state.slicer_url.clone()));
        ui.close();
    }
    ui.add_space(space::SMALL);
    ui.horizontal_wrapped(|ui| {
        let start =
            ui.add_enabled_ui(state.progress.is_none(), |ui| plain_button(ui, "Start the practice Slicer")).inner;
        if start.on_hover_text("A small Slicer without a window, to try things out").clicked() {
            actions.push(Action::StartPractice);
            ui.close();
        }
        if plain_button(ui, "More…").on_hover_text("Slicer settings").clicked() {
            actions.push(Action::OpenSettings(SettingsTab::Slicer));
            ui.close();
        }
    });
}

fn model_chip_ui(ui: &mut Ui, state: &mut State, actions: &mut Vec<Action>, width: f32) {
    let name = model_name(state);
    let short = if width < 560.0 && !state.settings.model.model.is_empty() {
        state.settings.model.model.clone()
    } else {
        name.clone()
    };
    let short = if width < 560.0 && state.settings.model.provider == "recipes" { "Recipes".into() } else { short };
    let limit = if width < 560.0 { 140.0 } else { 280.0 };
    let response = chip(ui, None, &short, &format!("Model: {name}"), limit);
    menu(&response, 280.0, |ui| {
        strong(ui, "Who answers");
        for provider in &state.providers {
            let chosen = provider.id == state.settings.model.provider;
            let label =
                if provider.needs_key { provider.name.clone() } else { format!("{} (no key needed)", provider.name) };
            let button = egui::Button::selectable(chosen, label).min_size(vec2(ui.available_width(), size::ROW));
            if ui.add(button).clicked() && !chosen {
                choose_provider(&mut state.draft, &state.settings, provider);
                actions.push(Action::SettingsChanged);
                if provider.needs_key || provider.models.is_empty() && provider.id != "recipes" {
                    actions.push(Action::OpenSettings(SettingsTab::Model));
                }
                ui.close();
            }
        }
        ui.add_space(space::SMALL);
        if plain_button(ui, "Model settings…").clicked() {
            actions.push(Action::OpenSettings(SettingsTab::Model));
            ui.close();
        }
    });
    response.on_hover_text("Who answers");
}

/// Makes `provider` the one of `draft`, with its own address and first model.
pub fn choose_provider(
    draft: &mut crate::engine::Settings,
    settings: &crate::engine::Settings,
    provider: &crate::engine::ProviderChoice,
) {
    *draft = settings.clone();
    draft.model.provider.clone_from(&provider.id);
    draft.model.base_url.clone_from(&provider.base_url);
    draft.model.model = provider.models.first().cloned().unwrap_or_default();
}
