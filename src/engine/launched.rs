//! The Slicers that were started from here, and what the window asks about Slicers in general: look for them, launch one,
//! close one that was launched.
//!
//! A Slicer that was launched is watched until it ends, so that the window can say how it ended. It is never ended with
//! us, and it is closed only after the person was asked.

use std::path::PathBuf;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::control::Control;
use super::events::EventSender;
use super::slicer_link::{SlicerLink, SlicerTarget};
use super::turns;
use super::types::{Event, Problem};
use crate::slicer::discover;
use crate::slicer::launch::{self, LAUNCH_LIMIT, LaunchError, LaunchOptions, LaunchedSlicer};

/// How often a launched Slicer is looked at.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);
/// What the progress of a launch is called.
const LAUNCHING: &str = "Starting Slicer";

/// The Slicers that this engine started, and the launch that is under way. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct LaunchedSlicers {
    slicers: Arc<StdMutex<Vec<LaunchedSlicer>>>,
    under_way: Arc<StdMutex<Option<CancellationToken>>>,
}

impl LaunchedSlicers {
    /// How the Slicer at this address ended, in a sentence, if it was started here and has ended.
    pub fn end_of(&self, url: &str) -> Option<String> {
        let mut slicers = self.slicers.lock().unwrap_or_else(PoisonError::into_inner);
        // The latest one counts: an earlier one may have had the same port.
        let slicer = slicers.iter_mut().rev().find(|slicer| slicer.url == url)?;
        let end = slicer.end()?;
        let how = if end == "exit code 0" { "was closed".to_owned() } else { format!("has ended ({end})") };
        Some(format!("The Slicer that was started here (process {}) {how}. Launch it again to go on.", slicer.pid))
    }

    /// The address of a Slicer that was started here and still runs.
    fn url_of(&self, pid: u32) -> Option<String> {
        let mut slicers = self.slicers.lock().unwrap_or_else(PoisonError::into_inner);
        let slicer = slicers.iter_mut().find(|slicer| slicer.pid == pid)?;
        slicer.end().is_none().then(|| slicer.url.clone())
    }

    fn add(&self, slicer: LaunchedSlicer) {
        self.slicers.lock().unwrap_or_else(PoisonError::into_inner).push(slicer);
    }

    /// Marks a launch as under way; `None` when there is one already.
    fn begin(&self) -> Option<CancellationToken> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if under_way.is_some() {
            return None;
        }
        let cancel = CancellationToken::new();
        *under_way = Some(cancel.clone());
        Some(cancel)
    }

    fn finish(&self) {
        *self.under_way.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Gives the launch that is under way up.
    pub fn cancel(&self) {
        if let Some(cancel) = &*self.under_way.lock().unwrap_or_else(PoisonError::into_inner) {
            cancel.cancel();
        }
    }
}

impl Control {
    /// Looks for installed and running Slicers, and tells what was found.
    pub(super) fn find_slicers(&self) {
        let (data, named) = (self.shared.paths.data().to_owned(), self.named_slicer());
        let events = self.shared.events.clone();
        tokio::spawn(async move {
            match discover::find(&data, named.as_deref()).await {
                Ok(found) => events.send(Event::Slicers { found: Box::new(found) }).await,
                Err(message) => {
                    let advice = "Correct or remove your own table of places.".into();
                    events.send(Event::Problem { problem: Problem { kind: "Places".into(), message, advice } }).await;
                }
            }
        });
    }

    /// Launches the Slicer of the settings, or the newest found, and connects to it.
    pub(super) fn launch_slicer(&mut self) {
        let Some(cancel) = self.link.launched.begin() else { return };
        if self.target == SlicerTarget::None {
            // From now on there is one to ask for its state.
            self.target = SlicerTarget::Url(self.settings.slicer.url.clone());
        }
        let options = LaunchOptions {
            executable: self.named_slicer(),
            limit: LAUNCH_LIMIT,
            data_folder: self.shared.paths.data().to_owned(),
            logs: self.shared.paths.logs(),
            ports: None,
        };
        let (shared, link) = (Arc::clone(&self.shared), self.link.clone());
        tokio::spawn(async move {
            let outcome = launch_with_progress(&options, &shared.events, &cancel).await;
            link.launched.finish();
            let progress = |detail| Event::Progress { what: LAUNCHING.into(), detail, done: true };
            match outcome {
                Ok(slicer) => {
                    let url = slicer.url.clone();
                    link.launched.add(slicer);
                    link.connect(url.clone()).await;
                    shared.events.send(progress(url.clone())).await;
                    tokio::spawn(watch(link.clone(), url));
                    turns::tell_scene(&shared, &link).await;
                }
                Err(error) => {
                    let problem =
                        Problem { kind: error.kind().into(), message: error.to_string(), advice: error.advice() };
                    shared.events.send(progress(problem.message.clone())).await;
                    shared.events.send(Event::LaunchFailed { problem }).await;
                }
            }
        });
    }

    /// Closes a Slicer that was launched from here. Without `confirmed` the person is asked first; a Slicer that was not
    /// launched from here is never closed.
    pub(super) fn close_slicer(&self, pid: u32, confirmed: bool) {
        let url = self.link.launched.url_of(pid);
        let events = self.shared.events.clone();
        tokio::spawn(async move {
            let problem = |message: String| Problem {
                kind: "Refused".into(),
                message,
                advice: "Close it in its own window.".into(),
            };
            let event = match url {
                None => Event::Problem { problem: problem("That Slicer was not started here.".into()) },
                Some(url) if !confirmed => Event::CloseAsked { pid, url },
                Some(url) => match launch::quit(&url).await {
                    // Its end shows by itself.
                    Ok(()) => return,
                    Err(why) => Event::Problem { problem: problem(format!("Slicer could not be closed: {why}")) },
                },
            };
            events.send(event).await;
        });
    }

    fn named_slicer(&self) -> Option<PathBuf> {
        Some(PathBuf::from(&self.settings.slicer.executable)).filter(|path| !path.as_os_str().is_empty())
    }
}

async fn launch_with_progress(
    options: &LaunchOptions,
    events: &EventSender,
    cancel: &CancellationToken,
) -> Result<LaunchedSlicer, LaunchError> {
    let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel::<String>();
    let launching = async move {
        // The receiver lives until this ends; a line that is not shown is no loss.
        let progress = move |line: &str| drop(sender.send(line.to_owned()));
        launch::launch(options, &progress, cancel).await
    };
    let telling = async {
        while let Some(detail) = lines.recv().await {
            events.send(Event::Progress { what: LAUNCHING.into(), detail, done: false }).await;
        }
    };
    tokio::join!(launching, telling).0
}

/// Tells the surface when a launched Slicer ends.
async fn watch(link: SlicerLink, url: String) {
    while link.launched.end_of(&url).is_none() {
        tokio::time::sleep(WATCH_INTERVAL).await;
    }
    link.refresh(false).await;
}
