//! Kinds of replies that model servers are known to give, each written by hand as small as it can be, with what must come
//! out. They stand beside the recorded ones, which are whole replies of single servers.
#![allow(dead_code, reason = "each test file uses the part that it needs")]

#[path = "reply_kinds_messages.rs"]
mod in_messages;

use serde_json::{Value, json};
use slicer_ai_agent::llm::Wire;

/// What must come out.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Text, thinking, calls as `[name, arguments]`, and why it stopped.
    Reply { text: &'static str, reasoning: &'static str, calls: Value, stop: &'static str },
    /// The kind of error with the text that had arrived, and a part of what is said.
    Error { kind: &'static str, kept: &'static str, says: &'static str },
}

/// One kind.
#[derive(Debug, Clone)]
pub struct Kind {
    pub name: &'static str,
    pub wire: Wire,
    pub body: Vec<u8>,
    pub outcome: Outcome,
    /// Input, cached, output; `None`: it is estimated.
    pub usage: Option<(u64, u64, u64)>,
}

fn text(text: &'static str) -> Outcome {
    Outcome::Reply { text, reasoning: "", calls: json!([]), stop: "End" }
}

fn calls(calls: Value) -> Outcome {
    Outcome::Reply { text: "", reasoning: "", calls, stop: "ToolCalls" }
}

fn error(kind: &'static str, kept: &'static str, says: &'static str) -> Outcome {
    Outcome::Error { kind, kept, says }
}

/// One `data:` event of the chat-completions format around a delta.
fn delta(delta: Value) -> String {
    event(&json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] }))
}

fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn says(piece: &str) -> String {
    delta(json!({ "content": piece }))
}

fn call(piece: Value) -> String {
    delta(json!({ "tool_calls": [piece] }))
}

fn finish(reason: &str) -> String {
    event(&json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }))
}

const DONE: &str = "data: [DONE]\n\n";

fn openai(name: &'static str, body: &str, outcome: Outcome) -> Kind {
    Kind { name, wire: Wire::Openai, body: body.as_bytes().to_vec(), outcome, usage: None }
}

/// All kinds.
pub fn all() -> Vec<Kind> {
    [sse_kinds(), call_kinds(), openai_kinds(), body_kinds(), in_messages::kinds()].concat()
}

fn sse_kinds() -> Vec<Kind> {
    let plain = says("Grü") + &says("ße 脑🧠") + &finish("stop") + DONE;
    let whole = "Grüße 脑🧠";
    let comments =
        format!(": keep-alive\n\n:\n{}: OPENROUTER PROCESSING\n\n{}", says("Grü"), &plain[says("Grü").len()..]);
    let chunk = json!({ "choices": [{ "delta": { "content": "two lines" }, "finish_reason": "stop" }] }).to_string();
    let (first, second) = chunk.split_at(chunk.find(",\"finish").unwrap() + 1);
    let mut bad_utf8 = plain.clone().into_bytes();
    let at = bad_utf8.iter().position(|byte| *byte == 0xC3).unwrap();
    bad_utf8[at] = 0xFF;
    let mut list = vec![
        openai("comments keep the line open", &comments, text(whole)),
        openai("CRLF ends lines", &plain.replace('\n', "\r\n"), text(whole)),
        openai("lone CR ends lines", &plain.replace('\n', "\r"), text(whole)),
        openai("a byte order mark comes first", &format!("\u{FEFF}{plain}"), text(whole)),
        openai("no space after the colon", &plain.replace("data: ", "data:"), text(whole)),
        openai("data over two lines", &format!("data: {first}\ndata: {second}\n\n{DONE}"), text("two lines")),
        openai("ids and retry lines", &plain.replace("data: ", "id: 7\nretry: 3000\ndata: "), text(whole)),
        openai("names of events", &plain.replace("data: ", "event: message\ndata: "), text(whole)),
        openai("pings with words", &format!("event: ping\ndata: still here\n\n{plain}"), text(whole)),
        openai("empty data lines", &format!("data:\n\ndata: \n\n{plain}"), text(whole)),
        openai("no DONE at the end", plain.trim_end_matches(DONE), text(whole)),
        openai("no blank line at the end", plain.trim_end(), text(whole)),
        openai("text after DONE is not read", &format!("{plain}{}", says("more")), text(whole)),
        openai("DONE and nothing else", DONE, error("BadReply", "", "nothing")),
        openai("nothing at all", "", error("BadReply", "", "ended before")),
        openai("only comments", ": wait\n\n: wait\n\n", error("BadReply", "", "ended before")),
    ];
    let outcome = text("Gr\u{FFFD}\u{FFFD}ße 脑🧠");
    list.push(Kind { name: "bytes that are no UTF-8", wire: Wire::Openai, body: bad_utf8, outcome, usage: None });
    list
}

