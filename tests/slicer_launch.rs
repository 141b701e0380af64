//! Launching a Slicer, with a fake one that takes Slicer's arguments and has its Web Server's classes and habits, so that
//! the start-up script runs as it does in Slicer (`tests/fake_slicer/`). The fake executable is a shell script; the parts
//! that differ on Windows are covered by unit tests.
#![cfg(unix)]

#[path = "support/practice.rs"]
mod practice;
#[path = "support/program.rs"]
mod program;

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use slicer_ai_agent::bridge::WebServer;
use slicer_ai_agent::engine::{self, Command as Order, EngineOptions, Event, Settings, SlicerTarget};
use slicer_ai_agent::platform;
use slicer_ai_agent::slicer::launch::{LaunchError, LaunchOptions, LaunchedSlicer, launch};
use slicer_ai_agent::slicer::{Places, discover};
use slicer_ai_agent::store;
use tokio_util::sync::CancellationToken;

/// Longer than a start of the fake takes on a machine that is busy with builds.
const PATIENCE: Duration = Duration::from_secs(120);

/// A fake installation with a data folder beside it, and ports of its own.
struct Bench {
    folder: tempfile::TempDir,
    ports: RangeInclusive<u16>,
    started: Mutex<Vec<u32>>,
}

/// Ends what a test started, also when it fails.
impl Drop for Bench {
    fn drop(&mut self) {
        for pid in self.started.lock().unwrap().drain(..) {
            platform::end_group(pid).unwrap();
        }
    }
}

impl Bench {
    /// `mode` is what the fake does wrong; `line` is the end of its shell script.
    fn with_line(mode: &str, line: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = practice::home();
        let python = home.python().get_program().to_owned();
        let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_slicer");
        let script = format!(
            "#!/bin/sh\nexport FAKE_SLICER={mode} PYTHONDONTWRITEBYTECODE=1 PYTHONPATH='{}:{}'\nset -- '{}' '{}' \"$@\"\n{line}\n",
            home.source.display(),
            fake.display(),
            python.to_string_lossy(),
            fake.join("fake_slicer.py").display(),
        );
        let executable = folder.path().join("Slicer-5.99.0-linux-amd64/Slicer");
        std::fs::create_dir_all(executable.parent().unwrap()).unwrap();
        std::fs::write(&executable, script).unwrap();
        std::fs::set_permissions(&executable, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder, ports: free_ports(), started: Mutex::default() }
    }

    fn new(mode: &str) -> Self {
        Self::with_line(mode, "echo $$ > \"$(dirname \"$0\")/pid\"\nexec \"$@\"")
    }

    fn executable(&self) -> PathBuf {
        self.folder.path().join("Slicer-5.99.0-linux-amd64/Slicer")
    }

    fn options(&self) -> LaunchOptions {
        LaunchOptions {
            executable: Some(self.executable()),
            limit: PATIENCE,
            data_folder: self.folder.path().join("data"),
            logs: self.folder.path().join("data/logs"),
            ports: Some(self.ports.clone()),
        }
    }

    async fn launch(&self) -> Result<LaunchedSlicer, LaunchError> {
        self.launch_with(self.options()).await
    }

    async fn launch_with(&self, options: LaunchOptions) -> Result<LaunchedSlicer, LaunchError> {
        let outcome = launch(&options, &|line| eprintln!("{line}"), &CancellationToken::new()).await;
        match &outcome {
            Ok(slicer) => self.started.lock().unwrap().push(slicer.pid),
            Err(_) => self.started.lock().unwrap().extend(self.pid().filter(|pid| platform::is_alive(*pid))),
        }
        outcome
    }

    /// The process that the fake executable became.
    fn pid(&self) -> Option<u32> {
        let text = std::fs::read_to_string(self.executable().with_file_name("pid")).ok()?;
        text.trim().parse().ok()
    }

