//! Fetching the files of one model.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{CONTENT_RANGE, RANGE};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio_util::sync::CancellationToken;

use super::{ModelEntry, ModelFile};

/// A line that breaks is taken up again so often without a byte in between.
const ATTEMPTS: u32 = 4;
const CONNECT: Duration = Duration::from_secs(15);
/// A line that says nothing for so long is taken as broken.
const SILENCE: Duration = Duration::from_secs(60);
/// Kept free on the disk beyond the model: a full disk harms more than a missing model.
const RESERVE: u64 = 256 << 20;

/// Why a model did not arrive.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    #[error("{host} cannot be reached: {why}. Check the network or the proxy and try again; what has arrived is kept.")]
    Network { host: String, why: String },
    #[error("{host} answered {status} for {file}. {advice}")]
    Refused { host: String, status: u16, file: String, advice: &'static str },
    #[error(
        "{file} is not the file that was expected (its checksum differs), and was deleted. Try again; if it happens twice, a proxy or mirror changes it."
    )]
    Checksum { file: String },
    #[error(
        "There is not enough room in {folder}: {needed_mb} MB are needed and {free_mb} MB are free. Free some space and try again."
    )]
    NoSpace { folder: PathBuf, needed_mb: u64, free_mb: u64 },
    #[error("The model cannot be written to {path}: {source}")]
    Write { path: PathBuf, source: std::io::Error },
    #[error("{model} is being downloaded already, perhaps in another window.")]
    Busy { model: String },
    #[error("{address} is no address to download from; it must begin with https:// (or http:// on this machine).")]
    Address { address: String },
    #[error("The download was stopped; what has arrived is kept for the next time.")]
    Cancelled,
}

/// What a download is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Fetching,
    Checking,
}

/// How far a download is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub file: String,
    pub phase: Phase,
    /// Of this file.
    pub bytes: u64,
    /// Size of this file, when it is known.
    pub total: Option<u64>,
}

/// One download, ready to run.
pub struct Download<'a> {
    pub model: &'a ModelEntry,
    /// Address of the hub or of a mirror with the same paths.
    pub base_url: &'a str,
    /// The folder of all models.
    pub models_folder: &'a Path,
    /// Bytes free on the disk of that folder; `None` when it is not known.
    pub free_bytes: Option<u64>,
    pub cancel: CancellationToken,
}

