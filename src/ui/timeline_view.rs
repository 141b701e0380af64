//! The scrolling list of cards. Only cards near the visible part are laid out; the heights of the others are known from
//! the last time they were shown. A card that was never shown is measured a few at a time, so that opening a long
//! conversation does not stop the window.

use std::collections::HashMap;

use egui::{Rect, ScrollArea, Ui, UiBuilder, pos2, vec2};

use super::cards::{self, CardView};
use super::icons::{self, Icon};
use super::markdown::Markdown;
use super::pictures::Pictures;
use super::state::{Action, SettingsTab, State};
use super::timeline::Card;
use super::tokens::{self, font, palette, size, space};
use super::widgets::{plain_button, primary_button, soft};

/// So many points of the list below the visible part make the way back to the end worth a button.
const AWAY: f32 = 80.0;
/// Cards that were never laid out and are not visible, measured per frame.
const MEASURED_PER_FRAME: usize = 12;

/// Four requests that work right away, shown while a conversation is empty.
pub const EXAMPLES: [&str; 4] = [
    "Load the sample chest CT",
    "Segment the bone and show it in 3D",
    "How large is the bone segment in ml?",
    "Show the chest CT with volume rendering",
];

/// Heights of cards at one width.
#[derive(Default)]
pub struct Heights {
    width: f32,
    generation: u64,
    known: HashMap<i64, (u64, f32)>,
    /// Frames in which the list does not keep to its end, because a card is being opened or closed.
    hold: u8,
}

impl Heights {
    fn prepare(&mut self, width: f32, generation: u64) {
        if (self.width - width).abs() > 0.5 || self.generation != generation {
            self.known.clear();
            self.width = width;
            self.generation = generation;
        }
    }
}

/// Shows the conversation.
pub fn timeline_ui(
    ui: &mut Ui,
    state: &mut State,
    heights: &mut Heights,
    markdown: &mut Markdown,
    pictures: &mut Pictures,
    actions: &mut Vec<Action>,
) {
    if state.timeline.cards.is_empty() && state.sending.is_none() {
        ScrollArea::vertical().auto_shrink(false).show(ui, |ui| empty_ui(ui, state, actions));
        return;
    }
    let State {
        timeline,
        opened,
        edited_code,
        now_ms,
        generation,
        current,
        to_newest,
        focus_composer,
        slicer,
        slicers,
        sending,
        ..
    } = state;
    let follow = std::mem::take(to_newest);
    let mut view = CardView {
        opened,
        edited: edited_code,
        markdown,
        pictures,
        actions,
        toggled: false,
        running: sending.is_some() || timeline.running(),
        connected: slicer.as_ref().is_some_and(|status| status.connected),
        can_launch: slicers.can_launch(),
        undoable: timeline.undoable_run().map(str::to_owned),
        now_ms: *now_ms,
        last_turn: timeline.cards.last().map_or(0, |card| card.turn),
    };
    let area = ScrollArea::vertical().id_salt(current.as_deref()).auto_shrink(false);
    // A card that is opened grows downwards, from where it was pressed.
    let area = area.stick_to_bottom(heights.hold == 0);
    heights.hold = heights.hold.saturating_sub(1);
    let shown = area.show_viewport(ui, |ui, visible| {
        let full = ui.available_width();
        let side = if full < 500.0 { space::WIDE } else { space::HUGE };
        let width = (full - 2.0 * side).min(size::COLUMN);
        let left = ui.max_rect().left() + ((full - width) / 2.0).max(side);
        heights.prepare(width, *generation);
        let place = Place { left, width, visible };
        let mut end = list_ui(ui, &timeline.cards, place, heights, &mut view);
        if let Some(sending) = sending {
            // Where its card will stand, so that nothing jumps when the turn begins.
            let gap = if timeline.cards.is_empty() { space::BASE } else { cards::GAP_ABOVE_TURN };
            let above = end.translate(vec2(0.0, gap - space::WIDE));
            end = sending_ui(ui, &sending.text, place, above, &mut view);
        }
        if follow {
            let animation = egui::style::ScrollAnimation::none();
            ui.scroll_to_rect_animation(end, Some(egui::Align::Max), animation);
            ui.ctx().request_repaint();
        }
    });
    if view.toggled {
        heights.hold = 2;
    }
    let below = shown.content_size.y - shown.state.clamped_offset().y - shown.inner_rect.height();
    if below > AWAY && newest_button_ui(ui, shown.inner_rect, timeline.running()) {
        *to_newest = true;
        *focus_composer = true;
    }
}

