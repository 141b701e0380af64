//! Which Slicers run on this computer: all ports of the table are asked at once, each with short limits, so that a port
//! that hangs costs no more than the others.
//!
//! A port that is held by something else, or by a Slicer that is too busy to answer, is told apart from a free one.
//! Only this computer is asked, and nothing that is found is changed.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::places::{InstalledSlicer, Places};
use crate::bridge::{WebServer, WebServerError};
use crate::platform;
use crate::resources;

/// Longest wait for one answer of a server.
const REPLY_LIMIT: Duration = Duration::from_millis(1500);
/// Longest wait for all that one port has to say. A system that drops connections to a closed port needs 2 s to say so.
const PORT_LIMIT: Duration = Duration::from_millis(3500);

/// A Slicer whose Web Server answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningSlicer {
    /// Base URL of its Web Server.
    pub url: String,
    pub port: u16,
    pub version: String,
    /// True when this is the practice Slicer.
    pub practice: bool,
    /// Whether it accepts Python code; `None` when it was too busy to say.
    pub exec: Option<bool>,
    pub pid: Option<u32>,
    /// File name of its scene, without the ending; `None` for a scene that was never saved, or is not known.
    pub scene: Option<String>,
    /// Whether only this computer reaches its Web Server; `None` when the system does not tell.
    pub loopback: Option<bool>,
}

/// A port on which something listens that did not answer as a Slicer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldPort {
    pub port: u16,
    pub pid: Option<u32>,
    pub program: Option<String>,
    /// True when it is a Slicer that did not answer in time, or may be one.
    pub maybe_slicer: bool,
    /// What it is, in one sentence.
    pub detail: String,
}

/// All that was found on this computer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundSlicers {
    /// By port.
    pub running: Vec<RunningSlicer>,
    pub held: Vec<HeldPort>,
    /// Newest first; the one that the person named comes before all others.
    pub installed: Vec<InstalledSlicer>,
}

/// Looks for running and installed Slicers; takes at most about 4 s. `named` is the executable of the settings.
///
/// # Errors
/// What is wrong with the table of places.
pub async fn find(data_folder: &Path, named: Option<&Path>) -> Result<FoundSlicers, String> {
    let places = Places::of_this_computer(data_folder)?;
    let named = named.map(Path::to_owned);
    let ports = places.ports();
    let installed = tokio::task::spawn_blocking({
        let places = places.clone();
        move || places.installed(named.as_deref())
    });
    let (running, held) = find_running(ports, &places).await;
    let installed = installed.await.map_err(|error| format!("the search for installed Slicers failed: {error}"))?;
    Ok(FoundSlicers { running, held, installed })
}

/// Asks all these ports at once.
pub async fn find_running(ports: RangeInclusive<u16>, places: &Places) -> (Vec<RunningSlicer>, Vec<HeldPort>) {
    let answers = futures::future::join_all(ports.map(|port| probe(port, places))).await;
    let (mut running, mut held) = (Vec::new(), Vec::new());
    for answer in answers {
        match answer {
            Probe::Free => {}
            Probe::Slicer(slicer) => running.push(slicer),
            Probe::Held(port) => held.push(port),
        }
    }
    (running, held)
}

enum Probe {
    Free,
    Slicer(RunningSlicer),
    Held(HeldPort),
}

async fn probe(port: u16, places: &Places) -> Probe {
    let url = format!("http://127.0.0.1:{port}/slicer");
    let Ok(server) = WebServer::new(&url, Some(REPLY_LIMIT)) else { return Probe::Free };
    let asked = tokio::time::timeout(PORT_LIMIT, server.version(None)).await;
    let listener = || async move {
        // Reads of /proc: quick, but not for the thread that serves everybody.
        tokio::task::spawn_blocking(move || platform::listener(port)).await.ok().flatten()
    };
    let problem = match asked {
        Ok(Ok(facts)) => match facts["applicationVersion"].as_str() {
            Some(version) => return Probe::Slicer(ask_who(server, port, version, listener().await).await),
            None => "It answers, but not as 3D Slicer does.".to_owned(),
        },
        // Refused, or nothing that could be reached: nobody listens.
        Ok(Err(WebServerError::NotRunning { .. })) => return Probe::Free,
        Ok(Err(error @ WebServerError::Unreachable { .. })) => {
            tracing::debug!(%error, port, "a port could not be reached");
            return Probe::Free;
        }
        Ok(Err(WebServerError::TimedOut { .. })) | Err(_) => {
            return Probe::Held(silent(port, listener().await, places));
        }
        Ok(Err(WebServerError::Server { message })) if message.starts_with("Server error") => {
            "It looks like a Slicer whose “Slicer API” box is not ticked.".to_owned()
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, port, "a port answers as something else");
            "Another program listens there, not a Slicer.".to_owned()
        }
    };
    let listener = listener().await;
    let maybe_slicer = problem.contains("Slicer API");
    Probe::Held(HeldPort {
        port,
        pid: listener.as_ref().and_then(|one| one.pid),
        program: listener.and_then(|one| one.program),
        maybe_slicer,
        detail: problem,
    })
}

