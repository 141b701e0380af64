//! A model of a few bytes for tests: a table of vectors, looked up by token. Written as ONNX by hand, so that tests need
//! neither a download nor a model in the repository.

use std::path::Path;

/// Appends a protobuf field with bytes.
fn bytes(out: &mut Vec<u8>, field: u8, value: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, value.len());
    out.extend_from_slice(value);
}

fn number(out: &mut Vec<u8>, field: u8, value: usize) {
    out.push(field << 3);
    varint(out, value);
}

fn varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 128 {
        out.push(u8::try_from(value & 127).unwrap() | 128);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap());
}

/// A `ValueInfoProto`: a matrix or box of unknown size.
fn value_info(name: &str, element: usize, axes: usize) -> Vec<u8> {
    let mut shape = Vec::new();
    for axis in 0..axes {
        let mut dimension = Vec::new();
        bytes(&mut dimension, 2, format!("{name}_{axis}").as_bytes());
        bytes(&mut shape, 1, &dimension);
    }
    let mut tensor = Vec::new();
    number(&mut tensor, 1, element);
    bytes(&mut tensor, 2, &shape);
    let mut kind = Vec::new();
    bytes(&mut kind, 1, &tensor);
    let mut info = Vec::new();
    bytes(&mut info, 1, name.as_bytes());
    bytes(&mut info, 2, &kind);
    info
}

/// `last_hidden_state = Gather(table, <input>)` as an ONNX file.
pub(crate) fn onnx(input: &str, table: &[Vec<f32>]) -> Vec<u8> {
    let mut node = Vec::new();
    bytes(&mut node, 1, b"table");
    bytes(&mut node, 1, input.as_bytes());
    bytes(&mut node, 2, b"last_hidden_state");
    bytes(&mut node, 3, b"look_up");
    bytes(&mut node, 4, b"Gather");
    let mut weights = Vec::new();
    number(&mut weights, 1, table.len());
    number(&mut weights, 1, table[0].len());
    number(&mut weights, 2, 1);
    bytes(&mut weights, 8, b"table");
    let raw: Vec<u8> = table.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
    bytes(&mut weights, 9, &raw);
    let mut graph = Vec::new();
    bytes(&mut graph, 1, &node);
    bytes(&mut graph, 2, b"tiny");
    bytes(&mut graph, 5, &weights);
    bytes(&mut graph, 11, &value_info(input, 7, 2));
    bytes(&mut graph, 12, &value_info("last_hidden_state", 1, 3));
    let mut opset = Vec::new();
    number(&mut opset, 2, 17);
    let mut model = Vec::new();
    number(&mut model, 1, 8);
    bytes(&mut model, 7, &graph);
    bytes(&mut model, 8, &opset);
    model
}

/// Words of the tiny tokenizer; the token of a word is its place here.
pub(crate) const WORDS: [&str; 8] = ["[UNK]", "[CLS]", "[SEP]", "load", "volume", "segment", "threshold", "weather"];

/// Vectors of those words: loading and volumes point one way, segments and thresholds another, weather a third.
pub(crate) fn table() -> Vec<Vec<f32>> {
    [
        [0.0, 0.0, 0.0, 0.1],
        [0.0, 0.0, 0.0, 0.1],
        [0.0, 0.0, 0.0, 0.1],
        [1.0, 0.0, 0.0, 0.0],
        [0.9, 0.3, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
        [0.1, 0.9, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0],
    ]
    .map(Vec::from)
    .to_vec()
}

/// Writes a whole model folder.
pub(crate) fn write(folder: &Path, model: &[u8]) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("model.onnx"), model).unwrap();
    let vocabulary: serde_json::Map<String, serde_json::Value> =
        WORDS.iter().enumerate().map(|(id, word)| ((*word).to_owned(), id.into())).collect();
    let tokenizer = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    });
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
}
