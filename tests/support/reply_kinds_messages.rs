//! The kinds of replies of the Messages format.

use serde_json::{Value, json};
use slicer_ai_agent::llm::Wire;

use super::{Kind, Outcome, calls, error, text};

/// Events of the Messages format; each is named by its type, as servers do.
fn messages(events: &[Value]) -> String {
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())).collect()
}

fn anthropic(name: &'static str, events: &[Value], outcome: Outcome) -> Kind {
    Kind { name, wire: Wire::Anthropic, body: messages(events).into_bytes(), outcome, usage: Some((10, 0, 4)) }
}

/// All kinds of the Messages format.
pub fn kinds() -> Vec<Kind> {
    let begin = json!({ "type": "message_start", "message": { "role": "assistant", "content": [], "usage": { "input_tokens": 10, "output_tokens": 1 } } });
    let start =
        |index: u64, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
    let more = |index: u64, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let stop = |index: u64| json!({ "type": "content_block_stop", "index": index });
    let end = |reason: &str| json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 4 } });
    let over = json!({ "type": "message_stop" });
    let ping = json!({ "type": "ping" });
    let text_block = || start(0, json!({ "type": "text", "text": "" }));
    let says = |piece: &str| more(0, json!({ "type": "text_delta", "text": piece }));
    let input = |index: u64, piece: &str| more(index, json!({ "type": "input_json_delta", "partial_json": piece }));
    let tool = |index: u64, id: &str, name: &str| {
        start(index, json!({ "type": "tool_use", "id": id, "name": name, "input": {} }))
    };
    let thinking = [
        start(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        more(0, json!({ "type": "thinking_delta", "thinking": "Hm." })),
        more(0, json!({ "type": "signature_delta", "signature": "abc" })),
        stop(0),
        start(1, json!({ "type": "redacted_thinking", "data": "xyz" })),
        stop(1),
    ];
    let reasoned = Outcome::Reply { text: "Hi", reasoning: "Hm.", calls: json!([]), stop: "End" };
    let stopped =
        |text: &'static str, stop: &'static str| Outcome::Reply { text, reasoning: "", calls: json!([]), stop };
    let told = |kind: &str, message: &str| json!({ "type": "error", "error": { "type": kind, "message": message } });
    let mut list = vec![
        anthropic(
            "pings anywhere",
            &[
                ping.clone(),
                begin.clone(),
                ping.clone(),
                text_block(),
                ping.clone(),
                says("Hi"),
                ping.clone(),
                stop(0),
                end("end_turn"),
                over.clone(),
            ],
            text("Hi"),
        ),
        anthropic(
            "unknown events and deltas",
            &[
                begin.clone(),
                json!({ "type": "wonder", "x": 1 }),
                text_block(),
                more(0, json!({ "type": "citations_delta", "citation": {} })),
                says("Hi"),
                stop(0),
                end("end_turn"),
                over.clone(),
            ],
            text("Hi"),
        ),
        anthropic(
            "thinking, signed and hidden",
            &[
                vec![begin.clone()],
                thinking.to_vec(),
                vec![
                    start(2, json!({ "type": "text", "text": "" })),
                    more(2, json!({ "type": "text_delta", "text": "Hi" })),
                    end("end_turn"),
                    over.clone(),
                ],
            ]
            .concat(),
            reasoned,
        ),
        anthropic(
            "parallel calls",
            &[
                begin.clone(),
                tool(0, "1", "a"),
                input(0, ""),
                input(0, "{\"x\""),
                input(0, ":1}"),
                stop(0),
                tool(1, "2", "b"),
                input(1, "{\"y\":2}"),
                stop(1),
                end("tool_use"),
                over.clone(),
            ],
            calls(json!([["a", { "x": 1 }], ["b", { "y": 2 }]])),
        ),
        anthropic(
            "a call without input",
            &[begin.clone(), tool(0, "1", "a"), stop(0), end("tool_use"), over.clone()],
            calls(json!([["a", {}]])),
        ),
        anthropic(
            "tools of the server are not ours to run",
            &[
                begin.clone(),
                start(0, json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} })),
                input(0, "{\"q\":1}"),
                stop(0),
                start(1, json!({ "type": "web_search_tool_result", "tool_use_id": "s", "content": [] })),
                stop(1),
                start(2, json!({ "type": "text", "text": "" })),
                more(2, json!({ "type": "text_delta", "text": "Hi" })),
                end("end_turn"),
                over.clone(),
            ],
            text("Hi"),
        ),
        anthropic(
            "a paused turn",
            &[begin.clone(), text_block(), says("Hi"), end("pause_turn"), over.clone()],
            text("Hi"),
        ),
        anthropic(
            "a refusal",
            &[begin.clone(), text_block(), says("No"), end("refusal"), over.clone()],
            stopped("No", "ContentFilter"),
        ),
        anthropic(
            "the limit is reached",
            &[begin.clone(), text_block(), says("Ha"), end("max_tokens"), over.clone()],
            stopped("Ha", "Length"),
        ),
        anthropic(
            "a stop sequence",
            &[begin.clone(), text_block(), says("Hi"), end("stop_sequence"), over.clone()],
            text("Hi"),
        ),
        anthropic("no last event", &[begin.clone(), text_block(), says("Hi"), stop(0), end("end_turn")], text("Hi")),
        anthropic(
            "usage that grows",
            &[
                begin.clone(),
                text_block(),
                says("Hi"),
                json!({ "type": "message_delta", "delta": {}, "usage": { "output_tokens": 2 } }),
                end("end_turn"),
                over.clone(),
            ],
            text("Hi"),
        ),
    ];
    let untyped = |value: &Value| {
        let mut fields = value.clone();
        let name = fields.as_object_mut().unwrap().remove("type").unwrap();
        format!("event: {}\ndata: {fields}\n\n", name.as_str().unwrap())
    };
    let named: String =
        [begin.clone(), text_block(), says("Hi"), stop(0), end("end_turn"), over.clone()].iter().map(untyped).collect();
    list.push(Kind { body: named.into_bytes(), ..anthropic("types only in the names of events", &[], text("Hi")) });
    let failing = [
        ("overloaded after text", told("overloaded_error", "Overloaded"), error("Overloaded", "Half", "Overloaded")),
        ("a rate limit after text", told("rate_limit_error", "slow down"), error("RateLimited", "Half", "slow down")),
        (
            "the server broke after text",
            told("api_error", "Internal server error"),
            error("Overloaded", "Half", "Internal"),
        ),
    ];
    for (name, told, outcome) in failing {
        list.push(anthropic(name, &[begin.clone(), text_block(), says("Half"), told], outcome));
    }
    list.push(anthropic(
        "a cut after text",
        &[begin.clone(), text_block(), says("Half")],
        error("BadReply", "Half", "ended before"),
    ));
    list.push(anthropic(
        "a cut within input",
        &[begin.clone(), tool(0, "1", "a"), input(0, "{\"x\"")],
        error("BadReply", "", "ended before"),
    ));
    list.push(anthropic(
        "the limit is reached within input",
        &[begin, tool(0, "1", "a"), input(0, "{\"x\""), end("max_tokens"), over],
        error("BadReply", "", "max_tokens"),
    ));
    let whole = json!({ "type": "message", "role": "assistant", "content": [{ "type": "text", "text": "Hi" }], "stop_reason": "end_turn",
        "usage": { "input_tokens": 10, "output_tokens": 4 } });
    list.push(Kind {
        body: whole.to_string().into_bytes(),
        ..anthropic("JSON where a stream was asked for", &[], text("Hi"))
    });
    list
}
