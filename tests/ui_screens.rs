//! Every screen of the window, in both themes and at both widths. What is checked are the names and texts that a person
//! (or a screen reader) finds there; `UI_PICTURES=1` also saves each screen as a picture for people to look at.

mod ui_support;

use egui_kittest::kittest::Queryable;
use slicer_ai_agent::engine::{ConnectionReport, Event};
use ui_support::{
    Bench, disconnected, failed_run, failed_without_slicer, realistic, running, scene, settings_event,
    waiting_for_permission,
};

const SIZES: [(&str, f32, f32); 2] = [("wide", 1600.0, 1000.0), ("narrow", 420.0, 900.0)];

fn each(mut screen: impl FnMut(&mut Bench, &str)) {
    for (size, width, height) in SIZES {
        for dark in [false, true] {
            let mut bench = Bench::new(width, height, dark);
            let suffix = format!("{size}_{}", if dark { "dark" } else { "light" });
            screen(&mut bench, &suffix);
        }
    }
}

#[test]
fn a_conversation_shows_answer_and_picture_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let facts = realistic(folder.path());
    each(|bench, suffix| {
        bench.tell(Event::Scene { snapshot: Box::new(scene()) });
        bench.open("Bone segmentation of the chest CT", facts.clone());
        bench.harness.get_by_label_contains("Screenshot: Slicer after the run: bone in 3D");
        bench.harness.get_by_label_contains("Done: 1 added, 1 changed, 1 view change · 3 of 3 checks passed");
        bench.harness.get_by_label_contains("Correcting (attempt 2 of 5)");
        assert!(bench.harness.query_all_by_label("Copy the answer").count() >= 1);
        // What is folded away is not on the screen.
        assert!(bench.harness.query_by_label_contains("Did not work").is_none());
        bench.picture(&format!("conversation_{suffix}"));
    });
}

#[test]
fn an_opened_plan_and_code_show_everything() {
    let folder = tempfile::tempdir().expect("a folder");
    let facts: Vec<_> = realistic(folder.path()).into_iter().skip(11).collect();
    let mut bench = Bench::new(1000.0, 1900.0, false);
    bench.open("Bone segmentation", facts);
    for label in ["Plan:", "Code:", "Done:", "Correcting"] {
        bench.harness.get_by_label_contains(label).click();
        bench.harness.run_steps(3);
    }
    bench.settle();
    bench.harness.get_by_label("Run again");
    bench.harness.get_by_label_contains("Seen in recipes/segment-threshold.md:12");
    bench.harness.get_by_label_contains("It can be seen in 3D (passed)");
    bench.harness.get_by_label_contains("The threshold suits this scanner (not checked)");
    bench.harness.get_by_label_contains("Did not work: AttributeError");
    bench.picture("opened_cards");
}

#[test]
fn an_empty_conversation_says_what_is_ready_and_what_to_try() {
    each(|bench, suffix| {
        bench.tell(settings_event(suffix.ends_with("dark"), "recipes"));
        bench.tell(Event::Slicer { status: disconnected() });
        bench.open("", Vec::new());
        bench.harness.get_by_label("Load the sample chest CT");
        bench.harness.get_by_label("Show the chest CT with volume rendering");
        bench.harness.get_by_label("Start the practice Slicer");
        bench.harness.get_by_label(if suffix.starts_with("wide") {
            "Slicer: Slicer not running"
        } else {
            "Slicer: No Slicer"
        });
        bench.picture(&format!("empty_{suffix}"));
    });
}

#[test]
fn a_permission_question_has_four_answers() {
    each(|bench, suffix| {
        bench.open("Load the sample chest CT", waiting_for_permission());
        bench.harness.get_by_label_contains("This code wants to download sample data");
        bench.harness.get_by_label_contains("What for: ");
        for answer in ["Allow once", "For this conversation", "Always", "Deny"] {
            bench.harness.get_by_label(answer);
        }
        bench.picture(&format!("permission_{suffix}"));
    });
}

#[test]
fn a_running_turn_shows_stage_time_and_stop() {
    each(|bench, suffix| {
        bench.open("Bone segmentation", running());
        bench.harness.get_by_label_contains("Executor: running (attempt 1 of 5)…");
        bench.harness.get_by_label("Stop");
        bench.picture(&format!("running_{suffix}"));
    });
}

#[test]
fn an_error_says_what_to_do() {
    each(|bench, suffix| {
        bench.tell(Event::Slicer { status: disconnected() });
        bench.open("Load the sample chest CT", failed_without_slicer());
        bench.harness.get_by_label("Retry");
        bench.harness.get_by_label("Start the practice Slicer");
        bench.harness.get_by_label_contains("Slicer does not answer");
        bench.picture(&format!("error_{suffix}"));
    });
    let mut bench = Bench::new(1000.0, 800.0, true);
    bench.open("Bone segmentation", failed_run());
    bench.harness.get_by_label_contains("Did not work: AttributeError");
    bench.harness.get_by_label_contains("could not be carried out in 5 attempts");
    bench.picture("failed_run");
}

#[test]
fn the_settings_dialog_fits_every_window() {
    each(|bench, suffix| {
        bench.open("", Vec::new());
        bench.harness.get_by_label("Settings").click();
        bench.settle();
        bench.harness.get_by_label("Test").click();
        bench.harness.run_steps(2);
        let report = ConnectionReport {
            ok: true,
            ms: 412.0,
            model_available: Some(true),
            vision: Some(true),
            tools: Some(true),
            error: None,
        };
        bench.tell(Event::TestFinished { report });
        bench.settle();
        bench.harness.get_by_label_contains("Connected, 412 ms, model available");
        bench.harness.get_by_label("API key to save");
        bench.picture(&format!("settings_{suffix}"));
    });
}

#[test]
fn every_page_of_the_settings_is_there() {
    let mut bench = Bench::new(1000.0, 800.0, false);
    bench.open("", Vec::new());
    bench.harness.get_by_label("Settings").click();
    bench.settle();
    for (page, proof) in [
        ("Slicer", "Largest number of attempts"),
        ("Safety", "Remove SampleData"),
        ("Appearance", "Dark"),
        ("About", "Copy version"),
    ] {
        bench.harness.get_by_role_and_label(egui::accesskit::Role::Button, page).click();
        bench.settle();
        bench.harness.get_by_label(proof);
        bench.picture(&format!("settings_page_{}", page.to_lowercase()));
    }
}

#[test]
fn the_scene_pane_marks_what_the_last_run_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let facts = realistic(folder.path());
    let mut bench = Bench::new(1400.0, 900.0, false);
    bench.tell(Event::Scene { snapshot: Box::new(scene()) });
    bench.open("Bone segmentation of the chest CT", facts);
    bench.harness.get_by_label("Scene").click();
    bench.settle();
    bench.harness.get_by_label("Bone segmentation");
    bench.harness.get_by_label("new");
    bench.harness.get_by_label("changed");
    bench.picture("scene_pane");
}

#[test]
fn the_sheet_of_keys_opens_with_f1() {
    let mut bench = Bench::new(700.0, 800.0, true);
    bench.open("", Vec::new());
    bench.harness.key_press(egui::Key::F1);
    bench.settle();
    bench.harness.get_by_label_contains("Undo the last run");
    bench.picture("keys");
}
