//! Cuts a person's message into words, numbers with units, quoted texts and marks, each with its place in the message.
//!
//! Every later stage works on these: what a slot takes is a range of words, and what no slot takes must be explained by
//! a recipe's phrasings. So nothing of the message is lost without being noticed.

/// One piece of the message.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// Byte range in the message.
    pub start: usize,
    pub end: usize,
    /// Lower-case text; of a quoted text what stands between the quotes, in its own case.
    pub text: String,
    /// The stem that matching uses; corrected when the word was misspelt.
    pub stem: String,
    pub kind: WordKind,
}

/// What a piece is.
#[derive(Debug, Clone, PartialEq)]
pub enum WordKind {
    Word,
    /// A number and the unit written directly behind it ("mm", "%", "hu"), lower-case.
    Number {
        value: f64,
        unit: Option<String>,
    },
    Quoted,
    /// `#ff8800` as it is written, without the `#`.
    Hex,
    Mark(char),
}

impl Word {
    /// Whether this is the plain word `text`.
    pub fn is(&self, text: &str) -> bool {
        self.kind == WordKind::Word && self.text == text
    }

    /// Whether this is the mark `mark`.
    pub fn is_mark(&self, mark: char) -> bool {
        self.kind == WordKind::Mark(mark)
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self.kind {
            WordKind::Number { value, .. } => Some(value),
            _ => None,
        }
    }
}

/// Unit words that may stand behind a number, and the unit they mean.
const UNITS: &[(&str, &str)] = &[
    ("mm", "mm"),
    ("millimeter", "mm"),
    ("millimetre", "mm"),
    ("millimeters", "mm"),
    ("millimetres", "mm"),
    ("cm", "cm"),
    ("centimeter", "cm"),
    ("centimetre", "cm"),
    ("centimeters", "cm"),
    ("centimetres", "cm"),
    ("hu", "hu"),
    ("hounsfield", "hu"),
    ("%", "%"),
    ("percent", "%"),
    ("per cent", "%"),
    ("degrees", "degrees"),
    ("degree", "degrees"),
    ("deg", "degrees"),
    ("°", "degrees"),
    ("ml", "ml"),
    ("milliliter", "ml"),
    ("millilitre", "ml"),
    ("milliliters", "ml"),
    ("millilitres", "ml"),
    ("cc", "ml"),
    ("ccm", "ml"),
    ("cm3", "ml"),
    ("cm³", "ml"),
    ("mm3", "mm3"),
    ("mm³", "mm3"),
    ("voxel", "voxels"),
    ("voxels", "voxels"),
    ("pixel", "voxels"),
    ("pixels", "voxels"),
    ("px", "voxels"),
];

/// Numbers that people write as words.
const NUMBER_WORDS: &[(&str, f64)] = &[
    ("zero", 0.0),
    ("two", 2.0),
    ("three", 3.0),
    ("four", 4.0),
    ("five", 5.0),
    ("six", 6.0),
    ("seven", 7.0),
    ("eight", 8.0),
    ("nine", 9.0),
    ("ten", 10.0),
    ("twenty", 20.0),
    ("thirty", 30.0),
    ("fifty", 50.0),
    ("hundred", 100.0),
];

/// The unit that a word means, if it is one.
pub fn unit_of(word: &str) -> Option<&'static str> {
    UNITS.iter().find(|(name, _)| *name == word).map(|(_, unit)| *unit)
}

/// The number that a word means ("three").
pub fn number_word(word: &str) -> Option<f64> {
    NUMBER_WORDS.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

/// Cuts a message into words.
pub fn cut(message: &str) -> Vec<Word> {
    let mut cutter = Cutter { text: message, at: 0, words: Vec::new() };
    while cutter.at < message.len() {
        cutter.step();
    }
    attach_units(&mut cutter.words);
    cutter.words
}

struct Cutter<'a> {
    text: &'a str,
    at: usize,
    words: Vec<Word>,
}

