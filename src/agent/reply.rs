//! Reading a model's answer while it streams: prose goes on to the person, the plan and the program do not.
//!
//! The contract with the model is one fenced `agent_plan` JSON block and after it one fenced `python` block. Only a
//! program that follows a plan is meant to run: a `python` block without a plan before it is an example in a
//! text-only answer and stays where it stands. A JSON block is never run, whatever its fence says.

use super::Plan;

/// What the splitter noticed in a piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text for the person.
    Prose(String),
    /// The plan block was opened.
    PlanOpened,
    /// The program block was opened.
    CodeOpened,
}

/// Where the splitter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Prose,
    /// A block that the person should see (an example in an answer).
    Example,
    Plan,
    Code,
    /// A further program after the first one: shown as it is, never run.
    Extra,
}

/// Splits a streamed answer line by line.
#[derive(Debug)]
pub struct Splitter {
    /// The present line, not yet complete.
    line: String,
    place: Place,
    /// The fence that closes the present block.
    fence: String,
    plan: Option<String>,
    code: Option<String>,
    prose: String,
    /// True while characters of the present line were passed on already.
    passed: usize,
}

impl Default for Splitter {
    fn default() -> Self {
        Self {
            line: String::new(),
            place: Place::Prose,
            fence: String::new(),
            plan: None,
            code: None,
            prose: String::new(),
            passed: 0,
        }
    }
}

/// A whole answer, taken apart.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parts {
    /// The answer without plan and program.
    pub prose: String,
    /// The plan, or why it could not be read.
    pub plan: Option<Result<Plan, String>>,
    /// The program. Only ever set together with a plan.
    pub code: Option<String>,
}

impl Splitter {
    /// Takes the next piece of the stream and gives what can be shown of it already.
    pub fn push(&mut self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for character in text.chars() {
            self.line.push(character);
            if character == '\n' {
                self.end_line(&mut pieces);
            }
        }
        self.pass_open_line(&mut pieces);
        pieces
    }

    /// Ends the stream: what is left over, and the parts.
    pub fn finish(mut self) -> (Vec<Piece>, Parts) {
        let mut pieces = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut pieces);
        }
        let plan = self.plan.as_deref().map(read_plan);
        let code = self.code.filter(|code| !code.trim().is_empty());
        (pieces, Parts { prose: self.prose.trim().to_owned(), plan, code })
    }

    /// Passes the present line on before it is complete, unless it may become a fence.
    fn pass_open_line(&mut self, pieces: &mut Vec<Piece>) {
        let shown = matches!(self.place, Place::Prose | Place::Example | Place::Extra);
        let may_be_fence = self.line.trim_start().chars().next().is_none_or(|first| first == '`' || first == '~');
        if shown && !may_be_fence && self.line.len() > self.passed {
            let text = self.line[self.passed..].to_owned();
            self.passed = self.line.len();
            self.show(text, pieces);
        }
    }

    fn show(&mut self, text: String, pieces: &mut Vec<Piece>) {
        self.prose.push_str(&text);
        match pieces.last_mut() {
            Some(Piece::Prose(last)) => last.push_str(&text),
            _ => pieces.push(Piece::Prose(text)),
        }
    }

    fn end_line(&mut self, pieces: &mut Vec<Piece>) {
        let line = std::mem::take(&mut self.line);
        let passed = std::mem::take(&mut self.passed);
        let rest = |line: &str| line[passed..].to_owned();
        match self.place {
            Place::Prose => match opening_fence(&line) {
                Some((fence, word)) => self.open(fence, &word, &line, pieces),
                None => self.show(rest(&line), pieces),
            },
            Place::Example | Place::Extra => {
                if closes(&line, &self.fence) {
                    self.place = Place::Prose;
                }
                self.show(rest(&line), pieces);
            }
            Place::Plan | Place::Code => {
                if closes(&line, &self.fence) {
                    self.place = Place::Prose;
                } else {
                    let block = if self.place == Place::Plan { &mut self.plan } else { &mut self.code };
                    block.get_or_insert_default().push_str(&line);
                }
            }
        }
    }

    fn open(&mut self, fence: String, word: &str, line: &str, pieces: &mut Vec<Piece>) {
        self.fence = fence;
        let is_program = matches!(word, "python" | "py" | "python3");
        self.place = if word == "agent_plan" && self.plan.is_none() {
            self.plan = Some(String::new());
            pieces.push(Piece::PlanOpened);
            Place::Plan
        } else if is_program && self.plan.is_some() && self.code.is_none() {
            self.code = Some(String::new());
            pieces.push(Piece::CodeOpened);
            Place::Code
        } else {
            self.show(line.to_owned(), pieces);
            if self.code.is_some() { Place::Extra } else { Place::Example }
        };
    }
}

