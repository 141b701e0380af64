//! What the tools are, and the two oldest ones: listing nodes and running Python.
//!
//! The definitions (name, text, schemas, hints) are made here from the types of the contract and nowhere else. Failures
//! of all tools but the picture travel inside their replies (`error`, `success: false`) and not as MCP errors, because that
//! is what clients of Slicer servers read; the text says what to do.

use std::sync::Arc;
use std::time::Duration;

use rmcp::handler::server::tool::{schema_for_input, schema_for_output};
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::calls::{self, RunOptions};
use super::types::{
    CAPTURE_SCREENSHOT, CaptureArgs, CaptureReply, EXECUTE_PYTHON_CODE, ExecuteArgs, ExecuteReply, GET_NODE_PROPERTIES,
    GET_STATUS, LIST_NODES, LOAD_SAMPLE_DATA, ListNodesArgs, ListNodesReply, LoadSampleArgs, LoadSampleReply, NoArgs,
    NodePropertiesArgs, NodePropertiesReply, StatusReply, UNDO_LAST_RUN, UndoArgs, UndoReply,
};
use super::web_server::{NodeFilter, NodeListing, WebServer, WebServerError};

/// Largest reply in bytes, as it travels (text and structured content together).
///
/// MCP over stdio is one line a message. Clients of the Python and TypeScript kits take lines of any length; others drop
/// what is longer than they like, after which their caller waits for ever. So there is an end, far above what anybody
/// can want to read; a larger result is answered with what to do instead.
const MAX_REPLY: usize = 128 << 20;

/// The definitions of all tools; without those that change something when `read_only`.
///
/// # Errors
/// A text when a schema could not be made, which is a mistake in the types.
pub fn definitions(read_only: bool) -> Result<Vec<Tool>, String> {
    let mut tools = vec![
        tool::<ListNodesArgs, ListNodesReply>(
            LIST_NODES,
            "List nodes",
            "Lists the nodes of 3D Slicer's MRML scene: their names, their ids, or all their properties. Filter by \
             class, exact name or id; an unfiltered list also holds Slicer's own hidden nodes.",
            reads(),
        )?,
        tool::<ExecuteArgs, ExecuteReply>(
            EXECUTE_PYTHON_CODE,
            "Run Python in Slicer",
            "Runs Python code inside 3D Slicer, with `slicer`, `vtk` and `qt` at hand. Set the variable __execResult \
             to a value that JSON can hold to get it back; printed text comes back only with capture. Names stay \
             defined between calls. Set undoable for code that changes the scene: undo_last_run can then take it back.",
            changes().destructive(true).open_world(true),
        )?,
        tool::<CaptureArgs, CaptureReply>(
            CAPTURE_SCREENSHOT,
            "Take a screenshot",
            "Takes a picture of 3D Slicer as it is on the screen: the main window, one slice view or one 3D view. A \
             slice offset, a slice orientation or a side to look from is used for the picture only.",
            reads(),
        )?,
        tool::<NoArgs, StatusReply>(
            GET_STATUS,
            "Slicer's status",
            "Says whether 3D Slicer is there, its version, whether it takes code, whether it is busy and since when, \
             whether a dialog waits for the person, and what to do if something is in the way. Answers at once while \
             another call runs.",
            reads(),
        )?,
        tool::<NodePropertiesArgs, NodePropertiesReply>(
            GET_NODE_PROPERTIES,
            "Properties of nodes",
            "Gives what is known of some nodes of the scene by their ids: name, class, content in a few facts, \
             attributes, references, place in the subject hierarchy, control points, and what the node prints.",
            reads(),
        )?,
        tool::<LoadSampleArgs, LoadSampleReply>(
            LOAD_SAMPLE_DATA,
            "Load sample data",
            "Downloads one of 3D Slicer's sample data sets and loads it into the scene. undo_last_run takes it back.",
            changes().destructive(false).open_world(true),
        )?,
        tool::<UndoArgs, UndoReply>(
            UNDO_LAST_RUN,
            "Undo the last run",
            "Puts the scene back as it was before the last execute_python_code with undoable, or the last \
             load_sample_data, and proves it by comparing. Says so when code ran later that has no checkpoint.",
            changes().destructive(true).open_world(false),
        )?,
    ];
    if read_only {
        tools.retain(|tool| tool.annotations.as_ref().is_some_and(|hints| hints.read_only_hint == Some(true)));
    }
    Ok(tools)
}

