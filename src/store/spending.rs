//! What model calls cost, one row a call. It lies apart from the conversations: one that is deleted was paid for all the
//! same, and the sum of a month must not change by it. No text is kept here.

use rusqlite::params;
use serde::{Deserialize, Serialize};

use super::conversations::{Conversations, now_ms};
use super::error::StoreError;

/// One model call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SpentCall {
    pub provider: String,
    pub model: String,
    pub input: u64,
    pub cached: u64,
    pub output: u64,
    /// True when the tokens are our estimate.
    pub estimated: bool,
    /// US dollars; `None` when the price is not known.
    pub cost_usd: Option<f64>,
}

/// The sum of several calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SpendingTotal {
    pub calls: u64,
    pub input: u64,
    pub cached: u64,
    pub output: u64,
    /// US dollars of the calls whose price is known.
    pub cost_usd: f64,
    /// Calls whose price is not known; they are not in the sum.
    pub unknown: u64,
    /// True when tokens of some call were an estimate.
    pub estimated: bool,
}

impl Conversations {
    /// Books a call.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn spend(&self, conversation: &str, call: &SpentCall) -> Result<(), StoreError> {
        let sql =
            "INSERT INTO spending (at_ms, conversation, provider, model, input, cached, output, estimated, cost_usd)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        let (input, cached, output) = (count(call.input), count(call.cached), count(call.output));
        let (provider, model, cost) = (&call.provider, &call.model, call.cost_usd);
        let row = params![now_ms(), conversation, provider, model, input, cached, output, call.estimated, cost];
        self.connection().execute(sql, row)?;
        Ok(())
    }

    /// The sum since a moment (Unix time in milliseconds), of one conversation or of all.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn spent(&self, since_ms: i64, conversation: Option<&str>) -> Result<SpendingTotal, StoreError> {
        let sql = "SELECT count(*), total(input), total(cached), total(output), total(cost_usd),
                          count(*) - count(cost_usd), coalesce(max(estimated), 0)
                   FROM spending WHERE at_ms >= ?1 AND (?2 IS NULL OR conversation = ?2)";
        let total = self.connection().query_row(sql, params![since_ms, conversation], |row| {
            Ok(SpendingTotal {
                calls: row.get::<_, i64>(0)?.unsigned_abs(),
                input: row.get::<_, f64>(1)? as u64,
                cached: row.get::<_, f64>(2)? as u64,
                output: row.get::<_, f64>(3)? as u64,
                cost_usd: row.get(4)?,
                unknown: row.get::<_, i64>(5)?.unsigned_abs(),
                estimated: row.get(6)?,
            })
        })?;
        Ok(total)
    }
}

/// The first moment of the current month (UTC), as Unix time in milliseconds.
pub fn month_start_ms() -> i64 {
    let now = time::OffsetDateTime::now_utc();
    let start = now.replace_day(1).unwrap_or(now).replace_time(time::Time::MIDNIGHT);
    start.unix_timestamp() * 1000
}
