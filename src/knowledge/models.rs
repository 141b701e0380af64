//! Embedding models to choose from, and their download.
//!
//! A model is hundreds of megabytes over lines that break. So each file is fetched into a part that a later attempt goes
//! on with, is checked against a pinned SHA-256, and only when all files of a model are right does its folder get its
//! name: a folder of that name is always a whole model. What there is to choose is data (`embedding_models.toml`).

mod download;

use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use crate::resources;

pub use download::{Download, DownloadError, Phase, Progress};

const LIST: &str = "embedding_models.toml";

/// Why the list cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "The list of embedding models (resources/{LIST}) cannot be used: {0}. Correct it, or delete your own version of it."
)]
pub struct ListError(String);

/// The models that can be downloaded.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelList {
    /// Address below which `<repository>/resolve/<revision>/<path>` lies.
    pub base_url: String,
    /// The one that is offered first comes first.
    #[serde(rename = "model")]
    pub models: Vec<ModelEntry>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEntry {
    /// Also the name of its folder.
    pub id: String,
    pub name: String,
    pub about: String,
    pub license: String,
    /// Numbers in a vector.
    pub dimension: usize,
    pub repository: String,
    pub revision: String,
    /// Text of the `embedding.toml` that is put into the folder.
    pub settings: String,
    pub files: Vec<ModelFile>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFile {
    /// Path in the repository.
    pub path: String,
    /// Path in the folder, if it is another.
    pub save_as: Option<String>,
    /// Size if it is known beforehand.
    pub bytes: Option<u64>,
    /// 64 hexadecimal digits.
    pub sha256: String,
}

impl ModelFile {
    /// Path below the folder of the model.
    pub fn place(&self) -> &str {
        self.save_as.as_deref().unwrap_or(&self.path)
    }
}

impl ModelList {
    /// The list, the person's own version first.
    ///
    /// # Errors
    /// When it is not the table that it should be, or a file would land outside its folder.
    pub fn load(data_folder: &Path) -> Result<Self, ListError> {
        let text =
            resources::text_with_override(data_folder, LIST).ok_or_else(|| ListError("it is not embedded".into()))?;
        Self::parse(&text)
    }

    /// # Errors
    /// As [`ModelList::load`].
    pub fn parse(text: &str) -> Result<Self, ListError> {
        let list: Self = toml::from_str(text).map_err(|error| ListError(error.message().to_owned()))?;
        for model in &list.models {
            let wrong = |why: &str| Err(ListError(format!("model `{}`: {why}", model.id)));
            if !is_plain_name(&model.id) {
                return wrong("its id is no name for a folder");
            }
            if model.files.is_empty() {
                return wrong("it has no files");
            }
            for file in &model.files {
                if !stays_inside(file.place()) {
                    return wrong("a file would land outside its folder");
                }
                if file.sha256.len() != 64 || !file.sha256.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return wrong("a file has no SHA-256 of 64 hexadecimal digits");
                }
            }
        }
        Ok(list)
    }

    pub fn model(&self, id: &str) -> Option<&ModelEntry> {
        self.models.iter().find(|model| model.id == id)
    }
}

/// The folder of a model that is there, below the folder of all models.
pub fn installed(models_folder: &Path, id: &str) -> Option<PathBuf> {
    let folder = models_folder.join(id);
    (is_plain_name(id) && folder.join("tokenizer.json").is_file()).then_some(folder)
}

fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.chars().all(|character| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.'))
}

fn stays_inside(path: &str) -> bool {
    !path.is_empty()
        && !path.contains(['\\', ':'])
        && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The embedded list is whole: every model has weights, a tokenizer, and settings that name a file it has.
    #[test]
    fn the_list_is_whole() {
        let list = ModelList::load(Path::new("nowhere")).unwrap();
        assert_eq!(list.models[0].id, "jina-embeddings-v2-base-code");
        assert!(list.model("all-MiniLM-L6-v2").is_some());
        for model in &list.models {
            let places: Vec<&str> = model.files.iter().map(ModelFile::place).collect();
            assert!(places.contains(&"tokenizer.json"), "{}", model.id);
            let settings: toml::Table = toml::from_str(&model.settings).unwrap();
            assert!(places.contains(&settings["file"].as_str().unwrap()), "{}", model.id);
            assert_eq!(model.revision.len(), 40, "{} is not pinned to a commit", model.id);
        }
    }

    /// The only host that the data names.
    #[test]
    fn no_other_host_is_named() {
        let text = resources::text(LIST).unwrap();
        let hosts: Vec<&str> = text.split("://").skip(1).map(|rest| rest.split(['/', '"']).next().unwrap()).collect();
        assert_eq!(hosts, ["huggingface.co"]);
    }

    /// A list of one's own must not write outside the folder of models.
    #[test]
    fn paths_stay_inside() {
        let text = resources::text(LIST).unwrap();
        for bad in ["../tokenizer.json", "/etc/passwd", "a/../../b", "C:\\x"] {
            let changed = text.replacen("save_as = \"model_quantized.onnx\"", &format!("save_as = '{bad}'"), 1);
            assert_ne!(changed, text);
            assert!(ModelList::parse(&changed).is_err(), "{bad}");
        }
        assert!(ModelList::parse(&text.replace("id = \"all-MiniLM-L6-v2\"", "id = \"..\"")).is_err());
    }
}
