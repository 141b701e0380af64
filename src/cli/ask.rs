//! `ask`: one turn without the window.

use std::path::PathBuf;

use clap::Args;

use super::console::{self, Console};
use super::session::{self, PermissionArguments, Session, SlicerArguments};
use super::{Failure, Outcome, block_on, exit};
use crate::engine::{EngineOptions, Secret, Settings, SlicerTarget};
use crate::store::Paths;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  slicer-ai-agent ask --practice \"Load the sample chest CT\"\n  slicer-ai-agent ask --provider custom --base-url http://127.0.0.1:8080/v1 --model local \"List the nodes\""
)]
pub struct Arguments {
    /// What you want, in plain words
    text: String,
    #[command(flatten)]
    model: ModelArguments,
    #[command(flatten)]
    slicer: SlicerArguments,
    /// Work without Slicer: questions are answered, nothing is run
    #[arg(long, conflicts_with_all = ["practice", "slicer_url"])]
    no_slicer: bool,
    #[command(flatten)]
    permission: PermissionArguments,
    /// Go on in a stored conversation
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// A picture for a model that can see; may be given again
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,
    /// Attempts in all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20))]
    max_attempts: Option<u32>,
    /// The whole turn as one JSON object
    #[arg(long)]
    json: bool,
}

/// Which model answers.
#[derive(Debug, Clone, Args)]
pub struct ModelArguments {
    /// Provider id, for example recipes, openai, claude, kimi, ollama, custom
    #[arg(long)]
    pub provider: Option<String>,
    #[arg(long)]
    pub model: Option<String>,
    /// Base URL of the provider, for example http://127.0.0.1:8080/v1
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Environment variable that holds the key
    #[arg(long, value_name = "VAR")]
    pub api_key_env: Option<String>,
}

impl ModelArguments {
    /// Puts these arguments over the settings.
    pub fn apply(&self, settings: &mut Settings) {
        if let Some(provider) = &self.provider {
            if *provider != settings.model.provider {
                // Model and address belonged to the other provider.
                settings.model.model.clear();
                settings.model.base_url.clear();
            }
            settings.model.provider.clone_from(provider);
        }
        if let Some(model) = &self.model {
            settings.model.model.clone_from(model);
        }
        if let Some(url) = &self.base_url {
            settings.model.base_url.clone_from(url);
        }
    }

    /// The key in the named variable.
    ///
    /// # Errors
    /// A variable that is not set.
    pub fn key(&self) -> Result<Option<Secret>, Failure> {
        let Some(variable) = &self.api_key_env else { return Ok(None) };
        match std::env::var(variable) {
            Ok(key) if !key.trim().is_empty() => Ok(Some(Secret(key.trim().to_owned()))),
            _ => Err(Failure::new(
                exit::USAGE,
                "NoKey",
                format!("The environment variable {variable} is not set."),
                "Set it, or leave --api-key-env out to use the keyring.",
            )),
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, paths: &Paths, console: Console) -> Outcome {
    if arguments.text.trim().is_empty() {
        return Err(Failure::new(exit::USAGE, "BadRequest", "The request is empty.", "Say what you want, in quotes."));
    }
    let mut settings = session::settings(paths, console)?;
    arguments.model.apply(&mut settings);
    let slicer = if arguments.no_slicer { SlicerTarget::None } else { arguments.slicer.target(&settings) };
    let options = EngineOptions {
        granted: arguments.permission.capabilities()?,
        api_key: arguments.model.key()?,
        max_attempts: arguments.max_attempts,
        ..session::options(paths, settings, slicer)
    };
    block_on(async {
        let mut session = Session::start(options, console, arguments.permission.yes)?;
        let conversation = session.open(arguments.conversation.as_deref()).await?;
        let record = session.turn_with(&conversation, &arguments.text, arguments.image.clone()).await?;
        session.close().await;
        if arguments.json {
            console::print_json(&record)?;
        } else {
            console::print_text(&session::turn_text(&record))?;
        }
        Ok(session::exit_code(&record))
    })
}
