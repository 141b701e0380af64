//! Virtual environments for tests that need Python packages: made once, in cargo's temporary folder, and shared.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use slicer_ai_agent::platform;

/// The environment in the folder `name`, with what each of `installs` (arguments of `pip install`) brings.
pub fn environment(name: &str, installs: &[&[&str]]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    // Tests run side by side, in several processes.
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let environment = folder.join("environment");
    let mark = environment.join("ready");
    if !mark.exists() {
        let found = platform::find_python(&|line| eprintln!("{line}")).unwrap();
        run(Command::new(found.executable).args(["-m", "venv", "--clear"]).arg(&environment));
        for arguments in installs {
            let mut pip = Command::new(platform::venv_python(&environment));
            run(pip.args(["-m", "pip", "install", "--disable-pip-version-check", "-q"]).args(*arguments));
        }
        std::fs::write(mark, "").unwrap();
    }
    environment
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
