//! What a person does in the window, by the names of the controls, and the commands that reach the engine.

mod ui_support;

use egui::{Key, Modifiers};
use egui_kittest::kittest::Queryable;
use slicer_ai_agent::engine::{
    Command, ConnectionReport, Decision, Event, KeyOrigin, Problem, Secret, SlicerStatus, TurnEvent,
};
use slicer_ai_agent::ui::EXAMPLES;
use ui_support::{
    Bench, CONVERSATION, bone_report, connected, conversations, four_up, providers, realistic, running, settings_event,
    stored, waiting_for_permission,
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

#[test]
fn the_window_asks_for_what_it_shows_first() {
    let mut bench = Bench::bare(1000.0, 700.0, false);
    let commands = bench.take_commands();
    assert!(matches!(commands[..], [Command::ListConversations, Command::NewConversation]), "{commands:?}");
}

#[test]
fn typing_and_enter_sends() {
    let mut bench = Bench::new(1000.0, 700.0, false);
    bench.open("", Vec::new());
    bench.take_commands();
    bench.harness.get_by_label("Message").type_text("load the MR head");
    bench.harness.run_steps(2);
    bench.harness.key_press(Key::Enter);
    bench.harness.run_steps(2);
    assert_eq!(sent(&bench.take_commands()), ["load the MR head"]);
    assert_eq!(bench.harness.state().state.composer, "", "the composer is empty again");
}

#[test]
fn shift_enter_breaks_the_line_and_the_send_key_can_be_changed() {
    let mut bench = Bench::new(1000.0, 700.0, false);
    bench.open("", Vec::new());
    bench.take_commands();
    bench.harness.get_by_label("Message").type_text("one");
    bench.harness.run_steps(2);
    bench.harness.key_press_modifiers(Modifiers::SHIFT, Key::Enter);
    bench.harness.run_steps(2);
    assert!(sent(&bench.take_commands()).is_empty());
    assert_eq!(bench.harness.state().state.composer, "one\n");
    bench.harness.state_mut().state.settings.appearance.enter_sends = false;
    bench.harness.key_press(Key::Enter);
    bench.harness.run_steps(2);
    assert!(sent(&bench.take_commands()).is_empty(), "Enter only breaks the line now");
    bench.harness.key_press_modifiers(Modifiers::COMMAND, Key::Enter);
    bench.harness.run_steps(2);
    assert_eq!(sent(&bench.take_commands()), ["one"]);
}

#[test]
fn the_send_button_and_the_examples_send() {
    let mut bench = Bench::new(1000.0, 800.0, false);
    bench.open("", Vec::new());
    bench.take_commands();
    bench.harness.get_by_label("Message").type_text("hello");
    bench.harness.run_steps(2);
    bench.harness.get_by_label("Send").click();
    bench.harness.run_steps(2);
    assert_eq!(sent(&bench.take_commands()), ["hello"]);
    let mut bench = Bench::new(1000.0, 800.0, false);
    bench.open("", Vec::new());
    bench.take_commands();
    bench.harness.get_by_label(EXAMPLES[1]).click();
    bench.harness.run_steps(2);
    assert_eq!(sent(&bench.take_commands()), [EXAMPLES[1]]);
}

#[test]
fn a_first_message_waits_for_its_conversation() {
    let mut bench = Bench::with_message(1000.0, 700.0, false, Some("load the CT".into()));
    assert!(sent(&bench.take_commands()).is_empty());
    bench.open("", Vec::new());
    assert_eq!(sent(&bench.take_commands()), ["load the CT"]);
    // The turn may have to wait for Slicer; the message is seen and can be stopped meanwhile.
    bench.harness.get_by_label("load the CT");
    bench.harness.get_by_label_contains("Status: Starting…");
    bench.harness.get_by_label("Stop");
    assert!(bench.harness.query_by_label(EXAMPLES[0]).is_none(), "the first sight has gone");
    let event = stored(vec![TurnEvent::UserMessage { turn: 1, text: "load the CT".into() }]).remove(0);
    bench.tell(Event::Turn { conversation: CONVERSATION.into(), event });
    bench.settle();
    assert_eq!(bench.harness.query_all_by_label("load the CT").count(), 1, "it does not stand there twice");
}

#[test]
fn a_permission_question_is_answered_with_the_mouse() {
    for (label, wanted) in [
        ("Allow once", Decision::AllowOnce),
        ("For this conversation", Decision::AllowConversation),
        ("Always", Decision::AllowAlways),
        ("Deny", Decision::Deny),
    ] {
        let mut bench = Bench::new(420.0, 800.0, true);
        bench.open("Load", waiting_for_permission());
        bench.take_commands();
        bench.harness.get_by_label(label).click();
        bench.harness.run_steps(2);
        let commands = bench.take_commands();
        let answered = commands.iter().any(|command| {
            matches!(command, Command::Decide { request, decision, .. } if request == "p1" && *decision == wanted)
        });
        assert!(answered, "{label}: {commands:?}");
    }
}

#[test]
fn a_permission_question_is_answered_with_the_keyboard() {
    let mut bench = Bench::new(1000.0, 700.0, false);
    bench.open("Load", waiting_for_permission());
    bench.take_commands();
    for _ in 0..60 {
        if bench.harness.get_by_label("Deny").is_focused() {
            break;
        }
        bench.harness.key_press(Key::Tab);
        bench.harness.run_steps(1);
    }
    assert!(bench.harness.get_by_label("Deny").is_focused(), "Tab reaches the button");
    bench.harness.key_press(Key::Space);
    bench.harness.run_steps(2);
    let commands = bench.take_commands();
    assert!(
        commands.iter().any(|command| matches!(command, Command::Decide { decision: Decision::Deny, .. })),
        "{commands:?}"
    );
}

#[test]
fn stop_and_escape_stop_the_turn() {
    let mut bench = Bench::new(1000.0, 700.0, false);
    bench.open("Bones", running());
    bench.take_commands();
    bench.harness.get_by_label("Stop").click();
    bench.harness.run_steps(2);
    assert!(matches!(bench.take_commands()[..], [Command::Stop { .. }]));
    bench.harness.get_by_label_contains("Status: Stopping…");
    let mut other = Bench::new(1000.0, 700.0, false);
    other.open("Bones", running());
    other.take_commands();
    other.harness.key_press(Key::Escape);
    other.harness.run_steps(2);
    assert!(matches!(other.take_commands()[..], [Command::Stop { .. }]));
}

#[test]
fn messages_are_queued_and_taken_back_while_a_turn_runs() {
    let mut bench = Bench::new(420.0, 800.0, false);
    bench.open("Bones", running());
    bench.take_commands();
    bench.harness.get_by_label("Message").type_text("then the lungs");
    bench.harness.run_steps(2);
    bench.harness.get_by_label("Queue").click();
    bench.harness.run_steps(2);
    assert_eq!(sent(&bench.take_commands()), ["then the lungs"]);
    bench.tell(Event::Queue { conversation: CONVERSATION.into(), queued: vec!["then the lungs".into()] });
    bench.settle();
    bench.harness.get_by_label("Queued: then the lungs");
    bench.picture("queue_narrow");
    bench.harness.get_by_label("Remove queued message 1").click();
    bench.harness.run_steps(2);
    assert!(matches!(bench.take_commands()[..], [Command::Unqueue { position: 0, .. }]));
}

#[test]
fn a_run_is_undone_with_its_button_or_ctrl_z() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bench = Bench::new(1000.0, 900.0, false);
    bench.open("Bones", realistic(folder.path()));
    bench.take_commands();
    bench.harness.get_by_label("Undo").click();
    bench.harness.run_steps(2);
    assert!(matches!(&bench.take_commands()[..], [Command::Undo { run, .. }] if run == "run-3"));
    bench.harness.key_press_modifiers(Modifiers::COMMAND, Key::Z);
    bench.harness.run_steps(2);
    assert!(matches!(&bench.take_commands()[..], [Command::Undo { run, .. }] if run == "run-3"));
    bench.harness.get_by_label("Undoing the last run…");
}

