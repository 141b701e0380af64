//! The right pane: the newest pictures, and the nodes of the scene.

use std::collections::BTreeMap;

use egui::{Button, Label, Rect, RichText, ScrollArea, Sense, TextStyle, Ui, Vec2, pos2, vec2};

use crate::engine::{NodeSummary, SceneDiff, SceneSnapshot};

use super::icons::{self, Icon};
use super::pictures::{Picture, Pictures};
use super::state::{Action, PaneTab, State, ViewChoice};
use super::tokens::{self, font, palette, radius, size, space};
use super::widgets::{combo, icon_button, search_ui, small, soft, strong};
use super::words;

/// How the picture is looked at: 1.0 fits the pane.
#[derive(Debug, Clone, Copy)]
pub struct Lens {
    zoom: f32,
    shift: Vec2,
}

impl Default for Lens {
    fn default() -> Self {
        Self { zoom: 1.0, shift: Vec2::ZERO }
    }
}

pub fn pane_ui(ui: &mut Ui, state: &mut State, lens: &mut Lens, pictures: &mut Pictures, actions: &mut Vec<Action>) {
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = space::SMALL;
        for (tab, name) in [(PaneTab::Screenshot, "Screenshot"), (PaneTab::Scene, "Scene")] {
            if ui.add(Button::selectable(state.pane_tab == tab, name)).clicked() {
                state.pane_tab = tab;
            }
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if icon_button(ui, Icon::Cross, "Close the pane", "Close the pane").clicked() {
                state.pane_over = false;
                state.pane_open = false;
            }
        });
    });
    ui.add_space(space::SMALL);
    match state.pane_tab {
        PaneTab::Screenshot => screenshot_tab_ui(ui, state, lens, pictures, actions),
        PaneTab::Scene => scene_tab_ui(ui, state, actions),
    }
}

const VIEWS: [(&str, ViewChoice); 5] = [
    ("Application", ViewChoice::Application),
    ("Red", ViewChoice::Slice("Red")),
    ("Yellow", ViewChoice::Slice("Yellow")),
    ("Green", ViewChoice::Slice("Green")),
    ("3D", ViewChoice::ThreeD(None)),
];

const SIDES: [(&str, Option<&str>); 7] = [
    ("As it is", None),
    ("From left", Some("L")),
    ("From right", Some("R")),
    ("From front", Some("A")),
    ("From behind", Some("P")),
    ("From below", Some("I")),
    ("From above", Some("S")),
];

fn screenshot_tab_ui(
    ui: &mut Ui,
    state: &mut State,
    lens: &mut Lens,
    pictures: &mut Pictures,
    actions: &mut Vec<Action>,
) {
    let before = (state.view, state.shown_picture);
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing.x = space::SMALL;
        view_choice_ui(ui, state);
        let connected = state.slicer.as_ref().is_some_and(|status| status.connected);
        let take = ui.add_enabled_ui(connected && !state.capturing, |ui| {
            icon_button(ui, Icon::Refresh, "Take a screenshot", "Take a screenshot of this view")
        });
        if take.inner.clicked() || (before.0 != state.view && connected) {
            actions.push(Action::Capture);
        }
        if state.shown_picture.is_some() {
            picture_tools_ui(ui, state, lens, actions);
        }
    });
    if before.1 != state.shown_picture {
        *lens = Lens::default();
    }
    let shown = state.shown_picture.and_then(|place| state.pictures.get(place)).cloned();
    let Some(shown) = shown else {
        empty_ui(
            ui,
            Icon::Camera,
            "No picture yet",
            "Choose a view above, or ask for something: each run brings its own picture.",
        );
        return;
    };
    if shown.request.is_empty() {
        small(ui, &shown.title);
    } else {
        let p = palette(ui);
        let request = RichText::new(format!("“{}”", shown.request)).color(p.text);
        ui.add(Label::new(request).truncate()).on_hover_text(&shown.request);
        small(ui, &shown.title);
    }
    let (rect, response) = ui.allocate_exact_size(ui.available_size(), Sense::click_and_drag());
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, &shown.title));
    match pictures.get(&shown.path) {
        Picture::Ready(texture) => zoomable_ui(ui, &texture, rect, &response, lens),
        Picture::Loading => icons::paint(ui.painter(), Icon::Camera, rect, 24.0, palette(ui).text_soft),
        Picture::Failed(why) => {
            ui.put(rect, Label::new(RichText::new(why).color(palette(ui).bad)).wrap());
        }
    }
}

