//! Conversations in SQLite. An event is in the file before `append` returns, so a process that is killed loses nothing
//! that was shown. Events are kept as they were given; a small table beside them holds the words of finished turns in
//! lower case, which is what a search reads (streamed text comes in pieces that cut words).

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use serde_json::Value;

use super::ConversationSummary;
use super::error::StoreError;
use super::paths::private_file;

/// Each step brings the file from the version of its place to the next one. Steps that were released never change.
const STEPS: &[&str] = &[
    "
    CREATE TABLE conversations (
        id TEXT PRIMARY KEY,
        title TEXT NOT NULL,
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL,
        pinned INTEGER NOT NULL DEFAULT 0,
        deleted INTEGER NOT NULL DEFAULT 0,
        turns INTEGER NOT NULL DEFAULT 0,
        last_sequence INTEGER NOT NULL DEFAULT 0,
        turn_from INTEGER NOT NULL DEFAULT 0,
        indexed_to INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE events (
        conversation TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
        sequence INTEGER NOT NULL,
        at_ms INTEGER NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (conversation, sequence)
    ) STRICT;
    CREATE TABLE words (
        conversation TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
        folded TEXT NOT NULL
    ) STRICT;
    CREATE INDEX words_of_conversation ON words(conversation);
",
    "
    CREATE TABLE spending (
        at_ms INTEGER NOT NULL,
        conversation TEXT NOT NULL,
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        input INTEGER NOT NULL,
        cached INTEGER NOT NULL,
        output INTEGER NOT NULL,
        estimated INTEGER NOT NULL,
        cost_usd REAL
    ) STRICT;
    CREATE INDEX spending_in_time ON spending(at_ms);
    CREATE TABLE refused (
        endpoint TEXT NOT NULL,
        option TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        PRIMARY KEY (endpoint, option)
    ) STRICT;
",
];

const COLUMNS: &str = "id, title, created_ms, updated_ms, pinned, deleted, turns";
const ORDER: &str = "ORDER BY pinned DESC, updated_ms DESC, id";

/// How long a call waits for another process that writes, before it is an error.
const BUSY_LIMIT: Duration = Duration::from_secs(15);

/// An event as it was stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// Counts from 1 within a conversation.
    pub sequence: i64,
    /// Unix time in milliseconds.
    pub at_ms: i64,
    pub value: Value,
}

/// The history file. It can be shared between threads; every call blocks for the length of its SQL.
pub struct Conversations {
    connection: Mutex<Connection>,
}

