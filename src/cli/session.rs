//! Talking to the engine from the command line: start it, send one message, fold its facts into a record.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use super::console::{self, Console};
use super::{Failure, exit};
use crate::engine::{
    self, Capability, Command, ConversationId, Decision, Engine, EngineOptions, Event, Finish, Settings, SlicerTarget,
    TurnEvent, TurnRecord,
};
use crate::store::{self, Paths};

/// Which Slicer a command works with.
#[derive(Debug, Clone, Args)]
pub struct SlicerArguments {
    /// Base URL of Slicer's Web Server (default: from the settings, else http://127.0.0.1:2016/slicer)
    #[arg(long, value_name = "URL", env = "SLICER_URL")]
    pub slicer_url: Option<String>,
    /// Use the practice Slicer: set up and started as needed, ended afterwards
    #[arg(long, conflicts_with = "slicer_url")]
    pub practice: bool,
}

impl SlicerArguments {
    /// The target that these arguments and the settings name.
    pub fn target(&self, settings: &Settings) -> SlicerTarget {
        if self.practice {
            return SlicerTarget::Practice;
        }
        SlicerTarget::Url(self.slicer_url.clone().unwrap_or_else(|| settings.slicer.url.clone()))
    }
}

/// What is allowed without a question.
#[derive(Debug, Clone, Args)]
pub struct PermissionArguments {
    /// Allow a capability without asking (for example WriteFile); may be given again
    #[arg(long, value_name = "CAP")]
    pub allow: Vec<String>,
    /// Answer every permission question with yes
    #[arg(long)]
    pub yes: bool,
}

impl PermissionArguments {
    /// The capabilities that are named.
    ///
    /// # Errors
    /// A name that is no capability.
    pub fn capabilities(&self) -> Result<BTreeSet<Capability>, Failure> {
        let parse = |name: &String| {
            Capability::from_str(name).map_err(|error| {
                Failure::new(exit::USAGE, "BadRequest", error.to_string(), "See `slicer-ai-agent validate --help`.")
            })
        };
        self.allow.iter().map(parse).collect()
    }
}

/// The person's settings; a damaged file is told on stderr and leaves the defaults.
///
/// # Errors
/// When the data folder cannot be read.
pub fn settings(paths: &Paths, console: Console) -> Result<Settings, Failure> {
    let loaded = store::load(paths).map_err(|error| anyhow::anyhow!(error))?;
    if let Some(warning) = loaded.warning {
        console.progress(&warning);
    }
    Ok(loaded.settings)
}

/// How the command line starts an engine: with these settings, which are not written back.
pub fn options(paths: &Paths, settings: Settings, slicer: SlicerTarget) -> EngineOptions {
    EngineOptions {
        paths: paths.clone(),
        settings: Some(settings),
        slicer,
        granted: BTreeSet::new(),
        api_key: None,
        max_attempts: None,
        executable: None,
    }
}

/// An engine that works for one command.
pub struct Session {
    pub engine: Engine,
    console: Console,
    yes: bool,
}

impl Session {
    /// Starts an engine. Must be called within a runtime.
    ///
    /// # Errors
    /// When the history cannot be opened.
    pub fn start(options: EngineOptions, console: Console, yes: bool) -> Result<Self, Failure> {
        let engine = engine::start(options).map_err(|error| anyhow::anyhow!(error))?;
        Ok(Self { engine, console, yes })
    }

    /// Opens a stored conversation, or makes a new one.
    ///
    /// # Errors
    /// When there is no such conversation.
    pub async fn open(&mut self, conversation: Option<&str>) -> Result<ConversationId, Failure> {
        let command = match conversation {
            Some(id) => Command::OpenConversation { conversation: id.to_owned() },
            None => Command::NewConversation,
        };
        self.send(command).await?;
        loop {
            match self.next().await? {
                Event::Opened { conversation, .. } => return Ok(conversation),
                Event::Problem { problem } if problem.kind == "BadRequest" => {
                    return Err(Failure { code: exit::USAGE, problem });
                }
                other => self.tell(&other),
            }
        }
    }

