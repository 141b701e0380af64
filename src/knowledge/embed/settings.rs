//! How a model wants to be used: which file, pooling, limit of tokens, prefixes. Read from the files that
//! sentence-embedding models come with; our own `embedding.toml` in the same folder goes before them all, so that a
//! model that says nothing, or says it wrongly, can be put right without changing its files.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::EmbedError;

/// Longer texts are cut here unless the model says less or `embedding.toml` says otherwise: chunks are shorter, and the
/// cost of attention grows with the square of the length.
const USUAL_LIMIT: usize = 512;

/// Files with int8 weights, best first: half to twice as fast again on a CPU, and a quarter of the memory.
const INT8_FILES: [&str; 5] = [
    "model_int8.onnx",
    "model_quantized.onnx",
    "onnx/model_int8.onnx",
    "onnx/model_quantized.onnx",
    "model_quint8.onnx",
];
const FULL_FILES: [&str; 2] = ["model.onnx", "onnx/model.onnx"];

/// How token vectors become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    Mean,
    /// The vector of the first token.
    Cls,
    LastToken,
}

/// What decides the vectors of a model besides its weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSettings {
    pub model_file: PathBuf,
    pub pooling: Pooling,
    /// Scale vectors to length 1.
    pub normalize: bool,
    /// Longer texts are cut.
    pub max_tokens: usize,
    pub query_prefix: String,
    pub document_prefix: String,
}

/// `embedding.toml`: what is given here goes before what the model's own files say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Override {
    file: Option<String>,
    pooling: Option<Pooling>,
    normalize: Option<bool>,
    max_tokens: Option<usize>,
    query_prefix: Option<String>,
    document_prefix: Option<String>,
}

impl ModelSettings {
    /// Reads the settings of a model folder. `full_precision` prefers the f32 file, which is the right one for a GPU.
    ///
    /// # Errors
    /// When there is no folder or no model file, when a settings file cannot be read, when it asks for a pooling that
    /// does not exist here.
    pub fn read(folder: &Path, full_precision: bool) -> Result<Self, EmbedError> {
        let own = own_settings(folder)?;
        let limit = match own.max_tokens {
            Some(given) => given,
            None => token_limit(folder)?,
        };
        if limit < 3 {
            let why = format!("a limit of {limit} tokens leaves no room for a text");
            return Err(EmbedError::Settings { file: folder.to_owned(), why });
        }
        let pooling = match own.pooling {
            Some(given) => given,
            None => declared_pooling(folder)?,
        };
        let prompts = json(&folder.join("config_sentence_transformers.json"))?;
        let prompt = |names: &[&str]| {
            let found = names.iter().find_map(|name| prompts.get("prompts")?.get(name)?.as_str());
            found.unwrap_or_default().to_owned()
        };
        Ok(Self {
            model_file: model_file(folder, own.file.as_deref(), full_precision)?,
            pooling,
            normalize: own.normalize.unwrap_or(true),
            max_tokens: limit,
            query_prefix: own.query_prefix.unwrap_or_else(|| prompt(&["query"])),
            document_prefix: own.document_prefix.unwrap_or_else(|| prompt(&["document", "passage"])),
        })
    }

    /// The settings as bytes that differ whenever vectors would.
    pub(super) fn fingerprint(&self) -> String {
        let Self { pooling, normalize, max_tokens, query_prefix, document_prefix, .. } = self;
        format!("{pooling:?}\0{normalize}\0{max_tokens}\0{query_prefix}\0{document_prefix}")
    }
}

fn own_settings(folder: &Path) -> Result<Override, EmbedError> {
    let file = folder.join("embedding.toml");
    match std::fs::read_to_string(&file) {
        Ok(text) => {
            toml::from_str(&text).map_err(|error| EmbedError::Settings { file, why: error.message().to_owned() })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Override::default()),
        Err(error) => Err(EmbedError::Settings { file, why: error.to_string() }),
    }
}

fn model_file(folder: &Path, given: Option<&str>, full_precision: bool) -> Result<PathBuf, EmbedError> {
    let missing = |file: &str| EmbedError::MissingFile { file: file.to_owned(), folder: folder.to_owned() };
    if let Some(name) = given {
        let file = folder.join(name);
        return if file.is_file() { Ok(file) } else { Err(missing(name)) };
    }
    let (first, second): (&[&str], &[&str]) =
        if full_precision { (&FULL_FILES, &INT8_FILES) } else { (&INT8_FILES, &FULL_FILES) };
    let mut files = first.iter().chain(second).map(|name| folder.join(name));
    files.find(|file| file.is_file()).ok_or_else(|| missing("model.onnx"))
}

/// A JSON file as a value; `Null` when there is none.
fn json(file: &Path) -> Result<Value, EmbedError> {
    let damaged = |why: String| EmbedError::Damaged { file: file.to_owned(), why };
    match std::fs::read_to_string(file) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| damaged(error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Value::Null),
        Err(error) => Err(damaged(error.to_string())),
    }
}

/// The smallest limit that the model's files name, and never more than the usual one.
fn token_limit(folder: &Path) -> Result<usize, EmbedError> {
    let places = [
        ("sentence_bert_config.json", "max_seq_length"),
        ("tokenizer_config.json", "model_max_length"),
        ("config.json", "max_position_embeddings"),
    ];
    let mut limit = USUAL_LIMIT;
    for (file, key) in places {
        // Some files carry 1e30 for "no limit"; it is no integer and thereby no limit here either.
        if let Some(named) = json(&folder.join(file))?.get(key).and_then(Value::as_u64) {
            limit = limit.min(usize::try_from(named).unwrap_or(USUAL_LIMIT));
        }
    }
    Ok(limit)
}

fn declared_pooling(folder: &Path) -> Result<Pooling, EmbedError> {
    let file = folder.join("1_Pooling/config.json");
    let config = json(&file)?;
    let Some(object) = config.as_object() else { return Ok(Pooling::Mean) };
    let on: Vec<&str> = object
        .iter()
        .filter(|(name, value)| name.starts_with("pooling_mode") && value.as_bool() == Some(true))
        .map(|(name, _)| name.as_str())
        .collect();
    match on[..] {
        [] | ["pooling_mode_mean_tokens"] => Ok(Pooling::Mean),
        ["pooling_mode_cls_token"] => Ok(Pooling::Cls),
        ["pooling_mode_lasttoken"] => Ok(Pooling::LastToken),
        _ => Err(EmbedError::Settings {
            file,
            why: format!("the pooling {} is not known here; mean, cls and lasttoken are", on.join(" + ")),
        }),
    }
}
