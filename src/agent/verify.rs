//! Whether the scene is as the plan said. Judged from the snapshots before and after the run alone, never from what the
//! model or the code says it did.

use regex::Regex;

use super::{CheckResult, Expectation, Plan};
use crate::slicer::{NodeSummary, SceneDiff, SceneSnapshot};

/// The scene around a run.
pub struct SceneChange<'a> {
    pub before: &'a SceneSnapshot,
    pub after: &'a SceneSnapshot,
    pub diff: &'a SceneDiff,
}

/// Checks every expectation of a plan.
pub fn verify(plan: &Plan, scene: &SceneChange<'_>) -> Vec<CheckResult> {
    plan.steps.iter().flat_map(|step| &step.expected_scene_change).map(|expected| check(expected, scene)).collect()
}

fn check(expected: &Expectation, scene: &SceneChange<'_>) -> CheckResult {
    let what = describe(expected);
    let (passed, seen) = match expected.kind.as_str() {
        "node_exists" | "node_has_display" | "node_has_content" | "node_name_matches" => some_node(expected, scene),
        "node_count_delta" => count_delta(expected, scene),
        "node_modified" => modified(expected, scene),
        "layout_changed" => (
            Some(scene.before.layout != scene.after.layout),
            format!("layout {} → {}", name_or_number(scene.before), name_or_number(scene.after)),
        ),
        "selection_changed" => (
            Some(scene.before.selected_volume != scene.after.selected_volume),
            scene.after.selected_volume.clone().unwrap_or_else(|| "no volume selected".into()),
        ),
        "module_entered" => {
            let wanted = expected.name.as_deref().unwrap_or_default();
            (Some(scene.after.active_module.eq_ignore_ascii_case(wanted)), scene.after.active_module.clone())
        }
        "property_true" | "not_checked" => (None, "not checked from the scene".into()),
        other => (None, format!("there is no check called \u{201c}{other}\u{201d}")),
    };
    CheckResult { what, passed, seen }
}

fn name_or_number(snapshot: &SceneSnapshot) -> String {
    if snapshot.layout_name.is_empty() { snapshot.layout.to_string() } else { snapshot.layout_name.clone() }
}

fn is_of_class(node: &NodeSummary, class: &str) -> bool {
    node.class == class || node.classes.iter().any(|ancestor| ancestor == class)
}

/// The nodes of `snapshot` that class, id and (exact) name leave.
fn candidates<'a>(expected: &'a Expectation, snapshot: &'a SceneSnapshot) -> impl Iterator<Item = &'a NodeSummary> {
    let by_pattern = expected.kind == "node_name_matches";
    snapshot.nodes.iter().filter(move |node| {
        expected.class.as_deref().is_none_or(|class| is_of_class(node, class))
            && expected.id.as_deref().is_none_or(|id| node.id == id)
            && (by_pattern || expected.name.as_deref().is_none_or(|name| node.name == name))
    })
}

fn some_node(expected: &Expectation, scene: &SceneChange<'_>) -> (Option<bool>, String) {
    let pattern = match (expected.kind.as_str(), expected.name.as_deref()) {
        ("node_name_matches", Some(pattern)) => match Regex::new(&format!("(?i){pattern}")) {
            Ok(pattern) => Some(pattern),
            Err(_) => return (None, format!("\u{201c}{pattern}\u{201d} is not a pattern")),
        },
        _ => None,
    };
    let mut near = Vec::new();
    for node in candidates(expected, scene.after) {
        let is_new = scene.before.node(&node.id).is_none();
        let lacks = if expected.new && !is_new {
            Some("was there before".to_owned())
        } else if pattern.as_ref().is_some_and(|pattern| !pattern.is_match(&node.name)) {
            Some("has another name".to_owned())
        } else if expected.kind == "node_has_display" && !node.has_display {
            Some("has no display".to_owned())
        } else {
            lacks_content(expected, node)
        };
        match lacks {
            None => return (Some(true), format!("\u{201c}{}\u{201d} ({})", node.name, node.fact)),
            Some(lack) => near.push(format!("\u{201c}{}\u{201d} {lack}", node.name)),
        }
    }
    (Some(false), if near.is_empty() { "no such node in the scene".into() } else { near.join("; ") })
}

