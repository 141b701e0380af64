use super::super::embed::RuntimeChoice;
use super::super::embed::tiny_model::{onnx, table, write};
use super::*;

fn encoder() -> (tempfile::TempDir, Encoder) {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("tiny");
    write(&model, &onnx("input_ids", &table()));
    let encoder = Encoder::open(&model, &RuntimeChoice::BuiltIn).unwrap();
    (folder, encoder)
}

const TEXTS: [&str; 4] = ["load volume", "segment threshold", "weather", "threshold"];

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

fn indexed(encoder: &Encoder) -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    let done = update(&mut connection, encoder, TEXTS, &never(), &mut |_, _| {}).unwrap();
    assert_eq!(done, Updated { embedded: 4, kept: 0 });
    connection
}

fn load(connection: &Connection, encoder: &Encoder, texts: &[(ChunkId, &str)]) -> VectorIndex {
    let texts = texts.iter().map(|(chunk, text)| (*chunk, text_hash(text)));
    VectorIndex::load(connection, encoder.id(), encoder.dimension(), texts).unwrap()
}

#[test]
fn the_nearest_chunk_is_first() {
    let (_keep, encoder) = encoder();
    let connection = indexed(&encoder);
    let index = load(&connection, &encoder, &[(10, TEXTS[0]), (11, TEXTS[1]), (12, TEXTS[2]), (13, TEXTS[3])]);
    let query = encoder.embed_query("segment").unwrap();
    let found = index.nearest(&connection, &query, 3).unwrap();
    assert_eq!(found.iter().map(|(chunk, _)| *chunk).collect::<Vec<_>>()[..2], [11, 13]);
    // The score is the cosine, not something of its own.
    let other = encoder.embed_query(TEXTS[1]).unwrap();
    let cosine: f32 = query.iter().zip(&other).map(|(a, b)| a * b).sum();
    assert!((found[0].1 - cosine).abs() < 1e-4);
}

/// Only what changed is embedded, and twice the same text only once.
#[test]
fn an_update_embeds_only_what_is_new() {
    let (_keep, encoder) = encoder();
    let mut connection = indexed(&encoder);
    let texts = ["load volume", "weather", "segment", "segment"];
    let mut told = Vec::new();
    let done = update(&mut connection, &encoder, texts, &never(), &mut |done, of| told.push((done, of))).unwrap();
    assert_eq!(done, Updated { embedded: 1, kept: 2 });
    assert_eq!(told, [(1, 1)]);
}

/// A chunk counts with its best text and appears once; a text that two chunks share leads to both.
#[test]
fn chunks_may_have_several_texts() {
    let (_keep, encoder) = encoder();
    let connection = indexed(&encoder);
    let index =
        load(&connection, &encoder, &[(1, TEXTS[0]), (1, TEXTS[1]), (2, TEXTS[3]), (3, TEXTS[3]), (4, TEXTS[2])]);
    let query = encoder.embed_query("threshold").unwrap();
    let found = index.nearest(&connection, &query, 10).unwrap();
    let chunks: Vec<ChunkId> = found.iter().map(|(chunk, _)| *chunk).collect();
    assert_eq!(chunks, [2, 3, 1, 4]);
}

/// When the best rows all belong to one chunk, others are still found.
#[test]
fn one_chunk_with_many_texts_does_not_hide_the_rest() {
    let mut connection = Connection::open_in_memory().unwrap();
    create_table(&connection).unwrap();
    let rows: Vec<(TextHash, Vec<f32>)> =
        (0..500_u16).map(|row| (text_hash(&row.to_string()), vec![1.0, f32::from(row) / 1000.0, 0.5])).collect();
    store(&mut connection, "m", rows.iter().map(|(hash, row)| (*hash, row.as_slice()))).unwrap();
    let texts = rows.iter().enumerate().map(|(row, (hash, _))| (if row < 495 { 1 } else { 2 }, *hash));
    let index = VectorIndex::load(&connection, "m", 3, texts).unwrap();
    assert_eq!(index.len(), 500);
    let found = index.nearest(&connection, &[0.0, -1.0, 0.0], 2).unwrap();
    assert_eq!(found.iter().map(|(chunk, _)| *chunk).collect::<Vec<_>>(), [1, 2]);
}

/// Vectors of another model are never mixed in, and go with the pruning.
#[test]
fn models_are_kept_apart_and_old_ones_go() {
    let (_keep, encoder) = encoder();
    let mut connection = indexed(&encoder);
    store(&mut connection, "old", [(text_hash(TEXTS[0]), [1.0_f32, 0.0].as_slice())]).unwrap();
    let index = load(&connection, &encoder, &[(1, TEXTS[0]), (2, "never embedded")]);
    assert_eq!(index.len(), 1);
    let keep = HashSet::from([text_hash(TEXTS[0]), text_hash(TEXTS[1])]);
    assert_eq!(prune(&mut connection, encoder.id(), &keep).unwrap(), 3);
    assert_eq!(hashes(&connection, encoder.id()).unwrap(), keep);
}

/// A stop in the middle keeps the portions that were finished, and the next update goes on from there.
#[test]
fn a_stopped_update_goes_on_later() {
    let (_keep, encoder) = encoder();
    let mut connection = Connection::open_in_memory().unwrap();
    let texts: Vec<String> = (0..700).map(|index| format!("{} {index}", "load ".repeat(index % 5))).collect();
    let cancel = never();
    let stopped = update(&mut connection, &encoder, texts.iter().map(String::as_str), &cancel, &mut |done, _| {
        if done > PORTION {
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    });
    assert!(matches!(stopped, Err(VectorError::Embed(EmbedError::Cancelled))));
    let done = update(&mut connection, &encoder, texts.iter().map(String::as_str), &never(), &mut |_, _| {}).unwrap();
    assert_eq!(done, Updated { embedded: 700 - PORTION, kept: PORTION });
}

/// A row of another length would be read as nonsense; it is an error in words.
#[test]
fn damage_is_told() {
    let (_keep, encoder) = encoder();
    let connection = indexed(&encoder);
    connection.execute("UPDATE vector SET numbers = x'0011'", []).unwrap();
    let texts = [(1, text_hash(TEXTS[0]))];
    let loaded = VectorIndex::load(&connection, encoder.id(), encoder.dimension(), texts);
    assert!(matches!(loaded, Err(VectorError::Damaged(_))));
}
