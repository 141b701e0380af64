//! The PyPI package `mcp-slicer`, each version in a virtual environment of its own, made once in cargo's temporary folder.
//!
//! The package asks for a newer Python than it needs, and its releases need different generations of the package `mcp`.
//! It speaks to one fixed address; a launcher sets the module's variable before its `main` runs, so that its code stays
//! as it was published.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use slicer_ai_agent::platform;

const LAUNCHER: &str = "import sys, mcp_slicer.mcp_server as server; server.SLICER_WEB_SERVER_URL = sys.argv[1]\n\
    from mcp_slicer.main import main; main()\n";

/// The command that serves this version for the Slicer at `url`.
pub fn command(version: &str, url: &str) -> Command {
    let mut command = Command::new(python(version));
    command.args(["-c", LAUNCHER, url]);
    // The oldest release would ask the machine's proxy for 127.0.0.1.
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(name);
    }
    command
}

fn python(version: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp-slicer").join(version);
    std::fs::create_dir_all(&folder).unwrap();
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let environment = folder.join("environment");
    let python = platform::venv_python(&environment);
    let mark = environment.join("ready");
    if !mark.exists() {
        let found = platform::find_python(&|line| eprintln!("{line}")).unwrap();
        run(Command::new(found.executable).args(["-m", "venv", "--clear"]).arg(&environment));
        let sdk = if version.starts_with("0.3") { "mcp==2.3.0" } else { "mcp==1.30.0" };
        pip(&python, &[sdk, "requests==2.34.2", "pillow==12.0.0"]);
        pip(&python, &["--ignore-requires-python", "--no-deps", &format!("mcp-slicer=={version}")]);
        std::fs::write(mark, "").unwrap();
    }
    python
}

fn pip(python: &Path, arguments: &[&str]) {
    run(Command::new(python).args(["-m", "pip", "install", "--disable-pip-version-check", "-q"]).args(arguments));
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
