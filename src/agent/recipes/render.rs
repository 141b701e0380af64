//! From filled slots to a plan, a program and, after the run, an answer.

use std::collections::BTreeMap;

use serde_json::Value;

use super::RecipePart;
use super::book::RecipeBook;
use super::slots::{Filling, Source};
use super::value::SlotValue;
use crate::agent::Plan;
use crate::knowledge::template::{Piece, Template};
use crate::knowledge::{Recipe, Risk};

/// The plan of one part. Values taken by default are named as assumptions.
pub(super) fn plan(recipe: &Recipe, filling: &Filling) -> Plan {
    let rendered = rendered(&recipe.plan_template, filling);
    let mut plan: Plan = match serde_json::from_value(rendered) {
        Ok(plan) => plan,
        Err(error) => {
            // The file was checked as JSON; a field of the wrong type leaves a plan that checks nothing and says so.
            tracing::warn!(recipe = recipe.id, %error, "the plan of a recipe has a field of the wrong type");
            Plan { task_summary: recipe.title.clone(), ..Plan::default() }
        }
    };
    plan.risk_level = recipe.risk.word().to_owned();
    plan.requires_confirmation |= recipe.risk == Risk::High;
    for (name, filled) in &filling.slots {
        if filled.source == Source::Default && filled.value.id().is_some() {
            let name = name.replace('_', " ");
            plan.unverified_assumptions.push(format!("The {name} is not named; {} is used.", filled.value.text()));
        }
    }
    plan
}

fn rendered(value: &Value, filling: &Filling) -> Value {
    match value {
        Value::String(text) => rendered_string(text, filling),
        Value::Array(items) => Value::Array(items.iter().map(|item| rendered(item, filling)).collect()),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, field)| (key.clone(), rendered(field, filling))).collect())
        }
        other => other.clone(),
    }
}

fn rendered_string(text: &str, filling: &Filling) -> Value {
    let Ok(template) = Template::parse(text) else { return Value::String(text.to_owned()) };
    // An id or a name that is not known before the run is left out of a check rather than guessed.
    if let [Piece::Hole(hole)] = &template.pieces[..]
        && matches!(hole.format.as_deref(), Some("id" | "regex" | "name"))
        && let Some(SlotValue::Earlier { .. } | SlotValue::Nothing) =
            filling.slots.get(&hole.name).map(|filled| &filled.value)
    {
        return Value::Null;
    }
    Value::String(template.render(|hole| slot_text(filling, &hole.name, hole.format.as_deref())))
}

fn slot_text(filling: &Filling, name: &str, format: Option<&str>) -> String {
    let Some(filled) = filling.slots.get(name) else { return String::new() };
    match format {
        Some("name") => filled.value.bare(),
        Some("id") => filled.value.id().unwrap_or_default().to_owned(),
        Some("regex") => regex::escape(&filled.value.bare()),
        _ => filled.value.text(),
    }
}

/// One plan of the plans of all parts.
pub(super) fn joined(plans: Vec<Plan>) -> Plan {
    let rank = |word: &str| ["low", "medium", "high"].iter().position(|other| *other == word).unwrap_or(1);
    plans
        .into_iter()
        .reduce(|mut whole, next| {
            whole.task_summary = format!("{} Then: {}", whole.task_summary.trim(), next.task_summary.trim());
            if rank(&next.risk_level) > rank(&whole.risk_level) {
                whole.risk_level = next.risk_level;
            }
            if rank(&next.overall_confidence) < rank(&whole.overall_confidence) {
                whole.overall_confidence = next.overall_confidence;
            }
            whole.requires_confirmation |= next.requires_confirmation;
            whole.unverified_assumptions.extend(next.unverified_assumptions);
            whole.steps.extend(next.steps);
            whole
        })
        .unwrap_or_default()
}

/// The program: each part leaves its `result`, the value of the whole is the list of them.
pub(super) fn code(parts: &[(&Recipe, &Filling)]) -> String {
    let mut code = String::from("results = []\n");
    for (recipe, filling) in parts {
        let title: String = recipe.title.chars().filter(|c| !c.is_control()).collect();
        let body = recipe.code_template.render(|hole| {
            filling.slots.get(&hole.name).map_or_else(|| "None".to_owned(), |filled| filled.value.code())
        });
        code.push_str(&format!("\n# {title}\n{}\nresults.append(result)\n", body.trim_end()));
    }
    code.push_str("\nresults\n");
    code
}

/// The slots of a part as words.
pub(super) fn part(recipe: &Recipe, filling: &Filling) -> RecipePart {
    let slots = filling.slots.iter().map(|(name, filled)| (name.clone(), filled.value.bare())).collect();
    RecipePart { recipe: recipe.id.clone(), slots }
}

