//! What a piece of Python can do, and what the policy says of it.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerdictKind {
    Allow,
    Ask,
    Block,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Capability {
    ReadFile,
    WriteFile,
    DeleteFile,
    Network,
    SampleData,
    Process,
    Install,
    Settings,
    Secrets,
    Quit,
    ClearScene,
    DeleteNodes,
    OverwriteData,
    DynamicCode,
    Reflection,
    UnknownModule,
    Timer,
    Gui,
    Hang,
    Memory,
    Syntax,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    pub capability: Capability,
    pub line: usize,
    pub column: usize,
    pub text: String,
    pub why: String,
    pub instead: String,
    pub verdict: VerdictKind,
    pub scope: Option<String>,
}
