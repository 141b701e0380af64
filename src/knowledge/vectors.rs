//! The vectors of the chunks: kept in the same SQLite file as the chunks, searched exactly.
//!
//! A vector belongs to a text, not to a place: its row is keyed by the model and the hash of the text that was embedded.
//! So a chunk that only moved, or that two sources share, is never embedded twice; a row without a chunk is harmless; and
//! because the rows live in the database of the chunks, a kill leaves both or neither. A chunk may have several texts
//! (its whole, its title, its paragraphs); it counts with its best one.
//!
//! On disk a number takes 16 bits, which is exact to about one part in 30,000. In memory only its upper half is kept,
//! one byte, and all rows are scanned with that; the best forty are then scored again with the rows on disk. That finds
//! the same ten as the full numbers do, in a quarter of the memory and a third of the time. There is no approximate
//! index: up to 150,000 vectors the scan takes about as long as embedding the question does, needs no building, and
//! forgets and learns rows at once.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;

use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use super::embed::{EmbedError, Encoder, Role};
use super::vector_scan::{self, CodeTable};

/// Rows that are scored again with all their digits.
const RESCORED: usize = 40;
/// Vectors are stored each time so many are ready: what a kill costs is one such portion.
const PORTION: usize = 256;

/// Key of a chunk in its own table.
pub type ChunkId = i64;

/// SHA-256 of a text, shortened: 16 bytes are far from any accidental clash.
pub type TextHash = [u8; 16];

/// Why vectors could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum VectorError {
    #[error(
        "The vectors in the search index cannot be read or written: {0}. Rebuild the index in Settings → Knowledge."
    )]
    Store(#[from] rusqlite::Error),
    #[error(transparent)]
    Embed(#[from] EmbedError),
    #[error("The vectors in the search index are damaged: {0}. Rebuild the index in Settings → Knowledge.")]
    Damaged(String),
}

/// The hash of a text that is to be embedded.
pub fn text_hash(text: &str) -> TextHash {
    let mut short = [0; 16];
    short.copy_from_slice(&Sha256::digest(text.as_bytes())[..16]);
    short
}

/// Makes the table of vectors if it is not there.
///
/// # Errors
/// When SQLite cannot.
pub fn create_table(connection: &Connection) -> Result<(), VectorError> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS vector (id INTEGER PRIMARY KEY, model TEXT NOT NULL, hash BLOB NOT NULL,
                                            scale REAL NOT NULL, numbers BLOB NOT NULL);
         CREATE UNIQUE INDEX IF NOT EXISTS vector_text ON vector (model, hash);",
    )?;
    Ok(())
}

/// What an update did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Updated {
    /// Texts that were embedded now.
    pub embedded: usize,
    /// Texts whose vectors were there.
    pub kept: usize,
}

/// Embeds those of `texts` that have no vector of this model yet, and stores them portion by portion, so that what is
/// done stays done when the program ends in between. `progress` is told (finished, to do).
///
/// # Errors
/// When the model fails or was stopped, when SQLite refuses a row. What was stored before stays.
pub fn update<'a>(
    connection: &mut Connection,
    encoder: &Encoder,
    texts: impl IntoIterator<Item = &'a str>,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Updated, VectorError> {
    create_table(connection)?;
    let known = hashes(connection, encoder.id())?;
    let mut seen = HashSet::new();
    let mut missing: Vec<(TextHash, &str)> = Vec::new();
    let mut kept = 0;
    for text in texts {
        let hash = text_hash(text);
        if !seen.insert(hash) {
            continue;
        }
        if known.contains(&hash) {
            kept += 1;
        } else {
            missing.push((hash, text));
        }
    }
    // Texts of like length beside each other make full batches; the first portion is the quickest to show progress.
    missing.sort_by_key(|(_, text)| text.len());
    let mut stored = 0;
    for portion in missing.chunks(PORTION) {
        let texts: Vec<&str> = portion.iter().map(|(_, text)| *text).collect();
        let vectors =
            encoder.embed(&texts, Role::Document, cancel, &mut |done| progress(stored + done, missing.len()))?;
        let rows = portion.iter().zip(&vectors).map(|((hash, _), vector)| (*hash, vector.as_slice()));
        store(connection, encoder.id(), rows)?;
        stored += portion.len();
    }
    Ok(Updated { embedded: stored, kept })
}

