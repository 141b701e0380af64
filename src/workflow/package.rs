//! The package of a guided workflow, version 2: loaded strictly or not at all.
//!
//! A package drives Slicer in front of a person who never reads it. So every file is named with its hash in the manifest,
//! a field that is not known is an error rather than a guess, and all Python passes the check. An error names the file,
//! the line, the field and what to write instead.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::graph::{StepKind, Workflow};
use super::template;
use crate::resources;

/// The layout that this program reads.
const VERSION: u64 = 2;
/// What `made_by` says in packages of this layout.
const MADE_BY: &str = "slicer-ai-agent";
/// Larger packages are refused before they are read into memory.
const MAX_FILE_BYTES: u64 = 8 << 20;
const MAX_FILES: usize = 2000;

/// `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub manifest_version: u64,
    pub made_by: String,
    pub id: String,
    pub title: String,
    pub when_to_use: String,
    /// The module whose panel is driven; empty when only Slicer's own parts are.
    #[serde(default)]
    pub module: String,
    pub needs: Needs,
    /// The extension's source that it was generated from.
    #[serde(default)]
    pub source: Option<Source>,
    pub status: Status,
    /// How many steps there are of each kind.
    pub steps: BTreeMap<String, usize>,
    /// SHA-256 of every other file, in hexadecimal, by path with `/`.
    pub files: BTreeMap<String, String>,
}

/// What must be there before it starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// Lowest version of Slicer, for example `5.6`.
    pub slicer: String,
    #[serde(default)]
    pub modules: Vec<String>,
}

/// Where the driven extension comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    pub repo: String,
    pub commit: String,
    pub fingerprint: String,
}

/// What its verification said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Validated,
    ValidatedWithWarnings,
    ValidationFailed,
}

/// A package that may run.
#[derive(Debug, Clone, PartialEq)]
pub struct Package {
    pub manifest: Manifest,
    pub workflow: Workflow,
    /// Names the package's whole content: a run goes on only with the same.
    pub hash: String,
    templates: BTreeMap<String, String>,
}

/// Why a package is not loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct LoadError {
    pub file: String,
    /// 1-based, where one line is meant.
    pub line: Option<usize>,
    /// Empty where the whole file is meant.
    pub field: String,
    pub problem: String,
    pub instead: String,
}

impl LoadError {
    fn new(file: &str, field: &str, problem: impl Into<String>, instead: impl Into<String>) -> Self {
        let (problem, instead) = (problem.into(), instead.into());
        Self { file: file.into(), line: None, field: field.into(), problem, instead }
    }

    fn at(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    fn sentence(&self) -> String {
        let line = self.line.map(|line| format!(", line {line}")).unwrap_or_default();
        let field = if self.field.is_empty() { String::new() } else { format!(", {}", self.field) };
        format!("{}{line}{field}: {}. {}", self.file, self.problem, self.instead).trim_end().to_owned()
    }
}

/// Where a package lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Embedded in the program.
    BuiltIn,
    /// In this folder.
    Folder(PathBuf),
}

/// A package that was found, loaded or refused.
#[derive(Debug, Clone)]
pub struct Found {
    pub id: String,
    pub origin: Origin,
    pub package: Result<Package, Vec<LoadError>>,
}

/// All packages: those of the program, and those below `<data>/workflows/`, which replace built-in ones of the same id.
pub fn installed(data: &Path) -> Vec<Found> {
    let mut found = BTreeMap::new();
    if let Some(folder) = resources::folder("workflows") {
        for package in folder.dirs() {
            let id = package.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
            let one = Found { id: id.clone(), origin: Origin::BuiltIn, package: Package::embedded(&id) };
            found.insert(id, one);
        }
    }
    for entry in std::fs::read_dir(data.join("workflows")).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            let id = entry.file_name().to_string_lossy().into_owned();
            let one =
                Found { id: id.clone(), package: Package::load(&entry.path()), origin: Origin::Folder(entry.path()) };
            found.insert(id, one);
        }
    }
    found.into_values().collect()
}

/// The package with this id.
pub fn find(data: &Path, id: &str) -> Option<Found> {
    installed(data).into_iter().find(|found| found.id.eq_ignore_ascii_case(id))
}

impl Package {
    /// Loads the package in `folder`.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with what to do.
    pub fn load(folder: &Path) -> Result<Self, Vec<LoadError>> {
        let mut files = BTreeMap::new();
        read_folder(folder, folder, &mut files).map_err(|error| vec![error])?;
        Self::from_files(&files)
    }

