//! The PyPI package `mcp-slicer`, each version in a virtual environment of its own, made once in cargo's temporary folder.
//!
//! The package asks for a newer Python than it needs, and its releases need different generations of the package `mcp`.
//! It speaks to one fixed address; a launcher sets the module's variable before its `main` runs, so that its code stays
//! as it was published.

use std::path::PathBuf;
use std::process::Command;

use super::python_environment::environment;
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
    let sdk = if version.starts_with("0.3") { "mcp==2.3.0" } else { "mcp==1.30.0" };
    let package = format!("mcp-slicer=={version}");
    let installs: [&[&str]; 2] =
        [&[sdk, "requests==2.34.2", "pillow==12.0.0"], &["--ignore-requires-python", "--no-deps", &package]];
    platform::venv_python(&environment(&format!("mcp-slicer/{version}"), &installs))
}
