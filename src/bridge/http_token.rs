//! The secret that a client of the HTTP bridge has to show, and the file that it lives in.
//!
//! Whoever reaches the bridge can run Python in Slicer as the person who started it, and any program or web page on
//! this machine reaches a port of the loopback. So there is no bridge over HTTP without a token, and the token is kept
//! where only its owner can read it. Its text is held in one place and shown nowhere: [`Token`] has no `Display`, and
//! its `Debug` tells only that there is one.

use std::fmt;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Longest token file that is read, in bytes. A token is one word.
const MAX_FILE: u64 = 4096;
/// Below this many characters a token can be found by trying.
const SHORT: usize = 16;

/// A bearer token. Only its digest is kept.
#[derive(Clone)]
pub struct Token {
    digest: [u8; 32],
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

/// Why a token file cannot be used. No text holds anything of the token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file could not be read or made.
    #[error("the token file {path} cannot be {verb}: {why}. Check the path and its permissions.", path = .path.display())]
    File { path: PathBuf, verb: &'static str, why: io::Error },
    /// It is a folder or a device.
    #[error("the token file {path} is not a file. Name a file, or one that does not exist yet.", path = .path.display())]
    NotAFile { path: PathBuf },
    /// Others on this machine can read it.
    #[error(
        "the token file {path} can be read or written by other accounts (mode {mode:03o}), so its token is no secret. \
         Delete it to get a fresh one, or run: chmod 600 '{path}'",
        path = .path.display()
    )]
    Open { path: PathBuf, mode: u32 },
    /// There is nothing in it.
    #[error("the token file {path} is empty. Delete it to get a fresh token, or write one word into it.", path = .path.display())]
    Empty { path: PathBuf },
    /// What it holds cannot be sent as a token.
    #[error(
        "the token file {path} does not hold a token: it must be one word of at most {MAX_FILE} plain characters. \
         Delete it to get a fresh one.",
        path = .path.display()
    )]
    NotAToken { path: PathBuf },
}

impl Token {
    /// The token in `path`. When there is no such file, it is made with a fresh random token that only its owner can
    /// read; the second value says so.
    ///
    /// The new file appears whole: two bridges that start at once end up with the same token. On Windows a file's
    /// readers are those of its folder, which for folders of a person is that person.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn from_file(path: &Path) -> Result<(Self, bool), TokenError> {
        match File::open(path) {
            Ok(file) => Ok((Self::read(file, path)?, false)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match make(path) {
                Ok(token) => Ok((Self::of(&token), true)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let file = File::open(path).map_err(failed(path, "read"))?;
                    Ok((Self::read(file, path)?, false))
                }
                Err(error) => Err(failed(path, "made")(error)),
            },
            Err(error) => Err(failed(path, "read")(error)),
        }
    }

    fn read(file: File, path: &Path) -> Result<Self, TokenError> {
        let about = file.metadata().map_err(failed(path, "read"))?;
        if !about.is_file() {
            return Err(TokenError::NotAFile { path: path.to_owned() });
        }
        check_mode(&about, path)?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed(path, "read"))?;
        let word = bytes.trim_ascii();
        if word.is_empty() {
            return Err(TokenError::Empty { path: path.to_owned() });
        }
        let plain = bytes.len() as u64 <= MAX_FILE && word.iter().all(u8::is_ascii_graphic);
        match std::str::from_utf8(word) {
            Ok(word) if plain => {
                if word.len() < SHORT {
                    tracing::warn!("the token in {} is short and could be guessed", path.display());
                }
                Ok(Self::of(word))
            }
            _ => Err(TokenError::NotAToken { path: path.to_owned() }),
        }
    }

    fn of(word: &str) -> Self {
        Self { digest: Sha256::digest(word).into() }
    }

    /// Whether the value of an `Authorization` header shows this token.
    ///
    /// Digests are compared, all of them to the end, so that the time taken says nothing about the token.
    pub fn is_shown_by(&self, authorization: &[u8]) -> bool {
        let Some(word) = bearer(authorization) else {
            return false;
        };
        let given: [u8; 32] = Sha256::digest(word).into();
        let differing = self.digest.iter().zip(given).fold(0u8, |all, (ours, theirs)| black_box(all | (ours ^ theirs)));
        differing == 0
    }
}

