//! Recipes: our own Slicer how-tos, one markdown file each, read into values and checked when they are loaded.
//!
//! A recipe is knowledge (its prose and code are retrieved for a model) and a program (the built-in provider matches a
//! message to its phrasings, fills its slots and renders its plan, code and answer). Everything that can be wrong with
//! a file is found here, with file and line, so that nothing is found out while a person waits.

use std::collections::BTreeMap;
use std::path::Path;

use include_dir::Dir;
use serde::Deserialize;

use super::template::{Hole, Piece, Template};

/// One recipe, checked.
#[derive(Debug, Clone)]
pub struct Recipe {
    pub id: String,
    pub title: String,
    /// What people say; `{slot}` stands for a slot's value.
    pub phrasings: Vec<String>,
    pub keywords: Vec<String>,
    pub slots: Vec<Slot>,
    /// Key of the code's `result` → class of the node that it names (`segment` for a segment).
    pub provides: BTreeMap<String, String>,
    pub risk: Risk,
    /// The text between the front matter and `## Plan`, for retrieval.
    pub prose: String,
    /// The plan as JSON, with holes inside its strings.
    pub plan_template: serde_json::Value,
    pub code_template: Template,
    pub answer_template: Template,
    /// Path below the knowledge root, for example `recipes/segment-threshold.md`.
    pub path: String,
    /// The whole file.
    pub text: String,
}

impl Recipe {
    /// The slot of this name.
    pub fn slot(&self, name: &str) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.name == name)
    }
}

/// How much a recipe may disturb.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    #[default]
    Low,
    Medium,
    High,
}

impl Risk {
    /// The word used in plans.
    pub fn word(self) -> &'static str {
        match self {
            Risk::Low => "low",
            Risk::Medium => "medium",
            Risk::High => "high",
        }
    }
}

/// What kind of value a slot takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlotKind {
    Node,
    Segment,
    Number,
    Integer,
    Text,
    Choice,
    Flag,
    Color,
    Point,
    Points,
    View,
    Layout,
    Axis,
    Orientation,
    Sample,
}

/// A typed hole of a recipe.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: SlotKind,
    /// MRML class, for a node.
    pub class: Option<String>,
    /// For a node `selected`, `newest` or `only`; else a literal value.
    pub default: Option<toml::Value>,
    #[serde(default)]
    pub optional: bool,
    /// The question when the slot is open.
    pub ask: Option<String>,
    /// Unit word of a number, for example `HU`.
    pub unit: Option<String>,
    /// Allowed range of a number, in its unit.
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    /// Canonical value → words that people use for it.
    #[serde(default)]
    pub options: BTreeMap<String, Vec<String>>,
}

/// Why a recipe file was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}, line {line}: {message}")]
pub struct RecipeError {
    pub path: String,
    /// 1-based.
    pub line: usize,
    pub message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FrontMatter {
    id: String,
    title: String,
    phrasings: Vec<String>,
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default)]
    risk: Risk,
    #[serde(default)]
    provides: BTreeMap<String, String>,
    #[serde(default)]
    slots: Vec<Slot>,
}

/// Reads recipe files. Files whose name starts with `_` and files that are not markdown are skipped. Recipes come back
/// sorted by id; a later file with the id of an earlier one replaces it. A file that is wrong is left out and its
/// error returned, so that one bad file of a person's own does not take the others away.
pub fn load(resources: impl Iterator<Item = (String, String)>) -> (Vec<Recipe>, Vec<RecipeError>) {
    let mut found: BTreeMap<String, Recipe> = BTreeMap::new();
    let mut errors = Vec::new();
    for (path, text) in resources {
        let name = path.rsplit('/').next().unwrap_or(&path);
        if !name.ends_with(".md") || name.starts_with('_') || name.eq_ignore_ascii_case("readme.md") {
            continue;
        }
        match parse(&path, &text) {
            Ok(recipe) => {
                found.insert(recipe.id.clone(), recipe);
            }
            Err(error) => errors.push(error),
        }
    }
    (found.into_values().collect(), errors)
}

