//! Reading the files of the sources themselves, and nothing else.
//!
//! A path is looked up in the index before the disk is touched, and what it leads to must lie in the source's folder
//! after links were followed: neither `..` nor a link that was put there later leads out.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rusqlite::OptionalExtension;

use super::{ChunkId, Library};
use crate::knowledge::files::KnowledgeFiles;
use crate::knowledge::index::KnowledgeError;

/// From so many lines on a file is told by sections.
const LONG_FILE: i64 = 500;
/// Sections that are shown whole.
const BEST_SECTIONS: usize = 3;
/// Largest file that is read.
const MOST_BYTES: u64 = 4_000_000;

impl Library {
    /// The text of a file of a source.
    ///
    /// # Errors
    /// When there is no such file, or it leads out of its source.
    pub fn read_whole(&self, shown: &str) -> Result<String, KnowledgeError> {
        let missing = || KnowledgeError::Missing { path: shown.to_owned(), nearest: String::new() };
        let found: Option<(String, String)> = self
            .lock()
            .query_row(
                "SELECT root, path FROM file JOIN source ON source.id = file.source WHERE shown = ?1",
                [shown],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()?;
        let (root, path) = found.ok_or_else(missing)?;
        read_inside(Path::new(&root), &path).ok_or_else(missing)
    }

    /// The sections of a long file that fit a query best, whole, and the names and lines of all. `None` for files that are
    /// short or have no passages.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn sections_on(&self, shown: &str, query: &str) -> Result<Option<String>, KnowledgeError> {
        let sections: Vec<(ChunkId, String, i64, i64)> = {
            let connection = self.lock();
            let mut statement = connection.prepare_cached(
                "SELECT chunk.id, name, start_line, end_line FROM chunk JOIN file ON file.id = chunk.file WHERE shown = ?1
                 ORDER BY start_line",
            )?;
            let rows = statement.query_map([shown], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
            rows.collect::<Result<_, _>>()?
        };
        let lines = sections.iter().map(|(_, _, _, end)| *end).max().unwrap_or(0);
        if lines < LONG_FILE {
            return Ok(None);
        }
        let inside: HashSet<u32> = sections.iter().filter_map(|(id, ..)| self.by_id.get(id).copied()).collect();
        let words = self.vocabulary.query(query, &self.ranking);
        let mut text = String::new();
        for (document, score) in self.lexical.rank(&words, BEST_SECTIONS, |document| inside.contains(&document)) {
            if let Some(hit) = self.hit(document, score)? {
                text.push_str(&format!(
                    "[{shown} lines {}–{}] {}\n{}\n\n",
                    hit.start_line, hit.end_line, hit.name, hit.text
                ));
            }
        }
        text.push_str("available_sections (read one with first_line):\n");
        for (_, name, start, end) in &sections {
            text.push_str(&format!("{start}–{end} {name}\n"));
        }
        Ok(Some(text))
    }

    /// Paths that hold `part`, sorted, at most `most`.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn paths_like(&self, part: &str, most: usize) -> Result<Vec<String>, KnowledgeError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT shown FROM file WHERE instr(shown, ?1) > 0 ORDER BY length(shown), shown LIMIT ?2",
        )?;
        let rows = statement.query_map((part, i64::try_from(most).unwrap_or(10)), |row| row.get(0))?;
        Ok(rows.collect::<Result<Vec<String>, _>>()?)
    }

    /// The files below `folder` (all of them without one), to be searched by pattern.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn files(&self, folder: Option<&str>) -> Result<KnowledgeFiles, KnowledgeError> {
        let rows = {
            let connection = self.lock();
            let mut statement = connection
                .prepare_cached("SELECT shown, root, path FROM file JOIN source ON source.id = file.source")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            rows.collect::<Result<Vec<(String, String, String)>, _>>()?
        };
        let inside = |shown: &str| {
            folder.is_none_or(|folder| {
                shown == folder || shown.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
            })
        };
        let texts = rows
            .into_iter()
            .filter(|(shown, _, _)| inside(shown))
            .filter_map(|(shown, root, path)| read_inside(Path::new(&root), &path).map(|text| (shown, text)));
        Ok(KnowledgeFiles::new(texts.collect()))
    }
}

/// The text of `path` below `root`, if that is where it really lies.
fn read_inside(root: &Path, path: &str) -> Option<String> {
    let real: PathBuf = root.join(path).canonicalize().ok()?;
    let root = root.canonicalize().ok()?;
    let data = real.metadata().ok()?;
    if !real.starts_with(&root) || !data.is_file() || data.len() > MOST_BYTES {
        return None;
    }
    let bytes = std::fs::read(&real).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