fn tool<Arguments: JsonSchema + 'static, Reply: JsonSchema + 'static>(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    hints: ToolAnnotations,
) -> Result<Tool, String> {
    Ok(Tool::new(name, description, tidy(schema_for_input::<Arguments>()?))
        .with_title(title)
        .with_raw_output_schema(tidy(schema_for_output::<Reply>()))
        .with_annotations(hints))
}

/// Hints of a tool that changes nothing.
fn reads() -> ToolAnnotations {
    ToolAnnotations::new().read_only(true).idempotent(true).open_world(false)
}

/// Hints of a tool that changes something.
fn changes() -> ToolAnnotations {
    ToolAnnotations::new().read_only(false).idempotent(false)
}

/// A schema without what only Rust means by it (number formats) and without the line breaks of the source.
fn tidy(schema: Arc<JsonObject>) -> Arc<JsonObject> {
    let mut schema = Arc::unwrap_or_clone(schema);
    // Some clients refuse an object without properties.
    let properties = schema.entry("properties").or_insert_with(|| json!({})).as_object_mut();
    for property in properties.into_iter().flat_map(|all| all.values_mut()) {
        if let Some(property) = property.as_object_mut() {
            property.shift_remove("format");
            if let Some(Value::String(text)) = property.get_mut("description") {
                *text = text.replace('\n', " ");
            }
        }
    }
    Arc::new(schema)
}

/// The arguments of a call, or the text that says what is wrong with them.
///
/// # Errors
/// A sentence for the caller.
pub fn arguments<T: serde::de::DeserializeOwned>(tool: &str, given: Option<JsonObject>) -> Result<T, String> {
    serde_json::from_value(Value::Object(given.unwrap_or_default()))
        .map_err(|error| format!("The arguments of {tool} do not fit: {error}."))
}

/// `list_nodes`.
///
/// # Errors
/// Only [`WebServerError::NotRunning`], so that the caller may wait for Slicer; the rest is in the reply.
pub async fn list_nodes(slicer: &WebServer, args: &ListNodesArgs) -> Result<ListNodesReply, WebServerError> {
    let listing = match args.filter_type.as_str() {
        "names" => NodeListing::Names,
        "ids" => NodeListing::Ids,
        "properties" => NodeListing::Properties,
        _ => return Ok(listing_failed("Invalid filter_type specified".to_owned())),
    };
    let filter = NodeFilter {
        class_name: given(args.class_name.as_ref()),
        name: given(args.name.as_ref()),
        id: given(args.id.as_ref()),
    };
    match slicer.nodes(listing, &filter).await {
        Ok(nodes) => Ok(ListNodesReply { nodes: Some(nodes), error: None }),
        Err(error @ WebServerError::NotRunning { .. }) => Err(error),
        Err(error) => Ok(listing_failed(error_text(&error))),
    }
}

/// Some clients send an empty text for an argument that they leave out.
fn given(value: Option<&String>) -> Option<String> {
    value.filter(|value| !value.is_empty()).cloned()
}

/// The reply of `list_nodes` when there is no list.
pub fn listing_failed(error: String) -> ListNodesReply {
    ListNodesReply { nodes: None, error: Some(error) }
}

