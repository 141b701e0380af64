//! The model's page of the settings and the question about money, by label as a person or a screen reader finds them. What it
//! protects: what is set is what is sent, a list that cannot be had is explained, and no budget is exceeded by a slip.

#[path = "ui_support/mod.rs"]
mod ui_support;

use egui_kittest::kittest::Queryable;
use slicer_ai_agent::engine::{
    Capability, Command, ConnectionReport, Decision, Event, Finding, Problem, SpendingTotal, TurnEvent, VerdictKind,
};
use ui_support::Bench;

fn open_settings() -> Bench {
    let mut bench = Bench::new(1000.0, 1400.0, false);
    bench.open("", Vec::new());
    bench.harness.get_by_label("Settings").click();
    bench.settle();
    bench.take_commands();
    bench
}

/// Scrolls a control into sight and clicks it.
fn click(bench: &mut Bench, label: &str) {
    bench.harness.get_by_label(label).scroll_to_me();
    bench.settle();
    bench.harness.get_by_label(label).click();
    bench.settle();
}

/// The provider is asked for its models; what it offers can be chosen; why it does not tell is said, with what to do.
#[test]
fn models_are_fetched_and_chosen() {
    let mut bench = open_settings();
    // The spinner would never let the window settle.
    bench.harness.get_by_label("List models").click();
    bench.harness.run_steps(2);
    assert!(matches!(&bench.take_commands()[..], [Command::FetchModels { key: None, .. }]));
    bench.harness.get_by_label("Asking the provider…");
    let other = Event::ModelsFetched { provider: "kimi".into(), models: Ok(vec!["not-mine".into()]) };
    bench.tell(other);
    bench.tell(Event::ModelsFetched {
        provider: "openai".into(),
        models: Ok(vec!["gpt-4.1".into(), "brand-new".into()]),
    });
    bench.settle();
    bench.harness.get_by_label("The provider offers 2 models.");
    bench.harness.get_by_label("Choose a model").click();
    bench.settle();
    assert!(bench.harness.query_by_label("not-mine").is_none(), "another provider's list came late");
    bench.harness.get_by_label("brand-new").click();
    bench.settle();
    let commands = bench.take_commands();
    assert!(
        matches!(&commands[..], [Command::SaveSettings { settings }] if settings.model.model == "brand-new"),
        "{commands:?}"
    );
    bench.harness.get_by_label("List models").click();
    bench.harness.run_steps(2);
    let problem = Problem {
        kind: "Network".into(),
        message: "Nothing answers at 127.0.0.1:1.".into(),
        advice: "Start the model server, or correct the base URL in the settings.".into(),
    };
    bench.tell(Event::ModelsFetched { provider: "openai".into(), models: Err(problem) });
    bench.settle();
    bench.harness.get_by_label("Nothing answers at 127.0.0.1:1.");
    bench.harness.get_by_label("Start the model server, or correct the base URL in the settings.");
}

/// Thinking, temperature, the longest answer and budgets are left to the provider until they are set, and saved at once.
#[test]
fn how_the_model_answers_is_set() {
    let mut bench = open_settings();
    for tick in ["Set the temperature", "Limit the answer", "For a conversation", "For a month"] {
        click(&mut bench, tick);
    }
    click(&mut bench, "How long to think");
    bench.harness.get_by_label("Long").click();
    bench.settle();
    let saved = bench.take_commands();
    let Some(Command::SaveSettings { settings }) = saved.last() else { panic!("{saved:?}") };
    let model = &settings.model;
    assert_eq!((model.temperature, model.max_output), (Some(0.2), Some(8_000)));
    assert_eq!((model.budget_conversation_usd, model.budget_month_usd), (Some(1.0), Some(20.0)));
    assert_eq!(model.reasoning_effort, "high");
    bench.harness.get_by_label("Budget for a month in US dollars");
    let month = SpendingTotal { calls: 4, cost_usd: 1.25, unknown: 1, estimated: true, ..SpendingTotal::default() };
    bench.tell(Event::Spending { month });
    bench.settle();
    bench.harness.get_by_label("This month so far: ≈$1.25 for 4 calls, and 1 whose cost is unknown.");
    bench.picture("settings_model");
    click(&mut bench, "For a month");
    let saved = bench.take_commands();
    assert!(
        matches!(saved.last(), Some(Command::SaveSettings { settings }) if settings.model.budget_month_usd.is_none())
    );
}

