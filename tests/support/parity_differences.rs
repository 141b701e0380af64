//! Where the bridge answers otherwise than `mcp-slicer` on purpose, and why.

/// Cases that differ for one reason.
pub struct Difference {
    pub version: &'static str,
    pub cases: &'static [&'static str],
    pub why: &'static str,
}

/// All of them.
pub const DIFFERENCES: &[Difference] = &[];

/// Why this case may differ.
pub fn reason(version: &str, case: &str) -> Option<&'static str> {
    DIFFERENCES.iter().find(|listed| listed.version == version && listed.cases.contains(&case)).map(|listed| listed.why)
}