impl Cutter<'_> {
    fn step(&mut self) {
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else {
            self.at = self.text.len();
            return;
        };
        if first.is_whitespace() {
            self.at += first.len_utf8();
        } else if let Some(length) = quoted(rest, self.before()) {
            let inside = first.len_utf8()..length - rest[..length].chars().next_back().map_or(1, char::len_utf8);
            self.push(length, rest[inside].to_owned(), WordKind::Quoted);
        } else if let Some(length) = path_length(rest) {
            self.push(length, rest[..length].to_owned(), WordKind::Quoted);
        } else if let Some(length) = hex_color(rest) {
            self.push(length, rest[1..length].to_lowercase(), WordKind::Hex);
        } else if let Some((length, value)) = number(rest, self.before()) {
            self.push_number(length, value);
        } else if first.is_alphanumeric() || first == '_' {
            let length = word_length(rest);
            self.push(length, rest[..length].to_lowercase().replace('’', "'"), WordKind::Word);
        } else {
            self.push(first.len_utf8(), first.to_string(), WordKind::Mark(first));
        }
    }

    fn before(&self) -> Option<char> {
        self.text[..self.at].chars().next_back()
    }

    /// A number that runs into letters is a word ("3d", "2x"), unless the letters are a unit ("5mm").
    fn push_number(&mut self, length: usize, value: f64) {
        let behind = &self.text[self.at + length..];
        let letters = word_length(behind);
        let tail = behind[..letters].to_lowercase();
        if letters == 0 {
            self.push(length, self.text[self.at..self.at + length].to_owned(), WordKind::Number { value, unit: None });
        } else if let Some(unit) = unit_of(&tail) {
            let text = self.text[self.at..self.at + length + letters].to_owned();
            self.push(length + letters, text, WordKind::Number { value, unit: Some(unit.to_owned()) });
        } else {
            let text = self.text[self.at..self.at + length + letters].to_lowercase();
            self.push(length + letters, text, WordKind::Word);
        }
    }

    fn push(&mut self, length: usize, text: String, kind: WordKind) {
        let stem = if kind == WordKind::Word { stem(&text) } else { String::new() };
        self.words.push(Word { start: self.at, end: self.at + length, text, stem, kind });
        self.at += length;
    }
}

/// Length of a quoted text with its quotes. An apostrophe inside a word is not a quote.
fn quoted(rest: &str, before: Option<char>) -> Option<usize> {
    let first = rest.chars().next()?;
    let close = match first {
        '"' => '"',
        '\'' => '\'',
        '`' => '`',
        '“' | '„' => '”',
        '‘' => '’',
        '«' => '»',
        _ => return None,
    };
    if first == '\'' && before.is_some_and(char::is_alphanumeric) {
        return None;
    }
    let start = first.len_utf8();
    let ends = rest[start..].char_indices().filter(|&(_, c)| c == close || (close == '”' && c == '“'));
    for (offset, c) in ends {
        let end = start + offset + c.len_utf8();
        let after = rest[end..].chars().next();
        if first == '\'' && after.is_some_and(char::is_alphanumeric) {
            continue;
        }
        return (offset > 0).then_some(end);
    }
    None
}

/// Length of a file path: it begins with `/`, `~/`, `./` or a drive, and ends at a space. The dot or comma of the sentence
/// behind it is not part of it.
fn path_length(rest: &str) -> Option<usize> {
    let mut letters = rest.chars();
    let drive = letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.next() == Some(':')
        && matches!(letters.next(), Some('/' | '\\'));
    if !(drive || rest.starts_with('/') || rest.starts_with("~/") || rest.starts_with("./") || rest.starts_with("\\\\"))
    {
        return None;
    }
    let whole = rest.split(char::is_whitespace).next().unwrap_or(rest);
    let length = whole.trim_end_matches(['.', ',', ';', '!', '?', ')']).len();
    // "/" alone, or "/ 40", is a mark between two things.
    (length > 1 && whole[1..].contains(|c: char| c.is_alphabetic())).then_some(length)
}

