//! A planted key, looked for in everything that a turn leaves: the data folder with its database and run folders, the log at
//! its finest, and what is printed. What it protects: a key that a person trusts to this program is nowhere but in the
//! keyring and in the request, whatever goes wrong on the way.

#[path = "support/model_server.rs"]
mod model_server;
#[path = "support/practice.rs"]
mod practice;
#[path = "support/program.rs"]
mod program;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use base64::Engine;
use model_server::{ModelServer, Piece, ScriptedReply};
use serde_json::json;

const KEY: &str = "sk-planted-Zq7Xw3Vt9Rb5Np1Lk";

/// Forms in which a key could be read by somebody: whole, its second half, in Base64 (as basic authorisation sends it).
fn forms() -> Vec<Vec<u8>> {
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text).trim_end_matches('=').to_owned();
    let half = &KEY[KEY.len() / 2..];
    [KEY.to_owned(), half.to_owned(), encode(KEY), encode(&format!("{KEY}:"))].map(String::into_bytes).to_vec()
}

fn holds_key(bytes: &[u8]) -> bool {
    forms().iter().any(|form| bytes.windows(form.len()).any(|window| window == form))
}

/// Files below `folder` that hold the key, and how many were read.
fn scan(folder: &Path, found: &mut Vec<String>) -> usize {
    let mut read = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read += scan(&path, found);
        } else {
            read += 1;
            if holds_key(&std::fs::read(&path).unwrap()) {
                found.push(path.display().to_string());
            }
        }
    }
    read
}

/// Runs a command with the key in its environment, and looks for the key in all that it leaves. Gives what was printed.
fn leaves_no_key(what: &str, data: &Path, command: &mut Command) -> Output {
    command.env("PLANTED_KEY", KEY).args(["--log", "trace"]).stdin(Stdio::null());
    let output = command.output().unwrap();
    let mut found = Vec::new();
    let read = scan(data, &mut found);
    let asks = command.get_args().next().is_some_and(|first| first == "ask");
    assert!(read > 0 || !asks, "{what}: nothing was written, so nothing was looked at");
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if holds_key(bytes) {
            found.push(format!("{name}: {}", String::from_utf8_lossy(bytes)));
        }
    }
    assert!(found.is_empty(), "{what}: the key is in {found:#?}");
    output
}

fn ask(data: &Path, base_url: &str, text: &str) -> Command {
    let mut command = program::program(data);
    command.args(["ask", text, "--json", "--no-slicer", "--provider", "custom", "--model", "scripted-model"]);
    command.args(["--base-url", base_url, "--api-key-env", "PLANTED_KEY"]).env("SLICER_AI_AGENT_MAX_RETRIES", "1");
    command
}

fn raw(status: u16, headers: &[(&str, &str)], body: &str) -> ScriptedReply {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ScriptedReply::Http { status, headers, body: body.into() }
}

/// A whole turn in which the model repeats the key wherever it can: words, thinking, a call, the plan and the program,
/// whose output then has it as well.
#[test]
fn a_whole_turn_leaves_no_key() {
    let slicer = practice::start();
    let data = tempfile::tempdir().unwrap();
    let plan = json!({ "task_summary": format!("Use {KEY}"), "overall_confidence": "high", "risk_level": "low",
        "steps": [{ "action": KEY, "api": "slicer", "confidence": "high", "evidence": KEY, "expected_scene_change": [] }] });
    let program = format!("```agent_plan\n{plan}\n```\n```python\nprint('{KEY}')\n{{'key': '{KEY}'}}\n```\n");
    let model = ModelServer::start(vec![
        ScriptedReply::Stream(vec![
            Piece::Reasoning(format!("The key is {KEY}.")),
            Piece::Text(format!("Your key is {KEY}. ")),
            Piece::ToolCall { id: "c1".into(), name: "Grep".into(), arguments: json!({ "pattern": KEY }) },
        ]),
        ScriptedReply::text(&program),
        ScriptedReply::text(&format!("Done with {KEY}.")),
    ]);
    let mut command = program::program(data.path());
    command.args(["ask", &format!("Take {KEY} and print it"), "--json", "--slicer-url", &slicer.url]);
    command.args(["--provider", "custom", "--model", "scripted-model", "--base-url", &model.base_url()]);
    command.args(["--api-key-env", "PLANTED_KEY"]);
    let output = leaves_no_key("a whole turn", data.path(), &mut command);
    assert!(output.status.success(), "{}", program::both(&output));
    assert_eq!(model.chats().len(), 3, "the turn did not go its way");
    assert!(data.path().join("runs").read_dir().unwrap().next().is_some(), "there is no run folder to look at");
    let sent = model.requests()[0].headers["authorization"].clone();
    assert_eq!(sent, format!("Bearer {KEY}"), "the key did reach the server");
    // What the history gives back later.
    let mut list = program::program(data.path());
    leaves_no_key("the list", data.path(), list.args(["conversations", "list", "--json"]));
}