/// The files of `resources/recipes/`, with the person's own in `<data_folder>/resources/recipes/` behind them, so that
/// [`load`] lets those win.
pub fn files(data_folder: Option<&Path>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if let Some(folder) = crate::resources::folder("recipes") {
        push_embedded(folder, &mut found);
    }
    found.sort();
    if let Some(data_folder) = data_folder {
        found.extend(own_files(data_folder));
    }
    found
}

fn own_files(data_folder: &Path) -> Vec<(String, String)> {
    let folder = data_folder.join("resources").join("recipes");
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new(); // The person has no recipes of their own.
    };
    let mut own: Vec<(String, String)> = entries
        .flatten()
        .filter_map(|entry| {
            let text = std::fs::read_to_string(entry.path()).ok()?;
            Some((format!("recipes/{}", entry.file_name().to_string_lossy()), text))
        })
        .collect();
    own.sort();
    own
}

fn push_embedded(folder: &'static Dir<'static>, found: &mut Vec<(String, String)>) {
    for file in folder.files() {
        if let Some(text) = file.contents_utf8() {
            found.push((file.path().to_string_lossy().replace('\\', "/"), text.to_owned()));
        }
    }
    for inner in folder.dirs() {
        push_embedded(inner, found);
    }
}

/// Reads and checks one recipe file.
pub fn parse(path: &str, text: &str) -> Result<Recipe, RecipeError> {
    let text = text.replace("\r\n", "\n");
    let fail = |line: usize, message: String| RecipeError { path: path.to_owned(), line, message };
    let lines: Vec<&str> = text.lines().collect();
    if lines.first().map(|line| line.trim_end()) != Some("+++") {
        return Err(fail(1, "a recipe starts with a line `+++` and TOML front matter".into()));
    }
    let Some(close) = lines.iter().skip(1).position(|line| line.trim_end() == "+++").map(|found| found + 1) else {
        return Err(fail(1, "the front matter has no closing line `+++`".into()));
    };
    let front = lines[1..close].join("\n");
    let front: FrontMatter = toml::from_str(&front).map_err(|error| {
        let before = error.span().map_or(0, |span| front[..span.start.min(front.len())].matches('\n').count());
        fail(before + 2, error.message().to_owned())
    })?;
    check_front(&front).map_err(|(needle, message)| fail(line_of(&lines[..close], &needle), message))?;

    let sections = Sections::find(&lines, close + 1);
    let required = |range: Option<(usize, usize)>, name: &str| {
        range.ok_or_else(|| fail(lines.len(), format!("the section `## {name}` is missing")))
    };
    let plan_range = required(sections.plan, "Plan")?;
    let code_range = required(sections.code, "Code")?;
    let answer_range = required(sections.answer, "Answer")?;
    let block = |range: (usize, usize), name: &str| {
        fenced(&lines, range).ok_or_else(|| fail(range.0, format!("`## {name}` has no closed code block")))
    };

    let (plan_line, plan_text) = block(plan_range, "Plan")?;
    let plan: serde_json::Value = serde_json::from_str(&plan_text)
        .map_err(|error| fail(plan_line + error.line(), format!("the plan is not JSON: {error}")))?;
    check_plan(&plan, &front.slots).map_err(|(needle, message)| {
        let inside = plan_text.lines().position(|line| line.contains(&needle)).unwrap_or(0);
        fail(plan_line + 1 + inside, message)
    })?;

    let (code_line, code_text) = block(code_range, "Code")?;
    let code = cut(&code_text, code_line + 1, &fail)?;
    check_holes(&code, &front.slots, false).map_err(|(line, message)| fail(code_line + 1 + line, message))?;
    if let Some(line) = hole_in_quotes(&code) {
        return Err(fail(
            code_line + 1 + line,
            "a slot stands inside quotes; it is already a Python expression".into(),
        ));
    }
    if !code_text.contains("result") {
        return Err(fail(code_line, "the code never sets `result`".into()));
    }

    let answer_text = lines[answer_range.0..answer_range.1].join("\n");
    let answer = cut(&answer_text, answer_range.0 + 1, &fail)?;
    check_holes(&answer, &front.slots, true).map_err(|(line, message)| fail(answer_range.0 + 1 + line, message))?;
    if answer_text.trim().is_empty() {
        return Err(fail(answer_range.0, "the answer is empty".into()));
    }

    Ok(Recipe {
        prose: lines[close + 1..sections.prose_end].join("\n").trim().to_owned(),
        id: front.id,
        title: front.title,
        phrasings: front.phrasings,
        keywords: front.keywords,
        slots: front.slots,
        provides: front.provides,
        risk: front.risk,
        plan_template: plan,
        code_template: code,
        answer_template: trimmed(answer),
        path: path.to_owned(),
        text,
    })
}

