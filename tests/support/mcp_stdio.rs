//! An MCP client over stdio that hides nothing: it hands over each reply as it came, and bounds every wait.
//!
//! The official clients check and convert replies, so that two servers that differ could look the same.
#![allow(dead_code, reason = "each test file uses the part that it needs")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a server may take to start.
const START: Duration = Duration::from_secs(60);

/// A running server and the wire to it; it is ended with this.
pub struct Server {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<Value>,
    last_id: u64,
}

impl Server {
    /// Starts the command and greets it.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdin = child.stdin.take().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&line) else { continue };
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        let mut server = Self { child, stdin, lines, last_id: 0 };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        });
        let greeted = server.request("initialize", hello, START);
        assert!(greeted.is_some_and(|reply| reply.get("result").is_some()), "{command:?} does not speak MCP");
        server.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    /// Calls a tool; `None` when no reply came in time.
    pub fn call(&mut self, tool: &str, arguments: &Value, bound: Duration) -> Option<Value> {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}), bound)
    }

    fn request(&mut self, method: &str, params: Value, bound: Duration) -> Option<Value> {
        self.last_id += 1;
        let id = self.last_id;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let end = Instant::now() + bound;
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(message) if message["id"] == id => return Some(message),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => panic!("the server ended during {method} {params}"),
            }
        }
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
        self.stdin.flush().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            eprintln!("a server could not be ended: {error}");
        }
    }
}
