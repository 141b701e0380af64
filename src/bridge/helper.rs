//! The helper module that runs inside Slicer, and the lines of Python that talk to it.
//!
//! The helper's files are embedded; the code that installs them and every later call is made here. What is sent is
//! never pasted together from foreign text: a request is JSON, written as one ASCII Python string literal, so quotes,
//! line ends, encoding declarations and half characters cannot change what the line does. The bridge sends these lines
//! itself; the program's own client sends them through any Slicer MCP server, which is why an exchange is written
//! against [`Execute`] and not against one of the two.

use std::fmt::Write as _;
use std::future::Future;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::resources;

/// The helper's files in the order in which they must be loaded.
const FILES: [&str; 18] = [
    "text",
    "digest",
    "hierarchy",
    "nodes",
    "views",
    "dialogs",
    "scene",
    "checkpoint",
    "audit",
    "guard",
    "protect",
    "flow_ui",
    "flow_scene",
    "flow",
    "run",
    "plain",
    "samples",
    "core",
];
/// How often a request is sent again after the helper was missing or replies were swapped.
const ATTEMPTS: u32 = 4;

static EMBEDDED: LazyLock<Result<Helper, String>> = LazyLock::new(Helper::build);

/// The helper, ready to be sent.
#[derive(Debug)]
pub struct Helper {
    /// Python that installs it and answers `{"helper": "ready", …}`.
    pub install: String,
    /// Names these exact sources, so that a Slicer with another version of the helper gets this one.
    pub version: String,
}

impl Helper {
    /// The embedded helper, made on first use.
    ///
    /// # Errors
    /// The name of a file that the program lacks, which a test excludes.
    pub fn embedded() -> Result<&'static Self, String> {
        EMBEDDED.as_ref().map_err(Clone::clone)
    }

    fn build() -> Result<Self, String> {
        let read = |name: &str| {
            resources::text(&format!("slicer/{name}.py"))
                .ok_or_else(|| format!("the program lacks its file slicer/{name}.py"))
        };
        let template = read("install")?;
        let mut files = Map::new();
        let mut hash = Sha256::new();
        hash.update(template);
        for name in FILES {
            let source = read(name)?;
            hash.update(name);
            hash.update(source);
            files.insert(name.to_owned(), Value::from(source));
        }
        let version = hash.finalize().iter().take(8).fold(String::new(), |mut text, byte| {
            // Writing to a String cannot fail.
            write!(text, "{byte:02x}").ok();
            text
        });
        let files = literal(&Value::Object(files).to_string());
        let install = template.replace("@VERSION@", &literal(&version)).replace("@FILES@", &files);
        Ok(Self { install, version })
    }

    /// The line of Python that hands `request` to the helper, or answers `{"helper": "missing"}` when it is not there.
    pub fn call(&self, request: &Value) -> String {
        self.line(&format!("m.call({})", literal(&request.to_string())))
    }

    /// The line of Python that lets the helper run a client's code in the namespace of the request handler.
    pub fn execute(&self, request: &Value) -> String {
        self.line(&format!("m.execute(globals(), {})", literal(&request.to_string())))
    }

    fn line(&self, use_of_m: &str) -> String {
        format!(
            "__execResult = (lambda m: {use_of_m} if getattr(m, \"VERSION\", \"\") == {} else {{\"helper\": \"missing\"}})\
             (__import__(\"sys\").modules.get(\"slicer_ai_agent_helper\"))",
            literal(&self.version),
        )
    }
}

/// Whether `value` says that the helper is not in this Slicer, or another version of it.
pub fn is_missing(value: &Value) -> bool {
    value["helper"] == "missing"
}

/// What runs Python in Slicer and gives back `__execResult`.
pub trait Execute {
    /// Why it could not.
    type Error;

    /// Runs `code`.
    fn run(&self, code: &str) -> impl Future<Output = Result<Value, Self::Error>> + Send;
}

/// Why a request to the helper has no result.
#[derive(Debug)]
pub enum ExchangeError<E> {
    /// Slicer could not be asked.
    Execute(E),
    /// The helper could not be put into Slicer; the text says why.
    Install(String),
    /// The helper says that it failed.
    Helper { kind: String, message: String },
    /// Other code in Slicer takes the replies. Whether the request was carried out is not known.
    Mixed,
}

/// One request to the helper, which is installed when it is missing.
///
/// # Errors
/// [`ExchangeError`].
pub async fn exchange<X: Execute + Sync>(
    slicer: &X,
    action: &str,
    fields: Value,
) -> Result<Value, ExchangeError<X::Error>> {
    let helper = Helper::embedded().map_err(ExchangeError::Install)?;
    let id = uuid::Uuid::new_v4().simple().to_string();
    let wanted = request(&id, action, fields);
    // What changes the scene is not repeated.
    let once = matches!(action, "run" | "undo" | "undo_last" | "load_sample");
    let mut next = wanted.clone();
    for _ in 0..ATTEMPTS {
        let expected = next["request"].as_str().unwrap_or_default().to_owned();
        let answer = slicer.run(&helper.call(&next)).await.map_err(ExchangeError::Execute)?;
        match Reply::read(answer, &expected) {
            Reply::Result(value) if expected == id => return Ok(value),
            // The kept reply to the first request; null when it was not kept.
            Reply::Result(Value::Null) if once => break,
            Reply::Result(Value::Null) => next = wanted.clone(),
            Reply::Result(kept) => match Reply::read(kept, &id) {
                Reply::Result(value) => return Ok(value),
                Reply::Failed { kind, message } => return Err(ExchangeError::Helper { kind, message }),
                Reply::Missing | Reply::Swapped => break,
            },
            Reply::Failed { kind, message } => return Err(ExchangeError::Helper { kind, message }),
            Reply::Missing if expected != id && once => break,
            Reply::Missing => {
                install(slicer, helper).await?;
                next = wanted.clone();
            }
            Reply::Swapped => {
                let again = uuid::Uuid::new_v4().simple().to_string();
                next = request(&again, "reply", json!({"of": id}));
            }
        }
    }
    Err(ExchangeError::Mixed)
}

