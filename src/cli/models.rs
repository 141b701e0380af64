//! `models` and `test-connection`: what is known of providers, and whether one answers.

use clap::Args;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::ask::ModelArguments;
use super::{Failure, Outcome, console, exit, runtime, session};
use crate::engine::{self, ConnectionReport};
use crate::llm::Catalogue;
use crate::resources;
use crate::store::Paths;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  slicer-ai-agent models --provider openai\n  slicer-ai-agent models --provider ollama --fetch"
)]
pub struct ListArguments {
    /// Only this provider
    #[arg(long)]
    provider: Option<String>,
    /// Ask the provider which models it offers now
    #[arg(long, requires = "provider")]
    fetch: bool,
    /// Base URL of the provider, for --fetch
    #[arg(long, value_name = "URL", requires = "fetch")]
    base_url: Option<String>,
    /// Environment variable that holds the key, for --fetch
    #[arg(long, value_name = "VAR", requires = "fetch")]
    api_key_env: Option<String>,
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  slicer-ai-agent test-connection --provider custom --base-url http://127.0.0.1:8080/v1 --model local"
)]
pub struct TestArguments {
    #[command(flatten)]
    model: ModelArguments,
    #[arg(long)]
    json: bool,
}

fn catalogue(paths: &Paths) -> Result<Catalogue, Failure> {
    let text = resources::text_with_override(paths.data(), "models.toml").unwrap_or_default();
    Catalogue::from_toml(&text).map_err(|error| Failure::from(anyhow::anyhow!(error)))
}

/// Runs `models`.
pub fn list(arguments: &ListArguments, paths: &Paths) -> Outcome {
    let catalogue = catalogue(paths)?;
    let wanted = arguments.provider.as_deref();
    if let Some(id) = wanted
        && catalogue.provider(id).is_none()
    {
        let names: Vec<&str> = catalogue.providers().iter().map(|provider| provider.id.as_str()).collect();
        let advice = format!("There are: {}.", names.join(", "));
        return Err(Failure::new(exit::USAGE, "BadRequest", format!("There is no provider called {id}."), advice));
    }
    let fetched = if arguments.fetch { Some(fetch(arguments, paths, &catalogue)?) } else { None };
    let providers = catalogue.providers().iter().filter(|provider| wanted.is_none_or(|id| provider.id == id));
    let mut list = Vec::new();
    for provider in providers {
        let models: Vec<_> = catalogue.models(&provider.id).collect();
        if arguments.json {
            let (id, name, address) = (&provider.id, &provider.name, &provider.base_url);
            let mut entry = json!({"id": id, "name": name, "base_url": address, "models": models});
            if let Some(offered) = &fetched {
                entry["offered"] = json!(offered);
            }
            list.push(entry);
        } else if let Some(offered) = &fetched {
            console::print_text(&format!("{} ({}) offers {} models", provider.name, provider.id, offered.len()))?;
            for id in offered {
                let known = catalogue.model(&provider.id, id).map_or("  not in the catalogue: cost unknown", |_| "");
                console::print_text(&format!("  {id}{known}"))?;
            }
        } else {
            console::print_text(&format!("{} ({})", provider.name, provider.id))?;
            for model in models {
                let context = model.context.map_or_else(String::new, |tokens| format!("  context {tokens} tokens"));
                let prices = model.prices.as_ref().map_or_else(
                    || "  price unknown".to_owned(),
                    |prices| {
                        format!("  {} in, {} out USD per million tokens ({})", prices.input, prices.output, prices.date)
                    },
                );
                console::print_text(&format!("  {}{context}{prices}", model.id))?;
            }
        }
    }
    if arguments.json {
        console::print_json(&json!({"providers": list}))?;
    }
    Ok(exit::DONE)
}

fn fetch(arguments: &ListArguments, paths: &Paths, catalogue: &Catalogue) -> Result<Vec<String>, Failure> {
    let model = ModelArguments {
        provider: arguments.provider.clone(),
        model: None,
        base_url: arguments.base_url.clone(),
        api_key_env: arguments.api_key_env.clone(),
    };
    let mut settings = session::settings(paths, console::Console { quiet: arguments.json })?;
    model.apply(&mut settings);
    let key = model.key()?;
    let fetched = runtime()?.block_on(engine::fetch_models(catalogue, &settings, key));
    fetched.map_err(|problem| Failure { code: super::code_of(&problem), problem })
}

/// Runs `test-connection`.
pub fn test(arguments: &TestArguments, paths: &Paths) -> Outcome {
    let console = console::Console { quiet: arguments.json };
    let mut settings = session::settings(paths, console)?;
    arguments.model.apply(&mut settings);
    let key = arguments.model.key()?;
    let catalogue = catalogue(paths)?;
    let report = runtime()?.block_on(async {
        let cancel = CancellationToken::new();
        engine::test_connection(&catalogue, &settings, key, &cancel).await
    });
    if arguments.json {
        console::print_json(&report)?;
    } else {
        console::print_text(&text(&report))?;
    }
    Ok(match &report.error {
        None => exit::DONE,
        Some(problem) => super::code_of(problem),
    })
}

fn text(report: &ConnectionReport) -> String {
    match &report.error {
        Some(problem) => format!("✗ {}", console::in_words(problem)),
        None => {
            let model = match report.model_available {
                Some(true) => ", model available",
                Some(false) => ", but the model is not offered",
                None => "",
            };
            format!("✓ Connected, {:.0} ms{model}", report.ms)
        }
    }
}
