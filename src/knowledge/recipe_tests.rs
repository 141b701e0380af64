//! What a recipe file may look like, and what is said when it does not.

use super::*;

const GOOD: &str = r#"+++
id = "show-volume"
title = "Show a volume"
phrasings = ["show {volume}"]
risk = "low"
provides = { volume = "vtkMRMLScalarVolumeNode" }

[[slots]]
name = "volume"
type = "node"
class = "vtkMRMLScalarVolumeNode"
default = "selected"
+++

# Show a volume
Some prose.

## Details
More prose.

## Plan
```json
{ "task_summary": "Show {{volume}}",
  "steps": [] }
```

## Code
```python
node = slicer.mrmlScene.GetNodeByID({{volume}})
result = {"volume": node.GetID()}
```

## Answer
Shown: {{volume}} ({{result.size|0.1}}).
"#;

/// Protects the reading of a whole file.
#[test]
fn a_good_file_is_read() {
    let recipe = parse("recipes/show-volume.md", GOOD).expect("good");
    assert_eq!(recipe.id, "show-volume");
    assert_eq!(recipe.slots[0].kind, SlotKind::Node);
    assert!(recipe.prose.starts_with("# Show a volume") && recipe.prose.ends_with("More prose."));
    assert_eq!(recipe.code_template.holes().count(), 1);
    assert_eq!(recipe.answer_template.render(|_| "X".into()), "Shown: X (X).");
    assert_eq!(recipe.provides["volume"], "vtkMRMLScalarVolumeNode");
}

/// Protects that every kind of mistake is found at load, on its line.
#[test]
fn mistakes_are_reported_with_their_line() {
    let cases = [
        ("default = \"selected\"", "default = \"latest\"", 9, "`selected`, `newest` or `only`"),
        ("show {volume}", "show {volumes}", 4, "`{volumes}`"),
        ("GetNodeByID({{volume}})", "GetNodeByID({{volum}})", 29, "not a declared slot"),
        ("GetNodeByID({{volume}})", "GetNodeByID(\"{{volume}}\")", 29, "inside quotes"),
        ("Show {{volume}}\"", "Show {{what}}\"", 23, "not a declared slot"),
        ("\"steps\": [] }", "\"steps\": [ }", 24, "not JSON"),
        ("{{result.size|0.1}}", "{{result.size|wide}}", 34, "number format"),
        ("## Answer", "## Reply", 34, "`## Answer` is missing"),
        ("risk = \"low\"", "risk = \"none\"", 5, "none"),
        ("type = \"node\"", "type = \"nodes\"", 10, "nodes"),
    ];
    for (from, to, line, message) in cases {
        let text = GOOD.replace(from, to);
        assert_ne!(text, GOOD, "{from}");
        let error = parse("recipes/x.md", &text).expect_err(to);
        assert_eq!(error.line, line, "{to}: {error}");
        assert!(error.message.contains(message), "{to}: {error}");
    }
}

/// Protects that a person's file replaces ours, and that a bad one costs only itself.
#[test]
fn own_files_win_and_bad_files_stand_alone() {
    let files = [
        ("recipes/show-volume.md".to_owned(), GOOD.to_owned()),
        ("recipes/bad.md".to_owned(), "no front matter".to_owned()),
        ("recipes/_notes.md".to_owned(), "skipped".to_owned()),
        ("recipes/mine.md".to_owned(), GOOD.replace("Show a volume", "Mine")),
    ];
    let (recipes, errors) = load(files.into_iter());
    assert_eq!(recipes.len(), 1);
    assert_eq!(recipes[0].title, "Mine");
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].path, "recipes/bad.md");
}
