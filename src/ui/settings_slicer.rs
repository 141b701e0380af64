//! The Slicer page of the settings: which Slicer to launch, which ones run, how it is reached, limits, practice.

use egui::{RichText, Ui, vec2};

use crate::engine::{HeldPort, InstalledSlicer, RunningSlicer};

use super::icons::{self, Icon};
use super::settings_dialog::{field, number_ui, text_ui};
use super::state::{Action, State};
use super::timeline_view::running_name;
use super::tokens::{palette, size, space};
use super::widgets::{combo, icon_button, icon_text, inset_ui, plain_button, primary_button, small, soft, strong};
use super::words;

/// Width of the column of buttons at the right of the list.
const BUTTON: f32 = 90.0;

pub fn slicer_ui(ui: &mut Ui, state: &mut State, actions: &mut Vec<Action>) {
    field(ui, "Slicer to launch", |ui| executable_ui(ui, state, actions));
    running_ui(ui, state, actions);
    field(ui, "Address of Slicer's Web Server", |ui| address_ui(ui, state, actions));
    field(ui, "Time limit of one run", |ui| {
        let value = egui::DragValue::new(&mut state.draft.slicer.time_limit_s).range(1..=3600).suffix(" s");
        number_ui(ui, value, "Time limit of one run in seconds", actions);
        small(ui, "A run that takes longer is stopped inside Slicer and its changes are taken back.");
    });
    field(ui, "Attempts", |ui| {
        let value = egui::DragValue::new(&mut state.draft.slicer.max_attempts).range(1..=10);
        number_ui(ui, value, "Largest number of attempts", actions);
        small(ui, "How often code is written and run in all before a request is given up.");
    });
    field(ui, "Practice Slicer", |ui| {
        soft(
            ui,
            "A small Slicer without a window, for trying things out where none is installed. It needs no set-up by hand.",
        );
        let idle = state.progress.is_none();
        let start = ui.add_enabled_ui(idle, |ui| plain_button(ui, "Start the practice Slicer")).inner;
        if start.clicked() {
            actions.push(Action::StartPractice);
        }
        if let Some(progress) = state.progress.as_ref().filter(|_| !state.slicers.launching) {
            soft(ui, &words::progress(progress));
        }
    });
}

/// Launch with its progress: a button, or what is going on with a way to stop it.
pub fn launch_button_ui(ui: &mut Ui, state: &State, actions: &mut Vec<Action>) {
    if state.slicers.launching {
        ui.add(egui::Spinner::new().size(16.0).color(palette(ui).accent));
        if plain_button(ui, "Cancel").on_hover_text("Ends the Slicer that is starting").clicked() {
            actions.push(Action::CancelLaunch);
        }
        return;
    }
    let none = state.slicers.found.as_ref().is_some_and(|found| found.installed.is_empty());
    let possible = state.progress.is_none() && !(none && state.draft.slicer.executable.trim().is_empty());
    let name = match state.slicers.version_to_launch(&state.draft.slicer.executable) {
        Some(version) => format!("Launch Slicer {version}"),
        None => "Launch Slicer".to_owned(),
    };
    let hint = "Starts Slicer with its Web Server on, reachable from this computer only. Slicer stays open when this program ends.";
    // With a Slicer connected, another one is seldom wanted.
    let connected = state.slicer.as_ref().is_some_and(|status| status.connected);
    let button = |ui: &mut Ui| if connected { plain_button(ui, &name) } else { primary_button(ui, &name) };
    if ui.add_enabled_ui(possible, button).inner.on_hover_text(hint).clicked() {
        actions.push(Action::LaunchSlicer);
    }
}

fn executable_ui(ui: &mut Ui, state: &mut State, actions: &mut Vec<Action>) {
    let installed = state.slicers.found.as_ref().map(|found| found.installed.clone()).unwrap_or_default();
    ui.horizontal(|ui| {
        let width = (ui.available_width() - 110.0).min(340.0);
        let hint = match installed.first() {
            Some(first) => first.executable.display().to_string(),
            None => "Path of Slicer's executable".to_owned(),
        };
        text_ui(ui, &mut state.draft.slicer.executable, "Executable of Slicer", &hint, width, actions);
        if !installed.is_empty() {
            choose_ui(ui, &installed, &mut state.draft.slicer.executable, actions);
        }
    });
    let p = palette(ui);
    if installed.is_empty() && state.draft.slicer.executable.is_empty() {
        match (&state.slicers.found, state.slicers.looking) {
            (Some(_), false) => icon_text(
                ui,
                Icon::Warning,
                p.warn,
                "No Slicer was found. Install it from download.slicer.org, or type where its executable is.",
            ),
            _ => drop(soft(ui, "Looking for installed Slicers…")),
        }
    } else if state.draft.slicer.executable.is_empty() {
        small(ui, "Found by itself: the newest one on this computer.");
    }
    ui.horizontal(|ui| {
        launch_button_ui(ui, state, actions);
        if let Some(progress) = state.progress.as_ref().filter(|_| state.slicers.launching) {
            ui.label(progress.detail.as_str());
        }
    });
    if let Some(problem) = &state.slicers.problem {
        let (headline, rest) = words::headline(&problem.message, &problem.advice);
        icon_text(ui, Icon::Cross, p.bad, headline);
        for text in [rest.as_str(), problem.advice.as_str()].into_iter().filter(|text| !text.is_empty()) {
            soft(ui, text);
        }
    }
}

