//! `bridge --print-config CLIENT`: the entry that an MCP client needs to use the bridge.
//!
//! What each client wants is data (`resources/mcp_clients.toml`): a template in JSON, into which the path of this
//! program and the options that were given are put, written out in the client's own format. The entry alone goes to
//! stdout, so that it can be piped into a file; where it belongs and what else to do goes to stderr. The token of a
//! bridge over HTTP is never printed: the entry refers to it in the way that the client has, or marks where to paste it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use super::console::print_text;
use super::{Failure, Outcome, exit};
use crate::resources;

/// Where an entry for a bridge over HTTP points when no address was given.
const EXAMPLE_ADDRESS: &str = "127.0.0.1:8016";
/// How long a client is told to wait for one call when nothing was given, in seconds; as long as the bridge waits.
const PATIENCE: u64 = 600;

/// What the entry is to hold.
pub struct Wanted {
    /// Arguments after `bridge`, without those of HTTP.
    pub arguments: Vec<String>,
    /// `--timeout`, in seconds.
    pub timeout: Option<f64>,
    /// `--http`, when given.
    pub http: Option<String>,
    /// `--token-file`, when given.
    pub token_file: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Clients {
    token_variable: String,
    client: Vec<Client>,
}

#[derive(Deserialize)]
struct Client {
    id: String,
    name: String,
    format: Format,
    linux: String,
    macos: String,
    windows: String,
    note: String,
    stdio: Option<String>,
    http: Option<String>,
    token: Option<TokenPlace>,
    token_note: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Format {
    Json,
    Toml,
    Yaml,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum TokenPlace {
    Variable,
    Asked,
    File,
    Pasted,
}

/// Prints the entry for the client of this name; `list` prints the names.
pub fn run(name: &str, wanted: &Wanted) -> Outcome {
    let clients = read()?;
    if name == "list" {
        print_text(&list(&clients))?;
        return Ok(exit::DONE);
    }
    let Some(client) = clients.client.iter().find(|client| client.id == name) else {
        let names: Vec<&str> = clients.client.iter().map(|client| client.id.as_str()).collect();
        return Err(usage(format!("There is no client named {name:?} here. There are: {}.", names.join(", "))));
    };
    let program = program()?;
    let shown = entry(client, &clients.token_variable, &program, wanted)?;
    print_text(shown.text.trim_end())?;
    eprintln!("{}", advice(client, &clients.token_variable, &program, wanted, shown.over_http));
    Ok(exit::DONE)
}

fn read() -> Result<Clients, Failure> {
    let text = resources::text("mcp_clients.toml").unwrap_or_default();
    toml::from_str(text).map_err(|error| anyhow::anyhow!("the list of MCP clients cannot be read: {error}").into())
}

fn usage(message: String) -> Failure {
    Failure::new(exit::USAGE, "BadRequest", message, "")
}

fn list(clients: &Clients) -> String {
    let mut text = String::new();
    for client in &clients.client {
        // Writing to a String cannot fail.
        writeln!(text, "{:<16}{}", client.id, client.name).unwrap_or_default();
    }
    text.trim_end().to_owned()
}

/// The file to start: this program, or the package that it runs from.
fn program() -> Result<PathBuf, Failure> {
    if let Some(package) = std::env::var_os("APPIMAGE") {
        return Ok(package.into());
    }
    std::env::current_exe().map_err(|error| anyhow::anyhow!("the path of this program is not known: {error}").into())
}

struct Entry {
    text: String,
    over_http: bool,
}

fn entry(client: &Client, variable: &str, program: &Path, wanted: &Wanted) -> Result<Entry, Failure> {
    let over_http = client.stdio.is_none() || (wanted.http.is_some() && client.http.is_some());
    let template = if over_http { &client.http } else { &client.stdio };
    let mut value: Value = serde_json::from_str(template.as_deref().unwrap_or_default())
        .map_err(|error| anyhow::anyhow!("the entry for {} cannot be made: {error}", client.name))?;
    let address = wanted.http.as_deref().unwrap_or(EXAMPLE_ADDRESS);
    if over_http && address.ends_with(":0") {
        return Err(usage("A client has to know the port: name one with --http, not 0.".to_owned()));
    }
    let arguments: Vec<&str> = std::iter::once("bridge").chain(wanted.arguments.iter().map(String::as_str)).collect();
    let seconds = wanted.timeout.map_or(PATIENCE, |seconds| seconds.ceil() as u64);
    fill(&mut value, &|text| match text {
        "{command}" => json!(program.to_string_lossy()),
        "{args}" => json!(arguments),
        "{url}" => json!(format!("http://{address}/mcp")),
        "{seconds}" => json!(seconds),
        "{milliseconds}" => json!(seconds.saturating_mul(1000)),
        other => json!(other.replace("{token_variable}", variable)),
    });
    let text = match client.format {
        Format::Json => serde_json::to_string_pretty(&value).map_err(|error| anyhow::anyhow!(error))?,
        Format::Toml => toml::to_string_pretty(&value).map_err(|error| anyhow::anyhow!(error))?,
        Format::Yaml => yaml(&value),
    };
    Ok(Entry { text, over_http })
}

/// Puts values in the places of the names.
fn fill(value: &mut Value, put: &impl Fn(&str) -> Value) {
    match value {
        Value::String(text) => *value = put(text),
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, put)),
        Value::Object(fields) => fields.values_mut().for_each(|item| fill(item, put)),
        _ => {}
    }
}

/// YAML in block style. Texts are quoted as in JSON, which YAML reads alike.
fn yaml(value: &Value) -> String {
    let mut text = String::new();
    write_yaml(value, 0, &mut text);
    text
}

fn write_yaml(value: &Value, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                text.push_str(&format!("{indent}{name}:"));
                write_field(field, depth, text);
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut block = String::new();
                write_yaml(item, depth + 1, &mut block);
                text.push_str(&format!("{indent}- {}", block.trim_start()));
            }
        }
        plain => text.push_str(&format!("{indent}{plain}\n")),
    }
}

