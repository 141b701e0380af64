//! One model over HTTP: sends a request, reads the stream, tries again where that makes sense, and stops at once when it
//! is told to. Everything that is different between providers is data in the catalogue or lives in the wire modules.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::catalogue::{Catalogue, Model, Provider, Wire};
use super::error::{LlmError, NetworkCause, Partial, ReplyFault};
use super::http_error::{self, Party};
use super::intake::{Intake, not_a_reply};
use super::memory::{Learnt, Memory};
use super::reply::{Draft, estimate_input};
use super::types::{ChatReply, ChatRequest, Delta, Endpoint, Usage};
use super::{anthropic, openai, probe, retry};

/// How long to wait for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    pub connect: Duration,
    /// From sending the request to the first byte of the answer.
    pub first_byte: Duration,
    pub between_bytes: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(120),
            between_bytes: Duration::from_secs(60),
        }
    }
}

/// After its end was told, a stream may only bring usage: a server that then keeps the line open is not waited for.
const AFTER_END: Duration = Duration::from_secs(5);
/// More than this is no answer of a model, and memory is finite.
const LARGEST_REPLY: usize = 64 << 20;
const LARGEST_ERROR: usize = 256 << 10;

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transport {
    pub timeouts: Timeouts,
    /// A proxy of the person's own; `None`: as the environment and the system say. This computer is never asked through
    /// a proxy.
    pub proxy: Option<String>,
}

/// Speaks to one model. Keep it for the length of a tool loop: it holds what the provider wants back.
pub struct Client {
    http: reqwest::Client,
    pub(super) provider: Provider,
    pub(super) endpoint: Endpoint,
    pub(super) known: Vec<Model>,
    pub(super) base: String,
    pub(super) party: Party,
    memory: Memory,
    timeouts: Timeouts,
    address: reqwest::Url,
    max_retries: u32,
}

