//! Running one turn, and the small jobs around it: the picture of a view, the scene for the pane.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::events::EventSender;
use super::host::{EngineHost, Questions};
use super::session::Job;
use super::slicer_link::{SlicerLink, problem};
use super::types::*;
use crate::agent::recipes::{PendingRecipe, RecipeBook, RecipeContext};
use crate::agent::{
    Allowance, Brain, Budget, HostError, Limits, PastTurn, SentPicture, TurnContext, TurnHost, TurnResult, run_turn,
};
use crate::knowledge::Knowledge;
use crate::llm::{self, Catalogue, Endpoint};
use crate::safety::Policy;
use crate::store::{Conversations, Keys, Paths, RunFolder, StoreError, StoredEvent, hide_in_log, month_start_ms};

/// What all tasks of an engine share.
pub struct Shared {
    pub paths: Paths,
    pub store: Arc<Conversations>,
    pub keys: Arc<Keys>,
    pub catalogue: Catalogue,
    pub recipes: RecipeBook,
    pub knowledge: Knowledge,
    pub events: EventSender,
    pub questions: Questions,
    /// Capabilities granted for this process by the command line.
    pub granted: BTreeSet<Capability>,
    /// A key given by the command line, which goes before all others.
    pub api_key: Option<Secret>,
    /// Which options which models refused.
    pub learnt: llm::Learnt,
    /// Largest number of attempts, when the command line sets it.
    pub max_attempts: Option<u32>,
    /// Set once the first connection was tried: the first turn waits for it.
    pub connected_once: CancellationToken,
}

/// Everything that one turn starts from.
pub struct TurnOrder {
    pub number: u64,
    pub job: Job,
    pub history: Vec<PastTurn>,
    pub pending: Option<PendingRecipe>,
    pub recipes: RecipeContext,
    pub granted: BTreeSet<Capability>,
    pub settings: Settings,
    pub cancel: CancellationToken,
}

/// The facts of a conversation from what the database holds. A row that this version cannot read is left out, and said.
pub fn read_events(stored: Vec<StoredEvent>) -> Vec<StoredTurnEvent> {
    let mut events = Vec::with_capacity(stored.len());
    for row in stored {
        match serde_json::from_value(row.value) {
            Ok(event) => events.push(StoredTurnEvent { sequence: row.sequence, at_ms: row.at_ms, event }),
            Err(error) => tracing::warn!("fact {} of a conversation cannot be read: {error}", row.sequence),
        }
    }
    events
}

/// Runs a turn.
///
/// # Errors
/// When its facts could not be stored.
pub async fn run(
    shared: &Arc<Shared>,
    link: &SlicerLink,
    with_slicer: bool,
    order: TurnOrder,
    mut host: EngineHost,
) -> Result<TurnResult, HostError> {
    // A request typed while the practice Slicer still starts must not fail for that.
    tokio::select! {
        () = shared.connected_once.cancelled() => {}
        () = order.cancel.cancelled() => {}
    }
    let (slicer, slicer_problem) = if with_slicer {
        let found = tokio::select! {
            found = link.for_turn() => found,
            () = order.cancel.cancelled() => Err(None),
        };
        match found {
            Ok(slicer) => (Some(slicer), None),
            Err(problem) => (None, problem),
        }
    } else {
        (None, None)
    };
    let endpoint = endpoint(&shared.catalogue, &shared.keys, shared.api_key.as_ref(), &order.settings).await;
    if let Ok(Some(Endpoint { api_key: Some(key), .. })) = &endpoint {
        host.secrets.push(key.clone());
    }
    let client;
    let brain = match (&order.job, &endpoint) {
        (Job::Program(code), _) => Brain::Given { code: code.clone() },
        (Job::Seen { text, .. }, Ok(None)) => {
            let problem = Problem {
                kind: "BadRequest".into(),
                message: "The built-in recipes cannot see pictures.".into(),
                advice: "Send the request without a picture, or set up a model in Settings → Model.".into(),
            };
            return refuse(&host, &order, text, problem).await;
        }
        (Job::Message(_), Ok(None)) => {
            Brain::Recipes { pending: order.pending.clone(), context: order.recipes.clone() }
        }
        (Job::Message(text) | Job::Seen { text, .. }, Ok(Some(endpoint))) => {
            match client_for(shared, endpoint.clone(), &order.settings) {
                Ok(made) => {
                    client = made;
                    Brain::Model {
                        client: &client,
                        provider: endpoint.provider.clone(),
                        model: endpoint.model.clone(),
                        temperature: order.settings.model.temperature,
                        max_output: order.settings.model.max_output,
                        effort: llm::Effort::from_name(&order.settings.model.reasoning_effort),
                        budget: budget(shared, &host.conversation, &order.settings).await,
                    }
                }
                Err(error) => return refuse(&host, &order, text, llm_problem(&error)).await,
            }
        }
        (Job::Message(text) | Job::Seen { text, .. }, Err(problem)) => {
            return refuse(&host, &order, text, problem.clone()).await;
        }
    };
    let pictures = match &order.job {
        Job::Seen { text, pictures } => match read_pictures(pictures.clone()).await {
            Ok(pictures) => pictures,
            Err(problem) => return refuse(&host, &order, text, problem).await,
        },
        _ => Vec::new(),
    };
    let context = TurnContext {
        brain,
        pictures,
        knowledge: &shared.knowledge,
        recipes: &shared.recipes,
        catalogue: &shared.catalogue,
        slicer: slicer.as_ref(),
        slicer_problem,
        policy: policy(shared, &order),
        limits: limits(shared, &order.settings),
        data_folder: Some(shared.paths.data()),
        cancel: order.cancel.clone(),
    };
    host.learnt = Some((shared.learnt.clone(), shared.learnt.pairs().len()));
    run_turn(order.number, &order.job.text(), &order.history, &context, &host).await
}

