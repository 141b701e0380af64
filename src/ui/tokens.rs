//! Design tokens: every colour, distance, radius and font size of the window, for both themes, in this one file.
//!
//! Views ask for a meaning ("the text of something that failed"), never for a colour. So both themes stay in step, the
//! contrast of each pair of text and ground can be checked by a test, and a change of taste is a change of one file.

use std::sync::Arc;

use egui::epaint::Shadow;
use egui::{
    Color32, CornerRadius, FontData, FontDefinitions, FontFamily, FontId, Margin, Stroke, TextStyle, Theme, Vec2,
    Visuals,
};

/// Distances in points.
pub mod space {
    pub const TINY: f32 = 2.0;
    pub const SMALL: f32 = 4.0;
    pub const HALF: f32 = 6.0;
    pub const BASE: f32 = 8.0;
    pub const WIDE: f32 = 12.0;
    pub const LARGE: f32 = 16.0;
    pub const HUGE: f32 = 24.0;
}

/// Corner radii in points.
pub mod radius {
    pub const CONTROL: u8 = 6;
    pub const CARD: u8 = 8;
    pub const DIALOG: u8 = 12;
}

/// Font sizes in points.
pub mod font {
    pub const SMALL: f32 = 11.5;
    pub const BODY: f32 = 13.5;
    pub const CODE: f32 = 12.5;
    pub const HEADING: f32 = 19.0;
}

/// Sizes of parts of the window in points.
pub mod size {
    /// Below this width the sides lie over the middle instead of beside it.
    pub const NARROW: f32 = 900.0;
    pub const SIDEBAR: f32 = 240.0;
    pub const PANE_MIN: f32 = 320.0;
    pub const PANE_MAX: f32 = 640.0;
    pub const CENTRE_MIN: f32 = 340.0;
    /// Longest line of text that reads well.
    pub const COLUMN: f32 = 780.0;
    /// Height of a line that can be clicked, and side of an icon button.
    pub const ROW: f32 = 28.0;
    pub const ICON: f32 = 16.0;
    pub const TOP_BAR: f32 = 44.0;
    pub const THUMBNAIL_HEIGHT: f32 = 300.0;
    pub const DIALOG: f32 = 720.0;
}

/// The colours of one theme, by meaning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Palette {
    /// Ground of the middle.
    pub ground: Color32,
    /// Ground of the bars and sides.
    pub bar: Color32,
    /// Ground of cards, menus and dialogs.
    pub card: Color32,
    /// Ground of code and of places to type.
    pub well: Color32,
    /// Ground of the person's own messages.
    pub own: Color32,
    /// Ground under the pointer.
    pub hover: Color32,
    /// Ground of something chosen.
    pub chosen: Color32,
    pub line: Color32,
    pub line_strong: Color32,
    pub text: Color32,
    pub text_strong: Color32,
    pub text_soft: Color32,
    pub accent: Color32,
    /// Text on `accent`.
    pub on_accent: Color32,
    pub accent_hover: Color32,
    pub ok: Color32,
    pub warn: Color32,
    pub bad: Color32,
    pub ok_ground: Color32,
    pub warn_ground: Color32,
    pub bad_ground: Color32,
    /// Behind pictures.
    pub picture: Color32,
    pub shade: Color32,
    pub shadow: Color32,
}

const fn rgb(value: u32) -> Color32 {
    Color32::from_rgb((value >> 16) as u8, (value >> 8) as u8, value as u8)
}

pub const LIGHT: Palette = Palette {
    ground: rgb(0xFFFFFF),
    bar: rgb(0xF5F7F9),
    card: rgb(0xFFFFFF),
    well: rgb(0xF5F7F9),
    own: rgb(0xE9F1F8),
    hover: rgb(0xE9EDF1),
    chosen: rgb(0xDDE9F4),
    line: rgb(0xE0E5EA),
    line_strong: rgb(0xC3CBD4),
    text: rgb(0x242B33),
    text_strong: rgb(0x0F151B),
    text_soft: rgb(0x56626F),
    accent: rgb(0x1B66A8),
    on_accent: rgb(0xFFFFFF),
    accent_hover: rgb(0x14558E),
    ok: rgb(0x14713F),
    warn: rgb(0x85540A),
    bad: rgb(0xB0271F),
    ok_ground: rgb(0xE8F5ED),
    warn_ground: rgb(0xFDF4E1),
    bad_ground: rgb(0xFCECEB),
    picture: rgb(0x0B0D10),
    shade: Color32::from_black_alpha(90),
    shadow: Color32::from_black_alpha(40),
};