fn call_kinds() -> Vec<Kind> {
    let f = |name: &str, arguments: &str| json!({ "name": name, "arguments": arguments });
    let end = finish("tool_calls") + DONE;
    let pieces: String = "{\"pattern\": \"a\\\"脑\"}"
        .chars()
        .map(|piece| call(json!({ "index": 0, "function": { "arguments": piece.to_string() } })))
        .collect();
    let start = |index: u64, id: &str, name: &str| {
        call(json!({ "index": index, "id": id, "type": "function", "function": f(name, "") }))
    };
    let more = |index: u64, piece: &str| call(json!({ "index": index, "function": { "arguments": piece } }));
    let two = json!([["a", { "x": 1 }], ["b", { "y": 2 }]]);
    vec![
        openai(
            "arguments in single letters",
            &(start(0, "c", "Grep") + &pieces + &end),
            calls(json!([["Grep", { "pattern": "a\"脑" }]])),
        ),
        openai(
            "parallel calls that interleave",
            &(start(0, "1", "a")
                + &start(1, "2", "b")
                + &more(0, "{\"x\"")
                + &more(1, "{\"y\":")
                + &more(0, ":1}")
                + &more(1, "2}")
                + &end),
            calls(two.clone()),
        ),
        openai(
            "several calls in one chunk",
            &(delta(
                json!({ "tool_calls": [{ "index": 0, "id": "1", "function": f("a", "{\"x\":1}") }, { "index": 1, "id": "2", "function": f("b", "{\"y\":2}") }] }),
            ) + &end),
            calls(two.clone()),
        ),
        openai(
            "no numbers, told apart by id",
            &(call(json!({ "id": "1", "function": f("a", "{\"x\":1}") }))
                + &call(json!({ "id": "2", "function": f("b", "{\"y\":2}") }))
                + &end),
            calls(two.clone()),
        ),
        openai(
            "neither numbers nor ids",
            &(call(json!({ "function": f("a", "{\"x\":1}") }))
                + &call(json!({ "function": f("b", "{\"y\":2}") }))
                + &end),
            calls(two.clone()),
        ),
        openai(
            "all numbered 0, no ids",
            &(call(json!({ "index": 0, "function": f("a", "{\"x\":1}") }))
                + &call(json!({ "index": 0, "function": f("b", "{\"y\":2}") }))
                + &end),
            calls(two.clone()),
        ),
        openai(
            "numbers that do not begin at 0",
            &(start(3, "1", "a") + &more(3, "{\"x\":1}") + &start(7, "2", "b") + &more(7, "{\"y\":2}") + &end),
            calls(two.clone()),
        ),
        openai(
            "the id comes late",
            &(call(json!({ "index": 0, "function": f("a", "{\"x\"") }))
                + &call(json!({ "index": 0, "id": "1", "function": { "arguments": ":1}" } }))
                + &end),
            calls(json!([["a", { "x": 1 }]])),
        ),
        openai(
            "the id is empty later on",
            &(start(0, "1", "a")
                + &call(json!({ "index": 0, "id": "", "function": { "name": "", "arguments": "{\"x\":1}" } }))
                + &end),
            calls(json!([["a", { "x": 1 }]])),
        ),
        openai(
            "the name comes in pieces",
            &(start(0, "1", "List") + &call(json!({ "index": 0, "function": f("Nodes", "") })) + &more(0, "{}") + &end),
            calls(json!([["ListNodes", {}]])),
        ),
        openai(
            "an empty object goes ahead of the arguments",
            &(call(json!({ "index": 0, "id": "1", "function": f("a", "{}") })) + &more(0, "{\"x\":1}") + &end),
            calls(json!([["a", { "x": 1 }]])),
        ),
        openai(
            "arguments encoded twice",
            &(call(json!({ "index": 0, "id": "1", "function": f("a", "\"{\\\"x\\\":1}\"") })) + &end),
            calls(json!([["a", { "x": 1 }]])),
        ),
        openai("no arguments", &(start(0, "1", "a") + &end), calls(json!([["a", {}]]))),
        openai(
            "arguments that are no JSON",
            &(call(json!({ "index": 0, "id": "1", "function": f("a", "pattern=x") })) + &end),
            calls(json!([["a", "pattern=x"]])),
        ),
        openai(
            "`stop` although a tool is called",
            &(call(json!({ "index": 0, "id": "1", "function": f("a", "{}") })) + &finish("stop") + DONE),
            calls(json!([["a", {}]])),
        ),
        openai(
            "the length is reached within arguments",
            &(start(0, "1", "a") + &more(0, "{\"x\":") + &finish("length") + DONE),
            error("BadReply", "", "max_tokens"),
        ),
        openai(
            "the old form of a call",
            &(delta(json!({ "function_call": f("a", "{\"x\"") }))
                + &delta(json!({ "function_call": { "arguments": ":1}" } }))
                + &finish("function_call")
                + DONE),
            calls(json!([["a", { "x": 1 }]])),
        ),
    ]
}

