//! The scan over all vectors: bytes against a question, exact for those bytes, on all cores when there is much to scan.
//!
//! A row is bytes with one scale. The question is kept at 12 bits instead of 8, which costs nothing (the multiplication
//! is done in 16 bits anyway) and takes its share of the rounding away. Sums of products stay far inside 32 bits. On x86
//! with AVX2 sixteen numbers are multiplied at once; elsewhere the plain loop is left to the compiler, which makes NEON
//! instructions of it on Apple and other ARM machines.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Rows are padded with zeros to a multiple of this, so that the fast loop has no rest.
const LANES: usize = 32;
/// Largest number of the question: 12 bits with sign. 127 · 2047 · 8192 dimensions still fits an `i32`.
const QUERY_LIMIT: f32 = 2047.0;
/// Largest number of a stored row.
const STORED_LIMIT: f32 = 32_512.0;
/// One thread scans so many bytes at least; starting another for less takes longer than it saves.
const BYTES_A_THREAD: usize = 8 << 20;
const MOST_THREADS: usize = 8;

/// A vector as 16-bit numbers (little-endian) and the scale that gives them back.
// The scale keeps every number inside 16 bits.
pub fn to_numbers(vector: &[f32]) -> (f32, Vec<u8>) {
    let largest = vector.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    let scale = if largest > 0.0 { largest / STORED_LIMIT } else { 1.0 };
    let numbers = vector.iter().flat_map(|value| ((value / scale).round() as i16).to_le_bytes()).collect();
    (scale, numbers)
}

/// The product of a stored row with a question, with all digits of both.
pub fn exact_dot(numbers: &[u8], scale: f32, query: &[f32]) -> f32 {
    let values = numbers.chunks_exact(2).map(|pair| f32::from(i16::from_le_bytes([pair[0], pair[1]])));
    values.zip(query).map(|(value, query)| value * query).sum::<f32>() * scale
}

/// All rows as bytes.
pub struct CodeTable {
    dimension: usize,
    /// `dimension`, padded.
    stride: usize,
    codes: Vec<i8>,
    scales: Vec<f32>,
}