/// `execute_python_code`.
///
/// # Errors
/// Only [`WebServerError::NotRunning`], so that the caller may wait for Slicer; the rest is in the reply.
pub async fn execute(slicer: &WebServer, args: &ExecuteArgs) -> Result<ExecuteReply, WebServerError> {
    let timeout = match args.timeout_s.map(Duration::try_from_secs_f64) {
        None => None,
        Some(Ok(timeout)) if !timeout.is_zero() => Some(timeout),
        Some(_) => {
            return Ok(execution_failed("timeout_s must be a number of seconds above 0.".to_owned()));
        }
    };
    let options = RunOptions {
        limit: timeout,
        capture: args.capture.unwrap_or_default(),
        undoable: args.undoable.unwrap_or_default(),
    };
    match calls::run(slicer, &args.code, &options).await {
        Ok(ran) => Ok(ExecuteReply { report: ran.report, changes: ran.changes, ..executed(ran.outcome) }),
        Err(error @ WebServerError::NotRunning { .. }) => Err(error),
        Err(error) => Ok(execution_failed(error_text(&error))),
    }
}

/// The reply to code that Slicer has run.
///
/// A result with a false `success` is code that reports its own failure, in the shape that clients know, and is passed
/// on as one. Its `message` alone stands for it only when nothing else of it is lost.
fn executed(outcome: Result<Value, String>) -> ExecuteReply {
    let mut value = match outcome {
        Ok(value) => value,
        Err(message) => return execution_failed(format!("Server error: {message}")),
    };
    // Code that wraps its result once more means what is inside.
    if let Value::Object(fields) = &mut value
        && fields.len() == 1
        && let Some(inner) = fields.shift_remove("__execResult")
    {
        return ExecuteReply { success: true, message: inner, ..ExecuteReply::default() };
    }
    let failed = value.get("success").is_some_and(is_false);
    let nothing_else = value.as_object().is_some_and(|fields| fields.len() == 2);
    match value.get("message") {
        Some(message) if failed && nothing_else => ExecuteReply { message: message.clone(), ..ExecuteReply::default() },
        _ => ExecuteReply { success: !failed, message: value, ..ExecuteReply::default() },
    }
}

