//! The allow tables: what each known module, class and object can do.
//!
//! They are data (`resources/safety/*.toml`) so that a reviewer reads them without reading Rust. A *space* is anything
//! with named members: a module (`os`), a class (`qt.QTimer`) or a kind of object (`@application`). The tables are
//! embedded and cannot be replaced from the data folder: a replaced table would be a way around ring 1.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;

use super::verdict::Capability;

const SOURCES: &[(&str, &str)] = &[
    ("builtins.toml", include_str!("../../resources/safety/builtins.toml")),
    ("stdlib.toml", include_str!("../../resources/safety/stdlib.toml")),
    ("science.toml", include_str!("../../resources/safety/science.toml")),
    ("slicer.toml", include_str!("../../resources/safety/slicer.toml")),
    ("objects.toml", include_str!("../../resources/safety/objects.toml")),
    ("toolkits.toml", include_str!("../../resources/safety/toolkits.toml")),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    space: Vec<RawSpace>,
    #[serde(default)]
    imports: BTreeMap<String, String>,
    #[serde(default)]
    lists: BTreeMap<String, String>,
}

/// Lists are white-space separated names; `*` at an end of a name stands for any text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSpace {
    name: String,
    #[serde(default)]
    unlisted: Unlisted,
    #[serde(default)]
    like: Option<String>,
    #[serde(default)]
    harmless: String,
    #[serde(default)]
    needs: BTreeMap<String, String>,
    #[serde(default)]
    stop: BTreeMap<String, String>,
    #[serde(default)]
    values: BTreeMap<String, String>,
    #[serde(default)]
    returns: BTreeMap<String, String>,
    #[serde(default)]
    checks: BTreeMap<String, String>,
    #[serde(default)]
    element: Option<String>,
}

/// What a member means that the table does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unlisted {
    /// A finding: not known to be harmless.
    #[default]
    Ask,
    /// Harmless, unless the general list of sinks names it.
    Harmless,
}

/// What one member of a space needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing.
    Nothing,
    /// A capability; `grave` blocks whatever the rule says.
    Capability { capability: Capability, grave: bool },
}

/// A name in which each `*` stands for any text, cut at the stars.
#[derive(Debug, Clone)]
struct Pattern<T> {
    pieces: Vec<String>,
    value: T,
}

impl<T> Pattern<T> {
    fn matches(&self, name: &str) -> bool {
        let (Some(head), Some(tail)) = (self.pieces.first(), self.pieces.last()) else {
            return false;
        };
        let Some(mut rest) = name.strip_prefix(head.as_str()) else {
            return false;
        };
        for piece in self.pieces.iter().skip(1).take(self.pieces.len().saturating_sub(2)) {
            match rest.find(piece.as_str()) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        rest.ends_with(tail.as_str())
    }
}

/// Values by exact name first, then by pattern in the order of the file.
#[derive(Debug, Clone)]
struct Names<T> {
    exact: HashMap<String, T>,
    patterns: Vec<Pattern<T>>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self { exact: HashMap::new(), patterns: Vec::new() }
    }
}

impl<T: Clone> Names<T> {
    fn add(&mut self, names: &str, value: T) {
        for name in names.split_whitespace() {
            if name.contains('*') {
                let pieces = name.split('*').map(str::to_owned).collect();
                self.patterns.push(Pattern { pieces, value: value.clone() });
            } else {
                self.exact.insert(name.to_owned(), value.clone());
            }
        }
    }

    fn get(&self, name: &str) -> Option<&T> {
        self.exact.get(name).or_else(|| self.patterns.iter().find(|p| p.matches(name)).map(|p| &p.value))
    }
}

/// One space.
#[derive(Debug, Clone, Default)]
pub(crate) struct Space {
    needs: Names<Need>,
    values: Names<String>,
    returns: Names<String>,
    checks: Names<String>,
    like: Option<String>,
    pub(crate) unlisted: Unlisted,
    pub(crate) element: Option<String>,
}

/// All tables.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    spaces: HashMap<String, Space>,
    imports: HashMap<String, Need>,
    /// Spaces whose name is a pattern.
    families: Names<Space>,
    lists: HashMap<String, HashSet<String>>,
    /// Part of them could not be read: what they would have named would pass as unknown objects do.
    pub(crate) broken: bool,
}