pub const DARK: Palette = Palette {
    ground: rgb(0x16191D),
    bar: rgb(0x1B1F24),
    card: rgb(0x1E2329),
    well: rgb(0x111417),
    own: rgb(0x1F2C39),
    hover: rgb(0x2A3037),
    chosen: rgb(0x263748),
    line: rgb(0x2C333B),
    line_strong: rgb(0x47515C),
    text: rgb(0xD8DEE5),
    text_strong: rgb(0xF4F7FA),
    text_soft: rgb(0x9AA6B3),
    accent: rgb(0x63AEE8),
    on_accent: rgb(0x08141F),
    accent_hover: rgb(0x86C1EF),
    ok: rgb(0x62C48C),
    warn: rgb(0xE2B24A),
    bad: rgb(0xF2837C),
    ok_ground: rgb(0x182A20),
    warn_ground: rgb(0x2D2614),
    bad_ground: rgb(0x331C1B),
    picture: rgb(0x0B0D10),
    shade: Color32::from_black_alpha(140),
    shadow: Color32::from_black_alpha(120),
};

/// Nothing: lets what is below show.
pub const CLEAR: Color32 = Color32::TRANSPARENT;
/// A texture is shown in its own colours.
pub const UNTINTED: Color32 = Color32::WHITE;

/// The palette of the theme that `ui` is painted in.
pub fn palette(ui: &egui::Ui) -> &'static Palette {
    if ui.visuals().dark_mode { &DARK } else { &LIGHT }
}