fn hex_color(rest: &str) -> Option<usize> {
    let digits = rest.strip_prefix('#')?;
    let length = digits.chars().take_while(char::is_ascii_hexdigit).count();
    let ends = !digits[length..].starts_with(|c: char| c.is_alphanumeric());
    ((length == 6 || length == 3) && ends).then_some(length + 1)
}

/// Length of a run of word characters; an apostrophe between letters belongs to the word ("don't").
fn word_length(rest: &str) -> usize {
    let chars: Vec<(usize, char)> = rest.char_indices().collect();
    for (index, &(offset, c)) in chars.iter().enumerate() {
        let inner_apostrophe = (c == '\'' || c == '’')
            && index > 0
            && chars.get(index + 1).is_some_and(|(_, next)| next.is_alphabetic())
            && chars[index - 1].1.is_alphabetic();
        let degree = index == 0 && (c == '%' || c == '°');
        if degree {
            return c.len_utf8();
        }
        if !(c.is_alphanumeric() || c == '_' || c == '³' || inner_apostrophe) {
            return offset;
        }
    }
    rest.len()
}

/// A number at the start of `rest`, with its sign when nothing that could be a left operand stands directly before it.
///
/// A comma is read with care: "1,5" and "0,500" have a decimal comma, "1,500" a thousands comma, and "255,0,0" is a list
/// of three numbers of which only the first is taken here.
fn number(rest: &str, before: Option<char>) -> Option<(usize, f64)> {
    let signed = rest.starts_with(['-', '−', '+']);
    if signed && before.is_some_and(|c| c.is_alphanumeric() || c == ')' || c == '%') {
        return None;
    }
    let sign_length = if signed { rest.chars().next().map_or(0, char::len_utf8) } else { 0 };
    let digits = &rest[sign_length..];
    let whole = digits.bytes().take_while(u8::is_ascii_digit).count();
    let mut length = whole;
    let mut text = digits[..whole].to_owned();
    let after = &digits[whole..];
    let run = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    if let Some(behind) = after.strip_prefix('.') {
        let decimals = run(behind);
        if decimals > 0 {
            text = format!("{text}.{}", &behind[..decimals]);
            length += 1 + decimals;
        }
    } else if let Some(behind) = after.strip_prefix(',')
        && whole > 0
    {
        let group = run(behind);
        let chain = behind[group..]
            .strip_prefix(',')
            .is_some_and(|more| more.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
        let in_chain = before == Some(',');
        if group > 0 && !chain && !in_chain {
            let thousands = group == 3 && (1..=3).contains(&whole) && !text.starts_with('0');
            text =
                if thousands { format!("{text}{}", &behind[..group]) } else { format!("{text}.{}", &behind[..group]) };
            length += 1 + group;
        }
    }
    if length == 0 || text.is_empty() {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    let negative = rest.starts_with(['-', '−']);
    Some((sign_length + length, if negative { -value } else { value }))
}

/// A unit word behind a number becomes part of it.
fn attach_units(words: &mut Vec<Word>) {
    let mut index = 0;
    while index + 1 < words.len() {
        let unit = match words[index + 1].kind {
            WordKind::Word | WordKind::Mark(_) => unit_of(&words[index + 1].text),
            _ => None,
        };
        if let (WordKind::Number { unit: slot @ None, .. }, Some(unit)) = (&mut words[index].kind, unit) {
            *slot = Some(unit.to_owned());
            words[index].end = words[index + 1].end;
            words.remove(index + 1);
            // "hounsfield units" is one unit.
            if words.get(index + 1).is_some_and(|word| word.is("unit") || word.is("units")) {
                words[index].end = words[index + 1].end;
                words.remove(index + 1);
            }
        }
        index += 1;
    }
}

/// A light stem, the same for both sides of a comparison: plural, "-ing" and "-ed" endings and a final "e" go.
pub fn stem(word: &str) -> String {
    let word = word.strip_suffix("'s").unwrap_or(word);
    let mut stem = crate::knowledge::tokens::singular(word);
    let has_vowel = |text: &str| text.contains(['a', 'e', 'i', 'o', 'u', 'y']);
    for ending in ["ing", "ed"] {
        if let Some(rest) = stem.strip_suffix(ending)
            && rest.len() >= 3
            && has_vowel(rest)
        {
            let bytes = rest.as_bytes();
            let doubled = rest.is_ascii()
                && bytes[bytes.len() - 1] == bytes[bytes.len() - 2]
                && !rest.ends_with(['l', 's', 'e', 'o']);
            stem = if doubled { rest[..rest.len() - 1].to_owned() } else { rest.to_owned() };
            break;
        }
    }
    if stem.len() > 3 && stem.ends_with('e') {
        stem.pop();
    }
    stem
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Vec<(f64, Option<String>)> {
        cut(text)
            .into_iter()
            .filter_map(|word| match word.kind {
                WordKind::Number { value, unit } => Some((value, unit)),
                _ => None,
            })
            .collect()
    }

    fn values(text: &str) -> Vec<f64> {
        numbers(text).into_iter().map(|(value, _)| value).collect()
    }

    /// Protects signs, ranges, decimal commas and lists: a wrong reading would be a wrong threshold.
    #[test]
    fn numbers_are_read_as_people_write_them() {
        assert_eq!(values("from 100 to 300"), [100.0, 300.0]);
        assert_eq!(values("100-300"), [100.0, 300.0]);
        assert_eq!(values("-400 to -20.5"), [-400.0, -20.5]);
        assert_eq!(values("between −400 and 20"), [-400.0, 20.0]);
        assert_eq!(values("1,5 and 0,500"), [1.5, 0.5]);
        assert_eq!(values("1,500"), [1500.0]);
        assert_eq!(values("255,128,0"), [255.0, 128.0, 0.0]);
        assert_eq!(values("(10, 20, -30)"), [10.0, 20.0, -30.0]);
        assert_eq!(values("(10,20,-30)"), [10.0, 20.0, -30.0]);
        assert_eq!(values(">200"), [200.0]);
        assert_eq!(values("in 3D with Segment_1 and T12"), Vec::<f64>::new());
    }

    /// Protects units that stand behind a number with and without a space.
    #[test]
    fn units_belong_to_their_number() {
        let unit = |unit: &str| Some(unit.to_owned());
        assert_eq!(
            numbers("5mm 2 cm 50% 30 degrees"),
            [(5.0, unit("mm")), (2.0, unit("cm")), (50.0, unit("%")), (30.0, unit("degrees"))]
        );
        assert_eq!(numbers("150 Hounsfield units"), [(150.0, unit("hu"))]);
    }

    /// Protects quoted texts and apostrophes inside words.
    #[test]
    fn quotes_and_apostrophes_are_told_apart() {
        let words = cut("what's in 'My model' and “Zweite Struktur” don't");
        let quoted: Vec<&str> =
            words.iter().filter(|word| word.kind == WordKind::Quoted).map(|word| word.text.as_str()).collect();
        assert_eq!(quoted, ["My model", "Zweite Struktur"]);
        assert!(words.iter().any(|word| word.is("what's")) && words.iter().any(|word| word.is("don't")));
    }

    /// Protects that forms of a verb and plurals share a stem.
    #[test]
    fn forms_share_a_stem() {
        for forms in [["hide", "hiding", "hides"], ["crop", "cropping", "cropped"], ["rename", "renamed", "renaming"]] {
            assert!(forms.iter().all(|form| stem(form) == stem(forms[0])), "{forms:?}");
        }
        assert_ne!(stem("red"), stem("read"));
    }
}
