//! The command line as a contract: exit codes, one JSON object, errors in words.

#[path = "support/practice.rs"]
mod practice;
#[path = "support/program.rs"]
mod program;

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

/// Runs a subcommand with Python on stdin.
fn with_input(data: &Path, arguments: &[&str], input: &[u8]) -> (i32, String, String) {
    let mut child = program::program(data)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn validate_tells_allowed_asking_and_blocked_apart() {
    let data = tempfile::tempdir().unwrap();
    let check = |code: &str| {
        let (exit, out, _) = with_input(data.path(), &["validate", "-", "--json"], code.as_bytes());
        let value: Value = serde_json::from_str(&out).unwrap();
        (exit, value["verdict"].as_str().unwrap().to_owned(), value)
    };
    assert_eq!(check("print(slicer.mrmlScene.GetNumberOfNodes())").0, 0);
    let (exit, verdict, value) = check("slicer.mrmlScene.RemoveNode(slicer.util.getNode('A'))\n");
    assert_eq!((exit, verdict.as_str()), (4, "ask"));
    let finding = &value["findings"][0];
    for key in ["capability", "line", "column", "text", "why", "instead"] {
        assert!(!finding[key].is_null(), "a finding lacks {key}: {finding}");
    }
    let (exit, verdict, _) = check("import subprocess\nsubprocess.run(['ls'])\n");
    assert_eq!((exit, verdict.as_str()), (4, "block"));
}

#[test]
fn validate_reads_many_programs() {
    let data = tempfile::tempdir().unwrap();
    let lines = "{\"id\": \"a\", \"code\": \"1 + 1\"}\n\n{\"id\": 2, \"code\": \"eval('1')\"}\n";
    let (exit, out, _) = with_input(data.path(), &["validate", "--jsonl", "-"], lines.as_bytes());
    assert_eq!(exit, 0);
    let replies: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(replies.len(), 2);
    assert_eq!((&replies[0]["id"], &replies[0]["verdict"]), (&"a".into(), &"allow".into()));
    assert_eq!((&replies[1]["id"], &replies[1]["verdict"]), (&2.into(), &"block".into()));
    let (exit, _, errors) = with_input(data.path(), &["validate", "--jsonl", "-"], b"{\"id\": 1}\n");
    assert_eq!(exit, 2);
    assert!(errors.contains("line 1"), "{errors}");
}

/// Wrong usage is 2, and says what was wrong.
#[test]
fn wrong_usage_is_two() {
    let data = tempfile::tempdir().unwrap();
    let cases: [&[&str]; 6] = [
        &["no-such-command"],
        &["ask"],
        &["ask", "  "],
        &["validate", "/no/such/file.py"],
        &["run", "-", "--allow", "NoSuchCapability"],
        &["conversations", "show", "nothing"],
    ];
    for case in cases {
        let output = program::program(data.path()).args(case).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{case:?}: {}", program::both(&output));
        assert!(!output.stderr.is_empty(), "{case:?} says nothing");
    }
}

/// Nothing to connect to is 3, with what to do.
#[test]
fn no_slicer_is_three() {
    let data = tempfile::tempdir().unwrap();
    let arguments = ["ask", "Load the sample chest CT", "--slicer-url", "http://127.0.0.1:9/slicer", "--json"];
    let (exit, value) = program::json(program::program(data.path()).args(arguments));
    assert_eq!(exit, 3);
    assert_eq!(value["error"]["kind"], "NoSlicer");
    assert!(value["error"]["advice"].as_str().unwrap().contains("Web Server"), "{value}");
    assert!(value["runs"].as_array().unwrap().is_empty());
}

/// "Exec is off" is not "no server": the person is told which box to tick.
#[test]
fn exec_off_is_told_apart() {
    let options = slicer_ai_agent::slicer::practice::PracticeOptions { no_exec: true, ..Default::default() };
    let process = practice::start_with(&options);
    let data = tempfile::tempdir().unwrap();
    let arguments = ["ask", "List the nodes", "--slicer-url", &process.url, "--json"];
    let (exit, value) = program::json(program::program(data.path()).args(arguments));
    assert_eq!((exit, &value["error"]["kind"]), (3, &"ExecOff".into()), "{value:#}");
    assert!(value["error"].to_string().contains("Slicer API exec"), "{value:#}");
}

/// `practice` says where it is, serves, and ends with the program that started it.
#[test]
fn practice_says_when_it_is_ready() {
    practice::home();
    let mut child = program::program(&practice::shared_data())
        .args(["practice", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut report = serde_json::Deserializer::from_reader(child.stdout.take().unwrap()).into_iter::<Value>();
    let report = report.next().unwrap().unwrap();
    assert!(report["url"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{report}");
    assert!(report["version"].as_str().unwrap().contains("practice"));
    let pid = u32::try_from(report["pid"].as_u64().unwrap()).unwrap();
    assert!(slicer_ai_agent::platform::is_alive(pid));
    child.kill().unwrap();
    child.wait().unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while slicer_ai_agent::platform::is_alive(pid) {
        assert!(std::time::Instant::now() < deadline, "the practice Slicer outlives the program that was killed");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

/// A provider that does not exist is said, with the names that do.
#[test]
fn an_unknown_provider_is_named() {
    let data = tempfile::tempdir().unwrap();
    let (exit, value) = program::json(program::program(data.path()).args([
        "ask",
        "Hello",
        "--provider",
        "nobody",
        "--no-slicer",
        "--json",
    ]));
    assert_eq!(exit, 2);
    assert!(value["error"]["message"].as_str().unwrap().contains("nobody"));
    assert!(value["error"]["advice"].as_str().unwrap().contains("recipes"));
}

/// The three rings by the command line: verdict, guarded run, restore.
#[test]
fn run_goes_through_all_rings() {
    let process = practice::start();
    let data = tempfile::tempdir().unwrap();
    let run = |code: &str, more: &[&str]| -> (i32, Value) {
        let mut arguments = vec!["run", "-", "--json", "--slicer-url", &process.url];
        arguments.extend(more);
        let (exit, out, errors) = with_input(data.path(), &arguments, code.as_bytes());
        (exit, serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{errors}")))
    };
    let (exit, value) =
        run("node = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLTextNode', 'Note')\nprint('größe')\n6 * 7", &[]);
    assert_eq!(exit, 0, "{value:#}");
    assert_eq!((&value["verdict"], &value["value"]), (&"allow".into(), &42.into()));
    assert_eq!(value["stdout"], "größe\n");
    assert_eq!(value["diff"]["added"][0]["name"], "Note");

    let (exit, value) = run("slicer.util.getNode('Note').SetName('Other')\nraise ValueError('wrong')", &[]);
    assert_eq!(exit, 1);
    assert_eq!((&value["error"]["type"], &value["error"]["line"]), (&"ValueError".into(), &2.into()));
    assert!(value["error"]["traceback"].as_str().unwrap().contains("ValueError: wrong"));
    assert_eq!(value["restored"]["complete"], true);
    assert_eq!(run("slicer.util.getNode('Note').GetName()", &[]).1["value"], "Note");

    let (exit, value) = run("while True:\n    pass", &["--timeout", "1", "--allow", "Hang"]);
    assert_eq!((exit, &value["error"]["type"]), (1, &"TimeLimit".into()), "{value:#}");

    // Deleting asks; there is no terminal, so it is refused, and nothing is lost.
    let delete = "slicer.mrmlScene.RemoveNode(slicer.util.getNode('Note'))";
    let (exit, value) = run(delete, &[]);
    assert_eq!((exit, &value["verdict"], &value["ok"]), (4, &"ask".into(), &false.into()));
    assert_eq!(run("slicer.util.getNode('Note').GetName()", &[]).0, 0);
    let (exit, value) = run(delete, &["--yes"]);
    assert_eq!((exit, &value["diff"]["removed"][0]["name"]), (0, &"Note".into()));

    let vtk =
        "import vtk\nreader = vtk.vtkXMLPolyDataReader()\nreader.SetFileName('/no/such/file.vtp')\nreader.Update()";
    let (exit, value) = run(vtk, &["--allow", "ReadFile"]);
    assert_eq!(exit, 1, "a VTK error is a failure: {value:#}");
    assert!(value["vtk"].as_array().unwrap().iter().any(|message| message["kind"] == "error"), "{value:#}");
}

/// `doctor` gives every check a name, a detail and, when it is not well, advice.
#[test]
fn doctor_says_what_to_do() {
    let data = tempfile::tempdir().unwrap();
    let (_, value) = program::json(program::program(data.path()).args(["doctor", "--json"]));
    let checks = value["checks"].as_array().unwrap();
    assert!(checks.len() >= 8);
    for check in checks {
        assert!(!check["name"].as_str().unwrap().is_empty() && !check["detail"].as_str().unwrap().is_empty());
        assert!(check["ok"] == true || !check["advice"].as_str().unwrap().is_empty(), "no advice: {check}");
    }
}

/// Every subcommand explains itself with an example.
#[test]
fn every_subcommand_has_help_with_an_example() {
    let data = tempfile::tempdir().unwrap();
    for name in [
        "demo",
        "ask",
        "run",
        "validate",
        "bridge",
        "practice",
        "search",
        "models",
        "test-connection",
        "conversations",
        "costs",
        "doctor",
    ] {
        let output = program::program(data.path()).args([name, "--help"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("Example"), "{name}: {text}");
    }
}

/// `search` finds the recipe for a request.
#[test]
fn search_finds_recipes() {
    let data = tempfile::tempdir().unwrap();
    let (exit, value) = program::json(program::program(data.path()).args([
        "search",
        "threshold segmentation of bone",
        "--top",
        "5",
        "--json",
    ]));
    assert_eq!(exit, 0);
    let hits = value["hits"].as_array().unwrap();
    assert!(hits.iter().any(|hit| hit["path"].as_str().unwrap().contains("segment-threshold")), "{value:#}");
}