/// The way back to the end, for a person who reads above. Returns true when it was pressed.
fn newest_button_ui(ui: &mut Ui, view: Rect, running: bool) -> bool {
    let p = palette(ui);
    let (text, name) = if running {
        ("Newest, still running", "Go to the newest, still running")
    } else {
        ("Newest", "Go to the newest")
    };
    let colour = if running { p.accent } else { p.text };
    let font = egui::FontId::proportional(font::BODY);
    let galley = ui.painter().layout_no_wrap(text.to_owned(), font, p.text);
    let extent = vec2(galley.size().x + 40.0, size::ROW);
    let rect = Rect::from_center_size(pos2(view.center().x, view.bottom() - extent.y / 2.0 - space::BASE), extent);
    let response = ui.interact(rect, egui::Id::unique("newest"), egui::Sense::click());
    let enabled = ui.is_enabled();
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, enabled, name));
    let warm = response.hovered() || response.has_focus();
    let line =
        if response.has_focus() { egui::Stroke::new(1.5, p.accent) } else { egui::Stroke::new(1.0, p.line_strong) };
    ui.painter().rect(rect, rect.height() / 2.0, if warm { p.hover } else { p.card }, line, egui::StrokeKind::Inside);
    let slot = Rect::from_min_size(rect.min + vec2(space::BASE, 0.0), vec2(size::ICON, rect.height()));
    icons::paint(ui.painter(), Icon::ChevronDown, slot, 11.0, colour);
    ui.painter().galley(pos2(slot.right() + space::HALF, rect.center().y - galley.size().y / 2.0), galley, p.text);
    response.on_hover_cursor(egui::CursorIcon::PointingHand).clicked()
}

#[derive(Clone, Copy)]
struct Place {
    left: f32,
    width: f32,
    /// The visible part, in points from the top of the list.
    visible: Rect,
}

/// Lays out what is near; returns the line below the last card.
fn list_ui(ui: &mut Ui, cards: &[Card], place: Place, heights: &mut Heights, view: &mut CardView<'_>) -> Rect {
    let top = ui.max_rect().top();
    let near = place.visible.expand2(vec2(0.0, 200.0)).y_range();
    let mut y = space::SMALL;
    let mut budget = MEASURED_PER_FRAME;
    let mut unmeasured = false;
    // What is above the visible part keeps its guess: were it measured, the text would move under the eye.
    for (place_in_list, card) in cards.iter().enumerate() {
        y += if place_in_list == 0 { space::BASE } else { cards::gap_above(card) };
        let known = heights.known.get(&card.id).copied();
        let height = known.map_or_else(|| cards::guessed_height(card, place.width), |(_, height)| height);
        // Code that is being edited keeps the keyboard, also while the list below it shrinks.
        let edited = view.edited.contains_key(&card.id);
        let in_sight = edited || egui::Rangef::new(y, y + height).intersects(near);
        let stale = known.is_none_or(|(revision, _)| revision != card.revision);
        if !in_sight && (!stale || budget == 0) {
            unmeasured |= stale;
            y += height;
            continue;
        }
        if !in_sight {
            budget -= 1;
        }
        let rect = Rect::from_min_size(pos2(place.left, top + y), vec2(place.width, f32::INFINITY));
        let builder = UiBuilder::new().max_rect(rect).id_salt(card.id);
        let response = ui.scope_builder(builder, |ui| {
            ui.spacing_mut().item_spacing.y = space::SMALL;
            ui.set_width(place.width);
            cards::card_ui(ui, card, view);
        });
        let measured = response.response.rect.height();
        heights.known.insert(card.id, (card.revision, measured));
        y += measured;
    }
    ui.allocate_rect(
        Rect::from_min_size(pos2(place.left, top), vec2(place.width, y + space::WIDE)),
        egui::Sense::hover(),
    );
    if unmeasured {
        ui.ctx().request_repaint();
    }
    Rect::from_min_size(pos2(place.left, top + y + space::WIDE), vec2(place.width, 0.0))
}

