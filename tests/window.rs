//! A real window on a virtual display: a person types a request, the result card comes, the picture is saved.
//!
//! What is protected: that the window opens with the libraries that the program asks for, that keys reach the composer,
//! that engine, bridge and practice Slicer work behind it, and that closing it ends everything that was started.
#![cfg(target_os = "linux")]

#[path = "support/practice.rs"]
mod practice;
#[path = "support/program.rs"]
mod program;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use slicer_ai_agent::platform::{self, ChildGuard};

const PATIENCE: Duration = Duration::from_secs(120);

/// An X server on a free display, and the display's name.
fn virtual_display() -> (ChildGuard, String) {
    platform::ensure(&["test-display", "test-keyboard", "test-screenshot"], &|line| eprintln!("{line}")).unwrap();
    let mut server = Command::new("Xvfb")
        .args(["-displayfd", "1", "-screen", "0", "1600x1000x24", "+extension", "GLX", "+render", "-noreset"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut number = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
    (ChildGuard(server), format!(":{}", number.trim()))
}

fn tool(display: &str, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).env("DISPLAY", display).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Waits until `found` gives something.
fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = found() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what} did not come in time");
        sleep(Duration::from_millis(150));
    }
}

/// The turns of the only conversation in the history.
fn turns(data: &Path) -> Option<Vec<Value>> {
    let (_, list) = program::json(program::program(data).args(["conversations", "list", "--json"]));
    let id = list["conversations"][0]["id"].as_str()?.to_owned();
    let (_, shown) = program::json(program::program(data).args(["conversations", "show", &id, "--json"]));
    Some(shown["turns"].as_array()?.clone())
}

/// Number of colours in a picture: a window that drew nothing has a handful.
fn colours(path: &Path) -> usize {
    let picture = image::open(path).unwrap().to_rgb8();
    picture.pixels().map(|pixel| pixel.0).collect::<std::collections::HashSet<_>>().len()
}

fn screenshot(display: &str, name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    tool(display, "import", &["-window", "root", path.to_str().unwrap()]);
    path
}

#[test]
fn a_typed_request_gets_its_result_card() {
    let slicer = practice::start();
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("settings.toml"), format!("[slicer]\nurl = \"{}\"\n", slicer.url)).unwrap();
    let (_server, display) = virtual_display();
    let log = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("window.log");
    let child = program::program(data.path())
        .env("DISPLAY", &display)
        .env_remove("WAYLAND_DISPLAY")
        .env("XDG_RUNTIME_DIR", data.path())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let mut window = ChildGuard(child);
    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    let id = wait_for("the window", || {
        assert!(matches!(window.0.try_wait(), Ok(None)), "the program ended: {}", said());
        let id = tool(&display, "xdotool", &["search", "--onlyvisible", "--name", "Slicer AI Agent"]);
        id.lines().next().map(str::to_owned).filter(|id| !id.is_empty())
    });
    tool(&display, "xdotool", &["windowmove", &id, "0", "0", "windowsize", &id, "1600", "1000", "windowfocus", &id]);
    sleep(Duration::from_secs(2));
    let empty = screenshot(&display, "window-empty.png");
    assert!(colours(&empty) > 50, "the window shows nothing: {}", empty.display());

    // The composer has the keyboard from the start.
    tool(&display, "xdotool", &["type", "--delay", "15", "Load the sample chest CT"]);
    tool(&display, "xdotool", &["key", "Return"]);
    let turn = wait_for("the turn", || {
        let turns = turns(data.path())?;
        turns.first().filter(|turn| !turn["finish"].is_null()).cloned()
    });
    assert_eq!(turn["finish"], "ran", "{turn:#}");
    assert_eq!(turn["runs"][0]["diff"]["added"][0]["name"], "CTChest");
    sleep(Duration::from_secs(2));
    let done = screenshot(&display, "window-done.png");
    assert!(colours(&done) > 500, "the result card and the picture are missing: {}", done.display());

    // Closing the window ends the process and the bridge that it started.
    let bridges = || children_of(window.0.id());
    let started = bridges();
    assert!(!started.is_empty(), "no bridge was started");
    tool(&display, "xdotool", &["windowclose", &id]);
    wait_for("the end", || matches!(window.0.try_wait(), Ok(Some(_))).then_some(()));
    wait_for("the bridge's end", || started.iter().all(|pid| !platform::is_alive(*pid)).then_some(()));
}

fn children_of(pid: u32) -> Vec<u32> {
    let mut text = String::new();
    let path = format!("/proc/{pid}/task/{pid}/children");
    if let Ok(mut file) = std::fs::File::open(path) {
        // What cannot be read is reported by the assertion on the empty list.
        file.read_to_string(&mut text).unwrap_or_default();
    }
    let mut found: Vec<u32> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    if found.is_empty() {
        // Children started by other threads are listed under those threads.
        for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(text.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
        }
    }
    found
}
