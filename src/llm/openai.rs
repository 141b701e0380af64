//! The chat-completions wire format: how a request is written, and how the many dialects of its stream are read.

use serde_json::{Value, json};

use super::catalogue::{Model, Provider};
use super::memory::Memory;
use super::reply::{Draft, DraftCall, MOST_TOKENS};
use super::types::{ChatRequest, Effort, Message, StopReason, ToolCall, Usage};

/// Writes the body of a request. Options that this endpoint refused before are left out.
pub(super) fn body(
    provider: &Provider,
    model: Option<&Model>,
    id: &str,
    request: &ChatRequest,
    memory: &Memory,
) -> Value {
    let quirks = &provider.quirks;
    let writer = Writer {
        reasoning_back: quirks.reasoning_back && !memory.refused("reasoning_content"),
        sees: model.is_none_or(|model| model.vision) && !memory.refused("image_url"),
        memory,
    };
    let mut body = json!({ "model": id, "messages": writer.messages(&request.messages), "stream": true });
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
    if let Some(effort) = request.effort.filter(|_| model.is_none_or(|model| model.thinks))
        && !memory.refused(&quirks.effort)
    {
        match quirks.effort.as_str() {
            "" => {}
            "reasoning" => body["reasoning"] = json!({ "effort": effort.name() }),
            "enable_thinking" => body["enable_thinking"] = json!(effort != Effort::Low),
            field => body[field] = json!(effort.name()),
        }
    }
    if !request.tools.is_empty() && !request.withhold_tools && !memory.refused("tools") {
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

/// What must be known to write messages for one endpoint.
struct Writer<'a> {
    reasoning_back: bool,
    sees: bool,
    memory: &'a Memory,
}

impl Writer<'_> {
    /// The messages; pictures and the person's words beside them become one message.
    fn messages(&self, messages: &[Message]) -> Vec<Value> {
        let mut written: Vec<Value> = Vec::with_capacity(messages.len());
        let mut after_picture = false;
        for message in messages {
            let is_picture = matches!(message, Message::Picture { .. });
            let joins = is_picture || (after_picture && matches!(message, Message::User { .. }));
            let next = self.message(message);
            match written.last_mut() {
                Some(last) if joins && last["role"] == "user" => join(last, next),
                _ => written.push(next),
            }
            after_picture = is_picture;
        }
        written
    }

    fn message(&self, message: &Message) -> Value {
        match message {
            Message::System { text } => json!({ "role": "system", "content": text }),
            Message::User { text } => json!({ "role": "user", "content": text }),
            Message::Picture { about, mime, data } if self.sees && !data.is_empty() => {
                json!({ "role": "user", "content": [
                { "type": "text", "text": format!("Picture: {about}") },
                { "type": "image_url", "image_url": { "url": format!("data:{mime};base64,{data}") } }] })
            }
            Message::Picture { about, .. } => json!({ "role": "user", "content": unseen(about) }),
            Message::Tool { call, text, .. } => json!({ "role": "tool", "tool_call_id": call, "content": text }),
            Message::Assistant { text, reasoning, tool_calls } => {
                self.assistant(text, reasoning.as_deref(), tool_calls)
            }
        }
    }

    fn assistant(&self, text: &str, reasoning: Option<&str>, tool_calls: &[ToolCall]) -> Value {
        let mut message = json!({ "role": "assistant", "content": text });
        if let Some(reasoning) = reasoning.filter(|text| self.reasoning_back && !text.is_empty()) {
            message["reasoning_content"] = json!(reasoning);
        }
        if tool_calls.is_empty() {
            return message;
        }
        if text.is_empty() {
            message["content"] = Value::Null;
        }
        // What came with the first call of an answer belongs to all of it: `{id: extra}` for each call that had some.
        let kept = tool_calls.first().map(|call| self.memory.blocks(&call.id)).unwrap_or_default();
        let written = tool_calls.iter().map(|call| {
            let mut written = json!({ "id": call.id, "type": "function", "function": {
                "name": call.name, "arguments": arguments_text(&call.arguments) } });
            if let Some(extra) = kept.iter().find_map(|block| block.get(&call.id)) {
                written["extra_content"] = extra.clone();
            }
            written
        });
        message["tool_calls"] = written.collect();
        message
    }
}

/// Adds the content of a message of the person to the one before it.
fn join(last: &mut Value, next: Value) {
    let parts = |content: Value| match content {
        Value::Array(parts) => parts,
        text => vec![json!({ "type": "text", "text": text })],
    };
    let mut all = parts(last["content"].take());
    all.extend(parts(next["content"].clone()));
    last["content"] = Value::Array(all);
}