    /// Loads a package of the program.
    ///
    /// # Errors
    /// As [`Package::load`].
    pub fn embedded(id: &str) -> Result<Self, Vec<LoadError>> {
        let mut files = BTreeMap::new();
        let root = format!("workflows/{id}");
        let mut open: Vec<_> = resources::folder(&root).into_iter().collect();
        while let Some(folder) = open.pop() {
            for file in folder.files() {
                let path = file.path().to_string_lossy().replace('\\', "/");
                let name = path.strip_prefix(&root).unwrap_or(&path).trim_start_matches('/').to_owned();
                files.insert(name, file.contents().to_vec());
            }
            open.extend(folder.dirs());
        }
        Self::from_files(&files)
    }

    /// The text of a template.
    pub fn template(&self, name: &str) -> Option<&str> {
        self.templates.get(name).map(String::as_str)
    }

    fn from_files(files: &BTreeMap<String, Vec<u8>>) -> Result<Self, Vec<LoadError>> {
        let text = text_of(files, "manifest.json").map_err(|error| vec![error])?;
        let manifest = manifest(text).map_err(|error| vec![error])?;
        let mut errors = hash_errors(&manifest, files);
        if !errors.is_empty() {
            return Err(errors);
        }
        let text = text_of(files, "workflow.json").map_err(|error| vec![error])?;
        let workflow: Workflow = parse("workflow.json", text).map_err(|error| vec![error])?;
        for flaw in workflow.flaws() {
            let field = if flaw.step.is_empty() { flaw.field.into() } else { format!("{}.{}", flaw.step, flaw.field) };
            let error = LoadError::new("workflow.json", &field, flaw.problem, flaw.instead);
            errors.push(match line_of_step(text, &flaw.step) {
                Some(line) => error.at(line),
                None => error,
            });
        }
        if errors.is_empty() && manifest.steps != counts(&workflow) {
            let right = serde_json::to_string(&counts(&workflow)).unwrap_or_default();
            let problem = "the numbers of steps are not those of workflow.json";
            errors.push(LoadError::new("manifest.json", "steps", problem, format!("Write {right}.")));
        }
        let mut templates = BTreeMap::new();
        for step in &workflow.steps {
            for name in step.templates() {
                match template_of(files, name) {
                    Ok(text) => drop(templates.insert(name.to_owned(), text.to_owned())),
                    Err(error) => errors.push(error),
                }
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let hash = hex(&Sha256::digest(text_of(files, "manifest.json").unwrap_or_default()));
        Ok(Self { manifest, workflow, hash, templates })
    }
}

fn template_of<'a>(files: &'a BTreeMap<String, Vec<u8>>, name: &str) -> Result<&'a str, LoadError> {
    let file = format!("templates/{name}");
    let text = text_of(files, &file)?;
    match template::objection(text) {
        None => Ok(text),
        Some(found) => Err(LoadError::new(&file, "", found.problem, found.instead).at(found.line)),
    }
}

fn manifest(text: &str) -> Result<Manifest, LoadError> {
    // The version first, so that another layout is named as such and not by its first strange field.
    let loose: serde_json::Value = parse("manifest.json", text)?;
    let version = loose["manifest_version"].as_u64();
    if loose.get("made_by").is_none() && matches!(version, Some(2 | 3)) {
        let problem = format!(
            "this is a package of SlicerAIAgent (its manifest version {}), whose steps are program code that this program \
             cannot check step by step, so it is not run",
            version.unwrap_or_default()
        );
        let instead =
            "Make a new package from its cookbook: slicer-ai-agent workflow generate COOKBOOK --extension DIR.";
        return Err(LoadError::new("manifest.json", "manifest_version", problem, instead));
    }
    if version != Some(VERSION) {
        let said = loose.get("manifest_version").map_or("missing".to_owned(), ToString::to_string);
        let problem = format!("the version is {said}, and this program reads version {VERSION}");
        let error = LoadError::new("manifest.json", "manifest_version", problem, "Generate the package anew.");
        return Err(match line_of(text, "\"manifest_version\"") {
            Some(line) => error.at(line),
            None => error,
        });
    }
    let manifest: Manifest = parse("manifest.json", text)?;
    let wrong = |field: &str, problem: &str, instead: &str| {
        let error = LoadError::new("manifest.json", field, problem, instead);
        Err(error.at(line_of(text, &format!("\"{field}\"")).unwrap_or(1)))
    };
    if manifest.made_by != MADE_BY {
        return wrong("made_by", "another program made it", "Generate the package with this program.");
    }
    if manifest.id.is_empty() || !manifest.id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return wrong("id", "this is no id", "Use letters and digits, for example \"BoneReconstruction\".");
    }
    if manifest.status == Status::ValidationFailed {
        return wrong(
            "status",
            "its verification failed",
            "Generate it anew, and solve what workflow_metadata.json lists.",
        );
    }
    Ok(manifest)
}

