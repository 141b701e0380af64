//! What the rest of the program knows of Slicer: plain values, no MCP and no HTTP.
//!
//! The helper module that we send to Slicer (`resources/slicer/`) answers in JSON of exactly these shapes, so that a
//! scene snapshot, a run and its difference mean the same on both sides.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The state of the connected Slicer at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SceneSnapshot {
    /// Slicer's version text, for example `5.8.1` or `5.13.0-practice`.
    pub version: String,
    /// True when this is the practice Slicer.
    pub practice: bool,
    /// Name of the module whose panel is open, empty when there is none.
    pub active_module: String,
    /// `vtkMRMLLayoutNode::ViewArrangement`, for example 3 for the four-up layout.
    pub layout: i64,
    /// The layout's name as the layout menu calls it, empty when unknown.
    pub layout_name: String,
    /// Id of the volume selected as active, if any.
    pub selected_volume: Option<String>,
    /// Slice views by layout name ("Red", "Yellow", "Green").
    pub slices: BTreeMap<String, SliceState>,
    /// Camera position and focal point of the first 3D view (six numbers, RAS, mm), empty when there is none.
    pub camera: Vec<f64>,
    /// The nodes a person works with: everything but hidden nodes, display, storage, view and colour nodes.
    pub nodes: Vec<NodeSummary>,
}

impl SceneSnapshot {
    /// The node with this id.
    pub fn node(&self, id: &str) -> Option<&NodeSummary> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// The nodes of this MRML class, and of classes derived from it.
    pub fn nodes_of_class<'a>(&'a self, class: &'a str) -> impl Iterator<Item = &'a NodeSummary> {
        self.nodes.iter().filter(move |node| node.is_a(class))
    }
}

/// What one slice view shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SliceState {
    pub orientation: String,
    /// Slice offset in mm along the slice normal.
    pub offset: f64,
    pub background: Option<String>,
    pub foreground: Option<String>,
    pub label: Option<String>,
    /// True when the slice is also shown in the 3D views.
    pub visible_in_3d: bool,
}

/// One MRML node, with the facts that checks and people need.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeSummary {
    pub id: String,
    pub name: String,
    /// Class name, for example `vtkMRMLScalarVolumeNode`.
    pub class: String,
    /// The class and all its MRML ancestors, nearest first.
    pub classes: Vec<String>,
    /// The one fact that matters, in words: dimensions and spacing, number of points, segments.
    pub fact: String,
    /// Whether any display node shows it; `None` for nodes that cannot be shown.
    pub visible: Option<bool>,
    pub has_display: bool,
    /// Id of the parent transform.
    pub parent_transform: Option<String>,
    pub content: NodeContent,
    /// Fingerprints by aspect (`content`, `name`, `display`, `transform`, `reference`): what changed is what differs.
    pub digests: BTreeMap<String, String>,
}

impl NodeSummary {
    /// Whether the node is of this MRML class or of one derived from it.
    pub fn is_a(&self, class: &str) -> bool {
        self.class == class || self.classes.iter().any(|ancestor| ancestor == class)
    }
}

/// How much a node holds. Only what makes sense for its class is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeContent {
    /// Control points of a markup, or points of a model.
    pub points: Option<u64>,
    /// Cells of a model.
    pub cells: Option<u64>,
    /// Voxels of a volume.
    pub voxels: Option<u64>,
    /// Voxels that are not zero, for label maps.
    pub nonzero_voxels: Option<u64>,
    /// Segments of a segmentation.
    pub segments: Option<Vec<SegmentSummary>>,
    /// Rows of a table.
    pub rows: Option<u64>,
    /// Whether a linear transform is the identity.
    pub identity: Option<bool>,
    /// IJK dimensions of a volume.
    pub dimensions: Option<[u64; 3]>,
    /// Spacing of a volume in mm.
    pub spacing: Option<[f64; 3]>,
    /// Scalar range of a volume.
    pub range: Option<[f64; 2]>,
}

/// One segment of a segmentation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SegmentSummary {
    pub id: String,
    pub name: String,
    /// Voxels of its binary label map; `None` when it has no label map.
    pub voxels: Option<u64>,
    /// True when it has a closed surface representation.
    pub closed_surface: bool,
}

/// A node named in a difference.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeReference {
    pub id: String,
    pub name: String,
    pub class: String,
}

/// A node that was there before and after, and what of it differs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeChange {
    pub id: String,
    pub name: String,
    pub class: String,
    /// Plain words: "content", "name (was …)", "display", "parent transform", "segments".
    pub what: Vec<String>,
}

/// How the scene differs between two snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SceneDiff {
    pub added: Vec<NodeReference>,
    pub removed: Vec<NodeReference>,
    pub changed: Vec<NodeChange>,
    /// Changes that are not nodes, in plain words: "layout: Conventional → Four-Up", "Red slice offset".
    pub views: Vec<String>,
}

impl SceneDiff {
    /// True when nothing of the scene differs.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty() && self.views.is_empty()
    }
}

/// One guarded run of Python in Slicer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRequest {
    /// Names this run in its checkpoint, file name and reply.
    pub id: String,
    pub code: String,
    /// Time limit in milliseconds, held by a watchdog inside Slicer.
    pub timeout_ms: u64,
    /// Put the scene back by itself when the run fails.
    pub restore_on_failure: bool,
    /// A file that stops the run as soon as it exists. The connection fills it in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stop_path: Option<String>,
    /// What the code may reach beside the scene; `None` holds it to nothing but the check before the run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub grants: Option<RunGrants>,
    /// Set for a template of a guided workflow: `{"values": {…}}`. The code then runs in a namespace of its own, with the
    /// workflow's verbs and these values, and not in that of the Python console.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub flow: Option<serde_json::Value>,
}

