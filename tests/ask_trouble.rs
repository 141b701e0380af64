//! Servers that are busy, break off, fall silent, and persons who press Stop, at every moment of a call. What it protects:
//! nothing that was shown is lost, nothing is asked for (and paid) twice, and the status says what is going on.

#[path = "support/model_server.rs"]
mod model_server;
#[path = "support/program.rs"]
mod program;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use model_server::{ModelServer, Piece, ScriptedReply};
use serde_json::{Value, json};
use slicer_ai_agent::engine::{
    self, Command, Engine, EngineOptions, Event, Finish, Settings, SlicerTarget, TurnEvent, TurnRecord,
};
use slicer_ai_agent::store::Paths;

fn ask(data: &Path, model: &ModelServer) -> (i32, Value, String) {
    let mut command = program::program(data);
    command.args(["ask", "Hello", "--json", "--no-slicer", "--provider", "custom", "--model", "scripted-model"]);
    command.args(["--base-url", &model.base_url()]).env("SLICER_AI_AGENT_MAX_RETRIES", "2").stdin(Stdio::null());
    let output = command.output().unwrap();
    let value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", program::both(&output)));
    (output.status.code().unwrap_or(-1), value, String::from_utf8_lossy(&output.stderr).into_owned())
}

fn busy(status: u16, after: &str) -> ScriptedReply {
    let headers = vec![("retry-after".to_owned(), after.to_owned())];
    ScriptedReply::Http { status, headers, body: r#"{"error":{"message":"please wait"}}"#.into() }
}

fn stream(pieces: &[Piece]) -> ScriptedReply {
    ScriptedReply::Stream(pieces.to_vec())
}

fn text(text: &str) -> Piece {
    Piece::Text(text.into())
}

/// A server that is busy is asked again after the time it names, and the person reads why and for how long.
#[test]
fn a_busy_server_is_asked_again() {
    for (status, words) in [(429, "limits how much it may be asked now"), (503, "could not answer (HTTP 503)")] {
        let data = tempfile::tempdir().unwrap();
        let model = ModelServer::start(vec![
            busy(status, "1"),
            ScriptedReply::text("The answer."),
            ScriptedReply::text("Twice."),
        ]);
        let (exit, turn, said) = ask(data.path(), &model);
        assert_eq!((exit, &turn["answer"], &turn["usage"]["calls"]), (0, &json!("The answer."), &json!(1)), "{turn:#}");
        assert!(said.contains(words) && said.contains("Trying again in 1000 ms"), "{said}");
        let at: Vec<Instant> = model.requests().iter().map(|request| request.at).collect();
        assert_eq!(at.len(), 2, "{status}: it was asked more than was needed");
        assert!(at[1] - at[0] >= Duration::from_secs(1));
    }
    // One that stays busy is given up after the number of retries that was set.
    let data = tempfile::tempdir().unwrap();
    let model = ModelServer::start((0..9).map(|_| busy(503, "0")).collect());
    let (exit, turn, _) = ask(data.path(), &model);
    assert_eq!((exit, &turn["error"]["kind"], model.chats().len()), (1, &json!("Overloaded"), 3), "{turn:#}");
}

/// A connection that breaks: before a word was shown it is asked again, afterwards never, and what was shown is kept.
#[test]
fn a_broken_connection_loses_nothing() {
    let data = tempfile::tempdir().unwrap();
    let model = ModelServer::start(vec![stream(&[Piece::Break]), ScriptedReply::text("The answer.")]);
    let (exit, turn, said) = ask(data.path(), &model);
    assert_eq!((exit, &turn["answer"], model.chats().len()), (0, &json!("The answer."), 2), "{turn:#}");
    assert!(said.contains("Trying again"), "{said}");
    let model = ModelServer::start(vec![
        stream(&[text("Half an "), text("answer"), Piece::Break]),
        ScriptedReply::text("Twice."),
    ]);
    let (exit, turn, _) = ask(data.path(), &model);
    assert_eq!((exit, &turn["error"]["kind"], model.chats().len()), (3, &json!("Network"), 1), "{turn:#}");
    assert_eq!(turn["answer"], "Half an answer");
    assert_eq!((&turn["usage"]["calls"], &turn["usage"]["estimated"]), (&json!(1), &json!(true)), "it was paid for");
    let (_, list) = program::json(program::program(data.path()).args(["conversations", "list", "--json"]));
    let id = list["conversations"][0]["id"].as_str().unwrap().to_owned();
    let (_, shown) = program::json(program::program(data.path()).args(["conversations", "show", &id, "--json"]));
    assert_eq!(shown["turns"][0]["answer"], "Half an answer", "the history has it as well");
}

/// A server that falls silent is given up after the time in the settings; what it said is kept and not asked for again.
#[test]
fn a_silent_server_is_given_up() {
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("settings.toml"), "[model]\nstall_timeout_s = 1\nfirst_byte_timeout_s = 2\n")
        .unwrap();
    let model = ModelServer::start(vec![stream(&[text("Half"), Piece::Hang]), ScriptedReply::text("Twice.")]);
    let (exit, turn, _) = ask(data.path(), &model);
    assert_eq!((exit, &turn["error"]["kind"], &turn["answer"]), (3, &json!("Network"), &json!("Half")), "{turn:#}");
    assert!(turn["error"]["message"].as_str().unwrap().contains("nothing came for 1 s"), "{turn:#}");
    assert_eq!(model.chats().len(), 1);
    assert!(turn["timings"]["total_ms"].as_f64().unwrap() < 15_000.0);
}

