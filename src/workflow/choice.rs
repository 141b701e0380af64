//! What a person chooses in a step: the type of the value, and whether an answer fits it.
//!
//! Checking is pure. What only Slicer knows (is there a node with this id, does the combo box have this text) is checked
//! by the runner before the answer reaches the machine.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A value that the person chooses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The name under which the answer is kept.
    pub value: String,
    #[serde(rename = "type")]
    pub kind: ChoiceKind,
    /// What the value is for, for the person and for "Choose for me".
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// MRML class of a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The value that names the segmentation, volume or panel that the choice is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Name of the combo box of a live text item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widget: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<f64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The fields of a form, the columns of a table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Choice>,
}

/// The type of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceKind {
    /// A node, by id.
    Node,
    /// A segment, by id.
    Segment,
    /// The ids of the segments to show.
    SegmentVisibility,
    Enum,
    Int,
    Float,
    Bool,
    /// Two numbers, low and high, with a live preview.
    Range,
    Slider,
    /// The text of an item of a live combo box.
    Item,
    Form,
    Table,
}

impl Choice {
    /// What is wrong with the definition: problem and what to write instead.
    pub(super) fn flaws(&self) -> Vec<(String, String)> {
        use ChoiceKind::{Enum, Form, Item, Node, Segment, SegmentVisibility, Slider, Table};
        let mut flaws = Vec::new();
        let mut need = |missing: bool, what: &str, instead: &str| {
            if missing {
                flaws.push((format!("the choice \"{}\" has no {what}", self.value), instead.to_owned()));
            }
        };
        need(self.value.is_empty(), "value", "Name the value that it sets.");
        need(self.kind == Node && self.class.is_none(), "class", "Name the MRML class of the node.");
        let of = matches!(self.kind, Segment | SegmentVisibility) && self.of.is_none();
        need(of, "of", "Name the value that holds the segmentation.");
        need(self.kind == Enum && self.options.is_empty(), "options", "List the texts to choose from.");
        need(self.kind == Item && self.widget.is_none(), "widget", "Name the combo box.");
        need(matches!(self.kind, Form | Table) && self.fields.is_empty(), "fields", "List the fields.");
        let ends = self.minimum.is_none() || self.maximum.is_none();
        need(self.kind == Slider && ends, "minimum and maximum", "Give both ends.");
        if let (Some(low), Some(high)) = (self.minimum, self.maximum)
            && low > high
        {
            flaws.push(("the minimum is above the maximum".into(), "Exchange them.".into()));
        }
        for field in &self.fields {
            flaws.extend(field.flaws());
        }
        flaws
    }

    /// The answer as it is kept, or in words why it does not fit.
    ///
    /// # Errors
    /// A sentence for the person that says what is expected.
    pub fn accept(&self, answer: &Value) -> Result<Value, String> {
        match self.kind {
            ChoiceKind::Node | ChoiceKind::Segment | ChoiceKind::Item => match answer.as_str() {
                Some(text) if !text.is_empty() => Ok(answer.clone()),
                _ => Err("Choose one of the list.".into()),
            },
            ChoiceKind::SegmentVisibility => match answer.as_array() {
                Some(ids) if ids.iter().all(Value::is_string) => Ok(answer.clone()),
                _ => Err("Choose the segments to show.".into()),
            },
            ChoiceKind::Enum => self.accept_option(answer),
            ChoiceKind::Bool => match answer {
                Value::Bool(_) => Ok(answer.clone()),
                Value::String(word) => match word.trim().to_lowercase().as_str() {
                    "yes" => Ok(Value::Bool(true)),
                    "no" => Ok(Value::Bool(false)),
                    _ => Err("Answer yes or no.".into()),
                },
                _ => Err("Answer yes or no.".into()),
            },
            ChoiceKind::Int => match answer.as_f64() {
                Some(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
                    self.within(number).map(|number| json!(number as i64))
                }
                _ => Err("A whole number is needed.".into()),
            },
            ChoiceKind::Float | ChoiceKind::Slider => match answer.as_f64() {
                Some(number) => self.within(number).map(|number| json!(number)),
                None => Err("A number is needed.".into()),
            },
            ChoiceKind::Range => self.accept_range(answer),
            ChoiceKind::Form => self.accept_fields(answer),
            ChoiceKind::Table => match answer.as_array() {
                Some(rows) if !rows.is_empty() => rows.iter().map(|row| self.accept_fields(row)).collect(),
                _ => Err("At least one row is needed.".into()),
            },
        }
    }

    fn accept_option(&self, answer: &Value) -> Result<Value, String> {
        let wanted = answer.as_str().unwrap_or_default().trim();
        match self.options.iter().find(|option| option.to_lowercase() == wanted.to_lowercase()) {
            Some(option) => Ok(json!(option)),
            None => Err(format!("Choose one of: {}.", self.options.join(", "))),
        }
    }

