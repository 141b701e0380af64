//! The tools that a model may call. Each has its schema, its run and its short result line in one place here.
//!
//! Nothing here changes the scene: a model changes it only by a program that went through all rings. Results are quoted
//! data and capped; equal calls within a turn are answered from a memo.

use std::collections::HashMap;
use std::time::Instant;

use serde_json::{Value, json};

use crate::knowledge::{Hit, Knowledge};
use crate::llm::{ToolCall, ToolDefinition};
use crate::slicer::{Slicer, ViewRequest};

/// Largest result of one call in characters.
const RESULT_LIMIT: usize = 8000;

/// Definitions of one name, and controls, that one call gives at most.
const MOST_DEFINITIONS: usize = 12;
const MOST_CONTROLS: usize = 12;

/// What a call gave.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    pub ok: bool,
    /// One line for the card.
    pub summary: String,
    /// What the model gets.
    pub text: String,
    pub ms: f64,
    /// A picture that the call made, with its MIME type.
    pub picture: Option<(String, Vec<u8>)>,
}

/// The tools of one turn.
pub struct Tools<'a> {
    pub knowledge: &'a Knowledge,
    pub slicer: Option<&'a Slicer>,
    memo: HashMap<String, ToolOutcome>,
}

/// The tools as a model sees them. Those that need Slicer, or the index of sources, are left out when there is none.
pub fn definitions(with_slicer: bool, with_library: bool) -> Vec<ToolDefinition> {
    let mut tools = vec![
        define(
            "VectorSearch",
            "Searches the knowledge (recipes and API texts) for passages close to the query.",
            json!({"query": {"type": "string"}, "top_k": {"type": "integer", "minimum": 1, "maximum": 20, "default": 10}}),
            &["query"],
        ),
        define(
            "Grep",
            "Finds lines that match a regular expression in the knowledge files.",
            json!({"pattern": {"type": "string"}, "path": {"type": "string", "description": "Only files whose path starts so"},
                   "context": {"type": "integer", "minimum": 0, "maximum": 20, "default": 5}}),
            &["pattern"],
        ),
        define(
            "ReadFile",
            "Reads one knowledge file by the path that a search gave. With `query`, of a long file only what fits.",
            json!({"path": {"type": "string"}, "query": {"type": "string"}, "first_line": {"type": "integer", "minimum": 1, "default": 1}}),
            &["path"],
        ),
    ];
    if with_library {
        tools.extend([
            define(
                "SearchSymbol",
                "Gives the definitions of a name (function, method, class) in the Slicer sources, with signature and description.",
                json!({"name": {"type": "string", "description": "A name, or Class.name"}}),
                &["name"],
            ),
            define(
                "SearchUiControls",
                "Finds controls of Slicer's windows by what is written on them, and the API behind them.",
                json!({"label": {"type": "string"}}),
                &["label"],
            ),
        ]);
    }
    if with_slicer {
        tools.extend([
            define(
                "ListNodes",
                "Lists nodes of the MRML scene with id, name and class.",
                json!({"class_name": {"type": "string"}, "name": {"type": "string"}}),
                &[],
            ),
            define(
                "GetNodeProperties",
                "Gives the properties of MRML nodes.",
                json!({"ids": {"type": "array", "items": {"type": "string"}, "maxItems": 20}}),
                &["ids"],
            ),
            define(
                "CaptureScreenshot",
                "Takes a picture of a view and shows it to the person, and to you if you can see pictures.",
                json!({"view_type": {"type": "string", "enum": ["application", "slice", "3d"]}, "view_name": {"type": "string"},
                       "camera_axis": {"type": "string", "enum": ["L", "R", "A", "P", "I", "S"]}, "image_size": {"type": "integer"}}),
                &["view_type"],
            ),
        ]);
    }
    tools
}

fn define(name: &str, description: &str, properties: Value, required: &[&str]) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        description: description.into(),
        parameters: json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}),
    }
}

impl<'a> Tools<'a> {
    /// Tools over this knowledge and, when connected, this Slicer.
    pub fn new(knowledge: &'a Knowledge, slicer: Option<&'a Slicer>) -> Self {
        Self { knowledge, slicer, memo: HashMap::new() }
    }

