//! The tools beyond the old contract: status, properties of nodes, sample data, undo.
//!
//! They are made of what our helper can do inside Slicer. The status is the one that must answer whatever Slicer does:
//! it never waits behind a running call, and it tells "no server", "exec is off", "busy" and "a dialog is open" apart.

use std::time::Duration;

use serde_json::{Value, json};

use super::calls;
use super::tools::error_text;
use super::types::{
    LoadSampleArgs, LoadSampleReply, NodePropertiesArgs, NodePropertiesReply, StatusReply, UndoArgs, UndoReply,
};
use super::web_server::{WebServer, WebServerError};

/// Longest wait for the status.
const STATUS_LIMIT: Duration = Duration::from_secs(5);
/// A call that has run for less than this is waited for, so that the status is a fresh one.
const SHORT: Duration = Duration::from_millis(300);
/// Longest wait for sample data, which is downloaded.
const SAMPLE_LIMIT: Duration = Duration::from_secs(600);
/// Longest wait for an undo, which may copy a lot.
const UNDO_LIMIT: Duration = Duration::from_secs(120);

/// `get_status`. Never waits behind a call of ours.
pub async fn status(slicer: &WebServer) -> StatusReply {
    if let Some(busy) = slicer.busy_for().filter(|busy| *busy >= SHORT) {
        return busy_with_ours(slicer, busy);
    }
    let asked = calls::ask(slicer, "status", json!({}), Some(STATUS_LIMIT));
    match tokio::time::timeout(STATUS_LIMIT, asked).await {
        Ok(Ok(value)) => read_status(slicer, &value),
        Ok(Err(WebServerError::ExecOff)) => exec_off(slicer).await,
        Ok(Err(error @ (WebServerError::TimedOut { .. } | WebServerError::Swapped))) => StatusReply {
            running: true,
            busy: true,
            advice: Some(format!("{error} Look whether a dialog is open in Slicer.")),
            ..at(slicer)
        },
        Ok(Err(error)) => {
            let running = matches!(error, WebServerError::Server { .. });
            StatusReply { running, advice: Some(error.to_string()), ..at(slicer) }
        }
        Err(_) => busy_with_ours(slicer, slicer.busy_for().unwrap_or(STATUS_LIMIT)),
    }
}

fn at(slicer: &WebServer) -> StatusReply {
    StatusReply { url: slicer.url().to_owned(), ..StatusReply::default() }
}

fn busy_with_ours(slicer: &WebServer, busy: Duration) -> StatusReply {
    StatusReply {
        running: true,
        busy: true,
        busy_s: Some((busy.as_secs_f64() * 10.0).round() / 10.0),
        advice: Some("Slicer works on another call of this bridge. Wait for it, or cancel it.".to_owned()),
        ..at(slicer)
    }
}

