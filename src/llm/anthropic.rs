//! The Messages wire format of Anthropic and of those who speak it. Thinking blocks are signed: within a tool loop they
//! go back exactly as they came, which is why they are kept as JSON.

use serde_json::{Map, Value, json};

use super::catalogue::{Model, Thinking};
use super::memory::Memory;
use super::openai::unseen;
use super::reply::{Draft, DraftCall, MOST_TOKENS};
use super::types::{ChatRequest, Effort, Message, StopReason, Usage};

/// The version of the interface that is asked for.
pub(super) const VERSION: &str = "2023-06-01";
/// Limit of an answer when neither the person nor the catalogue gives one: this wire format demands a number.
const DEFAULT_LIMIT: u64 = 8192;
/// More than this is not asked for unless the person does.
const LARGEST_DEFAULT: u64 = 32_000;

/// Writes the body of a request.
pub(super) fn body(model: Option<&Model>, id: &str, request: &ChatRequest, memory: &Memory) -> Value {
    let known = model.and_then(|model| model.max_output).unwrap_or(DEFAULT_LIMIT).min(LARGEST_DEFAULT);
    let limit = request.max_output.map_or(known, u64::from);
    let sees = model.is_none_or(|model| model.vision) && !memory.refused("image");
    let (system, mut messages) = write_messages(&request.messages, memory, sees);
    let cache = !memory.refused("cache_control");
    if cache {
        mark_stable(&mut messages, !request.tools.is_empty() && !request.withhold_tools);
    }
    let mut body = json!({ "model": id, "max_tokens": limit, "messages": messages, "stream": true });
    if !system.is_empty() {
        let mut block = json!({ "type": "text", "text": system });
        if cache {
            // Tools come before the system text, so that this one mark lets the provider keep both.
            block["cache_control"] = json!({ "type": "ephemeral" });
        }
        body["system"] = json!([block]);
    }
    let thinks = write_thinking(model, request, memory, &mut body);
    let free = !thinks && !model.is_some_and(|model| model.fixed_temperature) && !memory.refused("temperature");
    if let Some(temperature) = request.temperature.filter(|_| free) {
        body["temperature"] = json!(temperature);
    }
    let calls = request
        .messages
        .iter()
        .any(|message| matches!(message, Message::Assistant { tool_calls, .. } if !tool_calls.is_empty()));
    if request.withhold_tools && calls {
        // The definitions must be there when the conversation holds calls; that none is made is said beside them.
        body["tool_choice"] = json!({ "type": "none" });
    }
    if !request.tools.is_empty() && (calls || !request.withhold_tools) && !memory.refused("tools") {
        body["tools"] = request
            .tools
            .iter()
            .map(|tool| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.parameters }))
            .collect();
    }
    body
}

/// Asks for thinking when the person set an effort and the model is known to take it. True when it was asked for.
fn write_thinking(model: Option<&Model>, request: &ChatRequest, memory: &Memory, body: &mut Value) -> bool {
    let Some(effort) = request.effort.filter(|_| !memory.refused("thinking")) else { return false };
    match model.and_then(|model| model.thinking) {
        Some(Thinking::Adaptive) => {
            body["thinking"] = json!({ "type": "adaptive" });
            if !memory.refused("output_config") {
                body["output_config"] = json!({ "effort": effort.name() });
            }
            true
        }
        Some(Thinking::Budget) if effort != Effort::Low => {
            let budget = if effort == Effort::High { 16_000 } else { 4_000 };
            // The limit counts thinking and answer together.
            let limit = body["max_tokens"].as_u64().unwrap_or(DEFAULT_LIMIT);
            body["max_tokens"] = json!(limit.max(budget + DEFAULT_LIMIT));
            body["thinking"] = json!({ "type": "enabled", "budget_tokens": budget });
            true
        }
        _ => false,
    }
}