/// Puts the helper into Slicer.
///
/// # Errors
/// [`ExchangeError::Execute`] and [`ExchangeError::Install`].
pub async fn install<X: Execute + Sync>(slicer: &X, helper: &Helper) -> Result<(), ExchangeError<X::Error>> {
    let answer = slicer.run(&helper.install).await.map_err(ExchangeError::Execute)?;
    if answer["helper"] == "failed" {
        return Err(ExchangeError::Install(answer["message"].as_str().unwrap_or("no reason given").to_owned()));
    }
    Ok(())
}

/// A request of the helper: `fields` with the request's own id.
fn request(id: &str, action: &str, fields: Value) -> Value {
    let mut request = json!({"request": id, "action": action});
    if let (Value::Object(request), Value::Object(fields)) = (&mut request, fields) {
        request.extend(fields);
    }
    request
}

/// What came back of a request.
#[derive(Debug, Clone, PartialEq)]
enum Reply {
    /// The helper's result.
    Result(Value),
    /// The helper is not in this Slicer, or another version of it.
    Missing,
    /// The reply belongs to another request.
    Swapped,
    /// The helper says that it failed.
    Failed { kind: String, message: String },
}

impl Reply {
    /// Reads `value`, the reply to the request with this id.
    fn read(mut value: Value, id: &str) -> Self {
        if is_missing(&value) {
            return Self::Missing;
        }
        if value["request"] != *id {
            return Self::Swapped;
        }
        if value["ok"] == true {
            return Self::Result(value["result"].take());
        }
        let kind = value["error"]["type"].as_str().unwrap_or("unknown error").to_owned();
        let message = value["error"]["message"].as_str().unwrap_or_default().to_owned();
        Self::Failed { kind, message }
    }
}

/// `text` as a Python string literal in ASCII. `text` is JSON or plain ASCII, so a character outside ASCII is written as
/// JSON writes it (Python then sees the six characters of the escape, and its JSON reader the character).
fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8 + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            ' '..='~' => out.push(character),
            _ => {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    // Writing to a String cannot fail.
                    write!(out, "\\\\u{unit:04x}").ok();
                }
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line that ends early, or a quote that closes the literal, would run foreign text as code.
    #[test]
    fn calls_are_one_ascii_line_whatever_they_carry() {
        let helper = Helper::embedded().unwrap();
        let hostile = "\"\"\"'); import os #\\\r\n\u{2028}\u{0} # -*- coding: utf-16 -*- 頭🦴\u{7f}";
        let line = helper.call(&request("1", "run", json!({"run": {"code": hostile}})));
        assert!(line.is_ascii() && !line.contains(['\n', '\r', '\0']), "{line}");
        let start = line.find("m.call(\"").unwrap() + "m.call(\"".len();
        let inside = &line[start..line.find("\") if getattr").unwrap()];
        let mut escaped = false;
        for character in inside.chars() {
            assert!(escaped || character != '"', "an open quote in {inside}");
            escaped = !escaped && character == '\\';
        }
        let back: Value = serde_json::from_str(&inside.replace("\\\"", "\"").replace("\\\\", "\\")).unwrap();
        assert_eq!(back["run"]["code"], hostile);
    }

    #[test]
    fn the_installer_is_whole_and_named_by_its_content() {
        let helper = Helper::embedded().unwrap();
        assert!(!helper.install.contains("@FILES@") && !helper.install.contains("@VERSION@"));
        assert!(helper.install.contains("slicer_ai_agent_helper") && helper.version.len() == 16);
        let folder = resources::folder("slicer").unwrap();
        let names: Vec<_> = folder
            .files()
            .filter_map(|file| file.path().file_stem()?.to_str())
            .filter(|name| !matches!(*name, "install" | ".gitkeep"))
            .collect();
        assert_eq!(names.len(), FILES.len(), "every file of the folder is sent: {names:?}");
    }

    #[test]
    fn replies_are_told_apart() {
        assert_eq!(Reply::read(json!({"helper": "missing"}), "a"), Reply::Missing);
        assert_eq!(Reply::read(json!({"request": "b", "ok": true, "result": 1}), "a"), Reply::Swapped);
        assert_eq!(Reply::read(json!({}), "a"), Reply::Swapped);
        assert_eq!(Reply::read(json!({"request": "a", "ok": true, "result": 1}), "a"), Reply::Result(json!(1)));
        let busy = json!({"request": "a", "ok": false, "error": {"type": "Busy", "message": "run x"}});
        assert!(matches!(Reply::read(busy, "a"), Reply::Failed { kind, .. } if kind == "Busy"));
    }
}