#[test]
fn ctrl_z_in_a_text_is_not_the_undo_of_a_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bench = Bench::new(1000.0, 900.0, false);
    bench.open("Bones", realistic(folder.path()));
    bench.take_commands();
    bench.harness.get_by_label("Message").type_text("half a thought");
    bench.harness.run_steps(2);
    bench.harness.key_press_modifiers(Modifiers::COMMAND, Key::Z);
    bench.harness.run_steps(2);
    assert!(bench.take_commands().is_empty());
}

#[test]
fn the_up_key_recalls_what_was_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bench = Bench::new(1000.0, 900.0, false);
    bench.open("Bones", realistic(folder.path()));
    bench.harness.key_press(Key::ArrowUp);
    bench.harness.run_steps(2);
    assert!(bench.harness.state().state.composer.starts_with("Segment the bone"));
    bench.harness.key_press(Key::ArrowUp);
    bench.harness.run_steps(2);
    assert_eq!(bench.harness.state().state.composer, "Load the sample chest CT");
    bench.harness.key_press(Key::ArrowDown);
    bench.harness.key_press(Key::ArrowDown);
    bench.harness.run_steps(2);
    assert_eq!(bench.harness.state().state.composer, "");
}

#[test]
fn a_model_is_set_up_and_tested() {
    let mut bench = Bench::new(1000.0, 800.0, false);
    bench.open("", Vec::new());
    bench.harness.key_press_modifiers(Modifiers::COMMAND, Key::Comma);
    bench.settle();
    bench.take_commands();
    bench.harness.get_by_label("API key to save").click();
    bench.harness.run_steps(1);
    bench.harness.get_by_label("API key to save").type_text("sk-secret");
    bench.harness.run_steps(2);
    bench.harness.get_by_label("Save").click();
    bench.harness.run_steps(2);
    let commands = bench.take_commands();
    assert!(matches!(&commands[..], [Command::SetKey { provider, key }]
        if provider == "openai" && *key == Secret("sk-secret".into())));
    assert!(!format!("{commands:?}").contains("sk-secret"), "a key is never printed");
    assert!(bench.harness.state().state.key_text.is_empty(), "the key does not stay in the field");
    bench.harness.get_by_label("Test").click();
    bench.harness.run_steps(2);
    assert!(matches!(&bench.take_commands()[..], [Command::TestConnection { key: None, .. }]));
    bench.harness.get_by_label("Asking the provider…");
    let problem = Problem {
        kind: "KeyRefused".into(),
        message: "The provider refused the key.".into(),
        advice: "Check that it was copied whole, and that it belongs to this provider.".into(),
    };
    let report = ConnectionReport { ok: false, error: Some(problem), ..ConnectionReport::default() };
    bench.tell(Event::TestFinished { report });
    bench.settle();
    bench.harness.get_by_label("The provider refused the key.");
    bench.harness.get_by_label("Test").click();
    bench.harness.run_steps(2);
    bench.take_commands();
    bench.harness.get_by_label("Cancel").click();
    bench.harness.run_steps(2);
    assert!(matches!(bench.take_commands()[..], [Command::CancelTest]));
    bench.harness.get_by_label("Test");
    bench.harness.key_press(Key::Escape);
    bench.settle();
    assert!(bench.harness.query_by_label("Test").is_none(), "Esc closes the dialog");
}