/// Marks how far a request is the same as the next one will be, so that the provider can keep it: up to the last turn
/// before this one, and, within a tool loop, up to its end. Thinking takes no mark.
fn mark_stable(messages: &mut [Value], more_rounds: bool) {
    let is_asked = |message: &Value| {
        let content = message["content"].as_array();
        message["role"] == "user" && !content.is_some_and(|blocks| blocks.iter().any(|b| b["type"] == "tool_result"))
    };
    let asked = messages.iter().rposition(is_asked).unwrap_or(0);
    let last = messages.len().checked_sub(1).filter(|_| more_rounds);
    let history = asked.checked_sub(1);
    for place in [history, last].into_iter().flatten() {
        let blocks = messages[place]["content"].as_array_mut();
        let block = blocks.and_then(|blocks| blocks.iter_mut().rfind(|block| takes_mark(block)));
        if let Some(block) = block {
            block["cache_control"] = json!({ "type": "ephemeral" });
        }
    }
}

fn takes_mark(block: &Value) -> bool {
    match block["type"].as_str() {
        Some("text") => block["text"].as_str().is_some_and(|text| !text.is_empty()),
        Some("tool_result" | "tool_use" | "image") => true,
        _ => false,
    }
}

/// The system text, and the messages with neighbours of one role joined, as the format demands.
fn write_messages(messages: &[Message], memory: &Memory, sees: bool) -> (String, Vec<Value>) {
    let mut system = Vec::new();
    let mut written: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, blocks) = match message {
            Message::System { text } => {
                system.push(text.as_str());
                continue;
            }
            Message::User { text } => ("user", vec![json!({ "type": "text", "text": text })]),
            Message::Picture { about, mime, data } if sees && !data.is_empty() => {
                let source = json!({ "type": "base64", "media_type": mime, "data": data });
                let about = json!({ "type": "text", "text": format!("Picture: {about}") });
                ("user", vec![about, json!({ "type": "image", "source": source })])
            }
            Message::Picture { about, .. } => ("user", vec![json!({ "type": "text", "text": unseen(about) })]),
            Message::Tool { call, text, .. } => {
                ("user", vec![json!({ "type": "tool_result", "tool_use_id": call, "content": text })])
            }
            Message::Assistant { text, tool_calls, .. } => {
                let mut blocks = tool_calls.first().map(|call| memory.blocks(&call.id)).unwrap_or_default();
                if !text.is_empty() {
                    blocks.push(json!({ "type": "text", "text": text }));
                }
                for call in tool_calls {
                    let input = match &call.arguments {
                        Value::Object(_) => call.arguments.clone(),
                        other => json!({ "unreadable": other }),
                    };
                    blocks.push(json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input }));
                }
                ("assistant", blocks)
            }
        };
        match written.last_mut() {
            Some((last, collected)) if *last == role => collected.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => written.push((role, blocks)),
        }
    }
    let messages = written.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect();
    (system.join("\n\n"), messages)
}

/// A block of the answer that has begun.
#[derive(Debug)]
enum Block {
    Text,
    Thinking {
        thinking: String,
        signature: String,
    },
    Redacted(Value),
    Call(usize),
    /// A kind that we do not know.
    Other,
}

/// Reads the events of one answer.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    blocks: Vec<(u64, Block)>,
    usage: Usage,
}

impl Decoder {
    /// Reads one event by the type in its JSON, or a whole message that was not streamed.
    ///
    /// # Errors
    /// The error object that came in place of an event.
    pub fn event(&mut self, event: &Value, draft: &mut Draft) -> Result<(), Value> {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        match kind {
            "error" => return Err(event.clone()),
            _ if event.get("error").is_some_and(|error| !error.is_null()) => return Err(event.clone()),
            "message_start" => self.read_usage(event.pointer("/message/usage"), draft),
            "content_block_start" => self.start(index, &event["content_block"], draft),
            "content_block_delta" => self.delta(index, &event["delta"], draft),
            "message_delta" => {
                self.read_usage(event.get("usage"), draft);
                self.read_stop(&event["delta"], draft);
            }
            "message_stop" => draft.ended = true,
            "message" => self.whole(event, draft),
            // `ping`, `content_block_stop`, and kinds that may be added.
            _ => {}
        }
        Ok(())
    }

