//! Cuts a byte stream into server-sent events, for both wire formats. Our own because a reply is not always one: the
//! first bytes decide whether it is an event stream, a JSON body or a web page, and a last event without its blank line
//! has to be told apart from a whole one. Works on bytes, so a character that is split between chunks never matters.

/// One event: the name of its `event:` line (empty when there was none) and its data lines joined by line feeds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub name: String,
    pub data: String,
}

/// Collects bytes and gives out whole events.
#[derive(Debug, Default)]
pub(super) struct Reader {
    line: Vec<u8>,
    /// The last byte was a CR: a LF that follows belongs to the same line end.
    after_cr: bool,
    first_line_done: bool,
    name: String,
    data: Vec<u8>,
    has_data: bool,
}

impl Reader {
    /// Takes the next bytes and appends the events that they complete.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<Event>) {
        for &byte in bytes {
            if byte == b'\n' && self.after_cr {
                self.after_cr = false;
                continue;
            }
            self.after_cr = byte == b'\r';
            if byte == b'\n' || byte == b'\r' {
                self.end_line(events);
            } else {
                self.line.push(byte);
            }
        }
    }

    /// The stream is over: an event that only lacks its blank line still counts, the reader of its data judges it.
    pub fn finish(mut self, events: &mut Vec<Event>) {
        if !self.line.is_empty() {
            self.end_line(events);
        }
        self.end_event(events);
    }

    fn end_line(&mut self, events: &mut Vec<Event>) {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !self.first_line_done {
            self.first_line_done = true;
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            self.end_event(events);
            return;
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            // A comment (empty field name), `id`, `retry` and unknown fields carry nothing for us.
            _ => {}
        }
    }

    fn end_event(&mut self, events: &mut Vec<Event>) {
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.has_data) {
            events.push(Event { name, data: String::from_utf8_lossy(&data).into_owned() });
        }
    }
}

/// What a body is, judged from its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Not enough bytes yet.
    Open,
    Events,
    Json,
    /// A web page: some proxy or sign-in page answered instead of the provider.
    Page,
    /// Compressed although that was not asked for.
    Packed,
}

/// Judges a body by its first character that is not white space; a byte order mark is skipped.
pub(super) fn shape(bytes: &[u8]) -> Shape {
    let mark = b"\xEF\xBB\xBF";
    if bytes.len() < mark.len() && mark.starts_with(bytes) {
        return Shape::Open;
    }
    if bytes.first() == Some(&0x1F) {
        return Shape::Packed;
    }
    let bytes = bytes.strip_prefix(mark).unwrap_or(bytes);
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => Shape::Open,
        Some(b'{' | b'[') => Shape::Json,
        Some(b'<') => Shape::Page,
        Some(_) => Shape::Events,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], size: usize) -> Vec<Event> {
        let (mut reader, mut events) = (Reader::default(), Vec::new());
        for chunk in bytes.chunks(size) {
            reader.push(chunk, &mut events);
        }
        reader.finish(&mut events);
        events
    }

    fn event(name: &str, data: &str) -> Event {
        Event { name: name.into(), data: data.into() }
    }

    /// Every line end, comments, multi-line data and split characters read the same, however the bytes are cut.
    #[test]
    fn cuts_do_not_matter() {
        let stream = "\u{FEFF}: hello\r\rdata: Größe\r\ndata:  脑\r\n\r\n:c\nevent: error\ndata\nid: 7\n\ndata: {🧠}\n";
        let expected = [event("", "Größe\n 脑"), event("error", ""), event("", "{🧠}")];
        for size in 1..stream.len() {
            assert_eq!(read(stream.as_bytes(), size), expected, "cut every {size} bytes");
        }
    }

    /// An event without a data line is none, and its name does not stick to the next one.
    #[test]
    fn an_event_needs_data() {
        assert_eq!(read(b"event: ping\n\ndata: x\n\n", 64), [event("", "x")]);
        assert!(read(b"", 1).is_empty());
    }

    /// A proxy that ignores `stream` answers with JSON, a sign-in page with HTML: the body decides, not the header.
    #[test]
    fn the_first_bytes_tell_what_a_body_is() {
        assert_eq!(shape(b""), Shape::Open);
        assert_eq!(shape(b"\xEF\xBB"), Shape::Open);
        assert_eq!(shape(b"\r\n "), Shape::Open);
        assert_eq!(shape(b"\xEF\xBB\xBFdata: x"), Shape::Events);
        assert_eq!(shape(b": comment"), Shape::Events);
        assert_eq!(shape(b" [1]"), Shape::Json);
        assert_eq!(shape(b"<!doctype html>"), Shape::Page);
    }
}