/// What Python takes for false.
fn is_false(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// The reply of `execute_python_code` when the code did not run to its end.
pub fn execution_failed(message: String) -> ExecuteReply {
    ExecuteReply { success: false, message: Value::String(message), ..ExecuteReply::default() }
}

/// The text of a failure, with the beginning that clients know it by.
pub fn error_text(error: &WebServerError) -> String {
    match error {
        WebServerError::Server { message } => message.clone(),
        WebServerError::ExecOff => format!("Server error: {error}"),
        WebServerError::Http { status } => format!("HTTP Error {status}: {error}"),
        // Slicer's own answer to an empty request is a 404.
        WebServerError::NoCode => format!("HTTP Error 404: {error}"),
        WebServerError::BadJson { .. } | WebServerError::NotSlicer { .. } => {
            format!("Invalid JSON response: {error}")
        }
        WebServerError::BadUrl { .. }
        | WebServerError::NotRunning { .. }
        | WebServerError::Unreachable { .. }
        | WebServerError::Ended
        | WebServerError::TimedOut { .. }
        | WebServerError::Swapped => format!("Connection error: {error}"),
    }
}

/// A reply as the tool's result: as JSON text for old clients and as structured content.
///
/// `too_large` makes the reply that is sent instead when this one is larger than a message may be.
///
/// # Errors
/// The error of `serde_json`; the types here cannot cause one.
pub fn result<T: Serialize>(
    reply: &T,
    too_large: impl FnOnce(String) -> T,
) -> Result<CallToolResult, serde_json::Error> {
    bounded(reply, MAX_REPLY, too_large)
}

fn bounded<T: Serialize>(
    reply: &T,
    limit: usize,
    too_large: impl FnOnce(String) -> T,
) -> Result<CallToolResult, serde_json::Error> {
    let value = serde_json::to_value(reply)?;
    let text = value.to_string();
    // The text is a string inside the message, so its quotation marks count twice.
    let size = text.len() + text.len() + text.bytes().filter(|b| matches!(b, b'"' | b'\\')).count();
    if size <= limit {
        return Ok(CallToolResult::structured(value));
    }
    let advice = format!(
        "The result is too large to be sent ({:.1} MB). Ask for less, or let code in Slicer write it to a file and \
         return the path.",
        text.len() as f64 / 1e6
    );
    Ok(CallToolResult::structured(json!(too_large(advice))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients check tool definitions strictly: a root that is no object, or a property described by a bare `true`,
    /// makes some of them refuse the whole list.
    #[test]
    fn every_schema_is_an_object_of_described_objects() {
        for tool in definitions(false).unwrap() {
            for schema in [&tool.input_schema, tool.output_schema.as_ref().unwrap()] {
                assert_eq!(schema["type"], "object", "{}", tool.name);
                for (name, property) in schema["properties"].as_object().unwrap() {
                    let described = property.get("description").and_then(Value::as_str);
                    assert_eq!(property.get("format"), None, "{} {name}", tool.name);
                    assert!(
                        described.is_some_and(|text| !text.is_empty() && !text.contains('\n')),
                        "{} {name}",
                        tool.name
                    );
                }
            }
        }
    }

    /// A client that asks before it lets something change relies on the hints, and `--read-only` does, too.
    #[test]
    fn the_tools_that_change_something_say_so() {
        let writing: Vec<_> = definitions(false)
            .unwrap()
            .into_iter()
            .filter(|tool| tool.annotations.as_ref().unwrap().read_only_hint != Some(true))
            .map(|tool| tool.name)
            .collect();
        assert_eq!(writing, [EXECUTE_PYTHON_CODE, LOAD_SAMPLE_DATA, UNDO_LAST_RUN]);
        assert!(definitions(true).unwrap().iter().all(|tool| !writing.contains(&tool.name)));
    }

    /// What clients of older servers read, and what must not be lost on the way.
    #[test]
    fn code_that_reports_its_own_failure_fails() {
        for (result, success, message) in [
            (json!({"success": false, "message": "no volume"}), false, json!("no volume")),
            (json!({"success": 0, "message": null}), false, json!(null)),
            (json!({"success": false, "why": "x"}), false, json!({"success": false, "why": "x"})),
            (
                json!({"success": false, "message": "a", "n": 1}),
                false,
                json!({"success": false, "message": "a", "n": 1}),
            ),
            (json!({"success": true, "message": "ok"}), true, json!({"success": true, "message": "ok"})),
            (json!([false]), true, json!([false])),
            (json!({"__execResult": 5}), true, json!(5)),
            (json!({"__execResult": 5, "n": 1}), true, json!({"__execResult": 5, "n": 1})),
        ] {
            let reply = executed(Ok(result));
            assert_eq!((reply.success, reply.message), (success, message));
        }
    }

    #[test]
    fn required_and_optional_arguments_are_those_of_the_contract() {
        let tools = definitions(false).unwrap();
        let required = |name: &str| {
            let tool = tools.iter().find(|tool| tool.name == name).unwrap();
            tool.input_schema.get("required").cloned()
        };
        assert_eq!(required(LIST_NODES), None);
        assert_eq!(required(EXECUTE_PYTHON_CODE), Some(json!(["code"])));
        assert_eq!(required(CAPTURE_SCREENSHOT), None);
    }

    #[test]
    fn a_result_that_no_client_would_read_is_replaced_by_advice() {
        let reply = executed(Ok(Value::String("x".repeat(8_000_000))));
        let sent = bounded(&reply, 15_000_000, execution_failed).unwrap();
        let value = sent.structured_content.unwrap();
        assert_eq!(value["success"], false);
        assert!(value["message"].as_str().unwrap().contains("8.0 MB"), "{value}");
    }
}