#[test]
fn a_changed_setting_is_saved_at_once() {
    let mut bench = Bench::new(1000.0, 800.0, false);
    bench.open("", Vec::new());
    bench.harness.get_by_label("Settings").click();
    bench.settle();
    bench.harness.get_by_role_and_label(egui::accesskit::Role::Button, "Appearance").click();
    bench.settle();
    bench.take_commands();
    bench.harness.get_by_label("Dark").click();
    bench.settle();
    let commands = bench.take_commands();
    assert!(
        matches!(&commands[..], [Command::SaveSettings { settings }] if settings.appearance.theme == "dark"),
        "{commands:?}"
    );
}

#[test]
fn an_echo_does_not_overwrite_what_is_being_typed() {
    let mut bench = Bench::new(1000.0, 800.0, false);
    bench.open("", Vec::new());
    bench.harness.get_by_label("Settings").click();
    bench.settle();
    bench.harness.get_by_label("Model name").click();
    bench.harness.run_steps(1);
    bench.harness.get_by_label("Model name").type_text("-preview");
    bench.harness.run_steps(2);
    bench.tell(settings_event(false, "openai"));
    bench.settle();
    assert!(bench.harness.state().state.draft.model.model.contains("-preview"));
    bench.take_commands();
    bench.harness.key_press(Key::Escape);
    bench.harness.run_steps(2);
    bench.harness.key_press(Key::Escape);
    bench.settle();
    let saved = bench.take_commands().into_iter().any(
        |command| matches!(command, Command::SaveSettings { settings } if settings.model.model.contains("-preview")),
    );
    assert!(saved, "closing saves what was typed");
}