fn view_choice_ui(ui: &mut Ui, state: &mut State) {
    let name = match state.view {
        ViewChoice::Application => "Application",
        ViewChoice::Slice(name) => name,
        ViewChoice::ThreeD(_) => "3D",
    };
    let response = combo("view", name, 96.0).show_ui(ui, |ui| {
        for (name, choice) in VIEWS {
            ui.selectable_value(&mut state.view, choice, name);
        }
    });
    response.response.accessible_name("View");
    if let ViewChoice::ThreeD(axis) = &mut state.view {
        let name = SIDES.iter().find(|(_, side)| side == axis).map_or("As it is", |(name, _)| name);
        let response = combo("axis", name, 96.0).show_ui(ui, |ui| {
            for (name, side) in SIDES {
                ui.selectable_value(axis, side, name);
            }
        });
        response.response.accessible_name("Side to look from");
    }
}

fn picture_tools_ui(ui: &mut Ui, state: &mut State, lens: &mut Lens, actions: &mut Vec<Action>) {
    if icon_button(ui, Icon::Fit, "Fit the picture", "Fit the picture into the pane (double click)").clicked() {
        *lens = Lens::default();
    }
    let place = state.shown_picture.unwrap_or_default();
    if let Some(picture) = state.pictures.get(place)
        && icon_button(ui, Icon::Copy, "Copy the file's path", "Copy the path of this file").clicked()
    {
        ui.copy_text(picture.path.clone());
        actions.push(Action::Copied("Path of the file"));
    }
    let many = state.pictures.len();
    if many > 1 {
        for (name, sign, next) in [
            ("Earlier picture", "‹", place.checked_sub(1)),
            ("Later picture", "›", Some(place + 1).filter(|next| *next < many)),
        ] {
            let response = ui.add_enabled(next.is_some(), Button::new(sign)).accessible_name(name);
            if response.on_hover_text(name).clicked() {
                state.shown_picture = next;
            }
        }
        ui.label(RichText::new(format!("{} of {many}", place + 1)).size(font::SMALL).color(palette(ui).text_soft));
    }
}

/// The picture under a lens: the wheel zooms at the pointer, dragging moves, a double click fits.
fn zoomable_ui(ui: &Ui, texture: &egui::TextureHandle, rect: Rect, response: &egui::Response, lens: &mut Lens) {
    let pixels = texture.size_vec2();
    let fit = (rect.size() / pixels).min_elem();
    if response.double_clicked() {
        *lens = Lens::default();
    }
    if response.dragged() {
        lens.shift += response.drag_delta();
    }
    if let Some(pointer) = response.hover_pos() {
        let (wheel, pinch) = ui.input(|input| (input.smooth_scroll_delta().y, input.zoom_delta()));
        let factor = pinch * (wheel / 200.0).exp();
        let new = (lens.zoom * factor).clamp(1.0, 20.0);
        let from_middle = pointer - rect.center() - lens.shift;
        lens.shift -= from_middle * (new / lens.zoom - 1.0);
        lens.zoom = new;
    }
    let shown = pixels * fit * lens.zoom;
    let slack = ((shown - rect.size()) / 2.0).max(Vec2::ZERO);
    lens.shift = lens.shift.clamp(-slack, slack);
    // A picture that is smaller than the pane hangs at the top, under its title.
    let middle =
        if lens.zoom <= 1.0 { pos2(rect.center().x, rect.top() + shown.y / 2.0) } else { rect.center() + lens.shift };
    let place = Rect::from_center_size(middle, shown);
    let painter = ui.painter_at(rect);
    if lens.zoom > 1.0 {
        painter.rect_filled(rect, 0.0, palette(ui).picture);
    }
    let whole = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
    painter.image(texture.id(), place, whole, tokens::UNTINTED);
}

/// A friendly word where there is nothing yet.
fn empty_ui(ui: &mut Ui, icon: Icon, title: &str, text: &str) {
    let p = palette(ui);
    ui.add_space((ui.available_height() * 0.25).min(120.0));
    ui.vertical_centered(|ui| {
        let (rect, _) = ui.allocate_exact_size(Vec2::splat(36.0), Sense::hover());
        icons::paint(ui.painter(), icon, rect, 28.0, p.line_strong);
        strong(ui, title);
        ui.allocate_ui(vec2(ui.available_width().min(280.0), 0.0), |ui| soft(ui, text));
    });
}

