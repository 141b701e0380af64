//! What can go wrong with a model call, as types: the surface shows one sentence of what happened (`Display`) and one of
//! what to do ([`LlmError::advice`]). Everything that came from a server was masked and cut before it got in here.

use std::time::Duration;

/// What had arrived of an answer when it broke off.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Partial {
    pub text: String,
    pub reasoning: String,
}

/// Why a provider could not be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkCause {
    /// The name of the host is not known.
    Dns,
    /// The certificate or the encryption was not accepted.
    Tls,
    /// Nothing listens at the address.
    Refused,
    /// Nothing came in time.
    Timeout,
    /// A proxy stands in the way.
    Proxy,
    /// The connection broke, or something else of its kind.
    Broken,
}

/// What is wrong with a reply that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyFault {
    /// It ended before its end was told.
    Cut,
    /// It has neither text nor thinking nor a tool call.
    Empty,
    /// The limit of the answer was reached within the arguments of a tool call.
    ToolCallCut,
    /// It is not what a model replies (a web page, for example).
    NotAReply,
}

/// A model call that failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LlmError {
    #[error("{provider} needs an API key and none is set.")]
    NoKey { provider: String, variable: Option<String> },
    #[error("{provider} refused the API key: {detail}")]
    KeyRefused { provider: String, detail: String },
    #[error("The account at {provider} has no credit for this: {detail}")]
    NoCredit { provider: String, detail: String },
    #[error("{provider} limits how much it may be asked now{}: {detail}", wait_words(*retry_after))]
    RateLimited { provider: String, detail: String, retry_after: Option<Duration>, partial: Box<Partial> },
    #[error("{provider} does not offer the model `{model}`: {detail}")]
    ModelUnknown { provider: String, model: String, nearest: Vec<String>, detail: String },
    #[error("The request is longer than the model can read{}: {detail}", limit_words(*limit))]
    ContextTooLong { limit: Option<u64>, detail: String },
    #[error("The provider did not accept the request{}: {detail}", parameter_words(parameter.as_deref()))]
    BadRequest { parameter: Option<String>, detail: String },
    #[error("{provider} could not answer{}: {detail}", status_words(*status))]
    Overloaded {
        provider: String,
        status: Option<u16>,
        detail: String,
        retry_after: Option<Duration>,
        partial: Box<Partial>,
    },
    #[error("{}", network_words(*cause, host, detail))]
    Network {
        cause: NetworkCause,
        host: String,
        detail: String,
        /// True when it happened before anything of the request was sent.
        connecting: bool,
        partial: Box<Partial>,
    },
    #[error("{}", reply_words(*fault, detail))]
    BadReply {
        fault: ReplyFault,
        /// A short piece of what came, or which part is missing.
        detail: String,
        partial: Box<Partial>,
    },
    #[error("The call was stopped.")]
    Cancelled { partial: Box<Partial> },
}

impl LlmError {
    /// The name of the error in the command line's contract.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoKey { .. } => "NoKey",
            Self::KeyRefused { .. } => "KeyRefused",
            Self::NoCredit { .. } => "NoCredit",
            Self::RateLimited { .. } => "RateLimited",
            Self::ModelUnknown { .. } => "ModelUnknown",
            Self::ContextTooLong { .. } => "ContextTooLong",
            Self::BadRequest { .. } => "BadRequest",
            Self::Overloaded { .. } => "Overloaded",
            Self::Network { .. } => "Network",
            Self::BadReply { .. } => "BadReply",
            Self::Cancelled { .. } => "Cancelled",
        }
    }

    /// What the person can do about it, in one sentence.
    pub fn advice(&self) -> String {
        match self {
            Self::NoKey { variable: Some(variable), .. } => {
                format!("Set the key in the settings, or in the environment variable {variable}.")
            }
            Self::NoKey { variable: None, .. } => "Set the key in the settings.".into(),
            Self::KeyRefused { .. } => {
                "Check that the key is complete, belongs to this provider and region, and is allowed to use the model."
                    .into()
            }
            Self::NoCredit { .. } => "Add credit at the provider, or choose another provider in the settings.".into(),
            Self::RateLimited { retry_after: Some(wait), .. } => {
                format!("Send the message again in {}, or choose another model.", span(*wait))
            }
            Self::RateLimited { .. } => "Wait a minute and send the message again, or choose another model.".into(),
            Self::ModelUnknown { nearest, .. } if !nearest.is_empty() => {
                format!("Choose another model in the settings; the nearest names are {}.", nearest.join(", "))
            }
            Self::ModelUnknown { .. } => "Choose another model in the settings.".into(),
            Self::ContextTooLong { .. } => {
                "Start a new conversation or compact this one, or choose a model with a larger context.".into()
            }
            Self::BadRequest { parameter: Some(parameter), .. } if parameter == "base_url" => {
                "Check the base URL in the settings; most end in /v1.".into()
            }
            Self::BadRequest { parameter: Some(parameter), .. } if parameter == "proxy" => {
                "Write the proxy as http://host:port in the settings, or leave it empty.".into()
            }
            Self::BadRequest { .. } => {
                "Check the provider, the model and its options in the settings; the provider's words say which it was."
                    .into()
            }
            Self::Overloaded { .. } => "Send the message again in a while, or choose another model.".into(),
            Self::Network { cause, .. } => network_advice(*cause).into(),
            Self::BadReply { fault, .. } => reply_advice(*fault).into(),
            Self::Cancelled { .. } => "Send the message again when you want the answer.".into(),
        }
    }

    /// What had arrived before it failed, when anything had.
    pub fn partial(&self) -> Option<&Partial> {
        match self {
            Self::RateLimited { partial, .. }
            | Self::Overloaded { partial, .. }
            | Self::Network { partial, .. }
            | Self::BadReply { partial, .. }
            | Self::Cancelled { partial } => {
                Some(partial).filter(|partial| ***partial != Partial::default()).map(|p| &**p)
            }
            _ => None,
        }
    }

    /// How long the provider asks to wait, where it told.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Overloaded { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// True for what passes by itself, so that trying again makes sense.
    pub fn passes(&self) -> bool {
        match self {
            Self::RateLimited { .. } | Self::Overloaded { .. } => true,
            // A time-out while waiting for the answer was long enough already; a certificate does not change.
            Self::Network { cause: NetworkCause::Tls | NetworkCause::Proxy, .. } => false,
            Self::Network { cause: NetworkCause::Timeout, connecting, .. } => *connecting,
            Self::Network { .. } => true,
            Self::BadReply { fault, .. } => matches!(fault, ReplyFault::Cut | ReplyFault::Empty),
            _ => false,
        }
    }

    /// The same error with what had arrived.
    pub(super) fn with_partial(mut self, arrived: Partial) -> Self {
        match &mut self {
            Self::RateLimited { partial, .. }
            | Self::Overloaded { partial, .. }
            | Self::Network { partial, .. }
            | Self::BadReply { partial, .. }
            | Self::Cancelled { partial } => **partial = arrived,
            _ => {}
        }
        self
    }
}