impl Client {
    /// Prepares the way to a model; sends nothing yet. An empty base URL means the provider's own.
    ///
    /// # Errors
    /// `NoKey` when the provider needs a key and none is given, `BadRequest` for an unknown provider or an address that
    /// is none, `KeyRefused` for a key that cannot be sent.
    pub fn new(endpoint: Endpoint, catalogue: &Catalogue) -> Result<Self, LlmError> {
        let refuse =
            |parameter: &str, detail: String| LlmError::BadRequest { parameter: Some(parameter.into()), detail };
        let provider = catalogue
            .provider(&endpoint.provider)
            .ok_or_else(|| refuse("provider", format!("there is no provider `{}`", endpoint.provider)))?
            .clone();
        if provider.wire == Wire::Recipes {
            return Err(refuse("provider", "the built-in recipes answer without a model".into()));
        }
        let key = endpoint.api_key.as_deref().map(str::trim).filter(|key| !key.is_empty()).map(str::to_owned);
        if key.is_none() && provider.needs_key {
            return Err(LlmError::NoKey { provider: provider.name, variable: provider.key_variable });
        }
        let base = base_url(&endpoint, &provider);
        let address = reqwest::Url::parse(&base)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| refuse("base_url", "the base URL must be an http or https address".into()))?;
        let host = match (address.host_str().unwrap_or_default(), address.port()) {
            (name, Some(port)) => format!("{name}:{port}"),
            (name, None) => name.to_owned(),
        };
        let party = Party { provider: provider.name.clone(), model: endpoint.model.clone(), host, key };
        let known = catalogue.models(&provider.id).cloned().collect();
        let transport = Transport::default();
        let http = http_client(&party, provider.wire, &address, &transport)?;
        let max_retries = retry::limit_from_environment();
        let memory = Memory::of(&provider.id, &base, &endpoint.model);
        let timeouts = transport.timeouts;
        Ok(Self { http, provider, endpoint, known, base, party, memory, timeouts, address, max_retries })
    }

    /// The same with other time-outs.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn with_timeouts(self, timeouts: Timeouts) -> Result<Self, LlmError> {
        self.with_transport(&Transport { timeouts, proxy: None })
    }

    /// The same over another way.
    ///
    /// # Errors
    /// As [`Client::new`]; `BadRequest` for a proxy that is no address.
    pub fn with_transport(mut self, transport: &Transport) -> Result<Self, LlmError> {
        self.http = http_client(&self.party, self.provider.wire, &self.address, transport)?;
        self.timeouts = transport.timeouts;
        Ok(self)
    }

    /// The same with what other clients learnt about refused options, and telling them.
    pub fn with_learnt(mut self, learnt: Learnt) -> Self {
        self.memory.share(learnt);
        self
    }

    /// A guess at the input tokens that a request will use, pictures and tool definitions included.
    pub fn estimate_input(&self, request: &ChatRequest) -> Usage {
        estimate_input(request)
    }

    /// The same with another number of retries; 0 tries once.
    pub fn with_max_retries(mut self, max_retries: u32) -> Self {
        self.max_retries = max_retries;
        self
    }

    /// What is known of the model, when it is listed.
    pub fn model(&self) -> Option<&Model> {
        self.known.iter().find(|model| model.id == self.endpoint.model)
    }

    /// Asks the model. Pieces go to `deltas` as they arrive; a receiver that is gone is no error, one that is slow slows
    /// the reading down. `cancel` ends the call at any moment.
    ///
    /// # Errors
    /// Every kind of [`LlmError`]; those that break off an answer hold what had arrived.
    pub async fn chat(
        &self,
        request: &ChatRequest,
        cancel: &CancellationToken,
        deltas: &Sender<Delta>,
    ) -> Result<ChatReply, LlmError> {
        self.chat_with_retries(request, cancel, deltas, self.max_retries).await
    }

    pub(super) async fn chat_with_retries(
        &self,
        request: &ChatRequest,
        cancel: &CancellationToken,
        deltas: &Sender<Delta>,
        max_retries: u32,
    ) -> Result<ChatReply, LlmError> {
        let mut draft = Draft::default();
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            outcome = self.attempts(request, deltas, max_retries, &mut draft) => return outcome,
        }
        if let Some(usage) = draft.spent(request) {
            // A receiver that is full must not hold up a stop; the caller then counts too little rather than waits.
            deltas.try_send(Delta::Spent(usage)).ok();
        }
        Err(LlmError::Cancelled { partial: Box::new(draft.partial()) })
    }

    async fn attempts(
        &self,
        request: &ChatRequest,
        deltas: &Sender<Delta>,
        max_retries: u32,
        draft: &mut Draft,
    ) -> Result<ChatReply, LlmError> {
        let mut attempt = 0;
        loop {
            *draft = Draft::default();
            let error = match self.attempt(request, deltas, draft).await {
                Ok(()) => {
                    let (partial, text_shown, spent) = (draft.partial(), draft.text_shown, draft.spent(request));
                    match self.conclude(std::mem::take(draft), request) {
                        Ok(reply) => return Ok(reply),
                        Err((fault, detail)) => {
                            draft.text_shown = text_shown;
                            draft.usage = spent;
                            LlmError::BadReply { fault, detail, partial: Box::new(partial) }
                        }
                    }
                }
                Err(error) => error.with_partial(draft.partial()),
            };
            if self.adapts_to(&error) {
                continue;
            }
            if let Some(usage) = draft.spent(request) {
                deliver(deltas, Delta::Spent(usage)).await;
                draft.usage = None;
            }
            let wait = error.retry_after().unwrap_or_else(|| retry::backoff(attempt + 1));
            if draft.text_shown || !error.passes() || attempt >= max_retries || wait > retry::LONGEST_WAIT {
                return Err(self.with_nearest(error).await);
            }
            attempt += 1;
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            tracing::debug!(attempt, wait_ms, kind = error.kind(), "the model call is tried again");
            deliver(deltas, Delta::Retrying { attempt, wait_ms, why: error.to_string() }).await;
            tokio::time::sleep(wait).await;
        }
    }

    /// Makes the reply, and remembers what must go back with its tool calls.
    fn conclude(&self, mut draft: Draft, request: &ChatRequest) -> Result<ChatReply, (ReplyFault, String)> {
        let blocks = std::mem::take(&mut draft.blocks);
        let reply = draft.into_reply(request)?;
        if let Some(call) = reply.tool_calls.first().filter(|_| !blocks.is_empty()) {
            self.memory.keep(&call.id, blocks);
        }
        Ok(reply)
    }

    /// True when the request can be sent again without the option that was refused. Each option is left out once, so
    /// this ends.
    fn adapts_to(&self, error: &LlmError) -> bool {
        const OPTIONAL: &[&str] = &[
            "stream_options",
            "temperature",
            "max_tokens",
            "max_completion_tokens",
            "reasoning_content",
            "reasoning_effort",
            "reasoning",
            "enable_thinking",
            "thinking",
            "output_config",
            "cache_control",
            "image_url",
            "image",
            "tools",
        ];
        let LlmError::BadRequest { parameter: Some(parameter), .. } = error else { return false };
        let named = OPTIONAL.iter().find(|name| parameter.split('.').any(|part| part == **name));
        // The Messages format cannot do without a limit.
        let needed = self.provider.wire == Wire::Anthropic && parameter == "max_tokens";
        named.is_some_and(|name| !needed && self.memory.refuse(name))
    }

    /// Names that may have been meant, from what the server offers and from the catalogue.
    async fn with_nearest(&self, mut error: LlmError) -> LlmError {
        if let LlmError::ModelUnknown { nearest, model, .. } = &mut error {
            // Best effort: that the list cannot be had is not what the person must hear about now.
            let listed = timeout(Duration::from_secs(3), self.list_models()).await;
            let mut offered = listed.ok().and_then(Result::ok).unwrap_or_default();
            if offered.is_empty() {
                offered = self.known.iter().map(|known| known.id.clone()).collect();
            }
            *nearest = probe::nearest(model, &offered);
        }
        error
    }

    async fn attempt(&self, request: &ChatRequest, deltas: &Sender<Delta>, draft: &mut Draft) -> Result<(), LlmError> {
        let (path, body) = match self.provider.wire {
            Wire::Anthropic => ("messages", anthropic::body(self.model(), &self.endpoint.model, request, &self.memory)),
            _ => {
                let model = &self.endpoint.model;
                ("chat/completions", openai::body(&self.provider, self.model(), model, request, &self.memory))
            }
        };
        let deadline = Instant::now() + self.timeouts.first_byte;
        let sending = self.http.post(format!("{}/{path}", self.base)).json(&body).send();
        let response = match timeout_at(deadline, sending).await {
            Ok(sent) => sent.map_err(|error| self.network(&error))?,
            Err(_) => return Err(self.too_slow(self.timeouts.first_byte)),
        };
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        self.read(response, deadline, deltas, draft).await
    }

    /// Reads the body of a refused request.
    pub(super) async fn refusal(&self, mut response: reqwest::Response) -> LlmError {
        let status = response.status().as_u16();
        let wait = retry::wait_from_headers(response.headers());
        let mut body = Vec::new();
        // The status says enough when the rest of the body does not come.
        while let Ok(Ok(Some(chunk))) = timeout(self.timeouts.between_bytes, response.chunk()).await {
            body.extend_from_slice(&chunk);
            if body.len() > LARGEST_ERROR {
                break;
            }
        }
        http_error::from_body(&self.party, status, wait, &body)
    }

    async fn read(
        &self,
        mut response: reqwest::Response,
        first: Instant,
        deltas: &Sender<Delta>,
        draft: &mut Draft,
    ) -> Result<(), LlmError> {
        let mut intake = Intake::new(self.provider.wire);
        let mut size = 0;
        loop {
            let limit =
                if draft.complete() { AFTER_END.min(self.timeouts.between_bytes) } else { self.timeouts.between_bytes };
            let until = if size == 0 { first } else { Instant::now() + limit };
            let chunk = match timeout_at(until, response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break,
                _ if draft.complete() => break,
                Ok(Err(error)) => return Err(self.network(&error)),
                Err(_) => return Err(self.too_slow(limit)),
            };
            size += chunk.len();
            if size > LARGEST_REPLY {
                return Err(self.not_a_reply(format!("it is longer than {} MB", LARGEST_REPLY >> 20)));
            }
            let taken = intake.push(&chunk, draft);
            hand_over(deltas, draft).await;
            taken.map_err(|fault| fault.into_error(&self.party))?;
            if draft.ended {
                break;
            }
        }
        let finished = intake.finish(draft);
        hand_over(deltas, draft).await;
        finished.map_err(|fault| fault.into_error(&self.party))
    }

    pub(super) fn not_a_reply(&self, detail: String) -> LlmError {
        not_a_reply(detail)
    }

    fn too_slow(&self, limit: Duration) -> LlmError {
        LlmError::Network {
            cause: NetworkCause::Timeout,
            host: self.party.host.clone(),
            detail: format!("nothing came for {}.", super::error::span(limit)),
            connecting: false,
            partial: Box::<Partial>::default(),
        }
    }

    pub(super) fn network(&self, error: &reqwest::Error) -> LlmError {
        let (cause, detail) = cause(error);
        LlmError::Network {
            cause,
            host: self.party.host.clone(),
            detail: self.party.clean(&detail),
            connecting: error.is_connect(),
            partial: Box::<Partial>::default(),
        }
    }

    /// Gets the JSON at `path` below the base URL.
    pub(super) async fn get(&self, path: &str) -> Result<Value, LlmError> {
        let sending = self.http.get(format!("{}/{path}", self.base)).send();
        let response = match timeout(self.timeouts.first_byte, sending).await {
            Ok(sent) => sent.map_err(|error| self.network(&error))?,
            Err(_) => return Err(self.too_slow(self.timeouts.first_byte)),
        };
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        let text = match timeout(self.timeouts.between_bytes, response.text()).await {
            Ok(text) => text.map_err(|error| self.network(&error))?,
            Err(_) => return Err(self.too_slow(self.timeouts.between_bytes)),
        };
        serde_json::from_str(&text).map_err(|_| self.not_a_reply(self.party.clean(&text)))
    }
}

