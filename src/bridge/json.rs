//! Reads the JSON that Python writes.
//!
//! Slicer's replies come from Python's `json.dumps`, which is looser than JSON in two ways: it writes `NaN`,
//! `Infinity` and `-Infinity` bare, and it escapes half of a surrogate pair when a file name held bytes that are not
//! text. Here those numbers become the strings `"NaN"`, `"Infinity"` and `"-Infinity"` (null would hide which of the
//! three it was, and a statistic that is not a number is something a reader has to see), and a lone surrogate becomes
//! U+FFFD. Everything else is left to `serde_json`, and nothing is rewritten when the reply is good JSON already.

use serde_json::Value;

/// Parses a reply of Python's `json.dumps`.
///
/// # Errors
/// The error of `serde_json` when the text is not JSON even after the two repairs.
pub fn parse_python_json(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    match serde_json::from_slice(bytes) {
        Ok(value) => Ok(value),
        Err(_) => serde_json::from_slice(&repaired(bytes)),
    }
}

/// The text with bare non-finite numbers quoted and lone surrogate escapes replaced.
fn repaired(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 16);
    let mut rest = bytes;
    let mut in_string = false;
    while let Some(&first) = rest.first() {
        let taken = match first {
            b'"' => {
                in_string = !in_string;
                copy(&mut out, rest, 1)
            }
            b'\\' if in_string => escape(&mut out, rest),
            b'N' | b'I' | b'-' if !in_string => number(&mut out, rest),
            _ => copy(&mut out, rest, 1),
        };
        rest = &rest[taken..];
    }
    out
}

fn copy(out: &mut Vec<u8>, from: &[u8], count: usize) -> usize {
    let count = count.min(from.len());
    out.extend_from_slice(&from[..count]);
    count
}

/// Writes a non-finite number as a string; anything else goes through one byte at a time.
fn number(out: &mut Vec<u8>, rest: &[u8]) -> usize {
    for word in ["NaN", "Infinity", "-Infinity"] {
        if rest.starts_with(word.as_bytes()) {
            out.push(b'"');
            out.extend_from_slice(word.as_bytes());
            out.push(b'"');
            return word.len();
        }
    }
    copy(out, rest, 1)
}

/// Writes one escape of a string; a surrogate without its partner becomes U+FFFD.
fn escape(out: &mut Vec<u8>, rest: &[u8]) -> usize {
    let Some(unit) = code_unit(rest) else {
        return copy(out, rest, 2);
    };
    let paired = (0xD800..0xDC00).contains(&unit)
        && rest.get(6..).and_then(code_unit).is_some_and(|low| (0xDC00..0xE000).contains(&low));
    if paired {
        return copy(out, rest, 12);
    }
    if (0xD800..0xE000).contains(&unit) {
        out.extend_from_slice(b"\\ufffd");
        return 6;
    }
    copy(out, rest, 6)
}

/// The number in a `\uXXXX` escape at the start of the text.
fn code_unit(text: &[u8]) -> Option<u32> {
    let hex = text.strip_prefix(b"\\u")?.get(..4)?;
    u32::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_that_are_not_finite_are_named() {
        let value = parse_python_json(br#"{"mean": NaN, "range": [-Infinity, Infinity, -1.5]}"#).unwrap();
        assert_eq!(value, json!({"mean": "NaN", "range": ["-Infinity", "Infinity", -1.5]}));
    }

    #[test]
    fn text_that_only_looks_like_a_number_is_left_alone() {
        let value = parse_python_json(br#"{"NaN": "a \"NaN\" - Infinity \\", "x": NaN}"#).unwrap();
        assert_eq!(value, json!({"NaN": "a \"NaN\" - Infinity \\", "x": "NaN"}));
    }

    #[test]
    fn half_a_surrogate_pair_does_not_lose_the_reply() {
        let value = parse_python_json(br#"["CT_\udcf6.nrrd", "\ud83e\uddb4", "\ud83e"]"#).unwrap();
        assert_eq!(value, json!(["CT_\u{fffd}.nrrd", "\u{1f9b4}", "\u{fffd}"]));
    }

    #[test]
    fn what_is_not_json_is_an_error() {
        assert!(parse_python_json(b"{'status': 'success'}").is_err());
        assert!(parse_python_json(b"").is_err());
    }
}
