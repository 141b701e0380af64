//! The rest of the settings page about the model: what the provider offers, how the model answers, and what it may cost.

use egui::Ui;

use crate::engine::{Problem, SpendingTotal, UsageTotal};

use super::icons::Icon;
use super::settings_dialog::{field, number_ui, text_ui};
use super::state::{Action, State};
use super::tokens::{palette, space};
use super::widgets::{combo, icon_text, plain_button, small, soft};
use super::words;

/// The models that a provider says it offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offered {
    /// Whom was asked; empty: nobody.
    pub provider: String,
    pub waiting: bool,
    pub models: Vec<String>,
    pub problem: Option<Problem>,
}

impl Offered {
    /// The question is on its way.
    pub fn asked(provider: &str) -> Self {
        Self { provider: provider.to_owned(), waiting: true, ..Self::default() }
    }

    /// Takes the answer.
    pub fn take(&mut self, models: Result<Vec<String>, Problem>) {
        self.waiting = false;
        match models {
            Ok(models) => self.models = models,
            Err(problem) => self.problem = Some(problem),
        }
    }
}

/// The models to choose from: those of the catalogue, then what else the provider offers.
pub fn choices(state: &State, provider: &str, known: &[String]) -> Vec<String> {
    let mut all = known.to_vec();
    if state.offered.provider == provider {
        all.extend(state.offered.models.iter().filter(|model| !known.contains(model)).cloned());
    }
    all
}

/// The line below the model's name: ask the provider what it offers.
pub fn offered_ui(ui: &mut Ui, state: &State, provider: &str, actions: &mut Vec<Action>) {
    let mine = state.offered.provider == provider;
    ui.horizontal_wrapped(|ui| {
        if mine && state.offered.waiting {
            ui.add(egui::Spinner::new().size(16.0).color(palette(ui).accent));
            ui.label("Asking the provider…");
            return;
        }
        if plain_button(ui, "List models").on_hover_text("Ask the provider which models it offers now").clicked() {
            actions.push(Action::SettingsChanged);
            actions.push(Action::FetchModels);
        }
        if mine && state.offered.problem.is_none() {
            let count = words::count(state.offered.models.len(), "model", "models");
            soft(ui, &format!("The provider offers {count}."));
        }
    });
    if let Some(problem) = state.offered.problem.as_ref().filter(|_| mine) {
        icon_text(ui, Icon::Cross, palette(ui).bad, &problem.message);
        soft(ui, &problem.advice);
    }
}

const EFFORTS: [(&str, &str); 4] =
    [("", "As the model does"), ("low", "Short"), ("medium", "Medium"), ("high", "Long")];

/// Thinking, temperature, longest answer, proxy and budgets.
pub fn more_ui(ui: &mut Ui, state: &mut State, actions: &mut Vec<Action>) {
    ui.add_space(space::BASE);
    let model = &mut state.draft.model;
    field(ui, "Thinking", |ui| {
        let chosen =
            EFFORTS.iter().find(|(id, _)| *id == model.reasoning_effort).map_or(EFFORTS[0].1, |(_, name)| name);
        let response = combo("effort", chosen, 200.0).show_ui(ui, |ui| {
            for (id, name) in EFFORTS {
                if ui.selectable_label(model.reasoning_effort == id, name).clicked() && model.reasoning_effort != id {
                    model.reasoning_effort = id.to_owned();
                    actions.push(Action::SettingsChanged);
                }
            }
        });
        response.response.accessible_name("How long to think");
    });
    field(ui, "Temperature", |ui| {
        optional_ui(ui, &mut model.temperature, 0.2, ("Set the temperature", "Temperature"), actions, |value| {
            egui::DragValue::new(value).range(0.0..=2.0).speed(0.01).max_decimals(2)
        });
    });
    field(ui, "Longest answer", |ui| {
        let names = ("Limit the answer", "Longest answer in tokens");
        optional_ui(ui, &mut model.max_output, 8_000, names, actions, |value| {
            egui::DragValue::new(value).range(1..=1_000_000).suffix(" tokens")
        });
    });
    field(ui, "Proxy", |ui| {
        let width = ui.available_width().min(420.0);
        text_ui(ui, &mut model.proxy, "Address of a proxy", "As the system says", width, actions);
        small(ui, "Servers on this computer are never asked through a proxy.");
    });
    field(ui, "Budget", |ui| {
        let names = ("For a conversation", "Budget for a conversation in US dollars");
        optional_ui(ui, &mut model.budget_conversation_usd, 1.0, names, actions, dollars);
        let names = ("For a month", "Budget for a month in US dollars");
        optional_ui(ui, &mut model.budget_month_usd, 20.0, names, actions, dollars);
        small(ui, "You are asked before a budget is exceeded.");
        small(ui, &month_line(&state.month));
    });
}

/// What the month has cost so far, in one line that hides nothing.
fn month_line(month: &SpendingTotal) -> String {
    let calls = usize::try_from(month.calls).unwrap_or(usize::MAX);
    let usage = UsageTotal { calls: month.calls, estimated: month.estimated, ..UsageTotal::default() };
    let cost = match month.calls {
        0 => return "This month no model was asked.".to_owned(),
        all if all == month.unknown => "cost unknown".to_owned(),
        _ => words::cost(&usage, Some(month.cost_usd)),
    };
    let rest = match month.unknown {
        0 => String::new(),
        all if all == month.calls => String::new(),
        unknown => format!(", and {unknown} whose cost is unknown"),
    };
    format!("This month so far: {cost} for {}{rest}.", words::count(calls, "call", "calls"))
}

fn dollars(value: &mut f64) -> egui::DragValue<'_> {
    egui::DragValue::new(value).range(0.0..=100_000.0).speed(0.05).max_decimals(2).prefix("$")
}

/// A number that may be left to the provider: a tick (by the first name), and the number (by the second) beside it.
fn optional_ui<T: egui::emath::Numeric>(
    ui: &mut Ui,
    number: &mut Option<T>,
    start: T,
    (tick, name): (&str, &str),
    actions: &mut Vec<Action>,
    value: impl Fn(&mut T) -> egui::DragValue<'_>,
) {
    ui.horizontal(|ui| {
        let mut on = number.is_some();
        if ui.checkbox(&mut on, tick).changed() {
            *number = on.then_some(start);
            actions.push(Action::SettingsChanged);
        }
        if let Some(number) = number {
            number_ui(ui, value(number), name, actions);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sum in which something is missing must not look whole, and no call is not the same as a free one.
    #[test]
    fn the_month_is_told_honestly() {
        let month = |calls, unknown, cost_usd| SpendingTotal { calls, unknown, cost_usd, ..SpendingTotal::default() };
        assert_eq!(month_line(&month(0, 0, 0.0)), "This month no model was asked.");
        assert_eq!(month_line(&month(3, 0, 1.5)), "This month so far: $1.50 for 3 calls.");
        assert_eq!(month_line(&month(3, 3, 0.0)), "This month so far: cost unknown for 3 calls.");
        assert_eq!(month_line(&month(3, 1, 1.5)), "This month so far: $1.50 for 3 calls, and 1 whose cost is unknown.");
        let about = SpendingTotal { estimated: true, ..month(1, 0, 1.5) };
        assert!(month_line(&about).contains("≈$1.50"));
    }
}