/// An option that a model refuses is left out once, and from the next start on it is not sent at all.
#[test]
fn a_refusal_is_paid_for_once() {
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("settings.toml"), "[model]\ntemperature = 0.4\n").unwrap();
    let refuse = || {
        ScriptedReply::error(
            400,
            r#"{"error":{"message":"Unsupported parameter: 'temperature'","param":"temperature"}}"#,
        )
    };
    let model = ModelServer::start(vec![refuse(), ScriptedReply::text("1"), ScriptedReply::text("2")]);
    for answer in ["1", "2"] {
        let (exit, turn, _) = ask(data.path(), &model);
        assert_eq!((exit, &turn["answer"]), (0, &json!(answer)), "{turn:#}");
    }
    let sent: Vec<bool> = model.chats().iter().map(|chat| chat.get("temperature").is_some()).collect();
    assert_eq!(sent, [true, false, false]);
}

/// An engine without Slicer that talks to this model, with an open conversation.
async fn start(data: &Path, model: &ModelServer) -> (Engine, String) {
    let mut settings = Settings::default();
    settings.model.provider = "custom".into();
    settings.model.model = "scripted-model".into();
    settings.model.base_url = model.base_url();
    let mut engine = engine::start(EngineOptions {
        paths: Paths::new(Some(data.to_owned())).unwrap(),
        settings: Some(settings),
        slicer: SlicerTarget::None,
        granted: BTreeSet::new(),
        api_key: None,
        max_attempts: None,
        executable: None,
    })
    .unwrap();
    engine.commands.send(Command::NewConversation).await.unwrap();
    loop {
        if let Event::Opened { conversation, .. } = next(&mut engine).await {
            return (engine, conversation);
        }
    }
}

async fn next(engine: &mut Engine) -> Event {
    tokio::time::timeout(Duration::from_secs(60), engine.events.recv())
        .await
        .expect("an event in time")
        .expect("an engine")
}

