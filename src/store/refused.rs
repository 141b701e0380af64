//! Options that models refused, kept for the next start: otherwise every start would pay for the same refusal again. They
//! are forgotten after a while, because providers learn as well.

use rusqlite::params;

use super::conversations::{Conversations, now_ms};
use super::error::StoreError;

const KEPT_MS: i64 = 30 * 24 * 3600 * 1000;

impl Conversations {
    /// What is still remembered: pairs of an endpoint's fingerprint and an option.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn refused(&self) -> Result<Vec<(String, String)>, StoreError> {
        let connection = self.connection();
        connection.execute("DELETE FROM refused WHERE at_ms < ?1", [now_ms() - KEPT_MS])?;
        let mut statement = connection.prepare("SELECT endpoint, option FROM refused ORDER BY endpoint, option")?;
        let pairs = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        Ok(pairs)
    }

    /// Remembers what is new; what was known keeps its day.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn remember_refused(&self, pairs: &[(String, String)]) -> Result<(), StoreError> {
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        for (endpoint, option) in pairs {
            let sql = "INSERT OR IGNORE INTO refused (endpoint, option, at_ms) VALUES (?1, ?2, ?3)";
            transaction.execute(sql, params![endpoint, option, now_ms()])?;
        }
        Ok(transaction.commit()?)
    }
}
