//! Pictures on their way to a model: from the person, and from the tool that takes one in Slicer. What it protects: a model
//! that can see sees what the person meant, one that cannot is not sent what it would refuse, and the picture is kept.

#[path = "support/model_server.rs"]
mod model_server;
#[path = "support/practice.rs"]
mod practice;
#[path = "support/program.rs"]
mod program;

use std::path::Path;
use std::process::Stdio;

use model_server::{ModelServer, ScriptedReply};
use serde_json::{Value, json};

fn ask(data: &Path, server: &ModelServer, more: &[&str]) -> (i32, Value) {
    let mut command = program::program(data);
    command.args(["ask", "What is this?", "--json", "--provider", "custom", "--model", "sees", "--base-url"]);
    program::json(command.arg(server.base_url()).args(more).stdin(Stdio::null()))
}

fn picture(folder: &Path) -> String {
    let path = folder.join("ct.png");
    image::RgbImage::from_pixel(4, 4, image::Rgb([200, 30, 30])).save(&path).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A picture of the person's goes with the words, and lies in the run folder; what is no picture is refused beforehand.
#[test]
fn a_picture_of_the_person_is_sent() {
    let data = tempfile::tempdir().unwrap();
    let file = picture(data.path());
    let server = ModelServer::start(vec![ScriptedReply::text("A red square.")]);
    let (exit, turn) = ask(data.path(), &server, &["--no-slicer", "--image", &file]);
    assert_eq!((exit, &turn["answer"]), (0, &json!("A red square.")), "{turn:#}");
    let messages = server.chats()[0]["messages"].clone();
    let content = &messages.as_array().unwrap().last().unwrap()["content"];
    let sent = content.as_array().unwrap().iter().find(|part| part["type"] == "image_url").unwrap();
    assert!(sent["image_url"]["url"].as_str().unwrap().starts_with("data:image/png;base64,iVBOR"), "{content}");
    assert!(content.to_string().contains("What is this?"));
    let kept = turn["screenshots"][0].as_str().unwrap();
    assert_eq!(std::fs::read(kept).unwrap(), std::fs::read(&file).unwrap());
    let prompt = Path::new(turn["run_folder"].as_str().unwrap()).join("prompt_first.json");
    assert!(!std::fs::read_to_string(prompt).unwrap().contains("iVBOR"), "a prompt on disk stays readable");

    let text = data.path().join("notes.txt");
    std::fs::write(&text, "no picture").unwrap();
    for wrong in [text.to_str().unwrap(), "/no/such/file.png"] {
        let (exit, turn) = ask(data.path(), &server, &["--no-slicer", "--image", wrong]);
        assert_eq!((exit, &turn["error"]["kind"]), (2, &json!("BadRequest")), "{turn:#}");
        assert!(turn["error"]["advice"].as_str().unwrap().contains("PNG"));
    }
    assert_eq!(server.chats().len(), 1, "nothing was sent for what could not be read");
    let mut recipes = program::program(data.path());
    recipes.args(["ask", "What is this?", "--json", "--no-slicer", "--provider", "recipes", "--image", &file]);
    let (exit, turn) = program::json(recipes.stdin(Stdio::null()));
    assert_eq!(exit, 2, "{turn:#}");
    assert!(turn["error"]["message"].as_str().unwrap().contains("cannot see"), "{turn:#}");
}

/// What the tool takes in Slicer is shown to the model after the tool's result.
#[test]
fn a_screenshot_is_shown_to_the_model() {
    let slicer = practice::start();
    let data = tempfile::tempdir().unwrap();
    let server = ModelServer::start(vec![
        ScriptedReply::tool_call("c1", "CaptureScreenshot", json!({ "view_type": "application" })),
        ScriptedReply::text("Four views."),
    ]);
    let (exit, turn) = ask(data.path(), &server, &["--slicer-url", &slicer.url]);
    assert_eq!((exit, &turn["tool_calls"][0]["ok"]), (0, &json!(true)), "{turn:#}");
    let messages = server.chats()[1]["messages"].as_array().unwrap().clone();
    let result = messages.iter().position(|message| message["role"] == "tool").unwrap();
    let shown = &messages[result + 1];
    assert_eq!(shown["role"], "user");
    assert!(shown["content"][1]["image_url"]["url"].as_str().unwrap().starts_with("data:image/"), "{shown}");
}
