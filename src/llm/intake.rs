//! Takes the bytes of a reply as they come, finds out what kind of body it is, and feeds the decoder of the wire format.
//! The body decides, not its content type: proxies stream with the wrong type and answer in JSON where events were asked.

use serde_json::Value;

use super::catalogue::Wire;
use super::error::{LlmError, Partial, ReplyFault};
use super::http_error::{self, Party};
use super::reply::Draft;
use super::sse::{self, Event, Shape};
use super::{anthropic, openai};

/// Names of events that only keep a connection open, whatever text they carry.
const KEEP_ALIVE: &[&str] = &["ping", "keepalive", "keep-alive", "heartbeat"];

/// What is wrong with a body that arrives.
pub(super) enum Fault {
    /// The server told an error.
    Told(Value),
    NotAReply(String),
    Cut,
}

impl Fault {
    /// The same as the caller is told it.
    pub fn into_error(self, party: &Party) -> LlmError {
        match self {
            Self::Told(error) => http_error::from_stream(party, &error),
            Self::NotAReply(text) => not_a_reply(party.clean(&text)),
            Self::Cut => LlmError::BadReply {
                fault: ReplyFault::Cut,
                detail: "the JSON is not whole".into(),
                partial: Box::default(),
            },
        }
    }
}

/// The error for a body that no model server gives.
pub(super) fn not_a_reply(detail: String) -> LlmError {
    LlmError::BadReply { fault: ReplyFault::NotAReply, detail, partial: Box::default() }
}

enum Decoder {
    Openai(openai::Decoder),
    Anthropic(anthropic::Decoder),
}

impl Decoder {
    fn value(&mut self, value: &Value, draft: &mut Draft) -> Result<(), Fault> {
        let read = match self {
            Self::Openai(decoder) => decoder.chunk(value, draft),
            Self::Anthropic(decoder) => decoder.event(value, draft),
        };
        read.map_err(Fault::Told)
    }

    fn finish(&mut self, draft: &mut Draft) {
        match self {
            Self::Openai(decoder) => decoder.finish(draft),
            Self::Anthropic(decoder) => decoder.finish(draft),
        }
    }
}

/// Takes the bytes of a body, finds out what it is, and feeds the decoder.
pub(super) struct Intake {
    decoder: Decoder,
    shape: Shape,
    /// Bytes whose shape is open, or a JSON body that is not whole yet.
    held: Vec<u8>,
    reader: sse::Reader,
}

impl Intake {
    pub fn new(wire: Wire) -> Self {
        let decoder = match wire {
            Wire::Anthropic => Decoder::Anthropic(anthropic::Decoder::default()),
            _ => Decoder::Openai(openai::Decoder::default()),
        };
        Self { decoder, shape: Shape::Open, held: Vec::new(), reader: sse::Reader::default() }
    }

    pub fn push(&mut self, bytes: &[u8], draft: &mut Draft) -> Result<(), Fault> {
        if self.shape == Shape::Events {
            return self.events(bytes, draft);
        }
        self.held.extend_from_slice(bytes);
        self.shape = sse::shape(&self.held);
        if self.shape == Shape::Events {
            let held = std::mem::take(&mut self.held);
            return self.events(&held, draft);
        }
        Ok(())
    }

    fn events(&mut self, bytes: &[u8], draft: &mut Draft) -> Result<(), Fault> {
        let mut events = Vec::new();
        self.reader.push(bytes, &mut events);
        for event in events {
            if draft.ended {
                break;
            }
            self.event(&event, draft)?;
        }
        Ok(())
    }

    fn event(&mut self, event: &Event, draft: &mut Draft) -> Result<(), Fault> {
        let data = event.data.trim();
        if data == "[DONE]" {
            draft.ended = true;
            return Ok(());
        }
        if data.is_empty() || (KEEP_ALIVE.contains(&event.name.as_str()) && !data.starts_with('{')) {
            return Ok(());
        }
        match serde_json::from_str::<Value>(data) {
            Ok(value) if event.name == "error" && value.get("error").is_none() => Err(Fault::Told(value)),
            Ok(mut value) => {
                // Some servers of the Messages format leave the type to the name of the event.
                let untyped = value.as_object_mut().filter(|fields| !fields.contains_key("type"));
                if let (Decoder::Anthropic(_), Some(fields)) = (&self.decoder, untyped)
                    && !event.name.is_empty()
                {
                    fields.insert("type".into(), Value::from(event.name.as_str()));
                }
                self.decoder.value(&value, draft)
            }
            Err(_) if event.name == "error" => Err(Fault::Told(Value::String(data.to_owned()))),
            Err(_) => Err(Fault::NotAReply(data.to_owned())),
        }
    }

    pub fn finish(mut self, draft: &mut Draft) -> Result<(), Fault> {
        let read = match self.shape {
            Shape::Open => Ok(()),
            Shape::Page => Err(Fault::NotAReply("a web page came in its place.".into())),
            Shape::Packed => Err(Fault::NotAReply("it is compressed, which was not asked for.".into())),
            Shape::Json => self.json(draft),
            Shape::Events => {
                let mut rest = Vec::new();
                std::mem::take(&mut self.reader).finish(&mut rest);
                // The last event may have been cut: what cannot be read then is missing, not wrong.
                let mut last = Ok(());
                for event in rest {
                    if draft.ended || last.is_err() {
                        break;
                    }
                    last = self.event(&event, draft);
                }
                if matches!(last, Err(Fault::NotAReply(_))) { Ok(()) } else { last }
            }
        };
        self.decoder.finish(draft);
        read
    }

    /// A body that was not streamed: one JSON value, or one a line.
    fn json(&mut self, draft: &mut Draft) -> Result<(), Fault> {
        let text = String::from_utf8_lossy(&self.held).into_owned();
        let text = text.trim_start_matches('\u{FEFF}');
        if let Ok(value) = serde_json::from_str::<Value>(text) {
            self.decoder.value(&value, draft)?;
        } else {
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                let value = serde_json::from_str::<Value>(line).map_err(|_| Fault::Cut)?;
                self.decoder.value(&value, draft)?;
            }
        }
        let said = draft.complete() || draft.usage.is_some() || draft.partial() != Partial::default();
        if said || !draft.calls.is_empty() { Ok(()) } else { Err(Fault::NotAReply(text.to_owned())) }
    }
}
