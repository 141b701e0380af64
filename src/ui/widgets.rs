//! The few controls that all views share. Each has a name that assistive technology and tests can read, shows the focus,
//! and takes its looks from the tokens.

use egui::{
    Align2, Button, Color32, CornerRadius, FontSelection, Frame, Margin, Rect, Response, RichText, Role, Sense, Stroke,
    StrokeKind, TextStyle, TextWrapMode, Ui, Vec2, WidgetInfo, WidgetText, pos2, vec2,
};

use super::icons::{self, Icon};
use super::tokens::{self, font, palette, radius, size, space};

/// A square button that shows only an icon. `name` is its accessible name, `hint` its tooltip.
pub fn icon_button(ui: &mut Ui, icon: Icon, name: &str, hint: &str) -> Response {
    sized_icon_button(ui, icon, name, hint, size::ROW)
}

/// The same, `side` points wide.
pub fn sized_icon_button(ui: &mut Ui, icon: Icon, name: &str, hint: &str, side: f32) -> Response {
    let (rect, response) = ui.allocate_exact_size(Vec2::splat(side), Sense::click());
    let enabled = ui.is_enabled();
    response.widget_info(|| WidgetInfo::labeled(Role::Button, enabled, name));
    if ui.is_rect_visible(rect) {
        let p = palette(ui);
        let warm = response.hovered() || response.has_focus();
        if warm {
            ui.painter().rect_filled(rect, CornerRadius::same(radius::CONTROL), p.hover);
        }
        focus_ring(ui, &response);
        let colour = if warm { p.text_strong } else { p.text_soft };
        icons::paint(ui.painter(), icon, rect, size::ICON.min(side - 8.0), colour);
    }
    response.on_hover_text(hint)
}

/// Shows where the keyboard is.
pub fn focus_ring(ui: &Ui, response: &Response) {
    if response.has_focus() {
        let stroke = Stroke::new(1.5, palette(ui).accent);
        ui.painter().rect_stroke(response.rect, CornerRadius::same(radius::CONTROL), stroke, StrokeKind::Inside);
    }
}

/// The one button that is meant to be pressed.
pub fn primary_button(ui: &mut Ui, text: &str) -> Response {
    let p = palette(ui);
    let label = RichText::new(text).font(tokens::strong_font(font::BODY)).color(p.on_accent);
    let response = ui.add(Button::new(label).fill(p.accent).stroke(Stroke::NONE));
    ring_outside(ui, &response);
    response
}

/// A button that stands back.
pub fn plain_button(ui: &mut Ui, text: &str) -> Response {
    let response = ui.add(Button::new(text));
    focus_ring(ui, &response);
    response
}

/// A button that takes something away.
pub fn danger_button(ui: &mut Ui, text: &str) -> Response {
    let p = palette(ui);
    let response = ui.add(Button::new(RichText::new(text).color(p.bad)));
    focus_ring(ui, &response);
    response
}

fn ring_outside(ui: &Ui, response: &Response) {
    if response.has_focus() || response.hovered() {
        let p = palette(ui);
        let colour = if response.has_focus() { p.text_strong } else { p.accent_hover };
        let corner = CornerRadius::same(radius::CONTROL);
        ui.painter().rect_stroke(response.rect, corner, Stroke::new(1.5, colour), StrokeKind::Outside);
    }
}

/// A text of one line that is cut with "…" where the space ends. Returns its width.
pub fn elided(ui: &Ui, text: impl Into<WidgetText>, rect: Rect, fallback: Color32) -> f32 {
    let font = FontSelection::Style(TextStyle::Body);
    let galley = text.into().into_galley(ui, Some(TextWrapMode::Truncate), rect.width().max(0.0), font);
    let width = galley.size().x;
    let place = pos2(rect.left(), rect.center().y - galley.size().y / 2.0);
    ui.painter().galley(place, galley, fallback);
    width
}

/// What a one-line card shows.
pub struct Line<'a> {
    pub icon: Icon,
    pub colour: Color32,
    pub title: &'a str,
    pub detail: &'a str,
    /// Right-hand side, for example a duration.
    pub meta: &'a str,
    /// `None`: there is nothing to open.
    pub open: Option<bool>,
}

