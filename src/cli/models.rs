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
#[command(after_help = "Example:\n  slicer-ai-agent models --provider openai")]
pub struct ListArguments {
    /// Only this provider
    #[arg(long)]
    provider: Option<String>,
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
    let providers = catalogue.providers().iter().filter(|provider| wanted.is_none_or(|id| provider.id == id));
    let mut list = Vec::new();
    for provider in providers {
        let models: Vec<_> = catalogue.models(&provider.id).collect();
        if arguments.json {
            list.push(
                json!({"id": provider.id, "name": provider.name, "base_url": provider.base_url, "models": models}),
            );
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
