//! The names, arguments and replies of the bridge's tools.
//!
//! They are a contract with every MCP client that has used a Slicer server before, so they change only by addition.
//! Other rooms build their calls from these types; the schemas that the server publishes are made from them too.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Lists nodes of the scene.
pub const LIST_NODES: &str = "list_nodes";
/// Runs Python in Slicer.
pub const EXECUTE_PYTHON_CODE: &str = "execute_python_code";
/// Takes a picture of Slicer.
pub const CAPTURE_SCREENSHOT: &str = "capture_screenshot";

/// Longest side of any picture, in pixels.
pub const MAX_IMAGE_SIZE: u32 = 1920;

fn names() -> String {
    "names".to_owned()
}

fn application() -> String {
    "application".to_owned()
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
    /// Longest wait for the result, in seconds. Slicer itself is not interrupted by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
}

/// Reply of [`EXECUTE_PYTHON_CODE`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecuteReply {
    /// Whether the code ran to its end.
    pub success: bool,
    /// What the code left in __execResult ({} when nothing), or the text of the error. Numbers that are not finite
    /// are the texts "NaN", "Infinity" and "-Infinity".
    pub message: Value,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_offset: Option<f64>,
    /// For a slice view: "axial", "sagittal" or "coronal" in the picture. The view is put back afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_orientation: Option<String>,
    /// For a 3D view: look from the left, right, anterior, posterior, inferior or superior side: "L", "R", "A", "P",
    /// "I" or "S". The camera is put back afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub camera_axis: Option<String>,
    /// Longest side of the picture in pixels, at most 1920. Pictures are made smaller, never larger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