/// The word after `Bearer`, whose case does not matter.
fn bearer(authorization: &[u8]) -> Option<&[u8]> {
    let (scheme, word) = authorization.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| word.trim_ascii())
}

fn failed(path: &Path, verb: &'static str) -> impl Fn(io::Error) -> TokenError {
    let path = path.to_owned();
    move |why| TokenError::File { path: path.clone(), verb, why }
}

/// Makes the file with a fresh token, unless it is there by now.
fn make(path: &Path) -> io::Result<String> {
    // Two version 4 UUIDs carry 244 bits from the system's random source.
    let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A file of `tempfile` is made exclusively and, on Unix, with mode 600.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(file, "{token}")?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(token)
}

#[cfg(unix)]
fn check_mode(about: &std::fs::Metadata, path: &Path) -> Result<(), TokenError> {
    use std::os::unix::fs::PermissionsExt;
    let mode = about.permissions().mode() & 0o777;
    if mode & 0o077 == 0 { Ok(()) } else { Err(TokenError::Open { path: path.to_owned(), mode }) }
}

#[cfg(not(unix))]
fn check_mode(_about: &std::fs::Metadata, _path: &Path) -> Result<(), TokenError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[cfg(unix)]
    fn set_mode(path: &Path, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn write(path: &Path, text: &str) {
        std::fs::write(path, text).unwrap();
        #[cfg(unix)]
        set_mode(path, 0o600);
    }

    #[test]
    fn a_missing_file_is_made_once_with_a_token_of_its_own() {
        let folder = folder();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        let (token, fresh) = Token::from_file(&one).unwrap();
        assert!(fresh);
        let word = std::fs::read_to_string(&one).unwrap();
        assert_eq!(word.trim().len(), 64);
        assert!(token.is_shown_by(format!("Bearer {}", word.trim()).as_bytes()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&one).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let (again, fresh) = Token::from_file(&one).unwrap();
        assert!(!fresh);
        assert_eq!(again.digest, token.digest);
        assert_ne!(Token::from_file(&two).unwrap().0.digest, token.digest);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left over");
    }

    #[test]
    fn only_the_whole_token_is_accepted() {
        let token = Token::of("abcdefghijklmnop");
        for right in ["Bearer abcdefghijklmnop", "bearer abcdefghijklmnop", "BEARER  abcdefghijklmnop "] {
            assert!(token.is_shown_by(right.as_bytes()), "{right}");
        }
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "abcdefghijklmnop",
            "Basic abcdefghijklmnop",
            "Bearer abcdefghijklmno",
            "Bearer abcdefghijklmnopq",
            "Bearer ABCDEFGHIJKLMNOP",
            "Bearerabcdefghijklmnop",
        ] {
            assert!(!token.is_shown_by(wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn files_that_hold_no_token_are_refused_in_words() {
        let folder = folder();
        let path = folder.path().join("token");
        for (text, said) in
            [("", "is empty"), (" \n", "is empty"), ("two words", "one word"), ("größe-größe", "one word")]
        {
            write(&path, text);
            let error = Token::from_file(&path).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
            assert!(error.contains("Delete it"), "{error}");
        }
        write(&path, &"x".repeat(5000));
        assert!(matches!(Token::from_file(&path), Err(TokenError::NotAToken { .. })));
        assert!(matches!(Token::from_file(folder.path()), Err(TokenError::NotAFile { .. } | TokenError::File { .. })));
        let nowhere = folder.path().join("missing").join("token");
        let error = Token::from_file(&nowhere).unwrap_err().to_string();
        assert!(error.contains("cannot be made"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = folder();
        let path = folder.path().join("token");
        write(&path, "abcdefghijklmnop");
        for mode in [0o640, 0o604, 0o620, 0o644] {
            set_mode(&path, mode);
            let error = Token::from_file(&path).unwrap_err().to_string();
            assert!(error.contains("chmod 600") && error.contains(&format!("{mode:o}")), "{error}");
            assert!(!error.contains("abcdefgh"), "{error}");
        }
        set_mode(&path, 0o400);
        assert!(Token::from_file(&path).is_ok());
    }

    #[test]
    fn debug_shows_nothing_of_it() {
        assert_eq!(format!("{:?}", Token::of("abcdefghijklmnop")), "Token(hidden)");
    }
}