    /// The data folder's table of places with only this installation and these ports.
    fn write_places(&self) {
        let table = slicer_ai_agent::resources::text("slicer_places.toml").unwrap();
        let mut table: toml::Table = table.parse().unwrap();
        table["ports"] = toml::Value::try_from(std::collections::BTreeMap::from([
            ("first", *self.ports.start()),
            ("last", *self.ports.end()),
        ]))
        .unwrap();
        for system in ["linux", "macos"] {
            let files = vec![self.folder.path().join("Slicer-*/Slicer").to_string_lossy().into_owned()];
            table[system].as_table_mut().unwrap().insert("files".into(), toml::Value::try_from(files).unwrap());
            table[system].as_table_mut().unwrap().insert("commands".into(), toml::Value::Array(Vec::new()));
        }
        let folder = self.folder.path().join("data/resources");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("slicer_places.toml"), table.to_string()).unwrap();
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

/// Eleven ports in a row that are free now, away from those of other tests.
fn free_ports() -> RangeInclusive<u16> {
    static LAST: Mutex<u16> = Mutex::new(0);
    let mut last = LAST.lock().unwrap();
    let mut first = if *last == 0 { 21_000 + (std::process::id() % 700) as u16 * 16 } else { *last + 16 };
    while !(first..=first + 10).all(|port| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok()) {
        first += 16;
    }
    *last = first;
    first..=first + 10
}

async fn asked(url: &str, code: &str) -> serde_json::Value {
    WebServer::new(url, None).unwrap().exec(code, None).await.unwrap()
}

async fn ends(slicer: &mut LaunchedSlicer) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(end) = slicer.end() {
            return end;
        }
        assert!(Instant::now() < deadline, "the end was not noticed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The whole way: found, started, on loopback only, with exec on, and with nothing but Slicer's own API (the stand-in
/// raises when DICOM, static pages, CORS or the panel that writes settings is asked for). It leaves nothing but its log.
#[tokio::test]
async fn a_slicer_is_started_on_loopback_with_exec_on() {
    let bench = Bench::new("works");
    let mut slicer = bench.launch().await.unwrap();
    let port = *bench.ports.start();
    assert_eq!(slicer.url, format!("http://127.0.0.1:{port}/slicer"));
    assert_eq!(slicer.version, "5.13.0-practice");
    assert_eq!(Some(slicer.pid), bench.pid());
    assert_eq!(slicer.end(), None);
    let code = "import os, slicer\n__execResult = {'bound': slicer.aiAgentWebServer.server.socket.getsockname(), \
                'left': sorted(name for name in os.environ if name.startswith('SLICER_AI_AGENT_R'))}";
    let facts = asked(&slicer.url, code).await;
    assert_eq!(facts["bound"], serde_json::json!(["127.0.0.1", port]));
    assert_eq!(facts["left"], serde_json::json!([]), "programs that Slicer starts do not inherit our names");
    if cfg!(target_os = "linux") {
        let listener = platform::listener(port).unwrap();
        assert_eq!((listener.pid, listener.loopback), (Some(slicer.pid), true));
    }
    let left: Vec<_> = std::fs::read_dir(bench.data().join("launch")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(slicer.last_lines().contains("Slicer AI Agent:"), "{}", slicer.last_lines());
}

/// A port that another program holds is passed over, whether it is bound here or everywhere.
#[tokio::test]
async fn taken_ports_are_passed_over() {
    let bench = Bench::new("works");
    let first = *bench.ports.start();
    let _here = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).unwrap();
    let _everywhere = TcpListener::bind((Ipv4Addr::UNSPECIFIED, first + 1)).unwrap();
    let slicer = bench.launch().await.unwrap();
    assert_eq!(slicer.url, format!("http://127.0.0.1:{}/slicer", first + 2));
}

#[tokio::test]
async fn when_all_ports_are_taken_it_is_said() {
    let mut bench = Bench::new("works");
    let first = *bench.ports.start();
    bench.ports = first..=first + 1;
    let _held = [first, first + 1].map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap());
    let error = bench.launch().await.unwrap_err();
    assert!(matches!(&error, LaunchError::Script { kind, .. } if kind == "PortsTaken"), "{error:?}");
    assert!(error.to_string().contains(&format!("all ports from {first} to {} are in use", first + 1)), "{error}");
    assert!(platform::is_alive(bench.pid().unwrap()), "the Slicer stays open");
}

/// An end during the start is told at once, with its code and what it said last; the whole log stays to be read.
#[tokio::test]
async fn an_end_at_the_start_is_told_with_its_last_words() {
    let bench = Bench::new("exit");
    let began = Instant::now();
    let error = bench.launch().await.unwrap_err();
    assert!(began.elapsed() < PATIENCE / 2, "{:?}", began.elapsed());
    let text = error.to_string();
    assert!(text.contains("exit code 1") && text.contains("no Qt platform plugin"), "{text}");
    let LaunchError::Ended { log, .. } = &error else { panic!("{error:?}") };
    assert!(std::fs::read_to_string(log).unwrap().contains("Switch to module"));
    assert!(error.advice().contains(log.to_str().unwrap()), "{}", error.advice());
}

/// A Slicer that does not get ready in time is reported and left alone: it may still come up, with the person in it.
#[tokio::test]
async fn a_slicer_that_hangs_is_reported_and_not_closed() {
    let bench = Bench::new("hang");
    let options = LaunchOptions { limit: Duration::from_secs(3), ..bench.options() };
    let error = bench.launch_with(options).await.unwrap_err();
    let pid = bench.pid().unwrap();
    assert!(matches!(error, LaunchError::TimedOut { pid: told, .. } if told == pid), "{error:?}");
    assert!(error.to_string().contains("Loading modules"), "{error}");
    assert!(platform::is_alive(pid));
}

/// The person's Cancel ends the Slicer that is starting: it was never handed over, so there is no work in it.
#[tokio::test]
async fn a_cancelled_launch_ends_what_it_started() {
    let bench = Bench::new("hang");
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let (options, pid_of) = (bench.options(), || bench.pid());
    let launching = launch(&options, &|_| (), &cancel);
    let cancelling = async {
        while pid_of().is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        stop.cancel();
    };
    let (outcome, ()) = tokio::join!(launching, cancelling);
    assert!(matches!(outcome, Err(LaunchError::Cancelled)), "{outcome:?}");
    let pid = bench.pid().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while platform::is_alive(pid) {
        assert!(Instant::now() < deadline, "it still runs");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What goes wrong inside Slicer comes back in words, and that Slicer stays open.
#[tokio::test]
async fn errors_of_the_start_up_script_are_told() {
    for (mode, kind, words) in [
        ("error", "Failed", "ZeroDivisionError"),
        ("old", "NoWebServer", "has no Web Server module"),
        ("switched_off", "NoWebServer", "switched off"),
        ("everywhere", "NotLoopback", "would have listened on 0.0.0.0"),
    ] {
        let bench = Bench::new(mode);
        let error = bench.launch().await.unwrap_err();
        assert!(matches!(&error, LaunchError::Script { kind: told, .. } if told == kind), "{mode}: {error:?}");
        assert!(error.to_string().contains(words), "{mode}: {error}");
        assert!(error.advice().contains("Slicer stays open"), "{mode}: {}", error.advice());
        assert!(platform::is_alive(bench.pid().unwrap()), "{mode}");
        let port = *bench.ports.start();
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err(), "{mode}: nothing may listen after an error");
    }
}

/// Two that start at the same moment do not get in each other's way, and are told apart afterwards.
#[tokio::test]
async fn two_side_by_side_get_ports_of_their_own() {
    let bench = Bench::new("works");
    let mut other = Bench::new("works");
    other.ports = bench.ports.clone();
    let (one, two) = tokio::join!(bench.launch(), other.launch());
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_ne!(one.url, two.url);
    let places = Places::of_this_computer(&bench.data()).unwrap();
    let (running, held) = discover::find_running(bench.ports.clone(), &places).await;
    assert!(held.is_empty(), "{held:?}");
    let mut found: Vec<_> = running.iter().map(|one| (one.url.clone(), one.pid, one.exec, one.practice)).collect();
    let mut expected: Vec<_> = [&one, &two].map(|one| (one.url.clone(), Some(one.pid), Some(true), true)).into();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

/// A Slicer that ends later, by itself or because it was killed, is noticed with how it ended.
#[tokio::test]
async fn a_later_end_is_noticed() {
    let bench = Bench::new("quits_later");
    let mut slicer = bench.launch().await.unwrap();
    assert_eq!(ends(&mut slicer).await, "exit code 3");
    let bench = Bench::new("works");
    let mut slicer = bench.launch().await.unwrap();
    assert_eq!(slicer.end(), None);
    platform::end_group(slicer.pid).unwrap();
    assert!(ends(&mut slicer).await.contains("signal"));
}

/// A launcher that leaves at once, as a person's own shell script may, is not taken for the end of Slicer.
#[tokio::test]
async fn a_launcher_that_leaves_is_not_the_end() {
    let bench = Bench::with_line("works", "\"$@\" &\necho $! > \"$(dirname \"$0\")/pid\"\nexit 0");
    let mut slicer = bench.launch().await.unwrap();
    // The group is the launcher's; the application in it is ended by its own id.
    let pid = slicer.pid;
    bench.started.lock().unwrap().clear();
    assert_eq!(slicer.end(), None);
    assert!(Command::new("kill").arg("-9").arg(pid.to_string()).status().unwrap().success());
    ends(&mut slicer).await;
}

/// `launch` prints what scripts need and ends; the Slicer goes on. `--list` and `doctor` then name it.
#[test]
fn the_slicer_goes_on_when_the_program_ends() {
    let bench = Bench::new("works");
    bench.write_places();
    let (code, launched) = program::json(program::program(&bench.data()).args(["launch", "--json"]));
    let pid = launched["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap_or_else(|| panic!("{launched}"));
    bench.started.lock().unwrap().push(pid);
    assert_eq!((code, launched["version"].as_str()), (0, Some("5.13.0-practice")), "{launched}");
    assert_eq!(launched["url"], format!("http://127.0.0.1:{}/slicer", bench.ports.start()));
    assert!(platform::is_alive(pid));
    // Its own session: the end of a terminal does not reach it.
    // SAFETY: getsid only reads.
    assert_eq!(unsafe { libc::getsid(pid as i32) }, pid as i32);
    let (code, found) = program::json(program::program(&bench.data()).args(["launch", "--list", "--json"]));
    assert_eq!(code, 0);
    assert_eq!(found["running"][0]["url"], launched["url"], "{found}");
    assert_eq!(found["running"][0]["pid"], pid);
    assert_eq!(found["running"][0]["exec"], true);
    assert_eq!(found["installed"][0]["version"], "5.99.0");
    assert_eq!(found["installed"][0]["executable"], bench.executable().to_str().unwrap());
    let output = program::program(&bench.data()).arg("doctor").output().unwrap();
    let text = program::both(&output);
    assert!(text.contains(&format!("process {pid}")) && text.contains("Slicer 5.99.0 at"), "{text}");
}

/// Without a Slicer the exit code says that there is nothing to connect to, and the words what to do.
#[test]
fn without_a_slicer_it_is_said_what_to_do() {
    let bench = Bench::new("works");
    bench.write_places();
    std::fs::remove_file(bench.executable()).unwrap();
    let output = program::program(&bench.data()).arg("launch").output().unwrap();
    let text = program::both(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    for words in ["download.slicer.org", "--slicer PATH", "practice Slicer"] {
        assert!(text.contains(words), "{text}");
    }
    let wrong = bench.folder.path().join("nothing here");
    let output = program::program(&bench.data()).arg("launch").arg("--slicer").arg(&wrong).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", program::both(&output));
    assert!(program::both(&output).contains("not a program that can be started"));
}

/// The next event that `pick` wants.
async fn event<T>(engine: &mut engine::Engine, mut pick: impl FnMut(Event) -> Option<T>) -> T {
    loop {
        let next = tokio::time::timeout(PATIENCE, engine.events.recv()).await.expect("an event in time");
        if let Some(picked) = pick(next.expect("an engine")) {
            return picked;
        }
    }
}

/// What the window does: look, launch with progress, be connected; a close is asked for first, and its end shows in the
/// status. A Slicer that was not started here is not closed at all.
#[tokio::test]
async fn the_engine_launches_connects_and_notices_the_end() {
    let bench = Bench::new("works");
    bench.write_places();
    let mut engine = engine::start(EngineOptions {
        paths: store::Paths::new(Some(bench.data())).unwrap(),
        settings: Some(Settings::default()),
        slicer: SlicerTarget::None,
        granted: std::collections::BTreeSet::new(),
        api_key: None,
        max_attempts: None,
        executable: Some(PathBuf::from(env!("CARGO_BIN_EXE_slicer-ai-agent"))),
    })
    .unwrap();
    let orders = engine.commands.clone();
    orders.send(Order::FindSlicers).await.unwrap();
    let found = event(&mut engine, |event| match event {
        Event::Slicers { found } => Some(found),
        _ => None,
    })
    .await;
    assert!(found.running.is_empty(), "{found:?}");
    assert_eq!(found.installed[0].executable, bench.executable());

    orders.send(Order::LaunchSlicer).await.unwrap();
    let mut lines = Vec::new();
    let status = event(&mut engine, |event| match event {
        Event::Progress { what, detail, done: false } => {
            assert_eq!(what, "Starting Slicer");
            lines.push(detail);
            None
        }
        Event::LaunchFailed { problem } => panic!("{problem:?}"),
        Event::Slicer { status } if status.connected => Some(status),
        _ => None,
    })
    .await;
    assert!(lines[0].starts_with("Starting "), "{lines:?}");
    let pid = bench.pid().unwrap();
    bench.started.lock().unwrap().push(pid);
    assert_eq!(status.url, format!("http://127.0.0.1:{}/slicer", bench.ports.start()));

    orders.send(Order::CloseSlicer { pid: std::process::id(), confirmed: true }).await.unwrap();
    let problem = event(&mut engine, |event| match event {
        Event::Problem { problem } => Some(problem),
        _ => None,
    })
    .await;
    assert_eq!(problem.kind, "Refused");
    orders.send(Order::CloseSlicer { pid, confirmed: false }).await.unwrap();
    let asked = event(&mut engine, |event| match event {
        Event::CloseAsked { pid, .. } => Some(pid),
        _ => None,
    })
    .await;
    assert_eq!(asked, pid);
    assert!(platform::is_alive(pid), "nothing is closed before the person has answered");
    orders.send(Order::CloseSlicer { pid, confirmed: true }).await.unwrap();
    let problem = event(&mut engine, |event| match event {
        Event::Slicer { status } if !status.connected => {
            status.problem.filter(|text| text.contains("was started here"))
        }
        _ => None,
    })
    .await;
    assert!(problem.contains(&format!("process {pid}")) && problem.contains("was closed"), "{problem}");
    assert!(!platform::is_alive(pid));
}
