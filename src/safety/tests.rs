//! What ring 1 promises, in small: see `tests/safety_sets.rs` for the large sets.

use super::*;

#[test]
fn harmless_code_has_no_findings() {
    let verdict = validate("n = slicer.util.getNode('MRHead')\nprint(n.GetName())\n", &Policy::default());
    assert_eq!(verdict.verdict, VerdictKind::Allow, "{verdict:?}");
}