/// What a model reads that cannot see.
pub(super) fn unseen(about: &str) -> String {
    format!("[There is a picture here, which you cannot see: {about}]")
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
        // Only the first answer counts where a server sends several: their pieces would be mixed.
        let choices = chunk.get("choices").and_then(Value::as_array);
        let choice = choices
            .and_then(|all| all.iter().find(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0));
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
        // Signed thoughts of some models travel beside a call and must come back with it.
        for call in &mut draft.calls {
            // Some servers give no id; the answer to the call must name one all the same.
            if call.id.is_empty() {
                call.id = format!("call_{}", uuid::Uuid::new_v4().simple());
            }
            if !call.extra.is_null() {
                draft.blocks.push(json!({ (call.id.as_str()): call.extra }));
            }
        }
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
            let count = |name: &str| line[name].as_u64().unwrap_or(0).min(MOST_TOKENS);
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
        // Without an id, a name that brings arguments after whole ones can only be the next call. Without a number too,
        // the name alone tells. An empty object is what some servers send ahead of the real arguments.
        let whole = is_whole(&call.arguments) && call.arguments.trim() != "{}";
        let brings = function.get("arguments").is_some_and(|more| more.is_object() || starts_object(more));
        let next = id.is_empty() && !name.is_empty() && whole && (index.is_none() || brings);
        !other_id && !next
    });
    let position = known.unwrap_or_else(|| {
        draft.calls.push(DraftCall { index, ..DraftCall::default() });
        draft.calls.len() - 1
    });
    if let Some(extra) = piece.get("extra_content").filter(|extra| !extra.is_null()) {
        draft.calls[position].extra = extra.clone();
    }
    fill(draft.calls.get_mut(position), id, function);
}

fn fill(call: Option<&mut DraftCall>, id: &str, function: &Value) {
    let Some(call) = call else { return };
    // An id is set, not appended: several servers repeat it in every piece.
    if !id.is_empty() {
        call.id = id.to_owned();
    }
    if let Some(name) = function.get("name").and_then(Value::as_str) {
        // Some servers repeat the name, some send it as it grows, and some cut it in pieces.
        if name.starts_with(&call.name) {
            call.name = name.to_owned();
        } else if !call.name.starts_with(name) {
            call.name.push_str(name);
        }
    }
    match function.get("arguments") {
        Some(Value::String(piece)) if call.arguments.trim() == "{}" && piece.trim_start().starts_with('{') => {
            call.arguments.clone_from(piece);
        }
        Some(Value::String(piece)) => call.arguments.push_str(piece),
        Some(Value::Null) | None => {}
        Some(whole) => call.arguments = whole.to_string(),
    }
}

fn starts_object(piece: &Value) -> bool {
    piece.as_str().is_some_and(|text| text.trim_start().starts_with('{'))
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
    let number = |path: &str| usage.pointer(path).and_then(Value::as_u64).map(|tokens| tokens.min(MOST_TOKENS));
    let prompt = number("/prompt_tokens").unwrap_or(0);
    let answer = number("/completion_tokens").unwrap_or(0);
    let cached = number("/prompt_tokens_details/cached_tokens")
        .or_else(|| number("/prompt_cache_hit_tokens"))
        .or_else(|| number("/cache_read_input_tokens"))
        .or_else(|| number("/cached_tokens"))
        .unwrap_or(0)
        .min(prompt);
    // Some providers leave thinking out of the completion but not out of the total: it is billed as output.
    let unseen = number("/total_tokens").unwrap_or(0).saturating_sub(prompt + answer);
    let reasoning = number("/completion_tokens_details/reasoning_tokens").unwrap_or(0).max(unseen);
    let cache_write = number("/prompt_tokens_details/cache_write_tokens")
        .or_else(|| number("/prompt_tokens_details/cache_creation_tokens"))
        .or_else(|| number("/cache_creation_input_tokens"))
        .unwrap_or(0)
        .min(prompt - cached);
    Usage { input: prompt - cached, cached, output: answer + unseen, reasoning, cache_write, ..Usage::default() }
}

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// How many bytes at the end may be the beginning of a closing tag.
fn tail_of_close(text: &str) -> usize {
    (1..CLOSE.len()).rev().find(|length| text.ends_with(&CLOSE[..*length])).unwrap_or(0)
}

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
    /// Text without an opening tag, while a closing one may still come: some servers' templates open it in the prompt, so
    /// that only the closing tag is in the answer. A possible beginning of it is held.
    Text(String),
    /// The rest of an answer with tags, or one that speaks of them.
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
            Self::Text(held) => self.text(held + piece, draft),
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
            self.text(held, draft);
        }
    }

    fn text(&mut self, held: String, draft: &mut Draft) {
        let Some((before, rest)) = held.split_once(CLOSE) else {
            let (text, tail) = held.split_at(held.len() - tail_of_close(&held));
            draft.push_text(text);
            *self = Self::Text(tail.to_owned());
            return;
        };
        // Who writes about tags, or got thinking in a field of its own, does not close one.
        let so_far = draft.text.clone() + before;
        let quoted = so_far.ends_with(['`', '"', '\'', '“', '‘']);
        if quoted || so_far.contains(OPEN) || !draft.reasoning.is_empty() {
            draft.push_text(&held);
            *self = Self::Plain;
            return;
        }
        draft.text_was_thinking(before);
        *self = Self::Trimming;
        self.push(rest, draft);
    }

    fn inside(&mut self, held: String, draft: &mut Draft) {
        if let Some((thought, rest)) = held.split_once(CLOSE) {
            draft.push_reasoning(thought);
            *self = Self::Trimming;
            self.push(rest, draft);
            return;
        }
        let (thought, tail) = held.split_at(held.len() - tail_of_close(&held));
        draft.push_reasoning(thought);
        *self = Self::Inside(tail.to_owned());
    }

    fn finish(&mut self, draft: &mut Draft) {
        match std::mem::replace(self, Self::Plain) {
            Self::Held(held) | Self::Text(held) => draft.push_text(&held),
            Self::Inside(held) => draft.push_reasoning(&held),
            _ => {}
        }
    }
}
