//! The practice Slicer for tests: set up once for all of them (in cargo's own temporary folder), then one process each.
#![allow(dead_code, reason = "each test file uses the part that it needs")]

use std::path::PathBuf;
use std::sync::OnceLock;

use slicer_ai_agent::slicer::practice::{self, PracticeHome, PracticeOptions, PracticeProcess};

/// The data folder whose practice environment all tests share.
pub fn shared_data() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("shared-data")
}

/// The environment, made on first use.
pub fn home() -> &'static PracticeHome {
    static HOME: OnceLock<PracticeHome> = OnceLock::new();
    HOME.get_or_init(|| {
        practice::set_up(&shared_data().join("practice"), &|line| eprintln!("{line}"))
            .unwrap_or_else(|error| panic!("the practice Slicer could not be set up: {error}"))
    })
}

/// A practice Slicer of the test's own.
pub fn start() -> PracticeProcess {
    start_with(&PracticeOptions::default())
}

/// A practice Slicer with these options.
pub fn start_with(options: &PracticeOptions) -> PracticeProcess {
    practice::start(home(), options).unwrap_or_else(|error| panic!("the practice Slicer did not start: {error}"))
}

/// Loads sample data by the route that works with exec off too.
pub fn load_sample(url: &str, name: &str) {
    use std::io::{Read, Write};

    let authority = url.trim_start_matches("http://").trim_end_matches("/slicer");
    let mut stream = std::net::TcpStream::connect(authority).unwrap();
    let request = format!("GET /slicer/sampledata?name={name} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
}