#[test]
fn conversations_are_opened_renamed_pinned_and_deleted_with_undo() {
    let mut bench = Bench::new(1000.0, 800.0, false);
    bench.open("Bones", Vec::new());
    bench.take_commands();
    bench.harness.get_by_label("Volume rendering presets").click();
    bench.harness.run_steps(2);
    assert!(matches!(&bench.take_commands()[..], [Command::OpenConversation { conversation }] if conversation == "e"));
    for (entry, wanted) in [("Pin", "PinConversation"), ("Delete", "DeleteConversation")] {
        bench.harness.get_by_label("Volume rendering presets").click_secondary();
        bench.settle();
        bench.harness.get_by_label(entry).click();
        bench.settle();
        let commands = format!("{:?}", bench.take_commands());
        assert!(commands.contains(wanted) && commands.contains("\"e\""), "{commands}");
    }
    assert!(bench.harness.query_by_label("Volume rendering presets").is_none());
    bench.harness.get_by_label("Undo").click();
    bench.settle();
    assert!(
        matches!(&bench.take_commands()[..], [Command::RestoreConversation { conversation }] if conversation == "e")
    );
    bench.harness.get_by_label("Volume rendering presets").click_secondary();
    bench.settle();
    bench.harness.get_by_label("Rename").click();
    bench.settle();
    bench.harness.get_by_label("New title of the conversation").type_text(" 2");
    bench.harness.run_steps(2);
    bench.harness.key_press(Key::Enter);
    bench.settle();
    assert!(matches!(&bench.take_commands()[..], [Command::RenameConversation { conversation, title }]
        if conversation == "e" && title == "Volume rendering presets 2"));
}

#[test]
fn search_asks_the_engine_and_shows_its_answer() {
    let mut bench = Bench::new(1000.0, 800.0, false);
    bench.open("", Vec::new());
    bench.take_commands();
    bench.harness.key_press_modifiers(Modifiers::COMMAND, Key::K);
    bench.settle();
    bench.harness.get_by_label("Search conversations").type_text("pedicle");
    bench.settle();
    assert!(matches!(&bench.take_commands()[..], [Command::SearchConversations { text }] if text == "pedicle"));
    let found = conversations().into_iter().filter(|one| one.id == "e").collect();
    bench.tell(Event::SearchResults { text: "pedicle".into(), list: found });
    bench.settle();
    bench.harness.get_by_label("Volume rendering presets");
    assert!(bench.harness.query_by_label("Fiducials for the pedicle screws").is_none(), "the engine knows the texts");
}

#[test]
fn in_a_narrow_window_the_sides_lie_over_the_middle() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bench = Bench::new(420.0, 800.0, false);
    bench.open("Bones", realistic(folder.path()));
    assert!(bench.harness.query_by_label("Search conversations").is_none());
    assert!(bench.harness.query_by_label("Close the pane").is_none(), "the pane does not open by itself here");
    bench.harness.get_by_label("Conversations").click();
    bench.settle();
    bench.harness.get_by_label("Search conversations");
    bench.picture("sidebar_over_narrow");
    bench.harness.key_press(Key::Escape);
    bench.settle();
    assert!(bench.harness.query_by_label("Search conversations").is_none(), "Esc closes it");
    bench.harness.get_by_label("Pictures and scene").click();
    bench.settle();
    bench.harness.get_by_label("Take a screenshot");
    bench.picture("pane_over_narrow");
    bench.harness.get_by_label("Close the pane").click();
    bench.settle();
    assert!(bench.harness.query_by_label("Take a screenshot").is_none());
}