fn scene_tab_ui(ui: &mut Ui, state: &mut State, actions: &mut Vec<Action>) {
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = space::SMALL;
        let width = ui.available_width() - size::ROW - space::SMALL;
        ui.allocate_ui(vec2(width, size::ROW), |ui| {
            search_ui(ui, &mut state.scene_search, "Search nodes", "Search nodes");
        });
        if icon_button(ui, Icon::Refresh, "Refresh the scene", "Read the scene again").clicked() {
            actions.push(Action::RefreshScene);
        }
    });
    let Some(scene) = &state.scene else {
        empty_ui(ui, Icon::Nodes, "No scene yet", "The nodes of the scene are listed here once Slicer is connected.");
        return;
    };
    if scene.nodes.is_empty() {
        empty_ui(ui, Icon::Nodes, "The scene is empty", "Ask for sample data, or load your own in Slicer.");
        return;
    }
    let nothing = SceneDiff::default();
    let diff = state.timeline.last_run.as_ref().map_or(&nothing, |report| &report.diff);
    ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        ui.spacing_mut().interact_size.y = 0.0;
        ui.spacing_mut().item_spacing.y = space::TINY;
        nodes_ui(ui, scene, &state.scene_search, diff);
    });
}

fn nodes_ui(ui: &mut Ui, scene: &SceneSnapshot, search: &str, diff: &SceneDiff) {
    let words_wanted = search.trim().to_lowercase();
    let matching = |node: &&NodeSummary| {
        node.name.to_lowercase().contains(&words_wanted) || node.class.to_lowercase().contains(&words_wanted)
    };
    let mut groups: BTreeMap<&str, Vec<&NodeSummary>> = BTreeMap::new();
    for node in scene.nodes.iter().filter(matching) {
        groups.entry(words::class_group(&node.class)).or_default().push(node);
    }
    if groups.is_empty() {
        soft(ui, "No node has this in its name or class.");
    }
    for (group, nodes) in groups {
        ui.add_space(space::BASE);
        small(ui, &format!("{group} ({})", nodes.len()));
        for node in nodes {
            node_ui(ui, node, scene, diff);
        }
    }
}

fn node_ui(ui: &mut Ui, node: &NodeSummary, scene: &SceneSnapshot, diff: &SceneDiff) {
    let p = palette(ui);
    let mark = if diff.added.iter().any(|one| one.id == node.id) {
        Some(("new", p.ok, p.ok_ground))
    } else if diff.changed.iter().any(|one| one.id == node.id) {
        Some(("changed", p.accent, p.chosen))
    } else {
        None
    };
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = space::HALF;
        let icon = if node.visible == Some(false) { Icon::EyeOff } else { Icon::Eye };
        let (rect, seen) = ui.allocate_exact_size(vec2(size::ICON, 20.0), Sense::hover());
        if let Some(visible) = node.visible {
            icons::paint(ui.painter(), icon, rect, 13.0, p.text_soft);
            seen.on_hover_text(if visible { "Visible" } else { "Hidden" });
        }
        let active = scene.selected_volume.as_deref() == Some(node.id.as_str());
        let name = if active {
            RichText::new(&node.name).font(tokens::strong_font(font::BODY)).color(p.text_strong)
        } else {
            RichText::new(&node.name).color(p.text)
        };
        let hint = format!("{} · {}", node.class, node.id);
        let room = ui.available_width() - if mark.is_some() { 64.0 } else { 0.0 };
        ui.allocate_ui(vec2(room, 20.0), |ui| {
            ui.add(Label::new(name).truncate()).on_hover_text(hint);
        });
        if let Some((word, colour, ground)) = mark {
            egui::Frame::new()
                .fill(ground)
                .corner_radius(radius::CONTROL)
                .inner_margin(egui::Margin::symmetric(6, 1))
                .show(ui, |ui| ui.label(RichText::new(word).text_style(TextStyle::Small).color(colour)));
        }
    });
    if !node.fact.is_empty() {
        ui.horizontal(|ui| {
            ui.add_space(size::ICON + space::HALF);
            small(ui, &node.fact);
        });
    }
    for segment in node.content.segments.iter().flatten() {
        ui.horizontal(|ui| {
            ui.add_space(size::ICON + space::HALF);
            let voxels = segment.voxels.map(|count| format!(" · {} voxels", words::grouped(count))).unwrap_or_default();
            let surface = if segment.closed_surface { " · closed surface" } else { "" };
            small(ui, &format!("{}{voxels}{surface}", segment.name));
        });
    }
}
