//! Reads what a provider says when it refuses. Providers agree neither on the shape of the body nor on the status, so
//! both are looked at, and the words where they are the only sign.

use std::time::Duration;

use regex::Regex;
use serde_json::Value;

use super::error::{LlmError, NetworkCause, Partial};
use super::mask::mask;
use super::retry;

/// Longest piece of a server's words that is kept, in characters.
const LONGEST: usize = 300;

/// Whom a call goes to; needed to word an error and to keep the key out of it.
pub(super) struct Party {
    pub provider: String,
    pub model: String,
    pub host: String,
    pub key: Option<String>,
}

impl Party {
    /// A server's words, without the key, on one line and not too long.
    pub fn clean(&self, text: &str) -> String {
        let masked = mask(text, self.key.as_deref());
        let line = masked.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }
}

/// What an error body says, whichever of the known shapes it has.
#[derive(Debug, Default)]
struct Told {
    message: String,
    /// Type, code and status words in lower case, joined by spaces.
    code: String,
    parameter: Option<String>,
    status: Option<u16>,
    wait: Option<Duration>,
}

/// Turns a refused request into a typed error. `wait` is what the headers asked for.
pub(super) fn from_body(party: &Party, status: u16, wait: Option<Duration>, body: &[u8]) -> LlmError {
    let text = String::from_utf8_lossy(body);
    let told = match serde_json::from_str::<Value>(&text) {
        Ok(value) => read(&value),
        Err(_) if text.trim_start().starts_with('<') => {
            Told { message: format!("HTTP {status}, with a web page in place of a reason"), ..Told::default() }
        }
        Err(_) => Told { message: text.into_owned(), ..Told::default() },
    };
    judge(party, status, wait, told)
}

/// Turns an error object that came within a stream into a typed error.
pub(super) fn from_stream(party: &Party, error: &Value) -> LlmError {
    let told = read(error);
    let named = [
        ("overloaded", 529),
        ("rate_limit", 429),
        ("invalid_request", 400),
        ("authentication", 401),
        ("permission", 403),
        ("not_found", 404),
    ];
    let status = told.status.or_else(|| named.iter().find(|(word, _)| told.code.contains(word)).map(|(_, s)| *s));
    judge(party, status.unwrap_or(500), None, told)
}

fn read(value: &Value) -> Told {
    let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
    let error = match value.get("error") {
        Some(error) if !error.is_null() => error,
        _ => value,
    };
    let mut told = Told::default();
    match error {
        Value::String(text) => told.message = text.clone(),
        Value::Object(fields) => {
            let message = ["message", "msg", "detail", "error"].iter().find_map(|name| fields.get(*name)).map(words);
            told.message = message.filter(|text| !text.is_empty()).unwrap_or_else(|| error.to_string());
            let codes = ["type", "code", "status"].iter().filter_map(|name| fields.get(*name));
            told.code = codes.map(words).collect::<Vec<_>>().join(" ").to_lowercase();
            told.status = ["code", "status"].iter().filter_map(|name| fields.get(*name)).find_map(http_status);
            told.parameter = fields.get("param").and_then(Value::as_str).map(str::to_owned);
            told.wait = fields.get("details").and_then(Value::as_array).and_then(|details| {
                details.iter().find_map(|detail| retry::duration(detail.get("retryDelay")?.as_str()?))
            });
        }
        other => told.message = other.to_string(),
    }
    if told.parameter.is_none() {
        told.parameter = parameter(&told.message);
    }
    told
}

/// Words of a field that may be a text, a number, or a list of what is wrong with which field.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(list) => list
            .iter()
            .map(|item| {
                let place = item
                    .get("loc")
                    .and_then(Value::as_array)
                    .map(|loc| loc.iter().map(words).collect::<Vec<_>>().join("."));
                let text = item.get("msg").map(words).unwrap_or_else(|| item.to_string());
                place.map_or(text.clone(), |place| format!("{place}: {text}"))
            })
            .collect::<Vec<_>>()
            .join("; "),
        other => other.to_string(),
    }
}

fn http_status(value: &Value) -> Option<u16> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
}