impl Download<'_> {
    /// Fetches what is missing, checks it, and gives back the folder of the model.
    ///
    /// # Errors
    /// When the network, the disk or a checksum fails, or when it was stopped. Parts are kept, except wrong ones.
    pub async fn run(&self, progress: &mut (dyn FnMut(Progress) + Send)) -> Result<PathBuf, DownloadError> {
        let finished = self.models_folder.join(&self.model.id);
        if self.is_current(&finished) {
            return Ok(finished);
        }
        let client = self.client()?;
        let revision: String = self.model.revision.chars().take(12).collect();
        let staging = self.models_folder.join(format!(".{}-{revision}.part", self.model.id));
        std::fs::create_dir_all(&staging).map_err(|source| write_error(&staging, source))?;
        let _lock = self.lock()?;
        self.check_space(&staging)?;
        for file in &self.model.files {
            self.bring(&client, &staging, file, progress).await?;
        }
        let settings = staging.join("embedding.toml");
        std::fs::write(&settings, &self.model.settings).map_err(|source| write_error(&settings, source))?;
        let stamp = staging.join(REVISION_FILE);
        std::fs::write(&stamp, &self.model.revision).map_err(|source| write_error(&stamp, source))?;
        replace_folder(&staging, &finished)?;
        Ok(finished)
    }

    /// True when the model is there in this revision.
    fn is_current(&self, folder: &Path) -> bool {
        std::fs::read_to_string(folder.join(REVISION_FILE)).is_ok_and(|revision| revision == self.model.revision)
            && self.model.files.iter().all(|file| folder.join(file.place()).is_file())
    }

    fn client(&self) -> Result<reqwest::Client, DownloadError> {
        let address = reqwest::Url::parse(self.base_url).ok();
        let is_local = |url: &reqwest::Url| matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
        let address = address
            .filter(|url| url.scheme() == "https" || (url.scheme() == "http" && is_local(url)))
            .ok_or_else(|| DownloadError::Address { address: self.base_url.to_owned() })?;
        // Fails when a provider of cryptography was set before, which is just as well.
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .user_agent(concat!("slicer-ai-agent/", env!("CARGO_PKG_VERSION")));
        // The hub sends big files from another host; that host must speak TLS, too.
        builder = if is_local(&address) { builder.no_proxy() } else { builder.https_only(true) };
        builder.build().map_err(|error| self.network(&error))
    }

    /// Held while the model is fetched: two that write the same part would ruin it.
    fn lock(&self) -> Result<std::fs::File, DownloadError> {
        let path = self.models_folder.join(format!(".{}.lock", self.model.id));
        let file = std::fs::File::create(&path).map_err(|source| write_error(&path, source))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(std::fs::TryLockError::WouldBlock) => Err(DownloadError::Busy { model: self.model.name.clone() }),
            Err(std::fs::TryLockError::Error(source)) => Err(write_error(&path, source)),
        }
    }

    fn check_space(&self, staging: &Path) -> Result<(), DownloadError> {
        let missing = self.model.files.iter().map(|file| {
            let here = [staging.join(file.place()), part_of(staging, file)].iter().map(|path| size(path)).max();
            file.bytes.unwrap_or(0).saturating_sub(here.unwrap_or(0))
        });
        self.need(missing.sum())
    }

    fn need(&self, bytes: u64) -> Result<(), DownloadError> {
        match self.free_bytes {
            Some(free) if bytes > 0 && free < bytes + RESERVE => Err(self.no_space(bytes + RESERVE, free)),
            _ => Ok(()),
        }
    }

    fn no_space(&self, needed: u64, free: u64) -> DownloadError {
        DownloadError::NoSpace {
            folder: self.models_folder.to_owned(),
            needed_mb: needed.div_ceil(1 << 20),
            free_mb: free >> 20,
        }
    }

    /// One file: fetched, checked, under its name in the staging folder.
    async fn bring(
        &self,
        client: &reqwest::Client,
        staging: &Path,
        file: &ModelFile,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<(), DownloadError> {
        let place = staging.join(file.place());
        if place.is_file() {
            return Ok(());
        }
        let part = part_of(staging, file);
        if let Some(folder) = part.parent() {
            std::fs::create_dir_all(folder).map_err(|source| write_error(folder, source))?;
        }
        self.fetch(client, &part, file, progress).await?;
        let bytes = size(&part);
        progress(Progress { file: file.path.clone(), phase: Phase::Checking, bytes, total: Some(bytes) });
        let digest = self.digest(&part).await?;
        if !digest.eq_ignore_ascii_case(&file.sha256) {
            std::fs::remove_file(&part).map_err(|source| write_error(&part, source))?;
            return Err(DownloadError::Checksum { file: file.path.clone() });
        }
        std::fs::rename(&part, &place).map_err(|source| write_error(&place, source))
    }

    /// Fetches until the file is whole; takes a broken line up again as long as bytes keep coming.
    async fn fetch(
        &self,
        client: &reqwest::Client,
        part: &Path,
        file: &ModelFile,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<(), DownloadError> {
        let mut attempt = 0;
        loop {
            let before = size(part);
            let fault = match self.fetch_once(client, part, file, progress).await {
                Ok(()) => return Ok(()),
                Err(Fault::Final(error)) => return Err(error),
                Err(Fault::Broken(error)) => error,
            };
            attempt = if size(part) > before { 1 } else { attempt + 1 };
            if attempt >= ATTEMPTS {
                return Err(fault);
            }
            tracing::info!(file = file.path, attempt, error = %fault, "the download is taken up again");
            let pause = Duration::from_millis(300 << attempt);
            tokio::select! {
                () = self.cancel.cancelled() => return Err(DownloadError::Cancelled),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn fetch_once(
        &self,
        client: &reqwest::Client,
        part: &Path,
        file: &ModelFile,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<(), Fault> {
        let here = size(part);
        if file.bytes.is_some_and(|bytes| here == bytes) {
            return Ok(());
        }
        let base = self.base_url.trim_end_matches('/');
        let url = format!("{base}/{}/resolve/{}/{}", self.model.repository, self.model.revision, file.path);
        let mut request = client.get(url);
        if here > 0 {
            request = request.header(RANGE, format!("bytes={here}-"));
        }
        let response = self.or_cancelled(request.send()).await?.map_err(|error| Fault::Broken(self.network(&error)))?;
        if response.status() == StatusCode::RANGE_NOT_SATISFIABLE && whole_size(&response) == Some(here) {
            // All of it had arrived before, only the check was missed.
            return Ok(());
        }
        let start = self.start_of(&response, here, part, file)?;
        let total = response.content_length().map(|rest| start + rest).or(file.bytes);
        self.need(response.content_length().unwrap_or(0)).map_err(Fault::Final)?;
        self.receive(response, part, start, total, file, progress).await
    }

    /// Where the body of an answer belongs: behind what is here, or at the start.
    fn start_of(&self, response: &reqwest::Response, here: u64, part: &Path, file: &ModelFile) -> Result<u64, Fault> {
        let status = response.status();
        match status {
            StatusCode::OK => Ok(0),
            StatusCode::PARTIAL_CONTENT => {
                let range = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
                let start = range.and_then(|range| range.strip_prefix("bytes ")?.split('-').next()?.parse().ok());
                if start == Some(here) {
                    return Ok(here);
                }
                self.start_over(part, "it answered with another part of the file than was asked for")
            }
            // More is here than the file has: it was another file.
            StatusCode::RANGE_NOT_SATISFIABLE => {
                self.start_over(part, "the part that was here does not belong to the file")
            }
            _ => Err(self.refused(status, file)),
        }
    }

    fn start_over(&self, part: &Path, why: &str) -> Result<u64, Fault> {
        std::fs::remove_file(part).map_err(|source| Fault::Final(write_error(part, source)))?;
        Err(Fault::Broken(DownloadError::Network { host: self.host(), why: why.into() }))
    }

    fn refused(&self, status: StatusCode, file: &ModelFile) -> Fault {
        let advice = match status.as_u16() {
            401 | 403 => "The model may need an account there; choose another one.",
            404 => "It may have been moved; choose another model, or another mirror.",
            429 => "Too many downloads from this address; wait some minutes.",
            _ => "Try again later; what has arrived is kept.",
        };
        let error =
            DownloadError::Refused { host: self.host(), status: status.as_u16(), file: file.path.clone(), advice };
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            Fault::Broken(error)
        } else {
            Fault::Final(error)
        }
    }

    async fn receive(
        &self,
        mut response: reqwest::Response,
        part: &Path,
        start: u64,
        total: Option<u64>,
        file: &ModelFile,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<(), Fault> {
        let mut options = tokio::fs::OpenOptions::new();
        if start > 0 {
            options.append(true)
        } else {
            options.write(true).truncate(true).create(true)
        };
        let mut out = options.open(part).await.map_err(|source| Fault::Final(write_error(part, source)))?;
        let mut bytes = start;
        let end = loop {
            let next = match self.or_cancelled(response.chunk()).await {
                Ok(next) => next,
                Err(cancelled) => break Err(cancelled),
            };
            match next {
                Ok(Some(data)) => {
                    if let Err(source) = out.write_all(&data).await {
                        break Err(Fault::Final(self.disk(part, source)));
                    }
                    bytes += data.len() as u64;
                    progress(Progress { file: file.path.clone(), phase: Phase::Fetching, bytes, total });
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(Fault::Broken(self.network(&error))),
            }
        };
        // Also after a break: what is not on the disk cannot be gone on with.
        out.sync_all().await.map_err(|source| Fault::Final(self.disk(part, source)))?;
        end?;
        match total {
            Some(total) if bytes < total => {
                let why = format!("the line ended after {bytes} of {total} bytes");
                Err(Fault::Broken(DownloadError::Network { host: self.host(), why }))
            }
            _ => Ok(()),
        }
    }

    async fn or_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Fault::Final(DownloadError::Cancelled)),
            done = work => Ok(done),
        }
    }

    async fn digest(&self, part: &Path) -> Result<String, DownloadError> {
        let path = part.to_owned();
        let cancel = self.cancel.clone();
        let hashing = tokio::task::spawn_blocking(move || sha256_of(&path, &cancel));
        match hashing.await {
            Ok(digest) => digest,
            Err(error) => Err(write_error(part, std::io::Error::other(error))),
        }
    }

    fn disk(&self, path: &Path, source: std::io::Error) -> DownloadError {
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => self.no_space(RESERVE, 0),
            _ => write_error(path, source),
        }
    }

    fn network(&self, error: &reqwest::Error) -> DownloadError {
        // The sentence that says why is the innermost one.
        let mut innermost: &dyn std::error::Error = error;
        while let Some(source) = innermost.source() {
            innermost = source;
        }
        let why = if error.is_timeout() { "nothing came for a long time".to_owned() } else { innermost.to_string() };
        DownloadError::Network { host: self.host(), why }
    }

    fn host(&self) -> String {
        let url = reqwest::Url::parse(self.base_url).ok();
        url.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_else(|| self.base_url.to_owned())
    }
}

/// The size of the file as `Content-Range` tells it.
fn whole_size(response: &reqwest::Response) -> Option<u64> {
    response.headers().get(CONTENT_RANGE)?.to_str().ok()?.rsplit('/').next()?.parse().ok()
}

/// In the folder of a model: the revision that it is.
const REVISION_FILE: &str = "revision.txt";

/// An attempt that failed: for good, or so that going on may help.
enum Fault {
    Final(DownloadError),
    Broken(DownloadError),
}

fn part_of(staging: &Path, file: &ModelFile) -> PathBuf {
    staging.join(format!("{}.part", file.place()))
}

fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |data| data.len())
}