    fn accept_range(&self, answer: &Value) -> Result<Value, String> {
        let ends: Option<Vec<f64>> =
            answer.as_array().map(|ends| ends.iter().filter_map(Value::as_f64).collect::<Vec<_>>());
        match ends.as_deref() {
            Some(&[low, high]) if low <= high => Ok(json!([self.within(low)?, self.within(high)?])),
            Some([_, _]) => Err("The lower end is above the upper end.".into()),
            _ => Err("Two numbers are needed: the lower and the upper end.".into()),
        }
    }

    fn accept_fields(&self, answer: &Value) -> Result<Value, String> {
        let Some(given) = answer.as_object() else { return Err("All fields are needed.".into()) };
        if let Some(unknown) = given.keys().find(|name| !self.fields.iter().any(|field| field.value == **name)) {
            return Err(format!("There is no field \"{unknown}\"."));
        }
        let mut kept = serde_json::Map::new();
        for field in &self.fields {
            let value = given.get(&field.value).or(field.default.as_ref()).unwrap_or(&Value::Null);
            let value = field.accept(value).map_err(|why| format!("{}: {why}", field.value))?;
            kept.insert(field.value.clone(), value);
        }
        Ok(Value::Object(kept))
    }

    fn within(&self, number: f64) -> Result<f64, String> {
        let (low, high) = (self.minimum.unwrap_or(f64::MIN), self.maximum.unwrap_or(f64::MAX));
        if number.is_finite() && (low..=high).contains(&number) {
            return Ok(number);
        }
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        Err(match (self.minimum, self.maximum) {
            (Some(low), Some(high)) => format!("A number from {low} to {high}{unit} is needed."),
            (Some(low), None) => format!("A number of at least {low}{unit} is needed."),
            (None, Some(high)) => format!("A number of at most {high}{unit} is needed."),
            (None, None) => "A number is needed.".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(text: &str) -> Choice {
        serde_json::from_str(text).unwrap()
    }

    /// Each type takes what fits, and says what is expected of what does not.
    #[test]
    fn answers_of_every_type() {
        let cases = [
            (r#"{"value": "v", "type": "node", "class": "vtkMRMLModelNode"}"#, json!("id1"), json!("")),
            (r#"{"value": "v", "type": "segment", "of": "s"}"#, json!("Segment_1"), json!(3)),
            (r#"{"value": "v", "type": "segment_visibility", "of": "s"}"#, json!(["a"]), json!("a")),
            (r#"{"value": "v", "type": "enum", "options": ["Left", "Right"]}"#, json!("Left"), json!("Middle")),
            (r#"{"value": "v", "type": "int", "minimum": 1, "maximum": 6}"#, json!(3), json!(7)),
            (r#"{"value": "v", "type": "int"}"#, json!(3), json!(3.5)),
            (r#"{"value": "v", "type": "float", "minimum": 0}"#, json!(0.5), json!(-1)),
            (r#"{"value": "v", "type": "bool"}"#, json!(true), json!("perhaps")),
            (r#"{"value": "v", "type": "range", "minimum": 0}"#, json!([1.0, 2.0]), json!([2, 1])),
            (r#"{"value": "v", "type": "slider", "minimum": 0, "maximum": 1}"#, json!(0.5), json!(2)),
            (r#"{"value": "v", "type": "item", "widget": "box"}"#, json!("Fast"), json!(null)),
            (
                r#"{"value": "v", "type": "form", "fields": [{"value": "n", "type": "int"}]}"#,
                json!({"n": 1}),
                json!({"n": 1, "m": 2}),
            ),
            (
                r#"{"value": "v", "type": "table", "fields": [{"value": "n", "type": "bool"}]}"#,
                json!([{"n": true}]),
                json!([]),
            ),
        ];
        for (definition, right, wrong) in cases {
            let choice = choice(definition);
            assert!(choice.flaws().is_empty(), "{definition}");
            assert_eq!(choice.accept(&right).as_ref(), Ok(&right), "{definition}");
            assert!(choice.accept(&wrong).is_err(), "{definition} took {wrong}");
        }
        assert_eq!(choice(r#"{"value": "v", "type": "bool"}"#).accept(&json!("Yes")), Ok(json!(true)));
        let option = choice(r#"{"value": "v", "type": "enum", "options": ["Left"]}"#);
        assert_eq!(option.accept(&json!("left")), Ok(json!("Left")));
    }

    #[test]
    fn definitions_that_cannot_be_answered_are_found() {
        for text in [
            r#"{"value": "v", "type": "node"}"#,
            r#"{"value": "v", "type": "segment"}"#,
            r#"{"value": "v", "type": "enum"}"#,
            r#"{"value": "v", "type": "slider"}"#,
            r#"{"value": "v", "type": "int", "minimum": 2, "maximum": 1}"#,
            r#"{"value": "v", "type": "form", "fields": [{"value": "", "type": "int"}]}"#,
        ] {
            assert_eq!(choice(text).flaws().len(), 1, "{text}");
        }
    }
}
