//! The first thing that a newcomer asks: what can be said here. It needs no recipe, no model and no Slicer.

use std::path::Path;

use crate::resources;

/// The answer, when the whole message asks for help and for nothing else.
pub(super) fn answer(message: &str, data_folder: Option<&Path>) -> Option<String> {
    const QUESTIONS: [&str; 12] = [
        "help",
        "help me",
        "what can you do",
        "what can i do",
        "what can i say",
        "what can i ask",
        "what do you do",
        "how does this work",
        "how do you work",
        "what is possible",
        "what are you able to do",
        "examples",
    ];
    let words: String =
        message.to_lowercase().chars().map(|letter| if letter.is_alphanumeric() { letter } else { ' ' }).collect();
    let words = words.split_whitespace().filter(|word| *word != "please").collect::<Vec<_>>().join(" ");
    if !QUESTIONS.contains(&words.as_str()) {
        return None;
    }
    let path = "prompts/help.md";
    let own = data_folder.and_then(|folder| resources::text_with_override(folder, path));
    own.or_else(|| resources::text(path).map(Into::into)).map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Help answers a question for help, and takes no request away from the recipes.
    #[test]
    fn only_a_question_for_help_is_answered() {
        assert!(answer("What can you do?", None).unwrap().contains("Segment the bone"));
        assert!(answer("help!", None).is_some());
        assert!(answer("Help me segment the bone", None).is_none());
        assert!(answer("What can you do with CTChest?", None).is_none());
    }
}
