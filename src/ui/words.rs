//! Numbers and names in a person's words: durations, tokens, cost, findings, MRML classes. Pure functions.

use time::OffsetDateTime;

use crate::engine::{Capability, Decision, KeyOrigin, SceneDiff, UsageTotal};

/// A duration of `ms` milliseconds, for example `340 ms`, `2.1 s`, `3 min 05 s`.
pub fn duration(ms: f64) -> String {
    if ms < 1000.0 {
        format!("{ms:.0} ms")
    } else if ms < 60_000.0 {
        format!("{:.1} s", ms / 1000.0)
    } else {
        let seconds = (ms / 1000.0) as u64;
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

/// The same for a time that runs: always in seconds, so that it does not jump between units.
pub fn clock(ms: f64) -> String {
    if ms < 60_000.0 { format!("{:.1} s", ms / 1000.0) } else { duration(ms) }
}

/// A number of tokens, for example `812` or `3.2k`.
pub fn tokens(count: u64) -> String {
    if count < 1000 { count.to_string() } else { format!("{:.1}k", count as f64 / 1000.0) }
}

/// Tokens in, cached and out.
pub fn usage(usage: &UsageTotal) -> String {
    let about = if usage.estimated { "≈" } else { "" };
    let cached = if usage.cached > 0 { format!(" ({} cached)", tokens(usage.cached)) } else { String::new() };
    format!("{about}{} in{cached} · {about}{} out", tokens(usage.input + usage.cached), tokens(usage.output))
}

/// The cost label: "free" when no model was asked, "cost unknown" when the price is not known, "≈" for an estimate.
pub fn cost(usage: &UsageTotal, cost_usd: Option<f64>) -> String {
    match cost_usd {
        _ if usage.calls == 0 => "free".into(),
        None => "cost unknown".into(),
        Some(0.0) => "free".into(),
        Some(cost) => {
            let about = if usage.estimated { "≈" } else { "" };
            if cost < 0.01 { format!("{about}${cost:.4}") } else { format!("{about}${cost:.2}") }
        }
    }
}

/// A large number with its digits in groups of three, for example `1 284 503`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push('\u{a0}');
        }
        out.push(digit);
    }
    out
}

/// `text` with a capital first letter.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

/// `1 node`, `2 nodes`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// The first sentence of a message, and what follows it, without sentences that the advice says again.
pub fn headline<'a>(message: &'a str, advice: &str) -> (&'a str, String) {
    let Some((first, rest)) = message.split_once(". ") else { return (message, String::new()) };
    let told = |sentence: &&str| !advice.contains(sentence.trim_end_matches('.'));
    let rest: Vec<_> = rest.split_inclusive(". ").map(str::trim).filter(told).collect();
    (&message[..=first.len()], rest.join(" "))
}

/// Plain text of a sentence that sets names in backticks.
pub fn without_backticks(text: &str) -> String {
    text.replace('`', "")
}

/// What is being set up, without saying its name twice.
pub fn progress(progress: &super::state::Progress) -> String {
    let (what, detail) = (&progress.what, &progress.detail);
    if detail.to_lowercase().contains(&what.to_lowercase()) { detail.clone() } else { format!("{what}: {detail}") }
}

/// A difference of the scene in one line, for example `1 added, 2 changed`.
pub fn difference(diff: &SceneDiff) -> String {
    let mut parts = Vec::new();
    for (number, word) in
        [(diff.added.len(), "added"), (diff.changed.len(), "changed"), (diff.removed.len(), "removed")]
    {
        if number > 0 {
            parts.push(format!("{number} {word}"));
        }
    }
    if !diff.views.is_empty() {
        parts.push(count(diff.views.len(), "view change", "view changes"));
    }
    if parts.is_empty() { "scene unchanged".into() } else { parts.join(", ") }
}

/// What a capability lets code do, as the end of "This code wants to …".
pub fn capability(capability: Capability) -> &'static str {
    match capability {
        Capability::ReadFile => "read a file",
        Capability::WriteFile => "write a file",
        Capability::DeleteFile => "delete a file",
        Capability::Network => "use the network",
        Capability::SampleData => "download sample data",
        Capability::Process => "start another program",
        Capability::Install => "install software",
        Capability::Settings => "change Slicer's settings",
        Capability::Secrets => "read secrets",
        Capability::Quit => "quit Slicer",
        Capability::ClearScene => "clear the scene",
        Capability::DeleteNodes => "delete nodes",
        Capability::OverwriteData => "overwrite data",
        Capability::DynamicCode => "run code that cannot be read beforehand",
        Capability::Reflection => "reach into Python's internals",
        Capability::UnknownModule => "use a module that is not known",
        Capability::Timer => "run something later by itself",
        Capability::Gui => "change Slicer's window",
        Capability::Hang => "run without an end",
        Capability::Memory => "use a lot of memory",
        Capability::Syntax => "run code that is not valid Python",
        Capability::Spend => "spend more than your budget",
    }
}