/// A span of time in words, rounded up.
pub(super) fn span(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    if seconds > 120 { format!("{} minutes", seconds.div_ceil(60)) } else { format!("{seconds} s") }
}

fn wait_words(wait: Option<Duration>) -> String {
    wait.map(|wait| format!(" (for {})", span(wait))).unwrap_or_default()
}

fn limit_words(limit: Option<u64>) -> String {
    limit.map(|limit| format!(" ({limit} tokens)")).unwrap_or_default()
}

fn parameter_words(parameter: Option<&str>) -> String {
    parameter.map(|parameter| format!(" (`{parameter}`)")).unwrap_or_default()
}

fn status_words(status: Option<u16>) -> String {
    status.map(|status| format!(" (HTTP {status})")).unwrap_or_default()
}

fn network_words(cause: NetworkCause, host: &str, detail: &str) -> String {
    match cause {
        NetworkCause::Dns => format!("The name of the server {host} could not be resolved."),
        NetworkCause::Tls => format!("A secure connection to {host} could not be made: {detail}"),
        NetworkCause::Refused => format!("Nothing answers at {host}."),
        NetworkCause::Timeout => format!("{host} did not answer in time: {detail}"),
        NetworkCause::Proxy => format!("The proxy on the way to {host} does not let this through: {detail}"),
        NetworkCause::Broken => format!("The connection to {host} broke: {detail}"),
    }
}

fn network_advice(cause: NetworkCause) -> &'static str {
    match cause {
        NetworkCause::Dns => "Check the network connection and the host in the base URL.",
        NetworkCause::Tls => {
            "Check the clock of this computer, and whether a proxy or a virus scanner opens connections."
        }
        NetworkCause::Refused => "Start the model server, or correct the base URL in the settings.",
        NetworkCause::Timeout => "Check the network and the proxy, or choose a faster model.",
        NetworkCause::Proxy => {
            "Check the proxy in the settings or in the environment (HTTPS_PROXY, NO_PROXY), with its name and password."
        }
        NetworkCause::Broken => "Check the network and send the message again.",
    }
}

fn reply_words(fault: ReplyFault, detail: &str) -> String {
    match fault {
        ReplyFault::Cut => "The answer ended before it was complete.".into(),
        ReplyFault::Empty => "The model answered with nothing.".into(),
        ReplyFault::ToolCallCut => {
            format!("The answer reached its limit (max_tokens) within the arguments of a tool call ({detail}).")
        }
        ReplyFault::NotAReply => format!("The reply is not one that a model server gives: {detail}"),
    }
}

fn reply_advice(fault: ReplyFault) -> &'static str {
    match fault {
        ReplyFault::Cut => {
            "Send the message again; if it happens often, the server or a proxy closes connections too early."
        }
        ReplyFault::Empty => "Send the message again, or choose another model.",
        ReplyFault::ToolCallCut => "Raise the limit of the answer in the settings, or ask for less at once.",
        ReplyFault::NotAReply => "Check the base URL in the settings, and whether the network asks for a sign-in.",
    }
}
