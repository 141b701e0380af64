//! Where operating systems differ: missing system packages, the Python on the machine, free disk space, whether a
//! process lives, starting one that outlives us, who holds a port, opening a folder, giving memory back. One room, so
//! that the rest of the program reads the same on Linux, macOS and Windows.

mod memory;
mod packages;
mod process;
mod programs;
mod python;

pub use memory::forget_start;
pub use packages::{PackageError, ensure, ensure_unless, install_command, missing};
pub use process::{ChildGuard, StepEnd, has_display, is_alive, open_folder, run_step};
pub use programs::{Listener, RunningProgram, detach, end_group, group_is_alive, listener, running_programs};
pub use python::{Python, PythonError, find_python, find_python_unless, look_for_python, venv_python};

use std::path::Path;

/// Bytes free for us on the disk that holds `folder` (or its nearest existing parent); `None` when the system does not tell.
#[cfg(unix)]
pub fn free_bytes(folder: &Path) -> Option<u64> {
    use std::os::unix::ffi::OsStrExt;

    let existing = folder.ancestors().find(|path| path.exists())?;
    let path = std::ffi::CString::new(existing.as_os_str().as_bytes()).ok()?;
    let mut answer = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: `path` is a NUL-terminated string that outlives the call, and `answer` is only read after success.
    let answer = unsafe {
        if libc::statvfs(path.as_ptr(), answer.as_mut_ptr()) != 0 {
            return None;
        }
        answer.assume_init()
    };
    // The field types differ between systems.
    #[allow(clippy::unnecessary_cast, reason = "these are 32 bits wide on some systems")]
    Some(answer.f_bavail as u64 * answer.f_frsize as u64)
}

/// Bytes free for us on the disk that holds `folder`; not asked on this system: the installer's own error is shown.
#[cfg(not(unix))]
pub fn free_bytes(_folder: &Path) -> Option<u64> {
    None
}