#[test]
fn the_pane_opens_once_by_itself_and_takes_pictures() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = four_up(folder.path(), "one", false).display().to_string();
    let mut bench = Bench::new(1400.0, 800.0, false);
    bench.open("Bones", Vec::new());
    bench.take_commands();
    assert!(bench.harness.query_by_label("Close the pane").is_none());
    bench.tell(Event::Screenshot { conversation: CONVERSATION.into(), title: "Red".into(), path: path.clone() });
    bench.settle();
    bench.harness.get_by_label("Take a screenshot").click();
    bench.harness.run_steps(2);
    assert!(matches!(&bench.take_commands()[..], [Command::CaptureScreenshot { view, .. }]
        if view.view_type == "application"));
    bench.harness.get_by_label("Close the pane").click();
    bench.settle();
    bench.tell(Event::Screenshot { conversation: CONVERSATION.into(), title: "Again".into(), path });
    bench.settle();
    assert!(bench.harness.query_by_label("Close the pane").is_none(), "once closed it stays closed");
}

#[test]
fn slicer_is_reached_from_its_chip() {
    let mut bench = Bench::new(1000.0, 800.0, false);
    bench.open("Bones", Vec::new());
    bench.take_commands();
    bench.harness.get_by_label_contains("Slicer: Slicer 5.8.1").click();
    bench.settle();
    bench.picture("slicer_menu");
    bench.harness.get_by_label("Connect").click();
    bench.settle();
    assert!(matches!(&bench.take_commands()[..], [Command::ConnectSlicer { url }] if url.ends_with("/slicer")));
    bench.harness.get_by_label_contains("Slicer: Slicer 5.8.1").click();
    bench.settle();
    bench.harness.get_by_label("Start the practice Slicer").click();
    bench.settle();
    assert!(matches!(bench.take_commands()[..], [Command::StartPractice]));
    bench.tell(Event::Progress { what: "Practice Slicer".into(), detail: "installing…".into(), done: false });
    bench.settle();
    bench.harness.get_by_label_contains("Status: Practice Slicer: installing…");
    let status = SlicerStatus { practice: true, version: "5.13.0-practice".into(), ..connected() };
    bench.tell(Event::Progress { what: "Practice Slicer".into(), detail: String::new(), done: true });
    bench.tell(Event::Slicer { status });
    bench.settle();
    bench.harness.get_by_label("Slicer: Practice 5.13.0 · 4 nodes");
}

#[test]
fn code_is_edited_and_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let facts: Vec<_> = realistic(folder.path()).into_iter().take(11).collect();
    let mut bench = Bench::new(800.0, 1200.0, false);
    bench.open("Load", facts);
    bench.take_commands();
    bench.harness.get_by_label_contains("Code: Python").click();
    bench.settle();
    bench.harness.get_by_label("Run again").click();
    bench.harness.run_steps(2);
    assert!(matches!(&bench.take_commands()[..], [Command::RunCode { code, .. }] if code.contains("downloadCTChest")));
    bench.harness.get_by_label("Edit and run").click();
    bench.settle();
    bench.harness.get_by_label("Code to run").click();
    bench.harness.run_steps(1);
    bench.harness.get_by_label("Code to run").type_text("# mine\n");
    bench.harness.run_steps(2);
    bench.harness.get_by_label("Run this code").click();
    bench.harness.run_steps(2);
    assert!(matches!(&bench.take_commands()[..], [Command::RunCode { code, .. }] if code.contains("# mine")));
}

#[test]
fn a_problem_is_told_at_the_edge() {
    let mut bench = Bench::new(420.0, 800.0, false);
    bench.open("Bones", running());
    let problem = Problem {
        kind: "PracticeFailed".into(),
        message: "The practice Slicer could not be started.".into(),
        advice: "Install Python 3.12 or newer and try again.".into(),
    };
    bench.tell(Event::Problem { problem });
    bench.settle();
    bench.harness.get_by_label("The practice Slicer could not be started.");
    bench.picture("toast_narrow");
    bench.harness.get_by_label("Dismiss the message").click();
    bench.settle();
    assert!(bench.harness.query_by_label("The practice Slicer could not be started.").is_none());
}