fn write_field(field: &Value, depth: usize, text: &mut String) {
    match field {
        Value::Object(fields) if !fields.is_empty() => {
            text.push('\n');
            write_yaml(field, depth + 1, text);
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            write_yaml(field, depth + 1, text);
        }
        plain => text.push_str(&format!(" {plain}\n")),
    }
}

/// Where the entry goes, and what else there is to do.
fn advice(client: &Client, variable: &str, program: &Path, wanted: &Wanted, over_http: bool) -> String {
    let place = if cfg!(target_os = "macos") {
        &client.macos
    } else if cfg!(windows) {
        &client.windows
    } else {
        &client.linux
    };
    let mut text = format!("For {}: put this into {place}, beside what is there already. {}", client.name, client.note);
    if wanted.http.is_some() && !over_http {
        text.push_str(&format!(
            "\n{} takes from its file only servers that it starts itself, so this entry starts a bridge of its own and \
             leaves --http out. Do not use it beside another bridge to the same Slicer: two bridges do not wait for \
             each other.",
            client.name
        ));
    }
    if over_http {
        let file = wanted.token_file.as_deref().map_or("TOKEN-FILE".to_owned(), |file| quoted(&file.to_string_lossy()));
        let address = wanted.http.as_deref().unwrap_or(EXAMPLE_ADDRESS);
        let arguments: String = wanted.arguments.iter().map(|argument| format!(" {}", quoted(argument))).collect();
        let program = quoted(&program.to_string_lossy());
        text.push_str(&format!(
            "\nThe bridge itself has to run: {program} bridge{arguments} --http {address} --token-file {file}"
        ));
        text.push('\n');
        text.push_str(&token_advice(client, variable, &file));
    }
    text
}

