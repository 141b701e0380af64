//! Other people's programs: starting one that outlives us, which ones run, and which one holds a port.
//!
//! Where a system does not tell (or only by a slow way), the answer is "not known", never a guess.

use std::io;
use std::path::PathBuf;
use std::process::Command;

/// Makes a command start a program that goes on when ours ends: it gets no signal of our terminal and no share of our
/// console, and what it starts belongs to it.
#[cfg(unix)]
pub fn detach(command: &mut Command) {
    use std::os::unix::process::CommandExt;

    // SAFETY: between fork and exec only setsid is called, which allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| if libc::setsid() == -1 { Err(io::Error::last_os_error()) } else { Ok(()) });
    }
}

/// Makes a command start a program that goes on when ours ends.
#[cfg(windows)]
pub fn detach(command: &mut Command) {
    use std::os::windows::process::CommandExt;

    const DETACHED_PROCESS: u32 = 0x0000_0008;
    const CREATE_NEW_PROCESS_GROUP: u32 = 0x0000_0200;
    command.creation_flags(DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP);
}

/// Whether a detached program, or anything that it started and left, still runs. `pid` is that of the program, which must
/// have been waited for.
#[cfg(unix)]
pub fn group_is_alive(pid: u32) -> bool {
    let Ok(pid) = i32::try_from(pid) else { return false };
    // SAFETY: signal 0 only asks whether a process of this group exists.
    unsafe { libc::kill(-pid, 0) == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM) }
}

/// Whether a detached program, or anything that it started and left, still runs; not known on this system.
#[cfg(not(unix))]
pub fn group_is_alive(_pid: u32) -> bool {
    false
}

/// Ends a detached program and what it started. It has no chance to refuse.
///
/// # Errors
/// When the system does not let us.
#[cfg(unix)]
pub fn end_group(pid: u32) -> io::Result<()> {
    let pid = i32::try_from(pid).map_err(io::Error::other)?;
    // SAFETY: the group is that of a program that we started by `detach`.
    match unsafe { libc::kill(-pid, libc::SIGKILL) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            error => Err(error),
        },
    }
}

/// Ends a detached program and what it started. It has no chance to refuse.
///
/// # Errors
/// When the system does not let us.
#[cfg(not(unix))]
pub fn end_group(pid: u32) -> io::Result<()> {
    Command::new("taskkill").args(["/T", "/F", "/PID", &pid.to_string()]).output().map(drop)
}

/// A program that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningProgram {
    pub pid: u32,
    pub executable: PathBuf,
}

/// The running programs whose executable has one of these names; empty where the system does not tell.
#[cfg(target_os = "linux")]
pub fn running_programs(names: &[String]) -> Vec<RunningProgram> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let program = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let executable = std::fs::read_link(entry.path().join("exe")).ok()?;
        Some(RunningProgram { pid, executable })
    };
    entries.flatten().filter_map(program).filter(|program| has_name(program, names)).collect()
}

/// The running programs whose executable has one of these names; empty where the system does not tell.
#[cfg(target_os = "macos")]
pub fn running_programs(names: &[String]) -> Vec<RunningProgram> {
    let Ok(output) = Command::new("ps").args(["-axo", "pid=,comm="]).output() else { return Vec::new() };
    let program = |line: &str| {
        let (pid, executable) = line.trim().split_once(' ')?;
        Some(RunningProgram { pid: pid.parse().ok()?, executable: executable.trim().into() })
    };
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(program).filter(|program| has_name(program, names)).collect()
}

/// The running programs whose executable has one of these names; this system does not tell where a program is.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub fn running_programs(_names: &[String]) -> Vec<RunningProgram> {
    Vec::new()
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn has_name(program: &RunningProgram, names: &[String]) -> bool {
    program.executable.is_absolute()
        && program.executable.file_name().is_some_and(|name| names.iter().any(|one| name == one.as_str()))
}

/// Who listens on a TCP port of this computer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Unknown when the program is another user's.
    pub pid: Option<u32>,
    /// Name of the program.
    pub program: Option<String>,
    /// True when only this computer reaches it.
    pub loopback: bool,
}

