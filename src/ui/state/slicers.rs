//! What the window knows of Slicer: the connection, the Slicers of this computer, and a launch that is under way.

use crate::engine::{Command, FoundSlicers, Problem, RunningSlicer, SlicerStatus};

use super::super::action::{Action, Progress, SettingsTab};
use super::State;

/// The Slicers of this computer, as the engine found them, and the launch of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slicers {
    /// None until the engine has looked.
    pub found: Option<FoundSlicers>,
    /// A search is under way.
    pub looking: bool,
    /// A launch is under way; its lines are in [`State::progress`].
    pub launching: bool,
    /// Why the last launch failed.
    pub problem: Option<Problem>,
}

impl Slicers {
    /// Whether there is a Slicer that can be launched, as far as is known.
    pub fn can_launch(&self) -> bool {
        self.found.as_ref().is_some_and(|found| !found.installed.is_empty())
    }

    /// Version of the Slicer that would be launched with this setting (empty: the newest); `None` when there is none, or
    /// it does not tell.
    pub fn version_to_launch(&self, executable: &str) -> Option<&str> {
        let installed = &self.found.as_ref()?.installed;
        let chosen = if executable.is_empty() {
            installed.first()
        } else {
            // The person may have named the folder that it is in.
            installed.iter().find(|one| one.executable.starts_with(executable))
        };
        chosen?.version.as_deref()
    }

    /// A Slicer that runs and takes code, but is not the one we look at.
    pub fn ready_elsewhere(&self, url: &str) -> Option<&RunningSlicer> {
        let found = self.found.as_ref()?;
        found.running.iter().find(|one| one.exec == Some(true) && one.url != url)
    }
}

impl State {
    pub(super) fn set_slicer(&mut self, status: SlicerStatus) -> Vec<Command> {
        if self.slicer_url.is_empty() {
            self.slicer_url.clone_from(&status.url);
        }
        let mut commands = Vec::new();
        if status.connected {
            self.slicers.problem = None;
        } else {
            self.scene = None;
            self.capturing = false;
            // What can be done about it depends on what there is on this computer. Looked up once; the person can ask again.
            if self.slicers.found.is_none() && !self.slicers.looking {
                commands.append(&mut self.look_for_slicers());
            }
        }
        self.slicer = Some(status);
        commands.append(&mut self.retry_if_connected());
        commands
    }

    pub(super) fn look_for_slicers(&mut self) -> Vec<Command> {
        if std::mem::replace(&mut self.slicers.looking, true) { Vec::new() } else { vec![Command::FindSlicers] }
    }

    pub(super) fn set_found(&mut self, found: FoundSlicers) {
        self.slicers.looking = false;
        self.slicers.found = Some(found);
    }

    pub(super) fn set_progress(&mut self, what: String, detail: String, done: bool) {
        self.progress = if done { None } else { Some(Progress { what, detail }) };
        self.slicers.launching &= !done;
    }

    pub(super) fn launch_failed(&mut self, problem: Problem) {
        self.progress = None;
        self.slicers.launching = false;
        self.retry_once_connected = None;
        // Who cancels knows.
        if problem.kind == "Cancelled" {
            return;
        }
        if self.dialog != Some(SettingsTab::Slicer) {
            self.toast_problem(problem.clone());
        }
        self.slicers.problem = Some(problem);
    }

    /// Actions about Slicer. Gives the others back.
    pub(super) fn update_slicer(&mut self, action: Action) -> Result<Vec<Command>, Action> {
        let commands = match action {
            Action::Connect(url) => vec![Command::ConnectSlicer { url: url.trim().to_owned() }],
            Action::StartPractice => {
                self.set_progress("Practice Slicer".into(), "Getting ready…".into(), false);
                vec![Command::StartPractice]
            }
            Action::FindSlicers => self.look_for_slicers(),
            Action::LaunchSlicer => {
                // The executable that was just typed is the one to start.
                let mut commands = self.save_settings();
                self.set_progress("Starting Slicer".into(), "Getting ready…".into(), false);
                self.slicers.launching = true;
                self.slicers.problem = None;
                commands.push(Command::LaunchSlicer);
                commands
            }
            Action::CancelLaunch => vec![Command::CancelLaunch],
            Action::RefreshScene => vec![Command::RefreshScene],
            other => return Err(other),
        };
        Ok(commands)
    }

    /// Sends again what failed for want of Slicer, if the person still looks at that conversation.
    fn retry_if_connected(&mut self) -> Vec<Command> {
        if !self.slicer.as_ref().is_some_and(|status| status.connected) {
            return Vec::new();
        }
        match self.retry_once_connected.take() {
            Some((conversation, text)) if self.is_current(&conversation) && !self.running() => self.send(text),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Event, InstalledSlicer, SlicerOrigin};

    fn installed(version: &str) -> FoundSlicers {
        let one = InstalledSlicer {
            executable: "/opt/Slicer/Slicer".into(),
            version: Some(version.into()),
            origin: SlicerOrigin::Folder,
        };
        FoundSlicers { installed: vec![one], ..FoundSlicers::default() }
    }

    /// Without Slicer the window looks once what there is, and not every five seconds with each state.
    #[test]
    fn without_slicer_it_is_looked_for_once() {
        let mut state = State::new(Vec::new());
        let absent = || Event::Slicer { status: SlicerStatus::default() };
        assert!(matches!(state.apply(absent())[..], [Command::FindSlicers]));
        assert!(state.apply(absent()).is_empty(), "the search is under way");
        state.apply(Event::Slicers { found: Box::new(installed("5.8.1")) });
        assert!(state.apply(absent()).is_empty());
        assert_eq!(state.slicers.version_to_launch(""), Some("5.8.1"));
        assert_eq!(state.slicers.version_to_launch("/opt/Slicer"), Some("5.8.1"));
        assert_eq!(state.slicers.version_to_launch("/data/Slicer"), None);
    }

    /// A launch is under way until it is told that it is over, and what went wrong stays to be read.
    #[test]
    fn a_launch_has_an_end() {
        let mut state = State::new(Vec::new());
        assert!(matches!(state.update(Action::LaunchSlicer)[..], [Command::LaunchSlicer]));
        let progress = |done| Event::Progress { what: "Starting Slicer".into(), detail: "10 s".into(), done };
        state.apply(progress(false));
        assert!(state.slicers.launching && state.busy());
        state.apply(progress(true));
        assert!(!state.slicers.launching && !state.busy());
        let problem = |kind: &str| Problem { kind: kind.into(), message: "No.".into(), advice: "Do.".into() };
        state.apply(Event::LaunchFailed { problem: problem("Cancelled") });
        assert!(state.slicers.problem.is_none() && state.toasts.is_empty());
        state.apply(Event::LaunchFailed { problem: problem("SlicerEnded") });
        assert!(state.slicers.problem.is_some() && state.toasts.len() == 1);
        state.apply(Event::Slicer { status: SlicerStatus { connected: true, ..SlicerStatus::default() } });
        assert!(state.slicers.problem.is_none());
    }
}