/// What a node has too little of, if anything.
fn lacks_content(expected: &Expectation, node: &NodeSummary) -> Option<String> {
    let content = &node.content;
    let too_few = |minimum: Option<u64>, has: Option<u64>, of: &str| {
        let minimum = minimum?;
        (has.unwrap_or(0) < minimum).then(|| format!("has {} {of}, expected at least {minimum}", has.unwrap_or(0)))
    };
    let segments = content.segments.as_deref();
    let smallest = segments.and_then(|list| list.iter().map(|segment| segment.voxels.unwrap_or(0)).min());
    let identity = match (expected.is_non_identity, content.identity) {
        (Some(true), Some(true)) => Some("is still the identity".to_owned()),
        (Some(true), None) => Some("is no linear transform".to_owned()),
        (Some(false), Some(false)) => Some("is not the identity".to_owned()),
        _ => None,
    };
    too_few(expected.min_points, content.points, "points")
        .or_else(|| too_few(expected.min_cells, content.cells, "cells"))
        .or_else(|| too_few(expected.min_voxels, content.nonzero_voxels.or(content.voxels), "voxels"))
        .or_else(|| too_few(expected.min_segments, segments.map(|list| list.len() as u64), "segments"))
        .or_else(|| too_few(expected.min_voxel_count, smallest, "voxels in its smallest segment"))
        .or(identity)
}

fn count_delta(expected: &Expectation, scene: &SceneChange<'_>) -> (Option<bool>, String) {
    let Some(wanted) = expected.delta else { return (None, "the plan names no number".into()) };
    let before = candidates(expected, scene.before).count() as i64;
    let after = candidates(expected, scene.after).count() as i64;
    (Some(after - before == wanted), format!("{before} before, {after} after"))
}

fn modified(expected: &Expectation, scene: &SceneChange<'_>) -> (Option<bool>, String) {
    // The name may be the one before or the one after: a rename is a modification too.
    let matches = |id: &str| {
        [scene.before, scene.after].iter().any(|snapshot| candidates(expected, snapshot).any(|node| node.id == id))
    };
    match scene.diff.changed.iter().find(|change| matches(&change.id)) {
        Some(change) => (Some(true), format!("\u{201c}{}\u{201d}: {}", change.name, change.what.join(", "))),
        None => (Some(false), "unchanged".into()),
    }
}

/// The condition in plain words.
fn describe(expected: &Expectation) -> String {
    let kind = match expected.class.as_deref() {
        Some(class) => class.trim_start_matches("vtkMRML").trim_end_matches("Node").to_owned(),
        None => "node".to_owned(),
    };
    let named = match (expected.name.as_deref(), expected.id.as_deref()) {
        (Some(name), _) => format!(" \u{201c}{name}\u{201d}"),
        (None, Some(id)) => format!(" {id}"),
        _ => String::new(),
    };
    let new = if expected.new { "a new " } else { "" };
    let subject = format!("{new}{kind}{named}");
    match expected.kind.as_str() {
        "node_exists" => format!("{subject} exists"),
        "node_has_display" => format!("{subject} can be seen"),
        "node_has_content" => format!("{subject} is not empty{}", minimums(expected)),
        "node_name_matches" => format!("{new}{kind} has a name like{named}"),
        "node_count_delta" => format!("number of {kind} nodes changes by {:+}", expected.delta.unwrap_or(0)),
        "node_modified" => format!("{subject} changed"),
        "layout_changed" => "the layout changed".into(),
        "selection_changed" => "the selected volume changed".into(),
        "module_entered" => format!("module{named} is open"),
        _ => expected.text.clone().unwrap_or_else(|| expected.kind.clone()),
    }
}

