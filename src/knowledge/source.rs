//! Sources of knowledge as data: which files of a folder are knowledge, of which kind, and what each kind weighs.
//!
//! The table is `resources/knowledge/sources.toml`, which a person may replace. Its patterns are made for a Slicer source
//! tree and fit an extension or a plain folder too, because they end in patterns for every folder.

use std::collections::HashMap;
use std::path::Path;

use regex::Regex;
use serde::Deserialize;

use super::index::KnowledgeError;

/// The kind of files that are read but give no passages.
pub const READ_ONLY: &str = "read";
const SKIPPED: &str = "skip";

#[derive(Deserialize)]
struct Table {
    rule: Vec<RuleText>,
    weights: HashMap<String, f64>,
}

#[derive(Deserialize)]
struct RuleText {
    path: String,
    kind: String,
}

/// The rules of all sources.
#[derive(Debug)]
pub struct SourceRules {
    rules: Vec<(Regex, String)>,
    weights: HashMap<String, f64>,
}

impl SourceRules {
    /// The rules, with the person's own table in front of ours.
    ///
    /// # Errors
    /// When the table is damaged.
    pub fn open(data_folder: Option<&Path>) -> Result<Self, KnowledgeError> {
        Self::parse(&super::data_text(data_folder, "knowledge/sources.toml"))
    }

    fn parse(text: &str) -> Result<Self, KnowledgeError> {
        let damaged = |why: String| KnowledgeError::Data { file: "knowledge/sources.toml", why };
        let table: Table = toml::from_str(text).map_err(|error| damaged(error.to_string()))?;
        let compiled = table.rule.into_iter().map(|rule| {
            Regex::new(&expression(&rule.path)).map(|pattern| (pattern, rule.kind)).map_err(|e| damaged(e.to_string()))
        });
        Ok(Self { rules: compiled.collect::<Result<_, _>>()?, weights: table.weights })
    }

    /// The kind of the file `path` (relative to its source, with `/`); `None` when it is no knowledge.
    pub fn kind_of(&self, path: &str) -> Option<&str> {
        let (_, kind) = self.rules.iter().find(|(pattern, _)| pattern.is_match(path))?;
        (kind != SKIPPED).then_some(kind.as_str())
    }

    /// What a passage of this kind counts; kinds without a weight count 1.
    pub fn weight(&self, kind: &str) -> f64 {
        self.weights.get(kind).copied().unwrap_or(1.0)
    }
}

/// The regular expression of a path pattern.
fn expression(pattern: &str) -> String {
    let mut text = String::from("^");
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("**/") {
            text.push_str("(?:.*/)?");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("**") {
            text.push_str(".*");
            rest = after;
        } else {
            match character {
                '*' => text.push_str("[^/]*"),
                other => text.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
            }
            rest = &rest[character.len_utf8()..];
        }
    }
    text.push('$');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects the kinds that the ranking relies on, and that the first rule wins.
    #[test]
    fn files_have_their_kind() {
        let rules = SourceRules::open(None).expect("embedded table");
        let cases = [
            ("Docs/developer_guide/script_repository/volumes.md", Some("doc_example")),
            ("Docs/user_guide/modules/data.md", Some("user_guide")),
            ("Base/Python/slicer/util.py", Some("python_api")),
            ("Libs/MRML/Core/vtkMRMLModelNode.h", Some("mrml_definition")),
            ("Modules/Loadable/Volumes/Logic/vtkSlicerVolumesLogic.h", Some("loadable_module")),
            ("Modules/Loadable/Volumes/qSlicerVolumesModuleWidget.cxx", Some(READ_ONLY)),
            ("Modules/Loadable/Markups/Testing/Python/Test.py", Some("test_example")),
            ("Modules/CLI/AddScalarVolumes/AddScalarVolumes.xml", Some("cli_module")),
            ("MyModule.py", Some("source")),
            (".git/config", None),
            ("picture.png", None),
        ];
        for (path, kind) in cases {
            assert_eq!(rules.kind_of(path), kind, "{path}");
        }
        assert!(rules.weight("recipe") > rules.weight("unheard of"));
    }
}
