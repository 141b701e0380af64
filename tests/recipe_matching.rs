//! Matching without Slicer: every wording must find its recipe, with the right slots, or be turned away.
//!
//! Three sources of wordings: the phrasings of the recipes themselves, the cases that are run against Slicer
//! (`tests/recipes/cases.toml`), and wordings that no recipe lists (`tests/recipes/wordings.toml`).

use std::collections::BTreeMap;

use serde::Deserialize;
use slicer_ai_agent::agent::recipes::{RecipeAnswer, RecipeBook, RecipeContext, answer};
use slicer_ai_agent::knowledge::{Recipe, Slot, SlotKind};
use slicer_ai_agent::slicer::{NodeContent, NodeSummary, SceneSnapshot, SegmentSummary};

fn book() -> RecipeBook {
    let (book, errors) = RecipeBook::open(None).expect("an index in memory");
    assert!(errors.is_empty(), "recipes with mistakes: {errors:?}");
    book
}

fn node(id: &str, name: &str, class: &str) -> NodeSummary {
    NodeSummary { id: id.into(), name: name.into(), class: class.into(), ..NodeSummary::default() }
}

fn segment(id: &str, name: &str) -> SegmentSummary {
    SegmentSummary { id: id.into(), name: name.into(), voxels: Some(100), closed_surface: false }
}

/// A scene with one node of each kind, two volumes (the CT is selected) and two segments.
fn full_scene() -> SceneSnapshot {
    let mut segmentation = node("vtkMRMLSegmentationNode1", "CTChest bone", "vtkMRMLSegmentationNode");
    segmentation.content = NodeContent {
        segments: Some(vec![segment("S1", "Bone"), segment("S2", "Left lung")]),
        ..NodeContent::default()
    };
    SceneSnapshot {
        selected_volume: Some("vtkMRMLScalarVolumeNode2".into()),
        nodes: vec![
            node("vtkMRMLScalarVolumeNode1", "MRHead", "vtkMRMLScalarVolumeNode"),
            node("vtkMRMLScalarVolumeNode2", "CTChest", "vtkMRMLScalarVolumeNode"),
            node("vtkMRMLModelNode4", "Skull surface", "vtkMRMLModelNode"),
            segmentation,
            node("vtkMRMLMarkupsFiducialNode1", "Targets", "vtkMRMLMarkupsFiducialNode"),
            node("vtkMRMLMarkupsLineNode1", "L", "vtkMRMLMarkupsLineNode"),
            node("vtkMRMLMarkupsAngleNode1", "Cobb", "vtkMRMLMarkupsAngleNode"),
            node("vtkMRMLMarkupsROINode1", "Crop box", "vtkMRMLMarkupsROINode"),
            node("vtkMRMLLinearTransformNode4", "Tilt", "vtkMRMLLinearTransformNode"),
            node("vtkMRMLTableNode1", "Results", "vtkMRMLTableNode"),
        ],
        ..SceneSnapshot::default()
    }
}

/// What a person would write for a slot.
fn example(slot: &Slot) -> String {
    match slot.kind {
        SlotKind::Node => match slot.class.as_deref().unwrap_or_default() {
            "vtkMRMLScalarVolumeNode" | "vtkMRMLVolumeNode" => "CTChest".into(),
            "vtkMRMLSegmentationNode" => "CTChest bone".into(),
            "vtkMRMLTransformNode" | "vtkMRMLLinearTransformNode" => "Tilt".into(),
            "vtkMRMLMarkupsROINode" => "Crop box".into(),
            "vtkMRMLMarkupsAngleNode" => "Cobb".into(),
            "vtkMRMLMarkupsNode" | "vtkMRMLMarkupsFiducialNode" => "Targets".into(),
            _ => "Skull surface".into(),
        },
        SlotKind::Segment => "Bone".into(),
        SlotKind::Number | SlotKind::Integer => match (slot.name.as_str(), slot.minimum, slot.maximum) {
            ("minimum", ..) => "150".into(),
            ("maximum", ..) => "400".into(),
            (_, Some(low), Some(high)) if (low..=high).contains(&20.0) => "20".into(),
            (_, Some(low), Some(high)) if (low..=high).contains(&2.0) => "2".into(),
            _ => "0.5".into(),
        },
        SlotKind::Text => "Alpha beta".into(),
        SlotKind::Choice | SlotKind::Sample | SlotKind::Layout if !slot.options.is_empty() => {
            slot.options.values().next().and_then(|words| words.first()).cloned().unwrap_or_default()
        }
        SlotKind::Layout => "four-up".into(),
        SlotKind::Flag => "on".into(),
        SlotKind::Color => "orange".into(),
        SlotKind::Point => "(10, 20, -30)".into(),
        SlotKind::Points => "(10, 20, -30) and (1, 2, 3)".into(),
        SlotKind::View => "sagittal".into(),
        SlotKind::Axis => "anterior".into(),
        SlotKind::Orientation => "coronal".into(),
        SlotKind::Choice | SlotKind::Sample => String::new(),
    }
}