impl Conversations {
    /// Opens the file, makes it when it is missing, and brings it to this version's format.
    ///
    /// # Errors
    /// When it cannot be opened, is no history, or was written by a newer version.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        // Made first with our rights: SQLite gives its side files the rights of the main one.
        private_file().open(path).map_err(|error| StoreError::file("open", path, error))?;
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_LIMIT)?;
        // SQLite does not wait by itself when several switch a new file to WAL at once, so we do.
        let deadline = Instant::now() + BUSY_LIMIT;
        loop {
            match prepare(&mut connection) {
                Err(StoreError::Database(error)) if is_busy(&error) && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                outcome => break outcome?,
            }
        }
        Ok(Self { connection: Mutex::new(connection) })
    }

    /// Adds an empty conversation.
    ///
    /// # Errors
    /// When the id exists, or the file cannot be written.
    pub fn create(&self, id: &str, title: &str) -> Result<(), StoreError> {
        let now = now_ms();
        let sql = "INSERT INTO conversations (id, title, created_ms, updated_ms) VALUES (?1, ?2, ?3, ?3)";
        self.connection().execute(sql, params![id, title, now])?;
        Ok(())
    }

    /// Stores one event and gives its place and time. When this returns the event survives the end of the process.
    ///
    /// # Errors
    /// When there is no such conversation, or the file cannot be written.
    pub fn append(&self, conversation: &str, value: &Value) -> Result<(i64, i64), StoreError> {
        let kind = value.get("event").and_then(Value::as_str).unwrap_or_default();
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let at_ms = now_ms();
        let sql = "UPDATE conversations SET last_sequence = last_sequence + 1, updated_ms = ?2, turns = turns + ?3,
                       turn_from = CASE ?3 WHEN 1 THEN last_sequence ELSE turn_from END
                   WHERE id = ?1 RETURNING last_sequence";
        let opens = i64::from(kind == "user_message");
        let sequence: Option<i64> =
            transaction.query_row(sql, params![conversation, at_ms, opens], |row| row.get(0)).optional()?;
        let sequence = sequence.ok_or_else(|| StoreError::NoConversation(conversation.to_owned()))?;
        let sql = "INSERT INTO events (conversation, sequence, at_ms, value) VALUES (?1, ?2, ?3, ?4)";
        transaction.prepare_cached(sql)?.execute(params![conversation, sequence, at_ms, value.to_string()])?;
        if kind == "finished" {
            fold(&transaction, conversation)?;
        }
        transaction.commit()?;
        Ok((sequence, at_ms))
    }

    /// All events of a conversation, oldest first.
    ///
    /// # Errors
    /// When there is no such conversation, or the file cannot be read.
    pub fn events(&self, conversation: &str) -> Result<Vec<StoredEvent>, StoreError> {
        let connection = self.connection();
        require(&connection, conversation)?;
        events_after(&connection, conversation, 0)
    }

    /// The conversation's line in the list.
    ///
    /// # Errors
    /// When there is no such conversation, or the file cannot be read.
    pub fn get(&self, id: &str) -> Result<ConversationSummary, StoreError> {
        require(&self.connection(), id)
    }

    /// Pinned ones first, then the latest first.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn list(&self, include_deleted: bool) -> Result<Vec<ConversationSummary>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM conversations WHERE deleted = 0 OR ?1 {ORDER}");
        let connection = self.connection();
        let mut statement = connection.prepare(&sql)?;
        let found = statement.query_map([include_deleted], summary)?.collect::<Result<_, _>>()?;
        Ok(found)
    }

    /// Conversations in whose title, messages or answers every word of `text` stands, in any case and also within
    /// other words. An empty text finds all. Deleted ones are left out.
    ///
    /// # Errors
    /// When the file cannot be read, or written (turns that were cut off are made searchable here).
    pub fn search(&self, text: &str) -> Result<Vec<ConversationSummary>, StoreError> {
        self.fold_the_rest()?;
        let wanted: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let mut found = self.list(false)?;
        let connection = self.connection();
        let sql = "SELECT EXISTS (SELECT 1 FROM words WHERE conversation = ?1 AND instr(folded, ?2) > 0)";
        let mut statement = connection.prepare(sql)?;
        let mut failure = None;
        found.retain(|conversation| {
            let title = conversation.title.to_lowercase();
            wanted.iter().all(|word| {
                title.contains(word)
                    || statement.query_row(params![conversation.id, word], |row| row.get(0)).unwrap_or_else(|error| {
                        failure = Some(error);
                        false
                    })
            })
        });
        failure.map_or(Ok(found), |error| Err(error.into()))
    }

    /// Gives a conversation another title.
    ///
    /// # Errors
    /// When there is no such conversation, or the file cannot be written.
    pub fn rename(&self, id: &str, title: &str) -> Result<(), StoreError> {
        self.set("title", id, &title)
    }

    /// Pins a conversation to the top of the list, or lets it go.
    ///
    /// # Errors
    /// As [`Conversations::rename`].
    pub fn pin(&self, id: &str, pinned: bool) -> Result<(), StoreError> {
        self.set("pinned", id, &pinned)
    }

    /// Marks a conversation as deleted; `restore` takes it back until `purge_deleted`.
    ///
    /// # Errors
    /// As [`Conversations::rename`].
    pub fn mark_deleted(&self, id: &str) -> Result<(), StoreError> {
        self.set("deleted", id, &true)
    }

    /// Takes a deletion back.
    ///
    /// # Errors
    /// As [`Conversations::rename`].
    pub fn restore(&self, id: &str) -> Result<(), StoreError> {
        self.set("deleted", id, &false)
    }

    /// Removes what is marked as deleted for good, and tells how many conversations that were.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn purge_deleted(&self) -> Result<usize, StoreError> {
        let connection = self.connection();
        // What a person deleted must not be left in free pages of the file.
        connection.pragma_update(None, "secure_delete", true)?;
        let purged = connection.execute("DELETE FROM conversations WHERE deleted = 1", [])?;
        if purged > 0 {
            // Nor in the write-ahead log; another process that reads just now only delays this.
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        }
        Ok(purged)
    }

    /// `column` is one of our own names, never text from outside.
    fn set(&self, column: &'static str, id: &str, value: &dyn rusqlite::ToSql) -> Result<(), StoreError> {
        let sql = format!("UPDATE conversations SET {column} = ?2 WHERE id = ?1");
        match self.connection().execute(&sql, params![id, value])? {
            0 => Err(StoreError::NoConversation(id.to_owned())),
            _ => Ok(()),
        }
    }

    /// Makes turns searchable that have not ended, or never will because the process was killed.
    fn fold_the_rest(&self) -> Result<(), StoreError> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let open: Vec<String> = {
            let mut statement =
                transaction.prepare("SELECT id FROM conversations WHERE indexed_to < last_sequence AND deleted = 0")?;
            statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?
        };
        for conversation in open {
            fold(&transaction, &conversation)?;
        }
        Ok(transaction.commit()?)
    }

    pub(super) fn connection(&self) -> MutexGuard<'_, Connection> {
        // A transaction that a panic left open was rolled back when it was dropped.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn prepare(connection: &mut Connection) -> Result<(), StoreError> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    migrate(connection)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    // Immediate, so that two processes that start together do not both take the same step.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let known = STEPS.len() as i64;
    let done = usize::try_from(found).ok().filter(|done| *done <= STEPS.len());
    let done = done.ok_or(StoreError::NewerHistory { found, known })?;
    for step in &STEPS[done..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    Ok(transaction.commit()?)
}

