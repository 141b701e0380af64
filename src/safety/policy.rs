//! What may happen unasked, what needs a person's word, and what never happens.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::verdict::{Capability, VerdictKind};

/// The rules that turn findings into a verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// What each capability means; one that is missing asks.
    pub rules: BTreeMap<Capability, VerdictKind>,
    /// Allowed for this call or conversation. Has no effect on what is never allowed (`Capability::is_final`).
    pub granted: BTreeSet<Capability>,
    /// Files and folders that may be read unasked: those that the person named or approved.
    pub readable_paths: Vec<PathBuf>,
}

impl Default for Policy {
    fn default() -> Self {
        let rules = Capability::ALL
            .iter()
            .map(|&capability| {
                let rule = match capability {
                    c if c.is_final() => VerdictKind::Block,
                    Capability::Gui => VerdictKind::Allow,
                    _ => VerdictKind::Ask,
                };
                (capability, rule)
            })
            .collect();
        Self { rules, granted: BTreeSet::new(), readable_paths: Vec::new() }
    }
}

impl Policy {
    /// Grants `capability`. A grant of something that is never allowed changes nothing.
    pub fn allow(&mut self, capability: Capability) {
        self.granted.insert(capability);
    }

    /// The verdict on one finding. `grave` raises a finding to a block: code that no honest task needs, such as ending
    /// Slicer or a loop without an end; a grant still lifts it where grants can.
    pub(crate) fn judge(&self, capability: Capability, grave: bool, scope: Option<&str>) -> VerdictKind {
        if capability.is_final() {
            return VerdictKind::Block;
        }
        if self.granted.contains(&capability) {
            return VerdictKind::Allow;
        }
        if capability == Capability::ReadFile && scope.is_some_and(|path| self.may_read(path)) {
            return VerdictKind::Allow;
        }
        let rule = self.rules.get(&capability).copied().unwrap_or(VerdictKind::Ask);
        if grave { VerdictKind::Block } else { rule }
    }

    /// Whether `path` lies in something readable. Relative paths and paths with `..` never do: where they lead is
    /// decided only when the code runs.
    fn may_read(&self, path: &str) -> bool {
        let path = Path::new(path);
        path.is_absolute()
            && !path.components().any(|part| part == Component::ParentDir)
            && self.readable_paths.iter().any(|root| root.is_absolute() && path.starts_with(root))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_things_are_never_allowed() {
        let mut policy = Policy::default();
        for capability in Capability::ALL {
            policy.allow(*capability);
            policy.rules.insert(*capability, VerdictKind::Allow);
        }
        for capability in [
            Capability::DeleteFile,
            Capability::Secrets,
            Capability::DynamicCode,
            Capability::Reflection,
            Capability::Process,
        ] {
            assert_eq!(policy.judge(capability, false, None), VerdictKind::Block);
        }
        assert_eq!(policy.judge(Capability::WriteFile, false, None), VerdictKind::Allow);
    }

    #[test]
    fn approved_folders_are_read_unasked_and_not_escaped() {
        let mut policy = Policy::default();
        policy.readable_paths.push(PathBuf::from("/data/study"));
        let judge = |path: &str| policy.judge(Capability::ReadFile, false, Some(path));
        assert_eq!(judge("/data/study/a.nrrd"), VerdictKind::Allow);
        assert_eq!(judge("/data/study/../x.nrrd"), VerdictKind::Ask);
        assert_eq!(judge("/data/study2/a.nrrd"), VerdictKind::Ask);
        assert_eq!(judge("a.nrrd"), VerdictKind::Ask);
    }
}
