//! A model call in plain types: no provider's JSON is seen outside this room.

use serde::{Deserialize, Serialize};

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments object.
    pub parameters: serde_json::Value,
}

/// A tool call that a model asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// The parsed arguments; when they are not valid JSON, a string with what came.
    pub arguments: serde_json::Value,
}

/// One message of a conversation with a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    System {
        text: String,
    },
    User {
        text: String,
    },
    /// A picture from the person or from a tool. Beside other words of the person it becomes one message with them; a
    /// model that cannot see gets only what it is about.
    Picture {
        /// What it shows, in a few words.
        about: String,
        /// For example `image/png`.
        mime: String,
        /// Base64. Not written with the message: a prompt in a run folder stays readable, the picture lies beside it.
        #[serde(skip)]
        data: String,
    },
    Assistant {
        text: String,
        /// Thinking that the provider wants back within a tool loop.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reasoning: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        tool_calls: Vec<ToolCall>,
    },
    Tool {
        call: String,
        name: String,
        text: String,
    },
}

/// How long a model may think before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    Low,
    Medium,
    High,
}

impl Effort {
    /// The word that the wire formats use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// The effort of this name; `None` for any other word, which stands for the model's own.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Low, Self::Medium, Self::High].into_iter().find(|effort| effort.name() == name)
    }
}

/// What is asked of a model.
#[derive(Debug, Clone, Default)]
pub struct ChatRequest {
    pub messages: Vec<Message>,
    /// Empty: the model cannot call tools in this round.
    pub tools: Vec<ToolDefinition>,
    /// The tools may not be called in this round. They stay named, because a wire format may demand the definitions of
    /// tools that the conversation has calls of.
    pub withhold_tools: bool,
    pub temperature: Option<f64>,
    /// Largest answer in tokens.
    pub max_output: Option<u32>,
    /// `None`: as the model does by itself.
    pub effort: Option<Effort>,
}

/// What arrives while a model answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    Text(String),
    Reasoning(String),
    /// All text of this answer so far was thinking, as it turns out.
    WasThinking,
    /// The call failed in a way that passes; it is tried again after `wait_ms`.
    Retrying {
        attempt: u32,
        wait_ms: u64,
        why: String,
    },
    /// An attempt that failed had used these tokens: they are billed although no reply comes of them.
    Spent(Usage),
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    End,
    ToolCalls,
    Length,
    ContentFilter,
}

/// Tokens of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input tokens that were not read from the provider's cache.
    pub input: u64,
    pub cached: u64,
    /// All tokens of the answer, thinking included.
    pub output: u64,
    /// The part of `output` that was thinking, where the provider tells.
    pub reasoning: u64,
    /// The part of `input` that was written to the provider's cache, which some bill higher.
    pub cache_write: u64,
    /// True when the provider told nothing and this is our estimate.
    pub estimated: bool,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatReply {
    pub text: String,
    pub reasoning: String,
    pub tool_calls: Vec<ToolCall>,
    pub usage: Usage,
    pub stop: StopReason,
}

/// How to reach one model. It has no `Debug`, so that a key cannot be formatted by accident.
#[derive(Clone)]
pub struct Endpoint {
    /// Provider id, for example `openai` or `custom`.
    pub provider: String,
    pub base_url: String,
    pub model: String,
    pub api_key: Option<String>,
}