/// Files that differ from the manifest, that it does not name, or that are not there.
fn hash_errors(manifest: &Manifest, files: &BTreeMap<String, Vec<u8>>) -> Vec<LoadError> {
    let mut errors = Vec::new();
    for (name, wanted) in &manifest.files {
        match files.get(name) {
            None => errors.push(LoadError::new(name, "", "the file is not there", "Get the package anew.")),
            Some(bytes) if hex(&Sha256::digest(bytes)) != *wanted => {
                let problem = "the file is not the one that was packaged (its SHA-256 differs)";
                errors.push(LoadError::new(
                    name,
                    "",
                    problem,
                    "Get the package anew, or generate it anew after a change.",
                ));
            }
            Some(_) => {}
        }
    }
    for name in files.keys().filter(|name| *name != "manifest.json" && !manifest.files.contains_key(*name)) {
        let problem = "the manifest does not name this file";
        errors.push(LoadError::new(name, "", problem, "Take it out, or generate the package anew."));
    }
    errors
}

fn counts(workflow: &Workflow) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::from([("total".to_owned(), workflow.steps.len())]);
    for step in &workflow.steps {
        let kind = match step.kind {
            StepKind::Automated => "automated",
            StepKind::UserChoice => "user_choice",
            StepKind::Interactive => "interactive",
            StepKind::Mixed => "mixed",
            StepKind::Branch => "branch",
            StepKind::Review => "review",
        };
        *counts.entry(kind.to_owned()).or_default() += 1;
    }
    counts
}

fn parse<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> Result<T, LoadError> {
    serde_json::from_str(text).map_err(|error| {
        let said = error.to_string();
        let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said).to_owned();
        let field = said.split('`').nth(1).unwrap_or_default().to_owned();
        let instead = match said.split_once(", expected ") {
            Some((_, expected)) => format!("Write {expected}."),
            None if said.starts_with("missing field") => format!("Add \"{field}\"."),
            None => "Correct the JSON.".to_owned(),
        };
        LoadError::new(file, &field, said, instead).at(error.line().max(1))
    })
}

fn text_of<'a>(files: &'a BTreeMap<String, Vec<u8>>, name: &str) -> Result<&'a str, LoadError> {
    let bytes = files.get(name).ok_or_else(|| {
        let instead = if name == "manifest.json" {
            "Name the folder of a package."
        } else {
            "Add it, or generate the package anew."
        };
        LoadError::new(name, "", "the file is not there", instead)
    })?;
    std::str::from_utf8(bytes).map_err(|_| LoadError::new(name, "", "the file is not UTF-8 text", "Save it as UTF-8."))
}

fn read_folder(root: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) -> Result<(), LoadError> {
    let name_of = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/");
    let failed = |path: &Path, error: &std::io::Error| {
        LoadError::new(&name_of(path), "", format!("it cannot be read ({error})"), "Check the path and its rights.")
    };
    for entry in std::fs::read_dir(folder).map_err(|error| failed(folder, &error))? {
        let entry = entry.map_err(|error| failed(folder, &error))?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(|error| failed(&entry.path(), &error))?);
        let name = name_of(&path);
        if kind.is_symlink() {
            return Err(LoadError::new(&name, "", "links are not followed", "Put the file itself there."));
        }
        if kind.is_dir() {
            // Former versions of the package are kept beside it and are not part of it.
            if name != "versions" {
                read_folder(root, &path, files)?;
            }
            continue;
        }
        let size = entry.metadata().map_err(|error| failed(&path, &error))?.len();
        if size > MAX_FILE_BYTES || files.len() >= MAX_FILES {
            return Err(LoadError::new(&name, "", "the package is too large", "A package holds text files only."));
        }
        files.insert(name, std::fs::read(&path).map_err(|error| failed(&path, &error))?);
    }
    Ok(())
}