/// A message whose turn has not begun, as it will stand there. Returns the line below it.
fn sending_ui(ui: &mut Ui, text: &str, place: Place, above: Rect, view: &mut CardView<'_>) -> Rect {
    let rect = Rect::from_min_size(above.min, vec2(place.width, f32::INFINITY));
    let builder = UiBuilder::new().max_rect(rect).id_salt("sending");
    let shown = ui.scope_builder(builder, |ui| {
        ui.set_width(place.width);
        cards::user_ui(ui, text, view);
    });
    let end = shown.response.rect.bottom() + space::WIDE;
    Rect::from_min_size(pos2(place.left, end), vec2(place.width, 0.0))
}

/// First sight: what is ready, and requests that work.
fn empty_ui(ui: &mut Ui, state: &State, actions: &mut Vec<Action>) {
    let p = palette(ui);
    let full = ui.available_width();
    let side = if full < 500.0 { space::WIDE } else { space::HUGE };
    let width = (full - 2.0 * side).min(560.0);
    let left = ui.max_rect().left() + (full - width) / 2.0;
    let free = (ui.clip_rect().height() - 400.0).max(0.0) * 0.35 + space::LARGE;
    let rect = Rect::from_min_size(pos2(left, ui.max_rect().top() + free), vec2(width, f32::INFINITY));
    ui.scope_builder(UiBuilder::new().max_rect(rect), |ui| {
        ui.set_width(width);
        ui.label(
            egui::RichText::new("What shall we do in Slicer?")
                .font(tokens::strong_font(font::HEADING))
                .color(p.text_strong),
        );
        soft(ui, "Ask in plain words. You see the plan, the code and what changed, and every run can be undone.");
        ui.add_space(space::BASE);
        for part in readiness(state) {
            readiness_ui(ui, &part, actions);
            ui.add_space(space::TINY);
        }
        ui.add_space(space::LARGE);
        soft(ui, "Try one of these");
        for example in EXAMPLES {
            if example_ui(ui, example).clicked() {
                actions.push(Action::SendText(example.to_owned()));
            }
        }
        ui.add_space(space::LARGE);
    });
}

fn example_ui(ui: &mut Ui, text: &str) -> egui::Response {
    let p = palette(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 38.0), egui::Sense::click());
    let enabled = ui.is_enabled();
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, enabled, text));
    let warm = response.hovered() || response.has_focus();
    let corner = egui::CornerRadius::same(tokens::radius::CARD);
    let line = if response.has_focus() {
        egui::Stroke::new(1.5, p.accent)
    } else {
        egui::Stroke::new(1.0, if warm { p.line_strong } else { p.line })
    };
    ui.painter().rect(rect, corner, if warm { p.hover } else { p.card }, line, egui::StrokeKind::Inside);
    let arrow = Rect::from_min_max(pos2(rect.right() - 34.0, rect.top()), rect.max);
    icons::paint(ui.painter(), Icon::Send, arrow, 13.0, if warm { p.accent } else { p.text_soft });
    let inner = Rect::from_min_max(pos2(rect.left() + 14.0, rect.top()), pos2(arrow.left(), rect.bottom()));
    super::widgets::elided(ui, egui::RichText::new(text).color(p.text), inner, p.text);
    response.on_hover_cursor(egui::CursorIcon::PointingHand)
}

/// What to do when no Slicer answers. The cause in detail is in the menu of the Slicer chip.
pub const NO_SLICER: &str = "Not running yet. Start 3D Slicer and, in its Web Server module, tick “Slicer API exec” and press \
                             “Start server”. No Slicer here? Use the practice Slicer.";

enum Readiness {
    Good,
    Waiting,
    Missing,
}