/// Relative luminance of a colour, 0 for black and 1 for white.
fn luminance(colour: Color32) -> f64 {
    let channel = |value: u8| {
        let value = f64::from(value) / 255.0;
        if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(colour.r()) + 0.7152 * channel(colour.g()) + 0.0722 * channel(colour.b())
}

/// How much two colours stand out from each other: from 1 (not at all) to 21 (black on white).
pub fn contrast(one: Color32, other: Color32) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// `colour`, moved towards `text` as far as it must to be read on `ground`.
pub fn readable(colour: Color32, text: Color32, ground: Color32) -> Color32 {
    (0..=10)
        .map(|step| colour.lerp_to_gamma(text, step as f32 / 10.0))
        .find(|mixed| contrast(*mixed, ground) >= 4.5)
        .unwrap_or(text)
}

/// Semibold text of `size` points.
pub fn strong_font(size: f32) -> FontId {
    FontId::new(size, FontFamily::Name(STRONG.into()))
}

const STRONG: &str = "strong";

/// Puts fonts and both themes into the context. Called once, before the first frame.
pub fn install(context: &egui::Context) {
    context.set_fonts(fonts());
    for (theme, palette) in [(Theme::Light, &LIGHT), (Theme::Dark, &DARK)] {
        context.style_mut_of(theme, |style| {
            style.visuals = visuals(theme, palette);
            style.text_styles = [
                (TextStyle::Small, FontId::proportional(font::SMALL)),
                (TextStyle::Body, FontId::proportional(font::BODY)),
                (TextStyle::Button, FontId::proportional(font::BODY)),
                (TextStyle::Monospace, FontId::monospace(font::CODE)),
                (TextStyle::Heading, strong_font(font::HEADING)),
            ]
            .into();
            let spacing = &mut style.spacing;
            spacing.item_spacing = Vec2::new(space::BASE, space::HALF);
            spacing.button_padding = Vec2::new(10.0, 5.0);
            spacing.interact_size = Vec2::new(size::ROW, size::ROW);
            spacing.icon_width = size::ICON;
            spacing.menu_margin = Margin::same(6);
            spacing.combo_width = 120.0;
            spacing.scroll.floating = true;
            style.interaction.tooltip_delay = 0.4;
            // A dragged selection must not run over the whole timeline.
            style.interaction.multi_widget_text_select = false;
        });
    }
}

fn fonts() -> FontDefinitions {
    let mut fonts = FontDefinitions::default();
    let regular = FontData::from_static(include_bytes!("../../assets/fonts/Inter-Regular.otf"));
    let semibold = FontData::from_static(include_bytes!("../../assets/fonts/Inter-SemiBold.otf"));
    fonts.font_data.insert("inter".into(), Arc::new(regular));
    fonts.font_data.insert("inter-semibold".into(), Arc::new(semibold));
    let mut fallback = fonts.families.get(&FontFamily::Proportional).cloned().unwrap_or_default();
    let mut strong = fallback.clone();
    fallback.insert(0, "inter".into());
    strong.insert(0, "inter-semibold".into());
    fonts.families.insert(FontFamily::Proportional, fallback);
    fonts.families.insert(FontFamily::Name(STRONG.into()), strong);
    if let Some(monospace) = fonts.families.get_mut(&FontFamily::Monospace) {
        monospace.push("inter".into());
    }
    fonts
}

fn visuals(theme: Theme, palette: &Palette) -> Visuals {
    let mut visuals = if theme == Theme::Dark { Visuals::dark() } else { Visuals::light() };
    let corner = CornerRadius::same(radius::CONTROL);
    let shadow = Shadow { offset: [0, 4], blur: 16, spread: 0, color: palette.shadow };
    visuals.panel_fill = palette.ground;
    visuals.window_fill = palette.card;
    visuals.window_stroke = Stroke::new(1.0, palette.line);
    visuals.window_corner_radius = CornerRadius::same(radius::DIALOG);
    visuals.menu_corner_radius = CornerRadius::same(radius::CARD);
    visuals.window_shadow = shadow;
    visuals.popup_shadow = shadow;
    visuals.faint_bg_color = palette.bar;
    visuals.extreme_bg_color = palette.well;
    visuals.text_edit_bg_color = Some(palette.well);
    visuals.code_bg_color = palette.hover;
    visuals.hyperlink_color = palette.accent;
    visuals.warn_fg_color = palette.warn;
    visuals.error_fg_color = palette.bad;
    visuals.weak_text_color = Some(palette.text_soft);
    visuals.selection.bg_fill = palette.chosen;
    visuals.selection.stroke = Stroke::new(1.0, palette.accent);
    visuals.text_cursor.stroke = Stroke::new(1.5, palette.accent);
    // A blinking cursor would repaint an idle window twice a second.
    visuals.text_cursor.blink = false;
    let states = [
        (&mut visuals.widgets.noninteractive, palette.card, palette.line, palette.text),
        (&mut visuals.widgets.inactive, palette.card, palette.line, palette.text),
        (&mut visuals.widgets.hovered, palette.hover, palette.line_strong, palette.text_strong),
        (&mut visuals.widgets.active, palette.chosen, palette.accent, palette.text_strong),
        (&mut visuals.widgets.open, palette.hover, palette.line_strong, palette.text_strong),
    ];
    for (widget, fill, line, text) in states {
        widget.bg_fill = fill;
        widget.weak_bg_fill = fill;
        widget.bg_stroke = Stroke::new(1.0, line);
        widget.fg_stroke = Stroke::new(1.2, text);
        widget.corner_radius = corner;
        widget.expansion = 0.0;
    }
    // Tick boxes and slider rails need a ground that differs from the card they stand on.
    visuals.widgets.inactive.bg_fill = palette.hover;
    visuals
}

#[cfg(test)]
mod tests {
    use super::*;

    /// People with weak sight must be able to read every text on every ground it can stand on.
    #[test]
    fn text_stands_out_from_every_ground() {
        for (theme, p) in [("light", LIGHT), ("dark", DARK)] {
            let grounds = [
                ("ground", p.ground),
                ("bar", p.bar),
                ("card", p.card),
                ("well", p.well),
                ("own", p.own),
                ("hover", p.hover),
                ("chosen", p.chosen),
                ("ok_ground", p.ok_ground),
                ("warn_ground", p.warn_ground),
                ("bad_ground", p.bad_ground),
            ];
            let texts = [("text", p.text), ("text_strong", p.text_strong), ("text_soft", p.text_soft)];
            for (ground_name, ground) in grounds {
                for (text_name, text) in texts {
                    let ratio = contrast(text, ground);
                    assert!(ratio >= 4.5, "{theme}: {text_name} on {ground_name} has only {ratio:.2}:1");
                }
            }
            for (name, text, ground) in [
                ("accent on ground", p.accent, p.ground),
                ("accent on card", p.accent, p.card),
                ("accent on bar", p.accent, p.bar),
                ("on_accent", p.on_accent, p.accent),
                ("on_accent on hover", p.on_accent, p.accent_hover),
                ("ok on ground", p.ok, p.ground),
                ("ok on card", p.ok, p.card),
                ("ok on bar", p.ok, p.bar),
                ("ok on its ground", p.ok, p.ok_ground),
                ("warn on ground", p.warn, p.ground),
                ("warn on card", p.warn, p.card),
                ("warn on bar", p.warn, p.bar),
                ("warn on its ground", p.warn, p.warn_ground),
                ("bad on ground", p.bad, p.ground),
                ("bad on card", p.bad, p.card),
                ("bad on bar", p.bad, p.bar),
                ("bad on its ground", p.bad, p.bad_ground),
            ] {
                let ratio = contrast(text, ground);
                assert!(ratio >= 4.5, "{theme}: {name} has only {ratio:.2}:1");
            }
        }
    }

    /// A colour written into a view would be wrong in one of the themes.
    #[test]
    fn no_view_names_a_colour_of_its_own() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ui");
        let mut folders = vec![folder];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("the room is there") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                if path.file_name().is_some_and(|name| name == "tokens.rs") {
                    continue;
                }
                seen += 1;
                let text = std::fs::read_to_string(&path).expect("source is text");
                for (number, line) in text.lines().enumerate() {
                    for raw in ["Color32::from", "Color32::WHITE", "Color32::BLACK", "Rgba::", "hex_color!"] {
                        let place = format!("{}:{}", path.display(), number + 1);
                        assert!(!line.contains(raw), "{place} names a raw colour ({raw}); add a token instead");
                    }
                }
            }
        }
        assert!(seen > 5, "the test looked at {seen} files only");
    }
}