fn line_of(text: &str, part: &str) -> Option<usize> {
    text.find(part).map(|at| text[..at].matches('\n').count() + 1)
}

fn line_of_step(text: &str, step: &str) -> Option<usize> {
    [format!("\"id\": \"{step}\""), format!("\"id\":\"{step}\"")].iter().find_map(|part| line_of(text, part))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        write!(text, "{byte:02x}").ok();
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKFLOW: &str = "{\"start\": \"one\", \"steps\": [\n {\"id\": \"one\", \"kind\": \"automated\", \"title\": \"t\",\n  \
                            \"brief\": \"b\", \"template\": \"one.py\", \"next\": \"end\"}\n]}";

    fn files(workflow: &str, template: &str) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::from([
            ("workflow.json".to_owned(), workflow.as_bytes().to_vec()),
            ("templates/one.py".to_owned(), template.as_bytes().to_vec()),
        ]);
        let hashes: BTreeMap<_, _> = files.iter().map(|(name, bytes)| (name, hex(&Sha256::digest(bytes)))).collect();
        let manifest = serde_json::json!({
            "manifest_version": 2, "made_by": "slicer-ai-agent", "id": "Test", "title": "t", "when_to_use": "w",
            "needs": {"slicer": "5.6"}, "status": "validated", "steps": {"total": 1, "automated": 1}, "files": hashes,
        });
        files.insert("manifest.json".into(), serde_json::to_vec_pretty(&manifest).unwrap());
        files
    }

    fn first_error(files: &BTreeMap<String, Vec<u8>>) -> LoadError {
        Package::from_files(files).unwrap_err().remove(0)
    }

    #[test]
    fn a_whole_package_loads() {
        let package = Package::from_files(&files(WORKFLOW, "press('Apply')\n")).unwrap();
        assert_eq!(package.template("one.py"), Some("press('Apply')\n"));
        assert_eq!(package.hash.len(), 64);
    }

    /// Errors name the file, the line, the field, and what to write.
    #[test]
    fn errors_say_where_and_what() {
        let error = first_error(&files(&WORKFLOW.replace("\"brief\": \"b\"", "\"breif\": \"b\""), "pass"));
        assert_eq!((error.file.as_str(), error.line, error.field.as_str()), ("workflow.json", Some(3), "breif"));
        assert!(error.instead.contains("brief"), "{error}");
        let error = first_error(&files(&WORKFLOW.replace("\"end\"", "\"nowhere\""), "pass"));
        assert_eq!((error.line, error.field.as_str()), (Some(2), "one.next"));
        let error = first_error(&files(WORKFLOW, "x = 1\nimport subprocess\nsubprocess.run(['ls'])"));
        assert_eq!(error.file, "templates/one.py");
        assert!(error.line >= Some(2), "{error:?}");
    }

    /// What was changed after it was packaged does not run, and neither does what the manifest does not know.
    #[test]
    fn every_file_is_the_packaged_one() {
        let whole = files(WORKFLOW, "pass");
        let mut changed = whole.clone();
        changed.insert("templates/one.py".into(), b"press('Delete')".to_vec());
        assert!(first_error(&changed).problem.contains("SHA-256"));
        let mut more = whole.clone();
        more.insert("templates/two.py".into(), b"pass".to_vec());
        assert_eq!(first_error(&more).file, "templates/two.py");
        let mut fewer = whole;
        fewer.remove("templates/one.py");
        assert!(first_error(&fewer).problem.contains("not there"));
    }

    #[test]
    fn other_layouts_are_refused_by_name() {
        for (manifest, words) in [
            (r#"{"manifest_version": 3, "workflow_name": "x"}"#, "SlicerAIAgent"),
            (r#"{"manifest_version": 2, "steps": []}"#, "SlicerAIAgent"),
            (r#"{"manifest_version": 7, "made_by": "slicer-ai-agent"}"#, "version is 7"),
            ("{}", "missing"),
            ("not json", "expected"),
        ] {
            let files = BTreeMap::from([("manifest.json".to_owned(), manifest.as_bytes().to_vec())]);
            let error = first_error(&files);
            assert!(error.to_string().contains(words), "{error}");
            assert!(!error.instead.is_empty());
        }
    }
}