fn cut(text: &str, first_line: usize, fail: &impl Fn(usize, String) -> RecipeError) -> Result<Template, RecipeError> {
    Template::parse(text).map_err(|(line, message)| fail(first_line + line, message))
}

/// Where the three sections are, as half-open ranges of line indices (0-based) behind their heading.
struct Sections {
    prose_end: usize,
    plan: Option<(usize, usize)>,
    code: Option<(usize, usize)>,
    answer: Option<(usize, usize)>,
}

impl Sections {
    fn find(lines: &[&str], first: usize) -> Self {
        let mut headings: Vec<(usize, &str)> = Vec::new();
        let mut in_fence = false;
        for (index, line) in lines.iter().enumerate().skip(first) {
            if line.trim_start().starts_with("```") {
                in_fence = !in_fence;
            } else if !in_fence && let Some(heading) = line.strip_prefix("## ") {
                headings.push((index, heading.trim()));
            }
        }
        let range = |name: &str| {
            let at = headings.iter().position(|(_, heading)| *heading == name)?;
            let end = headings.get(at + 1).map_or(lines.len(), |(index, _)| *index);
            Some((headings[at].0 + 1, end))
        };
        let own = |heading: &str| matches!(heading, "Plan" | "Code" | "Answer");
        let prose_end = headings.iter().find(|(_, heading)| own(heading)).map_or(lines.len(), |(index, _)| *index);
        Self { prose_end, plan: range("Plan"), code: range("Code"), answer: range("Answer") }
    }
}

/// The first closed code block of a range: the 1-based line of its fence, and its text.
fn fenced(lines: &[&str], (start, end): (usize, usize)) -> Option<(usize, String)> {
    let open = (start..end).find(|&index| lines[index].trim_start().starts_with("```"))?;
    let close = (open + 1..end).find(|&index| lines[index].trim_end() == "```")?;
    Some((open + 1, lines[open + 1..close].join("\n")))
}

/// The 1-based line of the front matter that holds `needle`.
fn line_of(lines: &[&str], needle: &str) -> usize {
    lines.iter().position(|line| line.contains(needle)).map_or(1, |index| index + 1)
}

/// Checks what serde cannot. An error names a piece of text that stands on the line to blame.
fn check_front(front: &FrontMatter) -> Result<(), (String, String)> {
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if front.id.is_empty() || !front.id.chars().all(legal) {
        return Err(("id".into(), format!("the id `{}` may hold lower-case letters, digits and `-` only", front.id)));
    }
    if front.phrasings.is_empty() {
        return Err(("phrasings".into(), "at least one phrasing is needed".into()));
    }
    for (index, slot) in front.slots.iter().enumerate() {
        if front.slots[..index].iter().any(|other| other.name == slot.name) {
            return Err((format!("\"{}\"", slot.name), format!("the slot `{}` is declared twice", slot.name)));
        }
        check_slot(slot).map_err(|message| (format!("\"{}\"", slot.name), message))?;
    }
    for phrasing in &front.phrasings {
        for name in phrasing_slots(phrasing) {
            if !front.slots.iter().any(|slot| slot.name == name) {
                return Err((phrasing.clone(), format!("the phrasing names `{{{name}}}`, which is not a slot")));
            }
        }
    }
    Ok(())
}

