//! HTTP/1.1 as Slicer's Web Server speaks it: one request in one write, one reply, then the connection is over.
//!
//! This is written by hand because Slicer's server reads requests in its own way: it finds the length of a body only by
//! the exact spelling `Content-Length:`, it never answers a request whose header comes in two pieces with the whole
//! body in the last one, it closes after every reply without saying so, and some of its replies have neither a length
//! nor the blank line that ends a header. A general client has to be talked out of pooling, lower-case headers and
//! separate writes; this one never had them. It speaks plain HTTP to one server and nothing else.

use tokio::io::{AsyncRead, AsyncReadExt};

/// Longest header of a reply that is read. Slicer sends about 100 bytes.
const MAX_HEAD: usize = 64 * 1024;

/// A reply as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status code, for example 200.
    pub status: u16,
    /// The body; empty when there was none.
    pub body: Vec<u8>,
}

/// Why a reply could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The connection was closed before the whole reply was there.
    #[error("the connection was closed before the reply was complete")]
    Closed,
    /// What came is not a reply of HTTP/1.1 with a plain body.
    #[error("{0}")]
    NotHttp(String),
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// A whole request as the bytes to send in one write.
///
/// `host` is `name:port`, `target` a path with an optional query (already percent-encoded). A GET has no body; for
/// every other method the body must not be empty, because Slicer answers an empty one with a bare 404.
pub fn request(method: &str, host: &str, target: &str, body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAccept: */*\r\n");
    if !body.is_empty() {
        head.push_str("Content-Type: text/plain; charset=utf-8\r\nContent-Length: ");
        head.push_str(&body.len().to_string());
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Percent-encodes one value of a query: everything but letters, digits and `-._~`.
pub fn encode(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Reads one reply: by its length when it states one, else until the server closes.
///
/// # Errors
/// [`ReadError`]; in particular [`ReadError::Closed`] when nothing, or only a part, came.
pub async fn read_reply<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Reply, ReadError> {
    let mut got = Vec::with_capacity(4096);
    let end = loop {
        if let Some(end) = head_end(&got) {
            break end;
        }
        if got.len() > MAX_HEAD {
            return Err(ReadError::NotHttp(format!("the reply has a header of more than {MAX_HEAD} bytes")));
        }
        if stream.read_buf(&mut got).await? == 0 {
            return unfinished(&got);
        }
    };
    let head = parse_head(&got[..end])?;
    let mut body = got.split_off(end);
    match head.length {
        Some(length) => {
            body.reserve(length.saturating_sub(body.len()).min(64 << 20));
            while body.len() < length {
                if stream.read_buf(&mut body).await? == 0 {
                    return Err(ReadError::Closed);
                }
            }
            body.truncate(length);
        }
        None if head.status == 204 => body.clear(),
        None => {
            stream.read_to_end(&mut body).await?;
        }
    }
    Ok(Reply { status: head.status, body })
}

/// The end of the header, with its blank line.
fn head_end(got: &[u8]) -> Option<usize> {
    got.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// A header that the server ended by closing: good when its status line is there (Slicer's reply to OPTIONS).
fn unfinished(got: &[u8]) -> Result<Reply, ReadError> {
    if !got.ends_with(b"\r\n") {
        return Err(ReadError::Closed);
    }
    let head = parse_head(got)?;
    match head.length {
        None | Some(0) => Ok(Reply { status: head.status, body: Vec::new() }),
        Some(_) => Err(ReadError::Closed),
    }
}

struct Head {
    status: u16,
    length: Option<usize>,
}

fn parse_head(bytes: &[u8]) -> Result<Head, ReadError> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let status = first
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1))
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| {
            let shown: String = first.chars().take(60).collect();
            ReadError::NotHttp(format!("the reply is not HTTP; it begins with {shown:?}"))
        })?;
    let mut length = None;
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            let parsed =
                value.parse().map_err(|_| ReadError::NotHttp(format!("the reply states {value:?} as its length")))?;
            length = Some(parsed);
        } else if name.eq_ignore_ascii_case("transfer-encoding") && !value.eq_ignore_ascii_case("identity") {
            return Err(ReadError::NotHttp(format!(
                "the reply is sent as {value:?}, which Slicer's Web Server never does"
            )));
        }
    }
    Ok(Head { status, length })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8]) -> Result<Reply, ReadError> {
        read_reply(&mut &bytes[..]).await
    }

    #[test]
    fn the_length_is_spelled_as_slicer_reads_it() {
        let text = String::from_utf8(request("POST", "127.0.0.1:2016", "/slicer/exec", b"x = 1")).unwrap();
        assert!(text.contains("\r\nContent-Length: 5\r\n"), "{text}");
        assert!(text.contains("\r\nConnection: close\r\n"), "{text}");
        assert!(!text.contains("Expect"), "{text}");
        assert!(text.ends_with("\r\n\r\nx = 1"), "{text}");
    }

    #[test]
    fn a_get_states_no_length() {
        let text = String::from_utf8(request("GET", "h:1", "/slicer/mrml/names", b"")).unwrap();
        assert!(!text.to_lowercase().contains("content-length"), "{text}");
    }

    #[test]
    fn query_values_survive_any_name() {
        assert_eq!(encode("CT chest/1+2&größe"), "CT%20chest%2F1%2B2%26gr%C3%B6%C3%9Fe");
    }

    #[tokio::test]
    async fn slicers_replies_without_a_length_are_read() {
        let bare = read(b"HTTP/1.1 404 Not Found\r\n\r\n").await.unwrap();
        assert_eq!((bare.status, bare.body.len()), (404, 0));
        let options = read(b"HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n").await.unwrap();
        assert_eq!((options.status, options.body.len()), (204, 0));
    }

    #[tokio::test]
    async fn a_reply_that_breaks_off_is_not_taken_for_a_whole_one() {
        for part in [
            &b""[..],
            b"HTTP/1.1 20",
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[1, 2",
        ] {
            assert!(matches!(read(part).await, Err(ReadError::Closed)), "{part:?}");
        }
    }

    #[tokio::test]
    async fn another_kind_of_server_is_named_as_such() {
        assert!(matches!(read(b"SSH-2.0-x\r\n\r\n").await, Err(ReadError::NotHttp(_))));
        let chunked = read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").await;
        assert!(matches!(chunked, Err(ReadError::NotHttp(_))));
    }
}
