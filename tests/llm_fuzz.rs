//! Feeds the reader of replies with what no server should send: recorded replies that are changed at random, and cut
//! anywhere. What it protects: nothing that a server sends can crash the program or make it lose what arrived, and where
//! the network cuts the bytes never matters.
//!
//! It is repeatable (a seed makes the same inputs) and bounded: `SLICER_AI_AGENT_FUZZ_SECONDS` sets how long it runs
//! (2 s without it), `SLICER_AI_AGENT_FUZZ_SEED` where it starts.

#[path = "support/random.rs"]
mod random;

use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use random::Random;
use slicer_ai_agent::llm::{Delta, LlmError, Recorded, Wire, read_recorded};

#[path = "support/reply_kinds.rs"]
mod reply_kinds;

/// Every recorded body with its wire format, and the bodies of the kinds that were written by hand.
fn corpus() -> Vec<(Wire, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/llm_streams");
    let mut cases: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.is_dir());
    cases.sort();
    let recorded = cases.iter().map(|path| {
        let expected = std::fs::read_to_string(path.join("expected.json")).unwrap();
        let wire = if expected.contains("anthropic-messages") { Wire::Anthropic } else { Wire::Openai };
        (wire, std::fs::read(path.join("body.bin")).unwrap())
    });
    recorded.chain(reply_kinds::all().into_iter().map(|kind| (kind.wire, kind.body))).collect()
}

/// A reply as it can be compared: ids that the client makes are left out, and pieces are joined.
fn told(recorded: &Recorded) -> String {
    let (mut text, mut reasoning) = (String::new(), String::new());
    for delta in &recorded.deltas {
        match delta {
            Delta::Text(piece) => text.push_str(piece),
            Delta::Reasoning(piece) => reasoning.push_str(piece),
            Delta::WasThinking => reasoning.push_str(&std::mem::take(&mut text)),
            _ => {}
        }
    }
    let reply = match &recorded.reply {
        Ok(reply) => {
            let calls: Vec<_> = reply.tool_calls.iter().map(|call| (&call.name, &call.arguments)).collect();
            format!("{:?} {:?} {:?} {:?} {:?}", reply.text, reply.reasoning, calls, reply.usage, reply.stop)
        }
        Err(error) => format!("{error:?}"),
    };
    format!("{text:?} {reasoning:?} {reply}")
}

fn whole(wire: Wire, body: &[u8]) -> Recorded {
    read_recorded(wire, [body])
}

