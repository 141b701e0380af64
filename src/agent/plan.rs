//! The plan that comes before code: what will be done, why it is believed, and what the scene must look like afterwards.
//!
//! A plan is a fenced `agent_plan` JSON block. It is read leniently (a missing field has a default, an unknown one is
//! ignored) because models vary, but its checks are typed: an expectation that cannot be understood becomes
//! `not_checked` with the reason, never a silent pass.

use serde::{Deserialize, Serialize};

/// The whole plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    pub task_summary: String,
    /// `high`, `medium` or `low`.
    pub overall_confidence: String,
    /// `low`, `medium` or `high`.
    pub risk_level: String,
    pub requires_confirmation: bool,
    pub unverified_assumptions: Vec<String>,
    pub steps: Vec<PlanStep>,
}

/// One step of a plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanStep {
    pub action: String,
    pub api: String,
    pub confidence: String,
    /// Where in the knowledge this was seen, for example `recipes/segment-threshold.md`.
    pub evidence: String,
    pub assumptions: Vec<String>,
    pub expected_scene_change: Vec<Expectation>,
}

/// A condition on the scene after the run. `kind` is one of the names in the design: `node_exists`, `node_count_delta`,
/// `node_modified`, `node_has_display`, `node_has_content`, `node_name_matches`, `layout_changed`, `selection_changed`,
/// `module_entered`, `property_true`, `not_checked`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Expectation {
    #[serde(rename = "type")]
    pub kind: String,
    /// MRML class; a node of a class derived from it matches too.
    pub class: Option<String>,
    /// Exact node name, or a regular expression for `node_name_matches`.
    pub name: Option<String>,
    /// Node id.
    pub id: Option<String>,
    /// For `node_count_delta`; negative for deletions.
    pub delta: Option<i64>,
    /// True when only a node that was not there before may satisfy it.
    pub new: bool,
    pub min_points: Option<u64>,
    pub min_cells: Option<u64>,
    pub min_voxels: Option<u64>,
    pub min_segments: Option<u64>,
    /// Smallest number of voxels that every segment must have.
    pub min_voxel_count: Option<u64>,
    pub is_non_identity: Option<bool>,
    /// For `property_true` and `not_checked`: what is meant, in words.
    pub text: Option<String>,
}

/// An expectation and what the scene said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckResult {
    /// The condition in plain words.
    pub what: String,
    /// `None` when it was not checked.
    pub passed: Option<bool>,
    /// What was seen.
    pub seen: String,
}