fn token_advice(client: &Client, variable: &str, file: &str) -> String {
    let name = &client.name;
    let mut text = match client.token {
        Some(TokenPlace::Variable) if cfg!(windows) => format!(
            "{name} reads the token from the environment variable {variable}; before you start it, in PowerShell: \
             $env:{variable} = (Get-Content {file}).Trim()"
        ),
        Some(TokenPlace::Variable) => format!(
            "{name} reads the token from the environment variable {variable}; before you start it from the same \
             terminal: export {variable}=\"$(cat {file})\""
        ),
        Some(TokenPlace::Asked) => format!("{name} asks for the token and keeps it: it is in {file}."),
        Some(TokenPlace::File) => format!("The token is in {file}."),
        Some(TokenPlace::Pasted) | None => {
            format!("Paste the token from {file} over PASTE-THE-TOKEN-HERE, and keep the client's file to yourself.")
        }
    };
    if let Some(note) = &client.token_note {
        text.push_str(if text.ends_with('.') { " " } else { "\n" });
        text.push_str(note);
    }
    text
}

/// A text as a shell reads it as one word.
fn quoted(text: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "-_./:\\=~".contains(character);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else if cfg!(windows) {
        format!("\"{text}\"")
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(http: Option<&str>) -> Wanted {
        Wanted {
            arguments: vec!["--slicer-url".to_owned(), "http://127.0.0.1:2018/slicer".to_owned()],
            timeout: Some(30.5),
            http: http.map(str::to_owned),
            token_file: Some(PathBuf::from("/home/me/a token")),
        }
    }

    /// Every template is complete: it parses, nothing in braces is left, and there is a way for each transport.
    #[test]
    fn every_entry_can_be_made_in_its_format() {
        let clients = read().unwrap();
        let program = Path::new("/opt/with space/slicer-ai-agent");
        for client in &clients.client {
            for http in [None, Some("127.0.0.1:9000")] {
                let made = entry(client, &clients.token_variable, program, &wanted(http)).unwrap_or_else(|failure| {
                    panic!("{}: {}", client.id, failure.problem.message);
                });
                let text = &made.text;
                for name in ["{command}", "{args}", "{url}", "{seconds}", "{milliseconds}", "{token_variable}"] {
                    assert!(!text.contains(name), "{}: {text}", client.id);
                }
                match client.format {
                    Format::Json => assert!(serde_json::from_str::<Value>(text).is_ok(), "{text}"),
                    Format::Toml => assert!(toml::from_str::<toml::Table>(text).is_ok(), "{text}"),
                    Format::Yaml => {}
                }
                let names = if made.over_http { "http://127.0.0.1:" } else { "/opt/with space/slicer-ai-agent" };
                assert!(text.contains(names), "{}: {text}", client.id);
                assert!(made.over_http == (client.stdio.is_none() || http.is_some() && client.http.is_some()));
            }
            assert!(client.http.is_none() || client.token.is_some(), "{}: where does its token go?", client.id);
        }
    }

    #[test]
    fn a_port_that_is_not_known_cannot_be_told() {
        let clients = read().unwrap();
        let cursor = clients.client.iter().find(|client| client.id == "cursor").unwrap();
        assert!(entry(cursor, "T", Path::new("/x"), &wanted(Some("127.0.0.1:0"))).is_err());
    }

    #[test]
    fn yaml_is_written_in_blocks() {
        let value = json!({"a": [{"b": "x: \"y\"", "c": ["1", "2"]}, {"d": {"e": 5}}], "f": [], "g": true});
        let expected = "a:\n  - b: \"x: \\\"y\\\"\"\n    c:\n      - \"1\"\n      - \"2\"\n  - d:\n      e: 5\nf: []\n\
                        g: true\n";
        assert_eq!(yaml(&value), expected);
    }

    #[test]
    fn words_of_a_command_are_quoted_when_they_must_be() {
        assert_eq!(quoted("/opt/slicer-ai-agent"), "/opt/slicer-ai-agent");
        #[cfg(not(windows))]
        assert_eq!(quoted("/home/o'neil/a b"), "'/home/o'\\''neil/a b'");
    }
}
