//! What the tools are, and the two plain ones: listing nodes and running Python.
//!
//! The definitions (name, text, schemas, hints) are made here from the types of the contract and nowhere else. Failures
//! of the two plain tools travel inside their replies (`error`, `success: false`) and not as MCP errors, because that
//! is what clients of Slicer servers read; the text says what to do.

use std::sync::Arc;
use std::time::Duration;

use rmcp::handler::server::tool::{schema_for_input, schema_for_output};
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use serde::Serialize;
use serde_json::{Value, json};

use super::types::{
    CAPTURE_SCREENSHOT, CaptureArgs, CaptureReply, EXECUTE_PYTHON_CODE, ExecuteArgs, ExecuteReply, LIST_NODES,
    ListNodesArgs, ListNodesReply,
};
use super::web_server::{NodeFilter, NodeListing, WebServer, WebServerError};

/// Largest reply in bytes, as it travels (text and structured content together).
///
/// MCP over stdio is one line a message, and clients bound their lines (16 MiB is common) by dropping what is longer,
/// after which the caller waits for ever. So a larger result is answered with what to do instead.
const MAX_REPLY: usize = 15 << 20;

/// The definitions of all tools; without the one that runs code when `read_only`.
///
/// # Errors
/// A text when a schema could not be made, which is a mistake in the types.
pub fn definitions(read_only: bool) -> Result<Vec<Tool>, String> {
    let mut tools = vec![
        Tool::new(
            LIST_NODES,
            "Lists the nodes of 3D Slicer's MRML scene: their names, their ids, or all their properties. Filter by \
             class, exact name or id; an unfiltered list also holds Slicer's own hidden nodes.",
            tidy(schema_for_input::<ListNodesArgs>()?),
        )
        .with_title("List nodes")
        .with_raw_output_schema(tidy(schema_for_output::<ListNodesReply>()))
        .with_annotations(hints().read_only(true)),
        Tool::new(
            CAPTURE_SCREENSHOT,
            "Takes a picture of 3D Slicer as it is on the screen: the main window, one slice view or one 3D view. A \
             slice offset, a slice orientation or a side to look from is used for the picture only.",
            tidy(schema_for_input::<CaptureArgs>()?),
        )
        .with_title("Take a screenshot")
        .with_raw_output_schema(tidy(schema_for_output::<CaptureReply>()))
        .with_annotations(hints().read_only(true)),
    ];
    if !read_only {
        let run = Tool::new(
            EXECUTE_PYTHON_CODE,
            "Runs Python code inside 3D Slicer, with `slicer`, `vtk` and `qt` at hand. Set the variable __execResult \
             to a value that JSON can hold to get it back; printed text is not returned. Names stay defined between \
             calls.",
            tidy(schema_for_input::<ExecuteArgs>()?),
        )
        .with_title("Run Python in Slicer")
        .with_raw_output_schema(tidy(schema_for_output::<ExecuteReply>()))
        .with_annotations(hints().read_only(false).destructive(true).idempotent(false).open_world(true));
        tools.insert(1, run);
    }
    Ok(tools)
}

/// A schema without what only Rust means by it (number formats) and without the line breaks of the source.
fn tidy(schema: Arc<JsonObject>) -> Arc<JsonObject> {
    let mut schema = Arc::unwrap_or_clone(schema);
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
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

fn hints() -> ToolAnnotations {
    ToolAnnotations::new().idempotent(true).open_world(false)
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
    match slicer.exec(&args.code, timeout).await {
        Ok(message) => Ok(ExecuteReply { success: true, message }),
        Err(error @ WebServerError::NotRunning { .. }) => Err(error),
        Err(error) => Ok(execution_failed(error_text(&error))),
    }
}

/// The reply of `execute_python_code` when the code did not run to its end.
pub fn execution_failed(message: String) -> ExecuteReply {
    ExecuteReply { success: false, message: Value::String(message) }
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
    let value = serde_json::to_value(reply)?;
    let text = value.to_string();
    // The text is a string inside the message, so its quotation marks count twice.
    let size = text.len() + text.len() + text.bytes().filter(|b| matches!(b, b'"' | b'\\')).count();
    if size <= MAX_REPLY {
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

    #[test]
    fn only_the_tool_that_runs_code_says_it_may_change_something() {
        let writing: Vec<_> = definitions(false)
            .unwrap()
            .into_iter()
            .filter(|tool| tool.annotations.as_ref().unwrap().read_only_hint != Some(true))
            .map(|tool| tool.name)
            .collect();
        assert_eq!(writing, [EXECUTE_PYTHON_CODE]);
        assert!(definitions(true).unwrap().iter().all(|tool| tool.name != EXECUTE_PYTHON_CODE));
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
        let reply = ExecuteReply { success: true, message: Value::String("x".repeat(MAX_REPLY / 2)) };
        let sent = result(&reply, execution_failed).unwrap();
        let value = sent.structured_content.unwrap();
        assert_eq!(value["success"], false);
        assert!(value["message"].as_str().unwrap().contains("7.9 MB"), "{value}");
    }
}