    /// No more comes: thinking is put away as it must go back.
    pub fn finish(&mut self, draft: &mut Draft) {
        for (_, block) in self.blocks.drain(..) {
            match block {
                Block::Thinking { thinking, signature } if !signature.is_empty() => {
                    draft.blocks.push(json!({ "type": "thinking", "thinking": thinking, "signature": signature }));
                }
                Block::Redacted(block) => draft.blocks.push(block),
                _ => {}
            }
        }
    }

    fn whole(&mut self, message: &Value, draft: &mut Draft) {
        self.read_usage(message.get("usage"), draft);
        for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
            self.start(index as u64, block, draft);
        }
        self.read_stop(message, draft);
    }

    fn start(&mut self, index: u64, block: &Value, draft: &mut Draft) {
        let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let begun = match block.get("type").and_then(Value::as_str).unwrap_or_default() {
            "text" => {
                draft.push_text(&text("text"));
                Block::Text
            }
            "thinking" => {
                draft.push_reasoning(&text("thinking"));
                Block::Thinking { thinking: text("thinking"), signature: text("signature") }
            }
            "redacted_thinking" => Block::Redacted(block.clone()),
            "tool_use" => {
                // Compatible servers may give the whole input at the start and no pieces.
                let input = block.get("input").filter(|input| input.as_object().is_some_and(|map| !map.is_empty()));
                let arguments = input.map(Value::to_string).unwrap_or_default();
                draft.calls.push(DraftCall {
                    index: Some(index),
                    id: text("id"),
                    name: text("name"),
                    arguments,
                    ..DraftCall::default()
                });
                Block::Call(draft.calls.len() - 1)
            }
            _ => Block::Other,
        };
        self.blocks.push((index, begun));
    }

    fn delta(&mut self, index: u64, delta: &Value, draft: &mut Draft) {
        let text = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
        let Some((_, block)) = self.blocks.iter_mut().rev().find(|(at, _)| *at == index) else {
            // A delta without a start: text is still worth showing.
            draft.push_text(text("text"));
            return;
        };
        match (delta.get("type").and_then(Value::as_str).unwrap_or_default(), block) {
            ("text_delta", _) => draft.push_text(text("text")),
            ("thinking_delta", Block::Thinking { thinking, .. }) => {
                thinking.push_str(text("thinking"));
                draft.push_reasoning(text("thinking"));
            }
            ("signature_delta", Block::Thinking { signature, .. }) => signature.push_str(text("signature")),
            ("input_json_delta", Block::Call(position)) => {
                if let Some(call) = draft.calls.get_mut(*position) {
                    call.arguments.push_str(text("partial_json"));
                }
            }
            _ => {}
        }
    }

    /// Counts are running totals: a later one replaces an earlier one.
    fn read_usage(&mut self, usage: Option<&Value>, draft: &mut Draft) {
        let empty = Map::new();
        let usage = usage.and_then(Value::as_object).unwrap_or(&empty);
        let number = |name: &str| usage.get(name).and_then(Value::as_u64).map(|tokens| tokens.min(MOST_TOKENS));
        let written = number("cache_creation_input_tokens").unwrap_or(self.usage.cache_write);
        let fresh = number("input_tokens").filter(|tokens| *tokens > 0);
        let fresh = fresh.unwrap_or(self.usage.input - self.usage.cache_write);
        self.usage.cache_write = written;
        self.usage.input = fresh + written;
        self.usage.cached = number("cache_read_input_tokens").unwrap_or(self.usage.cached);
        self.usage.output = number("output_tokens").unwrap_or(self.usage.output);
        if !usage.is_empty() {
            draft.usage = Some(self.usage);
        }
    }

    fn read_stop(&mut self, part: &Value, draft: &mut Draft) {
        if let Some(reason) = part.get("stop_reason").and_then(Value::as_str) {
            draft.stop = Some(match reason {
                "tool_use" => StopReason::ToolCalls,
                "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
                "refusal" => StopReason::ContentFilter,
                _ => StopReason::End,
            });
        }
    }
}
