//! The workflows that need no extension, run to their end on the practice Slicer as a script would run them, and the verbs
//! on a module with a panel of our own.
//!
//! What is protected: that both packages work as shipped, with figures that are right; that a run which ends in the middle
//! goes on where it was; that a package which is not sound does not run.

#[path = "support/practice.rs"]
mod practice;
#[path = "support/program.rs"]
mod program;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use program::{json, program};
use serde_json::{Value, json};
use slicer_ai_agent::slicer::practice::PracticeProcess;
use slicer_ai_agent::slicer::{BridgeCommand, ConnectOptions, Slicer};
use slicer_ai_agent::workflow::{Answers, Event, Package, Phase, Runner};

/// The program with the answers in a file of the test's folder.
fn run(data: &Path, slicer: &PracticeProcess, id: &str, more: &[&str], answers: &Value) -> (i32, Value) {
    let file = data.join("answers.json");
    std::fs::write(&file, json!({"answers": answers}).to_string()).unwrap();
    let mut command = program(data);
    command.args(["workflow", "run", id, "--json", "--slicer-url", &slicer.url, "--answers"]).arg(&file).args(more);
    json(&mut command)
}

#[test]
fn threshold_segmentation_runs_to_its_end() {
    let (data, slicer) = (tempfile::tempdir().unwrap(), practice::start());
    let answers = json!({
        "data": "Sample data",
        "thresholds": {"each": [[100, 150], [250, 3000]]},
        "look": true,
        "right": {"each": ["No", "Yes"]},
        "parts": "Keep the largest part",
        "kernel": 2.5,
    });
    let (code, report) = run(data.path(), &slicer, "ThresholdSegmentation", &[], &answers);
    assert_eq!(code, 0, "{report}");
    let figures = &report["values"]["figures"];
    let number = |name: &str| figures[0][name].as_str().and_then(|text| text.parse::<f64>().ok());
    let volume = number("volume_mm3").unwrap_or_else(|| panic!("{figures}"));
    assert!(volume > 1000.0, "bone of a chest is more than a cubic centimetre: {figures}");
    assert!(number("min").is_some(), "{figures}");
    assert_eq!(report["values"]["thresholds"], json!([250.0, 3000.0]));
    assert_eq!(report["touched"], json!([]), "nothing was made up");
    let steps: Vec<&str> = report["steps"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(steps.iter().filter(|step| **step == "segment").count(), 2, "the answer No leads back: {steps:?}");
}

/// Points that were shifted and turned must come back to their partners.
#[test]
fn fiducial_registration_runs_to_its_end() {
    let (data, slicer) = (tempfile::tempdir().unwrap(), practice::start());
    let fixed = json!([[0, 0, 0], [50, 0, 0], [0, 40, 0], [0, 0, 30]]);
    // Turned by a quarter about S, then shifted.
    let moving = json!([[5, -3, 8], [5, 47, 8], [-35, -3, 8], [5, -3, 38]]);
    let answers = json!({
        "data": "Sample data", "fixed-points": {"points": fixed}, "moving-points": {"points": moving}, "good": "Yes",
    });
    let (code, report) = run(data.path(), &slicer, "FiducialRegistration", &[], &answers);
    assert_eq!(code, 0, "{report}");
    let error = report["values"]["errors"]["root_mean_square_mm"].as_f64().unwrap();
    assert!(error < 1e-3, "the points match exactly, so the error is that of the arithmetic: {error}");
    assert_eq!(report["values"]["errors"]["each_mm"].as_array().map(Vec::len), Some(4));
}

/// A run that stops for want of an answer goes on with it, also after points that do not match were placed.
#[test]
fn an_interrupted_run_is_resumed() {
    let (data, slicer) = (tempfile::tempdir().unwrap(), practice::start());
    let first = json!({"data": "Sample data", "fixed-points": {"points": [[0, 0, 0], [9, 0, 0], [0, 9, 0]]}});
    let (code, report) = run(data.path(), &slicer, "FiducialRegistration", &[], &first);
    assert_eq!((code, report["error"]["kind"].as_str()), (2, Some("NoAnswer")), "{report}");
    let rest = json!({"moving-points": {"points": [[1, 0, 0], [10, 0, 0], [1, 9, 0]]}, "good": "Yes"});
    let (code, report) = run(data.path(), &slicer, "FiducialRegistration", &["--resume"], &rest);
    assert_eq!(code, 0, "{report}");
    let steps: Vec<&str> = report["steps"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(steps.iter().filter(|step| **step == "sample").count(), 1, "nothing is done twice: {steps:?}");
    assert!(report["values"]["errors"]["root_mean_square_mm"].as_f64().unwrap() < 1e-3);
    let (code, report) = run(data.path(), &slicer, "FiducialRegistration", &["--resume"], &rest);
    assert_eq!((code, report["error"]["kind"].as_str()), (1, Some("NothingToResume")));
}

/// The program is killed while a step is under way in Slicer, again and again: each time the run goes on, and in the end
/// each step was done once and its nodes are there once.
#[test]
fn a_killed_program_goes_on_and_does_nothing_twice() {
    let (data, slicer) = (tempfile::tempdir().unwrap(), practice::start());
    let answers = json!({"data": "Sample data", "right": "Yes"});
    let file = data.path().join("answers.json");
    std::fs::write(&file, json!({"answers": answers}).to_string()).unwrap();
    for (number, until) in ["Load the sample data", "Make the segment", "Smooth the segment"].into_iter().enumerate() {
        let mut command = program(data.path());
        command.args(["workflow", "run", "ThresholdSegmentation", "--slicer-url", &slicer.url, "--answers"]).arg(&file);
        command.args((number > 0).then_some("--resume")).stderr(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let seen = lines.take_while(|line| !line.starts_with(until)).count();
        std::thread::sleep(Duration::from_millis(30 * number as u64));
        child.kill().unwrap();
        assert!(!child.wait().unwrap().success(), "it was killed at \"{until}\", after {seen} lines");
    }
    let (code, report) = run(data.path(), &slicer, "ThresholdSegmentation", &["--resume"], &answers);
    assert_eq!(code, 0, "{report}");
    let mut steps: Vec<&str> = report["steps"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let all = steps.len();
    steps.sort_unstable();
    steps.dedup();
    assert_eq!((steps.len(), all), (14, 14), "each step once: {steps:?}");
    let script = data.path().join("count.py");
    let code = "[len(slicer.util.getNodesByClass(f'vtkMRML{kind}Node')) for kind in ('Segmentation', 'Table', 'ScalarVolume')]";
    std::fs::write(&script, code).unwrap();
    let mut command = program(data.path());
    let (_, counted) = json(command.args(["run", "--json", "--slicer-url", &slicer.url]).arg(&script));
    assert_eq!(counted["value"], json!([1, 1, 1]), "what was under way is taken back before it runs again: {counted}");
}

/// A step that fails says why in words; it can be tried again or left out, and the run goes on.
#[test]
fn a_failed_step_can_be_tried_again_or_left_out() {
    let (data, slicer) = (tempfile::tempdir().unwrap(), practice::start());
    let three = json!([[0, 0, 0], [50, 0, 0], [0, 40, 0]]);
    let four = json!([[1, 0, 0], [51, 0, 0], [1, 40, 0], [1, 1, 1]]);
    let answers = json!({
        "data": "Sample data", "fixed-points": {"points": three}, "moving-points": {"points": four}, "good": "Yes",
    });
    for more in [&[][..], &["--resume", "--retry"], &["--resume"]] {
        let (code, report) = run(data.path(), &slicer, "FiducialRegistration", more, &answers);
        assert_eq!((code, report["error"]["kind"].as_str()), (1, Some("StepFailed")), "{report}");
        assert!(report["error"]["message"].as_str().unwrap().contains("3 points on one volume and 4"), "{report}");
    }
    let (code, report) = run(data.path(), &slicer, "FiducialRegistration", &["--resume", "--skip"], &answers);
    assert_eq!(code, 0, "{report}");
}

/// "Run from here" takes back what later steps made in Slicer, and the run ends as before.
#[tokio::test]
async fn run_from_here_restores_the_scene() {
    let slicer = practice::start();
    let bridge = BridgeCommand::BuiltIn { slicer_url: slicer.url.clone() };
    let executable = Some(PathBuf::from(env!("CARGO_BIN_EXE_slicer-ai-agent")));
    let connected = Slicer::connect(ConnectOptions { bridge, executable }).await.unwrap();
    let package = Package::embedded("ThresholdSegmentation").unwrap();
    let mut runner = Runner::new(connected.clone(), package, None, |_| {});
    let answers: Answers = serde_json::from_value(json!({"answers": {"data": "Sample data", "right": "Yes"}})).unwrap();
    let first = runner.run(&answers).await.unwrap();
    let index = first.steps.iter().position(|step| step == "segment").unwrap();
    runner.handle(Event::RunFrom { index }).await.unwrap();
    assert_eq!(runner.state().phase, Phase::WaitingUser, "the segment is made anew and is to be looked at");
    let snapshot = connected.snapshot().await.unwrap();
    assert_eq!(snapshot.nodes_of_class("vtkMRMLSegmentationNode").count(), 1, "the first one is gone");
    assert_eq!(snapshot.nodes_of_class("vtkMRMLTableNode").count(), 0, "what came later is gone");
    let second = runner.run(&answers).await.unwrap();
    assert_eq!((&second.steps, &second.values["figures"]), (&first.steps, &first.values["figures"]));
}

/// The verbs on a panel of our own, looked at from inside Slicer.
#[test]
fn verbs_do_what_a_person_could_do() {
    let slicer = practice::start();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/test_flow_verbs.py");
    let python = if cfg!(windows) { "python" } else { "python3" };
    let output = Command::new(python).arg(file).env("SLICER_URL", &slicer.url).output().expect("Python 3 runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("OK") && !text.contains("skipped"), "{text}");
}

#[test]
fn packages_are_listed_shown_and_validated() {
    let data = tempfile::tempdir().unwrap();
    let foreign = data.path().join("workflows/Foreign");
    std::fs::create_dir_all(&foreign).unwrap();
    std::fs::write(foreign.join("manifest.json"), r#"{"manifest_version": 3, "name": "x"}"#).unwrap();
    let (code, list) = json(program(data.path()).args(["workflow", "list", "--json"]));
    assert_eq!(code, 0);
    let list = list["workflows"].as_array().unwrap().clone();
    let of = |id: &str| list.iter().find(|one| one["id"] == id).unwrap();
    assert_eq!(
        (&of("ThresholdSegmentation")["loaded"], &of("FiducialRegistration")["loaded"]),
        (&json!(true), &json!(true))
    );
    assert!(of("Foreign")["errors"][0]["problem"].as_str().unwrap().contains("SlicerAIAgent"));
    let (code, shown) = json(program(data.path()).args(["workflow", "show", "ThresholdSegmentation", "--json"]));
    assert_eq!((code, shown["workflow"]["start"].as_str()), (0, Some("data")));
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("resources/workflows/FiducialRegistration");
    let (code, sound) = json(program(data.path()).args(["workflow", "validate", "--json"]).arg(shipped));
    assert_eq!((code, &sound["ok"]), (0, &json!(true)), "{sound}");
    let (code, refused) = json(program(data.path()).args(["workflow", "validate", "--json"]).arg(&foreign));
    assert_eq!((code, &refused["ok"]), (1, &json!(false)));
    let (code, unknown) = json(program(data.path()).args(["workflow", "show", "Nothing", "--json"]));
    assert_eq!((code, unknown["error"]["kind"].as_str()), (2, Some("BadRequest")));
}
