//! Takes secrets out of text before it is written anywhere.

const HIDDEN: &str = "[hidden]";

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
}
