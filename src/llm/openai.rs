//! The chat-completions wire format: how a request is written, and how the many dialects of its stream are read.

use serde_json::{Value, json};

use super::catalogue::{Model, Provider};
use super::client::Memory;
use super::reply::{Draft, DraftCall};
use super::types::{ChatRequest, Message, StopReason, Usage};

/// Writes the body of a request. Options that this endpoint refused before are left out.
pub(super) fn body(
    provider: &Provider,
    model: Option<&Model>,
    id: &str,
    request: &ChatRequest,
    memory: &Memory,
) -> Value {
    let quirks = &provider.quirks;
    let back = quirks.reasoning_back && !memory.refused("reasoning_content");
    let messages: Vec<Value> = request.messages.iter().map(|message| write_message(message, back)).collect();
    let mut body = json!({ "model": id, "messages": messages, "stream": true });
    if quirks.stream_options && !memory.refused("stream_options") {
        body["stream_options"] = json!({ "include_usage": true });
    }
    if let Some(temperature) = request.temperature
        && !model.is_some_and(|model| model.fixed_temperature)
        && !memory.refused("temperature")
    {
        body["temperature"] = json!(temperature);
    }
    if let Some(limit) = request.max_output {
        let fields = [quirks.max_tokens_field.as_str(), "max_completion_tokens", "max_tokens"];
        if let Some(field) = fields.iter().find(|field| !memory.refused(field)) {
            body[*field] = json!(limit);
        }
    }
    if !request.tools.is_empty() && !request.withhold_tools {
        body["tools"] = request
            .tools
            .iter()
            .map(|tool| {
                json!({ "type": "function", "function": {
                    "name": tool.name, "description": tool.description, "parameters": tool.parameters } })
            })
            .collect();
    }
    body
}

fn write_message(message: &Message, reasoning_back: bool) -> Value {
    match message {
        Message::System { text } => json!({ "role": "system", "content": text }),
        Message::User { text } => json!({ "role": "user", "content": text }),
        Message::Tool { call, text, .. } => json!({ "role": "tool", "tool_call_id": call, "content": text }),
        Message::Assistant { text, reasoning, tool_calls } => {
            let mut message = json!({ "role": "assistant", "content": text });
            if let Some(reasoning) = reasoning.as_ref().filter(|text| reasoning_back && !text.is_empty()) {
                message["reasoning_content"] = json!(reasoning);
            }
            if !tool_calls.is_empty() {
                if text.is_empty() {
                    message["content"] = Value::Null;
                }
                message["tool_calls"] = tool_calls
                    .iter()
                    .map(|call| {
                        json!({ "id": call.id, "type": "function", "function": {
                            "name": call.name, "arguments": arguments_text(&call.arguments) } })
                    })
                    .collect();
            }
            message
        }
    }
}

/// Arguments as JSON text. What was not JSON when it came is wrapped, because servers refuse anything but an object.
fn arguments_text(arguments: &Value) -> String {
    match arguments {
        Value::Object(_) => arguments.to_string(),
        other => json!({ "unreadable": other }).to_string(),
    }
}

/// Reads chunks of one answer.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    think: Think,
}

