//! The connection test: is the address right, the key accepted, the model offered and does it answer. It goes the same
//! way as a real call, so that a test that passes means something.

use std::time::Instant;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::error::{LlmError, ReplyFault};
use super::types::{ChatRequest, Message};

/// What a connection test found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TestOutcome {
    /// Time of the one-token answer in milliseconds; of the list when there was no answer.
    pub ms: f64,
    /// False when the server does not offer the model; it was then not asked any further.
    pub model_available: bool,
    /// True when the server tells which models it has.
    pub listed: bool,
    /// Names near the one that is not offered, best first.
    pub nearest: Vec<String>,
    /// Whether the model sees images and calls tools, where the catalogue knows.
    pub vision: Option<bool>,
    pub tools: Option<bool>,
}

impl Client {
    /// The names of the models that the server offers.
    ///
    /// # Errors
    /// Every kind of [`LlmError`] but those of an answer; `BadRequest` when the server has no such list.
    pub async fn list_models(&self) -> Result<Vec<String>, LlmError> {
        let value = self.get("models").await?;
        let list = ["data", "models"].iter().find_map(|name| value.get(*name)).unwrap_or(&value);
        let Some(list) = list.as_array() else {
            return Err(self.not_a_reply("it holds no list of models.".into()));
        };
        let name = |model: &Value| {
            let name =
                model.as_str().or_else(|| ["id", "name"].iter().find_map(|field| model.get(*field)?.as_str()))?;
            Some(name.strip_prefix("models/").unwrap_or(name).to_owned())
        };
        Ok(list.iter().filter_map(name).collect())
    }

    /// Tests the way to the model: lists what the server offers, then asks for an answer of one token. Nothing is
    /// tried again, so that the person learns at once what is wrong.
    ///
    /// # Errors
    /// What stands in the way. A model that is not offered is no error but an outcome.
    pub async fn test_connection(&self, cancel: &CancellationToken) -> Result<TestOutcome, LlmError> {
        let started = Instant::now();
        let listing = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(LlmError::Cancelled { partial: Box::default() }),
            listing = self.list_models() => listing,
        };
        let offered = match listing {
            Ok(offered) => Some(offered),
            // A server without such a list may still answer; what else is wrong the answer would meet as well.
            Err(LlmError::BadRequest { .. } | LlmError::BadReply { .. } | LlmError::ModelUnknown { .. }) => None,
            Err(error) => return Err(error),
        };
        let known = self.model();
        let mut outcome = TestOutcome {
            listed: offered.is_some(),
            vision: known.map(|model| model.vision),
            tools: known.map(|model| model.tools),
            ..TestOutcome::default()
        };
        let model = &self.endpoint.model;
        if let Some(offered) = offered.filter(|offered| !offered.is_empty() && !offered.contains(model)) {
            // Some servers offer short names that are not in their list, so only the answer decides.
            outcome.nearest = nearest(model, &offered);
        }
        outcome.ms = started.elapsed().as_secs_f64() * 1000.0;
        let asked = Instant::now();
        match self.one_token(cancel).await {
            Ok(()) => {
                outcome.model_available = true;
                outcome.nearest.clear();
                outcome.ms = asked.elapsed().as_secs_f64() * 1000.0;
                Ok(outcome)
            }
            Err(LlmError::ModelUnknown { nearest, .. }) => {
                if outcome.nearest.is_empty() {
                    outcome.nearest = nearest;
                }
                Ok(outcome)
            }
            Err(error) => Err(error),
        }
    }

    async fn one_token(&self, cancel: &CancellationToken) -> Result<(), LlmError> {
        let request = ChatRequest {
            messages: vec![Message::User { text: "Say OK.".into() }],
            max_output: Some(1),
            ..ChatRequest::default()
        };
        // Nobody reads the pieces; a dropped receiver is fine.
        let (deltas, _) = tokio::sync::mpsc::channel(1);
        match self.chat_with_retries(&request, cancel, &deltas, 0).await {
            // A model that thinks has nothing to show after one token: that it answered is what was asked.
            Ok(_) | Err(LlmError::BadReply { fault: ReplyFault::Empty, .. }) => Ok(()),
            Err(LlmError::BadRequest { detail, .. }) if detail.contains("output limit was reached") => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Up to three of `offered` that look like `name`, best first.
pub(super) fn nearest(name: &str, offered: &[String]) -> Vec<String> {
    let wanted = name.to_lowercase();
    let mut scored: Vec<(usize, &String)> = offered
        .iter()
        .filter_map(|candidate| {
            let lower = candidate.to_lowercase();
            let contained = !wanted.is_empty() && (lower.contains(&wanted) || wanted.contains(&lower));
            let distance = distance(&wanted, &lower);
            let near = distance * 2 <= wanted.chars().count().max(lower.chars().count());
            (contained || near).then_some((distance, candidate))
        })
        .collect();
    scored.sort();
    scored.into_iter().take(3).map(|(_, candidate)| candidate.clone()).collect()
}

/// Number of letters to change, add or remove to make one name of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (position, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = position + 1;
        for column in 1..row.len() {
            let change = diagonal + usize::from(letter != other[column - 1]);
            diagonal = row[column];
            row[column] = change.min(row[column] + 1).min(row[column - 1] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    /// A misspelt name must find its model, and a strange one must not be told nonsense.
    #[test]
    fn near_names_are_found() {
        let offered = ["gpt-4.1", "gpt-4.1-mini", "o3", "text-embedding-3-large"].map(String::from);
        assert_eq!(nearest("gpt-41", &offered)[0], "gpt-4.1");
        assert_eq!(nearest("GPT-4.1-MINI", &offered)[0], "gpt-4.1-mini");
        assert!(nearest("zzzzzzzz", &offered).is_empty());
    }
}
