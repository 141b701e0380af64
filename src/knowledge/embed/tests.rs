use super::tiny_model::{onnx, table, write};
use super::*;

fn tiny() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("tiny");
    write(&model, &onnx("input_ids", &table()));
    (folder, model)
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The error of a model that should not open.
fn refused(folder: &Path) -> EmbedError {
    match Encoder::open(folder, &RuntimeChoice::BuiltIn) {
        Ok(_) => panic!("the model opened"),
        Err(error) => error,
    }
}

/// Related words are near, others far; vectors have length 1.
#[test]
fn meaning_becomes_nearness() {
    let (_keep, folder) = tiny();
    let encoder = Encoder::open(&folder, &RuntimeChoice::BuiltIn).unwrap();
    assert_eq!(encoder.dimension(), 4);
    let query = encoder.embed_query("load volume").unwrap();
    let near = encoder.embed_query("volume").unwrap();
    let far = encoder.embed_query("weather").unwrap();
    assert!((cosine(&query, &query) - 1.0).abs() < 1e-5);
    assert!(cosine(&query, &near) > 0.95, "{}", cosine(&query, &near));
    assert!(cosine(&query, &far) < 0.05, "{}", cosine(&query, &far));
}

/// Sorting by length and padding must not show: every text gets the vector that it gets alone, at its own place.
#[test]
fn batches_change_nothing() {
    let (_keep, folder) = tiny();
    let encoder = Encoder::open(&folder, &RuntimeChoice::BuiltIn).unwrap();
    let words = ["load", "volume", "segment", "threshold", "weather"];
    let texts: Vec<String> = (0..600)
        .map(|index| (0..=(index * 7 % 23)).map(|at| words[(index + at * at) % 5]).collect::<Vec<_>>().join(" "))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut told = Vec::new();
    let never = AtomicBool::new(false);
    let together = encoder.embed(&texts, Role::Document, &never, &mut |done| told.push(done)).unwrap();
    assert_eq!(told.last(), Some(&600));
    assert!(told.is_sorted(), "progress goes forward");
    for (text, vector) in texts.iter().zip(&together) {
        let alone = encoder.embed(&[text], Role::Document, &never, &mut |_| {}).unwrap();
        assert!(cosine(&alone[0], vector) > 0.999_99, "{text}");
    }
}

#[test]
fn a_cancel_is_noticed() {
    let (_keep, folder) = tiny();
    let encoder = Encoder::open(&folder, &RuntimeChoice::BuiltIn).unwrap();
    let cancel = AtomicBool::new(false);
    let texts = vec!["load volume"; 100];
    let mut seen = 0;
    let end = encoder.embed(&texts, Role::Document, &cancel, &mut |done| {
        seen = done;
        cancel.store(true, Ordering::Relaxed);
    });
    assert!(matches!(end, Err(EmbedError::Cancelled)));
    assert_eq!(seen, BATCH, "one batch and no more");
}

/// An empty text, and one far over the limit, still get a vector.
#[test]
fn odd_texts_have_vectors() {
    let (_keep, folder) = tiny();
    std::fs::write(folder.join("embedding.toml"), "max_tokens = 16").unwrap();
    let encoder = Encoder::open(&folder, &RuntimeChoice::BuiltIn).unwrap();
    assert_eq!(encoder.embed_query("").unwrap().len(), 4);
    let long = "load ".repeat(100_000);
    assert_eq!(encoder.tokenize(&[&long], Role::Query).unwrap()[0].len(), 16);
}

#[test]
fn groups_hold_to_their_limits() {
    let tokens: Vec<Vec<i32>> = [1, 2, 3, 100, 120, 256, 256, 3000].iter().map(|&length| vec![0; length]).collect();
    let order: Vec<usize> = (0..tokens.len()).collect();
    let groups = batches(&order, &tokens);
    assert_eq!(groups, [&[0, 1, 2, 3][..], &[4, 5], &[6], &[7]]);
}

#[test]
fn missing_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = refused(folder.path());
    assert!(matches!(&error, EmbedError::MissingFile { file, .. } if file == "model.onnx"), "{error}");
    std::fs::write(folder.path().join("model.onnx"), onnx("input_ids", &table())).unwrap();
    let error = refused(folder.path());
    assert!(matches!(&error, EmbedError::MissingFile { file, .. } if file == "tokenizer.json"), "{error}");
}

/// A model for pictures has other inputs; the error names them.
#[test]
fn other_models_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &onnx("pixel_values", &table()));
    let error = refused(folder.path());
    assert!(matches!(error, EmbedError::NotAnEncoder { .. }));
    assert!(error.to_string().contains("pixel_values"), "{error}");
}

#[test]
fn damaged_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), b"this is a page of a proxy, not a model");
    assert!(matches!(refused(folder.path()), EmbedError::Damaged { .. }));
    write(folder.path(), &onnx("input_ids", &table()));
    std::fs::write(folder.path().join("tokenizer.json"), "{").unwrap();
    assert!(matches!(refused(folder.path()), EmbedError::Damaged { .. }));
}