fn openai_kinds() -> Vec<Kind> {
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 57,
        "prompt_tokens_details": { "cached_tokens": 20 } } });
    let late = Kind {
        usage: Some((30, 20, 7)),
        ..openai("usage after the end", &(says("Hi") + &finish("stop") + &event(&usage) + DONE), text("Hi"))
    };
    let running = Kind {
        usage: Some((30, 20, 7)),
        ..openai(
            "usage in every chunk, the last counts",
            &(event(
                &json!({ "choices": [{ "delta": { "content": "Hi" } }], "usage": { "prompt_tokens": 50, "completion_tokens": 1, "total_tokens": 51 } }),
            ) + &finish("stop")
                + &event(&usage)
                + DONE),
            text("Hi"),
        )
    };
    let null = Kind {
        usage: Some((30, 20, 7)),
        ..openai(
            "usage is null until the end",
            &(event(&json!({ "choices": [{ "delta": { "content": "Hi" } }], "usage": null }))
                + &finish("stop")
                + &event(&usage)
                + DONE),
            text("Hi"),
        )
    };
    let filter = event(&json!({ "choices": [], "prompt_filter_results": [{ "prompt_index": 0 }] }));
    let refused = delta(json!({ "content": null, "refusal": "I cannot do that." })) + &finish("stop") + DONE;
    let other = event(&json!({ "choices": [{ "index": 1, "delta": { "content": "another answer" } }] }));
    let told = |value: Value| says("Half") + &event(&value) + DONE;
    let reasoned =
        |reasoning: &'static str, text: &'static str| Outcome::Reply { text, reasoning, calls: json!([]), stop: "End" };
    let stopped =
        |text: &'static str, stop: &'static str| Outcome::Reply { text, reasoning: "", calls: json!([]), stop };
    vec![
        late,
        running,
        null,
        openai("a first chunk without choices", &(filter + &says("Hi") + &finish("stop") + DONE), text("Hi")),
        openai("a refusal", &refused, text("I cannot do that.")),
        openai("a content filter", &(says("Ha") + &finish("content_filter") + DONE), stopped("Ha", "ContentFilter")),
        openai("the length is reached", &(says("Ha") + &finish("length") + DONE), stopped("Ha", "Length")),
        openai("a second answer beside the first", &(says("Hi") + &other + &finish("stop") + DONE), text("Hi")),
        openai(
            "a role in every chunk",
            &(delta(json!({ "role": "assistant", "content": "Hi" }))
                + &delta(json!({ "role": "assistant", "content": "!" }))
                + &finish("stop")
                + DONE),
            text("Hi!"),
        ),
        openai(
            "reasoning_content",
            &(delta(json!({ "reasoning_content": "Hm.", "content": null })) + &says("Hi") + &finish("stop") + DONE),
            reasoned("Hm.", "Hi"),
        ),
        openai(
            "reasoning",
            &(delta(json!({ "reasoning": "Hm.", "content": "" })) + &says("Hi") + &finish("stop") + DONE),
            reasoned("Hm.", "Hi"),
        ),
        openai(
            "both names of reasoning",
            &(delta(json!({ "reasoning": "Hm.", "reasoning_content": "Hm." })) + &says("Hi") + &finish("stop") + DONE),
            reasoned("Hm.", "Hi"),
        ),
        openai(
            "tags around thinking",
            &(says("<thi") + &says("nk>Hm.</th") + &says("ink>\n\nHi") + &finish("stop") + DONE),
            reasoned("Hm.", "Hi"),
        ),
        openai("a tag that never closes", &(says("<think>Hm.") + &finish("stop") + DONE), reasoned("Hm.", "")),
        openai(
            "a tag that is only text",
            &(says("Write <think> so.") + &finish("stop") + DONE),
            text("Write <think> so."),
        ),
        openai(
            "only a closing tag",
            &(says("Hm, \nso. </th") + &says("ink>\n\nHi") + &finish("stop") + DONE),
            reasoned("Hm, \nso. ", "Hi"),
        ),
        openai(
            "a closing tag that is spoken of",
            &(says("Leave out the `</think>` at") + &says(" the end.") + &finish("stop") + DONE),
            text("Leave out the `</think>` at the end."),
        ),
        openai(
            "a pair of tags within text",
            &(says("Write <think>so</think> and") + &says(" go on.") + &finish("stop") + DONE),
            text("Write <think>so</think> and go on."),
        ),
        openai("a smaller-than at the end", &(says("1 <") + &finish("stop") + DONE), text("1 <")),
        openai(
            "choices and deltas that are null",
            &(event(&json!({ "choices": null }))
                + &event(&json!({ "choices": [{ "delta": null }] }))
                + &delta(json!({ "content": "Hi", "tool_calls": null }))
                + &finish("stop")
                + DONE),
            text("Hi"),
        ),
        openai(
            "content in parts",
            &(delta(json!({ "content": [{ "type": "text", "text": "Hi" }] })) + &finish("stop") + DONE),
            text("Hi"),
        ),
        openai(
            "an error after text",
            &told(json!({ "error": { "message": "The server is overloaded", "code": 503 } })),
            error("Overloaded", "Half", "overloaded"),
        ),
        openai(
            "an error as text",
            &told(json!({ "error": "out of memory" })),
            error("Overloaded", "Half", "out of memory"),
        ),
        openai(
            "a rate limit after text",
            &told(json!({ "error": { "message": "slow down", "code": 429 } })),
            error("RateLimited", "Half", "slow down"),
        ),
        openai(
            "`event: error`",
            &(says("Half") + "event: error\ndata: {\"message\": \"it broke\"}\n\n"),
            error("Overloaded", "Half", "it broke"),
        ),
        openai(
            "`event: error` in words",
            &(says("Half") + "event: error\ndata: it broke\n\n"),
            error("Overloaded", "Half", "it broke"),
        ),
        openai(
            "an error that is null",
            &(event(&json!({ "error": null, "choices": [{ "delta": { "content": "Hi" } }] })) + &finish("stop") + DONE),
            text("Hi"),
        ),
        openai("a cut after text", &says("Half an ans"), error("BadReply", "Half an ans", "ended before")),
        openai(
            "a cut within JSON",
            &(says("Half") + "data: {\"choices\": [{\"del"),
            error("BadReply", "Half", "ended before"),
        ),
        openai(
            "a cut within a call",
            &call(json!({ "index": 0, "id": "1", "function": { "name": "a", "arguments": "{\"x\"" } })),
            error("BadReply", "", "ended before"),
        ),
    ]
}