fn filled(recipe: &Recipe, phrasing: &str) -> String {
    recipe
        .slots
        .iter()
        .fold(phrasing.to_owned(), |text, slot| text.replace(&format!("{{{}}}", slot.name), &example(slot)))
}

/// The recipes of an answer, and the slots of its parts.
fn outcome(answer: &RecipeAnswer) -> (Vec<String>, Vec<BTreeMap<String, String>>, String) {
    match answer {
        RecipeAnswer::Program { parts, .. } => (
            parts.iter().map(|part| part.recipe.clone()).collect(),
            parts.iter().map(|part| part.slots.clone()).collect(),
            String::new(),
        ),
        RecipeAnswer::Ask { recipe, slot, question, .. } => {
            (vec![recipe.clone()], Vec::new(), format!("{slot}: {question}"))
        }
        RecipeAnswer::NoMatch { .. } => (Vec::new(), Vec::new(), "no match".into()),
    }
}

/// Whether a program is Python without a mistake in its grammar.
fn is_python(code: &str) -> bool {
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&tree_sitter_python::LANGUAGE.into()).expect("the grammar suits the parser");
    parser.parse(code, None).is_some_and(|tree| !tree.root_node().has_error())
}

/// Protects each recipe from being hidden by another: its own phrasings must find it, and one slot of each kind is read.
#[test]
fn recipes_are_found_by_their_own_phrasings() {
    let book = book();
    let scene = full_scene();
    let (mut good, mut all) = (0, 0);
    let mut wrong = Vec::new();
    for recipe in book.recipes() {
        for phrasing in &recipe.phrasings {
            let message = filled(recipe, phrasing);
            let found = answer(&message, &scene, None, &RecipeContext::default(), &book);
            if let RecipeAnswer::Program { code, plan, .. } = &found {
                assert!(is_python(code), "{message}:\n{code}");
                assert!(!plan.steps.is_empty() && !plan.task_summary.contains("{{"), "{message}: {plan:?}");
            }
            let (recipes, _, note) = outcome(&found);
            all += 1;
            if recipes == [recipe.id.clone()] {
                good += 1;
            } else {
                wrong.push(format!("{message:60} {} → {recipes:?} {note}", recipe.id));
            }
        }
    }
    println!("{good} of {all} own phrasings");
    wrong.iter().for_each(|line| println!("  {line}"));
    assert!(good * 100 >= all * 97, "{good} of {all}:\n{}", wrong.join("\n"));
}

#[derive(Deserialize)]
struct Wordings {
    #[serde(default)]
    phrase: Vec<Phrase>,
    #[serde(default)]
    nomatch: Vec<NoMatch>,
}

#[derive(Deserialize)]
struct Phrase {
    text: String,
    /// The recipes of the parts.
    recipes: Vec<String>,
    /// Slots of the last part.
    #[serde(default)]
    slots: BTreeMap<String, String>,
    /// The slot that must be asked, if one must.
    ask: Option<String>,
}

#[derive(Deserialize)]
struct NoMatch {
    text: String,
}

