//! Settings as a TOML file that a person can read and edit. A missing key has its default; an unknown key is kept out of
//! the way, never an error; a file that cannot be read is reported and set aside, not overwritten.

use serde::{Deserialize, Serialize};

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
    /// Limit of one run in seconds.
    pub time_limit_s: u64,
    /// Largest number of attempts in all.
    pub max_attempts: u32,
}

impl Default for SlicerSettings {
    fn default() -> Self {
        Self { url: "http://127.0.0.1:2016/slicer".into(), time_limit_s: 30, max_attempts: 5 }
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
