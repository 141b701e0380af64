//! The provider with values: questions and their answers, earlier results, compound programs, hostile names.

use super::*;
use crate::slicer::{NodeContent, SegmentSummary};

fn book() -> RecipeBook {
    RecipeBook::open(None).expect("an index in memory").0
}

fn node(id: &str, name: &str, class: &str) -> NodeSummary {
    NodeSummary { id: id.into(), name: name.into(), class: class.into(), ..NodeSummary::default() }
}

fn volume(number: usize, name: &str) -> NodeSummary {
    node(&format!("vtkMRMLScalarVolumeNode{number}"), name, "vtkMRMLScalarVolumeNode")
}

fn segmentation(id: &str, name: &str, segments: &[&str]) -> NodeSummary {
    let segment =
        |name: &&str| SegmentSummary { id: format!("{id}-{name}"), name: (*name).into(), ..SegmentSummary::default() };
    let content = NodeContent { segments: Some(segments.iter().map(segment).collect()), ..NodeContent::default() };
    NodeSummary { content, ..node(id, name, "vtkMRMLSegmentationNode") }
}

fn scene(nodes: Vec<NodeSummary>) -> SceneSnapshot {
    SceneSnapshot { nodes, ..SceneSnapshot::default() }
}

fn ask(message: &str, scene: &SceneSnapshot, book: &RecipeBook) -> RecipeAnswer {
    answer(message, scene, None, &RecipeContext::default(), book)
}

fn program(found: RecipeAnswer) -> (Plan, String, Vec<RecipePart>) {
    match found {
        RecipeAnswer::Program { plan, code, parts, .. } => (plan, code, parts),
        other => panic!("no program: {other:?}"),
    }
}

fn pending(found: RecipeAnswer) -> (String, PendingRecipe) {
    match found {
        RecipeAnswer::Ask { question, pending, .. } => (question, pending),
        other => panic!("no question: {other:?}"),
    }
}

/// Protects later parts from using anything but what earlier parts made.
#[test]
fn later_parts_use_what_earlier_parts_made() {
    let book = book();
    let before = scene(vec![volume(1, "Old"), segmentation("vtkMRMLSegmentationNode1", "Old one", &["Old segment"])]);
    let message = "load the sample chest CT, segment the bone and show it in 3D";
    let (plan, code, parts) = program(ask(message, &before, &book));
    let recipes: Vec<&str> = parts.iter().map(|part| part.recipe.as_str()).collect();
    assert_eq!(recipes, ["load-sample-data", "segment-threshold", "show-segment-3d"]);
    assert!(code.contains("GetNodeByID(results[0][\"volume\"])"), "{code}");
    assert!(code.contains("results[1][\"segmentation\"]") && code.contains("results[1][\"segment\"]"), "{code}");
    assert!(!code.contains("vtkMRMLScalarVolumeNode1"), "{code}");
    assert_eq!(code.matches("results.append(result)").count(), 3);
    assert!(code.ends_with("\nresults\n"));
    assert!(plan.steps.len() >= 3);
}

/// Protects the choice between several volumes: never a guess, and each way of answering works.
#[test]
fn an_open_volume_is_asked_and_answered() {
    let book = book();
    let two = scene(vec![volume(1, "CT before"), volume(2, "CT after")]);
    let (question, open) = pending(ask("segment the bone", &two, &book));
    assert!(question.contains("\"CT before\"") && question.contains("\"CT after\""), "{question}");
    for (reply, id) in [
        ("CT after", 2),
        ("the second one", 2),
        ("1", 1),
        ("the one called CT before", 1),
        ("vtkMRMLScalarVolumeNode2", 2),
    ] {
        let found = answer(reply, &two, Some(&open), &RecipeContext::default(), &book);
        let (_, code, _) = program(found);
        assert!(code.contains(&format!("GetNodeByID(\"vtkMRMLScalarVolumeNode{id}\")")), "{reply}: {code}");
    }
    let restored: PendingRecipe =
        serde_json::from_value(serde_json::to_value(&open).expect("to JSON")).expect("from JSON");
    assert_eq!(restored, open);
}

/// Protects the way out of a question: cancel, another request, or the question again.
#[test]
fn a_question_can_be_left() {
    let book = book();
    let two = scene(vec![volume(1, "CT before"), volume(2, "CT after")]);
    let (_, open) = pending(ask("segment the bone", &two, &book));
    let reply = |text: &str| answer(text, &two, Some(&open), &RecipeContext::default(), &book);
    assert!(matches!(reply("never mind"), RecipeAnswer::NoMatch { .. }));
    let (_, _, parts) = program(reply("switch to the four-up layout"));
    assert_eq!(parts[0].recipe, "set-layout");
    assert!(matches!(reply("hmm"), RecipeAnswer::Ask { .. }));
}

