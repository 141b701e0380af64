//! The Python of a package: what it may say, and the verdict on it.
//!
//! A template is a few lines that call the helper's verbs, or, where no verb fits, ordinary Python. Both are judged by the
//! same rules as code of a model, and nothing but "allow" will do: a package is run by people who never read it. The verbs
//! are declared to the check as functions without effects of their own, because our helper defines them; what a package
//! itself defines or imports is followed as in any other program.

use std::fmt::Write as _;

use crate::safety::{self, Finding, Policy, VerdictKind};

/// The names that a template finds defined: the verbs of the helper (`resources/slicer/flow.py` lists the same).
pub(super) const VERBS: [&str; 39] = [
    "press",
    "check",
    "set_value",
    "choose_node",
    "choose_item",
    "press_text",
    "wizard_next",
    "wizard_back",
    "missing_modules",
    "probe",
    "volume_range",
    "call",
    "open_module",
    "sample",
    "segment_new",
    "segment_add",
    "segment_effect",
    "segment_threshold",
    "segment_surface",
    "segment_statistics",
    "markup_new",
    "markup_place",
    "markup_points",
    "markup_stop",
    "markup_handles",
    "markup_views",
    "layout",
    "slice_show3d",
    "slice_fov_match",
    "slice_intersections",
    "slice_reset",
    "slice_background",
    "node_visible",
    "param_get",
    "param_set",
    "table_get",
    "table_set",
    "remove_nodes",
    "keep",
];

/// Why a template may not run.
#[derive(Debug, Clone)]
pub(super) struct Objection {
    /// 1-based line of the template.
    pub(super) line: usize,
    pub(super) problem: String,
    pub(super) instead: String,
}

/// The first thing that keeps this template from running unasked.
pub(super) fn objection(template: &str) -> Option<Objection> {
    let verdict = safety::validate(&checked(template), &Policy::default());
    if verdict.verdict == VerdictKind::Allow {
        return None;
    }
    let before = prelude().lines().count();
    let worst = verdict.findings.iter().max_by_key(|finding| finding.verdict);
    Some(worst.map_or_else(
        || Objection { line: 1, problem: "the check refuses it".into(), instead: String::new() },
        |finding: &Finding| Objection {
            line: finding.line.saturating_sub(before).max(1),
            problem: finding.why.trim_end_matches('.').to_owned(),
            instead: finding.instead.clone(),
        },
    ))
}

/// The template as it is judged: with what our helper defines before it.
pub(super) fn checked(template: &str) -> String {
    format!("{}{template}", prelude())
}

fn prelude() -> String {
    let mut prelude = String::from("values = {}\nitems = ()\n");
    for verb in VERBS {
        // Writing to a String cannot fail.
        writeln!(prelude, "def {verb}(*positional, **named): return None").ok();
    }
    prelude
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A verb that only one side knows is either refused as unknown or missing when it runs.
    #[test]
    fn the_helper_defines_exactly_these_verbs() {
        let text = ["flow_ui", "flow_scene"].map(|name| crate::resources::text(&format!("slicer/{name}.py")).unwrap());
        let mut defined: Vec<&str> = vec!["keep"];
        for text in text {
            let list = text.split("VERBS = {").nth(1).unwrap();
            let list = list.split_once("in (").unwrap().1.split(')').next().unwrap();
            defined.extend(list.split(',').map(str::trim).filter(|name| !name.is_empty()));
        }
        defined.sort_unstable();
        let mut listed = VERBS.to_vec();
        listed.sort_unstable();
        assert_eq!(defined, listed);
    }

    #[test]
    fn verbs_are_allowed_and_mischief_is_not() {
        let verbs = "made = segment_new(volume=values[\"volume\"], name=\"Bone\")\npress(\"Apply\", module=\"Crop\")\nkeep(a=made)";
        assert!(objection(verbs).is_none(), "{:?}", objection(verbs));
        let found = objection("press(\"Apply\")\nimport subprocess\nsubprocess.run([\"ls\"])").unwrap();
        assert!(found.line >= 2, "{found:?}");
        assert!(objection("press(").is_some(), "what is no Python");
        assert!(objection("open(\"/etc/passwd\").read()").is_some());
        assert!(objection("__import__(\"os\").remove(\"a\")").is_some());
    }
}
