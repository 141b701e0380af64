//! ONNX Runtime from a library that the person has: faster on many CPUs, and the way to a GPU. The library is opened
//! while the program runs; nothing is linked, so that its absence costs nothing.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use ort::environment::Environment;
use ort::ep::{CUDA, CoreML, DirectML, ExecutionProvider, ExecutionProviderDispatch};
use ort::session::{Session, SessionInputValue};
use ort::value::{Tensor, TensorElementType};

use super::rten_runtime::{Feed, feeds, output_index};
use super::{Batch, EmbedError, Output, Runtime};

/// A process has one ONNX Runtime: the first library that loads stays until the program ends.
static LOADED: OnceLock<(PathBuf, Environment)> = OnceLock::new();
static LOADING: Mutex<()> = Mutex::new(());

pub(super) struct OnnxRuntime {
    /// A session runs one batch at a time; it uses all cores for it.
    session: Mutex<Session>,
    inputs: Vec<(String, Feed, TensorElementType)>,
    output: String,
    provider: &'static str,
}

impl OnnxRuntime {
    pub(super) fn open(library: &Path, file: &Path, gpu: bool) -> Result<Self, EmbedError> {
        let environment = environment(library)?;
        let (session, provider) = session(environment, file, gpu)?;
        let names: Vec<String> = session.inputs().iter().map(|input| input.name().to_owned()).collect();
        let kinds =
            session.inputs().iter().map(|input| input.dtype().tensor_type().unwrap_or(TensorElementType::Int64));
        let inputs = names
            .iter()
            .zip(feeds(&names)?)
            .zip(kinds)
            .map(|((name, feed), kind)| (name.clone(), feed, kind))
            .collect();
        let outputs: Vec<String> = session.outputs().iter().map(|output| output.name().to_owned()).collect();
        let output = outputs
            .get(output_index(&outputs))
            .cloned()
            .ok_or_else(|| EmbedError::NotAnEncoder { why: "it has no output".into() })?;
        Ok(Self { session: Mutex::new(session), inputs, output, provider })
    }
}

impl Runtime for OnnxRuntime {
    fn run(&self, batch: &Batch) -> Result<Output, EmbedError> {
        let mut inputs: Vec<(&str, SessionInputValue<'_>)> = Vec::with_capacity(self.inputs.len());
        for (name, feed, kind) in &self.inputs {
            let shape = [batch.rows, batch.width];
            let values = feed.values(batch);
            let value: SessionInputValue<'_> = if *kind == TensorElementType::Int32 {
                Tensor::from_array((shape, values)).map_err(failed)?.into()
            } else {
                let values: Vec<i64> = values.into_iter().map(i64::from).collect();
                Tensor::from_array((shape, values)).map_err(failed)?.into()
            };
            inputs.push((name, value));
        }
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let outputs = session.run(inputs).map_err(failed)?;
        let value = outputs.get(self.output.as_str()).ok_or_else(|| EmbedError::Run {
            runtime: "ONNX Runtime",
            why: format!("it gave no output `{}`", self.output),
        })?;
        let (shape, values) = value
            .try_extract_tensor::<f32>()
            .map_err(|_| EmbedError::NotAnEncoder { why: "its output is not f32".into() })?;
        let shape = shape.iter().map(|&length| usize::try_from(length).unwrap_or(0)).collect();
        Ok(Output { shape, values: values.to_vec() })
    }

    fn label(&self) -> String {
        format!("ONNX Runtime, {}", self.provider)
    }
}

fn failed(error: ort::Error) -> EmbedError {
    EmbedError::Run { runtime: "ONNX Runtime", why: error.to_string() }
}

fn environment(library: &Path) -> Result<&'static Environment, EmbedError> {
    let refuse = |why: String| EmbedError::Library { library: library.to_owned(), why };
    let _one_at_a_time = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    if LOADED.get().is_none() {
        let builder = ort::init_from(library).map_err(|error| refuse(error.to_string()))?;
        let environment = builder
            .with_name("slicer-ai-agent")
            .with_telemetry(false)
            .build()
            .map_err(|error| refuse(error.to_string()))?;
        tracing::info!(library = %library.display(), "ONNX Runtime is loaded");
        LOADED.get_or_init(|| (library.to_owned(), environment));
    }
    match LOADED.get() {
        Some((loaded, environment)) if loaded == library => Ok(environment),
        Some((loaded, _)) => {
            Err(refuse(format!("{} is loaded already; start the program again to use another", loaded.display())))
        }
        None => Err(refuse("it was not kept".into())),
    }
}

/// A session on the best provider that the library has; the CPU when no GPU takes the model.
fn session(environment: &Environment, file: &Path, gpu: bool) -> Result<(Session, &'static str), EmbedError> {
    let damaged = |error: ort::Error| EmbedError::Damaged { file: file.to_owned(), why: error.to_string() };
    for (name, provider) in if gpu { providers() } else { Vec::new() } {
        let attempt = Session::builder(environment)
            .and_then(|builder| Ok(builder.with_execution_providers([provider])?))
            .and_then(|mut builder| builder.commit_from_file(file));
        match attempt {
            Ok(session) => return Ok((session, name)),
            Err(error) => tracing::warn!(provider = name, %error, "the GPU did not take the embedding model"),
        }
    }
    let mut builder = Session::builder(environment).map_err(failed)?;
    Ok((builder.commit_from_file(file).map_err(damaged)?, "CPU"))
}

/// The GPU providers that the loaded library was built with.
fn providers() -> Vec<(&'static str, ExecutionProviderDispatch)> {
    let mut found = Vec::new();
    if CUDA::is_available().unwrap_or(false) {
        found.push(("CUDA", CUDA::default().build().error_on_failure()));
    }
    if DirectML::is_available().unwrap_or(false) {
        found.push(("DirectML", DirectML::default().build().error_on_failure()));
    }
    if CoreML::is_available().unwrap_or(false) {
        found.push(("CoreML", CoreML::default().build().error_on_failure()));
    }
    found
}

/// Where the library may be, best first: the person's own path, beside the executable, in a folder of Python packages.
/// Only files that exist are named.
pub fn library_candidates(own: Option<&Path>, program: Option<&Path>, site_packages: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = program.and_then(Path::parent).map(Path::to_owned).into_iter().collect();
    folders.extend(site_packages.iter().map(|folder| folder.join("onnxruntime").join("capi")));
    let mut found: Vec<PathBuf> = own.filter(|file| file.is_file()).map(Path::to_owned).into_iter().collect();
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut here: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).filter(|path| is_library(path)).collect();
        // The highest version last in the alphabet is the best guess among several.
        here.sort();
        found.extend(here.into_iter().rev());
    }
    found
}

fn is_library(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    name == "onnxruntime.dll"
        || name.starts_with("libonnxruntime.so")
        || (name.starts_with("libonnxruntime.") && name.ends_with(".dylib"))
}
