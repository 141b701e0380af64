//! Keys in the real Secret Service of a session bus that belongs to the test alone, and what happens where there is
//! none. The keyring is chosen once in a process, so each test runs itself again as a child in its own surroundings.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use slicer_ai_agent::store::{KeyOrigin, Keys, StoreError};

const INSIDE: &str = "SLICER_AI_AGENT_TEST_KEYS";
const VARIABLE: &str = "SLICER_AI_AGENT_TEST_KEY_VARIABLE";

fn inside(what: &str) -> bool {
    std::env::var(INSIDE).is_ok_and(|value| value == what)
}

/// A command in an empty home without a session bus.
fn sealed(program: &str, home: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_remove("DBUS_SESSION_BUS_ADDRESS")
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .env("HOME", home)
        .env("XDG_RUNTIME_DIR", home)
        .env("XDG_DATA_HOME", home.join("data"))
        .env("XDG_CONFIG_HOME", home.join("config"))
        .env("XDG_CACHE_HOME", home.join("cache"));
    command
}

fn private_home() -> tempfile::TempDir {
    // Made with rights for the owner only, which a runtime folder must have.
    tempfile::tempdir().unwrap()
}

fn run(mut command: Command) {
    let output = command.output().expect("the child starts");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "the child failed:\n{said}");
}

/// A key goes to the keyring, is found there before the environment, and is gone when it was removed.
#[test]
fn keys_live_in_the_keyring() {
    if inside("keyring") {
        keys_in_a_keyring();
        return;
    }
    for tool in ["dbus-run-session", "gnome-keyring-daemon"] {
        let found = Command::new(tool).arg("--version").output();
        assert!(
            found.is_ok(),
            "{tool} is missing: install the packages dbus (dbus-daemon on some systems) and gnome-keyring to run this test"
        );
    }
    let home = private_home();
    // The daemon is ended by its own number; the session bus ends with the shell.
    let script = r#"
        printf test-password | gnome-keyring-daemon --unlock --foreground --components=secrets >/dev/null 2>&1 &
        daemon=$!
        for _ in $(seq 100); do
            dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner \
                string:org.freedesktop.secrets 2>/dev/null | grep -q true && break
            sleep 0.1
        done
        "$0" --exact keys_live_in_the_keyring --nocapture
        code=$?
        kill "$daemon"
        exit $code
    "#;
    let mut command = sealed("dbus-run-session", home.path());
    command.args(["--", "bash", "-c", script]).arg(std::env::current_exe().unwrap());
    command.env(INSIDE, "keyring").env(VARIABLE, "from-environment");
    run(command);
}

fn keys_in_a_keyring() {
    let keys = Keys::new();
    assert_eq!(keys.missing_keyring(), None);
    assert_eq!(keys.lookup("kimi", None), (None, KeyOrigin::NotSet));
    assert_eq!(keys.lookup("kimi", Some(VARIABLE)), (Some("from-environment".into()), KeyOrigin::Environment));
    let set = keys.set("kimi", "  sk-one \n").unwrap();
    assert_eq!((set.origin, set.reason), (KeyOrigin::Keyring, None));
    // Another value of the type stands for the next start of the program: nothing was kept in memory only.
    let later = Keys::new();
    assert_eq!(later.lookup("kimi", Some(VARIABLE)), (Some("sk-one".into()), KeyOrigin::Keyring));
    keys.set("kimi", "sk-two").unwrap();
    keys.set("claude", "sk-other").unwrap();
    assert_eq!(later.lookup("kimi", None).0.as_deref(), Some("sk-two"));
    keys.remove("kimi").unwrap();
    keys.remove("kimi").unwrap();
    assert_eq!(later.lookup("kimi", None), (None, KeyOrigin::NotSet));
    assert_eq!(later.lookup("claude", None).0.as_deref(), Some("sk-other"));
    assert!(matches!(keys.set("kimi", "  "), Err(StoreError::EmptyKey)));
}

/// Without a keyring the key works for the session, the person is told so, and nothing is written to disk.
#[test]
fn without_a_keyring_a_key_lasts_for_the_session() {
    if inside("none") {
        let keys = Keys::new();
        assert!(keys.missing_keyring().unwrap().contains("no keyring"));
        let set = keys.set("kimi", "sk-session").unwrap();
        assert_eq!(set.origin, KeyOrigin::Session);
        assert!(set.reason.unwrap().contains("until the program ends"));
        assert_eq!(keys.lookup("kimi", None), (Some("sk-session".into()), KeyOrigin::Session));
        assert_eq!(Keys::new().lookup("kimi", None), (None, KeyOrigin::NotSet));
        keys.remove("kimi").unwrap();
        assert_eq!(keys.lookup("kimi", None), (None, KeyOrigin::NotSet));
        return;
    }
    let home = private_home();
    let itself = std::env::current_exe().unwrap();
    let mut command = sealed(itself.to_str().unwrap(), home.path());
    command.args(["--exact", "without_a_keyring_a_key_lasts_for_the_session", "--nocapture"]).env(INSIDE, "none");
    run(command);
    let left = std::fs::read_dir(home.path()).unwrap().count();
    assert_eq!(left, 0, "something was written to the home folder");
}
