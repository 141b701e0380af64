//! Downloading an embedding model from a server on this machine that breaks lines, ignores ranges and sends wrong bytes:
//! what protects people from half a model, a changed one, or from beginning again after 600 megabytes.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sha2::{Digest, Sha256};
use slicer_ai_agent::knowledge::models::{Download, DownloadError, ModelEntry, ModelList, Phase, Progress, installed};
use tokio_util::sync::CancellationToken;

/// What the server does with its next request; when the list is empty it serves whole files and honours ranges.
#[derive(Clone, Copy)]
enum Act {
    /// Sends so many bytes of the body, then closes the line.
    CutAfter(usize),
    /// Sends the whole file although a range was asked for.
    IgnoreRange,
    Status(u16),
    /// Sends other bytes of the right length.
    Wrong,
    /// Sends so many bytes, then nothing more while the line stays open.
    StallAfter(usize),
}

/// Path and `Range` of each request.
type Asked = Mutex<Vec<(String, Option<String>)>>;

struct Hub {
    address: String,
    asked: Arc<Asked>,
}

fn weights() -> Vec<u8> {
    (0..300_000_u32).flat_map(|index| (index.wrapping_mul(2_654_435_761) >> 7).to_le_bytes()).collect()
}

fn body_of(path: &str) -> Option<Vec<u8>> {
    match path {
        "/maker/model/resolve/abc/onnx/model.onnx" => Some(weights()),
        "/maker/model/resolve/abc/tokenizer.json" => Some(b"{\"version\": \"1.0\"}".to_vec()),
        _ => None,
    }
}

impl Hub {
    fn start(acts: &[Act]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let acts = Arc::new(Mutex::new(acts.iter().copied().collect::<VecDeque<_>>()));
        let log = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, acts) = (log.clone(), acts.clone());
                std::thread::spawn(move || answer(stream, &log, &acts));
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<(String, Option<String>)> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, log: &Asked, acts: &Mutex<VecDeque<Act>>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let range = head.lines().find_map(|line| line.strip_prefix("range: ")).map(str::to_owned);
    log.lock().unwrap().push((path.clone(), range.clone()));
    let act = acts.lock().unwrap().pop_front();
    if let Some(Act::Status(status)) = act {
        // The client may be gone; that is its affair.
        write!(stream, "HTTP/1.1 {status} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").ok();
        return;
    }
    let Some(mut body) = body_of(&path) else {
        write!(stream, "HTTP/1.1 404 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").ok();
        return;
    };
    if matches!(act, Some(Act::Wrong)) {
        body.fill(b'x');
    }
    let start = range
        .filter(|_| !matches!(act, Some(Act::IgnoreRange)))
        .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    if start.is_some_and(|start| start >= body.len()) {
        let range = format!("content-range: bytes */{}\r\n", body.len());
        write!(stream, "HTTP/1.1 416 No\r\ncontent-length: 0\r\n{range}connection: close\r\n\r\n").ok();
        return;
    }
    let total = body.len();
    let (status, extra) = match start {
        Some(start) => ("206 Partial", format!("content-range: bytes {start}-{}/{total}\r\n", total - 1)),
        None => ("200 OK", String::new()),
    };
    let body = &body[start.unwrap_or(0)..];
    let sent = match act {
        Some(Act::CutAfter(bytes) | Act::StallAfter(bytes)) => &body[..bytes.min(body.len())],
        _ => body,
    };
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{extra}connection: close\r\n\r\n", body.len()).ok();
    stream.write_all(sent).ok();
    stream.flush().ok();
    if matches!(act, Some(Act::StallAfter(_))) {
        std::thread::sleep(Duration::from_secs(30));
    }
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn model(with_sizes: bool) -> ModelEntry {
    let (weights, tokenizer) = (weights(), body_of("/maker/model/resolve/abc/tokenizer.json").unwrap());
    let bytes = |data: &[u8]| if with_sizes { format!("bytes = {}, ", data.len()) } else { String::new() };
    let list = format!(
        "base_url = 'https://hub.invalid'\n[[model]]\nid = 'small'\nname = 'Small'\nabout = ''\nlicense = ''\n\
         dimension = 4\nrepository = 'maker/model'\nrevision = 'abc'\nsettings = 'file = \"model.onnx\"'\nfiles = [\
         {{ path = 'onnx/model.onnx', save_as = 'model.onnx', {}sha256 = '{}' }},\
         {{ path = 'tokenizer.json', {}sha256 = '{}' }}]",
        bytes(&weights),
        hex(&weights),
        bytes(&tokenizer),
        hex(&tokenizer)
    );
    ModelList::parse(&list).unwrap().models.remove(0)
}

fn download<'a>(hub: &'a Hub, model: &'a ModelEntry, folder: &'a Path) -> Download<'a> {
    Download {
        model,
        base_url: &hub.address,
        models_folder: folder,
        free_bytes: None,
        cancel: CancellationToken::new(),
    }
}

