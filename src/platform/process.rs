//! Processes: whether one lives, ending one with us, and handing a folder to the desktop.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How often a running step looks whether it is still wanted.
const POLL: Duration = Duration::from_millis(100);
/// How long the rest of what a step said is waited for after its end: a process that it left may hold its output open.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Whether a process with this id exists.
#[cfg(unix)]
pub fn is_alive(pid: u32) -> bool {
    let Ok(pid) = i32::try_from(pid) else { return false };
    // SAFETY: signal 0 only asks whether the process exists.
    unsafe { libc::kill(pid, 0) == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM) }
}

/// Whether a process with this id exists.
#[cfg(not(unix))]
pub fn is_alive(pid: u32) -> bool {
    Command::new("tasklist")
        .args(["/FI", &format!("PID eq {pid}"), "/NH"])
        .output()
        .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(&pid.to_string()))
}

/// A child process of the standard library that is ended when this is dropped.
///
/// On Windows the Python of a virtual environment is a launcher that starts the real interpreter as its own child. So
/// the whole tree is ended there, as well as the launcher.
#[derive(Debug)]
pub struct ChildGuard(pub std::process::Child);

impl ChildGuard {
    /// Ends the process now, and waits for its end.
    pub fn end(&mut self) {
        if cfg!(windows) && matches!(self.0.try_wait(), Ok(None)) {
            // Without the command the launcher is still ended below, and its job object takes the interpreter along.
            drop(Command::new("taskkill").args(["/T", "/F", "/PID", &self.0.id().to_string()]).output());
        }
        // Both fail only when the child has ended already, which is what is wanted.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.end();
    }
}

/// How a step ended, and what it said on its error output.
#[derive(Debug)]
pub struct StepEnd {
    pub status: ExitStatus,
    pub errors: String,
}

/// Runs a command to its end, with nothing to read and each line of its output given to `line`. `started` gets its
/// process id. As soon as `cancelled` says so (it is asked about every 100 ms) the command is killed and `None` given.
///
/// On Linux the command is killed too when this process is, so that no step goes on for nobody. Without a `cancelled`
/// neither happens: such a command must not be broken off.
///
/// # Errors
/// When the command cannot be started, or not be waited for.
pub fn run_step(
    command: &mut Command,
    cancelled: Option<&dyn Fn() -> bool>,
    started: impl FnOnce(u32),
    mut line: impl FnMut(&str),
) -> io::Result<Option<StepEnd>> {
    if cancelled.is_some() {
        end_with_this_thread(command);
    }
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut child = ChildGuard(child);
    started(child.0.id());
    let errors = child.0.stderr.take().map(read_in_background);
    let lines = child.0.stdout.take().map(lines_in_background);
    let status = loop {
        if cancelled.is_some_and(|cancelled| cancelled()) {
            return Ok(None);
        }
        match lines.as_ref().map(|lines| lines.recv_timeout(POLL)) {
            Some(Ok(text)) => {
                line(&text);
                continue;
            }
            Some(Err(RecvTimeoutError::Timeout)) => {}
            // The output ended: the process has ended, or is about to.
            None | Some(Err(RecvTimeoutError::Disconnected)) => std::thread::sleep(POLL / 5),
        }
        if let Some(status) = child.0.try_wait()? {
            break status;
        }
    };
    lines.iter().flat_map(|lines| lines.try_iter()).for_each(|text| line(&text));
    let errors = errors.and_then(|errors| errors.recv_timeout(LAST_WORDS).ok()).unwrap_or_default();
    Ok(Some(StepEnd { status, errors }))
}

/// Lets the system kill the command when the thread that starts it ends; [`run_step`] stays in that thread.
#[cfg(target_os = "linux")]
fn end_with_this_thread(command: &mut Command) {
    use std::os::unix::process::CommandExt;

    // SAFETY: between fork and exec only prctl is called, which allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn end_with_this_thread(_command: &mut Command) {}

fn lines_in_background(stream: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut bytes = Vec::new();
        // Read to the end even when nobody listens, so that the process never meets a closed pipe.
        while stream.read_until(b'\n', &mut bytes).is_ok_and(|read| read > 0) {
            drop(sender.send(String::from_utf8_lossy(&bytes).trim().to_owned()));
            bytes.clear();
        }
    });
    receiver
}

fn read_in_background(mut stream: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // A broken pipe only means that less was read; what arrived is still the best explanation there is.
        drop(stream.read_to_end(&mut bytes));
        drop(sender.send(String::from_utf8_lossy(&bytes).into_owned()));
    });
    receiver
}

/// Whether a window can be opened at all: on Linux a display must be named.
pub fn has_display() -> bool {
    if cfg!(target_os = "linux") {
        ["WAYLAND_DISPLAY", "WAYLAND_SOCKET", "DISPLAY"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
    } else {
        true
    }
}

/// Shows a folder in the desktop's file manager.
///
/// # Errors
/// When the desktop's command cannot be started.
pub fn open_folder(folder: &Path) -> io::Result<()> {
    let command = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(target_os = "windows") {
        "explorer"
    } else {
        "xdg-open"
    };
    Command::new(command).arg(folder).spawn().map(drop)
}

#[cfg(all(test, unix))]
mod tests {
    use std::cell::Cell;
    use std::time::Instant;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// All that a step says arrives, its error output apart, and how it ended.
    #[test]
    fn a_step_tells_its_lines_its_errors_and_its_end() {
        let mut lines = Vec::new();
        let end = run_step(&mut shell("echo one; echo two; echo bad >&2; exit 3"), None, drop, |line| {
            lines.push(line.to_owned());
        });
        let end = end.unwrap().expect("nobody cancelled");
        assert_eq!(lines, ["one", "two"]);
        assert_eq!((end.status.code(), end.errors.trim()), (Some(3), "bad"));
    }

    /// A person who stops the set-up does not wait for pip, and pip does not go on behind them.
    #[test]
    fn a_cancelled_step_is_killed_at_once() {
        let pid = Cell::new(0);
        let began = Instant::now();
        let cancelled = || began.elapsed() > Duration::from_millis(150);
        let end = run_step(&mut shell("exec sleep 30"), Some(&cancelled), |id| pid.set(id), |_| ()).unwrap();
        assert!(end.is_none());
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert!(pid.get() > 0 && !is_alive(pid.get()));
    }

    /// A process that a step leaves behind with its output open must not keep the set-up waiting.
    #[test]
    fn a_left_process_does_not_hold_the_step() {
        let began = Instant::now();
        let end = run_step(&mut shell("sleep 8 & echo done"), None, drop, |_| ()).unwrap();
        assert!(end.expect("nobody cancelled").status.success());
        assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    }

    /// When the thread that runs a step is gone (as when the whole process is killed), the step is ended by the system.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_step_ends_with_the_thread_that_started_it() {
        let mut child = std::thread::spawn(|| {
            let mut command = shell("exec sleep 30");
            end_with_this_thread(&mut command);
            command.spawn().unwrap()
        })
        .join()
        .unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        while child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "the step still runs");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