/// Puts the words of all events since the last time beside them, as one text for the person's and one for the answer's.
/// A turn that was folded while it ran is folded again as a whole: its pieces may have been cut within a word.
fn fold(transaction: &Transaction<'_>, conversation: &str) -> Result<(), StoreError> {
    let sql = "SELECT min(indexed_to, turn_from) FROM conversations WHERE id = ?1";
    let from: i64 = transaction.query_row(sql, [conversation], |row| row.get(0))?;
    let (mut asked, mut answered) = (String::new(), String::new());
    for event in events_after(transaction, conversation, from)? {
        let text = event.value.get("text").and_then(Value::as_str).unwrap_or_default();
        match event.value.get("event").and_then(Value::as_str).unwrap_or_default() {
            "user_message" => {
                asked.push_str(text);
                asked.push('\n');
            }
            "text_delta" => answered.push_str(text),
            "text_replaced" => answered = text.to_owned(),
            _ => {}
        }
    }
    for text in [asked, answered].iter().filter(|text| !text.trim().is_empty()) {
        let sql = "INSERT INTO words (conversation, folded) VALUES (?1, ?2)";
        transaction.execute(sql, params![conversation, text.to_lowercase()])?;
    }
    transaction.execute("UPDATE conversations SET indexed_to = last_sequence WHERE id = ?1", [conversation])?;
    Ok(())
}

fn events_after(connection: &Connection, conversation: &str, after: i64) -> Result<Vec<StoredEvent>, StoreError> {
    let sql = "SELECT sequence, at_ms, value FROM events WHERE conversation = ?1 AND sequence > ?2 ORDER BY sequence";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![conversation, after], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?))
    })?;
    let mut events = Vec::new();
    for row in rows {
        let (sequence, at_ms, text) = row?;
        events.push(StoredEvent { sequence, at_ms, value: serde_json::from_str(&text)? });
    }
    Ok(events)
}

fn require(connection: &Connection, id: &str) -> Result<ConversationSummary, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM conversations WHERE id = ?1");
    let found = connection.query_row(&sql, [id], summary).optional()?;
    found.ok_or_else(|| StoreError::NoConversation(id.to_owned()))
}

fn summary(row: &Row<'_>) -> rusqlite::Result<ConversationSummary> {
    Ok(ConversationSummary {
        id: row.get(0)?,
        title: row.get(1)?,
        created_ms: row.get(2)?,
        updated_ms: row.get(3)?,
        pinned: row.get(4)?,
        deleted: row.get(5)?,
        turns: row.get::<_, i64>(6)?.unsigned_abs(),
    })
}

pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
