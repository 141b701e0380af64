//! The lexical index: an FTS5 table over the code-aware token stream, ranked by BM25 and the weight of each kind.
//!
//! Text is cut into tokens by `tokens`, not by SQLite, so that the words of a query and those of code meet; FTS5 only
//! counts. The heading or qualified name of a chunk is a column of its own and weighs more than its body.

use std::sync::Mutex;

use rusqlite::{Connection, params};

use super::chunks::Chunk;
use super::tokens::{query_tokens, tokens};

/// How much more a token in the name of a chunk counts than one in its text.
const NAME_WEIGHT: f64 = 3.0;
/// More words than this do not make a query better, only slower.
const MOST_QUERY_TOKENS: usize = 48;

/// Weight of each kind of knowledge on the ranking; kinds that are not here weigh 1.
const KIND_WEIGHTS: &[(&str, f64)] = &[
    ("recipe", 1.3),
    ("doc_example", 1.3),
    ("python_api", 1.2),
    ("live_api", 1.2),
    ("ui_control", 1.15),
    ("effect_implementation", 1.1),
    ("scripted_module", 1.1),
    ("test_example", 1.05),
    ("forum", 0.9),
];

/// Why the index could not answer.
#[derive(Debug, thiserror::Error)]
pub enum KnowledgeError {
    #[error("The search index failed: {0}. Rebuild it in Settings → Knowledge.")]
    Index(#[from] rusqlite::Error),
    #[error("The table {file} is damaged: {why}. Correct it, or remove your own copy of it.")]
    Data { file: &'static str, why: String },
    #[error("{} cannot be read: {why}. Check that it exists and that you may read it.", path.display())]
    Folder { path: std::path::PathBuf, why: String },
    #[error("`{pattern}` is not a regular expression: {why}")]
    Pattern { pattern: String, why: String },
    #[error("`{path}` is outside the knowledge folders. Use a path as the search results show it.")]
    Outside { path: String },
    #[error("There is no file `{path}` in the knowledge folders.{nearest}")]
    Missing { path: String, nearest: String },
}

/// One search result.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Hit {
    /// 1 for the best.
    pub rank: usize,
    pub path: String,
    /// 1-based, inclusive.
    pub start_line: usize,
    pub end_line: usize,
    pub kind: String,
    /// Heading path or qualified name.
    pub name: String,
    /// Weighted BM25; higher is better, and comparable within one search only.
    pub score: f64,
    pub text: String,
}

impl Hit {
    /// The hit in a row of path, first and last line, kind, name and text; its rank is not known yet.
    pub(super) fn read(row: &rusqlite::Row<'_>, score: f64) -> rusqlite::Result<Self> {
        Ok(Self {
            rank: 0,
            path: row.get(0)?,
            start_line: usize::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
            end_line: usize::try_from(row.get::<_, i64>(2)?).unwrap_or(0),
            kind: row.get(3)?,
            name: row.get(4)?,
            text: row.get(5)?,
            score,
        })
    }
}

/// The index. Searches may come from several threads; they take turns.
pub struct KnowledgeIndex {
    connection: Mutex<Connection>,
}

impl KnowledgeIndex {
    /// An empty index that lives in memory.
    ///
    /// # Errors
    /// When SQLite cannot make its tables.
    pub fn in_memory() -> Result<Self, KnowledgeError> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(
            "CREATE TABLE chunk (id INTEGER PRIMARY KEY, path TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
                                 start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, text TEXT NOT NULL);
             CREATE INDEX chunk_path ON chunk (path);
             CREATE VIRTUAL TABLE words USING fts5 (name, body, tokenize = \"unicode61 tokenchars '_'\");",
        )?;
        Ok(Self { connection: Mutex::new(connection) })
    }

