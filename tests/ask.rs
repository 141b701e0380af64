//! Turns driven by a model, over the real wire: a scripted OpenAI-compatible server, the program's own command line, the
//! bridge, and the practice Slicer.

#[path = "support/model_server.rs"]
mod model_server;
#[path = "support/practice.rs"]
mod practice;
#[path = "support/program.rs"]
mod program;

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use model_server::{ModelServer, Piece, ScriptedReply};
use serde_json::{Value, json};

const KEY: &str = "sk-planted-0123456789abcdef";

/// An answer with a plan and a program, in many small pieces.
fn program_reply(before: &str, expected: &Value, code: &str) -> ScriptedReply {
    let plan = json!({
        "task_summary": "As asked", "overall_confidence": "high", "risk_level": "low",
        "steps": [{"action": "do it", "api": "slicer", "confidence": "high", "evidence": "recipes", "expected_scene_change": expected}],
    });
    let text = format!("{before}\n\n```agent_plan\n{plan}\n```\n```python\n{code}\n```\n");
    let characters: Vec<char> = text.chars().collect();
    let mut pieces: Vec<Piece> = characters.chunks(7).map(|cut| Piece::Text(cut.iter().collect())).collect();
    pieces.push(Piece::Usage { input: 900, cached: 100, output: 80, reasoning: 0 });
    ScriptedReply::Stream(pieces)
}

fn ask(data: &Path, model: &ModelServer, slicer: Option<&str>, text: &str, more: &[&str]) -> (i32, Value) {
    let mut command = program::program(data);
    command.args(["ask", text, "--json", "--provider", "custom", "--model", "scripted-model", "--base-url"]);
    command.arg(model.base_url()).args(["--api-key-env", "PLANTED_KEY"]).env("PLANTED_KEY", KEY).args(more);
    match slicer {
        Some(url) => command.args(["--slicer-url", url]),
        None => command.arg("--no-slicer"),
    };
    program::json(command.stdin(Stdio::null()))
}

/// Text, a tool call, a plan and a program that changes the scene, then the answer.
#[test]
fn a_model_drives_a_whole_turn() {
    let slicer = practice::start();
    let data = tempfile::tempdir().unwrap();
    let expected = json!([{"type": "node_exists", "class": "vtkMRMLMarkupsFiducialNode", "name": "Target", "new": true},
                          {"type": "node_has_content", "class": "vtkMRMLMarkupsFiducialNode", "name": "Target", "min_points": 1}]);
    let code = "node = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLMarkupsFiducialNode', 'Target')\n\
                node.AddControlPoint(1, 2, 3)\nprint('placed')\n{'points': node.GetNumberOfControlPoints()}";
    let model = ModelServer::start(vec![
        ScriptedReply::Stream(vec![
            Piece::Text("I look it up first.".into()),
            Piece::ToolCall {
                id: "call_1".into(),
                name: "VectorSearch".into(),
                arguments: json!({"query": "place a point"}),
            },
            Piece::Usage { input: 1000, cached: 0, output: 20, reasoning: 5 },
        ]),
        program_reply("I place one point.", &expected, code),
        ScriptedReply::text("The point “Target” lies at (1, 2, 3) mm."),
    ]);
    let (exit, turn) = ask(data.path(), &model, Some(&slicer.url), "Place a point at 1, 2, 3 called Target", &[]);
    assert_eq!(exit, 0, "{turn:#}");
    assert_eq!(turn["finish"], "ran");
    assert_eq!(turn["answer"], "The point “Target” lies at (1, 2, 3) mm.");
    assert_eq!(turn["code"].as_str().unwrap().trim(), code);
    assert_eq!(turn["plan"]["task_summary"], "As asked");
    assert_eq!(turn["verdict"], "allow");
    let run = &turn["runs"][0];
    assert_eq!((&run["ok"], &run["value"]["points"], &run["stdout"]), (&true.into(), &1.into(), &"placed\n".into()));
    assert_eq!(run["diff"]["added"][0]["name"], "Target");
    assert!(run["checks"].as_array().unwrap().iter().all(|check| check["passed"] == true), "{run:#}");
    let call = &turn["tool_calls"][0];
    assert_eq!((&call["name"], &call["ok"]), (&"VectorSearch".into(), &true.into()));
    assert_eq!((&turn["usage"]["calls"], &turn["usage"]["cached"]), (&3.into(), &100.into()));
    assert!(turn["cost_usd"].is_null(), "the price of an unknown model is not known");

    // What the model was given: the tool's result with its call, the scene, the run's result as data.
    let chats = model.chats();
    assert_eq!(chats.len(), 3);
    let second = chats[1]["messages"].as_array().unwrap();
    assert!(second.iter().any(|message| message["role"] == "tool" && message["tool_call_id"] == "call_1"));
    assert!(chats[2]["messages"].to_string().contains("placed"));
    assert!(chats[0]["messages"].to_string().contains("<scene>"));

    // The run folder has what happened, and the key is nowhere.
    let folder = Path::new(turn["run_folder"].as_str().unwrap());
    for name in ["prompt_first.json", "prompt_last.json", "plan.json", "code.py", "result.json"] {
        assert!(folder.join(name).is_file(), "{name} is missing in {}", folder.display());
    }
    assert_no_key(data.path());
    assert!(!turn.to_string().contains(KEY));
}

