//! Text that shows one thing to a reader and another to Python: looked for before anything is parsed.

use super::Raw;
use super::verdict::Capability;

const GAP: &str = "A very long gap pushes part of the code out of sight.";

fn finding(start: usize, end: usize, why: &str, instead: &str) -> Raw {
    Raw {
        start,
        end,
        capability: Capability::Syntax,
        grave: true,
        why: Some(why.to_owned()),
        instead: Some(instead.to_owned()),
        scope: None,
        what: None,
    }
}

/// Code that cannot be checked at all.
pub(super) fn unreadable(at: usize, why: String) -> Raw {
    finding(at, at, &why, "Write the code again, complete and in plain Python 3.")
}

/// Code that is longer than anybody reads.
pub(super) fn too_long() -> Raw {
    finding(
        0,
        0,
        "The code is too long to be checked, and too long for a person to read.",
        "Do the work in several shorter programs; put large data into a node or a file.",
    )
}

/// The text of `code`, or why it has none that Python and a reader agree on.
pub(super) fn decode(code: &[u8]) -> Result<&str, Box<Raw>> {
    // One byte order mark at the start is what some editors write; Python skips it.
    let body = code.strip_prefix(b"\xef\xbb\xbf").unwrap_or(code);
    std::str::from_utf8(body)
        .map_err(|_| Box::new(finding(0, 0, "The code is not UTF-8 text.", "Send the code as UTF-8.")))
}

/// Everything in `code` that hides code from a reader.
pub(super) fn look(code: &str) -> Vec<Raw> {
    let mut found = Vec::new();
    if let Some((start, end)) = foreign_encoding(code) {
        found.push(finding(
            start,
            end,
            "The first lines tell Python to decode the code in another way, which can hide code in comments.",
            "Leave out the encoding line; the code is UTF-8.",
        ));
    }
    let bytes = code.as_bytes();
    let lone_return = (0..bytes.len()).find(|&i| bytes[i] == b'\r' && bytes.get(i + 1) != Some(&b'\n'));
    if let Some(at) = lone_return {
        found.push(finding(
            at,
            at + 1,
            "A carriage return in the middle of a line can hide code from a reader.",
            "End lines with a line feed.",
        ));
    }
    // One finding is enough: the first of each kind.
    if let Some((at, c)) = code.char_indices().find(|(_, c)| is_hidden(*c)) {
        found.push(finding(
            at,
            at + c.len_utf8(),
            "The code contains invisible characters that can make it read differently from how it runs.",
            "Use only visible characters, spaces and line ends.",
        ));
    }
    if let Some(at) = blank_run(code) {
        found.push(finding(at, at, GAP, "Write the code without large gaps."));
    }
    found
}

/// Control characters other than tab and line ends, and marks that reorder or hide text.
fn is_hidden(c: char) -> bool {
    matches!(c, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\x7f'..='\u{9f}')
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Whether a finding of `look` says that reading the text on is of no use.
pub(super) fn is_gap(raw: &Raw) -> bool {
    raw.why.as_deref() == Some(GAP)
}

/// Where more than 60 empty lines, or 200 blanks inside a line, are followed by more code.
fn blank_run(code: &str) -> Option<usize> {
    let (mut start, mut lines, mut blanks) = (0usize, 0usize, 0usize);
    let bytes = code.as_bytes();
    for (at, c) in code.char_indices() {
        match c {
            // A line that only goes on is as empty as one without anything.
            '\\' if matches!(bytes.get(at + 1), Some(b'\n' | b'\r')) => {}
            '\n' => {
                lines += 1;
                blanks = 0;
            }
            ' ' | '\t' | '\r' => blanks += 1,
            _ => {
                if lines > 60 || blanks > 200 {
                    return Some(start);
                }
                (lines, blanks, start) = (0, 0, at);
            }
        }
    }
    // Empty lines at the end hide nothing, except from the grammar, which takes long over lines that only go on.
    (lines > 60 && code.trim_end().ends_with('\\')).then_some(start)
}

/// An encoding line (PEP 263) that does not say UTF-8.
fn foreign_encoding(code: &str) -> Option<(usize, usize)> {
    let mut start = 0;
    for line in code.split_inclusive('\n').take(2) {
        let trimmed = line.trim_start_matches([' ', '\t', '\x0c']);
        if let Some(comment) = trimmed.strip_prefix('#')
            && let Some(name) = encoding_in(comment)
        {
            let plain = name.to_ascii_lowercase().replace('_', "-");
            let harmless = matches!(plain.as_str(), "utf-8" | "utf8" | "ascii" | "us-ascii");
            return (!harmless).then_some((start, start + line.trim_end().len()));
        }
        // The second line counts only if the first is empty or a comment; looking anyway is the safe side.
        start += line.len();
    }
    None
}

fn encoding_in(comment: &str) -> Option<&str> {
    let mut rest = comment;
    while let Some(at) = rest.find("coding") {
        rest = &rest[at + "coding".len()..];
        if let Some(value) = rest.strip_prefix([':', '=']) {
            let value = value.trim_start_matches([' ', '\t']);
            let end = value
                .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
                .unwrap_or(value.len());
            if end > 0 {
                return Some(&value[..end]);
            }
        }
    }
    None
}

/// `path` in one form: `/` between parts, lower case, `.` and `..` taken out as far as the text allows.
fn parts_of(path: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for part in path.replace('\\', "/").to_ascii_lowercase().split('/') {
        match part {
            "" | "." if !parts.is_empty() => {}
            ".." if parts.len() > 1 => {
                parts.pop();
            }
            part => parts.push(part.to_owned()),
        }
    }
    parts
}

/// Whether `host` is an IPv4 address that is not of this computer or a network of one's own.
pub(super) fn is_public_number(host: &str) -> bool {
    host.parse::<std::net::Ipv4Addr>()
        .is_ok_and(|ip| !(ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_unspecified()))
}

/// Whether `path` is one where keys and passwords are kept.
pub(super) fn is_secret_path(path: &str) -> bool {
    const PARTS: &[&str] = &[
        ".ssh",
        ".aws",
        ".gnupg",
        ".kube",
        ".docker",
        ".netrc",
        ".env",
        ".git-credentials",
        ".pypirc",
        "id_rsa",
        "id_ed25519",
        "shadow",
        "keychains",
        ".password-store",
    ];
    parts_of(path).iter().any(|part| PARTS.contains(&part.as_str()))
}

/// Whether `path` lies where the operating system or other programs keep their own files: no task of a person needs
/// them.
pub(super) fn is_system_path(path: &str) -> bool {
    const ROOTS: &[&str] = &[
        "/etc",
        "/proc",
        "/sys",
        "/dev",
        "/boot",
        "/root",
        "/bin",
        "/sbin",
        "/usr",
        "/lib",
        "/lib64",
        "/var",
        "/system",
        "/library",
        "/private",
        "c:/windows",
        "c:/program files",
        "c:/program files (x86)",
        "c:/programdata",
    ];
    const PARTS: &[&str] = &[".bashrc", ".bash_profile", ".profile", ".zshrc", ".config", "appdata", ".slicerrc.py"];
    let parts = parts_of(path);
    let joined = parts.join("/");
    ROOTS.iter().any(|root| joined.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
        || parts.iter().any(|part| PARTS.contains(&part.as_str()))
}
