//! Settings, keys and the connection test: the part of the engine behind the settings dialog.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::control::Control;
use super::turns;
use super::types::*;
use crate::llm::{self, Catalogue};
use crate::store::{self, Keys};

impl Control {
    /// Tells the settings. The keyring may make the person wait, so it is asked outside the loop.
    pub(super) fn tell_settings(&self) {
        let (shared, settings) = (Arc::clone(&self.shared), self.settings.clone());
        tokio::spawn(async move {
            let catalogue = &shared.catalogue;
            let providers = catalogue
                .providers()
                .iter()
                .map(|provider| ProviderChoice {
                    id: provider.id.clone(),
                    name: provider.name.clone(),
                    base_url: provider.base_url.clone(),
                    key_variable: provider.key_variable.clone(),
                    needs_key: provider.needs_key,
                    models: catalogue.models(&provider.id).map(|model| model.id.clone()).collect(),
                })
                .collect();
            let (_, key) = turns::key_of(catalogue, &shared.keys, &settings.model.provider).await;
            shared.events.send(Event::Settings { settings: Box::new(settings), providers, key }).await;
        });
        self.tell_spending();
    }

    /// Tells what this month has cost so far.
    pub(super) fn tell_spending(&self) {
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let store = Arc::clone(&shared.store);
            match tokio::task::spawn_blocking(move || store.spent(store::month_start_ms(), None)).await {
                Ok(Ok(month)) => shared.events.send(Event::Spending { month }).await,
                Ok(Err(error)) => tracing::warn!("the costs so far cannot be read: {error}"),
                Err(error) => tracing::warn!("the costs so far cannot be read: {error}"),
            }
        });
    }

    /// Asks a provider for its models. Several may be on their way; each answer names its provider.
    pub(super) fn fetch_models(&self, settings: Settings, key: Option<Secret>) {
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let key = key.or_else(|| shared.api_key.clone());
            let models = fetch(&shared.catalogue, &shared.keys, &settings, key).await;
            shared.events.send(Event::ModelsFetched { provider: settings.model.provider, models }).await;
        });
    }

    pub(super) async fn save_settings(&mut self, settings: Settings) {
        let reconnect = settings.slicer.url != self.settings.slicer.url;
        self.settings = settings;
        if !self.settings_are_fixed {
            let (paths, copy) = (self.shared.paths.clone(), self.settings.clone());
            let saved = tokio::task::spawn_blocking(move || store::save(&paths, &copy)).await;
            let failed = match saved {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(error) => Some(error.to_string()),
            };
            if let Some(error) = failed {
                let message = format!("The settings could not be saved: {error}");
                self.report_problem("Store", message, "They hold until the program ends.").await;
            }
        }
        self.tell_settings();
        if reconnect {
            let url = self.settings.slicer.url.clone();
            self.connect(url);
        }
    }

    pub(super) async fn set_key(&mut self, provider: String, Secret(key): Secret) {
        let keys = Arc::clone(&self.shared.keys);
        let set = tokio::task::spawn_blocking(move || keys.set(&provider, &key)).await;
        let problem = match set {
            Ok(Ok(stored)) => stored.reason,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(message) = problem {
            let advice = "The key is kept until the program ends. It can also come from the environment variable.";
            self.report_problem("NoKey", message, advice).await;
        }
        self.tell_settings();
    }

    pub(super) async fn remove_key(&mut self, provider: String) {
        let keys = Arc::clone(&self.shared.keys);
        let removed = tokio::task::spawn_blocking(move || keys.remove(&provider)).await;
        let problem = match removed {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(message) = problem {
            self.report_problem("NoKey", message, "Remove it with the system's own keyring program.").await;
        }
        self.tell_settings();
    }

    pub(super) fn test_connection(&mut self, settings: Settings, key: Option<Secret>) {
        let cancel = CancellationToken::new();
        if let Some(former) = self.test.replace(cancel.clone()) {
            former.cancel();
        }
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            shared.events.send(Event::TestStarted).await;
            let key = key.or_else(|| shared.api_key.clone());
            let report = test(&shared.catalogue, &shared.keys, &settings, key, &cancel).await;
            shared.events.send(Event::TestFinished { report }).await;
        });
    }
}

/// The connection test, by the same client as a turn, for a surface without an engine.
pub async fn test_connection(
    catalogue: &Catalogue,
    settings: &Settings,
    key: Option<Secret>,
    cancel: &CancellationToken,
) -> ConnectionReport {
    test(catalogue, &Arc::new(Keys::new()), settings, key, cancel).await
}

/// The models that a provider offers, for a surface without an engine.
///
/// # Errors
/// Why it did not tell, with what to do.
pub async fn fetch_models(
    catalogue: &Catalogue,
    settings: &Settings,
    key: Option<Secret>,
) -> Result<Vec<String>, Problem> {
    fetch(catalogue, &Arc::new(Keys::new()), settings, key).await
}

/// A list is short; who does not send it by then does not.
const FETCH_LIMIT: Duration = Duration::from_secs(20);

async fn fetch(
    catalogue: &Catalogue,
    keys: &Arc<Keys>,
    settings: &Settings,
    key: Option<Secret>,
) -> Result<Vec<String>, Problem> {
    let Some(endpoint) = turns::endpoint(catalogue, keys, key.as_ref(), settings).await? else {
        return Ok(Vec::new());
    };
    let mut transport = turns::transport(settings);
    transport.timeouts.first_byte = transport.timeouts.first_byte.min(FETCH_LIMIT);
    let client = llm::Client::new(endpoint, catalogue).and_then(|client| client.with_transport(&transport));
    let client = client.map_err(|error| turns::llm_problem(&error))?;
    let mut models = client.list_models().await.map_err(|error| turns::llm_problem(&error))?;
    models.sort();
    models.dedup();
    Ok(models)
}

fn not_offered(model: &str, nearest: &[String]) -> Problem {
    let advice = if nearest.is_empty() {
        "Choose another model, or check its name.".to_owned()
    } else {
        format!("The nearest names are: {}.", nearest.join(", "))
    };
    Problem { kind: "ModelUnknown".into(), message: format!("The provider does not offer “{model}”."), advice }
}

async fn test(
    catalogue: &Catalogue,
    keys: &Arc<Keys>,
    settings: &Settings,
    key: Option<Secret>,
    cancel: &CancellationToken,
) -> ConnectionReport {
    let failed = |problem: Problem| ConnectionReport { error: Some(problem), ..ConnectionReport::default() };
    let endpoint = match turns::endpoint(catalogue, keys, key.as_ref(), settings).await {
        // The built-in recipes are always there.
        Ok(None) => {
            return ConnectionReport { ok: true, model_available: Some(true), ..ConnectionReport::default() };
        }
        Ok(Some(endpoint)) => endpoint,
        Err(problem) => return failed(problem),
    };
    let client = llm::Client::new(endpoint, catalogue);
    let client = match client.and_then(|client| client.with_transport(&turns::transport(settings))) {
        Ok(client) => client,
        Err(error) => return failed(turns::llm_problem(&error)),
    };
    match client.test_connection(cancel).await {
        Ok(outcome) => ConnectionReport {
            ok: outcome.model_available,
            ms: outcome.ms,
            model_available: (outcome.listed || outcome.model_available).then_some(outcome.model_available),
            vision: outcome.vision,
            tools: outcome.tools,
            error: (!outcome.model_available).then(|| not_offered(&settings.model.model, &outcome.nearest)),
        },
        Err(error) => failed(turns::llm_problem(&error)),
    }
}
