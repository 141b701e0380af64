//! Turns text into vectors with a sentence-embedding model that lies in a folder: `model.onnx`, `tokenizer.json` and
//! the pooling settings that such folders come with.
//!
//! Two runtimes can run the model. `rten` is built in, so that nothing native has to be shipped or signed on any
//! system; ONNX Runtime is loaded from a library that the person has, for its speed or a GPU, and its absence is no
//! error of the program. Both give the same vectors. Texts are cut into tokens first, sorted by length and run in small
//! batches that are padded only to their own longest text: padding everything to the limit of the model costs many
//! times as much for queries and short chunks.

mod onnx_runtime;
mod pool;
mod rten_runtime;
mod settings;
#[cfg(test)]
mod tests;
#[cfg(test)]
#[path = "tiny_model_tests.rs"]
pub(crate) mod tiny_model;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use sha2::{Digest, Sha256};
use tokenizers::{Tokenizer, TruncationParams};

pub use onnx_runtime::library_candidates;
pub use settings::{ModelSettings, Pooling};

/// Texts that are run at once. More is no faster on a CPU and takes more memory.
const BATCH: usize = 8;
/// A batch is also cut where rows × tokens would pass this: long texts fill the cores by themselves, and together they
/// would only take memory for their attention.
const BATCH_TOKENS: usize = 512;
/// So many texts are cut into tokens at a time: enough to sort well, few enough to notice a cancel soon.
const WINDOW: usize = 256;

/// Why a text could not be embedded.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    #[error(
        "The embedding model has no file `{file}` in {folder}. Choose the folder of a complete model, or download one in Settings → Knowledge."
    )]
    MissingFile { file: String, folder: PathBuf },
    #[error("`{file}` of the embedding model cannot be read: {why}. Download the model again.")]
    Damaged { file: PathBuf, why: String },
    #[error("The settings of the embedding model in {file} do not fit: {why}.")]
    Settings { file: PathBuf, why: String },
    #[error("This is not a text-embedding model: {why}. Choose a sentence-embedding model that was exported to ONNX.")]
    NotAnEncoder { why: String },
    #[error("The embedding model failed while it ran ({runtime}): {why}.")]
    Run { runtime: &'static str, why: String },
    #[error(
        "The embedding model gave numbers that are no numbers (NaN or infinite). The model file is damaged or its int8 form does not suit this machine; try another file of the model."
    )]
    NotFinite,
    #[error(
        "ONNX Runtime could not be loaded from {library}: {why}. Search goes on with the built-in runtime if you clear this setting."
    )]
    Library { library: PathBuf, why: String },
    #[error("Embedding was stopped.")]
    Cancelled,
}

/// What a text is for: some models want another prefix for questions than for what is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Query,
    Document,
}

/// Which runtime is to run the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RuntimeChoice {
    /// The built-in one.
    #[default]
    BuiltIn,
    /// ONNX Runtime from this library file, 1.24 or newer.
    OnnxRuntime { library: PathBuf, gpu: bool },
}

/// Texts as numbers, all rows padded to `width`.
pub(crate) struct Batch {
    pub rows: usize,
    pub width: usize,
    /// Row-major, `rows * width` each.
    pub ids: Vec<i32>,
    pub mask: Vec<i32>,
}