    /// Runs one call. A call that cannot be run is a result that says so, never an error of the turn.
    pub async fn run(&mut self, call: &ToolCall) -> ToolOutcome {
        let key = format!("{} {}", call.name, call.arguments);
        if let Some(known) = self.memo.get(&key) {
            return ToolOutcome { ms: 0.0, ..known.clone() };
        }
        let started = Instant::now();
        let result = self.dispatch(call).await;
        let ms = started.elapsed().as_secs_f64() * 1000.0;
        let outcome = match result {
            Ok((summary, text, picture)) => ToolOutcome { ok: true, summary, text: cap(text), ms, picture },
            Err(message) => {
                let text = json!({"error": message}).to_string();
                ToolOutcome { ok: false, summary: message, text, ms, picture: None }
            }
        };
        if outcome.picture.is_none() {
            self.memo.insert(key, outcome.clone());
        }
        outcome
    }

    async fn dispatch(&self, call: &ToolCall) -> Result<Answer, String> {
        if !call.arguments.is_object() && !call.arguments.is_null() {
            return Err(format!("The arguments of {} are not a JSON object: {}", call.name, call.arguments));
        }
        let arguments = &call.arguments;
        match call.name.as_str() {
            "VectorSearch" => self.search(arguments),
            "SearchSymbol" => self.symbol(arguments),
            "SearchUiControls" => self.controls(arguments),
            "Grep" => self.grep(arguments),
            "ReadFile" => self.read(arguments),
            "ListNodes" => self.list_nodes(arguments).await,
            "GetNodeProperties" => self.node_properties(arguments).await,
            "CaptureScreenshot" => self.screenshot(arguments).await,
            other => {
                let names: Vec<String> = definitions(self.slicer.is_some(), self.knowledge.has_library())
                    .into_iter()
                    .map(|tool| tool.name)
                    .collect();
                Err(format!("There is no tool called {other}. There are: {}", names.join(", ")))
            }
        }
    }

    fn search(&self, arguments: &Value) -> Result<Answer, String> {
        let query = text_argument(arguments, "query")?;
        let top = arguments["top_k"].as_u64().unwrap_or(10).clamp(1, 20) as usize;
        let hits = self.knowledge.search(query, top).map_err(|error| error.to_string())?;
        Ok((format!("{} passages", hits.len()), hits_text(&hits)?, None))
    }

    fn symbol(&self, arguments: &Value) -> Result<Answer, String> {
        let name = text_argument(arguments, "name")?;
        let hits = self.knowledge.symbol(name, MOST_DEFINITIONS).map_err(|error| error.to_string())?;
        if hits.is_empty() {
            return Err(format!(
                "`{name}` is not defined in the indexed sources. Try VectorSearch, or Grep with a part of it."
            ));
        }
        Ok((format!("{} definitions", hits.len()), hits_text(&hits)?, None))
    }

    fn controls(&self, arguments: &Value) -> Result<Answer, String> {
        let label = text_argument(arguments, "label")?;
        let controls = self.knowledge.controls(label, MOST_CONTROLS).map_err(|error| error.to_string())?;
        let text = serde_json::to_string(&controls).map_err(|error| error.to_string())?;
        Ok((format!("{} controls", controls.len()), text, None))
    }

    fn grep(&self, arguments: &Value) -> Result<Answer, String> {
        let pattern = text_argument(arguments, "pattern")?;
        let context = arguments["context"].as_u64().unwrap_or(5).min(20) as usize;
        let report =
            self.knowledge.grep(pattern, arguments["path"].as_str(), context).map_err(|error| error.to_string())?;
        let matches: usize = report.files.iter().map(|file| file.count).sum();
        let mut text = String::new();
        for file in &report.files {
            text.push_str(&format!("{}: {} matches\n", file.path, file.count));
        }
        text.push_str(&report.text);
        Ok((format!("{matches} matches in {} files", report.files.len()), text, None))
    }

    fn read(&self, arguments: &Value) -> Result<Answer, String> {
        let path = text_argument(arguments, "path")?;
        let first_line = arguments["first_line"].as_u64().unwrap_or(1).max(1) as usize;
        if let Some(query) = arguments["query"].as_str()
            && first_line == 1
            && let Some(text) = self.knowledge.read_sections(path, query).map_err(|error| error.to_string())?
        {
            return Ok(("the sections that fit".into(), text, None));
        }
        let text = self.knowledge.read_file(path, first_line).map_err(|error| error.to_string())?;
        Ok((format!("{} lines", text.lines().count()), text, None))
    }

    fn connected(&self) -> Result<&Slicer, String> {
        self.slicer.ok_or_else(|| "No Slicer is connected.".to_owned())
    }