fn minimums(expected: &Expectation) -> String {
    let list: Vec<String> = [
        (expected.min_points, "points"),
        (expected.min_cells, "cells"),
        (expected.min_voxels, "voxels"),
        (expected.min_segments, "segments"),
        (expected.min_voxel_count, "voxels in each segment"),
    ]
    .into_iter()
    .filter_map(|(minimum, of)| minimum.map(|minimum| format!("{minimum} {of}")))
    .collect();
    if list.is_empty() { String::new() } else { format!(" (at least {})", list.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slicer::{NodeChange, NodeContent, SegmentSummary};

    fn node(id: &str, name: &str, class: &str) -> NodeSummary {
        NodeSummary {
            id: id.into(),
            name: name.into(),
            class: class.into(),
            classes: vec![class.into(), "vtkMRMLDisplayableNode".into()],
            has_display: true,
            ..NodeSummary::default()
        }
    }

    fn run(expected: Expectation, before: &[NodeSummary], after: &[NodeSummary]) -> CheckResult {
        let before = SceneSnapshot { nodes: before.to_vec(), ..SceneSnapshot::default() };
        let after = SceneSnapshot { nodes: after.to_vec(), ..SceneSnapshot::default() };
        let changed =
            NodeChange { id: "M1".into(), name: "Model".into(), what: vec!["name".into()], ..Default::default() };
        let diff = SceneDiff { changed: vec![changed], ..SceneDiff::default() };
        check(&expected, &SceneChange { before: &before, after: &after, diff: &diff })
    }

    fn expectation(kind: &str) -> Expectation {
        Expectation { kind: kind.into(), ..Expectation::default() }
    }

    /// A check that is meant for a new node must not pass for one that was there before.
    #[test]
    fn new_means_not_there_before() {
        let model = node("M1", "Model", "vtkMRMLModelNode");
        let expected = Expectation { class: Some("vtkMRMLModelNode".into()), new: true, ..expectation("node_exists") };
        let old = std::slice::from_ref(&model);
        assert_eq!(run(expected.clone(), old, old).passed, Some(false));
        assert_eq!(run(expected, &[], old).passed, Some(true));
    }

    /// Classes match with inheritance.
    #[test]
    fn a_base_class_matches() {
        let expected = Expectation { class: Some("vtkMRMLDisplayableNode".into()), ..expectation("node_exists") };
        assert_eq!(run(expected, &[], &[node("M1", "Model", "vtkMRMLModelNode")]).passed, Some(true));
    }

    /// An empty segment is a failure although the node and the segment exist.
    #[test]
    fn every_segment_needs_voxels() {
        let mut segmentation = node("S1", "Segmentation", "vtkMRMLSegmentationNode");
        let segment = |voxels| SegmentSummary { voxels: Some(voxels), ..SegmentSummary::default() };
        segmentation.content = NodeContent { segments: Some(vec![segment(900), segment(0)]), ..NodeContent::default() };
        let expected = Expectation { min_voxel_count: Some(1), ..expectation("node_has_content") };
        let result = run(expected, &[], &[segmentation]);
        assert_eq!(result.passed, Some(false));
        assert!(result.seen.contains("0 voxels in its smallest segment"), "{}", result.seen);
    }

    /// Deletions are a negative delta, and "unchanged" is a failure of `node_modified`.
    #[test]
    fn deletions_and_changes() {
        let model = node("M1", "Model", "vtkMRMLModelNode");
        let expected = Expectation { delta: Some(-1), ..expectation("node_count_delta") };
        assert_eq!(run(expected.clone(), std::slice::from_ref(&model), &[]).passed, Some(true));
        assert_eq!(run(expected, &[], &[]).passed, Some(false));
        let changed = Expectation { id: Some("M1".into()), ..expectation("node_modified") };
        assert_eq!(run(changed, std::slice::from_ref(&model), std::slice::from_ref(&model)).passed, Some(true));
        let other = Expectation { id: Some("M2".into()), ..expectation("node_modified") };
        assert_eq!(run(other, &[], std::slice::from_ref(&model)).passed, Some(false));
    }

    /// What cannot be checked is said to be unchecked; it never passes silently.
    #[test]
    fn unknown_checks_do_not_pass() {
        assert_eq!(run(expectation("node_is_beautiful"), &[], &[]).passed, None);
        let pattern = Expectation { name: Some("(".into()), ..expectation("node_name_matches") };
        assert_eq!(run(pattern, &[], &[]).passed, None);
    }
}