struct Part {
    what: &'static str,
    state: Readiness,
    text: String,
    button: Option<(&'static str, Action)>,
}

/// Slicer, model and knowledge, each with its state in words.
fn readiness(state: &State) -> [Part; 3] {
    let practice = || Some(("Start the practice Slicer", Action::StartPractice));
    let (slicer_state, slicer_text, slicer_button) = match (&state.progress, &state.slicer) {
        (Some(progress), _) => (Readiness::Waiting, super::words::progress(progress), None),
        (None, None) => (Readiness::Waiting, "Looking for a running Slicer…".into(), None),
        (None, Some(status)) if status.connected => {
            let nodes = super::words::count(status.nodes, "node", "nodes");
            (Readiness::Good, format!("Connected to {} · {nodes}", slicer_name(status)), None)
        }
        (None, Some(status)) => match state.slicers.ready_elsewhere(&status.url) {
            Some(one) => {
                let text = format!("{} runs at {}.", running_name(one), one.url);
                (Readiness::Missing, text, Some(("Connect", Action::Connect(one.url.clone()))))
            }
            None if state.slicers.can_launch() => {
                let version = state
                    .slicers
                    .version_to_launch(&state.settings.slicer.executable)
                    .map(|version| format!(" {version}"))
                    .unwrap_or_default();
                let text = format!("Slicer{version} is installed, but not connected.");
                (Readiness::Missing, text, Some(("Launch Slicer", Action::LaunchSlicer)))
            }
            None => (Readiness::Missing, NO_SLICER.into(), practice()),
        },
    };
    let recipes = state.settings.model.provider == "recipes";
    let (model_text, model_button) = if recipes {
        let text = "Built-in recipes are ready. Set up a provider for free-form requests.";
        (text.to_owned(), Some(("Set up a model", Action::OpenSettings(SettingsTab::Model))))
    } else {
        (model_name(state), None)
    };
    [
        Part { what: "Slicer", state: slicer_state, text: slicer_text, button: slicer_button },
        Part { what: "Model", state: Readiness::Good, text: model_text, button: model_button },
        Part { what: "Knowledge", state: Readiness::Good, text: "Built-in recipes are ready.".into(), button: None },
    ]
}

/// "Slicer 5.8.1" or "the practice Slicer 5.13".
pub fn slicer_name(status: &crate::engine::SlicerStatus) -> String {
    let version = status.version.trim_end_matches("-practice");
    if status.practice { format!("practice Slicer {version}") } else { format!("Slicer {version}") }
}

/// The same of one that runs on this computer.
pub fn running_name(slicer: &crate::engine::RunningSlicer) -> String {
    let version = slicer.version.trim_end_matches("-practice");
    if slicer.practice { format!("Practice Slicer {version}") } else { format!("Slicer {version}") }
}

/// Provider and model as the chip shows them.
pub fn model_name(state: &State) -> String {
    let settings = &state.settings.model;
    let provider = state.provider().map_or(settings.provider.as_str(), |provider| provider.name.as_str());
    if settings.model.is_empty() { provider.to_owned() } else { format!("{provider} · {}", settings.model) }
}

fn readiness_ui(ui: &mut Ui, part: &Part, actions: &mut Vec<Action>) {
    let p = palette(ui);
    let (icon, colour) = match part.state {
        Readiness::Good => (Icon::Check, p.ok),
        Readiness::Waiting => (Icon::Thinking, p.text_soft),
        Readiness::Missing => (Icon::Warning, p.warn),
    };
    ui.horizontal_top(|ui| {
        let (rect, _) = ui.allocate_exact_size(vec2(size::ICON, 20.0), egui::Sense::hover());
        icons::paint(ui.painter(), icon, rect, 14.0, colour);
        ui.allocate_ui(vec2(80.0, 20.0), |ui| {
            ui.set_width(80.0);
            ui.label(egui::RichText::new(part.what).color(p.text_strong).font(tokens::strong_font(font::BODY)));
        });
        ui.vertical(|ui| {
            soft(ui, &part.text);
            if let Some((label, action)) = &part.button {
                // What is missing is the next thing to do.
                let missing = matches!(part.state, Readiness::Missing);
                let button = if missing { primary_button(ui, label) } else { plain_button(ui, label) };
                if button.clicked() {
                    actions.push(action.clone());
                }
            }
        });
    });
}