/// Providers take at most about this much in one picture.
const LARGEST_PICTURE: u64 = 20 << 20;

/// The pictures of a message.
///
/// # Errors
/// A file that cannot be read, is too large, or is no picture that models take.
async fn read_pictures(files: Vec<PathBuf>) -> Result<Vec<SentPicture>, Problem> {
    let read = tokio::task::spawn_blocking(move || files.iter().map(|file| read_picture(file)).collect());
    read.await.unwrap_or_else(|error| Err(unreadable("The pictures", &error.to_string())))
}

fn unreadable(what: &str, why: &str) -> Problem {
    Problem {
        kind: "BadRequest".into(),
        message: format!("{what} could not be read: {why}."),
        advice: "Send a PNG, JPEG, GIF or WebP file of at most 20 MB.".into(),
    }
}

fn read_picture(file: &Path) -> Result<SentPicture, Problem> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let failed = |why: &str| unreadable(&format!("The picture {name}"), why);
    let size = std::fs::metadata(file).map_err(|error| failed(&error.to_string()))?.len();
    if size > LARGEST_PICTURE {
        return Err(failed("it is too large"));
    }
    let bytes = std::fs::read(file).map_err(|error| failed(&error.to_string()))?;
    let mime = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xFF, 0xD8, 0xFF, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => return Err(failed("it is not a picture of a known kind")),
    };
    Ok(SentPicture { name, mime: mime.into(), bytes })
}

/// The client of one turn, with what earlier ones learnt.
fn client_for(shared: &Shared, endpoint: Endpoint, settings: &Settings) -> Result<llm::Client, llm::LlmError> {
    let client = llm::Client::new(endpoint, &shared.catalogue)?;
    Ok(client.with_transport(&transport(settings))?.with_learnt(shared.learnt.clone()))
}

/// How models are reached by these settings.
pub fn transport(settings: &Settings) -> llm::Transport {
    let model = &settings.model;
    let seconds = |seconds: u64| Duration::from_secs(seconds.max(1));
    let timeouts = llm::Timeouts {
        connect: seconds(model.connect_timeout_s),
        first_byte: seconds(model.first_byte_timeout_s),
        between_bytes: seconds(model.stall_timeout_s),
    };
    let proxy = Some(model.proxy.trim()).filter(|proxy| !proxy.is_empty()).map(str::to_owned);
    llm::Transport { timeouts, proxy }
}

/// The budget with what was spent before this turn. A history that cannot be read counts as nothing spent, and is said in
/// the log: the turn itself will meet the same trouble and end.
async fn budget(shared: &Shared, conversation: &str, settings: &Settings) -> Budget {
    let model = &settings.model;
    let (store, conversation) = (Arc::clone(&shared.store), conversation.to_owned());
    let sums = tokio::task::spawn_blocking(move || {
        Ok::<_, StoreError>((
            store.spent(0, Some(&conversation))?.cost_usd,
            store.spent(month_start_ms(), None)?.cost_usd,
        ))
    });
    let (so_far, month) = match sums.await {
        Ok(Ok(sums)) => sums,
        Ok(Err(error)) => {
            tracing::error!("the costs so far cannot be read: {error}");
            (0.0, 0.0)
        }
        Err(error) => {
            tracing::error!("the costs so far cannot be read: {error}");
            (0.0, 0.0)
        }
    };
    let allowance = |limit: Option<f64>, spent| limit.map(|limit| Allowance { limit, spent });
    Budget {
        conversation: allowance(model.budget_conversation_usd, so_far),
        month: allowance(model.budget_month_usd, month),
        paid: shared.catalogue.provider(&model.provider).is_some_and(|provider| provider.needs_key),
    }
}

/// A turn that cannot start: its message and the reason are facts like any other.
async fn refuse(host: &EngineHost, order: &TurnOrder, text: &str, problem: Problem) -> Result<TurnResult, HostError> {
    host.emit(TurnEvent::UserMessage { turn: order.number, text: text.to_owned() }).await?;
    let (finish, timings) = (Finish::Failed, Timings::default());
    host.emit(TurnEvent::Finished { finish, error: Some(problem), timings, run_folder: None }).await?;
    Ok(TurnResult { past: PastTurn { request: text.to_owned(), ..PastTurn::default() }, ..TurnResult::default() })
}