fn read_status(slicer: &WebServer, value: &Value) -> StatusReply {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let modal_dialog = text("modal_dialog");
    let advice = modal_dialog
        .as_ref()
        .map(|title| format!("The dialog {title:?} waits for the person in Slicer. Answer it there; calls may hang."));
    StatusReply {
        running: true,
        exec: Some(true),
        busy: !value["running"].is_null(),
        advice,
        modal_dialog,
        main_window: value["main_window"].as_bool(),
        version: text("version"),
        practice: value["practice"].as_bool(),
        pid: value["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()),
        nodes: value["nodes"].as_u64(),
        scene_file: text("scene_file"),
        ..at(slicer)
    }
}

async fn exec_off(slicer: &WebServer) -> StatusReply {
    let version = slicer.version(Some(STATUS_LIMIT)).await.ok();
    StatusReply {
        running: true,
        exec: Some(false),
        version: version.and_then(|value| value["applicationVersion"].as_str().map(str::to_owned)),
        advice: Some(WebServerError::ExecOff.to_string()),
        ..at(slicer)
    }
}

/// `get_node_properties`.
///
/// # Errors
/// Only [`WebServerError::NotRunning`]; the rest is in the reply.
pub async fn node_properties(
    slicer: &WebServer,
    args: &NodePropertiesArgs,
) -> Result<NodePropertiesReply, WebServerError> {
    match calls::ask(slicer, "node_properties", json!({"ids": args.ids}), None).await {
        Ok(nodes) => Ok(NodePropertiesReply { nodes: Some(nodes), error: None }),
        Err(error @ WebServerError::NotRunning { .. }) => Err(error),
        Err(error) => Ok(properties_failed(error_text(&error))),
    }
}

/// The reply of `get_node_properties` when there are none.
pub fn properties_failed(error: String) -> NodePropertiesReply {
    NodePropertiesReply { nodes: None, error: Some(error) }
}

/// `load_sample_data`.
///
/// # Errors
/// Only [`WebServerError::NotRunning`]; the rest is in the reply.
pub async fn load_sample(slicer: &WebServer, args: &LoadSampleArgs) -> Result<LoadSampleReply, WebServerError> {
    let asked = calls::ask(slicer, "load_sample", json!({"name": args.name}), Some(SAMPLE_LIMIT)).await;
    let value = match asked {
        Ok(value) => value,
        Err(error @ WebServerError::NotRunning { .. }) => return Err(error),
        Err(error) => return Ok(sample_failed(error_text(&error))),
    };
    let known = || serde_json::from_value(value["known"].clone()).ok();
    Ok(match &value["loaded"] {
        Value::Null => LoadSampleReply {
            error: Some(format!("There is no sample data named {:?}. The names that there are follow.", args.name)),
            known: known(),
            loaded: None,
        },
        Value::Array(nodes) if nodes.is_empty() => LoadSampleReply {
            error: Some(
                "The sample data brought no nodes into the scene; perhaps it could not be downloaded.".to_owned(),
            ),
            known: known(),
            loaded: None,
        },
        loaded => LoadSampleReply { loaded: Some(loaded.clone()), ..LoadSampleReply::default() },
    })
}

/// The reply of `load_sample_data` when it failed.
pub fn sample_failed(error: String) -> LoadSampleReply {
    LoadSampleReply { error: Some(error), ..LoadSampleReply::default() }
}

/// `undo_last_run`.
///
/// # Errors
/// Only [`WebServerError::NotRunning`]; the rest is in the reply.
pub async fn undo(slicer: &WebServer, args: &UndoArgs) -> Result<UndoReply, WebServerError> {
    let fields = json!({"include_later": args.include_later.unwrap_or_default()});
    match calls::ask(slicer, "undo_last", fields, Some(UNDO_LIMIT)).await {
        Ok(value) => Ok(read_undo(&value)),
        Err(error @ WebServerError::NotRunning { .. }) => Err(error),
        Err(error) => Ok(undo_failed(error_text(&error))),
    }
}

/// The reply of `undo_last_run` when nothing is known to have been put back.
pub fn undo_failed(message: String) -> UndoReply {
    UndoReply { message, ..UndoReply::default() }
}

fn read_undo(value: &Value) -> UndoReply {
    let later = value["later"].as_u64().unwrap_or_default();
    if value["undone"] != true {
        return undo_failed(match value["why"].as_str() {
            Some("later") => format!(
                "Nothing was undone: {later} later run(s) have no checkpoint of this bridge, and what they changed would \
                 be lost as well. Call again with include_later to go back to before the last run that has one."
            ),
            _ => "Nothing was undone: no run that can be undone is known. Code can be undone when it was run with \
                  undoable, as long as Slicer is not restarted."
                .to_owned(),
        });
    }
    let missing: Vec<String> = serde_json::from_value(value["missing"].clone()).unwrap_or_default();
    let success = value["complete"] == true && missing.is_empty();
    let message = if success {
        "The scene is as it was before the run; every part was compared.".to_owned()
    } else {
        "The scene was put back, but not all of it; what is missing is listed.".to_owned()
    };
    UndoReply { success, message, missing, changes: Some(value["changes"].clone()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undo_never_claims_more_than_was_proved() {
        assert!(read_undo(&json!({"undone": true, "complete": true, "missing": [], "changes": {}})).success);
        let part = read_undo(&json!({"undone": true, "complete": false, "missing": ["Skull: content"]}));
        assert!(!part.success && part.missing == ["Skull: content"], "{part:?}");
        for nothing in [json!({"undone": false, "why": "nothing"}), json!({}), json!(null)] {
            let reply = read_undo(&nothing);
            assert!(!reply.success && reply.message.starts_with("Nothing was undone"), "{reply:?}");
        }
        let later = read_undo(&json!({"undone": false, "why": "later", "later": 2}));
        assert!(later.message.contains("2 later") && later.message.contains("include_later"), "{later:?}");
    }
}