fn body_kinds() -> Vec<Kind> {
    let message = json!({ "role": "assistant", "content": "Hi", "tool_calls": [] });
    let whole = json!({ "object": "chat.completion", "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6 } });
    let called = json!({ "choices": [{ "message": { "role": "assistant", "content": null, "tool_calls": [
        { "id": "1", "type": "function", "function": { "name": "a", "arguments": "{\"x\":1}" } }] }, "finish_reason": "tool_calls" }] });
    let mut packed = vec![0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3];
    packed.extend([0x4B, 0x4C, 0x4A, 0x06, 0x00]);
    let half = whole.to_string();
    vec![
        Kind { usage: Some((5, 0, 1)), ..openai("JSON where a stream was asked for", &whole.to_string(), text("Hi")) },
        openai("JSON with calls", &called.to_string(), calls(json!([["a", { "x": 1 }]]))),
        openai("JSON that is cut", &half[..half.len() / 2], error("BadReply", "", "ended before")),
        openai(
            "JSON with an error and status 200",
            r#"{"error":{"message":"no such thing","type":"invalid_request_error"}}"#,
            error("BadRequest", "", "no such thing"),
        ),
        openai(
            "JSON of something else",
            r#"{"status":"ok"}"#,
            error("BadReply", "", "not one that a model server gives"),
        ),
        openai("a web page", "<!DOCTYPE html><html><body>Sign in</body></html>", error("BadReply", "", "web page")),
        openai("plain words", "upstream connect error", error("BadReply", "", "ended before")),
        Kind {
            name: "compressed bytes",
            wire: Wire::Openai,
            body: packed,
            outcome: error("BadReply", "", "compressed"),
            usage: None,
        },
    ]
}