fn assert_whole(folder: &Path) {
    let model = installed(folder, "small").expect("the model has its name");
    assert!(std::fs::read(model.join("model.onnx")).unwrap() == weights(), "the weights arrived as they were");
    assert_eq!(std::fs::read_to_string(model.join("embedding.toml")).unwrap(), "file = \"model.onnx\"");
    let left: Vec<_> = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".part")), "{left:?}");
}

/// The plain case, with progress that goes forward to the whole; a second download asks for nothing.
#[tokio::test]
async fn a_model_arrives_once() {
    let (hub, model, folder) = (Hub::start(&[]), model(true), tempfile::tempdir().unwrap());
    let mut told: Vec<Progress> = Vec::new();
    let place = download(&hub, &model, folder.path()).run(&mut |progress| told.push(progress)).await.unwrap();
    assert_eq!(place, folder.path().join("small"));
    assert_whole(folder.path());
    let fetching: Vec<u64> = told
        .iter()
        .filter(|progress| progress.file == "onnx/model.onnx" && progress.phase == Phase::Fetching)
        .map(|progress| progress.bytes)
        .collect();
    assert!(fetching.is_sorted() && fetching.last() == Some(&1_200_000), "{fetching:?}");
    assert!(told.iter().any(|progress| progress.phase == Phase::Checking));
    let before = hub.asked().len();
    download(&hub, &model, folder.path()).run(&mut |_| {}).await.unwrap();
    assert_eq!(hub.asked().len(), before);
}

/// A line that breaks is taken up again where it broke, whether the size was known beforehand or not.
#[tokio::test]
async fn broken_lines_are_taken_up_again() {
    for with_sizes in [true, false] {
        let acts = [Act::CutAfter(500_000), Act::Status(503), Act::CutAfter(100_000)];
        let (hub, model, folder) = (Hub::start(&acts), model(with_sizes), tempfile::tempdir().unwrap());
        download(&hub, &model, folder.path()).run(&mut |_| {}).await.unwrap();
        assert_whole(folder.path());
        let ranges: Vec<Option<String>> = hub.asked().into_iter().map(|(_, range)| range).collect();
        assert_eq!(
            ranges,
            [None, Some("bytes=500000-".into()), Some("bytes=500000-".into()), Some("bytes=600000-".into()), None]
        );
    }
}

/// A stop is quick, keeps what arrived, leaves no folder that looks like a model; the next download goes on from there,
/// even when the server then sends the whole file.
#[tokio::test]
async fn a_stop_keeps_what_arrived() {
    for next in [None, Some(Act::IgnoreRange)] {
        let acts: Vec<Act> = [Act::StallAfter(700_000)].into_iter().chain(next).collect();
        let (hub, model, folder) = (Hub::start(&acts), model(true), tempfile::tempdir().unwrap());
        let job = download(&hub, &model, folder.path());
        let cancel = job.cancel.clone();
        let stopped = tokio::time::timeout(
            Duration::from_secs(10),
            job.run(&mut |progress| {
                if progress.bytes == 700_000 {
                    cancel.cancel();
                }
            }),
        )
        .await
        .expect("the stop is noticed while nothing comes");
        assert!(matches!(stopped, Err(DownloadError::Cancelled)));
        assert_eq!(installed(folder.path(), "small"), None);
        download(&hub, &model, folder.path()).run(&mut |_| {}).await.unwrap();
        assert_whole(folder.path());
        assert_eq!(hub.asked()[1].1.as_deref(), Some("bytes=700000-"));
    }
}

/// Wrong bytes never get the name of a model, and are not kept: the next download begins again and is right.
#[tokio::test]
async fn a_changed_file_is_refused() {
    let (hub, model, folder) = (Hub::start(&[Act::Wrong]), model(true), tempfile::tempdir().unwrap());
    let error = download(&hub, &model, folder.path()).run(&mut |_| {}).await.unwrap_err();
    assert!(matches!(error, DownloadError::Checksum { .. }), "{error}");
    assert_eq!(installed(folder.path(), "small"), None);
    download(&hub, &model, folder.path()).run(&mut |_| {}).await.unwrap();
    assert_whole(folder.path());
    assert_eq!(hub.asked()[1].1, None, "nothing wrong was gone on with");
}

/// A part that is longer than the file was of something else.
#[tokio::test]
async fn a_part_that_is_too_long_is_dropped() {
    let (hub, model, folder) = (Hub::start(&[]), model(false), tempfile::tempdir().unwrap());
    let staging = folder.path().join(".small-abc.part");
    std::fs::create_dir_all(&staging).unwrap();
    std::fs::write(staging.join("model.onnx.part"), vec![0; 2_000_000]).unwrap();
    download(&hub, &model, folder.path()).run(&mut |_| {}).await.unwrap();
    assert_whole(folder.path());
}

