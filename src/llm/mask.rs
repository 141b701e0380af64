//! Takes a key out of a text. A server may echo what it was sent, whole or in part, and an error text is shown, stored
//! and pasted into bug reports: no piece of a key that could help anyone may stay in it.

/// Shortest piece of a key that is masked when only a part of it is echoed.
const PIECE: usize = 10;
const MASK: &str = "[key]";

/// `text` without the key, without longer pieces of it, and without anything that looks like a key of its own.
pub fn mask(text: &str, key: Option<&str>) -> String {
    let mut covered = vec![false; text.len()];
    if let Some(key) = key.map(str::trim).filter(|key| !key.is_empty()) {
        cover(text.as_bytes(), key.as_bytes(), &mut covered);
    }
    cover_shapes(text.as_bytes(), &mut covered);
    let mut masked = String::with_capacity(text.len());
    let mut inside = false;
    for (position, character) in text.char_indices() {
        if covered[position] {
            if !inside {
                masked.push_str(MASK);
            }
        } else {
            masked.push(character);
        }
        inside = covered[position];
    }
    masked
}

/// Marks every place where the key, or a piece of at least [`PIECE`] bytes of it, stands.
fn cover(text: &[u8], key: &[u8], covered: &mut [bool]) {
    let size = key.len().min(PIECE);
    for start in 0..=text.len().saturating_sub(size) {
        let window = &text[start..(start + size).min(text.len())];
        if window.len() == size && key.windows(size).any(|piece| piece == window) {
            covered[start..start + size].fill(true);
        }
    }
}

/// Marks words such as `sk-…` that are keys by their look, whoever's they are.
fn cover_shapes(text: &[u8], covered: &mut [bool]) {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let mut start = 0;
    while start < text.len() {
        let length = text[start..].iter().take_while(|byte| is_part(**byte)).count();
        let word = &text[start..start + length];
        let looks = [&b"sk-"[..], b"gsk_", b"xai-", b"AIza"].iter().any(|prefix| word.starts_with(prefix));
        if looks && length >= 20 {
            covered[start..start + length].fill(true);
        }
        start += length.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::mask;

    /// The key must go, whole and in parts, and the rest must stay readable.
    #[test]
    fn a_key_is_masked_whole_and_in_parts() {
        let key = "sk-test-0123456789abcdefghij";
        assert_eq!(mask(&format!("bad key {key}!"), Some(key)), "bad key [key]!");
        assert_eq!(mask("ends in 56789abcdefghij, sorry", Some(key)), "ends in [key], sorry");
        assert_eq!(mask("key sk-proj-AAAABBBBCCCCDDDDEEEE refused", None), "key [key] refused");
        assert_eq!(mask("Größe – 脑 short sk-x", Some("脑")), "Größe – [key] short sk-x");
        assert_eq!(mask("", Some(key)), "");
    }
}
