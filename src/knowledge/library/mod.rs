//! The library: passages of all sources in one index file, and how a request finds its own.
//!
//! Lexical ranking stands alone; a dense ranking joins by reciprocal rank where there is one. What a request gets is
//! chosen from the ranking: no near-copies, whole files where a file answers most, and no more text than agreed.

pub mod bench;
mod build;
mod query;
mod rank;
mod roots;
mod select;
mod store;
mod terms;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rusqlite::{Connection, OptionalExtension, params};

pub use build::{IndexReport, NewSource};
pub use rank::Ranking;
pub use select::{Retrieval, RetrievalOptions};

use super::controls::Control;
use super::index::{Hit, KnowledgeError};
use super::source::SourceRules;
use query::Vocabulary;
use rank::{Lexical, QueryTerm, UI_FIELD, decode};

/// Number of a passage in the index file; never used twice.
pub type ChunkId = i64;

/// A ranking by meaning. Optional: without one the lexical ranking stands alone.
pub trait DenseSearch: Send + Sync {
    /// The `top` passages nearest to the query, best first, with their closeness.
    fn rank(&self, query: &str, top: usize) -> Vec<(ChunkId, f32)>;
}

/// What the ranking needs of a passage without reading its text.
struct Document {
    id: ChunkId,
    kind: String,
}

/// The open library.
pub struct Library {
    connection: Mutex<Connection>,
    documents: Vec<Document>,
    by_id: HashMap<ChunkId, u32>,
    lexical: Lexical,
    vocabulary: Vocabulary,
    ranking: Ranking,
    dense: Option<Box<dyn DenseSearch>>,
}

impl Library {
    /// Where the index lies in a data folder.
    pub fn file(data_folder: &Path) -> PathBuf {
        data_folder.join("knowledge.db")
    }

    /// Opens the library of a data folder; `None` when nothing was indexed yet.
    ///
    /// # Errors
    /// When the index or a table of the resources is damaged.
    pub fn open(data_folder: &Path) -> Result<Option<Self>, KnowledgeError> {
        let file = Self::file(data_folder);
        if !file.is_file() {
            return Ok(None);
        }
        let library = Self::over(store::open(&file)?, Some(data_folder), None)?;
        Ok((!library.documents.is_empty()).then_some(library))
    }

    fn over(
        connection: Connection,
        data_folder: Option<&Path>,
        ranking: Option<Ranking>,
    ) -> Result<Self, KnowledgeError> {
        let rules = SourceRules::open(data_folder)?;
        let ranking = match ranking {
            Some(ranking) => ranking,
            None => Self::ranking(data_folder)?,
        };
        let terms = store::Terms::read(&connection)?.into_known();
        let mut documents = Vec::new();
        let mut bags = Vec::new();
        {
            let mut statement = connection.prepare(
                "SELECT chunk.id, chunk.kind, chunk.words, lent.words FROM chunk LEFT JOIN lent ON lent.chunk = chunk.id
                 ORDER BY chunk.id",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let document = Document { id: row.get(0)?, kind: row.get(1)? };
                let mut bag = decode(row.get_ref(2)?.as_blob().unwrap_or_default());
                bag.fields.resize(UI_FIELD, (0, Vec::new()));
                if let Ok(lent) = row.get_ref(3)?.as_blob() {
                    bag.fields.extend(decode(lent).fields);
                }
                bags.push((bag, rules.weight(&document.kind)));
                documents.push(document);
            }
        }
        let by_id = documents.iter().enumerate().map(|(at, d)| (d.id, u32::try_from(at).unwrap_or(u32::MAX))).collect();
        let lexical = Lexical::new(terms, &bags, &ranking);
        let vocabulary = Vocabulary::open(data_folder)?;
        Ok(Self { connection: Mutex::new(connection), documents, by_id, lexical, vocabulary, ranking, dense: None })
    }

    fn ranking(data_folder: Option<&Path>) -> Result<Ranking, KnowledgeError> {
        toml::from_str(&super::data_text(data_folder, "knowledge/ranking.toml"))
            .map_err(|error| KnowledgeError::Data { file: "knowledge/ranking.toml", why: error.to_string() })
    }

    /// Adds a ranking by meaning.
    pub fn with_dense(mut self, dense: Box<dyn DenseSearch>) -> Self {
        self.dense = Some(dense);
        self
    }