impl Decoder {
    /// Reads one chunk, or a whole reply that was not streamed.
    ///
    /// # Errors
    /// The error object that came in place of a chunk.
    pub fn chunk(&mut self, chunk: &Value, draft: &mut Draft) -> Result<(), Value> {
        let chunk = chunk.as_array().and_then(|list| list.first()).unwrap_or(chunk);
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(chunk.clone());
        }
        if chunk.get("message").is_some_and(Value::is_object) && chunk.get("done").is_some() {
            self.ollama(chunk, draft);
            return Ok(());
        }
        let choice = chunk.pointer("/choices/0");
        let usages = [chunk.get("usage"), chunk.pointer("/x_groq/usage"), choice.and_then(|c| c.get("usage"))];
        if let Some(usage) = usages.into_iter().flatten().find(|usage| usage.is_object()) {
            draft.usage = Some(read_usage(usage));
        }
        let Some(choice) = choice else { return Ok(()) };
        for part in ["delta", "message"] {
            if let Some(part) = choice.get(part).filter(|part| part.is_object()) {
                self.delta(part, draft);
            }
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            let native = choice.get("native_finish_reason").and_then(Value::as_str);
            draft.stop = Some(stop(reason, native)?);
        }
        Ok(())
    }

    /// No more comes: what was held back as a possible tag is text after all.
    pub fn finish(&mut self, draft: &mut Draft) {
        self.think.finish(draft);
    }

    fn delta(&mut self, delta: &Value, draft: &mut Draft) {
        let reasoning = ["reasoning_content", "reasoning"].iter().filter_map(|name| delta.get(*name)?.as_str());
        draft.push_reasoning(reasoning.into_iter().find(|text| !text.is_empty()).unwrap_or_default());
        match delta.get("content") {
            Some(Value::String(text)) => self.think.push(text, draft),
            Some(Value::Array(parts)) => parts.iter().for_each(|part| content_part(part, draft)),
            _ => {}
        }
        // A refusal comes in a field of its own; a person must see it like any answer.
        draft.push_text(delta.get("refusal").and_then(Value::as_str).unwrap_or_default());
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            call_piece(call, call.get("function").unwrap_or(&Value::Null), draft);
        }
        if let Some(function) = delta.get("function_call").filter(|function| function.is_object()) {
            call_piece(&json!({ "index": 0 }), function, draft);
        }
    }

    /// A line of Ollama's own format, which some set-ups answer with.
    fn ollama(&mut self, line: &Value, draft: &mut Draft) {
        let message = &line["message"];
        draft.push_reasoning(message["thinking"].as_str().unwrap_or_default());
        self.think.push(message["content"].as_str().unwrap_or_default(), draft);
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            draft.calls.push(DraftCall::default());
            fill(draft.calls.last_mut(), "", function);
        }
        if line["done"].as_bool() == Some(true) {
            let length = line["done_reason"].as_str() == Some("length");
            draft.stop = Some(if length { StopReason::Length } else { StopReason::End });
            let count = |name: &str| line[name].as_u64().unwrap_or(0);
            let usage = Usage { input: count("prompt_eval_count"), output: count("eval_count"), ..Usage::default() };
            draft.usage = Some(usage);
        }
    }
}

fn content_part(part: &Value, draft: &mut Draft) {
    match (part.get("text"), part.get("thinking")) {
        (Some(Value::String(text)), _) => draft.push_text(text),
        (_, Some(Value::String(text))) => draft.push_reasoning(text),
        (_, Some(Value::Array(pieces))) => {
            pieces.iter().filter_map(|piece| piece.get("text")?.as_str()).for_each(|text| draft.push_reasoning(text));
        }
        _ => {}
    }
}

/// Finds the call that a piece belongs to, or starts a new one, and adds the piece to it.
fn call_piece(piece: &Value, function: &Value, draft: &mut Draft) {
    let index = piece.get("index").and_then(Value::as_u64);
    let id = piece.get("id").and_then(Value::as_str).unwrap_or_default();
    let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
    // The last call of this number: some servers number every call 0 and tell them apart by id alone.
    let known = match index {
        Some(index) => draft.calls.iter().rposition(|call| call.index == Some(index)),
        None if !id.is_empty() => draft.calls.iter().rposition(|call| call.id == id),
        None => draft.calls.len().checked_sub(1),
    };
    let known = known.filter(|position| {
        let call = &draft.calls[*position];
        let other_id = !id.is_empty() && !call.id.is_empty() && call.id != id;
        // Without number and id, a name after whole arguments can only be the next call.
        let next = index.is_none() && id.is_empty() && !name.is_empty() && is_whole(&call.arguments);
        !other_id && !next
    });
    let position = known.unwrap_or_else(|| {
        draft.calls.push(DraftCall { index, ..DraftCall::default() });
        draft.calls.len() - 1
    });
    fill(draft.calls.get_mut(position), id, function);
}

fn fill(call: Option<&mut DraftCall>, id: &str, function: &Value) {
    let Some(call) = call else { return };
    // Ids and names are set, not appended: several servers repeat them in every piece.
    if !id.is_empty() {
        call.id = id.to_owned();
    }
    if let Some(name) = function.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()) {
        call.name = name.to_owned();
    }
    match function.get("arguments") {
        Some(Value::String(piece)) => call.arguments.push_str(piece),
        Some(Value::Null) | None => {}
        Some(whole) => call.arguments = whole.to_string(),
    }
}

