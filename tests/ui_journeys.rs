//! What takes a person several steps in the window: to come from no Slicer to a result, to read above while something runs,
//! to set up a server of one's own.

mod ui_support;

use egui::{Key, Modifiers};
use egui_kittest::kittest::Queryable;
use slicer_ai_agent::engine::{
    Command, Event, Finish, KeyOrigin, RestoreReport, RunError, RunReport, StoredTurnEvent, TurnEvent,
};
use ui_support::{
    Bench, CONVERSATION, connected, disconnected, failed_without_slicer, realistic, running, settings_event, stored,
};

fn sent(commands: &[Command]) -> Vec<&str> {
    let texts = commands.iter().filter_map(|command| match command {
        Command::Send { conversation, text } => {
            assert_eq!(conversation, CONVERSATION);
            Some(text.as_str())
        }
        _ => None,
    });
    texts.collect()
}

/// Whoever reads above is not moved by what arrives, and finds the way back; sending goes there by itself.
#[test]
fn reading_above_stays_put_until_something_is_sent() {
    let mut facts = Vec::new();
    for turn in 1..=40 {
        facts.push(TurnEvent::UserMessage { turn, text: format!("question {turn}") });
        facts.push(TurnEvent::TextDelta { text: format!("Answer {turn}.") });
        facts.push(TurnEvent::Finished {
            finish: Finish::Answer,
            error: None,
            timings: Default::default(),
            run_folder: None,
        });
    }
    let mut bench = Bench::new(1000.0, 800.0, false);
    bench.open("Long", facts);
    bench.harness.run_steps(20);
    assert!(bench.harness.query_by_label("Go to the newest").is_none(), "the end is in sight");
    let scroll = |bench: &mut Bench| {
        bench.harness.hover_at(egui::pos2(600.0, 400.0));
        for _ in 0..6 {
            let delta = egui::vec2(0.0, 200.0);
            bench.harness.event(egui::Event::MouseWheel {
                unit: egui::MouseWheelUnit::Point,
                delta,
                modifiers: Modifiers::NONE,
                phase: egui::TouchPhase::Move,
                source: egui::MouseWheelSource::Wheel,
            });
            bench.harness.run_steps(10);
        }
    };
    scroll(&mut bench);
    assert!(bench.harness.query_by_label_contains("question 40").is_none(), "the end is out of sight");
    let event = stored(vec![TurnEvent::UserMessage { turn: 41, text: "from elsewhere".into() }]).remove(0);
    let event = StoredTurnEvent { sequence: 900, ..event };
    bench.tell(Event::Turn { conversation: CONVERSATION.into(), event });
    bench.harness.run_steps(10);
    assert!(bench.harness.query_by_label_contains("from elsewhere").is_none(), "the text stays under the eye");
    bench.harness.get_by_label("Go to the newest, still running").click();
    bench.harness.run_steps(10);
    bench.harness.get_by_label_contains("from elsewhere");
    scroll(&mut bench);
    assert!(bench.harness.query_by_label_contains("from elsewhere").is_none());
    bench.harness.get_by_label("Message").type_text("next");
    bench.harness.run_steps(2);
    bench.harness.key_press(Key::Enter);
    bench.harness.run_steps(10);
    bench.harness.get_by_label_contains("from elsewhere");
}

/// A server of one's own may ask for a key; without a field for it there would be no way to give one.
#[test]
fn a_server_that_needs_no_key_can_be_given_one() {
    let mut bench = Bench::new(1000.0, 800.0, false);
    let Event::Settings { settings, providers, .. } = settings_event(false, "ollama") else { panic!("settings") };
    bench.tell(Event::Settings { settings, providers, key: KeyOrigin::NotNeeded });
    bench.open("", Vec::new());
    bench.harness.get_by_label("Settings").click();
    bench.settle();
    bench.take_commands();
    bench.harness.get_by_label("No key is needed.");
    bench.harness.get_by_label("API key to save").click();
    bench.harness.run_steps(1);
    bench.harness.get_by_label("API key to save").type_text("mine");
    bench.harness.run_steps(2);
    bench.harness.get_by_label("Save").click();
    bench.harness.run_steps(2);
    assert!(matches!(&bench.take_commands()[..], [Command::SetKey { provider, .. }] if provider == "ollama"));
}

