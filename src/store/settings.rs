//! Settings as a TOML file that a person can read and edit. A missing key has its default; an unknown key is kept out of
//! the way, never an error; a file that cannot be read is reported and set aside, not overwritten.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::StoreError;
use super::paths::Paths;

/// Everything a person can set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    pub model: ModelSettings,
    pub slicer: SlicerSettings,
    pub safety: SafetySettings,
    pub appearance: Appearance,
}

/// Which model answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelSettings {
    /// Provider id; `recipes` needs neither key nor network.
    pub provider: String,
    pub model: String,
    /// Empty: the provider's own.
    pub base_url: String,
    pub temperature: Option<f64>,
    /// Largest answer in tokens.
    pub max_output: Option<u32>,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            provider: "recipes".into(),
            model: String::new(),
            base_url: String::new(),
            temperature: None,
            max_output: None,
        }
    }
}

/// How Slicer is reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlicerSettings {
    pub url: String,
    /// Executable of the Slicer to launch, or the folder that it is in. Empty: the newest that is found.
    pub executable: String,
    /// Limit of one run in seconds.
    pub time_limit_s: u64,
    /// Largest number of attempts in all.
    pub max_attempts: u32,
}

impl Default for SlicerSettings {
    fn default() -> Self {
        Self {
            url: "http://127.0.0.1:2016/slicer".into(),
            executable: String::new(),
            time_limit_s: 30,
            max_attempts: 5,
        }
    }
}

/// Standing permissions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SafetySettings {
    /// Capability names that are always allowed.
    pub always_allow: Vec<String>,
    /// Folders that code may read without asking.
    pub readable_folders: Vec<String>,
}

/// Theme and typing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Appearance {
    /// `system`, `light` or `dark`.
    pub theme: String,
    /// 1.0 is normal size.
    pub zoom: f32,
    /// True: Enter sends and Shift+Enter breaks the line. False: Ctrl+Enter sends.
    pub enter_sends: bool,
}

impl Default for Appearance {
    fn default() -> Self {
        Self { theme: "system".into(), zoom: 1.0, enter_sends: true }
    }
}

/// Settings as they were found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadedSettings {
    pub settings: Settings,
    /// What the person must know: the file was not readable and was set aside.
    pub warning: Option<String>,
}

/// Loads the settings; without a file they are the defaults. A file that is not valid is renamed and reported.
///
/// # Errors
/// When the file exists and the system does not let us read it, or rename it when it is not valid: going on would
/// overwrite it at the next save.
pub fn load(paths: &Paths) -> Result<LoadedSettings, StoreError> {
    let file = paths.settings_file();
    let why = match std::fs::read_to_string(&file) {
        Ok(text) => match toml::from_str(&text) {
            Ok(settings) => return Ok(LoadedSettings { settings, warning: None }),
            Err(error) => error.to_string(),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(LoadedSettings::default()),
        Err(error) if error.kind() == ErrorKind::InvalidData => "it is not UTF-8 text".into(),
        Err(error) => return Err(StoreError::file("read", &file, error)),
    };
    let aside = free_name(&file);
    std::fs::rename(&file, &aside).map_err(|error| StoreError::file("rename", &file, error))?;
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let warning = format!(
        "The settings could not be read, so the defaults are used ({why}). Your file is kept as {}; correct it and name \
         it settings.toml again.",
        aside.display()
    );
    Ok(LoadedSettings { settings: Settings::default(), warning: Some(warning) })
}

/// Saves the settings so that at any moment either the old or the new file is whole.
///
/// # Errors
/// When the folder cannot be written.
pub fn save(paths: &Paths, settings: &Settings) -> Result<(), StoreError> {
    let file = paths.settings_file();
    let failed = |error| StoreError::file("write", &file, error);
    let text = toml::to_string_pretty(settings).map_err(|error| failed(std::io::Error::other(error)))?;
    // The temporary file is in the same folder, because only then is the replacement one step.
    let mut draft = tempfile::NamedTempFile::new_in(paths.data()).map_err(failed)?;
    draft.write_all(text.as_bytes()).map_err(failed)?;
    draft.as_file().sync_all().map_err(failed)?;
    draft.persist(&file).map_err(|error| failed(error.error))?;
    Ok(())
}

fn free_name(file: &Path) -> PathBuf {
    let mut number = 1_u32;
    loop {
        let aside = file.with_file_name(format!("settings.toml.unreadable-{number}"));
        if !aside.exists() {
            return aside;
        }
        number += 1;
    }
}