/// A listener that said nothing: by the name of its process a busy Slicer, or another program.
fn silent(port: u16, listener: Option<platform::Listener>, places: &Places) -> HeldPort {
    let pid = listener.as_ref().and_then(|one| one.pid);
    let program = listener.and_then(|one| one.program);
    let slicer = program.as_deref().map(|name| places.is_process_name(name));
    let detail = match slicer {
        Some(true) => "Slicer runs there, but is too busy to answer, or shows a dialog that waits for you.",
        Some(false) => "Another program listens there and does not answer.",
        None => "Something listens there and does not answer: a Slicer that is busy, or another program.",
    };
    HeldPort { port, pid, program, maybe_slicer: slicer.unwrap_or(true), detail: detail.to_owned() }
}

/// Asks a Slicer for its process and its scene.
async fn ask_who(server: WebServer, port: u16, version: &str, listener: Option<platform::Listener>) -> RunningSlicer {
    let code = resources::text("slicer_startup/who.py").unwrap_or_default();
    let (exec, facts) = match server.exec(code, None).await {
        Ok(facts) => (Some(true), facts),
        Err(WebServerError::ExecOff) => (Some(false), serde_json::Value::Null),
        Err(error) => {
            tracing::debug!(%error, port, "a Slicer did not say who it is");
            (None, serde_json::Value::Null)
        }
    };
    let pid = facts["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    RunningSlicer {
        url: server.url().to_owned(),
        port,
        version: version.to_owned(),
        practice: version.ends_with("-practice"),
        exec,
        pid: pid.or(listener.as_ref().and_then(|one| one.pid)),
        scene: facts["scene"].as_str().and_then(scene_name),
        loopback: listener.map(|one| one.loopback),
    }
}

/// The name of a scene file, whichever system wrote its path.
fn scene_name(path: &str) -> Option<String> {
    let name = path.rsplit(['/', '\\']).next()?;
    let name = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    fn places() -> Places {
        Places::of_this_computer(Path::new("/nonexistent")).unwrap()
    }

    /// A server that gives this reply to everything, or none at all.
    async fn server(reply: Option<&'static [u8]>) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                // One read is enough: a request comes in one write.
                if stream.read_buf(&mut Vec::with_capacity(4096)).await.is_err() {
                    continue;
                }
                match reply {
                    Some(reply) => drop(stream.write_all(reply).await),
                    None => kept.push(stream),
                }
            }
        });
        port
    }

    /// A program that never answers costs the limit once and is not taken for a Slicer, nor for a free port.
    #[tokio::test]
    async fn a_port_that_hangs_is_told_apart_in_time() {
        let port = server(None).await;
        let began = std::time::Instant::now();
        let (running, held) = find_running(port..=port, &places()).await;
        assert!(running.is_empty());
        assert_eq!(held.len(), 1);
        assert!(held[0].detail.contains("does not answer"), "{held:?}");
        if cfg!(target_os = "linux") {
            assert_eq!(held[0].pid, Some(std::process::id()));
            assert!(!held[0].maybe_slicer, "{held:?}");
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn another_program_is_not_a_slicer() {
        for reply in [
            &b"SSH-2.0-OpenSSH_9\r\n"[..],
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            b"HTTP/1.1 404 Not Found\r\n\r\n",
        ] {
            let port = server(Some(reply)).await;
            let (running, held) = find_running(port..=port, &places()).await;
            assert!(running.is_empty() && held.len() == 1 && !held[0].maybe_slicer, "{running:?} {held:?}");
        }
    }

    #[tokio::test]
    async fn a_free_port_is_neither() {
        let port = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap().port();
        let (running, held) = find_running(port..=port, &places()).await;
        assert!(running.is_empty() && held.is_empty(), "{running:?} {held:?}");
    }

    #[test]
    fn scenes_are_named_by_their_file() {
        for (path, name) in [
            ("/home/a/2024 case.mrml", Some("2024 case")),
            ("C:\\data\\case.v2.mrb", Some("case.v2")),
            ("", None),
            ("/home/a/scene", Some("scene")),
        ] {
            assert_eq!(scene_name(path).as_deref(), name);
        }
    }
}
