//! The index as a person uses it: the commands `index`, `search` and `bench retrieval`, and what a kill leaves behind.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

fn program(data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slicer-ai-agent"));
    command.arg("--data-dir").arg(data).args(arguments).stdin(Stdio::null());
    command
}

fn json(data: &Path, arguments: &[&str]) -> Value {
    let output = program(data, arguments).arg("--json").output().expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).expect("one JSON object")
}

/// Pages in the shape of Slicer's script repository, `count` of them.
fn pages(root: &Path, count: usize) {
    let folder = root.join("Docs/developer_guide/script_repository");
    fs::create_dir_all(&folder).expect("folder");
    for number in 0..count {
        let text = format!(
            "# Page {number}\n\n## Wobble the jelly {number}\n\nHow to wobble.\n\n```python\nwobble({number})\n```\n"
        );
        fs::write(folder.join(format!("page{number}.md")), text).expect("page");
    }
}

/// The contract of the three commands, with figures that are right for two pages.
#[test]
fn index_search_and_bench_speak_json() {
    let (data, root) = (tempfile::tempdir().expect("data"), tempfile::tempdir().expect("root"));
    pages(root.path(), 2);
    let source = root.path().to_string_lossy().into_owned();
    let report = json(data.path(), &["index", "--source", &source]);
    assert_eq!((&report["files"], &report["chunks"], &report["removed"]), (&2.into(), &2.into(), &0.into()));
    assert!(report["seconds"].is_number() && report["bytes"].as_u64().is_some_and(|bytes| bytes > 0));
    assert_eq!(report["embedded"], 0);

    let found = json(data.path(), &["search", "wobbling jelly", "--top", "1"]);
    let hit = &found["hits"][0];
    let prefix = root.path().file_name().expect("name").to_string_lossy().into_owned();
    let path = hit["path"].as_str().expect("path");
    assert!(path.starts_with(&format!("{prefix}/Docs/developer_guide/script_repository/page")), "{path}");
    assert_eq!((&hit["rank"], &hit["kind"], &hit["start_line"]), (&1.into(), &"doc_example".into(), &3.into()));
    assert_eq!(found["subqueries"][0], "wobbling jelly");
    let recipes = json(data.path(), &["search", "segment by threshold", "--kind", "recipe"]);
    assert_eq!(recipes["hits"][0]["kind"], "recipe", "the built-in recipes stay");

    let gold = format!("{prefix}/Docs/developer_guide/script_repository/page1.md");
    let question = |id: &str, text: &str, line: usize| serde_json::json!({"id": id, "kind": "howto", "question": text, "gold": [gold], "gold_detail": [{"path": gold, "line": line}], "must_use": ["wobble(1)"]});
    let file = root.path().join("questions.jsonl");
    fs::write(
        &file,
        format!("{}\n{}\n", question("a", "wobble the jelly 1", 3), question("b", "unheard-of words", 99)),
    )
    .expect("file");
    let figures = json(data.path(), &["bench", "retrieval", &file.to_string_lossy()]);
    assert_eq!(
        (&figures["questions"], &figures["recall_at_1"], &figures["recall_at_10"]),
        (&2.into(), &0.5.into(), &0.5.into())
    );
    assert_eq!(figures["answerable_at_10"], 0.5);
    assert_eq!(figures["misses"][0]["id"], "b");
}

/// A folder that is not there is wrong usage and says so; a question file without an index says what to do first.
#[test]
fn mistakes_are_told() {
    let data = tempfile::tempdir().expect("data");
    let output = program(data.path(), &["index", "--source", "no/such/folder"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    let questions = data.path().join("q.jsonl");
    fs::write(&questions, "").expect("file");
    let output = program(data.path(), &["bench", "retrieval", &questions.to_string_lossy()]).output().expect("runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("slicer-ai-agent index --source"));
}

/// A program that is killed while it indexes leaves the index as it was, and the next run ends well.
#[test]
fn a_kill_leaves_the_old_index() {
    let (data, root) = (tempfile::tempdir().expect("data"), tempfile::tempdir().expect("root"));
    pages(root.path(), 2);
    let source = root.path().to_string_lossy().into_owned();
    json(data.path(), &["index", "--source", &source]);
    pages(root.path(), 3_000);
    let mut child =
        program(data.path(), &["index"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts");
    // Its first word of progress comes in the middle of the work.
    let mut line = String::new();
    let mut progress = std::io::BufReader::new(child.stderr.take().expect("stderr"));
    std::io::BufRead::read_line(&mut progress, &mut line).expect("progress");
    assert!(line.contains("500 of 3000"), "{line}");
    child.kill().expect("killed");
    child.wait().expect("ended");
    std::thread::sleep(Duration::from_millis(50));
    let old = json(data.path(), &["search", "wobble the jelly", "--top", "100"]);
    assert_eq!(old["hits"].as_array().map(Vec::len), Some(2), "the old index has two pages");
    let report = json(data.path(), &["index"]);
    assert_eq!((&report["files"], &report["chunks"], &report["changed"]), (&3000.into(), &3000.into(), &2998.into()));
}
