//! The names, arguments and replies of the bridge's tools.
//!
//! They are a contract with every MCP client that has used a Slicer server before, so they change only by addition.
//! Other rooms build their calls from these types; the schemas that the server publishes are made from them too.

use std::fmt::Display;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Lists nodes of the scene.
pub const LIST_NODES: &str = "list_nodes";
/// Runs Python in Slicer.
pub const EXECUTE_PYTHON_CODE: &str = "execute_python_code";
/// Takes a picture of Slicer.
pub const CAPTURE_SCREENSHOT: &str = "capture_screenshot";
/// Says whether Slicer is there, what it is doing and whether it takes code.
pub const GET_STATUS: &str = "get_status";
/// Gives what is known of nodes by their ids.
pub const GET_NODE_PROPERTIES: &str = "get_node_properties";
/// Loads one of Slicer's sample data sets.
pub const LOAD_SAMPLE_DATA: &str = "load_sample_data";
/// Takes back the last run that has a checkpoint.
pub const UNDO_LAST_RUN: &str = "undo_last_run";

/// Longest side of any picture, in pixels.
pub const MAX_IMAGE_SIZE: u32 = 1920;

fn names() -> String {
    "names".to_owned()
}

fn application() -> String {
    "application".to_owned()
}

/// A number, also when a client writes it in quotes or leaves the quotes empty, as older servers took it.
fn number<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display> + DeserializeOwned,
{
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(text) if text.trim().is_empty() => Ok(None),
        Value::String(text) => {
            text.trim().parse().map(Some).map_err(|error| D::Error::custom(format!("{text:?}: {error}")))
        }
        value => serde_json::from_value(value).map(Some).map_err(D::Error::custom),
    }
}

/// Arguments of [`LIST_NODES`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListNodesArgs {
    /// What to give of each node: "names", "ids" or "properties".
    #[serde(default = "names")]
    #[schemars(extend("enum" = ["names", "ids", "properties"]))]
    pub filter_type: String,
    /// Only nodes of this MRML class, for example "vtkMRMLScalarVolumeNode".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_name: Option<String>,
    /// Only nodes with exactly this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Only the node with this id, for example "vtkMRMLModelNode4".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl Default for ListNodesArgs {
    fn default() -> Self {
        Self { filter_type: names(), class_name: None, name: None, id: None }
    }
}

/// Reply of [`LIST_NODES`]: one of the two is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListNodesReply {
    /// A list of names or ids, or an object that maps each id to the node's properties.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Value>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Arguments of [`EXECUTE_PYTHON_CODE`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecuteArgs {
    /// Python source to run in Slicer. What it leaves in the variable __execResult comes back.
    pub code: String,
    /// Longest time for the code, in seconds. It is stopped then, unless it waits inside a C++ function.
    #[serde(default, deserialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
    /// Whether what the code prints, its traceback and what VTK says of errors is wanted as "report".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<bool>,
    /// Whether a checkpoint of the scene is made before, so that undo_last_run can take the code back. The reply then
    /// also says what changed in the scene.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoable: Option<bool>,
}

/// Reply of [`EXECUTE_PYTHON_CODE`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecuteReply {
    /// Whether the code ran to its end without an exception.
    pub success: bool,
    /// What the code left in __execResult ({} when nothing), or the text of the error. Numbers that are not finite
    /// are the texts "NaN", "Infinity" and "-Infinity".
    pub message: Value,
    /// With "capture": stdout, stderr, vtk (kind and text of each message), log, warnings, error (type, message, line,
    /// traceback) and duration_ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Value>,
    /// With "undoable": what was added, removed and changed in the scene.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Value>,
}

/// Arguments of [`CAPTURE_SCREENSHOT`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureArgs {
    /// "application" (the main window), "slice" (one slice view) or "3d" (one 3D view).
    #[serde(default = "application")]
    #[schemars(extend("enum" = ["application", "slice", "3d"]))]
    pub view_type: String,
    /// Which view: "Red", "Yellow", "Green" or another slice view; for 3D its name or number. The first one otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view_name: Option<String>,
    /// For a slice view: show this offset (mm along the slice normal) in the picture. The view is put back afterwards.
    #[serde(default, deserialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub slice_offset: Option<f64>,
    /// For a slice view: "axial", "sagittal" or "coronal" in the picture. The view is put back afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_orientation: Option<String>,
    /// For a 3D view: look from the left, right, anterior, posterior, inferior or superior side: "L", "R", "A", "P",
    /// "I" or "S". The camera is put back afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub camera_axis: Option<String>,
    /// Longest side of the picture in pixels, at most 1920. Pictures are made smaller, never larger.
    #[serde(default, deserialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub image_size: Option<u32>,
    /// "jpeg" (the default) or "png".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

impl Default for CaptureArgs {
    fn default() -> Self {
        Self {
            view_type: application(),
            view_name: None,
            slice_offset: None,
            slice_orientation: None,
            camera_axis: None,
            image_size: None,
            format: None,
        }
    }
}

/// What [`CAPTURE_SCREENSHOT`] says of the picture beside it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureReply {
    /// The view type that was asked for.
    pub view_type: String,
    /// The views in the picture, from left to right and from top to bottom; "main window" for the whole application.
    pub views: Vec<String>,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// "image/jpeg" or "image/png".
    pub mime_type: String,
    /// What the viewer should know, for example that the view is not shown on the screen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Arguments of a tool that takes none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoArgs {}

/// Reply of [`GET_STATUS`]. What is not known is left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusReply {
    /// Whether something that is Slicer answers.
    pub running: bool,
    /// Where its Web Server is.
    pub url: String,
    /// Whether it takes Python code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<bool>,
    /// Whether it is working on something, or hangs.
    pub busy: bool,
    /// How long the call that this bridge has sent has taken, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_s: Option<f64>,
    /// Title of a dialog that waits for the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modal_dialog: Option<String>,
    /// Whether Slicer has a main window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main_window: Option<bool>,
    /// Version of Slicer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether it is the practice Slicer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub practice: Option<bool>,
    /// Process id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Nodes that a person works with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u64>,
    /// File of the scene; empty for one that was never saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scene_file: Option<String>,
    /// What to do, when something is in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// Arguments of [`GET_NODE_PROPERTIES`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodePropertiesArgs {
    /// Ids of the nodes, for example ["vtkMRMLModelNode4"].
    pub ids: Vec<String>,
}

/// Reply of [`GET_NODE_PROPERTIES`]: one of the two is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodePropertiesReply {
    /// An object that maps each id to the node's name, class, content, attributes, references, control points and what
    /// it prints of itself; an id that is not in the scene has "error".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Value>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Arguments of [`LOAD_SAMPLE_DATA`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSampleArgs {
    /// Name of the sample, for example "CTChest" or "MRHead".
    pub name: String,
}

/// Reply of [`LOAD_SAMPLE_DATA`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSampleReply {
    /// The nodes that came, with id, name and class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded: Option<Value>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// With an error: the samples that there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Vec<String>>,
}

/// Arguments of [`UNDO_LAST_RUN`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UndoArgs {
    /// Whether what ran after the last run with a checkpoint may be taken back with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_later: Option<bool>,
}

/// Reply of [`UNDO_LAST_RUN`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UndoReply {
    /// Whether the scene was put back, proved by comparing it.
    pub success: bool,
    /// What happened, or why nothing was done.
    pub message: String,
    /// What could not be put back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// What was added, removed and changed in the scene by putting it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Value>,
}