#[test]
fn facts_of_another_conversation_are_not_shown() {
    let mut bench = Bench::new(1000.0, 800.0, false);
    bench.open("Bones", Vec::new());
    let event = stored(vec![TurnEvent::RunFinished { report: Box::new(bone_report()) }]).remove(0);
    bench.tell(Event::Turn { conversation: "other".into(), event });
    bench.settle();
    assert!(bench.harness.query_by_label_contains("Done:").is_none());
}

#[test]
fn a_draft_is_kept_while_another_conversation_is_looked_at() {
    let mut bench = Bench::new(1000.0, 800.0, false);
    bench.open("Bones", Vec::new());
    bench.harness.get_by_label("Message").type_text("unfinished");
    bench.harness.run_steps(2);
    let opened = |id: &str| Event::Opened {
        conversation: id.into(),
        title: id.into(),
        events: Vec::new(),
        queued: Vec::new(),
        running: false,
    };
    bench.tell(opened("b"));
    bench.settle();
    assert_eq!(bench.harness.state().state.composer, "");
    bench.tell(opened(CONVERSATION));
    bench.settle();
    assert_eq!(bench.harness.state().state.composer, "unfinished");
}

/// The engine must never be flooded, and the window never waits for it: what does not fit is sent later.
#[test]
fn an_engine_that_has_stopped_is_told() {
    let Bench { mut harness, events, commands } = Bench::new(1000.0, 800.0, false);
    drop(events);
    drop(commands);
    harness.run_steps(6);
    harness.get_by_label_contains("has stopped");
}

#[test]
fn an_idle_window_is_not_painted_again() {
    let mut bench = Bench::new(1000.0, 800.0, false);
    bench.open("Bones", Vec::new());
    bench.settle();
    let idle = bench.harness.output().viewport_output.values().map(|one| one.repaint_delay).min();
    assert!(idle.is_some_and(|delay| delay > std::time::Duration::from_secs(60)), "{idle:?}");
    bench.open("Bones", running());
    let busy = bench.harness.output().viewport_output.values().map(|one| one.repaint_delay).min();
    assert!(busy.is_some_and(|delay| delay <= std::time::Duration::from_millis(250)), "{busy:?}");
}

/// A long conversation must not be laid out as a whole in each frame.
#[test]
fn a_long_conversation_stays_quick() {
    let mut facts = Vec::new();
    for turn in 1..=300 {
        facts.push(TurnEvent::UserMessage { turn, text: format!("question {turn}") });
        facts.push(TurnEvent::TextDelta {
            text: format!("Answer {turn} with `code` and **weight**.\n\n- one\n- two\n"),
        });
        facts.push(TurnEvent::Finished {
            finish: slicer_ai_agent::engine::Finish::Answer,
            error: None,
            timings: Default::default(),
            run_folder: None,
        });
    }
    let mut bench = Bench::new(1000.0, 800.0, false);
    bench.open("Long", facts);
    bench.harness.run_steps(120);
    assert!(bench.harness.query_by_label_contains("question 300").is_some(), "the end is shown");
    assert!(bench.harness.query_by_label_contains("question 12").is_none(), "what is far above is not laid out");
    let start = std::time::Instant::now();
    bench.harness.run_steps(20);
    let frame = start.elapsed() / 20;
    // Laying out all 300 turns takes seconds; the bound tells the two apart on any machine and measures nothing finer.
    assert!(frame < std::time::Duration::from_millis(500), "a frame took {frame:?}");
}

#[test]
fn a_key_origin_is_told_in_words() {
    let mut bench = Bench::new(1000.0, 800.0, false);
    let Event::Settings { settings, .. } = settings_event(false, "openai") else { panic!("settings") };
    bench.open("", Vec::new());
    bench.tell(Event::Settings { settings, providers: providers(), key: KeyOrigin::NotSet });
    bench.settle();
    bench.harness.get_by_label("Settings").click();
    bench.settle();
    bench.harness.get_by_label("No key is set. Save one here, or set OPENAI_API_KEY.");
}
