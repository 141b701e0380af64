//! `bridge --print-config`: what a person pastes into an MCP client is valid, names this program and holds no secret.

#[path = "support/program.rs"]
mod program;

use std::path::Path;

use serde_json::{Value, json};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_slicer-ai-agent");
const CLIENTS: [&str; 12] = [
    "claude-desktop",
    "claude-code",
    "vscode",
    "cursor",
    "cline",
    "windsurf",
    "zed",
    "codex",
    "gemini-cli",
    "continue",
    "generic",
    "generic-http",
];

/// Exit code, stdout and stderr of `bridge --print-config …`.
fn print(arguments: &[&str]) -> (i32, String, String) {
    let data = tempfile::tempdir().unwrap();
    let output = program::program(data.path())
        .env_remove("APPIMAGE")
        .args(["bridge", "--print-config"])
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// The printed entry as a value, whatever its format.
fn parsed(client: &str, text: &str) -> Value {
    match client {
        "codex" => serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap(),
        "continue" => yaml(text),
        _ => serde_json::from_str(text).unwrap_or_else(|error| panic!("{client}: {error}: {text}")),
    }
}

/// Reads the part of YAML that a list of servers needs: blocks of fields and lists, with texts as in JSON.
fn yaml(text: &str) -> Value {
    let lines: Vec<(usize, String)> = text
        .lines()
        .flat_map(|line| {
            let depth = line.len() - line.trim_start().len();
            let rest = line.trim_start();
            match rest.strip_prefix("- ") {
                Some(item) if item.starts_with('"') => vec![(depth, "-".to_owned()), (depth + 2, item.to_owned())],
                Some(item) => vec![(depth, "-".to_owned()), (depth + 2, item.to_owned())],
                None => vec![(depth, rest.to_owned())],
            }
        })
        .collect();
    let (value, used) = yaml_block(&lines);
    assert_eq!(used, lines.len(), "{text}");
    value
}

fn yaml_block(lines: &[(usize, String)]) -> (Value, usize) {
    let depth = lines[0].0;
    if !lines[0].1.starts_with('-') && !lines[0].1.contains(':') || lines[0].1.starts_with('"') {
        return (serde_json::from_str(&lines[0].1).unwrap(), 1);
    }
    let (mut fields, mut items, mut at) = (serde_json::Map::new(), Vec::new(), 0);
    while at < lines.len() && lines[at].0 == depth {
        let line = &lines[at].1;
        at += 1;
        if line == "-" {
            let (item, used) = yaml_block(&lines[at..]);
            items.push(item);
            at += used;
        } else {
            let (name, value) = line.split_once(':').unwrap();
            let value = if value.is_empty() {
                let (value, used) = yaml_block(&lines[at..]);
                at += used;
                value
            } else {
                let value = value.trim();
                serde_json::from_str(value).unwrap_or_else(|error| panic!("{value}: {error}"))
            };
            fields.insert(name.to_owned(), value);
        }
    }
    (if items.is_empty() { Value::Object(fields) } else { Value::Array(items) }, at)
}

/// The server's own part of an entry.
fn server(client: &str, entry: &Value) -> Value {
    let list = match client {
        "vscode" => &entry["servers"],
        "zed" => &entry["context_servers"],
        "codex" => &entry["mcp_servers"],
        _ => &entry["mcpServers"],
    };
    if client == "continue" { list[0].clone() } else { list["slicer"].clone() }
}

#[test]
fn the_names_are_listed() {
    let data = tempfile::tempdir().unwrap();
    let alone = program::program(data.path()).args(["bridge", "--print-config"]).output().unwrap();
    assert!(alone.status.success());
    let (exit, text, _) = print(&["list"]);
    assert_eq!(exit, 0);
    assert_eq!(text.as_bytes(), alone.stdout);
    let names: Vec<&str> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, CLIENTS);
    let (exit, text, errors) = print(&["notepad"]);
    assert_eq!((exit, text.as_str()), (2, ""));
    assert!(CLIENTS.iter().all(|name| errors.contains(name)), "{errors}");
}

/// An entry that starts the bridge names this program and passes on what was given.
#[test]
fn entries_start_this_program_with_the_given_options() {
    for client in CLIENTS.into_iter().filter(|name| *name != "generic-http") {
        let arguments = [client, "--slicer-url", "http://127.0.0.1:2018/slicer", "--timeout", "90", "--read-only"];
        let (exit, text, errors) = print(&arguments);
        assert_eq!(exit, 0, "{client}: {errors}");
        let server = server(client, &parsed(client, &text));
        assert_eq!(server["command"], EXECUTABLE, "{client}: {text}");
        assert!(Path::new(server["command"].as_str().unwrap()).is_absolute());
        let passed = ["bridge", "--slicer-url", "http://127.0.0.1:2018/slicer", "--timeout", "90", "--read-only"];
        assert_eq!(server["args"], json!(passed), "{client}");
        assert!(errors.contains("put this into"), "{client}: {errors}");
    }
    let (_, text, _) = print(&["claude-desktop"]);
    assert_eq!(server("claude-desktop", &parsed("claude-desktop", &text))["args"], json!(["bridge"]));
}