    /// Sends a message and waits for the end of its turn.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn turn(&mut self, conversation: &ConversationId, text: &str) -> Result<TurnRecord, Failure> {
        self.turn_with(conversation, text, Vec::new()).await
    }

    /// The same with pictures.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn turn_with(
        &mut self,
        conversation: &ConversationId,
        text: &str,
        pictures: Vec<PathBuf>,
    ) -> Result<TurnRecord, Failure> {
        let (id, text) = (conversation.clone(), text.to_owned());
        self.send(match pictures.as_slice() {
            [] => Command::Send { conversation: id, text },
            _ => Command::SendWithPictures { conversation: id, text, pictures },
        })
        .await?;
        let mut record = TurnRecord::of(conversation);
        let mut stopping = false;
        loop {
            let event = tokio::select! {
                event = self.engine.events.recv() => event.ok_or_else(engine_gone)?,
                signal = tokio::signal::ctrl_c() => {
                    signal.map_err(|error| anyhow::anyhow!(error))?;
                    if stopping {
                        return Err(Failure::new(exit::FAILED, "Stopped", "Left without waiting for the turn to stop.", ""));
                    }
                    stopping = true;
                    self.console.progress("Stopping… (again to leave at once)");
                    self.send(Command::Stop { conversation: conversation.clone() }).await?;
                    continue;
                }
            };
            if let Event::TurnLost { problem, .. } = event {
                return Err(Failure { code: exit::FAILED, problem });
            }
            let Event::Turn { event, .. } = &event else {
                self.tell(&event);
                continue;
            };
            record.apply(&event.event);
            match &event.event {
                TurnEvent::Stage { role, detail } => self.console.progress(&format!("{}: {detail}", role.label())),
                TurnEvent::Retrying { attempt, wait_ms, why } => {
                    self.console.progress(&format!("{why} Trying again in {wait_ms} ms (try {attempt})…"));
                }
                TurnEvent::Repair { why, .. } => self.console.progress(&format!("It failed: {why}")),
                TurnEvent::PermissionAsked { request, findings } => {
                    let decision = if self.yes { Decision::AllowOnce } else { console::ask_permission(findings) };
                    let (conversation, request) = (conversation.clone(), request.clone());
                    self.send(Command::Decide { conversation, request, decision }).await?;
                }
                TurnEvent::Finished { .. } => return Ok(record),
                _ => {}
            }
        }
    }

    /// Waits until Slicer was tried, and gives its status.
    ///
    /// # Errors
    /// When the practice Slicer cannot be started, with what to do.
    pub async fn slicer_status(&mut self) -> Result<engine::SlicerStatus, Failure> {
        loop {
            match self.next().await? {
                Event::Slicer { status } if status.connected => return Ok(status),
                Event::Slicer { status } if status.problem.is_some() => {
                    let message = status.problem.unwrap_or_default();
                    return Err(Failure::new(exit::NO_CONNECTION, "NoSlicer", message, ""));
                }
                Event::Problem { problem } => return Err(Failure { code: super::code_of(&problem), problem }),
                other => self.tell(&other),
            }
        }
    }

    /// Ends the engine and what it started.
    pub async fn close(self) {
        if self.engine.commands.send(Command::Shutdown).await.is_ok() {
            self.engine.commands.closed().await;
        }
    }

    async fn send(&self, command: Command) -> Result<(), Failure> {
        self.engine.commands.send(command).await.map_err(|_| engine_gone())
    }

    async fn next(&mut self) -> Result<Event, Failure> {
        self.engine.events.recv().await.ok_or_else(engine_gone)
    }

    fn tell(&self, event: &Event) {
        match event {
            Event::Progress { detail, done: false, .. } => self.console.progress(detail),
            Event::Problem { problem } => self.console.progress(&console::in_words(problem)),
            _ => {}
        }
    }
}

fn engine_gone() -> Failure {
    Failure::new(exit::FAILED, "Failed", "The engine ended unexpectedly.", "Run it again with --log debug.")
}

/// The exit code that a turn's record stands for.
pub fn exit_code(record: &TurnRecord) -> u8 {
    match (&record.error, record.finish) {
        (Some(problem), _) => super::code_of(problem),
        (None, Some(Finish::Answer | Finish::Ran)) => exit::DONE,
        _ => exit::FAILED,
    }
}

/// A turn as text for people.
pub fn turn_text(record: &TurnRecord) -> String {
    let mut text = String::new();
    for run in &record.runs {
        if !run.stdout.trim().is_empty() {
            text.push_str(&format!("{}\n", run.stdout.trim_end()));
        }
        for check in &run.checks {
            let mark = match check.passed {
                Some(true) => "ok  ",
                Some(false) => "FAIL",
                None => "–   ",
            };
            text.push_str(&format!("  {mark} {}: {}\n", check.what, check.seen));
        }
    }
    text.push_str(record.answer.trim());
    let touched: Vec<&str> = record.runs.iter().flat_map(|run| &run.touched).map(String::as_str).collect();
    if !touched.is_empty() {
        text.push_str(&format!("\nOnly the full Slicer has what this used: {}", touched.join(", ")));
    }
    match record.finish {
        Some(Finish::Length) => {
            text.push_str("\n(The answer was cut off at its largest length; nothing of it was run.)")
        }
        Some(Finish::ContentFilter) => text.push_str("\n(The provider's content filter stopped the answer.)"),
        Some(Finish::Stopped) => text.push_str("\n(Stopped.)"),
        _ => {}
    }
    if let Some(restored) = record.runs.last().and_then(|run| run.restored.as_ref())
        && !restored.complete
    {
        text.push_str(&format!("\nThe scene may not be as it was before: {}", restored.missing.join("; ")));
    }
    if let Some(problem) = &record.error
        && !record.answer.contains(problem.message.trim_end_matches('.'))
    {
        text.push_str(&format!("\n{}", console::in_words(problem)));
    }
    text.trim_start().to_owned()
}