    /// Adds chunks; all of them or, after an error, none.
    ///
    /// # Errors
    /// When SQLite refuses a row.
    pub fn add(&self, chunks: &[Chunk]) -> Result<(), KnowledgeError> {
        let mut connection = self.lock();
        let transaction = connection.transaction()?;
        {
            let mut chunk_row = transaction.prepare(
                "INSERT INTO chunk (path, kind, name, start_line, end_line, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?;
            let mut word_row = transaction.prepare("INSERT INTO words (rowid, name, body) VALUES (?1, ?2, ?3)")?;
            for chunk in chunks {
                let lines = (line_number(chunk.start_line), line_number(chunk.end_line));
                chunk_row.execute(params![chunk.path, chunk.kind, chunk.name, lines.0, lines.1, chunk.text])?;
                let id = transaction.last_insert_rowid();
                word_row.execute(params![id, tokens(&chunk.name).join(" "), tokens(&chunk.text).join(" ")])?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// The `top` best chunks for a query in plain words or code, best first; only those of `kind` if one is given.
    ///
    /// # Errors
    /// When SQLite fails; an odd query is not an error, it finds nothing.
    pub fn search(&self, query: &str, top: usize, kind: Option<&str>) -> Result<Vec<Hit>, KnowledgeError> {
        let words: Vec<String> =
            query_tokens(query).iter().take(MOST_QUERY_TOKENS).map(|token| format!("\"{token}\"")).collect();
        if words.is_empty() || top == 0 {
            return Ok(Vec::new());
        }
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT path, start_line, end_line, kind, chunk.name, text, -bm25(words, ?1, 1.0)
             FROM words JOIN chunk ON chunk.id = words.rowid
             WHERE words MATCH ?2 AND (?3 IS NULL OR kind = ?3)
             ORDER BY bm25(words, ?1, 1.0), chunk.id LIMIT ?4",
        )?;
        // The weight can lift a chunk over others, so more than `top` are read before it is applied.
        let pool = i64::try_from(top.saturating_mul(4).max(50)).unwrap_or(i64::MAX);
        let rows = statement
            .query_map(params![NAME_WEIGHT, words.join(" OR "), kind, pool], |row| Hit::read(row, row.get(6)?))?;
        let mut hits = rows.collect::<Result<Vec<Hit>, _>>()?;
        for hit in &mut hits {
            hit.score *= kind_weight(&hit.kind);
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        hits.truncate(top);
        for (index, hit) in hits.iter_mut().enumerate() {
            hit.rank = index + 1;
        }
        Ok(hits)
    }

    /// Number of chunks.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn len(&self) -> Result<usize, KnowledgeError> {
        let count: i64 = self.lock().query_row("SELECT count(*) FROM chunk", [], |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Whether nothing is indexed.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn is_empty(&self) -> Result<bool, KnowledgeError> {
        Ok(self.len()? == 0)
    }

    /// A thread that died while it held the lock leaves the connection usable: its transaction was rolled back.
    fn lock(&self) -> std::sync::MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn line_number(line: usize) -> i64 {
    i64::try_from(line).unwrap_or(i64::MAX)
}

fn kind_weight(kind: &str) -> f64 {
    KIND_WEIGHTS.iter().find(|(name, _)| *name == kind).map_or(1.0, |(_, weight)| *weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(path: &str, kind: &str, name: &str, text: &str) -> Chunk {
        let (path, kind, name, text) = (path.to_owned(), kind.to_owned(), name.to_owned(), text.to_owned());
        Chunk { path, kind, name, start_line: 3, end_line: 9, text }
    }

    fn index() -> KnowledgeIndex {
        let index = KnowledgeIndex::in_memory().expect("sqlite");
        let chunks = [
            chunk("a.md", "doc", "Volumes", "Read voxels with slicer.util.arrayFromVolume(node)"),
            chunk("b.md", "recipe", "Clip a model", "vtkMRMLClipModelsNode cuts models by slices"),
            chunk("c.py", "python_api", "resetSliceViews", "Fit all slice views to their background"),
        ];
        index.add(&chunks).expect("added");
        index
    }

    /// Protects that plain words find identifiers and the other way round.
    #[test]
    fn words_and_identifiers_meet() {
        let index = index();
        assert_eq!(index.search("array from volume", 3, None).expect("search")[0].path, "a.md");
        assert_eq!(index.search("ClipModels", 3, None).expect("search")[0].path, "b.md");
        let hits = index.search("reset the slice view", 3, None).expect("search");
        assert_eq!((hits[0].rank, hits[0].path.as_str(), hits[0].start_line), (1, "c.py", 3));
    }

    /// Protects the filter by kind, and that operators and quotes in a query are plain text.
    #[test]
    fn odd_queries_are_harmless() {
        let index = index();
        assert!(index.search("slice views", 5, Some("recipe")).expect("search").iter().all(|hit| hit.kind == "recipe"));
        for query in ["", "\"", "NEAR(a b) AND *", "name: x OR -", "日本"] {
            index.search(query, 5, None).expect(query);
        }
    }
}
