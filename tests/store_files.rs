//! Settings, run folders and keys on disk: nothing that a person wrote is lost, and no secret gets where it must not.

use std::time::Duration;

use serde_json::json;
use slicer_ai_agent::store::{self, Paths, RunFolder, Settings, StoreError};

fn paths() -> (tempfile::TempDir, Paths) {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::new(Some(folder.path().join("data"))).unwrap();
    (folder, paths)
}

/// What is saved is loaded; before anything is saved there are defaults and no complaint.
#[test]
fn settings_come_back_as_saved() {
    let (_folder, paths) = paths();
    let loaded = store::load(&paths).unwrap();
    assert_eq!((loaded.settings, loaded.warning), (Settings::default(), None));
    let mut settings = Settings::default();
    settings.model.provider = "kimi".into();
    settings.model.temperature = Some(0.3);
    settings.safety.always_allow.push("write_file".into());
    store::save(&paths, &settings).unwrap();
    assert_eq!(store::load(&paths).unwrap().settings, settings);
    let files = std::fs::read_dir(paths.data()).unwrap().flatten().filter(|entry| entry.path().is_file());
    assert_eq!(files.count(), 1, "the temporary file was left behind");
}

/// A person may write only what differs, and keys of another version do no harm.
#[test]
fn missing_and_unknown_keys_are_fine() {
    let (_folder, paths) = paths();
    std::fs::write(paths.settings_file(), "future = 1\n[model]\nmodel = \"m\"\nnew_key = true\n").unwrap();
    let loaded = store::load(&paths).unwrap();
    assert_eq!(loaded.warning, None);
    assert_eq!((loaded.settings.model.model.as_str(), loaded.settings.model.provider.as_str()), ("m", "recipes"));
}

/// A file with a mistake is set aside, each under a name of its own, and the person is told where it is.
#[test]
fn an_unreadable_file_is_set_aside_and_reported() {
    let (_folder, paths) = paths();
    let broken: [&[u8]; 3] = [b"model = [", b"[appearance]\nzoom = \"big\"\n", b"\xFF\xFE"];
    for (number, bytes) in broken.iter().enumerate() {
        std::fs::write(paths.settings_file(), bytes).unwrap();
        let loaded = store::load(&paths).unwrap();
        assert_eq!(loaded.settings, Settings::default());
        let aside = paths.data().join(format!("settings.toml.unreadable-{}", number + 1));
        assert_eq!(std::fs::read(&aside).unwrap(), *bytes);
        assert!(loaded.warning.unwrap().contains(aside.to_str().unwrap()));
        assert!(!paths.settings_file().exists());
    }
}

/// A run folder has the name that the design promises, takes files in folders, and lets no name lead out of it.
#[test]
fn a_run_folder_takes_files_and_keeps_them_in() {
    let (_folder, paths) = paths();
    let run = RunFolder::create(&paths, 7).unwrap();
    let name = run.path().file_name().unwrap().to_str().unwrap().to_owned();
    let pattern = regex::Regex::new(r"^\d{8}_\d{6}_turn7$").unwrap();
    assert!(pattern.is_match(&name), "{name}");
    assert_ne!(RunFolder::create(&paths, 7).unwrap().path(), run.path());
    let code = run.write_text("correction_1/code.py", "print('x')\n").unwrap();
    assert_eq!(std::fs::read_to_string(code).unwrap(), "print('x')\n");
    let plan = run.write_json("plan.json", &json!({ "steps": [1] })).unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&std::fs::read_to_string(plan).unwrap()).unwrap()["steps"][0],
        1
    );
    for name in ["../out.txt", "/etc/out", "", "a/../../b", "./x"] {
        assert!(matches!(run.write_bytes(name, b"x"), Err(StoreError::FileName(_))), "{name} was taken");
    }
}

/// A key that is part of a prompt or a result must not get into the files of a turn.
#[test]
fn no_secret_gets_into_a_run_folder() {
    let (_folder, paths) = paths();
    let run = RunFolder::create(&paths, 1).unwrap().hiding(["sk-planted-key".to_owned()]);
    let file = run.write_json("prompt_first.json", &json!({ "headers": "Bearer sk-planted-key" })).unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("Bearer [hidden]") && !text.contains("planted"), "{text}");
}

/// Old turns go first, then the oldest until the rest fits; what is not a turn's folder stays.
#[cfg(unix)]
#[test]
fn pruning_goes_by_age_then_by_size() {
    let (_folder, paths) = paths();
    let day = Duration::from_secs(86_400);
    let runs: Vec<RunFolder> = (0..4).map(|turn| RunFolder::create(&paths, turn).unwrap()).collect();
    for (run, age) in runs.iter().zip([40, 3, 2, 1]) {
        run.write_bytes("pictures/data.bin", &[0; 1000]).unwrap();
        let modified = std::time::SystemTime::now() - day * age;
        std::fs::File::open(run.path()).unwrap().set_modified(modified).unwrap();
    }
    let own = paths.runs().join("notes of the person");
    std::fs::create_dir(&own).unwrap();
    let pruned = RunFolder::prune(&paths, day * 30, 1_000_000).unwrap();
    assert_eq!((pruned.folders, pruned.bytes), (1, 1000));
    let pruned = RunFolder::prune(&paths, day * 30, 2000).unwrap();
    assert_eq!((pruned.folders, pruned.bytes), (1, 1000));
    let left: Vec<bool> = runs.iter().map(|run| run.path().exists()).collect();
    assert_eq!(left, [false, false, true, true]);
    assert!(own.exists());
}
