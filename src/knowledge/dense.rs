//! The dense half of retrieval in one piece: a question in words becomes a vector and then the nearest chunks.
//!
//! It has a connection of its own to the index file, so that a search does not wait for the lexical one beside it, and a
//! small memory of questions: sub-queries come back within a turn, and embedding is the slow part.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rusqlite::{Connection, OpenFlags};

use super::embed::Encoder;
use super::vectors::{self, ChunkId, TextHash, Updated, VectorError, VectorIndex};

/// Questions whose vectors are remembered.
const REMEMBERED: usize = 64;

/// A model, the vectors of the chunks, and the file they come from. Searches may come from several threads.
pub struct DenseIndex {
    encoder: Arc<Encoder>,
    connection: Mutex<Connection>,
    index: RwLock<VectorIndex>,
    questions: Mutex<Questions>,
}

#[derive(Default)]
struct Questions {
    vectors: HashMap<String, Vec<f32>>,
    oldest_first: VecDeque<String>,
}

impl DenseIndex {
    /// Opens the vectors that `database` has for the texts of chunks. A chunk may come several times, once with each of
    /// its texts. Texts without a vector are not found until [`DenseIndex::update`] was run.
    ///
    /// # Errors
    /// When the database cannot be opened or its vectors are damaged.
    pub fn open(
        database: &Path,
        encoder: Arc<Encoder>,
        texts: impl IntoIterator<Item = (ChunkId, TextHash)>,
    ) -> Result<Self, VectorError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(database, flags)?;
        // Another connection may be writing chunks.
        connection.busy_timeout(std::time::Duration::from_secs(10))?;
        let index = VectorIndex::load(&connection, encoder.id(), encoder.dimension(), texts)?;
        Ok(Self { encoder, connection: Mutex::new(connection), index: RwLock::new(index), questions: Mutex::default() })
    }

    /// Embeds the texts that have no vector yet, forgets the vectors of texts that are gone, and takes the result into
    /// use. Searches go on with the old vectors meanwhile. `progress` is told (finished, to do).
    ///
    /// # Errors
    /// When the model fails or was stopped, when the database fails. What was embedded before stays.
    pub fn update(
        &self,
        database: &Path,
        texts: &[(ChunkId, &str)],
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Updated, VectorError> {
        // A connection of its own: embedding takes minutes.
        let mut connection = Connection::open(database)?;
        connection.busy_timeout(std::time::Duration::from_secs(10))?;
        let done =
            vectors::update(&mut connection, &self.encoder, texts.iter().map(|(_, text)| *text), cancel, progress)?;
        let hashes: Vec<(ChunkId, TextHash)> =
            texts.iter().map(|(chunk, text)| (*chunk, vectors::text_hash(text))).collect();
        vectors::prune(&mut connection, self.encoder.id(), &hashes.iter().map(|(_, hash)| *hash).collect())?;
        let fresh = VectorIndex::load(&connection, self.encoder.id(), self.encoder.dimension(), hashes)?;
        *self.index.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(done)
    }

    /// The `top` chunks nearest in meaning to a question, nearest first, each with its cosine.
    ///
    /// # Errors
    /// When the model or the database fails.
    pub fn rank(&self, query: &str, top: usize) -> Result<Vec<(ChunkId, f32)>, VectorError> {
        let vector = self.question(query)?;
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        index.nearest(&connection, &vector, top)
    }

    fn question(&self, query: &str) -> Result<Vec<f32>, VectorError> {
        if let Some(vector) = self.questions.lock().unwrap_or_else(PoisonError::into_inner).vectors.get(query) {
            return Ok(vector.clone());
        }
        let vector = self.encoder.embed_query(query)?;
        let mut questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        if questions.vectors.insert(query.to_owned(), vector.clone()).is_none() {
            questions.oldest_first.push_back(query.to_owned());
        }
        while questions.oldest_first.len() > REMEMBERED {
            if let Some(oldest) = questions.oldest_first.pop_front() {
                questions.vectors.remove(&oldest);
            }
        }
        Ok(vector)
    }

    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Number of vectors in use, and the bytes of memory they take.
    pub fn size(&self) -> (usize, usize) {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        (index.len(), index.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::embed::RuntimeChoice;
    use super::super::embed::tiny_model::{onnx, table, write};
    use super::*;

    /// From an empty file to ranked chunks, then a change: what went is not found any more, what came is, and a program
    /// that opens the file later finds the same without embedding anything.
    #[test]
    fn vectors_follow_the_chunks_and_last() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("tiny");
        write(&model, &onnx("input_ids", &table()));
        let encoder = Arc::new(Encoder::open(&model, &RuntimeChoice::BuiltIn).unwrap());
        let database = folder.path().join("knowledge.db");
        let never = AtomicBool::new(false);
        let dense = DenseIndex::open(&database, encoder.clone(), []).unwrap();
        assert_eq!(dense.rank("load", 5).unwrap(), []);

        let texts = [(1, "load volume"), (2, "segment threshold"), (3, "weather")];
        let done = dense.update(&database, &texts, &never, &mut |_, _| {}).unwrap();
        assert_eq!(done, Updated { embedded: 3, kept: 0 });
        let ranked = |dense: &DenseIndex, query| -> Vec<ChunkId> {
            dense.rank(query, 5).unwrap().into_iter().map(|(chunk, _)| chunk).collect()
        };
        assert_eq!(ranked(&dense, "volume")[0], 1);

        let texts = [(1, "weather"), (2, "segment threshold"), (4, "volume")];
        let done = dense.update(&database, &texts, &never, &mut |_, _| {}).unwrap();
        assert_eq!(done, Updated { embedded: 1, kept: 2 });
        assert_eq!(ranked(&dense, "volume"), [4, 2, 1]);

        let hashes = texts.map(|(chunk, text)| (chunk, vectors::text_hash(text)));
        let again = DenseIndex::open(&database, encoder, hashes).unwrap();
        assert_eq!(ranked(&again, "volume"), [4, 2, 1]);
        assert_eq!(again.size().0, 3);
    }

    /// The memory of questions gives the same answers and does not grow for ever.
    #[test]
    fn questions_are_remembered_within_limits() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("tiny");
        write(&model, &onnx("input_ids", &table()));
        let encoder = Arc::new(Encoder::open(&model, &RuntimeChoice::BuiltIn).unwrap());
        let dense = DenseIndex::open(&folder.path().join("k.db"), encoder, []).unwrap();
        let first = dense.question("load").unwrap();
        for number in 0..3 * REMEMBERED {
            dense.question(&format!("load {number}")).unwrap();
        }
        assert_eq!(dense.questions.lock().unwrap().vectors.len(), REMEMBERED);
        assert_eq!(dense.question("load").unwrap(), first);
    }
}