impl Tables {
    /// The tables of this build. Their form is held by a test; with a file that does not parse, nothing is allowed.
    pub(crate) fn get() -> &'static Tables {
        static TABLES: LazyLock<Tables> = LazyLock::new(|| {
            let mut tables = Tables::default();
            for (name, text) in SOURCES {
                if let Err(error) = tables.load(text) {
                    tracing::error!(table = name, %error, "a safety table cannot be read");
                    tables.broken = true;
                }
            }
            tables
        });
        &TABLES
    }

    fn load(&mut self, text: &str) -> Result<(), String> {
        let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
        for (need, modules) in file.imports {
            let need = parse_need(&need)?;
            for module in modules.split_whitespace() {
                self.imports.insert(module.to_owned(), need);
            }
        }
        for (list, names) in file.lists {
            self.lists.entry(list).or_default().extend(names.split_whitespace().map(str::to_owned));
        }
        for raw in file.space {
            let name = raw.name.clone();
            let space = build(raw)?;
            if name.contains('*') {
                self.families.add(&name, space);
                continue;
            }
            if self.spaces.insert(name.clone(), space).is_some() {
                return Err(format!("{name} is defined twice"));
            }
        }
        Ok(())
    }

    /// The space of a module, class or kind of object.
    pub(crate) fn space(&self, name: &str) -> Option<&Space> {
        self.spaces.get(name).or_else(|| self.families.get(name))
    }

    /// What importing a module needs by itself.
    pub(crate) fn import(&self, module: &str) -> Option<Need> {
        self.imports.get(module).copied()
    }

    /// Whether `name` stands in the list `list`.
    pub(crate) fn listed(&self, list: &str, name: &str) -> bool {
        self.lists.get(list).is_some_and(|names| names.contains(name))
    }

    fn find<'a, T: ?Sized>(&'a self, space: &str, get: impl Fn(&'a Space) -> Option<&'a T>) -> Option<&'a T> {
        let mut at = self.space(space);
        // A chain of `like` is short; the bound keeps a mistake in a table from becoming an endless loop.
        for _ in 0..8 {
            let here = at?;
            if let Some(found) = get(here) {
                return Some(found);
            }
            at = here.like.as_deref().and_then(|name| self.spaces.get(name));
        }
        None
    }

    /// As `find`; what an object's own table does not name is what it is on any object.
    fn find_or_any<'a, T: ?Sized>(
        &'a self,
        space: &str,
        member: &str,
        get: impl Fn(&'a Space) -> Option<&'a T>,
    ) -> Option<&'a T> {
        let found = self.find(space, &get);
        let object = space.starts_with('@') && space != "@any" && self.need(space, member).is_none();
        if found.is_none() && object { self.find("@any", get) } else { found }
    }

    /// What a member needs, when the table names it.
    pub(crate) fn need(&self, space: &str, member: &str) -> Option<Need> {
        self.find(space, |s| s.needs.get(member)).copied()
    }

    /// Whether the table names the member itself and not only a family of names.
    pub(crate) fn names(&self, space: &str, member: &str) -> bool {
        self.find(space, |s| s.needs.exact.get(member)).is_some()
    }

    /// What reading a member gives: a module, or a kind of object.
    pub(crate) fn value(&self, space: &str, member: &str) -> Option<&str> {
        self.find(space, |s| s.values.get(member)).map(String::as_str)
    }

    /// What calling a member gives.
    pub(crate) fn returns(&self, space: &str, member: &str) -> Option<&str> {
        self.find_or_any(space, member, |s| s.returns.get(member)).map(String::as_str)
    }

    /// The rule in code that looks at the arguments of a call.
    pub(crate) fn check(&self, space: &str, member: &str) -> Option<&str> {
        self.find_or_any(space, member, |s| s.checks.get(member)).map(String::as_str)
    }
}

fn parse_need(name: &str) -> Result<Need, String> {
    let (name, grave) = match name.strip_suffix('!') {
        Some(name) => (name, true),
        None => (name, false),
    };
    if name == "nothing" {
        return Ok(Need::Nothing);
    }
    let capability = name.parse::<Capability>().map_err(|e| e.to_string())?;
    Ok(Need::Capability { capability, grave })
}

fn build(raw: RawSpace) -> Result<Space, String> {
    let mut space = Space { like: raw.like, unlisted: raw.unlisted, element: raw.element, ..Space::default() };
    // Later entries win among exact names: harmless first, so that a name listed under a need stays a need.
    space.needs.add(&raw.harmless, Need::Nothing);
    for (capability, names) in raw.needs {
        space.needs.add(&names, parse_need(&capability)?);
    }
    for (capability, names) in raw.stop {
        space.needs.add(&names, parse_need(&format!("{capability}!"))?);
    }
    // Naming what a member gives, or a check of its arguments, also says that it is known.
    for (map, target) in
        [(raw.values, &mut space.values), (raw.returns, &mut space.returns), (raw.checks, &mut space.checks)]
    {
        for (list, value) in map {
            for name in list.split_whitespace() {
                if space.needs.get(name).is_none() {
                    space.needs.add(name, Need::Nothing);
                }
            }
            target.add(&list, value);
        }
    }
    Ok(space)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_well_formed() {
        let mut tables = Tables::default();
        for (name, text) in SOURCES {
            tables.load(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let known = |target: &str| !target.starts_with('@') || tables.spaces.contains_key(target);
        for (name, space) in &tables.spaces {
            for target in space.values.exact.values().chain(space.returns.exact.values()) {
                assert!(known(target), "{name} leads to {target}, which is not defined");
            }
            for target in space.like.iter().chain(&space.element) {
                assert!(tables.spaces.contains_key(target), "{name} refers to {target}, which is not defined");
            }
            for check in space.checks.exact.values().chain(space.checks.patterns.iter().map(|p| &p.value)) {
                assert!(crate::safety::checks::is_known(check), "{name}: there is no check {check}");
            }
        }
    }
}
