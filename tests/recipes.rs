//! Every built-in recipe, run as a person would ask for it: through the engine, the bridge and the guarded run, on the
//! practice Slicer, and judged from the scene by code that computes on its own.
//!
//! What is protected: that each recipe does what it says, with the numbers right; that it asks exactly where the policy
//! asks; that its checks hold; that no recipe goes without a case.

#[path = "support/driver.rs"]
mod driver;
#[path = "support/practice.rs"]
mod practice;

use std::collections::BTreeSet;

use serde::Deserialize;
use slicer_ai_agent::bridge::WebServer;
use slicer_ai_agent::engine::{Finish, Settings};
use slicer_ai_agent::resources;

#[derive(Debug, Clone, Deserialize)]
struct Case {
    #[serde(default)]
    recipe: Option<String>,
    #[serde(default)]
    recipes: Vec<String>,
    #[serde(default)]
    setup: Vec<String>,
    request: String,
    #[serde(default)]
    asks: bool,
    check: String,
    #[serde(default)]
    answer: Vec<String>,
}

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

fn cases() -> Vec<Case> {
    let cases: Cases = toml::from_str(include_str!("recipes/cases.toml")).unwrap();
    cases.case
}

/// Judges the scene; the answer is at hand for what only the answer can show.
async fn judge(server: &WebServer, case: &Case, answer: &str, folder: &str) -> Result<(), String> {
    let code = format!(
        "import slicer, vtk, numpy as np, json\nanswer = json.loads({})\ntmp = json.loads({})\n__execResult = None\n{}",
        serde_json::to_string(&serde_json::to_string(answer).unwrap()).unwrap(),
        serde_json::to_string(&serde_json::to_string(folder).unwrap()).unwrap(),
        case.check
    );
    match server.exec(&code, None).await {
        Ok(serde_json::Value::Bool(true)) => Ok(()),
        Ok(other) => Err(format!("the scene says: {other}")),
        Err(error) => Err(format!("the check failed: {error}")),
    }
}

async fn run_case(driver: &mut driver::Driver, server: &WebServer, case: &Case) -> Result<(), String> {
    let reset = "import slicer\nslicer.mrmlScene.Clear(0)\nslicer.app.layoutManager().setLayout(3)\n__execResult = 1";
    server.exec(reset, None).await.map_err(|error| error.to_string())?;
    driver.new_conversation().await;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_string_lossy().into_owned();
    for request in &case.setup {
        let turn = driver.turn(&request.replace("{tmp}", &folder)).await;
        if turn.record.finish != Some(Finish::Ran) {
            return Err(format!("the set-up “{request}” did not run: {} {:?}", turn.record.answer, turn.record.error));
        }
    }
    let turn = driver.turn(&case.request.replace("{tmp}", &folder)).await;
    let record = &turn.record;
    if record.finish != Some(Finish::Ran) {
        return Err(format!("it did not run: {} {:?}", record.answer, record.error));
    }
    if case.asks == turn.asked.is_empty() {
        return Err(format!("asked: {:?}, expected to ask: {}", turn.asked, case.asks));
    }
    for word in &case.answer {
        if !record.answer.contains(word) {
            return Err(format!("the answer lacks “{word}”: {}", record.answer));
        }
    }
    let touched = &record.runs.last().unwrap().touched;
    if !touched.is_empty() {
        return Err(format!("it leans on names that the practice Slicer only pretends to have: {touched:?}"));
    }
    judge(server, case, &record.answer, &folder).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_recipe_does_what_it_says() {
    let process = practice::start();
    let data = tempfile::tempdir().unwrap();
    let mut driver = driver::Driver::start(data.path(), &process.url, Settings::default()).await;
    let server = WebServer::new(&process.url, None).unwrap();
    let only = std::env::var("RECIPE").unwrap_or_default();
    let cases: Vec<Case> =
        cases().into_iter().filter(|case| only.is_empty() || case.recipe.as_deref() == Some(&only)).collect();
    let mut failed = Vec::new();
    for case in &cases {
        if let Err(why) = run_case(&mut driver, &server, case).await {
            failed.push(format!(
                "{:?} “{}”: {why}",
                case.recipe.as_ref().unwrap_or(&case.recipes.join(" + ")),
                case.request
            ));
        }
    }
    println!("{} of {} recipe cases passed", cases.len() - failed.len(), cases.len());
    assert!(failed.is_empty(), "{} of {} failed:\n{}", failed.len(), cases.len(), failed.join("\n"));
}

/// A recipe without a case would be a claim that nobody checks.
#[test]
fn every_recipe_has_a_case() {
    let cases = cases();
    let covered: BTreeSet<&str> =
        cases.iter().flat_map(|case| case.recipe.iter().chain(&case.recipes)).map(String::as_str).collect();
    let files = resources::folder("recipes").unwrap().files();
    let ids: Vec<&str> = files
        .filter(|file| file.path().extension().is_some_and(|ending| ending == "md"))
        .map(|file| file.path().file_stem().unwrap().to_str().unwrap())
        .collect();
    assert!(ids.len() >= 25, "only {} recipes", ids.len());
    let missing: Vec<&&str> = ids.iter().filter(|id| !covered.contains(**id)).collect();
    assert!(missing.is_empty(), "recipes without a case: {missing:?}");
}