/// What a model answered: one vector a token (`[rows, width, dimension]`) or one a text (`[rows, dimension]`).
pub(crate) struct Output {
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

/// Runs a model. Calls may come from several threads.
pub(crate) trait Runtime: Send + Sync {
    fn run(&self, batch: &Batch) -> Result<Output, EmbedError>;
    /// For the log and the status line, for example `rten (built in)`.
    fn label(&self) -> String;
}

/// A model that is ready to embed.
pub struct Encoder {
    runtime: Box<dyn Runtime>,
    tokenizer: Tokenizer,
    settings: ModelSettings,
    id: String,
    dimension: usize,
}

impl Encoder {
    /// Loads the model of `folder`.
    ///
    /// # Errors
    /// When files are missing or damaged, when the model does not take tokens or does not give one vector a text, when
    /// the chosen library cannot be loaded.
    pub fn open(folder: &Path, choice: &RuntimeChoice) -> Result<Self, EmbedError> {
        let on_gpu = matches!(choice, RuntimeChoice::OnnxRuntime { gpu: true, .. });
        let settings = ModelSettings::read(folder, on_gpu)?;
        let tokenizer_file = folder.join("tokenizer.json");
        let tokenizer = read_tokenizer(folder, &tokenizer_file, settings.max_tokens)?;
        let runtime: Box<dyn Runtime> = match choice {
            RuntimeChoice::BuiltIn => Box::new(rten_runtime::RtenRuntime::open(&settings.model_file)?),
            RuntimeChoice::OnnxRuntime { library, gpu } => {
                Box::new(onnx_runtime::OnnxRuntime::open(library, &settings.model_file, *gpu)?)
            }
        };
        let id = identity(folder, &settings, &tokenizer_file)?;
        let mut encoder = Self { runtime, tokenizer, settings, id, dimension: 0 };
        // One short run tells the dimension, and that the model fits at all, before anyone waits for an index.
        encoder.dimension = encoder.embed_query("volume")?.len();
        tracing::info!(
            model = encoder.id,
            runtime = encoder.runtime.label(),
            dimension = encoder.dimension,
            "embedding model is ready"
        );
        Ok(encoder)
    }

    /// Name and fingerprint of model and settings. Vectors of different ids cannot be compared.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Numbers in a vector.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// What runs the model, for the log and the status line.
    pub fn runtime(&self) -> String {
        self.runtime.label()
    }

    pub fn settings(&self) -> &ModelSettings {
        &self.settings
    }

    /// The vector of a question.
    ///
    /// # Errors
    /// When the model fails.
    pub fn embed_query(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let never = AtomicBool::new(false);
        let mut vectors = self.embed(&[text], Role::Query, &never, &mut |_| {})?;
        vectors.pop().ok_or(EmbedError::NotFinite)
    }

    /// The vectors of `texts`, in their order. `done` is told after each batch how many texts are finished; a set
    /// `cancel` is noticed before the next batch.
    ///
    /// # Errors
    /// When the model fails, or `Cancelled`.
    pub fn embed(
        &self,
        texts: &[&str],
        role: Role,
        cancel: &AtomicBool,
        done: &mut dyn FnMut(usize),
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut vectors = Vec::with_capacity(texts.len());
        for window in texts.chunks(WINDOW) {
            let before = vectors.len();
            let tokens = self.tokenize(window, role)?;
            let mut order: Vec<usize> = (0..tokens.len()).collect();
            order.sort_by_key(|&index| tokens[index].len());
            vectors.resize(before + window.len(), Vec::new());
            let mut finished = 0;
            for group in batches(&order, &tokens) {
                if cancel.load(Ordering::Relaxed) {
                    return Err(EmbedError::Cancelled);
                }
                for (&index, vector) in group.iter().zip(self.run(group, &tokens)?) {
                    vectors[before + index] = vector;
                }
                finished += group.len();
                done(before + finished);
            }
        }
        Ok(vectors)
    }

