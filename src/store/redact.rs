//! Takes secrets out of text before it is written anywhere.

use std::sync::{Mutex, PoisonError};

const HIDDEN: &str = "[hidden]";

/// Keys that were in use in this process; what is written to the log goes without them.
static IN_USE: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps a key out of the log from now on. Texts too short to be a key are not hidden: the log would lose its words.
pub fn hide_in_log(key: &str) {
    let mut keys = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    if key.trim().len() >= 8 && !keys.iter().any(|known| known == key) {
        keys.push(key.to_owned());
    }
}

/// `text` as it may stand in the log.
pub fn for_log(text: &str) -> String {
    let keys = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    redact(text, &keys.iter().map(String::as_str).collect::<Vec<_>>())
}

/// `text` with every secret replaced, also where it stands escaped within JSON. Empty secrets are skipped.
pub fn redact(text: &str, secrets: &[&str]) -> String {
    let mut forms = Vec::new();
    for secret in secrets.iter().map(|secret| secret.trim()).filter(|secret| !secret.is_empty()) {
        let quoted = serde_json::Value::from(secret).to_string();
        forms.push(quoted[1..quoted.len() - 1].to_owned());
        forms.push(secret.to_owned());
    }
    // The longest first: a secret that is part of another must not leave the other's rest behind.
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.iter().fold(text.to_owned(), |text, form| text.replace(form.as_str(), HIDDEN))
}

#[cfg(test)]
mod tests {
    use super::redact;

    /// No form of a secret may be left, and nothing else may change.
    #[test]
    fn secrets_go_and_the_rest_stays() {
        assert_eq!(redact("key sk-1234 and sk-12345", &["sk-1234", "sk-12345"]), "key [hidden] and [hidden]");
        assert_eq!(redact(r#"{"key":"a\"b\\c"}"#, &["a\"b\\c"]), r#"{"key":"[hidden]"}"#);
        assert_eq!(redact("unchanged", &["", "  "]), "unchanged");
    }

    /// A key that is in use is hidden in the log; a word that somebody took for a key is not.
    #[test]
    fn the_log_goes_without_keys() {
        super::hide_in_log("key-in-use-0123");
        super::hide_in_log("data");
        assert_eq!(super::for_log("data with key-in-use-0123"), "data with [hidden]");
    }
}
