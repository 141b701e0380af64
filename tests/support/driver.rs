//! Drives an engine as a surface does: sends messages, answers questions, folds the facts of each turn.
#![allow(dead_code, reason = "each test file uses the part that it needs")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use slicer_ai_agent::engine::{
    self, Command, Decision, Engine, EngineOptions, Event, Finding, Settings, SlicerTarget, TurnEvent, TurnRecord,
};
use slicer_ai_agent::store::Paths;

/// Longer than any turn of these tests takes, on a machine that is busy with builds.
const PATIENCE: Duration = Duration::from_secs(180);

pub struct Driver {
    pub engine: Engine,
    pub conversation: String,
    /// What permission questions get as their answer.
    pub decision: Decision,
}

/// A turn, and what was asked in it.
pub struct Turn {
    pub record: TurnRecord,
    pub asked: Vec<Finding>,
    pub events: Vec<TurnEvent>,
}

impl Driver {
    /// An engine with its own data folder, connected to the Slicer at `url`.
    pub async fn start(data: &Path, url: &str, settings: Settings) -> Self {
        let engine = engine::start(EngineOptions {
            paths: Paths::new(Some(data.to_owned())).unwrap(),
            settings: Some(settings),
            slicer: SlicerTarget::Url(url.to_owned()),
            granted: BTreeSet::new(),
            api_key: None,
            max_attempts: None,
            executable: Some(PathBuf::from(env!("CARGO_BIN_EXE_slicer-ai-agent"))),
        })
        .unwrap();
        let mut driver = Self { engine, conversation: String::new(), decision: Decision::AllowOnce };
        driver.new_conversation().await;
        driver
    }

    pub async fn send(&self, command: Command) {
        self.engine.commands.send(command).await.unwrap();
    }

    pub async fn next(&mut self) -> Event {
        tokio::time::timeout(PATIENCE, self.engine.events.recv()).await.expect("an event in time").expect("an engine")
    }

    pub async fn new_conversation(&mut self) {
        self.send(Command::NewConversation).await;
        loop {
            if let Event::Opened { conversation, .. } = self.next().await {
                self.conversation = conversation;
                return;
            }
        }
    }

    /// Sends a message and waits for the end of its turn.
    pub async fn turn(&mut self, text: &str) -> Turn {
        self.send(Command::Send { conversation: self.conversation.clone(), text: text.to_owned() }).await;
        self.finished().await
    }

    /// Has a program of the person's own run, and waits for the end of its turn.
    pub async fn program(&mut self, code: &str) -> Turn {
        self.send(Command::RunCode { conversation: self.conversation.clone(), code: code.to_owned() }).await;
        self.finished().await
    }

    async fn finished(&mut self) -> Turn {
        let mut turn = Turn { record: TurnRecord::of(&self.conversation), asked: Vec::new(), events: Vec::new() };
        loop {
            let Event::Turn { conversation, event } = self.next().await else { continue };
            assert_eq!(conversation, self.conversation, "a fact of another conversation");
            turn.record.apply(&event.event);
            turn.events.push(event.event.clone());
            match event.event {
                TurnEvent::PermissionAsked { request, findings } => {
                    turn.asked.extend(findings);
                    let (conversation, decision) = (self.conversation.clone(), self.decision);
                    self.send(Command::Decide { conversation, request, decision }).await;
                }
                TurnEvent::Finished { .. } => return turn,
                _ => {}
            }
        }
    }
}