/// The parameter that a refusal names in its words.
fn parameter(message: &str) -> Option<String> {
    let pattern = r#"(?i)(?:unsupported (?:parameter|value)|unrecognized request argument supplied|unknown (?:name|parameter|field)|extra (?:inputs|fields)[^:]*|unexpected (?:parameter|field)|invalid (?:parameter|value for)|property)\s*:?\s*[`'"]?([a-z_][a-z0-9_.]*)"#;
    let named =
        Regex::new(pattern).ok().and_then(|pattern| Some(pattern.captures(message)?.get(1)?.as_str().to_owned()));
    // Several providers only say that a known option is not allowed, in words of their own.
    let refused = ["not support", "unsupported", "not allowed", "not permitted", "invalid", "unknown", "extra"];
    let lower = message.to_lowercase();
    let known = [
        "stream_options",
        "temperature",
        "max_completion_tokens",
        "max_tokens",
        "reasoning_content",
        "reasoning_effort",
        "enable_thinking",
        "cache_control",
        "output_config",
        "image_url",
    ];
    // A model without an ability is said in words, not by the name of the field.
    let abilities = [
        (r"(?i)does(?: not|n't) support (?:tools|tool use|function call)", "tools"),
        (r"(?i)does(?: not|n't) support (?:image|vision|multi-?modal)", "image_url"),
        (r"(?i)(?:image|vision) (?:input|content)s? (?:is|are) not (?:supported|allowed|enabled)", "image_url"),
    ];
    let ability = abilities.iter().find(|(words, _)| Regex::new(words).is_ok_and(|words| words.is_match(message)));
    let ability = ability.map(|(_, name)| (*name).to_owned());
    ability.or(named).or_else(|| {
        let is_refusal = refused.iter().any(|word| lower.contains(word));
        known.iter().find(|name| is_refusal && lower.contains(**name)).map(|name| (*name).to_owned())
    })
}

fn judge(party: &Party, status: u16, wait: Option<Duration>, told: Told) -> LlmError {
    let lower = format!("{} {}", told.code, told.message.to_lowercase());
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let detail = party.clean(&told.message);
    let provider = party.provider.clone();
    let partial = Box::<Partial>::default();
    if status == 413 || has(TOO_LONG) {
        return LlmError::ContextTooLong { limit: limit(&told.message), detail };
    }
    if status == 402 || has(NO_CREDIT) {
        return LlmError::NoCredit { provider, detail };
    }
    if has(NO_MODEL) || (status == 404 && told.message.to_lowercase().contains("model")) {
        return LlmError::ModelUnknown { provider, model: party.model.clone(), nearest: Vec::new(), detail };
    }
    if matches!(status, 401 | 403) || has(BAD_KEY) {
        return LlmError::KeyRefused { provider, detail };
    }
    if status == 429 {
        return LlmError::RateLimited { provider, detail, retry_after: wait.or(told.wait), partial };
    }
    if matches!(status, 408 | 409) || status >= 500 {
        return LlmError::Overloaded {
            provider,
            status: Some(status),
            detail,
            retry_after: wait.or(told.wait),
            partial,
        };
    }
    if status == 407 {
        return LlmError::Network {
            cause: NetworkCause::Proxy,
            host: party.host.clone(),
            detail: "it asks for a name and a password (HTTP 407).".into(),
            connecting: true,
            partial,
        };
    }
    if matches!(status, 404 | 405) || (300..400).contains(&status) {
        let detail = format!("{} has no such address (HTTP {status}). {detail}", party.host);
        return LlmError::BadRequest { parameter: Some("base_url".into()), detail: detail.trim_end().to_owned() };
    }
    LlmError::BadRequest { parameter: told.parameter.map(|name| party.clean(&name)), detail }
}

const TOO_LONG: &[&str] = &[
    "context_length_exceeded",
    "context length",
    "context window",
    "exceed_context_size",
    "context size",
    "prompt is too long",
    "input is too long",
    "exceeded model token limit",
    "range of input length",
    "input token count",
];
const NO_CREDIT: &[&str] = &[
    "insufficient_quota",
    "exceeded_current_quota_error",
    "insufficient balance",
    "insufficient credit",
    "insufficient_balance",
    "credit balance is too low",
    "billing_hard_limit",
    "arrearage",
];
const NO_MODEL: &[&str] = &[
    "model_not_found",
    "model not found",
    "model not exist",
    "model_not_exist",
    "not found the model",
    "unknown model",
    "invalid model",
    "invalid_model",
    "is not a valid model",
    "model does not exist",
];
const BAD_KEY: &[&str] = &[
    "invalid_api_key",
    "api key not valid",
    "incorrect api key",
    "invalid api key",
    "api_key_invalid",
    "authentication_error",
    "invalid authentication",
];