fn write_error(path: &Path, source: std::io::Error) -> DownloadError {
    DownloadError::Write { path: path.to_owned(), source }
}

fn sha256_of(path: &Path, cancel: &CancellationToken) -> Result<String, DownloadError> {
    use std::io::Read;

    let mut file = std::fs::File::open(path).map_err(|source| write_error(path, source))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        if cancel.is_cancelled() {
            return Err(DownloadError::Cancelled);
        }
        let read = file.read(&mut buffer).map_err(|source| write_error(path, source))?;
        if read == 0 {
            return Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        }
        hash.update(&buffer[..read]);
    }
}

/// Gives the staging folder its name. An older model of that name steps aside first and is deleted after.
fn replace_folder(staging: &Path, finished: &Path) -> Result<(), DownloadError> {
    let aside = staging.with_extension("old");
    if aside.exists() {
        std::fs::remove_dir_all(&aside).map_err(|source| write_error(&aside, source))?;
    }
    if finished.exists() {
        std::fs::rename(finished, &aside).map_err(|source| write_error(finished, source))?;
    }
    std::fs::rename(staging, finished).map_err(|source| write_error(finished, source))?;
    if aside.exists()
        && let Err(error) = std::fs::remove_dir_all(&aside)
    {
        // The new model is in place; the rest of the old one only takes room.
        tracing::warn!(folder = %aside.display(), %error, "an old embedding model was not deleted");
    }
    Ok(())
}