/// An entry for a running bridge names its address, refers to the token and never holds it.
#[test]
fn entries_over_http_name_the_address_and_not_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my token");
    std::fs::write(&file, "a-secret-that-nobody-sees").unwrap();
    for client in CLIENTS.into_iter().filter(|name| !["claude-desktop", "generic"].contains(name)) {
        let file = file.to_str().unwrap();
        let (exit, text, errors) = print(&[client, "--http", "127.0.0.1:9123", "--token-file", file, "--read-only"]);
        assert_eq!(exit, 0, "{client}: {errors}");
        let server = server(client, &parsed(client, &text));
        let url = ["url", "serverUrl", "httpUrl"].iter().find_map(|key| server[*key].as_str());
        assert_eq!(url, Some("http://127.0.0.1:9123/mcp"), "{client}: {text}");
        let refers = ["SLICER_MCP_TOKEN", "${input:slicer-mcp-token}", "PASTE-THE-TOKEN-HERE"];
        assert!(refers.iter().any(|reference| server.to_string().contains(reference)), "{client}: {text}");
        assert!(!(text.clone() + &errors).contains("a-secret"), "{client}");
        let start = "bridge --read-only --http 127.0.0.1:9123 --token-file";
        assert!(errors.contains(start) && errors.contains("my token"), "{client}: {errors}");
    }
    let missing = folder.path().join("missing");
    assert_eq!(print(&["cursor", "--http", "127.0.0.1:1", "--token-file", missing.to_str().unwrap()]).0, 0);
    assert!(!missing.exists(), "printing makes no token");
    let (exit, _, errors) = print(&["cursor", "--http", "127.0.0.1:0"]);
    assert_eq!(exit, 2);
    assert!(errors.contains("port"), "{errors}");
    let (exit, text, errors) = print(&["claude-desktop", "--http", "127.0.0.1:9123"]);
    assert_eq!(exit, 0);
    assert_eq!(server("claude-desktop", &parsed("claude-desktop", &text))["command"], EXECUTABLE);
    assert!(errors.contains("leaves --http out"), "{errors}");
}

/// Every entry as it is, so that a change is seen.
#[test]
fn entries_look_as_they_did() {
    let mut all = String::new();
    for client in CLIENTS {
        for http in [&[][..], &["--http", "127.0.0.1:8016", "--token-file", "slicer-token"][..]] {
            let mut arguments = vec![client];
            arguments.extend(http);
            let (_, text, _) = print(&arguments);
            let shown = text.replace(&serde_json::to_string(EXECUTABLE).unwrap(), "\"PROGRAM\"");
            all.push_str(&format!("== {}\n{shown}\n", arguments.join(" ")));
        }
    }
    insta::assert_snapshot!(all);
}

/// What is wrong with an address or a token is said before anything is served.
#[test]
fn a_bridge_over_http_that_would_not_be_safe_does_not_start() {
    let data = tempfile::tempdir().unwrap();
    let start = |arguments: &[&str]| {
        let output = program::program(data.path()).arg("bridge").args(arguments).output().unwrap();
        assert!(output.stdout.is_empty(), "{}", program::both(&output));
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let token = data.path().join("token");
    let token = token.to_str().unwrap();
    for (arguments, code, said) in [
        (&["--http", "127.0.0.1:0"][..], 2, "--token-file"),
        (&["--token-file", token], 2, "--http"),
        (&["--http", "0.0.0.0:0", "--token-file", token], 2, "ssh -L"),
        (&["--http", "192.168.0.7:8016", "--token-file", token], 2, "ssh -L"),
        (&["--http", "nonsense", "--token-file", token], 2, "127.0.0.1:8016"),
        (&["--http", "127.0.0.1:0", "--token-file", data.path().to_str().unwrap()], 1, "not a file"),
    ] {
        let (exit, errors) = start(arguments);
        assert_eq!(exit, code, "{arguments:?}: {errors}");
        assert!(errors.contains(said), "{arguments:?}: {errors}");
    }
    assert!(!Path::new(token).exists(), "no token is made for a bridge that does not start");

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (exit, errors) = start(&["--http", &address, "--token-file", token]);
    assert_eq!(exit, 1);
    assert!(errors.contains(&format!("ort {} is taken", taken.local_addr().unwrap().port())), "{errors}");

    std::fs::write(token, "").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(token, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let (exit, errors) = start(&["--http", "127.0.0.1:0", "--token-file", token]);
    assert_eq!(exit, 1);
    assert!(errors.contains("is empty"), "{errors}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(token, "a-word-of-some-length").unwrap();
        std::fs::set_permissions(token, std::fs::Permissions::from_mode(0o644)).unwrap();
        let (exit, errors) = start(&["--http", "127.0.0.1:0", "--token-file", token]);
        assert_eq!(exit, 1);
        assert!(errors.contains("chmod 600") && !errors.contains("a-word"), "{errors}");
    }
}

/// stdout belongs to MCP: the log goes to stderr, at the level that was asked for.
#[test]
fn the_log_of_a_bridge_over_stdio_goes_to_stderr_only() {
    use std::io::Write;
    use std::process::Stdio;
    let data = tempfile::tempdir().unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let serve = |level: &str| {
        let mut child = program::program(data.path())
            .args(["bridge", "--log", level])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{hello}").unwrap();
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).unwrap();
        drop(input);
        child.wait_with_output().unwrap()
    };
    for level in ["error", "trace"] {
        let output = serve(level);
        let lines: Vec<Value> = String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect();
        assert_eq!(lines.len(), 1, "{}", program::both(&output));
        assert_eq!(lines[0]["result"]["serverInfo"]["name"], "slicer-ai-agent");
        assert_eq!(output.stderr.is_empty(), level == "error", "{}", program::both(&output));
    }
}
