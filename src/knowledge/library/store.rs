//! The index file `knowledge.db`: sources, fingerprints of files, passages, their words, and controls.
//!
//! One SQLite file, so that it can be copied or thrown away. Everything a refresh changes is one transaction: whoever
//! kills it keeps the old index, and whoever reads meanwhile sees the old one.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use crate::knowledge::index::KnowledgeError;

/// Changes whenever files must be cut or read anew: an index of another version is made from nothing.
pub const VERSION: i64 = 2;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS source (id INTEGER PRIMARY KEY, root TEXT NOT NULL UNIQUE, prefix TEXT NOT NULL, kind TEXT);
CREATE TABLE IF NOT EXISTS file (id INTEGER PRIMARY KEY, source INTEGER NOT NULL REFERENCES source (id), path TEXT NOT NULL,
    shown TEXT NOT NULL, kind TEXT NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL, hash BLOB NOT NULL, facts TEXT,
    UNIQUE (source, path));
CREATE INDEX IF NOT EXISTS file_shown ON file (shown);
CREATE TABLE IF NOT EXISTS chunk (id INTEGER PRIMARY KEY AUTOINCREMENT, file INTEGER NOT NULL REFERENCES file (id),
    kind TEXT NOT NULL, language TEXT NOT NULL, name TEXT NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL,
    text TEXT NOT NULL, declares TEXT NOT NULL, hash BLOB NOT NULL, words BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS chunk_file ON chunk (file);
CREATE TABLE IF NOT EXISTS term (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS lent (chunk INTEGER PRIMARY KEY, words BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS control (id INTEGER PRIMARY KEY, shown TEXT NOT NULL, line INTEGER NOT NULL, object TEXT NOT NULL,
    class TEXT NOT NULL, label TEXT NOT NULL, tooltip TEXT NOT NULL, grouped TEXT NOT NULL, signal TEXT NOT NULL,
    handler TEXT NOT NULL, calls TEXT NOT NULL);
";

/// What can be made anew from the sources. The list of sources itself stays, whatever the version.
const DERIVED: [&str; 5] = ["control", "lent", "chunk", "file", "term"];

/// Opens the index file and brings its tables to this version.
///
/// # Errors
/// When the file cannot be opened, or is no index.
pub fn open(file: &Path) -> Result<Connection, KnowledgeError> {
    prepare(Connection::open(file)?)
}

/// An index that is gone with the connection.
///
/// # Errors
/// When SQLite fails.
pub fn in_memory() -> Result<Connection, KnowledgeError> {
    prepare(Connection::open_in_memory()?)
}

fn prepare(mut connection: Connection) -> Result<Connection, KnowledgeError> {
    connection.busy_timeout(Duration::from_secs(20))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version != VERSION {
        let transaction = connection.transaction()?;
        for table in DERIVED {
            transaction.execute_batch(&format!("DROP TABLE IF EXISTS {table}"))?;
        }
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()?;
    }
    Ok(connection)
}

/// Empties the index, its sources kept: all files are read anew.
///
/// # Errors
/// When SQLite fails.
pub fn forget_files(connection: &Connection) -> Result<(), KnowledgeError> {
    for table in DERIVED {
        connection.execute(&format!("DELETE FROM {table}"), [])?;
    }
    Ok(())
}

/// The numbers of all words; new words get the next number.
pub struct Terms {
    known: HashMap<String, u32>,
    fresh: Vec<(String, u32)>,
    next: u32,
}

impl Terms {
    /// Reads the words.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn read(connection: &Connection) -> Result<Self, KnowledgeError> {
        let mut statement = connection.prepare("SELECT text, id FROM term")?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, u32>(1)?)))?;
        let known = rows.collect::<Result<HashMap<_, _>, _>>()?;
        let next = known.values().max().map_or(1, |most| most + 1);
        Ok(Self { known, fresh: Vec::new(), next })
    }

    /// The number of a word.
    pub fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.known.get(word) {
            return *number;
        }
        let number = self.next;
        self.next += 1;
        self.known.insert(word.to_owned(), number);
        self.fresh.push((word.to_owned(), number));
        number
    }

    /// Writes the words that were not there.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn write(&mut self, connection: &Connection) -> Result<(), KnowledgeError> {
        let mut statement = connection.prepare("INSERT OR IGNORE INTO term (text, id) VALUES (?1, ?2)")?;
        for (word, number) in self.fresh.drain(..) {
            statement.execute((word, number))?;
        }
        Ok(())
    }

    /// The words with their numbers.
    pub fn into_known(self) -> HashMap<String, u32> {
        self.known
    }
}