/// The result of the connection test in the words of the design, for each thing that can be wrong.
#[test]
fn the_test_says_what_it_found() {
    let mut bench = open_settings();
    let cases = [
        ("ModelUnknown", "The provider does not offer “gpt-4.l”.", "The nearest names are: gpt-4.1, gpt-4o."),
        ("KeyRefused", "OpenAI refused the API key: Incorrect API key provided.", "Check that the key is complete."),
        ("Network", "The name of the server api.openai.com could not be resolved.", "Check the network connection."),
        ("NoCredit", "The account at OpenAI has no credit for this.", "Add credit at the provider."),
    ];
    for (kind, message, advice) in cases {
        bench.harness.get_by_label("Test").click();
        bench.harness.run_steps(2);
        let problem = Problem { kind: kind.into(), message: message.into(), advice: advice.into() };
        let report = ConnectionReport { error: Some(problem), ..ConnectionReport::default() };
        bench.tell(Event::TestFinished { report });
        bench.settle();
        bench.harness.get_by_label(message);
        bench.harness.get_by_label(advice);
    }
    bench.harness.get_by_label("Test").click();
    bench.harness.run_steps(2);
    let report = ConnectionReport { ok: true, ms: 412.0, model_available: Some(true), ..ConnectionReport::default() };
    bench.tell(Event::TestFinished { report });
    bench.settle();
    bench.harness.get_by_label_contains("Connected, 412 ms, model available");
}

/// A call that goes over the budget is asked about in words about money, and cannot be allowed for ever.
#[test]
fn a_budget_is_asked_about() {
    let why = "The next call may cost about $0.0200; with the $0.9900 spent so far this goes over the budget of $1.00 for this conversation.";
    let finding = Finding {
        capability: Capability::Spend,
        line: 0,
        column: 0,
        text: String::new(),
        why: why.into(),
        instead: String::new(),
        verdict: VerdictKind::Ask,
        scope: None,
    };
    let mut bench = Bench::new(1000.0, 800.0, false);
    let message = TurnEvent::UserMessage { turn: 1, text: "Segment the bone".into() };
    bench.open("Bone", vec![message, TurnEvent::PermissionAsked { request: "p1".into(), findings: vec![finding] }]);
    bench.harness.get_by_label_contains("Going on may spend more than your budget. Allow it?");
    bench.harness.get_by_label_contains(why);
    assert!(bench.harness.query_by_label("Always").is_none(), "a budget that is always exceeded is none");
    bench.picture("budget_question");
    bench.take_commands();
    bench.harness.get_by_label("For this conversation").click();
    bench.harness.run_steps(2);
    let commands = bench.take_commands();
    assert!(
        matches!(&commands[..], [Command::Decide { request, decision: Decision::AllowConversation, .. }] if request == "p1"),
        "{commands:?}"
    );
}

/// While a call waits to be tried again the status says so and for how long, and the card says why; a later wait counts
/// from its own beginning.
#[test]
fn a_wait_for_the_provider_is_in_the_status() {
    let mut bench = Bench::new(1000.0, 800.0, false);
    let message = TurnEvent::UserMessage { turn: 1, text: "Segment the bone".into() };
    let retrying = |attempt, wait_ms| TurnEvent::Retrying {
        attempt,
        wait_ms,
        why: "OpenAI limits how much it may be asked now (for 3600 s): slow down".into(),
    };
    bench.open("Bone", vec![message, retrying(1, 1), retrying(2, 3_600_000)]);
    bench.harness.get_by_label_contains("Asking the model again in");
    bench.harness.get_by_label_contains("limits how much it may be asked now");
    let text = "The answer.".to_owned();
    let sequence = 9;
    let event = slicer_ai_agent::engine::StoredTurnEvent {
        sequence,
        at_ms: ui_support::clock(),
        event: TurnEvent::TextDelta { text },
    };
    let conversation = bench.harness.state().state.current.clone().unwrap();
    bench.tell(Event::Turn { conversation, event });
    bench.harness.run_steps(3);
    assert!(bench.harness.query_by_label_contains("Asking the model again in").is_none(), "it answers now");
}
