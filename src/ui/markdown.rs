//! Markdown and code as they are shown.
//!
//! The highlighter knows a language by its file extension only, so the names that models write after a fence are
//! translated first. One cache serves all messages: each cache of its own would load the syntax tables again.

use std::collections::HashMap;

use egui::{Frame, Ui};
use egui_commonmark::{CommonMarkCache, CommonMarkViewer};
use egui_extras::syntax_highlighting::{CodeTheme, highlight};

use super::tokens::{font, palette, space};

/// Renders markdown; keeps what was prepared for each card.
#[derive(Default)]
pub struct Markdown {
    cache: CommonMarkCache,
    prepared: HashMap<i64, (u64, String)>,
}

impl Markdown {
    /// Shows `text`. `card` and `revision` name it, so that it is prepared once per change.
    pub fn show(&mut self, ui: &mut Ui, card: i64, revision: u64, text: &str) {
        let fresh = matches!(self.prepared.get(&card), Some((known, _)) if *known == revision);
        if !fresh {
            self.prepared.insert(card, (revision, prepare(text)));
        }
        let Some((_, ready)) = self.prepared.get(&card) else { return };
        ui.push_id(("markdown", card), |ui| {
            ui.spacing_mut().item_spacing.y = space::SMALL;
            CommonMarkViewer::new().show(ui, &mut self.cache, ready);
        });
    }

    /// Forgets everything that was prepared for a conversation that is not shown any more.
    pub fn forget(&mut self) {
        self.prepared.clear();
        self.cache.clear_viewers();
    }
}

/// Python in a well, highlighted, that can be selected.
pub fn code_ui(ui: &mut Ui, code: &str, name: &str) {
    let p = palette(ui);
    Frame::new().fill(p.well).stroke((1.0, p.line)).corner_radius(6).inner_margin(8).show(ui, |ui| {
        egui::ScrollArea::horizontal().auto_shrink([false, true]).show(ui, |ui| {
            let theme = CodeTheme::from_memory(ui.ctx(), ui.style()).with_font_size(font::CODE);
            let mut job = highlight(ui.ctx(), ui.style(), &theme, code.trim_end(), "py");
            job.wrap.max_width = f32::INFINITY;
            let response = ui.add(egui::Label::new(job).extend().selectable(true));
            response.accessible_name(name);
        });
    });
}

/// Python that is being edited.
pub fn code_edit_ui(ui: &mut Ui, code: &mut String, name: &str) {
    let mut layouter = |ui: &Ui, text: &dyn egui::TextBuffer, width: f32| {
        let theme = CodeTheme::from_memory(ui.ctx(), ui.style()).with_font_size(font::CODE);
        let mut job = highlight(ui.ctx(), ui.style(), &theme, text.as_str(), "py");
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

/// Translates the language after each opening fence, and closes a fence that is still being written.
fn prepare(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut fence: Option<(char, usize)> = None;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start();
        let marker = bare.chars().next().filter(|first| matches!(first, '`' | '~'));
        let length = marker.map_or(0, |marker| bare.chars().take_while(|one| *one == marker).count());
        match (fence, marker) {
            (None, Some(marker)) if length >= 3 => {
                fence = Some((marker, length));
                let indent = &line[..line.len() - bare.len()];
                let info = bare[length..].trim();
                let language = info.split([' ', ',', '{']).next().unwrap_or_default();
                let end = if line.ends_with('\n') { "\n" } else { "" };
                out.push_str(indent);
                out.extend(std::iter::repeat_n(marker, length));
                out.push_str(extension(language));
                out.push_str(end);
            }
            (Some((open, least)), Some(marker))
                if open == marker && length >= least && bare[length..].trim().is_empty() =>
            {
                fence = None;
                out.push_str(line);
            }
            _ => out.push_str(line),
        }
    }
    if let Some((marker, length)) = fence {
        if !out.ends_with('\n') {
            out.push('\n');
        }
        out.extend(std::iter::repeat_n(marker, length));
    }
    out
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

    /// Without this, code of the commonest kind is shown without colours.
    #[test]
    fn fences_name_the_extension() {
        assert_eq!(prepare("a\n```python\nx = 1\n```\nb"), "a\n```py\nx = 1\n```\nb");
        assert_eq!(prepare("~~~bash\nls\n~~~\n"), "~~~sh\nls\n~~~\n");
        assert_eq!(prepare("  ```c++\n  ```"), "  ```cpp\n  ```");
        assert_eq!(prepare("text with `python` inline"), "text with `python` inline");
    }

    /// Half a code block must not swallow the page while an answer streams.
    #[test]
    fn an_open_fence_is_closed_for_display() {
        assert_eq!(prepare("```python\nx ="), "```py\nx =\n```");
        assert_eq!(prepare("````md\n```\n"), "````md\n```\n````");
    }
}