/// The address below which the paths of the wire format lie.
fn base_url(endpoint: &Endpoint, provider: &Provider) -> String {
    let own = endpoint.base_url.trim();
    let base = if own.is_empty() { provider.base_url.as_str() } else { own };
    let base = base.trim_end_matches('/');
    // People paste the whole address as often as the base.
    let base = base.strip_suffix("/chat/completions").or_else(|| base.strip_suffix("/messages")).unwrap_or(base);
    base.to_owned()
}

fn http_client(
    party: &Party,
    wire: Wire,
    address: &reqwest::Url,
    transport: &Transport,
) -> Result<reqwest::Client, LlmError> {
    // Fails when a provider of cryptography was set before, which is just as well.
    rustls::crypto::ring::default_provider().install_default().ok();
    let mut headers = HeaderMap::new();
    if wire == Wire::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static(anthropic::VERSION));
    }
    if let Some(key) = &party.key {
        let (name, value) = match wire {
            Wire::Anthropic => (HeaderName::from_static("x-api-key"), key.clone()),
            _ => (reqwest::header::AUTHORIZATION, format!("Bearer {key}")),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| LlmError::KeyRefused {
            provider: party.provider.clone(),
            detail: "it holds characters that no key has; it may have been copied with something around it.".into(),
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    // A redirect would send the key to an address that nobody entered.
    let mut builder = reqwest::Client::builder()
        .default_headers(headers)
        .connect_timeout(transport.timeouts.connect)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("slicer-ai-agent/", env!("CARGO_PKG_VERSION")));
    if is_loopback(address) {
        builder = builder.no_proxy();
    } else if let Some(proxy) = transport.proxy.as_deref().map(str::trim).filter(|proxy| !proxy.is_empty()) {
        // The reason is left out: it may hold the address with a password in it.
        let proxy = reqwest::Proxy::all(proxy).map_err(|_| LlmError::BadRequest {
            parameter: Some("proxy".into()),
            detail: "the proxy in the settings is no address that can be used".into(),
        })?;
        builder = builder.proxy(proxy.no_proxy(reqwest::NoProxy::from_env()));
    }
    builder.build().map_err(|error| LlmError::Network {
        cause: NetworkCause::Tls,
        host: party.host.clone(),
        detail: party.clean(&error.without_url().to_string()),
        connecting: true,
        partial: Box::default(),
    })
}

fn is_loopback(address: &reqwest::Url) -> bool {
    let host = address.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_name = host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost");
    is_name || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// What lies behind a failed request, from the innermost error that tells.
fn cause(error: &reqwest::Error) -> (NetworkCause, String) {
    let mut words = Vec::new();
    let mut cause = if error.is_timeout() { NetworkCause::Timeout } else { NetworkCause::Broken };
    let mut inner = std::error::Error::source(error);
    while let Some(source) = inner {
        let text = source.to_string();
        let lower = text.to_lowercase();
        let io = source.downcast_ref::<std::io::Error>();
        let carried = io.is_some_and(carries_tls_error);
        if lower.contains("tunnel error") || lower.contains("proxy authentication") {
            cause = NetworkCause::Proxy;
        }
        if io.is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused) {
            cause = NetworkCause::Refused;
        } else if lower.contains("dns error") || lower.contains("failed to lookup") {
            cause = NetworkCause::Dns;
        } else if carried || source.is::<rustls::Error>() || lower.contains("certificate") {
            cause = NetworkCause::Tls;
        }
        words.push(text);
        inner = source.source();
    }
    (cause, words.pop().unwrap_or_else(|| "no reason was given".into()))
}

/// An `io::Error` hides what it carries from `source`, and may carry another of its kind.
fn carries_tls_error(error: &std::io::Error) -> bool {
    error.get_ref().is_some_and(|inner| {
        inner.is::<rustls::Error>() || inner.downcast_ref::<std::io::Error>().is_some_and(carries_tls_error)
    })
}

async fn deliver(deltas: &Sender<Delta>, delta: Delta) {
    // A receiver that went away does not want the pieces; the whole answer is returned all the same.
    deltas.send(delta).await.ok();
}

async fn hand_over(deltas: &Sender<Delta>, draft: &mut Draft) {
    for delta in std::mem::take(&mut draft.pending) {
        draft.text_shown |= matches!(delta, Delta::Text(_));
        deliver(deltas, delta).await;
    }
}