/// The fence and the first word of its info string, when a line opens a block.
fn opening_fence(line: &str) -> Option<(String, String)> {
    let text = line.trim();
    let mark = text.chars().next().filter(|mark| *mark == '`' || *mark == '~')?;
    let length = text.chars().take_while(|character| *character == mark).count();
    if length < 3 {
        return None;
    }
    let info = text[length..].trim();
    if info.contains('`') {
        return None;
    }
    let word = info.split([' ', '{', ',']).next().unwrap_or_default().to_ascii_lowercase();
    Some((mark.to_string().repeat(length), word))
}

/// Whether a line closes the block that `fence` opened: the same mark, at least as long, and nothing else.
fn closes(line: &str, fence: &str) -> bool {
    let text = line.trim();
    text.starts_with(fence) && text.chars().all(|character| fence.starts_with(character))
}

fn read_plan(text: &str) -> Result<Plan, String> {
    // A comment or a trailing comma is the commonest slip; the message is what the model gets to correct itself.
    serde_json::from_str::<Plan>(text.trim()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, size: usize) -> (String, Parts) {
        let mut splitter = Splitter::default();
        let characters: Vec<char> = text.chars().collect();
        let mut shown = String::new();
        let mut take = |pieces: Vec<Piece>| {
            for piece in pieces {
                if let Piece::Prose(text) = piece {
                    shown.push_str(&text);
                }
            }
        };
        for piece in characters.chunks(size) {
            take(splitter.push(&piece.iter().collect::<String>()));
        }
        let (pieces, parts) = splitter.finish();
        take(pieces);
        (shown, parts)
    }

    const WHOLE: &str = "I will rename it.\n\n```agent_plan\n{\"task_summary\": \"Rename\", \"steps\": []}\n```\n```python\nprint(\"``` inside\")\nnode.SetName('a')\n```\nThat is all.";

    /// However the stream is cut, the parts and what was shown are the same.
    #[test]
    fn cuts_do_not_matter() {
        let (shown, parts) = split(WHOLE, 1000);
        assert_eq!(parts.plan.as_ref().unwrap().as_ref().unwrap().task_summary, "Rename");
        assert_eq!(parts.code.as_deref(), Some("print(\"``` inside\")\nnode.SetName('a')\n"));
        assert_eq!(shown, "I will rename it.\n\nThat is all.");
        for size in 1..9 {
            assert_eq!(split(WHOLE, size), (shown.clone(), parts.clone()), "cut at {size}");
        }
    }

    /// A question about an API is answered with an example; it must not run.
    #[test]
    fn an_example_without_a_plan_is_not_a_program() {
        let text = "Like this:\n```python\nslicer.mrmlScene.Clear()\n```\n";
        let (shown, parts) = split(text, 3);
        assert_eq!(parts.code, None);
        assert_eq!(shown, text);
    }

    /// Only the first program after the plan runs; JSON never does.
    #[test]
    fn one_program_only() {
        let text = "```agent_plan\n{}\n```\n```json\n{\"a\": 1}\n```\n```python\na = 1\n```\n```python\nb = 2\n```\n";
        let (shown, parts) = split(text, 5);
        assert_eq!(parts.code.as_deref(), Some("a = 1\n"));
        assert!(shown.contains("b = 2") && shown.contains("\"a\": 1"));
    }

    /// A stream that ends within the program keeps what arrived (it will fail the check, and say so).
    #[test]
    fn an_open_block_is_kept() {
        let (_, parts) = split("```agent_plan\n{}\n```\n```python\na = (1,", 4);
        assert_eq!(parts.code.as_deref(), Some("a = (1,"));
    }

    /// A plan that is no JSON is told apart from no plan at all.
    #[test]
    fn a_broken_plan_is_reported() {
        let (_, parts) = split("```agent_plan\n{\"steps\": [,]}\n```\n", 4);
        assert!(parts.plan.unwrap().is_err());
    }
}
