//! The `{{name|format}}` holes of a recipe's plan, code and answer.
//!
//! A template is cut once, when the recipe is loaded, so that a value that itself contains braces is never expanded a
//! second time: what a person or a file name says can never become a hole.

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    Hole(Hole),
}

/// One hole: what stands before the bar, and what stands behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    /// A slot's name, or `result.…` in an answer.
    pub name: String,
    /// `name`, `id`, `table`, a number format such as `0.1`; `None` without a bar.
    pub format: Option<String>,
    /// Line of the hole, counted from 0 at the template's first line.
    pub line: usize,
}

impl Hole {
    /// The path behind `result.` when the hole asks for something that the run reported.
    pub fn result_path(&self) -> Option<&str> {
        if self.name == "result" { Some("") } else { self.name.strip_prefix("result.") }
    }
}

/// A text cut at its holes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template {
    pub pieces: Vec<Piece>,
}

impl Template {
    /// Cuts `text` at its holes. Text that has an opening `{{` without its end is an error, with the line (from 0).
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut pieces = Vec::new();
        let mut rest = text;
        let mut line = 0;
        while let Some(open) = rest.find("{{") {
            line += rest[..open].matches('\n').count();
            let Some(length) = rest[open + 2..].find("}}") else {
                return Err((line, "`{{` has no `}}`".to_owned()));
            };
            let inside = &rest[open + 2..open + 2 + length];
            if !rest[..open].is_empty() {
                pieces.push(Piece::Text(rest[..open].to_owned()));
            }
            let (name, format) = match inside.split_once('|') {
                Some((name, format)) => (name.trim(), Some(format.trim().to_owned())),
                None => (inside.trim(), None),
            };
            let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            if name.is_empty() || !name.chars().all(legal) {
                return Err((line, format!("`{{{{{inside}}}}}` is not a slot name")));
            }
            pieces.push(Piece::Hole(Hole { name: name.to_owned(), format, line }));
            rest = &rest[open + 2 + length + 2..];
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self { pieces })
    }

    /// The holes in order.
    pub fn holes(&self) -> impl Iterator<Item = &Hole> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Hole(hole) => Some(hole),
            Piece::Text(_) => None,
        })
    }

    /// The text with every hole replaced by what `fill` says.
    pub fn render(&self, mut fill: impl FnMut(&Hole) -> String) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Hole(hole) => text.push_str(&fill(hole)),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects against a value that smuggles in a hole of its own.
    #[test]
    fn values_are_not_expanded_again() {
        let template = Template::parse("a {{x}} b {{y|name}}").expect("parses");
        let text = template.render(|hole| if hole.name == "x" { "{{y}}".into() } else { "why".into() });
        assert_eq!(text, "a {{y}} b why");
    }

    /// Protects that a broken hole is reported with its line.
    #[test]
    fn an_open_hole_is_an_error() {
        assert_eq!(Template::parse("one\ntwo {{x").map_err(|(line, _)| line), Err(1));
        assert!(Template::parse("{{a b}}").is_err());
    }
}