/// What a person decided.
pub fn decision(decision: Decision) -> &'static str {
    match decision {
        Decision::AllowOnce => "Allowed once",
        Decision::AllowConversation => "Allowed for this conversation",
        Decision::AllowAlways => "Always allowed",
        Decision::Deny => "Denied",
    }
}

/// Where a key comes from.
pub fn key_origin(origin: KeyOrigin) -> &'static str {
    match origin {
        KeyOrigin::NotSet => "No key is set.",
        KeyOrigin::NotNeeded => "No key is needed.",
        KeyOrigin::Keyring => "From the system's keyring.",
        KeyOrigin::Environment => "From an environment variable.",
        KeyOrigin::Session => "Kept until the program ends: this system has no keyring.",
    }
}

/// The heading under which nodes of an MRML class are listed.
pub fn class_group(class: &str) -> &'static str {
    match class {
        "vtkMRMLSegmentationNode" => "Segmentations",
        "vtkMRMLModelNode" => "Models",
        "vtkMRMLTableNode" => "Tables",
        "vtkMRMLTextNode" => "Texts",
        "vtkMRMLLabelMapVolumeNode" => "Label maps",
        class if class.contains("Volume") && !class.contains("Rendering") && !class.contains("Property") => "Volumes",
        class if class.contains("Markups") => "Markups",
        class if class.contains("Transform") => "Transforms",
        class if class.contains("Sequence") => "Sequences",
        _ => "Other nodes",
    }
}

/// When something happened, seen from now: `just now`, `12 min ago`, `yesterday`, `3 Nov`, `3 Nov 2025`.
pub fn ago(then_ms: i64, now_ms: i64) -> String {
    let minutes = (now_ms - then_ms).max(0) / 60_000;
    match minutes {
        0 => "just now".into(),
        1..60 => format!("{minutes} min ago"),
        60..1440 => format!("{} h ago", minutes / 60),
        1440..2880 => "yesterday".into(),
        _ => {
            let date = |ms: i64| OffsetDateTime::from_unix_timestamp(ms / 1000).map(|moment| moment.date());
            match (date(then_ms), date(now_ms)) {
                (Ok(then), Ok(now)) => {
                    let month = &then.month().to_string()[..3];
                    let year = if then.year() == now.year() { String::new() } else { format!(" {}", then.year()) };
                    format!("{} {month}{year}", then.day())
                }
                _ => String::new(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!(grouped(1_284_503).replace('\u{a0}', " "), "1 284 503");
        assert_eq!(grouped(999), "999");
    }

    /// What to do must not stand there twice, and a long cause must not shout.
    #[test]
    fn a_message_is_cut_into_headline_and_cause() {
        let advice = "Start Slicer and press Start; or start the practice Slicer.";
        let message = "Nothing answers at 127.0.0.1. The port is closed. Start Slicer and press Start.";
        assert_eq!(headline(message, advice), ("Nothing answers at 127.0.0.1.", "The port is closed.".to_owned()));
        assert_eq!(headline("One sentence.", ""), ("One sentence.", String::new()));
    }

    #[test]
    fn durations_read_like_a_clock() {
        assert_eq!(duration(41.4), "41 ms");
        assert_eq!(duration(2140.0), "2.1 s");
        assert_eq!(duration(185_000.0), "3 min 05 s");
    }

    /// A price must never look more certain than it is.
    #[test]
    fn cost_says_what_is_not_known() {
        let asked = UsageTotal { calls: 1, input: 900, cached: 100, output: 20, ..UsageTotal::default() };
        assert_eq!(cost(&UsageTotal::default(), None), "free");
        assert_eq!(cost(&asked, None), "cost unknown");
        assert_eq!(cost(&asked, Some(0.0031)), "$0.0031");
        assert_eq!(cost(&UsageTotal { estimated: true, ..asked }, Some(0.25)), "≈$0.25");
        assert_eq!(usage(&asked), "1.0k in (100 cached) · 20 out");
    }

    #[test]
    fn moments_are_told_from_now() {
        let now = 1_700_000_000_000;
        assert_eq!(ago(now - 5_000, now), "just now");
        assert_eq!(ago(now - 300_000, now), "5 min ago");
        assert_eq!(ago(now - 7_200_000, now), "2 h ago");
        assert_eq!(ago(now - 90_000_000, now), "yesterday");
        assert_eq!(ago(now - 864_000_000, now), "4 Nov");
    }

    #[test]
    fn differences_are_counted() {
        assert_eq!(difference(&SceneDiff::default()), "scene unchanged");
        let diff = SceneDiff { views: vec!["layout".into()], ..SceneDiff::default() };
        assert_eq!(difference(&diff), "1 view change");
    }
}
