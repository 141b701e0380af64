//! Markdown and code as they are shown.
//!
//! Code blocks are cut out of the markdown and shown by the same function as the code of a run: one look, one highlighter,
//! one copy button, and colours that stand out from their ground. The highlighter knows a language by its file extension
//! only, so the names that models write after a fence are translated first. One cache serves all messages: each cache of
//! its own would load the syntax tables again.

use std::collections::HashMap;
use std::sync::LazyLock;

use egui::text::LayoutJob;
use egui::{Frame, Rect, Ui, pos2, vec2};
use egui_commonmark::{CommonMarkCache, CommonMarkViewer};
use egui_extras::syntax_highlighting::{CodeTheme, SyntectSettings, highlight_with};

use super::icons::Icon;
use super::tokens::{self, font, palette, size, space};
use super::widgets::sized_icon_button;

/// The syntax tables. The light theme that the highlighter would choose is too pale on our ground.
static SYNTAX: LazyLock<SyntectSettings> = LazyLock::new(|| {
    let mut settings = SyntectSettings::default();
    if let Some(theme) = settings.ts.themes.get("InspiredGitHub").cloned() {
        settings.ts.themes.insert("Solarized (light)".into(), theme);
    }
    settings
});

/// Loads the syntax tables on a thread of its own, before the first code is shown.
pub fn warm_up() {
    let load = || {
        LazyLock::force(&SYNTAX);
    };
    if let Err(error) = std::thread::Builder::new().name("syntax".into()).spawn(load) {
        tracing::debug!(%error, "the syntax tables are loaded when they are needed first");
    }
}

/// A part of a message.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// A code block with its language as an extension.
    Code(String, String),
}

/// Renders markdown; keeps what was prepared for each card.
#[derive(Default)]
pub struct Markdown {
    cache: CommonMarkCache,
    prepared: HashMap<i64, (u64, Vec<Part>)>,
}

impl Markdown {
    /// Shows `text`. `card` and `revision` name it, so that it is prepared once per change.
    pub fn show(&mut self, ui: &mut Ui, card: i64, revision: u64, text: &str) {
        let fresh = matches!(self.prepared.get(&card), Some((known, _)) if *known == revision);
        if !fresh {
            self.prepared.insert(card, (revision, prepare(text)));
        }
        let Some((_, parts)) = self.prepared.get(&card) else { return };
        for (place, part) in parts.iter().enumerate() {
            ui.push_id(("markdown", card, place), |ui| match part {
                Part::Text(text) => {
                    ui.spacing_mut().item_spacing.y = space::SMALL;
                    // Rows are as high as their text: the height of a button would set bullets apart from their lines.
                    ui.spacing_mut().interact_size.y = ui.text_style_height(&egui::TextStyle::Body);
                    CommonMarkViewer::new().show(ui, &mut self.cache, text);
                }
                Part::Code(language, code) => code_block_ui(ui, code, language, "Code"),
            });
        }
    }

    /// Forgets everything that was prepared for a conversation that is not shown any more.
    pub fn forget(&mut self) {
        self.prepared.clear();
        self.cache.clear_viewers();
    }
}

/// Python in a well, highlighted, that can be selected and copied.
pub fn code_ui(ui: &mut Ui, code: &str, name: &str) {
    code_block_ui(ui, code, "py", name);
}

fn code_block_ui(ui: &mut Ui, code: &str, language: &str, name: &str) {
    let p = palette(ui);
    let frame = Frame::new().fill(p.well).stroke((1.0, p.line)).corner_radius(tokens::radius::CONTROL).inner_margin(8);
    let shown = frame.show(ui, |ui| {
        ui.set_width(ui.available_width());
        egui::ScrollArea::horizontal().auto_shrink([false, true]).show(ui, |ui| {
            let mut job = coloured(ui, code.trim_end(), language);
            job.wrap.max_width = f32::INFINITY;
            ui.add(egui::Label::new(job).extend().selectable(true)).accessible_name(name);
        });
    });
    let rect = shown.response.rect;
    if ui.rect_contains_pointer(rect) {
        let corner = pos2(rect.right() - size::ROW, rect.top() + space::SMALL);
        let slot = Rect::from_min_size(corner, vec2(24.0, 24.0));
        // A child that lies over the code: a scope would make what follows stand on top of it.
        let mut over = ui.new_child(egui::UiBuilder::new().max_rect(slot));
        over.painter().rect_filled(slot, tokens::radius::CONTROL, p.well);
        if sized_icon_button(&mut over, Icon::Copy, "Copy this code", "Copy", 24.0).clicked() {
            over.copy_text(code.trim_end().to_owned());
        }
    }
}