/// What the person is told after the run: the answer of each part, filled from what the run reported.
pub fn final_answer(parts: &[RecipePart], value: &Value, recipes: &RecipeBook) -> String {
    let mut answers = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let Some(recipe) = recipes.recipe(&part.recipe) else { continue };
        let result = value.get(index).unwrap_or(&Value::Null);
        answers.push(answer(&recipe.answer_template, &part.slots, result));
    }
    answers.join("\n\n")
}

fn answer(template: &Template, slots: &BTreeMap<String, String>, result: &Value) -> String {
    let mut text = String::new();
    for piece in &template.pieces {
        match piece {
            Piece::Text(plain) => text.push_str(plain),
            Piece::Hole(hole) => {
                let format = hole.format.as_deref();
                match hole.result_path() {
                    Some(path) if format == Some("table") => push_table(&mut text, lookup(result, path)),
                    Some(path) => text.push_str(&value_text(lookup(result, path), format)),
                    None => text.push_str(&plain(slots.get(&hole.name).map_or("", String::as_str))),
                }
            }
        }
    }
    text.trim().to_owned()
}

fn lookup<'a>(result: &'a Value, path: &str) -> &'a Value {
    path.split('.').filter(|step| !step.is_empty()).fold(result, |value, step| {
        let inner = match value {
            Value::Array(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
            _ => value.get(step),
        };
        inner.unwrap_or(&Value::Null)
    })
}

/// A value as people read it. A number has the decimals of its format, or else at most four significant digits.
fn value_text(value: &Value, format: Option<&str>) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => match (format, number.as_f64()) {
            (Some(format), Some(value)) => format!("{value:.*}", decimals(format)),
            (None, Some(value)) if !number.is_i64() && !number.is_u64() => short(value),
            _ => number.to_string(),
        },
        Value::String(text) => plain(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| value_text(item, format)).collect();
            items.join(", ")
        }
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(key, field)| format!("{key}: {}", value_text(field, format))).collect();
            fields.join(", ")
        }
    }
}

/// `0.01` stands for two decimals.
fn decimals(format: &str) -> usize {
    format.split_once('.').map_or(0, |(_, digits)| digits.len().min(12))
}

fn short(value: f64) -> String {
    let magnitude = value.abs();
    let places = if magnitude >= 1000.0 || magnitude == 0.0 {
        0
    } else if magnitude >= 100.0 {
        1
    } else if magnitude >= 10.0 {
        2
    } else if magnitude >= 1.0 {
        3
    } else {
        5
    };
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Text from the scene inside markdown: what could become a link, a picture or a tag stays text.
fn plain(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '[' | ']' | '<' | '`' | '*' | '\\' => safe.extend(['\\', c]),
            '\n' | '\r' => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

/// A list of records as a markdown table, set apart by blank lines.
fn push_table(text: &mut String, rows: &Value) {
    let Some(rows) = rows.as_array().filter(|rows| !rows.is_empty()) else { return };
    let mut columns: Vec<&String> = Vec::new();
    for key in rows.iter().filter_map(Value::as_object).flat_map(|row| row.keys()) {
        if !columns.contains(&key) {
            columns.push(key);
        }
    }
    if columns.is_empty() {
        return;
    }
    while text.ends_with(' ') {
        text.pop();
    }
    text.push_str("\n\n");
    let cell = |text: String| text.replace('|', "\\|");
    let head: Vec<String> = columns.iter().map(|name| cell(plain(name))).collect();
    text.push_str(&format!("| {} |\n|{}\n", head.join(" | "), " --- |".repeat(columns.len())));
    for row in rows {
        let cells: Vec<String> =
            columns.iter().map(|name| cell(value_text(row.get(name.as_str()).unwrap_or(&Value::Null), None))).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Protects the answer from saying more than the run reported, and from markdown in names.
    #[test]
    fn answers_are_filled_from_the_result() {
        let template = Template::parse("{{s}}: {{result.ml|0.1}} ml, {{result.n}}, {{result.gone}}.").expect("parses");
        let slots = BTreeMap::from([("s".to_owned(), "![x](http://y)".to_owned())]);
        let text = answer(&template, &slots, &json!({"ml": 12.345, "n": 7}));
        assert_eq!(text, "!\\[x\\](http://y): 12.3 ml, 7, –.");
    }

    /// Protects the table of a list of records.
    #[test]
    fn records_become_a_table() {
        let template = Template::parse("All: {{result.rows|table}} Done.").expect("parses");
        let rows = json!({"rows": [{"Name": "a|b", "Size": 1.5}, {"Name": "c"}]});
        let text = answer(&template, &BTreeMap::new(), &rows);
        assert_eq!(text, "All:\n\n| Name | Size |\n| --- | --- |\n| a\\|b | 1.5 |\n| c | – |\n\n Done.");
    }
}
