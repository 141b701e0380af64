//! `doctor`: everything of the set-up that can be wrong, each with what to do about it.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::console::Console;
use super::{Outcome, console, exit, launch, runtime, session};
use crate::platform;
use crate::resources;
use crate::slicer::{BridgeCommand, ConnectOptions, FoundSlicers, Slicer, discover};
use crate::store::{Conversations, Keys, Paths};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  slicer-ai-agent doctor --json")]
pub struct Arguments {
    #[command(flatten)]
    slicer: session::SlicerArguments,
    #[arg(long)]
    json: bool,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    ok: bool,
    detail: String,
    advice: String,
    /// The program works without it.
    #[serde(skip)]
    optional: bool,
}

impl Check {
    fn good(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, ok: true, detail: detail.into(), advice: String::new(), optional: false }
    }

    fn bad(name: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, ok: false, detail: detail.into(), advice: advice.into(), optional: false }
    }

    fn optional(self) -> Self {
        Self { optional: true, ..self }
    }
}

/// Runs the command. It fails when something is wrong that the program cannot work without.
pub fn run(arguments: &Arguments, paths: &Paths) -> Outcome {
    let (url, named) = {
        let quiet = Console { quiet: true };
        let settings = session::settings(paths, quiet)?.slicer;
        let named = Some(PathBuf::from(settings.executable)).filter(|path| !path.as_os_str().is_empty());
        (arguments.slicer.slicer_url.clone().unwrap_or(settings.url), named)
    };
    let mut checks = vec![
        data_folder(paths),
        history(paths),
        keyring(),
        python(),
        practice(paths),
        needs("Pictures without a window", &["pictures", "mesa-driver"]),
        needs("Window libraries", &super::window::NEEDS).optional(),
        display(),
        embedded(),
        runtime()?.block_on(slicer(url)),
    ];
    let found = runtime()?.block_on(discover::find(paths.data(), named.as_deref()));
    checks.extend(match found {
        Ok(found) => vec![running_slicers(&found), installed_slicers(&found)],
        Err(error) => {
            vec![Check::bad("Slicers on this computer", error, "Correct or remove your own table of places.")]
        }
    });
    if arguments.json {
        console::print_json(&serde_json::json!({"checks": checks}))?;
    } else {
        for check in &checks {
            let mark = match (check.ok, check.optional) {
                (true, _) => "ok  ",
                (false, true) => "–   ",
                (false, false) => "FAIL",
            };
            console::print_text(&format!("{mark} {}: {}", check.name, check.detail))?;
            if !check.ok {
                console::print_text(&format!("       → {}", check.advice))?;
            }
        }
    }
    let works = checks.iter().all(|check| check.ok || check.optional);
    Ok(if works { exit::DONE } else { exit::FAILED })
}

fn data_folder(paths: &Paths) -> Check {
    const NAME: &str = "Data folder";
    let folder = paths.data();
    match tempfile::NamedTempFile::new_in(folder) {
        Ok(_) => Check::good(NAME, folder.display().to_string()),
        Err(error) => Check::bad(
            NAME,
            format!("{} cannot be written ({error})", folder.display()),
            "Give yourself the right to write there, or name another folder with --data-dir.",
        ),
    }
}

fn history(paths: &Paths) -> Check {
    const NAME: &str = "History";
    match Conversations::open(&paths.database()).and_then(|store| store.list(false)) {
        Ok(list) => Check::good(NAME, format!("{} conversations", list.len())),
        Err(error) => Check::bad(NAME, error.to_string(), "Move the file away; a new one is made at the next start."),
    }
}

fn keyring() -> Check {
    const NAME: &str = "Keyring";
    match Keys::new().missing_keyring() {
        None => Check::good(NAME, "keys are kept in the system's keyring"),
        Some(problem) => Check::bad(
            NAME,
            problem,
            "Start a keyring (GNOME Keyring, KWallet), or put the key into the provider's environment variable. The recipes need none.",
        )
        .optional(),
    }
}

fn python() -> Check {
    const NAME: &str = "Python for the practice Slicer";
    // Only a look: nothing is installed by asking how things stand.
    match platform::look_for_python() {
        Ok(python) => Check::good(NAME, format!("3.{} at {}", python.minor, python.executable.display())),
        Err(error) => Check::bad(NAME, error.to_string(), "It is needed only for the practice Slicer.").optional(),
    }
}

fn practice(paths: &Paths) -> Check {
    const NAME: &str = "Practice Slicer";
    if crate::slicer::practice::is_set_up(&paths.practice()) {
        Check::good(NAME, "installed")
    } else {
        Check::bad(NAME, "not set up yet", "slicer-ai-agent practice --setup-only").optional()
    }
}

fn needs(name: &'static str, ids: &[&str]) -> Check {
    match platform::missing(ids) {
        Ok(missing) if missing.is_empty() => Check::good(name, "present"),
        Ok(missing) => {
            let advice = platform::install_command(ids).unwrap_or_default();
            Check::bad(name, format!("missing: {}", missing.join(", ")), advice)
        }
        Err(error) => Check::bad(name, error.to_string(), ""),
    }
}

fn display() -> Check {
    const NAME: &str = "Display";
    if platform::has_display() {
        Check::good(NAME, "present")
    } else {
        Check::bad(NAME, "none", "Only the window needs one; `ask` and `demo --headless` work without.").optional()
    }
}

fn embedded() -> Check {
    const NAME: &str = "Built-in recipes";
    let count = resources::folder("recipes").map_or(0, |folder| {
        folder.files().filter(|file| file.path().extension().is_some_and(|ending| ending == "md")).count()
    });
    if count > 0 {
        Check::good(NAME, format!("{count}"))
    } else {
        Check::bad(NAME, "none are embedded", "This build is damaged: install it again.")
    }
}

fn running_slicers(found: &FoundSlicers) -> Check {
    const NAME: &str = "Running Slicers";
    let mut lines: Vec<String> = found.running.iter().map(launch::running).collect();
    lines.extend(
        found.held.iter().filter(|one| one.maybe_slicer).map(|one| format!("port {}: {}", one.port, one.detail)),
    );
    if !lines.is_empty() {
        return Check::good(NAME, lines.join("; "));
    }
    Check::bad(NAME, "none with its Web Server on", "Start one with `slicer-ai-agent launch`.").optional()
}

fn installed_slicers(found: &FoundSlicers) -> Check {
    const NAME: &str = "Installed Slicers";
    if found.installed.is_empty() {
        let advice = "Install it from download.slicer.org, or name it once: slicer-ai-agent launch --slicer PATH. The practice \
                      Slicer works without.";
        return Check::bad(NAME, "none found", advice).optional();
    }
    Check::good(NAME, found.installed.iter().map(launch::installed).collect::<Vec<_>>().join("; "))
}

async fn slicer(url: String) -> Check {
    const NAME: &str = "Slicer";
    let options = ConnectOptions { bridge: BridgeCommand::BuiltIn { slicer_url: url.clone() }, executable: None };
    let status = match Slicer::connect(options).await {
        Ok(slicer) => slicer.status().await,
        Err(error) => Err(error),
    };
    match status {
        Ok(status) if status.practice => Check::good(NAME, format!("practice Slicer {} at {url}", status.version)),
        Ok(status) => Check::good(
            NAME,
            format!(
                "{} at {url}. A Web Server that was started in Slicer itself listens on all network interfaces and has no password: stop it when you do not need it",
                status.version
            ),
        ),
        Err(error) => Check::bad(NAME, error.to_string(), error.advice()).optional(),
    }
}
