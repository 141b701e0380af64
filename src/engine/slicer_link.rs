//! The engine's connection to Slicer: which one, whether it answers, and the practice Slicer that we may have started.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::events::EventSender;
use super::launched::LaunchedSlicers;
use super::types::{Event, Problem, SlicerStatus};
use crate::slicer::practice::{self, PracticeOptions, PracticeProcess};
use crate::slicer::{BridgeCommand, ConnectOptions, Slicer, SlicerError};

/// Which Slicer a session works with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlicerTarget {
    /// The Web Server at this base URL.
    Url(String),
    /// The practice Slicer, set up and started as needed.
    Practice,
    /// None: questions are answered, nothing is run.
    None,
}

#[derive(Default)]
struct Link {
    slicer: Option<Slicer>,
    url: String,
    status: SlicerStatus,
}

/// The connection of a session. Cheap to clone.
#[derive(Clone)]
pub struct SlicerLink {
    link: Arc<Mutex<Link>>,
    practice: Arc<StdMutex<Option<PracticeProcess>>>,
    /// The Slicers of the person that were started from here.
    pub(super) launched: LaunchedSlicers,
    /// Counts the choices of a Slicer.
    generation: Arc<AtomicU64>,
    /// Set when the session ends: a set-up that is under way is given up.
    closed: CancellationToken,
    events: EventSender,
    practice_folder: PathBuf,
    /// The program to start as the bridge; `None`: this one.
    executable: Option<PathBuf>,
}

impl SlicerLink {
    /// A link that is not connected yet.
    pub fn new(events: EventSender, practice_folder: PathBuf, executable: Option<PathBuf>) -> Self {
        Self {
            link: Arc::default(),
            practice: Arc::default(),
            launched: LaunchedSlicers::default(),
            closed: CancellationToken::new(),
            generation: Arc::default(),
            events,
            practice_folder,
            executable,
        }
    }

    /// Goes to another Slicer. The bridge starts even when Slicer is not there; whether it is shows in the status.
    pub async fn connect(&self, url: String) -> SlicerStatus {
        // The choice that was made last counts, not the connection that came up last.
        let ticket = self.generation.fetch_add(1, Ordering::SeqCst) + 1;
        let options = ConnectOptions {
            bridge: BridgeCommand::BuiltIn { slicer_url: url.clone() },
            executable: self.executable.clone(),
        };
        let connected = Slicer::connect(options).await;
        {
            let mut link = self.link.lock().await;
            if ticket != self.generation.load(Ordering::SeqCst) {
                return link.status.clone();
            }
            link.url = url.clone();
            match connected {
                Ok(slicer) => link.slicer = Some(slicer),
                Err(error) => {
                    link.slicer = None;
                    link.status = SlicerStatus { url, problem: Some(in_words(&error)), ..SlicerStatus::default() };
                }
            }
        }
        self.refresh(true).await
    }

    /// Asks Slicer for its status and tells the surface when it differs (or `always`).
    pub async fn refresh(&self, always: bool) -> SlicerStatus {
        let (slicer, url) = {
            let link = self.link.lock().await;
            (link.slicer.clone(), link.url.clone())
        };
        let status = match slicer {
            None => self.link.lock().await.status.clone(),
            Some(slicer) => match slicer.status().await {
                Ok(status) => SlicerStatus { url, ..status },
                Err(error) => {
                    // How it ended is the better explanation of why it does not answer.
                    let problem = self.launched.end_of(&url).unwrap_or_else(|| in_words(&error));
                    SlicerStatus { url, problem: Some(problem), ..SlicerStatus::default() }
                }
            },
        };
        let mut link = self.link.lock().await;
        if link.url != status.url && link.slicer.is_some() {
            // Another Slicer was chosen while this one was asked.
            return link.status.clone();
        }
        let differs = link.status != status;
        link.status = status.clone();
        drop(link);
        if differs || always {
            self.events.send(Event::Slicer { status: status.clone() }).await;
        }
        status
    }

    /// The connection for a turn, or why there is none.
    pub async fn for_turn(&self) -> Result<Slicer, Option<Problem>> {
        let (slicer, problem_text) = {
            let link = self.link.lock().await;
            (link.slicer.clone(), link.status.problem.clone())
        };
        let Some(slicer) = slicer else {
            return Err(problem_text.map(|message| Problem {
                kind: "NoSlicer".into(),
                message,
                advice: String::new(),
            }));
        };
        match slicer.status().await {
            Ok(_) => Ok(slicer),
            Err(error) => Err(Some(problem(&error))),
        }
    }

    /// The connection, whether or not Slicer answers just now.
    pub async fn current(&self) -> Option<Slicer> {
        self.link.lock().await.slicer.clone()
    }

    /// Sets up and starts the practice Slicer and connects to it. Progress goes to the surface.
    ///
    /// # Errors
    /// What the person must do, when it cannot be started.
    pub async fn start_practice(&self) -> Result<SlicerStatus, Problem> {
        if let Some(url) = self.running_practice() {
            return Ok(self.connect(url).await);
        }
        let what = "Practice Slicer".to_owned();
        let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel::<String>();
        let folder = self.practice_folder.clone();
        let closed = self.closed.clone();
        let work = tokio::task::spawn_blocking(move || {
            // The receiver lives until this ends; a line that is not shown is no loss.
            let progress = |line: &str| drop(sender.send(line.to_owned()));
            let home = practice::set_up_with(&folder, &progress, &|| closed.is_cancelled())?;
            progress("Starting the practice Slicer…");
            practice::start(&home, &PracticeOptions::default())
        });
        while let Some(detail) = lines.recv().await {
            self.events.send(Event::Progress { what: what.clone(), detail, done: false }).await;
        }
        let failed = |message: String| Problem {
            kind: "NoSlicer".into(),
            message,
            advice: "See `slicer-ai-agent doctor` for the state of the set-up.".into(),
        };
        let outcome = match work.await {
            Ok(Ok(process)) => {
                let url = process.url.clone();
                *self.practice.lock().unwrap_or_else(PoisonError::into_inner) = Some(process);
                Ok(self.connect(url).await)
            }
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(error) => Err(failed(format!("The practice Slicer's starter failed: {error}"))),
        };
        if let Err(problem) = &outcome {
            let mut link = self.link.lock().await;
            link.status = SlicerStatus { problem: Some(problem.message.clone()), ..SlicerStatus::default() };
        }
        let detail = outcome.as_ref().map_or_else(|problem| problem.message.clone(), |status| status.url.clone());
        self.events.send(Event::Progress { what, detail, done: true }).await;
        outcome
    }

    /// The practice Slicer that we started and that still runs: its scene must not be lost by starting another.
    fn running_practice(&self) -> Option<String> {
        let mut practice = self.practice.lock().unwrap_or_else(PoisonError::into_inner);
        let process = practice.as_mut()?;
        process.is_running().then(|| process.url.clone())
    }

    /// Ends what we started.
    pub async fn close(&self) {
        self.closed.cancel();
        self.link.lock().await.slicer = None;
        // Ends the practice Slicer, if it is ours.
        drop(self.practice.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

fn in_words(error: &SlicerError) -> String {
    format!("{error} {}", error.advice()).trim().to_owned()
}

/// A failure of Slicer as the surface shows it.
pub fn problem(error: &SlicerError) -> Problem {
    Problem { kind: error.kind().into(), message: error.to_string(), advice: error.advice() }
}
