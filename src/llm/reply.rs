//! An answer while it arrives. Both wire formats write into a [`Draft`]; what is delivered to the caller, what counts as
//! complete, and what a broken answer still holds is decided here once for both.

use serde_json::{Map, Value};

use super::error::{Partial, ReplyFault};
use super::types::{ChatReply, ChatRequest, Delta, Message, StopReason, ToolCall, Usage};

/// A count above this is a slip of the server; without a bound the sums could overflow.
pub(super) const MOST_TOKENS: u64 = 1 << 40;

/// A tool call of which pieces have arrived.
#[derive(Debug, Clone, Default)]
pub(super) struct DraftCall {
    /// The provider's number of the call within the answer, where it gives one.
    pub index: Option<u64>,
    pub id: String,
    pub name: String,
    pub arguments: String,
    /// What came beside the call and must go back with it.
    pub extra: Value,
}

/// What has arrived of an answer.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<DraftCall>,
    pub usage: Option<Usage>,
    pub stop: Option<StopReason>,
    /// The provider said that the stream is over.
    pub ended: bool,
    /// Blocks that the provider wants back unchanged together with the tool calls.
    pub blocks: Vec<Value>,
    /// Pieces that were not yet handed to the caller.
    pub pending: Vec<Delta>,
    /// True once a piece of the answer's text was handed to the caller.
    pub text_shown: bool,
}

impl Draft {
    pub fn push_text(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.text.push_str(piece);
            self.pending.push(Delta::Text(piece.to_owned()));
        }
    }

    pub fn push_reasoning(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.reasoning.push_str(piece);
            self.pending.push(Delta::Reasoning(piece.to_owned()));
        }
    }

    /// The text so far, and this piece of it, was thinking.
    pub fn text_was_thinking(&mut self, piece: &str) {
        if !self.text.is_empty() {
            self.reasoning.push_str(&std::mem::take(&mut self.text));
            self.pending.push(Delta::WasThinking);
        }
        self.push_reasoning(piece);
    }

    /// True when nothing that matters can be missing any more.
    pub fn complete(&self) -> bool {
        self.ended || self.stop.is_some()
    }

    /// The tokens of an answer that failed, when any of it had arrived: what the provider told, or a guess.
    pub fn spent(&self, request: &ChatRequest) -> Option<Usage> {
        let arrived = !self.text.is_empty() || !self.reasoning.is_empty() || !self.calls.is_empty();
        self.usage.or_else(|| arrived.then(|| estimate(request, &self.text, &self.reasoning, &self.calls)))
    }

    pub fn partial(&self) -> Partial {
        Partial { text: self.text.clone(), reasoning: self.reasoning.clone() }
    }

    /// The whole answer, or what is wrong with it and a few words about it.
    pub fn into_reply(self, request: &ChatRequest) -> Result<ChatReply, (ReplyFault, String)> {
        if !self.complete() {
            return Err((ReplyFault::Cut, "no end was told".into()));
        }
        let nothing = self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty();
        if nothing && !matches!(self.stop, Some(StopReason::Length | StopReason::ContentFilter)) {
            return Err((ReplyFault::Empty, "no text, no thinking, no tool call".into()));
        }
        let mut tool_calls = Vec::with_capacity(self.calls.len());
        for call in &self.calls {
            let arguments = arguments(&call.arguments);
            if arguments.is_string() && self.stop == Some(StopReason::Length) {
                return Err((ReplyFault::ToolCallCut, format!("tool `{}`", call.name)));
            }
            // Some servers give no id; the answer to the call must name one all the same.
            let id = match call.id.as_str() {
                "" => format!("call_{}", uuid::Uuid::new_v4().simple()),
                id => id.to_owned(),
            };
            tool_calls.push(ToolCall { id, name: call.name.clone(), arguments });
        }
        let stop = match self.stop {
            // Some providers say `stop` although they call tools.
            Some(StopReason::End) | None if !tool_calls.is_empty() => StopReason::ToolCalls,
            Some(stop) => stop,
            None => StopReason::End,
        };
        let usage = self.usage.unwrap_or_else(|| estimate(request, &self.text, &self.reasoning, &self.calls));
        Ok(ChatReply { text: self.text, reasoning: self.reasoning, tool_calls, usage, stop })
    }
}

/// Reads the collected arguments of a call; a string with what came when they are not JSON.
fn arguments(text: &str) -> Value {
    let text = text.trim();
    match serde_json::from_str::<Value>(text) {
        _ if text.is_empty() => Value::Object(Map::new()),
        Ok(Value::Null) => Value::Object(Map::new()),
        // Some models encode the object twice.
        Ok(Value::String(inner)) => match serde_json::from_str::<Value>(&inner) {
            Ok(object @ Value::Object(_)) => object,
            _ => Value::String(inner),
        },
        Ok(value) => value,
        Err(_) => Value::String(text.to_owned()),
    }
}

/// What a request will cost in tokens before anything was answered: the input as a guess, and no output.
pub(super) fn estimate_input(request: &ChatRequest) -> Usage {
    estimate(request, "", "", &[])
}

/// A guess at the tokens of a call whose provider told none: four ASCII letters or one other character a token.
fn estimate(request: &ChatRequest, text: &str, reasoning: &str, calls: &[DraftCall]) -> Usage {
    let mut input = 0;
    for message in &request.messages {
        input += 4 + match message {
            Message::System { text } | Message::User { text } | Message::Tool { text, .. } => tokens(text),
            Message::Assistant { text, tool_calls, .. } => {
                tokens(text) + tool_calls.iter().map(|call| tokens(&call.arguments.to_string())).sum::<u64>()
            }
            Message::Picture { data, .. } if data.is_empty() => 0,
            Message::Picture { .. } => PICTURE,
        };
    }
    for tool in &request.tools {
        input += tokens(&tool.description) + tokens(&tool.parameters.to_string());
    }
    let reasoning = tokens(reasoning);
    let called: u64 = calls.iter().map(|call| tokens(&call.name) + tokens(&call.arguments)).sum();
    Usage { input, output: tokens(text) + called + reasoning, reasoning, estimated: true, ..Usage::default() }
}

/// Tokens of a picture in an estimate; providers count between 85 and 1,600 for one that fills a screen.
const PICTURE: u64 = 1_200;

fn tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    let other = text.chars().filter(|character| !character.is_ascii()).count() as u64;
    ascii.div_ceil(4) + other
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Arguments come as nothing, null, an object, text in text, or broken; none of them may be lost.
    #[test]
    fn arguments_are_read_in_every_form() {
        assert_eq!(arguments(""), json!({}));
        assert_eq!(arguments("null"), json!({}));
        assert_eq!(arguments(r#"{"a":1}"#), json!({"a": 1}));
        assert_eq!(arguments(r#""{\"a\":1}""#), json!({"a": 1}));
        assert_eq!(arguments(r#"{"a":"#), json!("{\"a\":"));
    }

    /// An estimate is marked as one and is not zero for text in any script.
    #[test]
    fn missing_usage_is_estimated_and_marked() {
        let request =
            ChatRequest { messages: vec![Message::User { text: "四个汉字".into() }], ..ChatRequest::default() };
        let draft = Draft { text: "twelve chars".into(), ended: true, ..Draft::default() };
        let usage = draft.into_reply(&request).unwrap().usage;
        assert_eq!((usage.input, usage.output, usage.estimated), (8, 3, true));
    }
}