/// A program that fails: the traceback is in the result, the scene is as before, and the correction sees the failure.
#[test]
fn a_failing_program_is_taken_back_and_corrected() {
    let slicer = practice::start();
    let data = tempfile::tempdir().unwrap();
    let nothing = json!([]);
    let bad = "node = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLTextNode', 'Half done')\nnode.NoSuchMethod()";
    let good = "slicer.mrmlScene.AddNewNodeByClass('vtkMRMLTextNode', 'Done').GetName()";
    let model = ModelServer::start(vec![
        program_reply("First try.", &nothing, bad),
        program_reply("Corrected.", &nothing, good),
        ScriptedReply::text("It is done."),
    ]);
    let (exit, turn) = ask(data.path(), &model, Some(&slicer.url), "Make a note", &[]);
    assert_eq!(exit, 0, "{turn:#}");
    let runs = turn["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    let error = &runs[0]["error"];
    assert_eq!((&error["type"], &error["line"]), (&"AttributeError".into(), &2.into()));
    assert!(error["traceback"].as_str().unwrap().contains("NoSuchMethod"));
    assert_eq!(runs[0]["restored"]["complete"], true);
    assert_eq!((&runs[1]["ok"], &runs[1]["value"]), (&true.into(), &"Done".into()));
    assert_eq!(turn["answer"], "It is done.");
    assert!(model.chats()[1]["messages"].to_string().contains("NoSuchMethod"));
    let (_, nodes) =
        run_code(data.path(), &slicer.url, "[n.GetName() for n in slicer.util.getNodesByClass('vtkMRMLTextNode')]");
    assert_eq!(nodes["value"], json!(["Done"]), "the half-done node must be gone");
}

/// When no attempt works, the person reads why, and the scene is as before. The same failure twice ends it early.
#[test]
fn a_hopeless_program_ends_with_the_reason() {
    let slicer = practice::start();
    let data = tempfile::tempdir().unwrap();
    let bad =
        "slicer.mrmlScene.AddNewNodeByClass('vtkMRMLTextNode', 'Left over')\nraise RuntimeError('The volume is empty')";
    let reply = || program_reply("Trying.", &json!([]), bad);
    let model = ModelServer::start(vec![reply(), reply(), reply(), reply(), reply()]);
    let (exit, turn) = ask(data.path(), &model, Some(&slicer.url), "Do it", &[]);
    assert_eq!(exit, 1);
    assert_eq!((&turn["finish"], &turn["error"]["kind"]), (&"failed".into(), &"CodeFailed".into()), "{turn:#}");
    assert!(turn["answer"].as_str().unwrap().contains("The volume is empty"));
    assert!(turn["answer"].as_str().unwrap().contains("as it was before"));
    assert_eq!(turn["runs"].as_array().unwrap().len(), 2, "the same program twice is enough");
    let (_, nodes) = run_code(data.path(), &slicer.url, "len(slicer.util.getNodesByClass('vtkMRMLTextNode'))");
    assert_eq!(nodes["value"], 0);
}

/// Words in place of a corrected program are not success: nothing of what they claim happened.
#[test]
fn a_claim_is_not_a_correction() {
    let slicer = practice::start();
    let data = tempfile::tempdir().unwrap();
    let bad =
        "slicer.mrmlScene.AddNewNodeByClass('vtkMRMLTextNode', 'Left over')\nraise RuntimeError('The volume is empty')";
    let claim = "I fixed it: the bone is now segmented.\n```python\nprint('done')\n```";
    let model = ModelServer::start(vec![program_reply("Trying.", &json!([]), bad), ScriptedReply::text(claim)]);
    let (exit, turn) = ask(data.path(), &model, Some(&slicer.url), "Segment the bone", &[]);
    assert_eq!(
        (exit, &turn["finish"], &turn["error"]["kind"]),
        (1, &"failed".into(), &"CodeFailed".into()),
        "{turn:#}"
    );
    assert!(turn["answer"].as_str().unwrap().contains("The volume is empty"), "{turn:#}");
}

/// A program that prints without end must not fill the model's context, and its end, where errors stand, is kept.
#[test]
fn long_output_is_clipped_for_the_model() {
    let slicer = practice::start();
    let data = tempfile::tempdir().unwrap();
    let code = "print('x' * 150000)\nprint('</result> the very end')\n1";
    let model = ModelServer::start(vec![program_reply("Printing.", &json!([]), code), ScriptedReply::text("Printed.")]);
    let (exit, turn) = ask(data.path(), &model, Some(&slicer.url), "Print a lot", &[]);
    assert_eq!(exit, 0, "{turn:#}");
    let last = model.chats()[1]["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(last.len() < 30_000, "{} bytes were sent", last.len());
    assert!(last.contains("the very end"));
    assert_eq!(last.matches("</result>").count(), 1, "output must not close its own tag");
}

/// A failed check undoes a program that ran clean: the scene decides, not the program.
#[test]
fn a_failed_check_undoes_the_run() {
    let slicer = practice::start();
    let data = tempfile::tempdir().unwrap();
    let expected = json!([{"type": "node_exists", "class": "vtkMRMLModelNode", "new": true}]);
    let code = "slicer.mrmlScene.AddNewNodeByClass('vtkMRMLTextNode', 'Not a model').GetName()";
    let model = ModelServer::start(vec![program_reply("A model.", &expected, code)]);
    let (exit, turn) = ask(data.path(), &model, Some(&slicer.url), "Make a model", &["--max-attempts", "1"]);
    assert_eq!(exit, 1);
    let run = &turn["runs"][0];
    assert_eq!(
        (&run["ok"], &run["checks"][0]["passed"], &run["restored"]["complete"]),
        (&false.into(), &false.into(), &true.into())
    );
    let (_, nodes) = run_code(data.path(), &slicer.url, "len(slicer.util.getNodesByClass('vtkMRMLTextNode'))");
    assert_eq!(nodes["value"], 0);
}

/// A program that must be asked for is not run where nobody can answer, and one that is blocked is never run.
#[test]
fn nothing_runs_unasked() {
    let slicer = practice::start();
    let data = tempfile::tempdir().unwrap();
    let made =
        run_code(data.path(), &slicer.url, "slicer.mrmlScene.AddNewNodeByClass('vtkMRMLTextNode', 'Keep').GetID()");
    assert_eq!(made.0, 0);
    let delete = "slicer.mrmlScene.RemoveNode(slicer.util.getNode('Keep'))\n'gone'";
    let model = ModelServer::start(vec![program_reply("Deleting.", &json!([]), delete)]);
    let (exit, turn) = ask(data.path(), &model, Some(&slicer.url), "Delete Keep", &[]);
    assert_eq!((exit, &turn["verdict"], &turn["error"]["kind"]), (4, &"ask".into(), &"Refused".into()), "{turn:#}");
    let hostile = "import os\nos.system('touch /tmp/never')";
    let model = ModelServer::start(vec![program_reply("Cleaning.", &json!([]), hostile)]);
    let (exit, turn) = ask(data.path(), &model, Some(&slicer.url), "Clean up", &["--yes", "--max-attempts", "1"]);
    assert_eq!((exit, &turn["verdict"]), (4, &"block".into()));
    assert!(turn["runs"].as_array().unwrap().is_empty());
    let (_, nodes) = run_code(data.path(), &slicer.url, "slicer.util.getNode('Keep').GetName()");
    assert_eq!(nodes["value"], "Keep");
}

/// A question is answered in text: no program, no second call, an example in it is not run.
#[test]
fn a_question_needs_no_program() {
    let data = tempfile::tempdir().unwrap();
    let answer = "Call it so:\n\n```python\nslicer.mrmlScene.Clear()\n```\n";
    let model = ModelServer::start(vec![ScriptedReply::text(answer)]);
    let (exit, turn) = ask(data.path(), &model, None, "How do I clear the scene?", &[]);
    assert_eq!((exit, &turn["finish"]), (0, &"answer".into()), "{turn:#}");
    assert_eq!(turn["answer"].as_str().unwrap().trim(), answer.trim());
    assert!(turn["code"].is_null() && turn["runs"].as_array().unwrap().is_empty());
    assert_eq!(model.chats().len(), 1);
}

/// A call to a tool that does not exist is listed, and the model is told.
#[test]
fn an_unknown_tool_is_reported() {
    let data = tempfile::tempdir().unwrap();
    let model = ModelServer::start(vec![
        ScriptedReply::tool_call("c1", "FormatDisk", json!({})),
        ScriptedReply::text("I cannot do that."),
    ]);
    let (exit, turn) = ask(data.path(), &model, None, "Format the disk", &[]);
    assert_eq!(exit, 0);
    assert_eq!((&turn["tool_calls"][0]["name"], &turn["tool_calls"][0]["ok"]), (&"FormatDisk".into(), &false.into()));
    assert!(turn["tool_calls"][0]["error"].as_str().unwrap().contains("There is no tool"));
}

/// A refused key: kind, sentence and advice; the key itself is nowhere, though the server echoes it.
#[test]
fn a_refused_key_is_said_and_not_shown() {
    let data = tempfile::tempdir().unwrap();
    let body = format!("{{\"error\": {{\"message\": \"Incorrect API key provided: {KEY}\"}}}}");
    let model = ModelServer::start(vec![ScriptedReply::error(401, &body)]);
    let (exit, turn) = ask(data.path(), &model, None, "Hello", &[]);
    assert_eq!((exit, &turn["error"]["kind"]), (1, &"KeyRefused".into()), "{turn:#}");
    assert!(!turn["error"]["advice"].as_str().unwrap().is_empty());
    assert!(!turn.to_string().contains(KEY));
    assert_no_key(data.path());
}

/// SIGKILL in the middle of a stream: the next start has the conversation up to the last piece.
#[test]
#[cfg(unix)]
fn a_killed_turn_is_there_again() {
    let data = tempfile::tempdir().unwrap();
    let mut pieces: Vec<Piece> = vec![Piece::Text("The first words arrived. ".into())];
    for number in 0..200 {
        pieces.push(Piece::DelayMs(50));
        pieces.push(Piece::Text(format!("piece {number} ")));
    }
    let model = ModelServer::start(vec![ScriptedReply::Stream(pieces)]);
    let mut child = program::program(data.path())
        .args(["ask", "Tell me a long story", "--no-slicer", "--provider", "custom", "--model", "scripted-model"])
        .args(["--base-url", &model.base_url(), "--api-key-env", "PLANTED_KEY"])
        .env("PLANTED_KEY", KEY)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let answer = || {
        let (_, list) = program::json(program::program(data.path()).args(["conversations", "list", "--json"]));
        let id = list["conversations"][0]["id"].as_str()?.to_owned();
        let (_, shown) = program::json(program::program(data.path()).args(["conversations", "show", &id, "--json"]));
        Some((shown["turns"][0]["answer"].as_str()?.to_owned(), shown))
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    let seen_before = loop {
        assert!(Instant::now() < deadline, "the stream never reached the history");
        match answer() {
            Some((text, _)) if text.contains("piece 10") => break text,
            _ => std::thread::sleep(Duration::from_millis(100)),
        }
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let (after, shown) = answer().unwrap();
    assert!(after.starts_with(&seen_before), "what was shown must still be there: {after}");
    assert!(!after.contains("piece 199"), "the test killed too late");
    assert_eq!(shown["turns"][0]["finish"], Value::Null, "a turn that was cut off is not called finished");
    assert_eq!(shown["title"], "Tell me a long story");
}

fn run_code(data: &Path, url: &str, code: &str) -> (i32, Value) {
    let file = data.join("probe.py");
    std::fs::write(&file, code).unwrap();
    program::json(
        program::program(data)
            .args(["run", file.to_str().unwrap(), "--json", "--slicer-url", url])
            .stdin(Stdio::null()),
    )
}

/// No file of the data folder holds the planted key.
fn assert_no_key(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_no_key(&path);
        } else {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
            assert!(!found, "the key is in {}", path.display());
        }
    }
}