/// A card in one line: icon, title, detail, and on the right a figure and the arrow that opens it. `reserve` points are
/// kept free at the right end for a button.
pub fn line_ui(ui: &mut Ui, line: &Line<'_>, reserve: f32) -> Response {
    let width = ui.available_width() - reserve;
    let sense = if line.open.is_some() { Sense::click() } else { Sense::hover() };
    let (rect, response) = ui.allocate_exact_size(vec2(width, size::ROW), sense);
    let name = if line.detail.is_empty() { line.title.to_owned() } else { format!("{}: {}", line.title, line.detail) };
    let enabled = ui.is_enabled();
    response.widget_info(|| match line.open {
        Some(open) => WidgetInfo::selected(Role::Button, enabled, open, &name),
        None => WidgetInfo::labeled(Role::Label, enabled, &name),
    });
    if !ui.is_rect_visible(rect) {
        return response;
    }
    let p = palette(ui);
    if line.open.is_some() && (response.hovered() || response.has_focus()) {
        ui.painter().rect_filled(rect, CornerRadius::same(radius::CONTROL), p.hover);
    }
    focus_ring(ui, &response);
    let mut left = rect.left() + space::SMALL;
    let slot = Rect::from_min_size(pos2(left, rect.top()), vec2(size::ICON, rect.height()));
    icons::paint(ui.painter(), line.icon, slot, 14.0, line.colour);
    left = slot.right() + space::BASE;
    let mut right = rect.right() - space::SMALL;
    if let Some(open) = line.open {
        let arrow = Rect::from_min_max(pos2(right - 14.0, rect.top()), pos2(right, rect.bottom()));
        icons::paint(ui.painter(), if open { Icon::ChevronDown } else { Icon::ChevronRight }, arrow, 12.0, p.text_soft);
        right = arrow.left() - space::SMALL;
    }
    if !line.meta.is_empty() {
        let small = egui::FontId::proportional(font::SMALL);
        let drawn =
            ui.painter().text(pos2(right, rect.center().y), Align2::RIGHT_CENTER, line.meta, small, p.text_soft);
        right = drawn.left() - space::BASE;
    }
    let title = RichText::new(line.title).color(p.text);
    let title_rect = Rect::from_min_max(pos2(left, rect.top()), pos2(right, rect.bottom()));
    left += elided(ui, title, title_rect, p.text) + space::BASE;
    if right - left > 24.0 {
        let detail_rect = Rect::from_min_max(pos2(left, rect.top()), pos2(right, rect.bottom()));
        let detail = line.detail.lines().next().unwrap_or_default();
        elided(ui, RichText::new(detail).color(p.text_soft), detail_rect, p.text_soft);
    }
    if line.open.is_some() { response.on_hover_cursor(egui::CursorIcon::PointingHand) } else { response }
}

/// What an opened line holds: set in under its title, with a rule at the left.
pub fn inset_ui<R>(ui: &mut Ui, add: impl FnOnce(&mut Ui) -> R) -> R {
    let p = palette(ui);
    let inner = Frame::new()
        .inner_margin(Margin { left: 18, right: 4, top: 2, bottom: 6 })
        .outer_margin(Margin { left: 11, right: 0, top: 0, bottom: 2 })
        .show(ui, |ui| {
            ui.set_width(ui.available_width());
            ui.spacing_mut().item_spacing.y = space::SMALL;
            add(ui)
        });
    let rect = inner.response.rect;
    ui.painter().vline(rect.left() + 12.0, rect.top() + 2.0..=rect.bottom() - 4.0, Stroke::new(1.0, p.line));
    inner.inner
}

/// A card with a ground and an edge of its own.
pub fn card_frame(fill: Color32, line: Color32) -> Frame {
    Frame::new()
        .fill(fill)
        .stroke(Stroke::new(1.0, line))
        .corner_radius(CornerRadius::same(radius::CARD))
        .inner_margin(Margin::symmetric(12, 10))
}