    fn tokenize(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<i32>>, EmbedError> {
        let prefix = match role {
            Role::Query => &self.settings.query_prefix,
            Role::Document => &self.settings.document_prefix,
        };
        let texts: Vec<String> = texts.iter().map(|text| format!("{prefix}{text}")).collect();
        let encodings = self
            .tokenizer
            .encode_batch_fast(texts, true)
            .map_err(|error| EmbedError::Run { runtime: "tokenizer", why: error.to_string() })?;
        let ids = encodings.iter().map(|encoding| {
            // A text without any token still has a place in the batch.
            let ids: Vec<i32> = encoding.get_ids().iter().map(|&id| i32::try_from(id).unwrap_or(0)).collect();
            if ids.is_empty() { vec![0] } else { ids }
        });
        Ok(ids.collect())
    }

    fn run(&self, group: &[usize], tokens: &[Vec<i32>]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let width = group.iter().map(|&index| tokens[index].len()).max().unwrap_or(0);
        let rows = group.len();
        let mut batch = Batch { rows, width, ids: vec![0; rows * width], mask: vec![0; rows * width] };
        for (row, &index) in group.iter().enumerate() {
            let start = row * width;
            let end = start + tokens[index].len();
            batch.ids[start..end].copy_from_slice(&tokens[index]);
            batch.mask[start..end].fill(1);
        }
        let output = self.runtime.run(&batch)?;
        let mut vectors = pool::pool(&output, &batch, self.settings.pooling)?;
        for vector in &mut vectors {
            if vector.iter().any(|value| !value.is_finite()) {
                return Err(EmbedError::NotFinite);
            }
            if self.settings.normalize {
                pool::normalize(vector);
            }
        }
        Ok(vectors)
    }
}

/// Cuts an order by length into groups that are run at once.
fn batches<'a>(order: &'a [usize], tokens: &[Vec<i32>]) -> Vec<&'a [usize]> {
    let mut groups = Vec::new();
    let mut start = 0;
    while start < order.len() {
        let mut end = start + 1;
        while end < order.len() && end - start < BATCH && (end - start + 1) * tokens[order[end]].len() <= BATCH_TOKENS {
            end += 1;
        }
        groups.push(&order[start..end]);
        start = end;
    }
    groups
}

fn read_tokenizer(folder: &Path, file: &Path, max_tokens: usize) -> Result<Tokenizer, EmbedError> {
    if !file.is_file() {
        return Err(EmbedError::MissingFile { file: "tokenizer.json".into(), folder: folder.to_owned() });
    }
    let damaged = |why: String| EmbedError::Damaged { file: file.to_owned(), why };
    let mut tokenizer = Tokenizer::from_file(file).map_err(|error| damaged(error.to_string()))?;
    // The file may ask for padding to a fixed length and for another limit; batches are padded here instead.
    tokenizer.with_padding(None);
    let truncation = TruncationParams { max_length: max_tokens, ..TruncationParams::default() };
    tokenizer.with_truncation(Some(truncation)).map_err(|error| damaged(error.to_string()))?;
    Ok(tokenizer)
}

/// Name of the folder and a digest over what decides the vectors. Of the model file only the size and both ends are
/// read: hundreds of megabytes at each start would be noticed, and a file that differs in its middle alone is no model.
fn identity(folder: &Path, settings: &ModelSettings, tokenizer: &Path) -> Result<String, EmbedError> {
    use std::io::{Read, Seek, SeekFrom};

    const END: u64 = 1 << 20;
    let damaged = |file: &Path| {
        let file = file.to_owned();
        move |error: std::io::Error| EmbedError::Damaged { file, why: error.to_string() }
    };
    let mut hash = Sha256::new();
    let mut model = std::fs::File::open(&settings.model_file).map_err(damaged(&settings.model_file))?;
    let size = model.metadata().map_err(damaged(&settings.model_file))?.len();
    hash.update(size.to_le_bytes());
    for start in [0, size.saturating_sub(END)] {
        model.seek(SeekFrom::Start(start)).map_err(damaged(&settings.model_file))?;
        let mut part = Vec::new();
        (&mut model).take(END).read_to_end(&mut part).map_err(damaged(&settings.model_file))?;
        hash.update(&part);
    }
    hash.update(std::fs::read(tokenizer).map_err(damaged(tokenizer))?);
    hash.update(settings.fingerprint());
    let digest: String = hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let name = folder.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy());
    Ok(format!("{name}-{digest}"))
}
