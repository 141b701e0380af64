//! The program itself, run as a person or a script runs it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// The binary with a data folder of the test's own and nothing of the machine's settings.
pub fn program(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slicer-ai-agent"));
    command.env("SLICER_AI_AGENT_DATA", data).env_remove("SLICER_URL").env_remove("DBUS_SESSION_BUS_ADDRESS");
    command
}

/// Runs to the end; gives exit code and the one JSON object of stdout.
pub fn json(command: &mut Command) -> (i32, Value) {
    let output = command.output().expect("the program runs");
    let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", both(&output)));
    (output.status.code().unwrap_or(-1), value)
}

/// stdout and stderr for a failure's text.
pub fn both(output: &Output) -> String {
    format!(
        "exit {:?}\nstdout: {}\nstderr: {}",
        output.status.code(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
