//! How long a search over vectors takes, what memory and disk they need, and whether the right ones are found; and, with
//! a model folder, how fast texts become vectors.
//!
//!     cargo bench --bench vectors                                    synthetic vectors, about two minutes
//!     cargo bench --bench vectors -- --model DIR [--library FILE]    the encoder too, with ONNX Runtime from FILE
//!
//! The vectors are unit vectors around random centres, which is closer to real ones than pure noise: neighbours are near
//! each other, and the ten best are not all alike.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use slicer_ai_agent::knowledge::embed::{Encoder, Role, RuntimeChoice};
use slicer_ai_agent::knowledge::vectors::{self, TextHash, VectorIndex};

const QUERIES: usize = 100;
const TOP: usize = 10;

/// A small generator of its own, so that every run measures the same vectors.
struct Noise(u64);

impl Noise {
    /// Between -1 and 1.
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }

    fn vector(&mut self, centres: &[Vec<f32>], dimension: usize) -> Vec<f32> {
        let centre = (self.next().abs() * centres.len() as f32) as usize;
        let mut vector: Vec<f32> =
            (0..dimension).map(|at| self.next() + centres.get(centre).map_or(0.0, |centre| centre[at])).collect();
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        vector.iter_mut().for_each(|value| *value /= length);
        vector
    }
}

fn percentile(times: &mut [Duration], share: f64) -> f64 {
    times.sort();
    times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1000.0
}

/// Resident memory of this process in bytes; zero where there is no /proc.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    pages.and_then(|text| text.split(' ').nth(1)?.parse::<usize>().ok()).unwrap_or(0) * 4096
}

fn hash(row: usize) -> TextHash {
    vectors::text_hash(&row.to_string())
}

fn search(rows: usize, dimension: usize) {
    let mut noise = Noise(0x9E37_79B9_7F4A_7C15);
    let centres: Vec<Vec<f32>> =
        (0..rows / 100).map(|_| (0..dimension).map(|_| 1.5 * noise.next()).collect()).collect();
    let data: Vec<Vec<f32>> = (0..rows).map(|_| noise.vector(&centres, dimension)).collect();
    let queries: Vec<Vec<f32>> = (0..QUERIES).map(|_| noise.vector(&centres, dimension)).collect();

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("knowledge.db");
    let mut connection = Connection::open(&file).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    vectors::create_table(&connection).unwrap();
    let started = Instant::now();
    for (portion, part) in data.chunks(256).enumerate() {
        let rows = part.iter().enumerate().map(|(at, row)| (hash(portion * 256 + at), row.as_slice()));
        vectors::store(&mut connection, "bench", rows).unwrap();
    }
    let store = started.elapsed();
    connection.pragma_update(None, "wal_checkpoint", "TRUNCATE").unwrap();
    let disk = file.metadata().unwrap().len();

    let texts: Vec<_> = (0..rows).map(|row| (row as i64, hash(row))).collect();
    let before = resident();
    let started = Instant::now();
    let index = VectorIndex::load(&connection, "bench", dimension, texts).unwrap();
    let load = started.elapsed();
    let memory = resident().saturating_sub(before);

    let mut times = Vec::new();
    let mut naive = Vec::new();
    let mut right = 0;
    for query in &queries {
        let started = Instant::now();
        let found = index.nearest(&connection, query, TOP).unwrap();
        times.push(started.elapsed());
        let started = Instant::now();
        let mut exact: Vec<(f32, i64)> = data
            .iter()
            .enumerate()
            .map(|(row, vector)| (vector.iter().zip(query).map(|(a, b)| a * b).sum(), row as i64))
            .collect();
        exact.sort_by(|a, b| b.0.total_cmp(&a.0));
        naive.push(started.elapsed());
        right += found.iter().filter(|(chunk, _)| exact[..TOP].iter().any(|(_, row)| row == chunk)).count();
    }
    println!(
        "{rows:>7} x {dimension}: search p50 {:.2} ms, p95 {:.2} ms (naive f32 and sort {:.1} ms); recall@10 {:.4}; \
         memory {:.0} MB (process {:+.0} MB); disk {:.0} MB; load {:.2} s; store {:.1} s",
        percentile(&mut times, 0.5),
        percentile(&mut times, 0.95),
        percentile(&mut naive, 0.5),
        right as f64 / (QUERIES * TOP) as f64,
        index.bytes() as f64 / 1e6,
        memory as f64 / 1e6,
        disk as f64 / 1e6,
        load.as_secs_f64(),
        store.as_secs_f64(),
    );
}

fn encode(model: &Path, choice: &RuntimeChoice) {
    let before = resident();
    let started = Instant::now();
    let encoder = Encoder::open(model, choice).unwrap();
    let open = started.elapsed();
    let sentence = "Load a volume, make a segmentation with a threshold and show its closed surface in the 3D view. ";
    let texts: Vec<String> = (0..64).map(|at| format!("{at} {}", sentence.repeat(12))).collect();
    let long: Vec<&str> = texts.iter().map(String::as_str).collect();
    let never = AtomicBool::new(false);
    encoder.embed(&long[..8], Role::Document, &never, &mut |_| {}).unwrap();
    let started = Instant::now();
    encoder.embed(&long, Role::Document, &never, &mut |_| {}).unwrap();
    let rate = 64.0 / started.elapsed().as_secs_f64();
    let mut times: Vec<Duration> = (0..50)
        .map(|_| {
            let started = Instant::now();
            encoder.embed_query("how do I segment a volume with a threshold").unwrap();
            started.elapsed()
        })
        .collect();
    println!(
        "{} on {}: open {:.2} s; {rate:.1} texts of {} tokens a second; a question p50 {:.1} ms, p95 {:.1} ms; process {:+.0} MB",
        encoder.id(),
        encoder.runtime(),
        open.as_secs_f64(),
        encoder.settings().max_tokens.min(257),
        percentile(&mut times, 0.5),
        percentile(&mut times, 0.95),
        resident().saturating_sub(before) as f64 / 1e6,
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).map(PathBuf::from)
    };
    if let Some(model) = after("--model") {
        encode(&model, &RuntimeChoice::BuiltIn);
        if let Some(library) = after("--library") {
            encode(&model, &RuntimeChoice::OnnxRuntime { library, gpu: false });
        }
        return;
    }
    for (rows, dimension) in [(20_000, 384), (20_000, 768), (150_000, 384), (150_000, 768)] {
        search(rows, dimension);
    }
}
