//! Where things are. All of it lies in one data folder, so that a person can move, back up or delete it in one go.

use std::path::{Path, PathBuf};

use super::error::StoreError;

/// The data folder and its parts. The folders exist once this does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    data: PathBuf,
}

impl Paths {
    /// Takes the given data folder, or the platform's usual one, and makes what is missing with rights for the owner
    /// only. The rights of a folder that exists are left as they are.
    ///
    /// # Errors
    /// When a folder cannot be made, or the platform names none.
    pub fn new(data_dir: Option<PathBuf>) -> Result<Self, StoreError> {
        let data = match data_dir {
            // Absolute, so that a later change of the working folder does not move it.
            Some(folder) => std::path::absolute(&folder).map_err(|error| StoreError::file("use", &folder, error))?,
            None => directories::ProjectDirs::from("", "", "slicer-ai-agent")
                .ok_or(StoreError::NoDataFolder)?
                .data_dir()
                .to_owned(),
        };
        let paths = Self { data };
        for folder in [paths.data().to_owned(), paths.runs(), paths.practice(), paths.logs()] {
            private_folder(&folder)?;
        }
        Ok(paths)
    }

    pub fn data(&self) -> &Path {
        &self.data
    }

    pub fn settings_file(&self) -> PathBuf {
        self.data.join("settings.toml")
    }

    /// The SQLite file with the conversations.
    pub fn database(&self) -> PathBuf {
        self.data.join("conversations.sqlite")
    }

    /// Holds one folder a turn.
    pub fn runs(&self) -> PathBuf {
        self.data.join("runs")
    }

    /// Holds the practice Slicer.
    pub fn practice(&self) -> PathBuf {
        self.data.join("practice")
    }

    pub fn logs(&self) -> PathBuf {
        self.data.join("logs")
    }
}

/// Makes a folder, and those above it that are missing, with rights for the owner only.
pub(super) fn private_folder(folder: &Path) -> Result<(), StoreError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| StoreError::file("make the folder", folder, error))
}

/// Options that write a file with rights for the owner only.
pub(super) fn private_file() -> std::fs::OpenOptions {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
