//! The value of a slot: as a Python expression for code, and as words for people.
//!
//! Names of nodes come from files of any origin, so they reach code only as string literals written here: quotes,
//! backslashes and every character that could end a line or disguise the text are escaped.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// What fills a slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotValue {
    Node {
        id: String,
        name: String,
    },
    /// A segment of a segmentation in the scene.
    Segment {
        id: String,
        name: String,
        segmentation: String,
    },
    Number(f64),
    Integer(i64),
    /// Text, or the canonical word of a choice, view, layout, axis, orientation or sample.
    Text(String),
    Flag(bool),
    /// Red, green, blue from 0 to 1, and what the person called it.
    Color([f64; 3], String),
    /// RAS, mm.
    Point([f64; 3]),
    Points(Vec<[f64; 3]>),
    /// Something that an earlier part of the same request makes.
    Earlier {
        part: usize,
        key: String,
        class: String,
    },
    /// An optional slot that was left open.
    Nothing,
}

impl SlotValue {
    /// The value as a Python expression.
    pub fn code(&self) -> String {
        match self {
            SlotValue::Node { id, .. } | SlotValue::Segment { id, .. } => python_string(id),
            SlotValue::Number(value) => python_float(*value),
            SlotValue::Integer(value) => value.to_string(),
            SlotValue::Text(text) => python_string(text),
            SlotValue::Flag(true) => "True".to_owned(),
            SlotValue::Flag(false) => "False".to_owned(),
            SlotValue::Color(color, _) => python_list(color),
            SlotValue::Point(point) => python_list(point),
            SlotValue::Points(points) => {
                let points: Vec<String> = points.iter().map(|point| python_list(point)).collect();
                format!("[{}]", points.join(", "))
            }
            SlotValue::Earlier { part, key, .. } => format!("results[{part}][{}]", python_string(key)),
            SlotValue::Nothing => "None".to_owned(),
        }
    }

    /// The value in words, a node's name in quotes.
    pub fn text(&self) -> String {
        match self {
            SlotValue::Node { name, .. } | SlotValue::Segment { name, .. } => format!("\"{name}\""),
            _ => self.bare(),
        }
    }

    /// The value in words, without quotes.
    pub fn bare(&self) -> String {
        match self {
            SlotValue::Node { name, .. } | SlotValue::Segment { name, .. } => name.clone(),
            SlotValue::Number(value) => value.to_string(),
            SlotValue::Integer(value) => value.to_string(),
            SlotValue::Text(text) => text.clone(),
            SlotValue::Flag(true) => "on".to_owned(),
            SlotValue::Flag(false) => "off".to_owned(),
            SlotValue::Color(_, name) => name.clone(),
            SlotValue::Point(point) => words_of_point(point),
            SlotValue::Points(points) => points.iter().map(words_of_point).collect::<Vec<_>>().join(", "),
            SlotValue::Earlier { part, class, .. } => format!("the {} of step {}", class_words(class), part + 1),
            SlotValue::Nothing => "not given".to_owned(),
        }
    }

    /// The node id, when it is known before the run.
    pub fn id(&self) -> Option<&str> {
        match self {
            SlotValue::Node { id, .. } | SlotValue::Segment { id, .. } => Some(id),
            _ => None,
        }
    }
}

/// What people call a node of this class: "vtkMRMLScalarVolumeNode" is a "volume".
pub fn class_words(class: &str) -> String {
    let bare = class.trim_start_matches("vtkMRML").trim_end_matches("Node");
    let known = [
        ("ScalarVolume", "volume"),
        ("LabelMapVolume", "label map"),
        ("Volume", "volume"),
        ("VectorVolume", "vector volume"),
        ("MarkupsFiducial", "point list"),
        ("MarkupsLine", "line"),
        ("MarkupsAngle", "angle"),
        ("MarkupsCurve", "curve"),
        ("MarkupsClosedCurve", "closed curve"),
        ("MarkupsPlane", "plane"),
        ("MarkupsROI", "ROI"),
        ("Markups", "markup"),
        ("LinearTransform", "transform"),
        ("Transform", "transform"),
        ("ColorTable", "colour table"),
        ("Displayable", "node"),
        ("Transformable", "node"),
        ("Storable", "node"),
        ("", "node"),
    ];
    if let Some((_, words)) = known.iter().find(|(name, _)| *name == bare) {
        return (*words).to_owned();
    }
    let mut words = String::new();
    let mut before = ' ';
    for c in bare.chars() {
        if c.is_uppercase() && before.is_lowercase() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
        before = c;
    }
    words
}

/// A Python string literal for any text.
pub fn python_string(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for c in text.chars() {
        match c {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\t' => literal.push_str("\\t"),
            c if c == ' ' || c.is_ascii_graphic() || (c.is_alphanumeric() && !c.is_ascii()) => literal.push(c),
            // Control characters, marks that turn the writing direction, odd spaces: seen, not hidden.
            c => {
                let code = u32::from(c);
                let written =
                    if code > 0xFFFF { write!(literal, "\\U{code:08x}") } else { write!(literal, "\\u{code:04x}") };
                debug_assert!(written.is_ok(), "writing to a String cannot fail");
            }
        }
    }
    literal.push('"');
    literal
}

fn python_float(value: f64) -> String {
    if value.is_finite() { format!("{value:?}") } else { "None".to_owned() }
}

fn python_list(values: &[f64]) -> String {
    let values: Vec<String> = values.iter().map(|value| python_float(*value)).collect();
    format!("[{}]", values.join(", "))
}

fn words_of_point(point: &[f64; 3]) -> String {
    format!("({}, {}, {})", point[0], point[1], point[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects Slicer from a node name that tries to become code.
    #[test]
    fn hostile_names_stay_inside_their_literal() {
        let hostile = "x\"); import os; os.system(\"rm\")#\n\\\u{202e}\0";
        let literal = SlotValue::Node { id: hostile.into(), name: hostile.into() }.code();
        assert_eq!(literal, r#""x\"); import os; os.system(\"rm\")#\n\\\u202e\u0000""#);
        assert_eq!(python_string("Größe 肝臓"), "\"Größe 肝臓\"");
        let back: String = serde_json::from_str(&literal).expect("the same escapes as JSON");
        assert_eq!(back, hostile);
    }

    /// Protects the Python form of every kind of value.
    #[test]
    fn values_are_python() {
        assert_eq!(SlotValue::Number(150.0).code(), "150.0");
        assert_eq!(SlotValue::Points(vec![[1.0, 2.0, -3.5]]).code(), "[[1.0, 2.0, -3.5]]");
        assert_eq!(SlotValue::Nothing.code(), "None");
        let earlier = SlotValue::Earlier { part: 1, key: "model".into(), class: "vtkMRMLModelNode".into() };
        assert_eq!(earlier.code(), "results[1][\"model\"]");
        assert_eq!(earlier.text(), "the model of step 2");
    }
}