    async fn list_nodes(&self, arguments: &Value) -> Result<Answer, String> {
        let slicer = self.connected()?;
        let value = slicer
            .list_nodes(arguments["class_name"].as_str(), arguments["name"].as_str())
            .await
            .map_err(|error| error.to_string())?;
        let count = value.as_array().map_or(0, Vec::len);
        Ok((format!("{count} nodes"), value.to_string(), None))
    }

    async fn node_properties(&self, arguments: &Value) -> Result<Answer, String> {
        let ids: Vec<String> =
            arguments["ids"].as_array().into_iter().flatten().filter_map(|id| id.as_str().map(str::to_owned)).collect();
        if ids.is_empty() {
            return Err("`ids` must name at least one node id.".into());
        }
        let value = self.connected()?.node_properties(&ids).await.map_err(|error| error.to_string())?;
        Ok((format!("{} nodes", ids.len()), value.to_string(), None))
    }

    async fn screenshot(&self, arguments: &Value) -> Result<Answer, String> {
        let request: ViewRequest = serde_json::from_value(arguments.clone()).map_err(|error| error.to_string())?;
        let shot = self.connected()?.screenshot(&request).await.map_err(|error| error.to_string())?;
        let note =
            format!("A picture ({}, {} bytes) was taken and is shown to the person.", shot.mime, shot.bytes.len());
        Ok((format!("picture of the {} view", request.view_type), note, Some((shot.mime, shot.bytes))))
    }
}

/// Summary, text, picture.
type Answer = (String, String, Option<(String, Vec<u8>)>);

fn text_argument<'v>(arguments: &'v Value, name: &str) -> Result<&'v str, String> {
    arguments[name].as_str().filter(|text| !text.trim().is_empty()).ok_or_else(|| format!("`{name}` must be a text."))
}

/// Hits as JSON, whole ones as long as there is room; of the others only the places, so that they can be read.
fn hits_text(hits: &[Hit]) -> Result<String, String> {
    let mut room = RESULT_LIMIT - 200;
    let mut shown = Vec::new();
    for hit in hits {
        let mut value = serde_json::to_value(hit).map_err(|error| error.to_string())?;
        let size = value.to_string().chars().count();
        if size > room
            && let Some(fields) = value.as_object_mut()
        {
            fields.insert("text".into(), "(left out for room: use ReadFile)".into());
        }
        room = room.saturating_sub(value.to_string().chars().count());
        shown.push(value);
    }
    serde_json::to_string(&shown).map_err(|error| error.to_string())
}

fn cap(text: String) -> String {
    if text.chars().count() <= RESULT_LIMIT {
        return text;
    }
    let kept: String = text.chars().take(RESULT_LIMIT).collect();
    format!("{kept}\n[cut after {RESULT_LIMIT} characters: ask for less at a time]")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schemas are what models are tuned to by the prompt: a change of them is seen in review.
    #[test]
    fn schemas() {
        insta::assert_json_snapshot!(definitions(true, true));
        let without: Vec<String> = definitions(false, false).into_iter().map(|tool| tool.name).collect();
        assert_eq!(without, ["VectorSearch", "Grep", "ReadFile"], "tools that need Slicer are not offered without one");
    }

    /// Whole passages are shown while there is room; the others keep their place.
    #[test]
    fn hits_are_never_cut_in_the_middle() {
        let hit = Hit {
            rank: 1,
            path: "a.md".into(),
            start_line: 1,
            end_line: 2,
            kind: "doc".into(),
            name: "A".into(),
            score: 1.0,
            text: "x".repeat(3_000),
        };
        let text = hits_text(&vec![hit; 5]).expect("json");
        let shown: Vec<Value> = serde_json::from_str(&text).expect("whole JSON");
        assert!(text.chars().count() <= RESULT_LIMIT && shown.len() == 5);
        assert_eq!(shown.iter().filter(|hit| hit["text"].as_str().is_some_and(|text| text.len() == 3_000)).count(), 2);
        assert!(shown.iter().all(|hit| hit["path"] == "a.md"));
    }

    /// A result can never fill the context of a model.
    #[test]
    fn results_are_capped() {
        let long = cap("ä".repeat(RESULT_LIMIT + 1));
        assert!(long.chars().count() < RESULT_LIMIT + 100 && long.contains("ask for less"));
        assert_eq!(cap("short".into()), "short");
    }
}