/// Who listens on this port (IPv4 and IPv6); `None` when nobody does, or when the system does not tell.
#[cfg(target_os = "linux")]
pub fn listener(port: u16) -> Option<Listener> {
    let sockets: Vec<_> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .flat_map(|table| linux::listening(&table, port))
        .collect();
    let first = sockets.first()?;
    let pid = linux::owner(&first.inode);
    let program = pid.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok());
    Some(Listener {
        pid,
        program: program.map(|name| name.trim().to_owned()),
        loopback: sockets.iter().all(|socket| socket.loopback),
    })
}

/// Who listens on this port; this system does not tell.
#[cfg(not(target_os = "linux"))]
pub fn listener(_port: u16) -> Option<Listener> {
    None
}

#[cfg(target_os = "linux")]
mod linux {
    /// A listening socket of the kernel's table.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Socket {
        pub inode: String,
        pub loopback: bool,
    }

    /// The state "listening" in that table.
    const LISTENING: &str = "0A";

    /// The sockets that listen on `port` in a table of `/proc/net`: addresses are hexadecimal, in the machine's order.
    pub fn listening(table: &str, port: u16) -> Vec<Socket> {
        let socket = |line: &str| {
            let fields: Vec<_> = line.split_whitespace().collect();
            let (address, local_port) = fields.get(1)?.split_once(':')?;
            if u16::from_str_radix(local_port, 16).ok()? != port || *fields.get(3)? != LISTENING {
                return None;
            }
            Some(Socket { inode: (*fields.get(9)?).to_owned(), loopback: is_loopback(address) })
        };
        table.lines().skip(1).filter_map(socket).collect()
    }

    fn is_loopback(address: &str) -> bool {
        match address.len() {
            // 127.x.y.z, least significant byte first on little-endian machines.
            8 if cfg!(target_endian = "little") => address.ends_with("7F"),
            8 => address.starts_with("7F"),
            _ => {
                let one = if cfg!(target_endian = "little") { "01000000" } else { "00000001" };
                address == format!("{}{one}", "0".repeat(24))
            }
        }
    }

    /// The process that has this socket open, among those that we may look into.
    pub fn owner(inode: &str) -> Option<u32> {
        let wanted = format!("socket:[{inode}]");
        std::fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let mut files = std::fs::read_dir(entry.path().join("fd")).ok()?.flatten();
            let holds = files
                .any(|file| std::fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == wanted.as_str()));
            holds.then_some(pid)
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Which process holds a port, and whether others on the network reach it, decides what the person is told.
    #[test]
    fn the_holder_of_a_port_is_found() {
        let here = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let found = listener(here.local_addr().unwrap().port()).unwrap();
        assert_eq!((found.pid, found.loopback), (Some(std::process::id()), true));
        let everywhere = TcpListener::bind(("0.0.0.0", 0)).unwrap();
        let found = listener(everywhere.local_addr().unwrap().port()).unwrap();
        assert!(!found.loopback);
        let port = here.local_addr().unwrap().port();
        drop(here);
        assert_eq!(listener(port), None);
    }

    /// A running program is found by its name only, and with its whole path.
    #[test]
    fn running_programs_are_found_by_name() {
        let itself = std::env::current_exe().unwrap();
        let name = itself.file_name().unwrap().to_string_lossy().into_owned();
        let found = running_programs(&[name]);
        assert!(found.iter().any(|one| one.pid == std::process::id() && one.executable == itself), "{found:?}");
        assert!(running_programs(&["no-such-program".to_owned()]).is_empty());
    }

    /// A detached program leads its own session, so that a signal to our terminal does not reach it; what it started
    /// counts as part of it, and is ended with it.
    #[test]
    fn a_detached_program_has_a_session_of_its_own() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 30 & exit 0"]);
        detach(&mut command);
        let mut child = command.spawn().unwrap();
        let pid = child.id();
        assert!(child.wait().unwrap().success());
        assert!(group_is_alive(pid), "what it started goes on");
        end_group(pid).unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while group_is_alive(pid) {
            assert!(std::time::Instant::now() < deadline, "it still runs");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        end_group(pid).unwrap();
    }
}