    /// Adds and refreshes sources in the index of a data folder.
    ///
    /// # Errors
    /// When a folder cannot be read or the index cannot be written; the old index stays.
    pub fn refresh(
        data_folder: &Path,
        sources: &[NewSource],
        rebuild: bool,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<IndexReport, KnowledgeError> {
        let rules = SourceRules::open(Some(data_folder))?;
        let mut connection = store::open(&Self::file(data_folder))?;
        let options = build::BuildOptions { rules: &rules, rebuild, split: true };
        build::refresh(&mut connection, sources, &options, progress)
    }

    /// Number of passages.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether there are no passages.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// The `top` best passages for one query, best first, by position in `documents`.
    fn ranked(&self, text: &str, top: usize, kind: Option<&str>) -> Vec<(u32, f64)> {
        let query: Vec<QueryTerm> = self.vocabulary.query(text, &self.ranking);
        let keep = |document: u32| kind.is_none_or(|kind| self.documents[document as usize].kind == kind);
        let lexical = self.lexical.rank(&query, top, keep);
        let Some(dense) = &self.dense else { return lexical };
        let near = dense.rank(text, top).into_iter().filter_map(|(id, _)| self.by_id.get(&id).copied());
        // The lexical places have the weights of their kinds in them; nearness knows nothing of kinds.
        let mut near: Vec<(usize, u32)> = near.filter(|at| keep(*at)).enumerate().collect();
        near.sort_by(|a, b| {
            let place = |(rank, document): &(usize, u32)| self.lexical.weight(*document) / (60.0 + *rank as f64);
            place(b).total_cmp(&place(a))
        });
        let lists = [
            lexical.iter().map(|(document, _)| *document).collect(),
            near.into_iter().map(|(_, document)| document).collect(),
        ];
        select::fuse(&lists, top)
    }

    /// Passages that declare a name, those of the named class first. `Class.name` and `Class::name` name a class.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn symbol(&self, name: &str, top: usize) -> Result<Vec<Hit>, KnowledgeError> {
        let parts: Vec<&str> = name.split(['.', ':']).map(str::trim).filter(|part| !part.is_empty()).collect();
        let Some((last, owners)) = parts.split_last() else { return Ok(Vec::new()) };
        let last = last.trim_end_matches("()");
        let ids = {
            let connection = self.lock();
            let mut statement = connection.prepare_cached(
                "SELECT id, name FROM chunk WHERE instr(' ' || lower(declares) || ' ', ' ' || lower(?1) || ' ') > 0 ORDER BY id",
            )?;
            let rows = statement.query_map([last], |row| Ok((row.get::<_, ChunkId>(0)?, row.get::<_, String>(1)?)))?;
            let mut rows = rows.collect::<Result<Vec<_>, _>>()?;
            let owner = owners.last().copied().unwrap_or("");
            rows.sort_by_key(|(_, shown)| owner.is_empty() || !shown.split([' ', '.', '›']).any(|part| part == owner));
            rows
        };
        let found = ids.iter().filter_map(|(id, _)| self.by_id.get(id).copied()).take(top);
        let mut hits = Vec::new();
        for document in found {
            hits.extend(self.hit(document, 1.0)?);
        }
        for (index, hit) in hits.iter_mut().enumerate() {
            hit.rank = index + 1;
        }
        Ok(hits)
    }

    /// The controls whose words fit a text best, with what they do.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn controls(&self, text: &str, top: usize) -> Result<Vec<Control>, KnowledgeError> {
        let wanted = terms::roots(text);
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT shown, line, object, class, label, tooltip, grouped, signal, handler, calls FROM control",
        )?;
        let rows = statement.query_map([], |row| {
            let calls: String = row.get(9)?;
            Ok(Control {
                path: row.get(0)?,
                line: usize::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
                object: row.get(2)?,
                class: row.get(3)?,
                label: row.get(4)?,
                tooltip: row.get(5)?,
                group: row.get(6)?,
                signal: row.get(7)?,
                handler: row.get(8)?,
                calls: serde_json::from_str(&calls).unwrap_or_default(),
            })
        })?;
        let mut scored = Vec::new();
        for control in rows {
            let control = control?;
            let mut score = 0.0;
            let label = terms::roots(&control.label);
            for (words, weight) in [
                (&label, 3.0),
                (&terms::roots(&control.tooltip), 1.0),
                (&terms::roots(&format!("{} {}", control.group, control.object)), 0.7),
            ] {
                let shared = wanted.iter().filter(|word| words.contains(word)).count() as f64;
                score += weight * shared / (words.len() as f64 + 2.0).sqrt();
            }
            if label == wanted {
                score += 5.0;
            }
            if score > 0.0 {
                score += if control.calls.is_empty() { 0.0 } else { 0.3 };
                scored.push((score, control));
            }
        }
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        Ok(scored.into_iter().take(top).map(|(_, control)| control).collect())
    }

    /// Every passage with its number, kind, name and text, for whoever makes vectors of them.
    ///
    /// # Errors
    /// When SQLite fails, or `visit` does.
    pub fn visit_passages(
        &self,
        mut visit: impl FnMut(ChunkId, &str, &str, &str) -> Result<(), KnowledgeError>,
    ) -> Result<(), KnowledgeError> {
        let connection = self.lock();
        let mut statement = connection.prepare("SELECT id, kind, name, text FROM chunk ORDER BY id")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (kind, name, text): (String, String, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
            visit(row.get(0)?, &kind, &name, &text)?;
        }
        Ok(())
    }

    /// A passage as a hit.
    fn hit(&self, document: u32, score: f64) -> Result<Option<Hit>, KnowledgeError> {
        let Some(known) = self.documents.get(document as usize) else { return Ok(None) };
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT file.shown, start_line, end_line, chunk.kind, name, text FROM chunk JOIN file ON file.id = chunk.file WHERE chunk.id = ?1",
        )?;
        let hit = statement.query_row(params![known.id], |row| Hit::read(row, score)).optional()?;
        Ok(hit)
    }

    /// A thread that died while it held the lock leaves the connection usable: its transaction was rolled back.
    fn lock(&self) -> std::sync::MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