/// Stop at each moment of a call: the turn ends at once, what was shown stays, and nothing more is sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_is_heeded_at_every_moment() {
    let call = |arguments: Value| Piece::ToolCall { id: "c1".into(), name: "Grep".into(), arguments };
    let shown =
        |event: &TurnEvent, wanted: &str| matches!(event, TurnEvent::TextDelta { text } if text.contains(wanted));
    type Moment<'a> = (&'a str, Vec<ScriptedReply>, Box<dyn Fn(&TurnEvent) -> bool + 'a>, usize, &'a str);
    let moments: Vec<Moment<'_>> = vec![
        (
            "before the first byte",
            vec![stream(&[Piece::DelayMs(30_000), text("late")])],
            Box::new(|e| matches!(e, TurnEvent::Retrieved { .. })),
            1,
            "",
        ),
        (
            "while it thinks",
            vec![stream(&[Piece::Reasoning("Hm".into()), Piece::Hang])],
            Box::new(|e| matches!(e, TurnEvent::ReasoningDelta { .. })),
            1,
            "",
        ),
        ("in the text", vec![stream(&[text("so far"), Piece::Hang])], Box::new(|e| shown(e, "so far")), 1, "so far"),
        (
            "within a call's arguments",
            vec![stream(&[text("I look."), call(json!({ "pattern": "x" })), Piece::Hang])],
            Box::new(|e| shown(e, "I look.")),
            1,
            "I look.",
        ),
        (
            "in the second round",
            vec![stream(&[text("I look."), call(json!({ "pattern": "x" }))]), stream(&[text("Then"), Piece::Hang])],
            Box::new(|e| shown(e, "Then")),
            2,
            "I look.\n\nThen",
        ),
        (
            "while it waits to try again",
            vec![busy(503, "30")],
            Box::new(|e| matches!(e, TurnEvent::Retrying { .. })),
            1,
            "",
        ),
    ];
    for (what, script, is_now, asked, kept) in moments {
        let data = tempfile::tempdir().unwrap();
        let more = (0..5).map(|_| ScriptedReply::text("asked again"));
        let model = ModelServer::start(script.into_iter().chain(more).collect());
        let (mut engine, conversation) = start(data.path(), &model).await;
        let text = "Hello".to_owned();
        engine.commands.send(Command::Send { conversation: conversation.clone(), text }).await.unwrap();
        let mut record = TurnRecord::of(&conversation);
        let mut stopped: Option<Instant> = None;
        loop {
            let Event::Turn { event, .. } = next(&mut engine).await else { continue };
            record.apply(&event.event);
            if stopped.is_none() && is_now(&event.event) {
                // Long enough for the request to be on its way.
                tokio::time::sleep(Duration::from_millis(200)).await;
                stopped = Some(Instant::now());
                engine.commands.send(Command::Stop { conversation: conversation.clone() }).await.unwrap();
            }
            if matches!(event.event, TurnEvent::Finished { .. }) {
                break;
            }
        }
        let took = stopped.unwrap_or_else(|| panic!("{what}: the moment never came")).elapsed();
        println!("stop {what}: the turn had ended after {} ms", took.as_millis());
        assert!(took < Duration::from_secs(2), "{what}: {took:?}");
        assert_eq!((record.finish, record.error), (Some(Finish::Stopped), None), "{what}");
        assert_eq!(record.answer, kept, "{what}");
        // What had arrived was paid for.
        let paid = u64::from(!kept.is_empty() || what == "while it thinks") + u64::from(what == "in the second round");
        assert_eq!(record.usage.calls, paid, "{what}");
        tokio::time::sleep(Duration::from_millis(700)).await;
        assert_eq!(model.chats().len(), asked, "{what}: something was sent after the stop");
        // The conversation goes on.
        let text = "Again".to_owned();
        engine.commands.send(Command::Send { conversation: conversation.clone(), text }).await.unwrap();
        loop {
            if let Event::Turn { event, .. } = next(&mut engine).await
                && let TurnEvent::Finished { finish, .. } = event.event
            {
                assert_eq!(finish, Finish::Answer, "{what}: the next turn");
                break;
            }
        }
        assert_eq!(model.chats().len(), asked + 1);
        engine.commands.send(Command::Shutdown).await.unwrap();
    }
}
