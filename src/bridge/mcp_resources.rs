//! What a client may read without calling a tool: the scene, a node, a view.
//!
//! The list is fixed and needs no Slicer, so that it is there before Slicer is; nodes and views are templates. Reading
//! changes nothing, so it is allowed with `--read-only`, too.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};

use super::calls;
use super::screenshot::{self, CaptureError, Picture};
use super::types::CaptureArgs;
use super::web_server::{WebServer, WebServerError};

const SCENE: &str = "slicer://scene";
const NODE: &str = "slicer://node/";
const VIEW: &str = "slicer://view/";
/// Words for the whole of Slicer, in place of a view's name.
const APPLICATION: [&str; 2] = ["application", "main window"];

/// The resources with a fixed address.
pub fn fixed() -> Vec<Resource> {
    vec![
        Resource::new(SCENE, "scene")
            .with_title("The scene")
            .with_description(
                "The scene in Slicer: nodes with id, name, class and facts, what each view shows, the layout and the \
                 active module.",
            )
            .with_mime_type("application/json"),
        Resource::new(format!("{VIEW}application"), "application")
            .with_title("Slicer's window")
            .with_description("A picture of Slicer's main window, or of all views when it has none.")
            .with_mime_type("image/jpeg"),
    ]
}

/// The resources with a name in their address.
pub fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{NODE}{{id}}"), "node")
            .with_title("A node")
            .with_description("What is known of one node, by its id, for example vtkMRMLModelNode4.")
            .with_mime_type("application/json"),
        ResourceTemplate::new(format!("{VIEW}{{name}}"), "view")
            .with_title("A view")
            .with_description(
                "A picture of one view: Red, Green, Yellow or another slice view, or a 3D view by its name.",
            )
            .with_mime_type("image/jpeg"),
    ]
}

/// Reads one resource.
///
/// # Errors
/// "Resource not found" for an address, node or view that there is not; an internal error with advice when Slicer
/// cannot be asked.
pub async fn read(slicer: &WebServer, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let contents = if uri == SCENE {
        as_json(uri, &calls::ask(slicer, "snapshot", json!({}), None).await.map_err(unasked)?)
    } else if let Some(id) = uri.strip_prefix(NODE).filter(|id| !id.is_empty()) {
        as_json(uri, &node(slicer, uri, &decoded(id)).await?)
    } else if let Some(name) = uri.strip_prefix(VIEW).filter(|name| !name.is_empty()) {
        let picture = view(slicer, &decoded(name)).await.map_err(|error| no_picture(uri, &error))?;
        ResourceContents::blob(BASE64.encode(&picture.bytes), uri).with_mime_type(picture.about.mime_type)
    } else {
        return Err(not_found(uri, "There are slicer://scene, slicer://node/{id} and slicer://view/{name}."));
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

async fn node(slicer: &WebServer, uri: &str, id: &str) -> Result<Value, ErrorData> {
    let mut nodes = calls::ask(slicer, "node_properties", json!({"ids": [id]}), None).await.map_err(unasked)?;
    let node = nodes[id].take();
    if node.get("error").is_some() || node.is_null() {
        return Err(not_found(uri, "There is no node with this id in the scene."));
    }
    Ok(node)
}

/// A slice view of this name, or else a 3D view.
async fn view(slicer: &WebServer, name: &str) -> Result<Picture, CaptureError> {
    let wanted = |view_type: &str, view_name: Option<&str>| CaptureArgs {
        view_type: view_type.to_owned(),
        view_name: view_name.map(str::to_owned),
        ..CaptureArgs::default()
    };
    let lower = name.to_lowercase();
    if APPLICATION.contains(&lower.as_str()) {
        return screenshot::capture(slicer, &wanted("application", None)).await;
    }
    if lower == "3d" {
        return screenshot::capture(slicer, &wanted("3d", None)).await;
    }
    match screenshot::capture(slicer, &wanted("slice", Some(name))).await {
        Err(first @ CaptureError::NoPicture(_)) => {
            screenshot::capture(slicer, &wanted("3d", Some(name))).await.map_err(|second| match second {
                CaptureError::NoPicture(text) => CaptureError::NoPicture(format!("{first} {text}")),
                other => other,
            })
        }
        other => other,
    }
}

fn as_json(uri: &str, value: &Value) -> ResourceContents {
    ResourceContents::text(value.to_string(), uri).with_mime_type("application/json")
}

/// A part of an address as it was meant: percent escapes undone.
fn decoded(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|two| two.iter().all(u8::is_ascii_hexdigit));
        let hex = digits.and_then(|two| std::str::from_utf8(two).ok());
        let escaped = hex.filter(|_| first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn not_found(uri: &str, why: &str) -> ErrorData {
    ErrorData::resource_not_found(format!("{uri} cannot be read. {why}"), Some(json!({"uri": uri})))
}

fn unasked(error: WebServerError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn no_picture(uri: &str, error: &CaptureError) -> ErrorData {
    match error {
        CaptureError::NoPicture(why) => not_found(uri, why),
        other => ErrorData::internal_error(other.to_string(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_addresses_are_read_as_they_were_meant() {
        for (given, meant) in [
            ("Red", "Red"),
            ("my%20view", "my view"),
            ("%E9%A0%AD", "頭"),
            ("100%", "100%"),
            ("%zz%2", "%zz%2"),
            ("%+1", "%+1"),
        ] {
            assert_eq!(decoded(given), meant);
        }
    }
}