fn is_whole(arguments: &str) -> bool {
    serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object())
}

fn stop(reason: &str, native: Option<&str>) -> Result<StopReason, Value> {
    let broken = ["error", "network_error", "insufficient_system_resource"];
    if let Some(why) = native.into_iter().chain([reason]).find(|why| broken.contains(why)) {
        return Err(json!({ "error": { "message": format!("the model's server gave up ({why})"), "code": 502 } }));
    }
    Ok(match reason {
        "tool_calls" | "function_call" => StopReason::ToolCalls,
        "length" | "max_tokens" => StopReason::Length,
        "content_filter" | "safety" => StopReason::ContentFilter,
        _ => StopReason::End,
    })
}

fn read_usage(usage: &Value) -> Usage {
    let number = |path: &str| usage.pointer(path).and_then(Value::as_u64);
    let prompt = number("/prompt_tokens").unwrap_or(0);
    let answer = number("/completion_tokens").unwrap_or(0);
    let cached = number("/prompt_tokens_details/cached_tokens")
        .or_else(|| number("/prompt_cache_hit_tokens"))
        .or_else(|| number("/cached_tokens"))
        .unwrap_or(0)
        .min(prompt);
    // Some providers leave thinking out of the completion but not out of the total: it is billed as output.
    let unseen = number("/total_tokens").unwrap_or(0).saturating_sub(prompt + answer);
    let reasoning = number("/completion_tokens_details/reasoning_tokens").unwrap_or(0).max(unseen);
    Usage { input: prompt - cached, cached, output: answer + unseen, reasoning, ..Usage::default() }
}

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Splits thinking off that some servers leave in the text between tags, also when a tag is cut in two.
#[derive(Debug, Default)]
enum Think {
    /// Nothing but white space or a beginning of the opening tag has come, and is held here.
    #[default]
    Undecided,
    Held(String),
    /// Within the tags; a possible beginning of the closing tag is held.
    Inside(String),
    /// After the closing tag: blank lines before the answer are dropped.
    Trimming,
    /// An answer without tags, or the rest of one with them.
    Plain,
}

impl Think {
    fn push(&mut self, piece: &str, draft: &mut Draft) {
        if piece.is_empty() {
            return;
        }
        match std::mem::replace(self, Self::Plain) {
            Self::Undecided => self.decide(piece.to_owned(), draft),
            Self::Held(held) => self.decide(held + piece, draft),
            Self::Inside(held) => self.inside(held + piece, draft),
            Self::Trimming => {
                let rest = piece.trim_start();
                draft.push_text(rest);
                if rest.is_empty() {
                    *self = Self::Trimming;
                }
            }
            Self::Plain => draft.push_text(piece),
        }
    }

    fn decide(&mut self, held: String, draft: &mut Draft) {
        let start = held.trim_start();
        if let Some(rest) = start.strip_prefix(OPEN) {
            let rest = rest.to_owned();
            self.inside(rest, draft);
        } else if OPEN.starts_with(start) {
            *self = Self::Held(held);
        } else {
            draft.push_text(&held);
            *self = Self::Plain;
        }
    }

    fn inside(&mut self, held: String, draft: &mut Draft) {
        if let Some((thought, rest)) = held.split_once(CLOSE) {
            draft.push_reasoning(thought);
            *self = Self::Trimming;
            self.push(rest, draft);
            return;
        }
        let keep = (1..CLOSE.len()).rev().find(|length| held.ends_with(&CLOSE[..*length])).unwrap_or(0);
        let (thought, tail) = held.split_at(held.len() - keep);
        draft.push_reasoning(thought);
        *self = Self::Inside(tail.to_owned());
    }

    fn finish(&mut self, draft: &mut Draft) {
        match std::mem::replace(self, Self::Plain) {
            Self::Held(held) => draft.push_text(&held),
            Self::Inside(held) => draft.push_reasoning(&held),
            _ => {}
        }
    }
}