/// In place of a folder of [`RunGrants`]: every file.
pub const EVERYWHERE: &str = "*";

/// What the Python code of one run may reach, enforced inside Slicer. Slicer's own files and its folder for temporary
/// files are always allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunGrants {
    /// Files and folders that may be read, as absolute paths.
    pub read: Vec<String>,
    /// Files and folders that may be read, written and deleted, as absolute paths.
    pub write: Vec<String>,
    pub network: bool,
    /// Starting and ending other programs.
    pub process: bool,
    /// Ending or restarting Slicer.
    pub quit: bool,
    /// Modules that the code may import, each with what lies below it; `None` for every one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modules: Option<Vec<String>>,
}

/// A dialog that a run would have opened, or opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DialogNote {
    /// `message`, `question`, `file`, `input`, or `dialog` for one of the code's own.
    pub kind: String,
    pub title: String,
    pub text: String,
    /// What it was answered with, in a word or two.
    pub answer: String,
}

impl DialogNote {
    /// The note in one line for people.
    pub fn in_words(&self) -> String {
        let what = match self.kind.as_str() {
            "message" => "Message of the code",
            "question" => "Question of the code",
            "dialog" => "Dialog of the code",
            _ => "The code asked for input",
        };
        let said: Vec<&str> = [self.title.as_str(), self.text.as_str()].into_iter().filter(|t| !t.is_empty()).collect();
        let answer = if self.answer.is_empty() || self.answer == "read" {
            String::new()
        } else {
            format!(" (answered for you: {})", self.answer)
        };
        format!("{what}: {}{answer}", said.join(": "))
    }
}

/// A message that VTK or ITK wrote to its output window during a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VtkMessage {
    /// `error`, `warning`, `debug` or `text`.
    pub kind: String,
    pub text: String,
}

/// What an exception said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunError {
    /// Python type name, for example `ValueError`; `TimeLimit`, `Stopped` and `VtkError` are ours.
    #[serde(rename = "type")]
    pub kind: String,
    pub message: String,
    /// Line of the agent's code, 1-based, when known.
    pub line: Option<u64>,
    pub traceback: String,
}

/// What a restore did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RestoreReport {
    /// True when the digests after the restore equal those of the checkpoint.
    pub complete: bool,
    /// What could not be put back, in plain words.
    pub missing: Vec<String>,
    /// Ids of later runs that were undone first, newest first.
    pub also_undone: Vec<String>,
}

impl RestoreReport {
    /// Whether the helper knows nothing of the run that was to be undone: nothing was put back then.
    pub fn is_unknown(&self) -> bool {
        !self.complete && self.also_undone.is_empty() && self.missing == [UNKNOWN_RUN]
    }
}

/// What the helper says of a run that it has no checkpoint of (`resources/slicer/checkpoint.py`).
const UNKNOWN_RUN: &str = "this run can no longer be undone";

/// The result of one guarded run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunOutcome {
    pub id: String,
    /// No exception, no time-out, no VTK error.
    pub ok: bool,
    /// Value of a trailing expression, or of `__execResult`, made JSON-safe; null when there is none.
    pub value: serde_json::Value,
    pub stdout: String,
    pub stderr: String,
    /// Python warnings, one line each.
    pub warnings: Vec<String>,
    /// What the code logged at level WARNING and above, for example `ERROR: no such file`.
    pub log: Vec<String>,
    /// What the code wanted and was not granted, also when it hid the refusal.
    pub refused: Vec<String>,
    /// Dialogs of the code, answered by policy or left to the person.
    pub dialogs: Vec<DialogNote>,
    pub vtk: Vec<VtkMessage>,
    /// The exception; for a run that only caused VTK errors the first of these, with the type `VtkError`.
    pub error: Option<RunError>,
    pub duration_ms: f64,
    pub before: SceneSnapshot,
    pub after: SceneSnapshot,
    pub diff: SceneDiff,
    /// Set when the scene was put back after a failure.
    pub restored: Option<RestoreReport>,
    /// Whether this run can be undone later.
    pub undoable: bool,
    /// Names of the full application that the practice Slicer only pretends to have.
    pub touched: Vec<String>,
    /// What a template of a guided workflow kept, by name; null for all other code.
    pub flow: serde_json::Value,
}

/// Which picture is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewRequest {
    /// `application`, `slice` or `3d`.
    pub view_type: String,
    /// Layout name of the view, for example `Red`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub view_name: Option<String>,
    /// `L`, `R`, `A`, `P`, `I` or `S`: look from this side (3D only).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub camera_axis: Option<String>,
    /// Upper bound of the longer side in pixels.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub image_size: Option<u32>,
}

impl ViewRequest {
    /// The whole application window, or the views of a headless Slicer.
    pub fn application() -> Self {
        Self { view_type: "application".into(), view_name: None, camera_axis: None, image_size: None }
    }
}

/// A picture as it came from Slicer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screenshot {
    /// `image/jpeg` or `image/png`.
    pub mime: String,
    pub bytes: Vec<u8>,
}

/// What the connection chip shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SlicerStatus {
    pub connected: bool,
    /// Base URL of the Web Server, or the bridge command that is used.
    pub url: String,
    pub version: String,
    pub practice: bool,
    /// Visible nodes.
    pub nodes: usize,
    /// A sentence for the person when it is not connected, or something is wrong.
    pub problem: Option<String>,
}
