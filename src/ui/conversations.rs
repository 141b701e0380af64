//! The list of conversations: new, search, rename, pin, delete.

use egui::{Key, Popup, Rect, RichText, ScrollArea, Sense, TextEdit, Ui, pos2, vec2};

use crate::engine::ConversationSummary;

use super::icons::{self, Icon};
use super::state::{Action, State};
use super::tokens::{self, font, palette, radius, size, space};
use super::widgets::{elided, focus_ring, icon_button, search_ui, sized_icon_button, small, soft};
use super::words;

/// Height of an entry in points.
const ENTRY: f32 = 44.0;

pub fn conversations_ui(ui: &mut Ui, state: &mut State, actions: &mut Vec<Action>) {
    ui.spacing_mut().item_spacing.y = space::SMALL;
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = space::SMALL;
        let width = ui.available_width() - size::ROW - space::SMALL;
        ui.allocate_ui(vec2(width, size::ROW), |ui| {
            let response = search_ui(ui, &mut state.search, "Search conversations", "Search");
            if response.changed() {
                actions.push(Action::SearchChanged);
            }
            if std::mem::take(&mut state.focus_search) {
                response.request_focus();
            }
            response.on_hover_text("Search in all conversations (Ctrl+K)");
        });
        if icon_button(ui, Icon::Plus, "New conversation", "New conversation (Ctrl+N)").clicked() {
            actions.push(Action::NewConversation);
        }
    });
    ui.add_space(space::SMALL);
    let listed: Vec<ConversationSummary> = state.listed().into_iter().cloned().collect();
    if listed.is_empty() {
        let text =
            if state.search.trim().is_empty() { "Your conversations will be listed here." } else { "Nothing found." };
        soft(ui, text);
        return;
    }
    ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        ui.spacing_mut().item_spacing.y = space::TINY;
        let mut pinned = None;
        let any_pinned = listed.iter().any(|one| one.pinned);
        for one in &listed {
            if any_pinned && pinned != Some(one.pinned) {
                ui.add_space(space::SMALL);
                ui.horizontal(|ui| {
                    ui.spacing_mut().interact_size.y = 0.0;
                    ui.add_space(space::TINY);
                    small(ui, if one.pinned { "Pinned" } else { "Earlier" });
                });
                pinned = Some(one.pinned);
            }
            ui.push_id(&one.id, |ui| entry_ui(ui, one, state, actions));
        }
    });
}

fn entry_ui(ui: &mut Ui, one: &ConversationSummary, state: &mut State, actions: &mut Vec<Action>) {
    if let Some((id, title)) = &mut state.renaming
        && *id == one.id
    {
        // As high as the entry that it stands for, so that the list does not move.
        let edit = TextEdit::singleline(title).desired_width(f32::INFINITY).align(egui::Align2::LEFT_CENTER);
        let response = ui.add(edit.min_size(vec2(0.0, ENTRY))).accessible_name("New title of the conversation");
        if response.lost_focus() {
            if ui.input(|input| input.key_pressed(Key::Escape)) {
                state.renaming = None;
            } else {
                actions.push(Action::Rename(one.id.clone(), title.clone()));
            }
        } else {
            response.request_focus();
        }
        return;
    }
    let p = palette(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), ENTRY), Sense::click());
    let chosen = state.current.as_deref() == Some(&one.id);
    let title = if one.title.is_empty() { "New conversation" } else { &one.title };
    response.widget_info(|| egui::WidgetInfo::selected(egui::Role::Button, true, chosen, title));
    let pointed = ui.rect_contains_pointer(rect);
    let menu_id = response.id.with("menu");
    let menu_open = Popup::is_id_open(ui.ctx(), menu_id);
    if ui.is_rect_visible(rect) {
        if chosen || pointed || menu_open {
            let fill = if chosen { p.chosen } else { p.hover };
            ui.painter().rect_filled(rect, egui::CornerRadius::same(radius::CONTROL), fill);
        }
        focus_ring(ui, &response);
        let inner = rect.shrink2(vec2(space::BASE, space::SMALL));
        let tools = if pointed || chosen || menu_open || one.pinned { 24.0 } else { 0.0 };
        let top = Rect::from_min_max(inner.min, pos2(inner.right() - tools, inner.center().y + 1.0));
        elided(ui, RichText::new(title).color(if chosen { p.text_strong } else { p.text }), top, p.text);
        let bottom = Rect::from_min_max(pos2(inner.left(), inner.center().y + 1.0), inner.max);
        let turns = words::count(one.turns as usize, "message", "messages");
        let when = format!("{} · {turns}", words::ago(one.updated_ms, state.now_ms));
        elided(ui, RichText::new(when).size(font::SMALL).color(p.text_soft), bottom, p.text_soft);
        if one.pinned && !pointed && !menu_open && !chosen {
            let slot = Rect::from_min_size(pos2(inner.right() - 16.0, inner.top()), vec2(16.0, 18.0));
            icons::paint(ui.painter(), Icon::Pin, slot, 12.0, p.text_soft);
        }
    }
    if pointed || chosen || menu_open {
        let slot = Rect::from_min_size(pos2(rect.right() - 28.0, rect.top() + space::SMALL), vec2(24.0, 24.0));
        let builder = egui::UiBuilder::new().max_rect(slot);
        let name = format!("Actions for {title}");
        let more =
            ui.scope_builder(builder, |ui| sized_icon_button(ui, Icon::Thinking, &name, "Rename, pin, delete", 24.0));
        Popup::menu(&more.inner).id(menu_id).show(|ui| entry_menu_ui(ui, one, state, actions));
    }
    response.context_menu(|ui| entry_menu_ui(ui, one, state, actions));
    if response.double_clicked() {
        state.renaming = Some((one.id.clone(), one.title.clone()));
    } else if response.clicked() {
        actions.push(Action::Open(one.id.clone()));
    }
}

fn entry_menu_ui(ui: &mut Ui, one: &ConversationSummary, state: &mut State, actions: &mut Vec<Action>) {
    ui.set_min_width(130.0);
    if ui.button("Rename").clicked() {
        state.renaming = Some((one.id.clone(), one.title.clone()));
        ui.close();
    }
    if ui.button(if one.pinned { "Unpin" } else { "Pin" }).clicked() {
        actions.push(Action::Pin(one.id.clone(), !one.pinned));
        ui.close();
    }
    let delete = RichText::new("Delete").color(palette(ui).bad);
    if ui.button(delete).on_hover_text("Can be undone until the program is started again").clicked() {
        actions.push(Action::Delete(one.id.clone()));
        ui.close();
    }
}

/// The keyboard needs a frame around the list when it lies over the middle.
pub fn frame(ui: &Ui) -> egui::Frame {
    egui::Frame::new().fill(palette(ui).bar).inner_margin(egui::Margin::same(8)).stroke((0.0, tokens::CLEAR))
}