/// Small soft text that wraps.
pub fn soft(ui: &mut Ui, text: &str) -> Response {
    let colour = palette(ui).text_soft;
    ui.add(egui::Label::new(RichText::new(text).color(colour)).wrap())
}

/// Small soft text that wraps, in the small size.
pub fn small(ui: &mut Ui, text: &str) -> Response {
    let colour = palette(ui).text_soft;
    ui.add(egui::Label::new(RichText::new(text).size(font::SMALL).color(colour)).wrap())
}

/// A semibold line.
pub fn strong(ui: &mut Ui, text: &str) -> Response {
    let p = palette(ui);
    ui.add(egui::Label::new(RichText::new(text).font(tokens::strong_font(font::BODY)).color(p.text_strong)).wrap())
}

/// An icon with a line of text beside it that wraps.
pub fn icon_text(ui: &mut Ui, icon: Icon, colour: Color32, text: &str) {
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = space::HALF;
        let height = ui.text_style_height(&TextStyle::Body);
        let (rect, _) = ui.allocate_exact_size(vec2(size::ICON, height), Sense::hover());
        icons::paint(ui.painter(), icon, rect, 13.0, colour);
        ui.add(egui::Label::new(text).wrap());
    });
}

/// A rounded chip that opens a menu: a state dot or nothing, a text, an arrow.
pub fn chip(ui: &mut Ui, dot: Option<Color32>, text: &str, name: &str, limit: f32) -> Response {
    let p = palette(ui);
    let font = FontSelection::Style(TextStyle::Body);
    let room = (limit - 46.0).max(20.0);
    let galley = WidgetText::from(RichText::new(text)).into_galley(ui, Some(TextWrapMode::Truncate), room, font);
    let lead = if dot.is_some() { 22.0 } else { 10.0 };
    let (rect, response) = ui.allocate_exact_size(vec2(lead + galley.size().x + 24.0, size::ROW), Sense::click());
    let enabled = ui.is_enabled();
    response.widget_info(|| WidgetInfo::labeled(Role::Button, enabled, name));
    let warm = response.hovered() || response.has_focus();
    let corner = CornerRadius::same(14);
    ui.painter().rect(rect, corner, if warm { p.hover } else { p.card }, Stroke::new(1.0, p.line), StrokeKind::Inside);
    if response.has_focus() {
        ui.painter().rect_stroke(rect, corner, Stroke::new(1.5, p.accent), StrokeKind::Inside);
    }
    if let Some(colour) = dot {
        ui.painter().circle_filled(pos2(rect.left() + 14.0, rect.center().y), 3.5, colour);
    }
    let place = pos2(rect.left() + lead, rect.center().y - galley.size().y / 2.0);
    ui.painter().galley(place, galley, p.text);
    let arrow = Rect::from_center_size(pos2(rect.right() - 14.0, rect.center().y), Vec2::splat(12.0));
    icons::paint(ui.painter(), Icon::ChevronDown, arrow, 10.0, p.text_soft);
    response
}

/// A search field. Returns its response.
pub fn search_ui(ui: &mut Ui, text: &mut String, name: &str, hint: &str) -> Response {
    let hint = hint.to_owned();
    let field = egui::TextEdit::singleline(text).hint_text(hint).desired_width(f32::INFINITY).margin(Margin {
        left: 28,
        right: 8,
        top: 5,
        bottom: 5,
    });
    let response = ui.add(field).accessible_name(name);
    let slot = Rect::from_min_size(response.rect.min, vec2(28.0, response.rect.height()));
    icons::paint(ui.painter(), Icon::Search, slot, 13.0, palette(ui).text_soft);
    response
}

/// A choice between names, with our own arrow.
pub fn combo<'a>(salt: &'static str, chosen: &str, width: f32) -> egui::ComboBox<'a> {
    egui::ComboBox::from_id_salt(salt).selected_text(chosen.to_owned()).width(width).truncate().icon(
        |ui, rect, _visuals, _open| {
            icons::paint(ui.painter(), Icon::ChevronDown, rect, 11.0, palette(ui).text_soft);
        },
    )
}
