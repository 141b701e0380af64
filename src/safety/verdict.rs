//! The words of a judgement: what code can do (`Capability`), where (`Finding`), and what follows (`VerdictKind`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What the policy says. Ordered: the strictest finding decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerdictKind {
    /// May run unasked.
    Allow,
    /// A person decides first.
    Ask,
    /// Does not run.
    Block,
}

macro_rules! capabilities {
    ($($name:ident),* $(,)?) => {
        /// Something that code can do and that a person may want to know before it runs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Capability { $(#[doc = stringify!($name)] $name),* }

        impl Capability {
            /// Every capability, in order.
            pub const ALL: &'static [Capability] = &[$(Capability::$name),*];

            /// The name as it is written in settings, tables and on the command line.
            pub fn name(self) -> &'static str {
                match self { $(Capability::$name => stringify!($name)),* }
            }
        }
    };
}

capabilities!(
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
    Spend,
);

/// A name that is no capability.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("there is no capability named \"{0}\"; known are: {known}", known = known_names())]
pub struct UnknownCapability(String);

fn known_names() -> String {
    Capability::ALL.iter().map(|c| c.name()).collect::<Vec<_>>().join(", ")
}

impl FromStr for Capability {
    type Err = UnknownCapability;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .copied()
            .find(|c| c.name().eq_ignore_ascii_case(name.trim()))
            .ok_or_else(|| UnknownCapability(name.to_owned()))
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Capability {
    /// Whether no grant can lift this one.
    pub fn is_final(self) -> bool {
        matches!(
            self,
            Self::DeleteFile | Self::Secrets | Self::DynamicCode | Self::Reflection | Self::Process | Self::Syntax
        )
    }

    /// One plain sentence for a person who does not write programs; `what` is the thing named in the code.
    pub(crate) fn why(self, what: &str) -> String {
        match self {
            Self::ReadFile => format!("`{what}` looks at files or folders of this computer."),
            Self::WriteFile => format!("`{what}` can write files on this computer."),
            Self::DeleteFile => format!("`{what}` deletes, moves or cuts off files, which cannot be undone."),
            Self::Network => format!("`{what}` sends or fetches data over the network."),
            Self::SampleData => format!("`{what}` downloads sample data and keeps a copy on this computer."),
            Self::Process => format!("`{what}` deals with other programs on this computer, which cannot be checked."),
            Self::Install => format!("`{what}` installs or removes software."),
            Self::Settings => format!("`{what}` reads or changes settings that stay after Slicer is closed."),
            Self::Secrets => format!("`{what}` can read passwords, keys or personal data of this computer."),
            Self::Quit => format!("`{what}` can close or restart Slicer, and unsaved work would be lost."),
            Self::ClearScene => format!("`{what}` empties the scene: everything that is loaded is removed."),
            Self::DeleteNodes => format!("`{what}` removes data that this code did not create itself."),
            Self::OverwriteData => format!("`{what}` changes data that was there before, in place."),
            Self::DynamicCode => format!("`{what}` runs code that cannot be read beforehand."),
            Self::Reflection => {
                format!("`{what}` reaches into the inside of Python or Slicer, past what can be checked.")
            }
            Self::UnknownModule => format!("`{what}` is not on the list of things known to be harmless."),
            Self::Timer => format!("`{what}` keeps running again and again after the code has ended."),
            Self::Gui => format!("`{what}` presses buttons of Slicer in place of the person."),
            Self::Hang => format!("`{what}` can keep Slicer busy for a very long time."),
            Self::Memory => format!("`{what}` can use up the memory of this computer."),
            Self::Syntax => format!("`{what}` cannot be read as Python."),
            // No code is found to do this: it stands for the cost of asking a model.
            Self::Spend => format!("`{what}` may cost more than the budget allows."),
        }
    }

    /// What to write in its place, where one answer fits most cases.
    pub(crate) fn instead(self) -> &'static str {
        match self {
            Self::DynamicCode => "Write the steps out as plain code.",
            Self::Reflection => "Use the documented functions of Slicer, VTK or Python by their names.",
            Self::Process => "Use a Slicer module or a VTK filter; ask the person to start other programs.",
            Self::DeleteFile => "Leave files alone and tell the person which ones can be removed.",
            Self::Secrets => "Ask the person for what is needed.",
            Self::Quit => "Let the person close Slicer.",
            Self::ClearScene => "Remove only the nodes that this code created.",
            Self::DeleteNodes => "Remove only nodes that this code created, or hide them.",
            Self::OverwriteData => "Work on a copy of the node.",
            Self::Hang => "Give the loop an end, or work on a smaller part.",
            Self::Timer => "Use qt.QTimer.singleShot for something that happens once.",
            Self::Memory => "Work on a smaller part.",
            Self::ReadFile => "Name the file or folder in your request, or allow this once.",
            Self::WriteFile => "Let the person save with File > Save, or allow this once.",
            Self::Network => "Load the data from this computer, or allow this once.",
            Self::SampleData => "Ask for the sample data by name, or use data that is loaded.",
            Self::Install => "Use numpy, SimpleITK or VTK, which Slicer brings along.",
            Self::Settings => "Set it for this session only, on the node, view or widget itself.",
            Self::UnknownModule => "Use numpy, SimpleITK, VTK or a function of slicer.util.",
            Self::Gui => "Call the function that the button calls.",
            Self::Syntax => "Write the code again, complete and in plain Python 3.",
            Self::Spend => "Choose a cheaper model, or raise the budget in the settings.",
        }
    }
}

/// One thing that code can do, at one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What kind of thing.
    pub capability: Capability,
    /// Line, 1-based.
    pub line: usize,
    /// Column in characters, 1-based.
    pub column: usize,
    /// The source text, shortened.
    pub text: String,
    /// One plain sentence.
    pub why: String,
    /// What to write or do instead, one plain sentence.
    pub instead: String,
    /// What the policy says of this finding.
    pub verdict: VerdictKind,
    /// The path, host or module it is about, when it is known.
    pub scope: Option<String>,
}

/// The judgement of one piece of code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The strictest of the findings; `Allow` when there are none.
    pub verdict: VerdictKind,
    /// In the order of the source.
    pub findings: Vec<Finding>,
}

impl Verdict {
    pub(crate) fn of(findings: Vec<Finding>) -> Self {
        let verdict = findings.iter().map(|f| f.verdict).max().unwrap_or(VerdictKind::Allow);
        Self { verdict, findings }
    }
}