/// NaN would make every comparison false and the ranking silently random.
#[test]
fn nan_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = table();
    rows[4][1] = f32::NAN;
    write(folder.path(), &onnx("input_ids", &rows));
    assert!(matches!(refused(folder.path()), EmbedError::NotFinite));
}

#[test]
fn settings_come_from_the_model_and_ours_go_first() {
    let (_keep, folder) = tiny();
    std::fs::create_dir(folder.join("1_Pooling")).unwrap();
    let pooling =
        r#"{"word_embedding_dimension": 4, "pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}"#;
    std::fs::write(folder.join("1_Pooling/config.json"), pooling).unwrap();
    std::fs::write(folder.join("sentence_bert_config.json"), r#"{"max_seq_length": 256}"#).unwrap();
    std::fs::write(folder.join("tokenizer_config.json"), r#"{"model_max_length": 1e30}"#).unwrap();
    let prompts = r#"{"prompts": {"query": "ask: ", "document": ""}}"#;
    std::fs::write(folder.join("config_sentence_transformers.json"), prompts).unwrap();
    let read = ModelSettings::read(&folder, false).unwrap();
    assert_eq!((read.pooling, read.max_tokens, read.query_prefix.as_str()), (Pooling::Cls, 256, "ask: "));
    let before = Encoder::open(&folder, &RuntimeChoice::BuiltIn).unwrap().id().to_owned();

    std::fs::write(folder.join("embedding.toml"), "pooling = 'last_token'\nmax_tokens = 64\nquery_prefix = ''")
        .unwrap();
    let read = ModelSettings::read(&folder, false).unwrap();
    assert_eq!((read.pooling, read.max_tokens, read.query_prefix.as_str()), (Pooling::LastToken, 64, ""));
    let after = Encoder::open(&folder, &RuntimeChoice::BuiltIn).unwrap().id().to_owned();
    assert_ne!(before, after, "vectors made with other settings must not be mixed");

    std::fs::write(folder.join("embedding.toml"), "poling = 'mean'").unwrap();
    assert!(matches!(ModelSettings::read(&folder, false), Err(EmbedError::Settings { .. })));
}

#[test]
fn unknown_pooling_is_refused() {
    let (_keep, folder) = tiny();
    std::fs::create_dir(folder.join("1_Pooling")).unwrap();
    let pooling = r#"{"pooling_mode_max_tokens": true, "pooling_mode_mean_tokens": true}"#;
    std::fs::write(folder.join("1_Pooling/config.json"), pooling).unwrap();
    assert!(refused(&folder).to_string().contains("pooling_mode_max_tokens"));
}

/// Pooling decides which tokens count: padding never does.
#[test]
fn pooling_reads_the_right_tokens() {
    let output = Output { shape: vec![1, 3, 2], values: vec![1.0, 2.0, 3.0, 4.0, 100.0, 100.0] };
    let batch = Batch { rows: 1, width: 3, ids: vec![1, 2, 0], mask: vec![1, 1, 0] };
    let pooled = |pooling| pool::pool(&output, &batch, pooling).unwrap().remove(0);
    assert_eq!(pooled(Pooling::Mean), [2.0, 3.0]);
    assert_eq!(pooled(Pooling::Cls), [1.0, 2.0]);
    assert_eq!(pooled(Pooling::LastToken), [3.0, 4.0]);
    let odd = Output { shape: vec![3, 2], values: vec![0.0; 6] };
    assert!(matches!(pool::pool(&odd, &batch, Pooling::Mean), Err(EmbedError::NotAnEncoder { .. })));
}

#[test]
fn int8_goes_first_on_a_cpu() {
    let (_keep, folder) = tiny();
    std::fs::create_dir(folder.join("onnx")).unwrap();
    std::fs::write(folder.join("onnx/model_quantized.onnx"), "").unwrap();
    assert!(ModelSettings::read(&folder, false).unwrap().model_file.ends_with("model_quantized.onnx"));
    assert!(ModelSettings::read(&folder, true).unwrap().model_file.ends_with("model.onnx"));
}

/// A library that is not there, or is no library, is an error in words, not a crash.
#[test]
fn a_missing_library_is_told() {
    let (_keep, folder) = tiny();
    for name in ["nowhere.so", "tokenizer.json"] {
        let library = folder.join(name);
        let choice = RuntimeChoice::OnnxRuntime { library: library.clone(), gpu: false };
        let error = Encoder::open(&folder, &choice).err().unwrap();
        assert!(matches!(error, EmbedError::Library { .. }), "{error}");
    }
}

#[test]
fn libraries_are_found_where_they_may_be() {
    let folder = tempfile::tempdir().unwrap();
    let capi = folder.path().join("site/onnxruntime/capi");
    std::fs::create_dir_all(&capi).unwrap();
    for name in ["libonnxruntime.so.1.32.0", "libonnxruntime_providers_shared.so", "onnxruntime.dll", "__init__.py"] {
        std::fs::write(capi.join(name), "").unwrap();
    }
    let own = folder.path().join("mine.so");
    std::fs::write(&own, "").unwrap();
    let found = library_candidates(Some(&own), None, &[folder.path().join("site"), folder.path().join("none")]);
    let names: Vec<_> = found.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["mine.so", "onnxruntime.dll", "libonnxruntime.so.1.32.0"]);
}