/// What must hold of any reply, however strange.
fn check(recorded: &Recorded) {
    let mut text = String::new();
    for delta in &recorded.deltas {
        match delta {
            Delta::Text(piece) => text.push_str(piece),
            Delta::WasThinking => text.clear(),
            _ => {}
        }
    }
    match &recorded.reply {
        Ok(reply) => {
            assert_eq!(reply.text, text, "what was shown is the answer");
            for call in &reply.tool_calls {
                assert!(!call.id.is_empty(), "a call without an id cannot be answered");
            }
        }
        Err(error) => {
            let kept = error.partial().map(|partial| partial.text.clone()).unwrap_or_default();
            let keeps =
                matches!(error, LlmError::BadReply { .. } | LlmError::Overloaded { .. } | LlmError::RateLimited { .. });
            assert!(!keeps || kept == text, "what was shown is kept");
            assert!(error.to_string().len() < 1000, "an error is a sentence");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Wherever the network cuts a reply, the same comes out.
    #[test]
    fn cuts_never_matter(case in any::<prop::sample::Index>(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let corpus = corpus();
        let (wire, body) = case.get(&corpus);
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        places.extend([0, body.len()]);
        places.sort_unstable();
        let pieces = places.windows(2).map(|pair| &body[pair[0]..pair[1]]);
        prop_assert_eq!(told(&read_recorded(*wire, pieces)), told(&whole(*wire, body)));
    }
}

/// Words that have a meaning somewhere in the formats, and values that break what expects others.
const WORDS: &[&str] = &[
    "data: ",
    "data:",
    "\n\n",
    "\r\n",
    "\r",
    "[DONE]",
    "event: error\n",
    "event: ping\n",
    ": comment\n",
    "null",
    "{}",
    "[]",
    "\"\"",
    "{\"error\":null}",
    "{\"error\":\"x\"}",
    "\"index\":0,",
    "\"index\":18446744073709551615",
    "\"index\":-1",
    "1e999",
    "-1",
    "\\ud800",
    "\u{FEFF}",
    "\u{0}",
    "<think>",
    "</think>",
    "<html>",
    "\"choices\":[],",
    "\"usage\":{\"prompt_tokens\":-5}",
    "\"usage\":{\"prompt_tokens\":1,\"prompt_tokens_details\":{\"cached_tokens\":99999}}",
    "\"arguments\":{}",
    "\"arguments\":null",
    "\"finish_reason\":\"length\"",
    "\"type\":\"content_block_start\"",
    "\"type\":\"message_start\"",
    "{\"type\":\"message_stop\"}",
    "\"cache_creation_input_tokens\":18446744073709551615",
    "\"input_tokens\":18446744073709551615",
    "\"completion_tokens\":18446744073709551615",
    "\"total_tokens\":18446744073709551615",
];

/// A body with a few changes: bytes, words, pieces taken out, doubled, or from another body.
fn mutate(random: &mut Random, body: &[u8], other: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    for _ in 0..=random.below(6) {
        let at = random.below(body.len() + 1);
        let end = (at + 1 + random.below(40)).min(body.len());
        match random.below(8) {
            0 if at < body.len() => body[at] = random.next() as u8,
            1 if at < body.len() => body[at] ^= 1 << random.below(8),
            2 => drop(body.splice(at..at, WORDS[random.below(WORDS.len())].bytes())),
            3 => drop(body.splice(at.min(end)..end, WORDS[random.below(WORDS.len())].bytes())),
            4 => drop(body.drain(at.min(end)..end)),
            5 => {
                let piece = body[at.min(end)..end].to_vec();
                drop(body.splice(at..at, piece));
            }
            6 => {
                let from = random.below(other.len());
                let piece = &other[from..(from + random.below(200)).min(other.len())];
                drop(body.splice(at..at, piece.iter().copied()));
            }
            _ => body.truncate(at),
        }
    }
    body
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(otherwise)
}

/// Changed at random, a reply still ends in an answer or an error, keeps what was shown, and reads the same however it is
/// cut.
#[test]
fn changed_replies_never_crash_the_reader() {
    let seconds = number("SLICER_AI_AGENT_FUZZ_SECONDS", 2);
    let seed = number("SLICER_AI_AGENT_FUZZ_SEED", 1).max(1);
    let (corpus, end) = (corpus(), Instant::now() + Duration::from_secs(seconds));
    let (mut random, mut tried) = (Random::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)), 0_u64);
    while tried < 500 || Instant::now() < end {
        let (wire, body) = &corpus[random.below(corpus.len())];
        let other = &corpus[random.below(corpus.len())].1;
        let body = mutate(&mut random, body, other);
        // Now and then the other format's decoder gets it, as when a person chose the wrong provider.
        let wire = match random.below(10) {
            0 => Wire::Anthropic,
            1 => Wire::Openai,
            _ => *wire,
        };
        let size = 1 + random.below(48);
        let tried_body = body.clone();
        let outcome = std::panic::catch_unwind(move || {
            let at_once = whole(wire, &tried_body);
            check(&at_once);
            assert_eq!(told(&read_recorded(wire, tried_body.chunks(size))), told(&at_once), "cuts matter");
        });
        if let Err(panic) = outcome {
            println!("input {tried} of seed {seed}, {wire:?}, cut every {size}: {:?}", String::from_utf8_lossy(&body));
            std::panic::resume_unwind(panic);
        }
        tried += 1;
    }
    println!("{tried} changed replies read in {seconds} s without a crash (seed {seed})");
}