/// Protects what the matcher is for: wordings that no recipe lists find their recipe and their values.
#[test]
fn other_wordings_are_understood() {
    let book = book();
    let scene = full_scene();
    let wordings: Wordings = toml::from_str(include_str!("recipes/wordings.toml")).expect("wordings.toml is TOML");
    let (mut good, all) = (0, wordings.phrase.len() + wordings.nomatch.len());
    let mut wrong = Vec::new();
    for phrase in &wordings.phrase {
        let found = answer(&phrase.text, &scene, None, &RecipeContext::default(), &book);
        let (recipes, slots, note) = outcome(&found);
        let asked = matches!(&found, RecipeAnswer::Ask { slot, .. } if phrase.ask.as_ref() == Some(slot));
        let last = slots.last().cloned().unwrap_or_default();
        let same = phrase.slots.iter().all(|(name, value)| last.get(name) == Some(value));
        if (recipes == phrase.recipes && same && phrase.ask.is_none()) || (asked && phrase.recipes.ends_with(&recipes))
        {
            good += 1;
        } else {
            wrong.push(format!(
                "{:60} {:?} {:?} → {recipes:?} {last:?} {note}",
                phrase.text, phrase.recipes, phrase.slots
            ));
        }
    }
    for nomatch in &wordings.nomatch {
        let found = answer(&nomatch.text, &scene, None, &RecipeContext::default(), &book);
        match outcome(&found) {
            (recipes, ..) if recipes.is_empty() => good += 1,
            (recipes, slots, note) => wrong.push(format!("{:60} none → {recipes:?} {slots:?} {note}", nomatch.text)),
        }
    }
    println!("{good} of {all} other wordings");
    wrong.iter().for_each(|line| println!("  {line}"));
    assert!(good * 100 >= all * 95, "{good} of {all}:\n{}", wrong.join("\n"));
}

#[derive(Deserialize)]
struct Cases {
    #[serde(default)]
    case: Vec<Case>,
    #[serde(default)]
    phrase: Vec<CasePhrase>,
    #[serde(default)]
    nomatch: Vec<CasePhrase>,
}