/// Stores vectors under the hashes of their texts; all of them or, after an error, none.
///
/// # Errors
/// When SQLite refuses a row.
pub fn store<'a>(
    connection: &mut Connection,
    model: &str,
    rows: impl IntoIterator<Item = (TextHash, &'a [f32])>,
) -> Result<(), VectorError> {
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction
            .prepare_cached("INSERT OR REPLACE INTO vector (model, hash, scale, numbers) VALUES (?1, ?2, ?3, ?4)")?;
        for (hash, vector) in rows {
            let (scale, numbers) = vector_scan::to_numbers(vector);
            insert.execute(params![model, hash.as_slice(), f64::from(scale), numbers])?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// Deletes the vectors of this model whose text is gone, and all of other models. Returns how many rows went.
///
/// # Errors
/// When SQLite fails; then nothing is deleted.
pub fn prune(connection: &mut Connection, model: &str, keep: &HashSet<TextHash>) -> Result<usize, VectorError> {
    create_table(connection)?;
    let gone: Vec<TextHash> = hashes(connection, model)?.into_iter().filter(|hash| !keep.contains(hash)).collect();
    let transaction = connection.transaction()?;
    let mut removed = transaction.execute("DELETE FROM vector WHERE model <> ?1", [model])?;
    {
        let mut delete = transaction.prepare("DELETE FROM vector WHERE model = ?1 AND hash = ?2")?;
        for hash in gone {
            removed += delete.execute(params![model, hash.as_slice()])?;
        }
    }
    transaction.commit()?;
    Ok(removed)
}

fn hashes(connection: &Connection, model: &str) -> Result<HashSet<TextHash>, VectorError> {
    let mut statement = connection.prepare("SELECT hash FROM vector WHERE model = ?1")?;
    let rows = statement.query_map([model], |row| row.get::<_, Vec<u8>>(0))?;
    rows.map(|row| to_hash(&row?)).collect()
}

fn to_hash(bytes: &[u8]) -> Result<TextHash, VectorError> {
    bytes.try_into().map_err(|_| VectorError::Damaged(format!("a key has {} bytes", bytes.len())))
}

/// The vectors of one model in memory, ready to be searched. It is a picture of the moment when it was loaded; load it
/// again after an update.
pub struct VectorIndex {
    model: String,
    codes: CodeTable,
    /// For each row of `codes`: its row on disk.
    stored: Vec<i64>,
    /// For each row of `codes`: the chunks that have this text.
    chunks: Vec<Vec<ChunkId>>,
}

impl VectorIndex {
    /// Loads the vectors of the texts that chunks have. A chunk may be named several times, with each of its texts;
    /// texts without a vector are left out.
    ///
    /// # Errors
    /// When SQLite fails or rows are damaged.
    pub fn load(
        connection: &Connection,
        model: &str,
        dimension: usize,
        texts: impl IntoIterator<Item = (ChunkId, TextHash)>,
    ) -> Result<Self, VectorError> {
        create_table(connection)?;
        let mut wanted: HashMap<TextHash, Vec<ChunkId>> = HashMap::new();
        for (chunk, hash) in texts {
            wanted.entry(hash).or_default().push(chunk);
        }
        let mut index =
            Self { model: model.to_owned(), codes: CodeTable::new(dimension), stored: Vec::new(), chunks: Vec::new() };
        index.codes.reserve(wanted.len());
        index.stored.reserve(wanted.len());
        index.chunks.reserve(wanted.len());
        let mut statement = connection.prepare("SELECT id, hash, scale, numbers FROM vector WHERE model = ?1")?;
        let mut rows = statement.query([model])?;
        while let Some(row) = rows.next()? {
            let hash = to_hash(row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?)?;
            let Some(chunks) = wanted.remove(&hash) else { continue };
            let numbers = row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?;
            if numbers.len() != dimension * 2 {
                let why = format!("a vector has {} numbers instead of {dimension}", numbers.len() / 2);
                return Err(VectorError::Damaged(why));
            }
            index.codes.push(numbers, to_f32(row.get(2)?));
            index.stored.push(row.get(0)?);
            index.chunks.push(chunks);
        }
        Ok(index)
    }

    /// The model whose vectors these are.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.stored.len()
    }

    pub fn is_empty(&self) -> bool {
        self.stored.is_empty()
    }

    /// Bytes of memory that the vectors take.
    pub fn bytes(&self) -> usize {
        self.codes.bytes() + self.stored.len() * (size_of::<i64>() + size_of::<Vec<ChunkId>>() + size_of::<ChunkId>())
    }

    /// The `top` chunks nearest to the vector of a question, nearest first, each with the cosine of its best text.
    ///
    /// # Errors
    /// When the rows on disk cannot be read.
    pub fn nearest(
        &self,
        connection: &Connection,
        query: &[f32],
        top: usize,
    ) -> Result<Vec<(ChunkId, f32)>, VectorError> {
        if query.len() != self.codes.dimension() {
            let why = format!("the question has {} numbers, the index {}", query.len(), self.codes.dimension());
            return Err(VectorError::Damaged(why));
        }
        if top == 0 || self.is_empty() {
            return Ok(Vec::new());
        }
        // Several texts of one chunk may be among the best, so more rows are taken until there are enough chunks.
        let mut rows = top.saturating_mul(2).max(RESCORED);
        loop {
            let found = self.codes.nearest(query, rows);
            let all = found.len() < rows;
            let best = self.best_chunks(&self.rescored(connection, query, found)?);
            if best.len() >= top || all {
                return Ok(best.into_iter().take(top).collect());
            }
            rows = rows.saturating_mul(2);
        }
    }

    /// Scores the first rows again with their full numbers. The others keep what they have, below the rescored ones.
    fn rescored(
        &self,
        connection: &Connection,
        query: &[f32],
        mut found: Vec<(usize, f32)>,
    ) -> Result<Vec<(usize, f32)>, VectorError> {
        let mut statement = connection.prepare_cached("SELECT scale, numbers FROM vector WHERE id = ?1")?;
        let first = found.len().min(RESCORED);
        for (row, score) in &mut found[..first] {
            let exact = statement
                .query_row([self.stored[*row]], |stored| {
                    let scale = to_f32(stored.get(0)?);
                    Ok(vector_scan::exact_dot(stored.get_ref(1)?.as_blob()?, scale, query))
                })
                .optional()?;
            // A row that an update took away meanwhile keeps its first score.
            if let Some(exact) = exact {
                *score = exact;
            }
        }
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Ok(found)
    }

    fn best_chunks(&self, rows: &[(usize, f32)]) -> Vec<(ChunkId, f32)> {
        let mut seen = HashSet::new();
        let chunks = rows.iter().flat_map(|(row, score)| self.chunks[*row].iter().map(|chunk| (*chunk, *score)));
        chunks.filter(|(chunk, _)| seen.insert(*chunk)).collect()
    }
}

// SQLite has no f32; the scale was one when it was stored.
fn to_f32(stored: f64) -> f32 {
    stored as f32
}

#[cfg(test)]
#[path = "vectors_tests.rs"]
mod tests;
