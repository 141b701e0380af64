//! Processes: whether one lives, ending one with us, and handing a folder to the desktop.

use std::io;
use std::path::Path;
use std::process::Command;

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
#[derive(Debug)]
pub struct ChildGuard(pub std::process::Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // Both fail only when the child has ended already, which is what is wanted.
        drop(self.0.kill());
        drop(self.0.wait());
    }
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