#[derive(Deserialize)]
struct Case {
    recipe: Option<String>,
    recipes: Option<Vec<String>>,
    #[serde(default)]
    setup: Vec<String>,
    request: String,
    #[serde(default)]
    slots: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
struct CasePhrase {
    request: String,
    recipe: Option<String>,
}

/// What the recipes that make things would leave in the scene; enough for the names that later requests use.
fn pretend(scene: &mut SceneSnapshot, context: &mut RecipeContext, found: &RecipeAnswer, book: &RecipeBook) {
    let RecipeAnswer::Program { parts, .. } = found else { panic!("a set-up must run: {found:?}") };
    let mut results = Vec::new();
    for part in parts {
        let recipe = book.recipe(&part.recipe).expect("a recipe of the book");
        let slot = |name: &str| part.slots.get(name).cloned().unwrap_or_default();
        let made: Vec<(&str, &str, String)> = match part.recipe.as_str() {
            "load-sample-data" => vec![("volume", "vtkMRMLScalarVolumeNode", slot("sample"))],
            "segment-threshold" => {
                vec![("segmentation", "vtkMRMLSegmentationNode", format!("{} {}", slot("volume"), slot("structure")))]
            }
            "segment-to-model" => vec![("model", "vtkMRMLModelNode", format!("{} model", slot("segment")))],
            "move-node" => vec![("transform", "vtkMRMLLinearTransformNode", format!("{} transform", slot("node")))],
            _ => {
                let of = |key: &str| recipe.provides.get(key).map(String::as_str);
                let name = match of("markups").or(of("roi")) {
                    Some("vtkMRMLMarkupsFiducialNode") => "F",
                    Some("vtkMRMLMarkupsLineNode") => "L",
                    Some("vtkMRMLMarkupsAngleNode") => "A",
                    _ => "R",
                };
                ["markups", "roi"].iter().filter_map(|key| Some((*key, of(key)?, name.to_owned()))).collect()
            }
        };
        let mut result = serde_json::Map::new();
        for (key, class, name) in made {
            let id = format!("{class}{}", scene.nodes.len() + 1);
            // Slicer makes default names unique.
            let same = scene
                .nodes
                .iter()
                .filter(|node| node.name == name || node.name.starts_with(&format!("{name}_")))
                .count();
            let name = if same > 0 { format!("{name}_{same}") } else { name };
            let mut new = node(&id, &name, class);
            if key == "segmentation" {
                let name = slot("structure");
                let name = name[..1].to_uppercase() + &name[1..];
                new.content.segments = Some(vec![segment("Segment_1", &name)]);
                result.insert("segment".into(), "Segment_1".into());
            }
            if key == "volume" {
                scene.selected_volume = Some(id.clone());
            }
            scene.nodes.push(new);
            result.insert(key.into(), id.into());
        }
        results.push(serde_json::Value::Object(result));
    }
    context.push(parts, &serde_json::Value::Array(results));
}

/// A slot of a case as the provider words it.
fn worded(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Boolean(true) => "on".into(),
        toml::Value::Boolean(false) => "off".into(),
        toml::Value::Array(items) if items.iter().all(toml::Value::is_array) => {
            items.iter().map(worded).collect::<Vec<_>>().join(", ")
        }
        toml::Value::Array(items) => format!("({})", items.iter().map(worded).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// Protects the cases that run against Slicer from failing for the wrong reason: their requests are understood here.
#[test]
fn the_cases_are_understood() {
    let book = book();
    let cases: Cases = toml::from_str(include_str!("recipes/cases.toml")).expect("cases.toml is TOML");
    let (mut good, all) = (0, cases.case.len() + cases.phrase.len() + cases.nomatch.len());
    let mut wrong = Vec::new();
    for case in &cases.case {
        let mut scene = SceneSnapshot::default();
        let mut context = RecipeContext::default();
        for setup in &case.setup {
            let found = answer(setup, &scene, None, &context, &book);
            pretend(&mut scene, &mut context, &found, &book);
        }
        let request = case.request.replace("{tmp}", "/tmp/folder");
        let (recipes, slots, note) = outcome(&answer(&request, &scene, None, &context, &book));
        let wanted = case.recipes.clone().or(case.recipe.clone().map(|id| vec![id])).unwrap_or_default();
        let has = |name: &str, value: &toml::Value| slots.iter().any(|part| part.get(name) == Some(&worded(value)));
        if recipes == wanted && case.slots.iter().all(|(name, value)| has(name, value)) && note.is_empty() {
            good += 1;
        } else {
            wrong.push(format!("{request:60} {wanted:?} {:?} → {recipes:?} {slots:?} {note}", case.slots));
        }
    }
    let scene = full_scene();
    for phrase in cases.phrase.iter().chain(&cases.nomatch) {
        let (recipes, _, note) = outcome(&answer(&phrase.request, &scene, None, &RecipeContext::default(), &book));
        if recipes == phrase.recipe.iter().cloned().collect::<Vec<_>>() {
            good += 1;
        } else {
            wrong.push(format!("{:60} {:?} → {recipes:?} {note}", phrase.request, phrase.recipe));
        }
    }
    println!("{good} of {all} cases");
    wrong.iter().for_each(|line| println!("  {line}"));
    assert!(good * 100 >= all * 95, "{good} of {all}:\n{}", wrong.join("\n"));
}

/// What the help text offers must work: every whole example in it finds a recipe in a scene that has what it speaks of.
#[test]
fn the_help_text_promises_nothing_that_is_not_understood() {
    let (book, scene) = (book(), full_scene());
    let text = slicer_ai_agent::resources::text("prompts/help.md").unwrap();
    let examples = text.split('"').skip(1).step_by(2).filter(|example| !example.contains('…'));
    let lost: Vec<&str> = examples
        .filter(|example| {
            let said = answer(example, &scene, None, &RecipeContext::default(), &book);
            matches!(said, RecipeAnswer::NoMatch { .. })
        })
        .collect();
    assert!(lost.is_empty(), "not understood: {lost:?}");
}
