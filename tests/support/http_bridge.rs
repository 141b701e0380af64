//! A bridge over HTTP as a process of its own, for tests.
#![allow(dead_code, reason = "each test file uses the part that it needs")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A running bridge; it is killed when dropped.
pub struct HttpBridgeProcess {
    child: Child,
    errors: Arc<Mutex<String>>,
    folder: tempfile::TempDir,
    /// `http://127.0.0.1:PORT/mcp`
    pub url: String,
    pub token: String,
}

impl HttpBridgeProcess {
    /// Starts the bridge on a free port with a fresh token.
    pub fn start(slicer_url: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let token_file = folder.path().join("token");
        let mut child = Command::new(env!("CARGO_BIN_EXE_slicer-ai-agent"))
            .env("SLICER_AI_AGENT_DATA", folder.path())
            .env_remove("SLICER_URL")
            .args(["bridge", "--http", "127.0.0.1:0", "--slicer-url", slicer_url, "--token-file"])
            .arg(&token_file)
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let errors: Arc<Mutex<String>> = Arc::default();
        let stderr = child.stderr.take().unwrap();
        let collected = Arc::clone(&errors);
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut all = collected.lock().unwrap();
                all.push_str(&line);
                all.push('\n');
            }
        });
        let mut bridge = Self { child, errors, folder, url: String::new(), token: String::new() };
        let started = Instant::now();
        while bridge.url.is_empty() {
            assert!(started.elapsed() < Duration::from_secs(30), "no address was told: {}", bridge.errors());
            std::thread::sleep(Duration::from_millis(10));
            let errors = bridge.errors();
            bridge.url =
                errors.lines().filter_map(|line| line.strip_prefix("MCP on ")).next().unwrap_or_default().to_owned();
        }
        bridge.token = std::fs::read_to_string(token_file).unwrap().trim().to_owned();
        bridge
    }

    pub fn token_file(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    /// `127.0.0.1:PORT`
    pub fn authority(&self) -> &str {
        self.url.trim_start_matches("http://").trim_end_matches("/mcp")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote on stderr so far.
    pub fn errors(&self) -> String {
        self.errors.lock().unwrap().clone()
    }

    /// What it wrote on stdout; waits for its end.
    pub fn output(&mut self) -> String {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut self.child.stdout.take().unwrap(), &mut text).unwrap();
        text
    }

    /// Asks it to end as the system does, and waits for that.
    #[cfg(unix)]
    pub fn terminate(&mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < Duration::from_secs(20), "it does not end: {}", self.errors());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for HttpBridgeProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