/// The number of tokens that a refusal gives as the model's limit.
fn limit(message: &str) -> Option<u64> {
    let patterns = [
        r"(?i)(?:maximum|max|limit)[a-z _-]*?(?:is|of|:|=)\s*([0-9][0-9,]*)",
        r">\s*([0-9][0-9,]*)\s*maximum",
        r"\[\s*1\s*,\s*([0-9]+)\s*\]",
    ];
    patterns.iter().find_map(|pattern| {
        let found = Regex::new(pattern).ok()?.captures(message)?.get(1)?.as_str().replace(',', "");
        found.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party() -> Party {
        Party {
            provider: "Server".into(),
            model: "m".into(),
            host: "host".into(),
            key: Some("sk-secret-0123456789".into()),
        }
    }

    fn told(status: u16, body: &str) -> LlmError {
        from_body(&party(), status, None, body.as_bytes())
    }

    /// Providers' own ways to say the same thing end in one type each.
    #[test]
    fn refusals_are_told_apart() {
        let cases = [
            (
                400,
                r#"{"error":{"message":"API key not valid. Please pass a valid API key.","code":400}}"#,
                "KeyRefused",
            ),
            (403, r#"{"type":"error","error":{"type":"permission_error","message":"no access"}}"#, "KeyRefused"),
            (402, r#"{"error":{"message":"Insufficient Balance"}}"#, "NoCredit"),
            (429, r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#, "NoCredit"),
            (429, r#"{"error":{"message":"Too many requests"}}"#, "RateLimited"),
            (400, r#"{"error":{"message":"Model Not Exist"}}"#, "ModelUnknown"),
            (404, r#"{"error":{"message":"The model `x` does not exist"}}"#, "ModelUnknown"),
            (
                400,
                r#"{"error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
                "ContextTooLong",
            ),
            (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "Overloaded"),
            (503, "upstream gone", "Overloaded"),
            (404, "404 page not found", "BadRequest"),
            (422, r#"{"detail":[{"loc":["body","messages"],"msg":"Field required"}]}"#, "BadRequest"),
        ];
        for (status, body, kind) in cases {
            assert_eq!(told(status, body).kind(), kind, "{status} {body}");
        }
    }

    /// The limit is shown to the person, so it must be the model's and not the request's.
    #[test]
    fn the_limit_of_the_context_is_read() {
        let words = [
            (
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000",
                128_000,
            ),
            ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
            ("Range of input length should be [1, 129024]", 129_024),
        ];
        for (message, expected) in words {
            assert_eq!(limit(message), Some(expected), "{message}");
        }
    }

    /// A refused option is found, because the request is then sent again without it.
    #[test]
    fn the_refused_parameter_is_found() {
        let words = [
            ("Unsupported parameter: 'max_tokens' is not supported with this model.", "max_tokens"),
            ("Unsupported value: 'temperature' does not support 0.2 with this model.", "temperature"),
            ("Unrecognized request argument supplied: stream_options", "stream_options"),
            (
                "Invalid JSON payload received. Unknown name \"parallel_tool_calls\": Cannot find field.",
                "parallel_tool_calls",
            ),
            ("invalid temperature: only 1 is allowed for this model", "temperature"),
        ];
        for (message, expected) in words {
            assert_eq!(parameter(message).as_deref(), Some(expected), "{message}");
        }
        assert_eq!(parameter("Something else went wrong."), None);
    }

    /// A server that echoes the key must not get it into an error text, wherever it stands.
    #[test]
    fn the_key_never_gets_into_an_error() {
        let key = party().key.unwrap();
        for body in [
            format!(r#"{{"error":{{"message":"bad key {key}","param":"{key}"}}}}"#),
            format!("no JSON, but {key}"),
            format!(r#"["{key}"]"#),
        ] {
            for status in [400, 401, 402, 404, 429, 500] {
                let error = told(status, &body);
                let all = format!("{error} {error:?} {}", error.advice());
                assert!(!all.contains("secret-01"), "{all}");
            }
        }
    }
}