/// Protects a number outside the allowed range from being used, and the answer to it from being lost.
#[test]
fn numbers_out_of_range_are_asked() {
    let book = book();
    let there = scene(vec![volume(1, "CT"), segmentation("vtkMRMLSegmentationNode1", "S", &["Bone"])]);
    let (question, open) = pending(ask("grow the bone by 900 mm", &there, &book));
    assert!(question.contains("between 0.1 and 100 mm") && question.contains("900"), "{question}");
    let (_, code, parts) = program(answer("9 mm", &there, Some(&open), &RecipeContext::default(), &book));
    assert_eq!(parts[0].slots["margin"], "9");
    assert!(code.contains("9.0"), "{code}");
}

/// Protects "it" and "that": the newest thing that the conversation made, as long as it is still there.
#[test]
fn pronouns_mean_the_newest_result() {
    let book = book();
    let mut there = scene(vec![
        segmentation("vtkMRMLSegmentationNode1", "First", &["Bone"]),
        segmentation("vtkMRMLSegmentationNode2", "Second", &["Lung"]),
    ]);
    let mut context = RecipeContext::default();
    let part = RecipePart { recipe: "segment-threshold".into(), slots: BTreeMap::new() };
    let result =
        serde_json::json!([{"segmentation": "vtkMRMLSegmentationNode1", "segment": "vtkMRMLSegmentationNode1-Bone"}]);
    context.push(&[part], &result);
    let slots =
        |scene: &SceneSnapshot| program(answer("show it in 3D", scene, None, &context, &book)).2[0].slots.clone();
    assert_eq!(slots(&there)["segment"], "Bone");
    there.nodes.remove(0);
    assert_eq!(slots(&there)["segment"], "Lung");
}

/// Protects Slicer from names that are code: they stay inside a literal, whatever is done with them.
#[test]
fn hostile_names_do_not_become_code() {
    let book = book();
    let hostile = "x\"); import os; os.system(\"boom\")#";
    let there = scene(vec![NodeSummary {
        id: "vtkMRMLModelNode1\"+evil()+\"".into(),
        ..node("", hostile, "vtkMRMLModelNode")
    }]);
    for message in ["delete the model", "hide the model", "rename the model to '{{node}} \"\"\"; evil()'"] {
        let (_, code, _) = program(ask(message, &there, &book));
        assert!(!code.contains("\"+evil()+\""), "{message}: {code}");
        assert!(code.contains("vtkMRMLModelNode1\\\"+evil()+\\\""), "{message}: {code}");
    }
}

/// Protects an empty scene from programs that would fail in it: the question says what is missing.
#[test]
fn an_empty_scene_is_explained() {
    let book = book();
    let (question, _) = pending(ask("segment the bone", &SceneSnapshot::default(), &book));
    assert!(question.contains("volume"), "{question}");
    assert!(matches!(
        ask("Segment the liver with TotalSegmentator", &SceneSnapshot::default(), &book),
        RecipeAnswer::NoMatch { .. }
    ));
}

/// Protects the help that a message without a recipe gets.
#[test]
fn no_match_shows_three_that_work() {
    let book = book();
    let RecipeAnswer::NoMatch { nearest } =
        ask("reconstruct the sinogram volume", &scene(vec![volume(1, "CT")]), &book)
    else {
        panic!("no recipe reconstructs sinograms");
    };
    assert_eq!(nearest.len(), 3);
    assert!(nearest.iter().all(|(title, example)| !title.is_empty() && !example.contains(['{', '}'])), "{nearest:?}");
}

/// Protects the same message in the same scene from two different programs.
#[test]
fn the_same_message_gives_the_same_program() {
    let there = scene(vec![volume(1, "CT"), segmentation("vtkMRMLSegmentationNode1", "S", &["Bone"])]);
    let message = "smooth the bone by 3 mm, make it red and show it in 3D";
    assert_eq!(ask(message, &there, &book()), ask(message, &there, &book()));
}

proptest::proptest! {
    /// Protects the turn from any text: whatever is typed, the provider answers.
    #[test]
    fn any_text_is_answered(message in "(\\PC|segment|bone|show|to|called|and|,|\\(|1|-2,5|\"){0,12}") {
        let book = shared_book();
        let there = scene(vec![volume(1, "CT"), segmentation("vtkMRMLSegmentationNode1", "S", &["Bone"])]);
        let found = ask(&message, &there, book);
        if let RecipeAnswer::Ask { pending, .. } = found {
            answer(&message, &there, Some(&pending), &RecipeContext::default(), book);
        }
    }
}

fn shared_book() -> &'static RecipeBook {
    static BOOK: std::sync::OnceLock<RecipeBook> = std::sync::OnceLock::new();
    BOOK.get_or_init(book)
}