/// The installed ones by version; the first entry leaves the choice to the program.
fn choose_ui(ui: &mut Ui, installed: &[InstalledSlicer], executable: &mut String, actions: &mut Vec<Action>) {
    let response = combo("installed", "Choose", 90.0).show_ui(ui, |ui| {
        let current = executable.clone();
        let mut pick = |ui: &mut Ui, label: &str, path: String| {
            if ui.selectable_label(current == path, label).clicked() {
                *executable = path;
                actions.push(Action::SettingsChanged);
            }
        };
        pick(ui, "The newest", String::new());
        for one in installed {
            let path = one.executable.display().to_string();
            let label = one.version.as_ref().map_or_else(|| path.clone(), |version| format!("Slicer {version}"));
            pick(ui, &label, path);
        }
    });
    response.response.accessible_name("Choose an installed Slicer");
}

fn running_ui(ui: &mut Ui, state: &State, actions: &mut Vec<Action>) {
    ui.horizontal(|ui| {
        strong(ui, "Running Slicers");
        if state.slicers.looking {
            ui.add(egui::Spinner::new().size(14.0).color(palette(ui).text_soft));
        } else if icon_button(ui, Icon::Refresh, "Look for Slicers again", "Look again").clicked() {
            actions.push(Action::FindSlicers);
        }
    });
    let connected = state.slicer.as_ref().filter(|status| status.connected).map(|status| status.url.as_str());
    match &state.slicers.found {
        None => drop(soft(ui, "Looking for running Slicers…")),
        Some(found) => {
            let held: Vec<&HeldPort> = found.held.iter().filter(|one| one.maybe_slicer).collect();
            if found.running.is_empty() && held.is_empty() {
                soft(ui, "None with its Web Server on.");
            }
            for one in &found.running {
                one_running_ui(ui, one, connected == Some(one.url.as_str()), actions);
            }
            for one in held {
                inset_ui(ui, |ui| {
                    icon_text(ui, Icon::Warning, palette(ui).warn, &format!("Port {}", one.port));
                    soft(ui, &one.detail);
                });
            }
        }
    }
    ui.add_space(space::SMALL);
}

fn one_running_ui(ui: &mut Ui, slicer: &RunningSlicer, connected: bool, actions: &mut Vec<Action>) {
    let p = palette(ui);
    inset_ui(ui, |ui| {
        ui.horizontal(|ui| {
            let width = (ui.available_width() - BUTTON).max(80.0);
            ui.vertical(|ui| {
                ui.set_width(width);
                let scene = slicer.scene.as_deref().map(|name| format!(" · {name}")).unwrap_or_default();
                ui.label(RichText::new(format!("{}{scene}", running_name(slicer))).color(p.text_strong));
                small(ui, &place_of(slicer));
            });
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                if connected {
                    // From right to left: the mark comes before the word.
                    ui.label("Connected");
                    let (slot, _) = ui.allocate_exact_size(vec2(size::ICON, size::ROW), egui::Sense::hover());
                    icons::paint(ui.painter(), Icon::Check, slot, 13.0, p.ok);
                } else if plain_button(ui, "Connect").on_hover_text(format!("Connect to {}", slicer.url)).clicked() {
                    actions.push(Action::Connect(slicer.url.clone()));
                }
            });
        });
        match slicer.exec {
            Some(true) => {}
            Some(false) => icon_text(
                ui,
                Icon::Warning,
                p.warn,
                "It takes no code: in its Web Server module tick “Slicer API exec”, then press Stop and Start.",
            ),
            None => icon_text(ui, Icon::Thinking, p.text_soft, "It is busy."),
        }
        if slicer.loopback == Some(false) {
            icon_text(ui, Icon::Warning, p.warn, "Its Web Server is open to the network, without a password.");
        }
    });
}

/// `127.0.0.1:2016 · process 4711`.
fn place_of(slicer: &RunningSlicer) -> String {
    let address = slicer.url.trim_start_matches("http://").trim_end_matches("/slicer");
    match slicer.pid {
        Some(pid) => format!("{address} · process {pid}"),
        None => address.to_owned(),
    }
}

fn address_ui(ui: &mut Ui, state: &mut State, actions: &mut Vec<Action>) {
    ui.horizontal(|ui| {
        let width = (ui.available_width() - 110.0).min(340.0);
        text_ui(ui, &mut state.draft.slicer.url, "Address of Slicer's Web Server", "", width, actions);
        if plain_button(ui, "Connect now").clicked() {
            actions.push(Action::SettingsChanged);
            actions.push(Action::Connect(state.draft.slicer.url.clone()));
        }
    });
    let status = match &state.slicer {
        Some(status) if status.connected => format!("Connected to {}.", super::timeline_view::slicer_name(status)),
        Some(status) => status.problem.clone().unwrap_or_else(|| "Not connected.".into()),
        None => "Looking for Slicer…".into(),
    };
    soft(ui, &status);
}