fn policy(shared: &Shared, order: &TurnOrder) -> Policy {
    let mut policy = Policy::default();
    let always = order.settings.safety.always_allow.iter().filter_map(|name| Capability::from_str(name).ok());
    for capability in shared.granted.iter().chain(&order.granted).copied().chain(always) {
        policy.allow(capability);
    }
    policy.readable_paths = order.settings.safety.readable_folders.iter().map(PathBuf::from).collect();
    policy
}

fn limits(shared: &Shared, settings: &Settings) -> Limits {
    Limits {
        run_timeout_ms: settings.slicer.time_limit_s.max(1) * 1000,
        attempts: shared.max_attempts.unwrap_or(settings.slicer.max_attempts).clamp(1, 20),
        ..Limits::default()
    }
}

/// Where the model is; `None` for the built-in recipes. `given` is a key that goes before all others.
///
/// # Errors
/// A provider that does not exist.
pub async fn endpoint(
    catalogue: &Catalogue,
    keys: &Arc<Keys>,
    given: Option<&Secret>,
    settings: &Settings,
) -> Result<Option<Endpoint>, Problem> {
    let model = &settings.model;
    if model.provider == "recipes" {
        return Ok(None);
    }
    let Some(provider) = catalogue.provider(&model.provider) else {
        let names: Vec<&str> = catalogue.providers().iter().map(|provider| provider.id.as_str()).collect();
        return Err(Problem {
            kind: "BadRequest".into(),
            message: format!("There is no provider called “{}”.", model.provider),
            advice: format!("Choose one of: {}.", names.join(", ")),
        });
    };
    let base_url = if model.base_url.is_empty() { provider.base_url.clone() } else { model.base_url.clone() };
    let api_key = match given {
        Some(Secret(key)) => Some(key.clone()),
        None => key_of(catalogue, keys, &model.provider).await.0,
    };
    if let Some(key) = &api_key {
        hide_in_log(key);
    }
    Ok(Some(Endpoint { provider: model.provider.clone(), base_url, model: model.model.clone(), api_key }))
}

/// A provider's key and where it comes from.
pub async fn key_of(catalogue: &Catalogue, keys: &Arc<Keys>, provider: &str) -> (Option<String>, KeyOrigin) {
    let Some(known) = catalogue.provider(provider) else { return (None, KeyOrigin::NotSet) };
    let variable = known.key_variable.clone();
    let needed = known.needs_key;
    let (keys, provider) = (Arc::clone(keys), provider.to_owned());
    let found = tokio::task::spawn_blocking(move || keys.lookup(&provider, variable.as_deref())).await;
    match found.unwrap_or((None, KeyOrigin::NotSet)) {
        (None, _) if !needed => (None, KeyOrigin::NotNeeded),
        other => other,
    }
}

/// A failure of a model call as the surface shows it.
pub fn llm_problem(error: &llm::LlmError) -> Problem {
    Problem { kind: error.kind().into(), message: error.to_string(), advice: error.advice() }
}

/// Tells the surface what the scene holds now.
pub async fn tell_scene(shared: &Shared, link: &SlicerLink) {
    let Some(slicer) = link.current().await else { return };
    match slicer.snapshot().await {
        Ok(snapshot) => shared.events.send(Event::Scene { snapshot: Box::new(snapshot) }).await,
        Err(error) => tracing::debug!("no scene: {error}"),
    }
}

/// Takes a picture for the screenshot pane.
pub async fn capture(shared: &Arc<Shared>, link: &SlicerLink, conversation: ConversationId, view: ViewRequest) {
    let failed = |problem: Problem| shared.events.send(Event::Problem { problem });
    let Some(slicer) = link.current().await else {
        return failed(Problem {
            kind: "NoSlicer".into(),
            message: "No Slicer is connected, so there is nothing to take a picture of.".into(),
            advice: "Start Slicer or the practice Slicer.".into(),
        })
        .await;
    };
    let shot = match slicer.screenshot(&view).await {
        Ok(shot) => shot,
        Err(error) => return failed(problem(&error)).await,
    };
    let paths = shared.paths.clone();
    let ending = if shot.mime == "image/png" { "png" } else { "jpg" };
    let saved = tokio::task::spawn_blocking(move || {
        let folder = RunFolder::create(&paths, 0)?;
        let name = format!("view.{ending}");
        folder.write_bytes(&name, &shot.bytes)?;
        Ok::<_, crate::store::StoreError>(folder.path().join(name))
    })
    .await;
    match saved {
        Ok(Ok(path)) => {
            let title = view.view_name.clone().unwrap_or_else(|| view.view_type.clone());
            let path = path.to_string_lossy().into_owned();
            shared.events.send(Event::Screenshot { conversation, title, path }).await;
        }
        Ok(Err(error)) => tracing::error!("the picture could not be saved: {error}"),
        Err(error) => tracing::error!("the picture could not be saved: {error}"),
    }
}