/// A program that was killed between the last byte and the check does not fetch everything again.
#[tokio::test]
async fn a_whole_part_is_only_checked() {
    let (hub, model, folder) = (Hub::start(&[]), model(false), tempfile::tempdir().unwrap());
    let staging = folder.path().join(".small-abc.part");
    std::fs::create_dir_all(&staging).unwrap();
    std::fs::write(staging.join("model.onnx.part"), weights()).unwrap();
    let mut fetched = Vec::new();
    let mut note = |progress: Progress| {
        if progress.phase == Phase::Fetching {
            fetched.push(progress.file);
        }
    };
    download(&hub, &model, folder.path()).run(&mut note).await.unwrap();
    assert_whole(folder.path());
    assert!(!fetched.contains(&"onnx/model.onnx".to_owned()), "{fetched:?}");
}

/// Refusals are not tried again; a server that stays broken is given up, in words that say what to do.
#[tokio::test]
async fn refusals_and_lasting_faults_end_it() {
    let (hub, model, folder) = (Hub::start(&[Act::Status(404)]), model(true), tempfile::tempdir().unwrap());
    let error = download(&hub, &model, folder.path()).run(&mut |_| {}).await.unwrap_err();
    assert!(error.to_string().contains("choose another model"), "{error}");
    assert_eq!(hub.asked().len(), 1);

    let hub = Hub::start(&[Act::Status(502); 9]);
    let error = download(&hub, &model, folder.path()).run(&mut |_| {}).await.unwrap_err();
    assert!(matches!(error, DownloadError::Refused { status: 502, .. }), "{error}");
    assert_eq!(hub.asked().len(), 4);

    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let hub = Hub { address: format!("http://{closed}"), asked: Arc::default() };
    let error = download(&hub, &model, folder.path()).run(&mut |_| {}).await.unwrap_err();
    assert!(matches!(error, DownloadError::Network { .. }), "{error}");
}

/// The disk is asked before anything is fetched when sizes are known, and before the body when they are not.
#[tokio::test]
async fn a_full_disk_is_told_beforehand() {
    for with_sizes in [true, false] {
        let (hub, model, folder) = (Hub::start(&[]), model(with_sizes), tempfile::tempdir().unwrap());
        let mut job = download(&hub, &model, folder.path());
        job.free_bytes = Some(100 << 20);
        let error = job.run(&mut |_| {}).await.unwrap_err();
        assert!(matches!(error, DownloadError::NoSpace { free_mb: 100, .. }), "{error}");
        assert_eq!(hub.asked().len(), usize::from(!with_sizes));
    }
}

/// Two windows must not write the same part.
#[tokio::test]
async fn two_at_once_are_one() {
    let acts = [Act::StallAfter(1000)];
    let (hub, model, folder) = (Hub::start(&acts), model(true), tempfile::tempdir().unwrap());
    let job = download(&hub, &model, folder.path());
    let cancel = job.cancel.clone();
    let mut ignored = |_: Progress| {};
    let first = job.run(&mut ignored);
    let second = async {
        while hub.asked().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let error = download(&hub, &model, folder.path()).run(&mut |_| {}).await.unwrap_err();
        cancel.cancel();
        error
    };
    let (stopped, busy) = tokio::join!(first, second);
    assert!(matches!(stopped, Err(DownloadError::Cancelled)));
    assert!(matches!(busy, DownloadError::Busy { .. }), "{busy}");
}

/// Another revision of the list replaces the model that is there.
#[tokio::test]
async fn a_new_revision_replaces_the_old() {
    let (hub, model, folder) = (Hub::start(&[]), model(true), tempfile::tempdir().unwrap());
    let old = folder.path().join("small");
    std::fs::create_dir_all(&old).unwrap();
    std::fs::write(old.join("tokenizer.json"), "old").unwrap();
    std::fs::write(old.join("left_over.bin"), "old").unwrap();
    download(&hub, &model, folder.path()).run(&mut |_| {}).await.unwrap();
    assert_whole(folder.path());
    assert!(!old.join("left_over.bin").exists());
}

/// In the clear only on this machine.
#[tokio::test]
async fn plain_http_is_for_this_machine_only() {
    let (model, folder) = (model(true), tempfile::tempdir().unwrap());
    for address in ["http://hub.invalid", "ftp://127.0.0.1", "nothing"] {
        let hub = Hub { address: address.into(), asked: Arc::default() };
        let error = download(&hub, &model, folder.path()).run(&mut |_| {}).await.unwrap_err();
        assert!(matches!(error, DownloadError::Address { .. }), "{error}");
    }
}