/// Highlighted code whose every colour stands out from the well it is shown in.
fn coloured(ui: &Ui, code: &str, language: &str) -> LayoutJob {
    let theme = CodeTheme::from_style(ui.style()).with_font_size(font::CODE);
    let mut job = highlight_with(ui.ctx(), ui.style(), &theme, code, language, &SYNTAX);
    let p = palette(ui);
    for section in &mut job.sections {
        section.format.color = tokens::readable(section.format.color, p.text, p.well);
        section.format.underline = egui::Stroke::NONE;
        section.format.italics = false;
    }
    job
}

/// Python that is being edited.
pub fn code_edit_ui(ui: &mut Ui, code: &mut String, name: &str) {
    let mut layouter = |ui: &Ui, text: &dyn egui::TextBuffer, width: f32| {
        let mut job = coloured(ui, text.as_str(), "py");
        job.wrap.max_width = width;
        ui.fonts_mut(|fonts| fonts.layout_job(job))
    };
    let edit = egui::TextEdit::multiline(code)
        .code_editor()
        .desired_width(f32::INFINITY)
        .desired_rows(3)
        .layouter(&mut layouter);
    ui.add(edit).accessible_name(name);
}

/// Cuts the code blocks out of `text`. A block that is still being written ends with the text; a block inside a list stays
/// where it is.
fn prepare(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut block: Option<(String, String, String)> = None;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end();
        if let Some((fence, _, code)) = &mut block {
            if bare.starts_with(fence.as_str()) && bare.chars().all(|one| fence.starts_with(one)) {
                if let Some((_, language, code)) = block.take() {
                    parts.push(Part::Code(language, code));
                }
            } else {
                code.push_str(line);
            }
            continue;
        }
        let marker = bare.chars().next().filter(|first| matches!(first, '`' | '~'));
        let length = marker.map_or(0, |marker| bare.chars().take_while(|one| *one == marker).count());
        if length >= 3 && !bare[length..].contains('`') {
            if !plain.trim().is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            plain.clear();
            let info = bare[length..].trim();
            let language = info.split([' ', ',', '{']).next().unwrap_or_default();
            block = Some((bare[..length].to_owned(), extension(language).to_owned(), String::new()));
        } else {
            plain.push_str(line);
        }
    }
    if let Some((_, language, code)) = block {
        parts.push(Part::Code(language, code));
    }
    if !plain.trim().is_empty() {
        parts.push(Part::Text(plain));
    }
    parts
}

/// The extension under which the highlighter knows a language.
fn extension(language: &str) -> &str {
    match language.to_ascii_lowercase().as_str() {
        "python" | "python3" | "pycon" | "agent_code" => "py",
        "agent_plan" | "jsonc" | "json5" => "json",
        "c++" | "cxx" => "cpp",
        "bash" | "shell" | "console" | "zsh" => "sh",
        "javascript" => "js",
        "typescript" => "ts",
        "rust" => "rs",
        "markdown" => "md",
        "yml" => "yaml",
        _ => language,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(language: &str, text: &str) -> Part {
        Part::Code(language.into(), text.into())
    }

    fn text(text: &str) -> Part {
        Part::Text(text.into())
    }

    /// Without this, code of the commonest kind is shown without colours.
    #[test]
    fn code_blocks_are_cut_out_and_named_by_extension() {
        let parts = prepare("a\n```python\nx = 1\n```\nb");
        assert_eq!(parts, [text("a\n"), code("py", "x = 1\n"), text("b")]);
        assert_eq!(prepare("~~~bash\nls\n~~~\n"), [code("sh", "ls\n")]);
        assert_eq!(prepare("text with ```python``` inline"), [text("text with ```python``` inline")]);
        assert_eq!(prepare("````md\n```\n````"), [code("md", "```\n")]);
    }

    /// Half a code block must not swallow the page, or vanish, while an answer streams.
    #[test]
    fn an_open_block_is_shown_as_far_as_it_goes() {
        assert_eq!(prepare("```python\nx ="), [code("py", "x =")]);
        assert_eq!(prepare("```"), [code("", "")]);
    }

    /// Highlighting that cannot be read is worse than none.
    #[test]
    fn every_colour_of_code_stands_out() {
        let context = egui::Context::default();
        tokens::install(&context);
        for theme in [egui::ThemePreference::Light, egui::ThemePreference::Dark] {
            context.set_theme(theme);
            let mut output = context.run_ui(egui::RawInput::default(), |ui| {
                let source = "# why\nimport os\ndef f(x: int) -> str:\n    return 'a' + str(x * 2.5)\n";
                let job = coloured(ui, source, "py");
                let colours: std::collections::HashSet<_> =
                    job.sections.iter().map(|section| section.format.color).collect();
                assert!(colours.len() > 3, "the code is highlighted");
                for colour in colours {
                    let ratio = tokens::contrast(colour, palette(ui).well);
                    assert!(ratio >= 4.4, "{theme:?}: {colour:?} has only {ratio:.2}:1");
                }
            });
            output.textures_delta.clear();
        }
    }
}