/// From "no Slicer" to a scene that changes, with one press.
#[test]
fn a_request_that_failed_without_slicer_goes_on_when_the_practice_slicer_is_there() {
    let mut bench = Bench::new(1000.0, 800.0, false);
    bench.tell(Event::Slicer { status: disconnected() });
    bench.open("Load", failed_without_slicer());
    bench.take_commands();
    bench.harness.get_by_label("Start the practice Slicer").click();
    bench.settle();
    assert!(matches!(bench.take_commands()[..], [Command::StartPractice]));
    bench.tell(Event::Slicer { status: disconnected() });
    bench.settle();
    assert!(bench.take_commands().is_empty(), "nothing is sent before Slicer answers");
    bench.tell(Event::Progress { what: "Practice Slicer".into(), detail: String::new(), done: true });
    bench.tell(Event::Slicer { status: connected() });
    bench.settle();
    assert_eq!(sent(&bench.take_commands()), ["Load the sample chest CT"]);
    bench.tell(Event::Slicer { status: connected() });
    bench.settle();
    assert!(bench.take_commands().is_empty(), "it is sent once");
}

/// What a person presses must stay under the pointer, also at the end of the list.
#[test]
fn a_card_that_is_opened_stays_where_it_was_pressed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bench = Bench::new(1000.0, 900.0, false);
    bench.open("Bones", realistic(folder.path()));
    let place = |bench: &Bench| bench.harness.get_by_label_contains("Plan: ").rect().top();
    let before = place(&bench);
    bench.harness.get_by_label_contains("Plan: ").click();
    bench.settle();
    bench.harness.get_by_label_contains("Risk:");
    assert!((place(&bench) - before).abs() < 2.0, "it moved from {before} to {}", place(&bench));
}

/// The copy button that comes with the pointer must not move what stands below the code.
#[test]
fn the_buttons_below_code_stay_there_when_the_pointer_is_over_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let facts: Vec<_> = realistic(folder.path()).into_iter().take(11).collect();
    let mut bench = Bench::new(800.0, 1200.0, false);
    bench.open("Load", facts);
    bench.harness.get_by_label_contains("Code: Python").click();
    bench.settle();
    let before = bench.harness.get_by_label("Run again").rect();
    bench.harness.hover_at(before.center_top() - egui::vec2(0.0, 30.0));
    bench.settle();
    bench.harness.get_by_label("Copy this code");
    let after = bench.harness.get_by_label("Run again").rect();
    assert_eq!(before, after);
}

/// A stop drops the queue in the engine; what a person typed must not be lost with it.
#[test]
fn a_stop_gives_queued_messages_back() {
    let mut bench = Bench::new(1000.0, 800.0, false);
    bench.open("Bones", running());
    bench.tell(Event::Queue { conversation: CONVERSATION.into(), queued: vec!["one".into(), "two".into()] });
    bench.settle();
    bench.harness.get_by_label("Stop").click();
    bench.settle();
    assert!(bench.harness.query_by_label("Queued: one").is_none());
    assert_eq!(bench.harness.state().state.composer, "one\ntwo");
}

/// Who stops a run asked for it: that is no failure and needs no traceback.
#[test]
fn a_stopped_run_is_told_calmly() {
    let error = RunError { kind: "Stopped".into(), message: "the run was stopped".into(), ..RunError::default() };
    let restored = RestoreReport { complete: true, ..RestoreReport::default() };
    let report = RunReport { run: "r".into(), error: Some(error), restored: Some(restored), ..RunReport::default() };
    let mut facts = running();
    facts.push(TurnEvent::RunFinished { report: Box::new(report) });
    facts.push(TurnEvent::Finished {
        finish: Finish::Stopped,
        error: None,
        timings: Default::default(),
        run_folder: None,
    });
    let mut bench = Bench::new(1000.0, 800.0, false);
    bench.open("Bones", facts);
    bench.harness.get_by_label_contains("Stopped: The scene was put back.");
    bench.harness.get_by_label("You stopped this turn.");
    assert!(bench.harness.query_by_label_contains("Did not work").is_none());
}