fn check_slot(slot: &Slot) -> Result<(), String> {
    let name = &slot.name;
    if slot.kind == SlotKind::Node {
        if slot.class.as_deref().is_none_or(|class| !class.starts_with("vtkMRML")) {
            return Err(format!("the node slot `{name}` needs a `class` such as vtkMRMLScalarVolumeNode"));
        }
        let known = |value: &str| matches!(value, "selected" | "newest" | "only");
        if let Some(default) = &slot.default
            && !default.as_str().is_some_and(known)
        {
            return Err(format!("the default of the node slot `{name}` is `selected`, `newest` or `only`"));
        }
    }
    if slot.kind == SlotKind::Choice && slot.options.is_empty() {
        return Err(format!("the choice slot `{name}` has no options"));
    }
    if slot.default.is_none() && !slot.optional && slot.ask.is_none() {
        return Err(format!("the slot `{name}` can stay open, so it needs `ask`"));
    }
    if let (Some(minimum), Some(maximum)) = (slot.minimum, slot.maximum)
        && minimum > maximum
    {
        return Err(format!("the range of `{name}` is empty"));
    }
    Ok(())
}

/// The names in `{…}` of a phrasing.
pub fn phrasing_slots(phrasing: &str) -> Vec<&str> {
    phrasing.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name)).collect()
}

fn check_holes(template: &Template, slots: &[Slot], with_result: bool) -> Result<(), (usize, String)> {
    for hole in template.holes() {
        check_hole(hole, slots, with_result).map_err(|message| (hole.line, message))?;
    }
    Ok(())
}

fn check_hole(hole: &Hole, slots: &[Slot], with_result: bool) -> Result<(), String> {
    if with_result && hole.result_path().is_some() {
        return match hole.format.as_deref() {
            None | Some("table") => Ok(()),
            Some(format) if format.starts_with('0') && format.parse::<f64>().is_ok() => Ok(()),
            Some(format) => Err(format!("`{format}` is neither `table` nor a number format such as `0.1`")),
        };
    }
    if !slots.iter().any(|slot| slot.name == hole.name) {
        return Err(format!("`{{{{{}}}}}` is not a declared slot", hole.name));
    }
    match hole.format.as_deref() {
        None | Some("name" | "id" | "regex") => Ok(()),
        Some(format) if with_result && format.starts_with('0') && format.parse::<f64>().is_ok() => Ok(()),
        Some(format) => Err(format!("a slot has no format `{format}`")),
    }
}

/// Every string of a plan is itself a template. An error names the text that stands on the line to blame.
fn check_plan(value: &serde_json::Value, slots: &[Slot]) -> Result<(), (String, String)> {
    match value {
        serde_json::Value::String(text) => {
            let template = Template::parse(text).map_err(|(_, message)| ("{{".to_owned(), message))?;
            for hole in template.holes() {
                check_hole(hole, slots, false).map_err(|message| (hole.name.clone(), message))?;
            }
            Ok(())
        }
        serde_json::Value::Array(items) => items.iter().try_for_each(|item| check_plan(item, slots)),
        serde_json::Value::Object(fields) => fields.values().try_for_each(|field| check_plan(field, slots)),
        _ => Ok(()),
    }
}

/// The line of the first hole of a code template that stands between quotes on its line.
fn hole_in_quotes(template: &Template) -> Option<usize> {
    let mut before = String::new();
    for piece in &template.pieces {
        match piece {
            Piece::Text(text) => match text.rfind('\n') {
                Some(end) => before = text[end + 1..].to_owned(),
                None => before.push_str(text),
            },
            Piece::Hole(hole) => {
                if ends_inside_string(&before) {
                    return Some(hole.line);
                }
            }
        }
    }
    None
}

/// Whether a one-line piece of Python ends inside a string literal. A hole in the braces of an f-string counts too.
fn ends_inside_string(line: &str) -> bool {
    let mut open: Option<char> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match open {
            Some(_) if c == '\\' => {
                chars.next();
            }
            Some(quote) if c == quote => open = None,
            None if c == '"' || c == '\'' => open = Some(c),
            None if c == '#' => return false,
            _ => {}
        }
    }
    open.is_some()
}

/// The template without blank lines at its ends.
fn trimmed(mut template: Template) -> Template {
    if let Some(Piece::Text(text)) = template.pieces.first_mut() {
        *text = text.trim_start().to_owned();
    }
    if let Some(Piece::Text(text)) = template.pieces.last_mut() {
        *text = text.trim_end().to_owned();
    }
    template
}

#[cfg(test)]
#[path = "recipe_tests.rs"]
mod tests;