/// A row with its score; ordered so that the worst is on top of a heap. Equal scores go by row, so that results do not
/// depend on how the rows were shared among threads.
#[derive(PartialEq)]
struct Candidate {
    score: f32,
    row: usize,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.row.cmp(&other.row))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl CodeTable {
    pub fn new(dimension: usize) -> Self {
        Self { dimension, stride: dimension.next_multiple_of(LANES), codes: Vec::new(), scales: Vec::new() }
    }

    pub fn dimension(&self) -> usize {
        self.dimension
    }

    pub fn bytes(&self) -> usize {
        self.codes.len() + self.scales.len() * size_of::<f32>()
    }

    /// Makes room for so many more rows, so that the table does not grow by doubling.
    pub fn reserve(&mut self, rows: usize) {
        self.codes.reserve(rows * self.stride);
        self.scales.reserve(rows);
    }

    /// Adds a stored row: of each 16-bit number the upper byte, rounded.
    // (32512 + 128) >> 8 is 127.
    pub fn push(&mut self, numbers: &[u8], scale: f32) {
        let upper = numbers.chunks_exact(2).map(|pair| {
            let number = i32::from(i16::from_le_bytes([pair[0], pair[1]]));
            ((number + 128) >> 8).clamp(-127, 127) as i8
        });
        self.codes.extend(upper);
        self.scales.push(scale * 256.0);
        self.codes.resize(self.scales.len() * self.stride, 0);
    }

    /// The `top` rows with the largest products, largest first.
    pub fn nearest(&self, query: &[f32], top: usize) -> Vec<(usize, f32)> {
        let (query_scale, query) = self.quantised(query);
        let dot = fastest_dot();
        let threads = self.threads();
        let part = self.scales.len().div_ceil(threads).max(1);
        let scan = |first: usize| self.scan(first, part, &query, query_scale, top, dot);
        let mut best: Vec<Candidate> = if threads == 1 {
            scan(0)
        } else {
            std::thread::scope(|scope| {
                let starts: Vec<usize> = (0..self.scales.len()).step_by(part).collect();
                let workers: Vec<_> = starts.iter().map(|&first| (first, scope.spawn(move || scan(first)))).collect();
                // A thread that could not finish is made up for here.
                workers.into_iter().flat_map(|(first, worker)| worker.join().unwrap_or_else(|_| scan(first))).collect()
            })
        };
        best.sort();
        best.truncate(top);
        best.into_iter().map(|candidate| (candidate.row, candidate.score)).collect()
    }

    fn threads(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        (self.codes.len() / BYTES_A_THREAD).clamp(1, cores)
    }

    /// The question as 12-bit numbers, padded like the rows.
    // The scale keeps every number inside 12 bits.
    fn quantised(&self, query: &[f32]) -> (f32, Vec<i16>) {
        let largest = query.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let scale = if largest > 0.0 { largest / QUERY_LIMIT } else { 1.0 };
        let mut numbers: Vec<i16> = query.iter().map(|value| (value / scale).round() as i16).collect();
        numbers.resize(self.stride, 0);
        (scale, numbers)
    }

    /// The best rows of one part of the table, in no order.
    // A score needs no more than the 24 bits that f32 has.
    fn scan(
        &self,
        first: usize,
        count: usize,
        query: &[i16],
        query_scale: f32,
        top: usize,
        dot: Dot,
    ) -> Vec<Candidate> {
        let last = (first + count).min(self.scales.len());
        let mut best: BinaryHeap<Candidate> = BinaryHeap::with_capacity(top + 1);
        for row in first..last {
            let codes = &self.codes[row * self.stride..(row + 1) * self.stride];
            let score = dot(codes, query) as f32 * self.scales[row] * query_scale;
            if best.len() < top {
                best.push(Candidate { score, row });
            } else if best.peek().is_some_and(|worst| score > worst.score) {
                best.pop();
                best.push(Candidate { score, row });
            }
        }
        best.into_vec()
    }
}

/// The product of a row and a question of the same, padded length.
type Dot = fn(&[i8], &[i16]) -> i32;

/// The fastest product that this machine can do.
fn fastest_dot() -> Dot {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return dot_avx2;
    }
    dot_plain
}

fn dot_plain(row: &[i8], query: &[i16]) -> i32 {
    row.iter().zip(query).map(|(&a, &b)| i32::from(i16::from(a)) * i32::from(b)).sum()
}

#[cfg(target_arch = "x86_64")]
fn dot_avx2(row: &[i8], query: &[i16]) -> i32 {
    // SAFETY: only handed out by `fastest_dot` after the processor was asked.
    unsafe { dot_avx2_inner(row, query) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dot_avx2_inner(row: &[i8], query: &[i16]) -> i32 {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_loadu_si128, _mm256_add_epi32, _mm256_cvtepi8_epi16, _mm256_loadu_si256,
        _mm256_madd_epi16, _mm256_setzero_si256, _mm256_storeu_si256,
    };

    let mut sums = [_mm256_setzero_si256(); 2];
    for (row, query) in row.chunks_exact(LANES).zip(query.chunks_exact(LANES)) {
        for (half, sum) in sums.iter_mut().enumerate() {
            // SAFETY: both slices have `LANES` numbers, two halves of sixteen; the loads need no alignment.
            let (codes, numbers) = unsafe {
                (
                    _mm_loadu_si128(row.as_ptr().add(half * 16).cast::<__m128i>()),
                    _mm256_loadu_si256(query.as_ptr().add(half * 16).cast::<__m256i>()),
                )
            };
            *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(_mm256_cvtepi8_epi16(codes), numbers));
        }
    }
    let mut lanes = [0_i32; 8];
    // SAFETY: `lanes` has room for 256 bits; the store needs no alignment.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast::<__m256i>(), _mm256_add_epi32(sums[0], sums[1])) };
    lanes.iter().sum()
}

#[cfg(test)]
#[path = "vector_scan_tests.rs"]
mod tests;
