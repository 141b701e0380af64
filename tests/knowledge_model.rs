//! With a real model (all-MiniLM-L6-v2): the whole way from text to ranked chunks, on the built-in runtime and on ONNX
//! Runtime. A tiny model in the unit tests proves the plumbing; only a real one shows that tokens, masks, pooling and
//! normalisation are those that it was trained with: any mistake there still gives vectors, just worse ones.

#[path = "support/minilm.rs"]
mod minilm;
#[path = "support/python_environment.rs"]
mod python_environment;

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rusqlite::Connection;
use slicer_ai_agent::knowledge::embed::{Encoder, Pooling, Role, RuntimeChoice};
use slicer_ai_agent::knowledge::vectors::{self, VectorIndex};

const CHUNKS: [&str; 8] = [
    "slicer.util.loadVolume(path): load a volume from a file on disk and return its node",
    "Set a threshold range in the Segment Editor and apply it to the selected segment",
    "Save a screenshot of the 3D view to a PNG file",
    "Place a control point of a fiducial list at given RAS coordinates",
    "Register a moving volume to a fixed volume with a rigid transform",
    "Compute the volume in cubic millimetres of each segment with the statistics module",
    "Change the colour and the opacity of a model in the 3D view",
    "The weather in the mountains changes quickly in spring",
];

const QUESTIONS: [(&str, i64); 7] = [
    ("how do I open an image from my hard disk", 1),
    ("segment everything brighter than 300", 2),
    ("take a picture of the three-dimensional view", 3),
    ("add a landmark at a position", 4),
    ("align two scans with each other", 5),
    ("how large is the tumour segment", 6),
    ("make the surface transparent", 7),
];

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The model's own settings are read, the similarity of two sentences is the one that the model is known for, and
/// questions in other words than the texts find them.
#[test]
fn a_real_model_ranks_by_meaning() {
    let encoder = Encoder::open(&minilm::model(), &RuntimeChoice::BuiltIn).unwrap();
    assert_eq!(encoder.dimension(), 384);
    assert_eq!((encoder.settings().pooling, encoder.settings().max_tokens), (Pooling::Mean, 256));

    // Three sentences whose similarities the makers of the model print in their introduction; the weights here are int8.
    let known = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."];
    let known = known.map(|text| encoder.embed_query(text).unwrap());
    for (one, other, published) in [(0, 1, 0.6660), (0, 2, 0.1046), (1, 2, 0.1411)] {
        let here = cosine(&known[one], &known[other]);
        println!("{one} {other}: {here:.4}, published {published:.4}");
        assert!((here - published).abs() < 0.02, "{here} instead of {published}");
    }

    let mut connection = Connection::open_in_memory().unwrap();
    let never = AtomicBool::new(false);
    vectors::update(&mut connection, &encoder, CHUNKS, &never, &mut |_, _| {}).unwrap();
    let texts = CHUNKS.iter().zip(1..).map(|(text, chunk)| (chunk, vectors::text_hash(text)));
    let index = VectorIndex::load(&connection, encoder.id(), encoder.dimension(), texts).unwrap();
    let mut firsts = 0;
    for (question, chunk) in QUESTIONS {
        let query = encoder.embed_query(question).unwrap();
        let found = index.nearest(&connection, &query, 8).unwrap();
        println!("{question}: {found:?}");
        // A small model does not know the trade (to align is to register): the right text is among the first two.
        let place = found.iter().position(|(found, _)| *found == chunk).unwrap();
        assert!(place < 2, "{question}: {found:?}");
        firsts += usize::from(place == 0);
        let weather = found.iter().find(|(chunk, _)| *chunk == 8).unwrap().1;
        assert!(weather < 0.25 && found[place].1 > weather + 0.1, "{question}: {found:?}");
    }
    // What this model does; fewer would be our mistake.
    assert!(firsts >= 4, "{firsts} right texts are first");
}

/// Both runtimes give the same vectors, so that an index made with one can be asked with the other.
#[test]
fn both_runtimes_agree() {
    let folder = minilm::model();
    let built_in = Encoder::open(&folder, &RuntimeChoice::BuiltIn).unwrap();
    let choice = RuntimeChoice::OnnxRuntime { library: minilm::onnx_runtime(), gpu: false };
    let library = Encoder::open(&folder, &choice).unwrap();
    assert_eq!(built_in.id(), library.id());
    let never = AtomicBool::new(false);
    let one = built_in.embed(&CHUNKS, Role::Document, &never, &mut |_| {}).unwrap();
    let other = library.embed(&CHUNKS, Role::Document, &never, &mut |_| {}).unwrap();
    for (one, other) in one.iter().zip(&other) {
        assert!(cosine(one, other) > 0.9999, "{}", cosine(one, other));
    }
    // Where the machine has no GPU, asking for one falls back to the processor.
    let asked = RuntimeChoice::OnnxRuntime { library: minilm::onnx_runtime(), gpu: true };
    assert!(Encoder::open(&folder, &asked).unwrap().runtime().starts_with("ONNX Runtime"));
}

/// Not a benchmark (see `benches/vectors.rs`), only a guard against a slip that makes embedding useless: padding
/// everything to the limit, or a runtime without optimisation.
#[test]
fn embedding_is_fast_enough() {
    let encoder = Encoder::open(&minilm::model(), &RuntimeChoice::BuiltIn).unwrap();
    let long = CHUNKS.join(" ").repeat(2);
    let never = AtomicBool::new(false);
    let started = Instant::now();
    encoder.embed(&[long.as_str(); 16], Role::Document, &never, &mut |_| {}).unwrap();
    let rate = 16.0 / started.elapsed().as_secs_f64();
    let started = Instant::now();
    for (question, _) in QUESTIONS {
        encoder.embed_query(question).unwrap();
    }
    let question = started.elapsed() / 7;
    println!("{rate:.1} texts of 256 tokens a second, {question:.1?} a question");
    assert!(rate > 0.5, "{rate:.1} texts a second");
    assert!(question.as_millis() < 1000, "{question:?} a question");
}
