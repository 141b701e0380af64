//! The graph that runs: `workflow.json` as plain types, and the checks that make it safe to start.
//!
//! A step is one flat record: which fields it needs depends on its kind and is checked afterwards, because an error then
//! names the line of the step and says what to write, where a tagged type could only say that nothing fits.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::choice::Choice;

/// The target that ends the run.
pub const END: &str = "end";
/// How often a step may be entered in one run when the package names no other bound.
const MAX_VISITS: u32 = 50;
/// The time limit of a template in seconds when the package names none.
const TIMEOUT_S: f64 = 60.0;

/// The steps of a procedure and where it starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workflow {
    /// Id of the first step.
    pub start: String,
    pub steps: Vec<Step>,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    Automated,
    UserChoice,
    Interactive,
    Mixed,
    Branch,
    Review,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub id: String,
    pub kind: StepKind,
    pub title: String,
    /// One sentence: what happens, or what the person does.
    pub brief: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The code of an automated or mixed step, or what follows a choice: a file of `templates/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Before and after the person's part of an interactive or mixed step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Values that must be there before the step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Values that its templates put there with `keep`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub makes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<BranchOption>,
    /// The values that a review shows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub show: Vec<String>,
    /// What must hold in the scene after the templates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<Expectation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// A counted loop: back to `to` until this step was done `times` times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Repeat>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    #[serde(default = "max_visits")]
    pub max_visits: u32,
    /// Time limit of each template in seconds.
    #[serde(default = "timeout")]
    pub timeout_s: f64,
}

fn max_visits() -> u32 {
    MAX_VISITS
}

fn timeout() -> f64 {
    TIMEOUT_S
}

/// What is waited for while the person works in Slicer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    pub mode: WaitMode,
    /// The value that holds the markup, for the live count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    #[serde(default)]
    pub min_points: u64,
}

/// How the person works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitMode {
    Place,
    Adjust,
    Tool,
}

/// One way on from a branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchOption {
    pub text: String,
    pub next: String,
    /// A template that runs before the jump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
}

/// The back edge of a counted loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    pub to: String,
    pub times: Times,
}

/// How often: a number, or the name of a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Times {
    Number(u32),
    Value(String),
}

/// What a node must hold after a step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The value that names the node.
    pub value: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_points: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_segments: Option<u64>,
    /// At least so many voxels in the largest segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_voxels: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rows: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_surface: Option<bool>,
}

/// What is wrong with a graph: where, what, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// Empty for what concerns the whole graph.
    pub step: String,
    pub field: &'static str,
    pub problem: String,
    pub instead: String,
}

impl Workflow {
    /// The step with this id.
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == id)
    }

    /// Everything that is wrong, in the order of the steps.
    pub fn flaws(&self) -> Vec<Flaw> {
        let mut flaws = Vec::new();
        let ids: BTreeSet<&str> = self.steps.iter().map(|step| step.id.as_str()).collect();
        if !ids.contains(self.start.as_str()) {
            flaws.push(Flaw::whole("start", format!("there is no step \"{}\"", self.start), "Name the first step."));
        }
        let mut seen = BTreeSet::new();
        for step in &self.steps {
            if step.id == END || step.id.is_empty() || !step.id.bytes().all(is_id_byte) {
                flaws.push(step.flaw(
                    "id",
                    "this is no id",
                    "Use lower-case letters, digits and hyphens, not \"end\".",
                ));
            } else if !seen.insert(step.id.as_str()) {
                flaws.push(step.flaw("id", "two steps have this id", "Give each step an id of its own."));
            }
            step.own_flaws(&mut flaws);
            for (field, target) in step.targets() {
                if target != END && !ids.contains(target) {
                    flaws.push(step.flaw(field, &format!("there is no step \"{target}\""), "Name a step, or \"end\"."));
                }
            }
        }
        if flaws.is_empty() {
            self.reach_flaws(&mut flaws);
            self.value_flaws(&mut flaws);
        }
        flaws
    }

    /// Steps that are never reached, and steps from which the end is not reached.
    fn reach_flaws(&self, flaws: &mut Vec<Flaw>) {
        let mut reached = BTreeSet::from([self.start.as_str()]);
        let mut open = vec![self.start.as_str()];
        while let Some(step) = open.pop().and_then(|id| self.step(id)) {
            for (_, target) in step.targets() {
                if target != END && reached.insert(target) {
                    open.push(target);
                }
            }
        }
        let mut ends: BTreeSet<&str> = BTreeSet::from([END]);
        while let Some(step) = self
            .steps
            .iter()
            .find(|step| !ends.contains(step.id.as_str()) && step.targets().iter().any(|(_, to)| ends.contains(to)))
        {
            ends.insert(&step.id);
        }
        for step in &self.steps {
            if !reached.contains(step.id.as_str()) {
                flaws.push(step.flaw("next", "no step leads here", "Let a step lead here, or take it out."));
            } else if !ends.contains(step.id.as_str()) {
                flaws.push(step.flaw("next", "the end cannot be reached from here", "Let one way lead to \"end\"."));
            }
        }
    }

    /// Values that are used where some way here does not make them.
    fn value_flaws(&self, flaws: &mut Vec<Flaw>) {
        // For each step the values that every way to it has made; `None` while no way is known.
        let mut before: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::from([(self.start.as_str(), BTreeSet::new())]);
        let mut changed = true;
        while changed {
            changed = false;
            for step in &self.steps {
                let Some(mut after) = before.get(step.id.as_str()).cloned() else { continue };
                if !step.optional {
                    after.extend(step.produced());
                }
                for (_, target) in step.targets() {
                    let merged = match before.get(target) {
                        None => after.clone(),
                        Some(known) => known.intersection(&after).copied().collect(),
                    };
                    if target != END && before.get(target) != Some(&merged) {
                        before.insert(target, merged);
                        changed = true;
                    }
                }
            }
        }
        for step in &self.steps {
            let known = before.get(step.id.as_str()).cloned().unwrap_or_default();
            let own: BTreeSet<&str> = step.produced().collect();
            let missing = |name: &&str| !known.contains(*name);
            for name in step.needs.iter().map(String::as_str).filter(missing) {
                let problem = format!("the value \"{name}\" is not made on every way to this step");
                flaws.push(step.flaw("needs", &problem, "Make it in an earlier step that is not optional."));
            }
            for name in step.used_late().filter(missing).filter(|name| !own.contains(name)) {
                let problem = format!("the value \"{name}\" is neither made here nor before");
                flaws.push(step.flaw("makes", &problem, "Make it in this step or in an earlier one."));
            }
        }
    }
}

fn is_id_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

impl Flaw {
    fn whole(field: &'static str, problem: String, instead: &str) -> Self {
        Self { step: String::new(), field, problem, instead: instead.into() }
    }
}

impl Step {
    /// Every step that may follow, with the field that says so.
    pub fn targets(&self) -> Vec<(&'static str, &str)> {
        let mut targets: Vec<_> = self.options.iter().map(|option| ("options", option.next.as_str())).collect();
        targets.extend(self.next.as_deref().map(|next| ("next", next)));
        targets.extend(self.repeat.as_ref().map(|repeat| ("repeat", repeat.to.as_str())));
        targets
    }

    /// The template files of the step.
    pub fn templates(&self) -> impl Iterator<Item = &str> {
        let actions = self.options.iter().filter_map(|option| option.action.as_deref());
        [&self.template, &self.before, &self.after].into_iter().filter_map(|name| name.as_deref()).chain(actions)
    }

    fn produced(&self) -> impl Iterator<Item = &str> {
        self.makes.iter().map(String::as_str).chain(self.choice.as_ref().map(|choice| choice.value.as_str()))
    }

    /// Values that are used when the templates of the step have run.
    fn used_late(&self) -> impl Iterator<Item = &str> {
        let watched = self.wait.as_ref().and_then(|wait| wait.value.as_deref());
        let times = match self.repeat.as_ref().map(|repeat| &repeat.times) {
            Some(Times::Value(name)) => Some(name.as_str()),
            _ => None,
        };
        let expected = self.expect.iter().map(|expectation| expectation.value.as_str());
        expected.chain(watched).chain(times).chain(self.show.iter().map(String::as_str))
    }

    fn flaw(&self, field: &'static str, problem: &str, instead: &str) -> Flaw {
        Flaw { step: self.id.clone(), field, problem: problem.into(), instead: instead.into() }
    }

    fn own_flaws(&self, flaws: &mut Vec<Flaw>) {
        use StepKind::{Automated, Branch, Interactive, Mixed, Review, UserChoice};
        let kind = self.kind;
        let rules: [(&'static str, bool, bool, bool); 8] = [
            // field, is there, must be there, may be there
            ("template", self.template.is_some(), matches!(kind, Automated | Mixed), kind == UserChoice),
            ("before", self.before.is_some(), false, matches!(kind, Interactive | Mixed)),
            ("after", self.after.is_some(), false, matches!(kind, Interactive | Mixed)),
            ("choice", self.choice.is_some(), kind == UserChoice, false),
            ("wait", self.wait.is_some(), matches!(kind, Interactive | Mixed), false),
            ("options", !self.options.is_empty(), kind == Branch, false),
            ("show", !self.show.is_empty(), kind == Review, false),
            ("next", self.next.is_some(), kind != Branch, false),
        ];
        for (field, there, must, may) in rules {
            if must && !there {
                flaws.push(self.flaw(field, "a step of this kind needs it", &format!("Add \"{field}\".")));
            } else if there && !must && !may {
                flaws.push(self.flaw(
                    field,
                    "a step of this kind has no such field",
                    "Take it out, or change the kind.",
                ));
            }
        }
        if kind == Branch && self.repeat.is_some() {
            flaws.push(self.flaw("repeat", "a branch does not repeat", "Let an option lead back instead."));
        }
        if kind == Branch && self.options.len() == 1 {
            flaws.push(self.flaw("options", "there is only one way on", "Name two options or more."));
        }
        if self.max_visits == 0 || self.max_visits > 1000 {
            flaws.push(self.flaw("max_visits", "the bound is not usable", "Use a number from 1 to 1000."));
        }
        if !(self.timeout_s > 0.0 && self.timeout_s <= 3600.0) {
            flaws.push(self.flaw("timeout_s", "the time limit is not usable", "Use seconds from 1 to 3600."));
        }
        if let Some(choice) = &self.choice {
            flaws.extend(choice.flaws().into_iter().map(|(problem, instead)| self.flaw("choice", &problem, &instead)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(text: &str) -> Workflow {
        serde_json::from_str(text).unwrap()
    }

    fn problems(text: &str) -> Vec<(String, &'static str)> {
        graph(text).flaws().into_iter().map(|flaw| (flaw.step, flaw.field)).collect()
    }

    /// A value that only one of two ways makes is not there on the other.
    #[test]
    fn a_value_must_be_made_on_every_way() {
        let text = r#"{"start": "ask", "steps": [
            {"id": "ask", "kind": "branch", "title": "t", "brief": "b", "options": [
                {"text": "yes", "next": "make"}, {"text": "no", "next": "use"}]},
            {"id": "make", "kind": "automated", "title": "t", "brief": "b", "template": "a.py", "makes": ["x"], "next": "use"},
            {"id": "use", "kind": "automated", "title": "t", "brief": "b", "template": "a.py", "needs": ["x"], "next": "end"}]}"#;
        assert_eq!(problems(text), [("use".to_owned(), "needs")]);
        assert!(problems(&text.replace(r#""no", "next": "use""#, r#""no", "next": "make""#)).is_empty());
        let optional = text.replace(r#""no", "next": "use""#, r#""no", "next": "make""#);
        let optional = optional.replace(r#""makes": ["x"],"#, r#""makes": ["x"], "optional": true,"#);
        assert_eq!(problems(&optional), [("use".to_owned(), "needs")]);
    }

    #[test]
    fn targets_ids_and_kinds_are_checked() {
        let text = r#"{"start": "a", "steps": [
            {"id": "a", "kind": "automated", "title": "t", "brief": "b", "next": "nowhere"},
            {"id": "a", "kind": "review", "title": "t", "brief": "b", "show": ["x"], "template": "t.py", "next": "end"}]}"#;
        let wrong = problems(text);
        for expected in [("a", "template"), ("a", "next"), ("a", "id")] {
            assert!(wrong.contains(&(expected.0.to_owned(), expected.1)), "{expected:?} in {wrong:?}");
        }
    }

    /// A ring without a way out is found before it runs, and so is a step that nothing leads to.
    #[test]
    fn every_step_is_reached_and_reaches_the_end() {
        let text = r#"{"start": "a", "steps": [
            {"id": "a", "kind": "automated", "title": "t", "brief": "b", "template": "t.py", "next": "b"},
            {"id": "b", "kind": "automated", "title": "t", "brief": "b", "template": "t.py", "next": "a"},
            {"id": "c", "kind": "automated", "title": "t", "brief": "b", "template": "t.py", "next": "end"}]}"#;
        let steps: Vec<String> = graph(text).flaws().into_iter().map(|flaw| flaw.step).collect();
        assert_eq!(steps, ["a", "b", "c"]);
    }
}