/// Each way in which a call can fail, with a server that repeats the key.
#[test]
fn no_failure_leaves_a_key() {
    let echo =
        json!({ "error": { "message": format!("Incorrect API key provided: {KEY}"), "param": KEY, "code": KEY } })
            .to_string();
    let page = format!("<html><body>{KEY}</body></html>");
    let stream = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\ndata: {{\"error\":{{\"message\":\"{KEY}\"}}}}\n\n",
        &KEY[..14]
    );
    let location = format!("https://elsewhere.invalid/{KEY}");
    let mut replies: Vec<(String, ScriptedReply)> = [400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 529]
        .map(|status| (format!("status {status}"), raw(status, &[("retry-after", "0")], &echo)))
        .to_vec();
    replies.extend([
        ("a redirect".to_owned(), raw(302, &[("location", &location)], &echo)),
        ("a web page".to_owned(), raw(200, &[], &page)),
        ("a web page as error".to_owned(), raw(502, &[("retry-after", "0")], &page)),
        ("an error in the stream".to_owned(), raw(200, &[("content-type", "text/event-stream")], &stream)),
        ("words".to_owned(), raw(200, &[], &format!("data: {KEY}\n\n"))),
    ]);
    for (what, reply) in replies {
        let data = tempfile::tempdir().unwrap();
        let model = ModelServer::start(vec![reply.clone(), reply]);
        let output = leaves_no_key(&what, data.path(), &mut ask(data.path(), &model.base_url(), "Hello"));
        assert!(!output.status.success(), "{what} must fail");
        assert!(!model.chats().is_empty(), "{what}: the server was never asked");
    }
}

/// Addresses with the key in them, secure connections that are none, servers that are not there.
#[test]
fn no_address_leaves_a_key() {
    let model = ModelServer::start(vec![]);
    let host = model.base_url().replace("http://", "");
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let addresses = [
        KEY.to_owned(),
        format!("http://{KEY}@{host}"),
        format!("http://user:{KEY}@{host}"),
        format!("http://{host}?key={KEY}"),
        format!("http://{host}/{KEY}"),
        format!("http://{gone}/{KEY}"),
        format!("ftp://{KEY}@127.0.0.1/"),
        format!("http://{KEY}.invalid:1/v1"),
        format!("https://{host}/{KEY}"),
        format!("http://[{KEY}]/v1"),
    ];
    for address in addresses {
        let data = tempfile::tempdir().unwrap();
        let what = address.replace(KEY, "KEY");
        let output = leaves_no_key(&what, data.path(), &mut ask(data.path(), &address, "Hello"));
        assert!(!output.status.success(), "{what} must fail");
        let mut test = program::program(data.path());
        test.args(["test-connection", "--json", "--provider", "custom", "--model", "m", "--base-url", &address]);
        leaves_no_key(&format!("test of {what}"), data.path(), test.args(["--api-key-env", "PLANTED_KEY"]));
    }
}

/// A proxy that refuses, for plain and for secure addresses, with a password in its own address; and one that breaks off.
#[test]
fn no_proxy_leaves_a_key() {
    for status in ["407 Proxy Authentication Required", "502 Bad Gateway", ""] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = format!("http://user:{KEY}@{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut asked = [0; 4096];
                let count = stream.read(&mut asked).unwrap_or(0);
                // It repeats what it was asked, headers included, as some do.
                let body = String::from_utf8_lossy(&asked[..count]).into_owned();
                let reply =
                    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
                if !status.is_empty() {
                    stream.write_all(reply.as_bytes()).ok();
                }
            }
        });
        for scheme in ["http", "https"] {
            let data = tempfile::tempdir().unwrap();
            let mut command = ask(data.path(), &format!("{scheme}://model.invalid/v1"), "Hello");
            for variable in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"] {
                command.env(variable, &proxy);
            }
            command.env_remove("NO_PROXY").env_remove("no_proxy");
            let output = leaves_no_key(&format!("{scheme} over {status}"), data.path(), &mut command);
            assert!(!output.status.success());
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(
                !status.starts_with("407") || said.contains("proxy"),
                "a proxy that asks for a password is named: {said}"
            );
        }
    }
}

/// Fetching models and a key that is typed where none belongs: settings never hold it, and what is said does not.
#[test]
fn other_commands_leave_no_key() {
    let data = tempfile::tempdir().unwrap();
    let model = ModelServer::start(vec![raw(401, &[], KEY)]);
    let mut models = program::program(data.path());
    models.args(["models", "--provider", "custom", "--fetch", "--json", "--base-url", &model.base_url()]);
    let output = leaves_no_key("models", data.path(), models.args(["--api-key-env", "PLANTED_KEY"]));
    assert!(output.status.success(), "{}", program::both(&output));
    let mut test = program::program(data.path());
    test.args(["test-connection", "--json", "--provider", "custom", "--model", "m", "--base-url", &model.base_url()]);
    let output = leaves_no_key("test-connection", data.path(), test.args(["--api-key-env", "PLANTED_KEY"]));
    assert!(String::from_utf8_lossy(&output.stdout).contains("KeyRefused"), "{}", program::both(&output));
    let mut doctor = program::program(data.path());
    leaves_no_key("doctor", data.path(), doctor.args(["doctor", "--json"]));
}
