//! Slicer with our helper in it: what the tools that run Python are made of.
//!
//! A client's code travels as a JSON literal to the helper, which runs it as Slicer's exec route would and gives the
//! call's id back with the result. So a reply that belongs to another request is noticed, code whose caller gave up is
//! stopped, and no encoding declaration can make Slicer run something else than what was read. A server that answers
//! without the helper (a stand-in, another version of the route) is taken at its word.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::helper::{self, ExchangeError, Execute, Helper};
use super::web_server::{Patience, WebServer, WebServerError};

/// How much longer than its own limit code may take to say that it was stopped.
const GRACE: Duration = Duration::from_millis(500);
/// Longest wait for what the helper does itself, unless a call says otherwise.
const HELPER_LIMIT: Duration = Duration::from_secs(30);

/// How a piece of code is run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunOptions {
    /// After this the code is stopped; `None` lets it run, and the wait ends with the server's time-out.
    pub limit: Option<Duration>,
    /// Whether what it prints and what VTK says is wanted.
    pub capture: bool,
    /// Whether a checkpoint is made before.
    pub undoable: bool,
}

/// What came of a piece of code that Slicer has run, or tried to.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// What it left in `__execResult`, or what it raised, in Slicer's words.
    pub outcome: Result<Value, String>,
    /// What it printed and the like, when that was wanted.
    pub report: Option<Value>,
    /// What changed in the scene, when a checkpoint was made.
    pub changes: Option<Value>,
}

#[derive(Deserialize)]
struct Envelope {
    call: String,
    ok: bool,
    #[serde(default)]
    value: Value,
    #[serde(default)]
    message: String,
    report: Option<Value>,
    changes: Option<Value>,
}

/// Runs a client's code.
///
/// # Errors
/// Any [`WebServerError`]; what the code raised is in the outcome.
pub async fn run(slicer: &WebServer, code: &str, options: &RunOptions) -> Result<Ran, WebServerError> {
    if code.is_empty() {
        return Err(WebServerError::NoCode);
    }
    let helper = Helper::embedded().map_err(|message| WebServerError::Server { message })?;
    let id = uuid::Uuid::new_v4().simple().to_string();
    let stop_file = stop_file(&id);
    let request = json!({
        "call": id,
        "code": code,
        "limit_s": options.limit.map(|limit| limit.as_secs_f64()),
        "stop": stop_file.to_string_lossy(),
        "capture": options.capture,
        "undoable": options.undoable,
    });
    let line = helper.execute(&request);
    let patience = Patience {
        timeout: options.limit.map(|limit| limit + GRACE),
        stop_file: Some(stop_file),
        stop_at_timeout: options.limit.is_some(),
    };
    let mut answer = exec(slicer, &line, &patience, options).await?;
    if helper::is_missing(&answer) {
        install(slicer, helper).await?;
        answer = exec(slicer, &line, &patience, options).await?;
        if helper::is_missing(&answer) {
            return Err(lost(ExchangeError::Install("it is not there although its installation succeeded".to_owned())));
        }
    }
    read(answer, &id)
}

async fn exec(
    slicer: &WebServer,
    line: &str,
    patience: &Patience,
    options: &RunOptions,
) -> Result<Value, WebServerError> {
    slicer.exec_with(line, patience.clone()).await.map_err(|error| match (error, options.limit) {
        // The caller knows the limit that it gave, not what we allow on top.
        (WebServerError::TimedOut { .. }, Some(after)) => WebServerError::TimedOut { after },
        (error, _) => error,
    })
}

fn stop_file(id: &str) -> PathBuf {
    std::env::temp_dir().join(format!("slicer-ai-agent-stop-{id}"))
}

async fn install(slicer: &WebServer, helper: &Helper) -> Result<(), WebServerError> {
    helper::install(&Direct { slicer, limit: HELPER_LIMIT }, helper).await.map_err(lost)
}

/// The answer to the call with this id.
fn read(answer: Value, id: &str) -> Result<Ran, WebServerError> {
    let ours = answer.get("call").is_some_and(Value::is_string) && answer.get("ok").is_some_and(Value::is_boolean);
    if !ours {
        return Ok(Ran { outcome: Ok(answer), report: None, changes: None });
    }
    let envelope: Envelope = serde_json::from_value(answer).map_err(|_| WebServerError::Swapped)?;
    if envelope.call != id {
        return Err(WebServerError::Swapped);
    }
    let outcome = if envelope.ok { Ok(envelope.value) } else { Err(envelope.message) };
    Ok(Ran { outcome, report: envelope.report, changes: envelope.changes })
}

/// Asks the helper for something that it does itself.
///
/// # Errors
/// Any [`WebServerError`]; a failure of the helper is [`WebServerError::Server`].
pub async fn ask(
    slicer: &WebServer,
    action: &str,
    fields: Value,
    limit: Option<Duration>,
) -> Result<Value, WebServerError> {
    let direct = Direct { slicer, limit: limit.unwrap_or(HELPER_LIMIT) };
    helper::exchange(&direct, action, fields).await.map_err(lost)
}

fn lost(error: ExchangeError<WebServerError>) -> WebServerError {
    match error {
        ExchangeError::Execute(error) => error,
        ExchangeError::Install(why) => {
            WebServerError::Server { message: format!("our helper could not be installed in Slicer ({why})") }
        }
        ExchangeError::Helper { kind, message } if kind == "Busy" => {
            WebServerError::Server { message: format!("Slicer is busy: {message}") }
        }
        ExchangeError::Helper { kind, message } => WebServerError::Server { message: format!("{kind}: {message}") },
        ExchangeError::Mixed => WebServerError::Swapped,
    }
}

/// Python goes straight to Slicer.
struct Direct<'a> {
    slicer: &'a WebServer,
    limit: Duration,
}

impl Execute for Direct<'_> {
    type Error = WebServerError;

    async fn run(&self, code: &str) -> Result<Value, WebServerError> {
        self.slicer.exec(code, Some(self.limit)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_only_by_the_call_it_belongs_to() {
        let ran = read(json!({"call": "a", "ok": true, "value": [1]}), "a").unwrap();
        assert_eq!(ran.outcome, Ok(json!([1])));
        let failed = read(json!({"call": "a", "ok": false, "message": "bad"}), "a").unwrap();
        assert_eq!(failed.outcome, Err("bad".to_owned()));
        let other = read(json!({"call": "b", "ok": true, "value": [1]}), "a");
        assert!(matches!(other, Err(WebServerError::Swapped)), "{other:?}");
    }

    /// A stand-in for Slicer, or a client that uses the route directly, sends results that are no envelopes.
    #[test]
    fn a_bare_result_is_taken_at_its_word() {
        for bare in [json!(3), json!({}), json!(null), json!({"call": 1}), json!({"ok": true}), json!("text")] {
            assert_eq!(read(bare.clone(), "a").unwrap().outcome, Ok(bare));
        }
    }
}
