//! The machine with values: every construct by itself, and then any sequence of events at all.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// A choice, a counted loop with placing in it, a branch that leads back, a review.
const GRAPH: &str = r#"{"start": "count", "steps": [
 {"id": "count", "kind": "user_choice", "title": "How many planes?", "brief": "b",
  "choice": {"value": "planes", "type": "int", "minimum": 1, "maximum": 3}, "next": "add"},
 {"id": "add", "kind": "automated", "title": "Add", "brief": "b", "template": "add.py", "makes": ["plane"], "next": "place"},
 {"id": "place", "kind": "interactive", "title": "Place", "brief": "b", "before": "before.py", "after": "after.py",
  "wait": {"mode": "place", "value": "plane", "min_points": 2}, "repeat": {"to": "add", "times": "planes"}, "next": "again"},
 {"id": "again", "kind": "branch", "title": "Again?", "brief": "b", "max_visits": 4, "options": [
  {"text": "Yes", "next": "count", "action": "clear.py"}, {"text": "No", "next": "note"}]},
 {"id": "note", "kind": "user_choice", "title": "Side", "brief": "b", "optional": true,
  "choice": {"value": "side", "type": "enum", "options": ["Left", "Right"]}, "next": "look"},
 {"id": "look", "kind": "review", "title": "Look", "brief": "b", "show": ["plane"], "next": "end"}]}"#;

fn graph() -> Workflow {
    let graph: Workflow = serde_json::from_str(GRAPH).unwrap();
    assert_eq!(graph.flaws(), []);
    graph
}

/// Follows a run: takes events and keeps what was asked for.
struct Follow {
    graph: Workflow,
    state: State,
    effects: Vec<Effect>,
}

impl Follow {
    fn new() -> Self {
        let mut follow = Self { graph: graph(), state: begin(), effects: Vec::new() };
        follow.take(Event::Start);
        follow
    }

    fn take(&mut self, event: Event) -> &mut Self {
        let (state, effects) = update(&self.graph, std::mem::take(&mut self.state), event);
        self.state = state;
        self.effects = effects;
        self
    }

    fn at(&self) -> &str {
        self.state.current.as_ref().map_or("", |entry| &entry.step)
    }

    fn ran(&mut self) -> &mut Self {
        let Phase::Running { ticket, .. } = self.state.phase else { panic!("nothing runs: {:?}", self.state.phase) };
        let values = BTreeMap::from([("plane".to_owned(), json!(format!("vtkMRMLMarkupsPlaneNode{ticket}")))]);
        let result = Outcome::Ran { values, created: vec![format!("node{ticket}")], run: Some(format!("run{ticket}")) };
        self.take(Event::Ran { ticket, result })
    }

    fn failed(&mut self) -> &mut Self {
        let Phase::Running { ticket, .. } = self.state.phase else { panic!("nothing runs") };
        self.take(Event::Ran { ticket, result: Outcome::Failed { message: "no".into(), run: None } })
    }

    fn chose(&mut self, value: Value) -> &mut Self {
        self.take(Event::Chose { value })
    }

    fn said(&mut self, text: &str) -> &mut Self {
        self.take(Event::Said { id: "m".into(), text: text.into() })
    }

    /// One pass of the loop.
    fn place(&mut self) -> &mut Self {
        assert_eq!(self.at(), "add");
        self.ran().ran().take(Event::Points { count: 2 }).take(Event::Done).ran()
    }

    fn told(&self) -> Option<&str> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Tell { text } => Some(text.as_str()),
            _ => None,
        })
    }
}

#[test]
fn a_counted_loop_runs_as_often_as_chosen_and_again_after_a_jump_back() {
    let mut run = Follow::new();
    run.chose(json!(2)).place().place();
    assert_eq!(run.at(), "again");
    run.chose(json!("yes"));
    assert!(matches!(run.state.phase, Phase::Running { part: Part::Action(0), .. }), "the option's action comes first");
    run.ran().chose(json!(1)).place();
    assert_eq!(run.at(), "again");
    run.said("No.").said("left").said("done");
    assert_eq!(run.state.phase, Phase::Done);
    assert_eq!(run.state.now.values["side"], "Left");
    let steps: Vec<&str> = run.state.history.iter().map(|entry| entry.step.as_str()).collect();
    let pass = ["add", "place"];
    let expected = [&["count"][..], &pass, &pass, &["again", "count"], &pass, &["again", "note", "look"]].concat();
    assert_eq!(steps, expected);
}

#[test]
fn placing_needs_its_points_and_says_how_many() {
    let mut run = Follow::new();
    run.chose(json!(1)).ran().ran().take(Event::Points { count: 1 }).said("Done!");
    assert_eq!(run.told(), Some("1 of at least 2 points are placed."));
    assert_eq!(run.state.phase, Phase::WaitingUser);
    run.take(Event::PlaceAgain);
    assert_eq!(run.effects, [Effect::PlaceAgain { step: "place".into() }]);
    run.said("skip");
    assert!(run.told().unwrap().contains("needed"), "only optional steps can be skipped");
}

#[test]
fn an_answer_that_does_not_fit_changes_nothing() {
    let mut run = Follow::new();
    run.chose(json!(7));
    assert!(run.told().unwrap().contains("from 1 to 3"));
    assert_eq!((run.at(), run.state.now.values.len()), ("count", 0));
}

#[test]
fn a_failure_offers_retry_skip_back_agent_and_cancel() {
    let mut run = Follow::new();
    run.chose(json!(1)).failed();
    let failed = Phase::Failed { message: "no".into() };
    assert_eq!(run.state.phase, failed);
    run.take(Event::AskAgent);
    assert_eq!(run.effects, [Effect::Explain { step: "add".into(), message: "no".into() }]);
    run.take(Event::Back);
    assert_eq!((run.state.looking_at, &run.state.phase), (Some(0), &failed), "Back only looks");
    run.take(Event::Forward).take(Event::Retry);
    assert!(matches!(run.state.phase, Phase::Running { part: Part::Main, ticket: 2 }));
    run.failed().take(Event::Skip);
    assert_eq!(run.at(), "place");
    assert!(run.state.history.last().unwrap().skipped, "a skip is recorded");
    run.take(Event::Cancel);
    assert_eq!(run.state.phase, Phase::Cancelled);
}

/// A result that comes twice, or late, is not taken for that of another step.
#[test]
fn only_the_result_that_is_waited_for_counts() {
    let mut run = Follow::new();
    run.chose(json!(1));
    let late = Event::Ran { ticket: 1, result: Outcome::Failed { message: "late".into(), run: None } };
    run.ran();
    let state = run.state.clone();
    run.take(late);
    assert_eq!((&run.state, run.effects.len()), (&state, 0));
}

#[test]
fn run_from_here_takes_back_what_came_later() {
    let mut run = Follow::new();
    run.chose(json!(2)).place().place();
    run.take(Event::RunFrom { index: 3 });
    let [Effect::Restore { ticket, run: first, remove }] = run.effects.as_slice() else { panic!("{:?}", run.effects) };
    assert_eq!(first.as_deref(), Some("run4"), "the first run of the second pass");
    assert_eq!(remove.len(), 3);
    run.take(Event::Restored { ticket: *ticket, missing: vec![] });
    assert_eq!((run.at(), run.state.history.len()), ("add", 3));
    assert_eq!(run.state.now.passes["place"], 1, "the loop goes on with its second pass");
    run.place();
    assert_eq!(run.at(), "again");
}

#[test]
fn what_could_not_be_put_back_stops_the_run_with_a_word() {
    let mut run = Follow::new();
    run.chose(json!(1)).place().take(Event::RunFrom { index: 1 });
    let Phase::Restoring { ticket, .. } = run.state.phase else { panic!() };
    run.take(Event::Restored { ticket, missing: vec!["the model".into()] });
    assert!(matches!(&run.state.phase, Phase::Failed { message } if message.contains("the model")));
    assert_eq!(run.at(), "add");
}

#[test]
fn a_loop_of_jumps_is_bounded() {
    let mut run = Follow::new();
    for _ in 0..4 {
        run.chose(json!(1)).place().chose(json!("Yes")).ran();
    }
    run.chose(json!(1)).place();
    assert!(matches!(&run.state.phase, Phase::Failed { message } if message.contains("more than 4 times")));
    run.take(Event::Retry);
    assert_eq!(run.state.phase, Phase::WaitingChoice, "the person may let it go on");
}

#[test]
fn messages_go_to_the_agent_and_requests_wait() {
    let mut run = Follow::new();
    run.said("why do you ask?");
    let step = Some("count".to_owned());
    assert_eq!(run.effects, [Effect::ToAgent { id: "m".into(), text: "why do you ask?".into(), step }]);
    run.take(Event::Requested { id: "q1".into(), text: "delete all".into() });
    run.take(Event::Requested { id: "q2".into(), text: "fit".into() });
    assert_eq!((run.state.queue.len(), run.effects.len()), (2, 0));
    run.take(Event::DropQueued { id: "q1".into() }).take(Event::RunQueued { id: "q2".into() });
    assert_eq!(run.effects, [Effect::HandOut { id: "q2".into(), text: "fit".into() }]);
    run.take(Event::Requested { id: "q3".into(), text: "later".into() }).said("cancel");
    assert!(run.effects.contains(&Effect::HandOut { id: "q3".into(), text: "later".into() }));
}

#[test]
fn choose_for_me_proposes_and_done_confirms() {
    let mut run = Follow::new();
    run.take(Event::ChooseForMe);
    assert_eq!(run.effects, [Effect::Resolve { step: "count".into() }]);
    run.take(Event::Proposed { value: json!(3) });
    assert_eq!(run.at(), "count", "a proposal is not an answer");
    run.said("next");
    assert_eq!(run.state.now.values["planes"], 3);
}

#[test]
fn a_lost_connection_pauses_and_what_is_not_known_is_said() {
    let mut run = Follow::new();
    run.take(Event::ConnectionLost).chose(json!(1));
    assert!(run.told().unwrap().contains("not connected"));
    run.take(Event::Resumed { missing: vec![], taken_back: false }).chose(json!(1));
    let ticket = 1;
    let result = Outcome::Ran { values: BTreeMap::new(), created: vec![], run: None };
    run.take(Event::ConnectionLost).take(Event::Ran { ticket, result });
    assert_eq!(run.effects, [], "nothing is sent while it is lost");
    run.take(Event::Resumed { missing: vec![], taken_back: false });
    assert_eq!(run.at(), "place", "a result that came late is not lost");
    run.take(Event::ConnectionLost).take(Event::Resumed { missing: vec![], taken_back: false });
    assert!(matches!(&run.state.phase, Phase::Failed { message } if message.contains("not known")));
    run.take(Event::Skip).take(Event::Resumed { missing: vec!["plane".into()], taken_back: false });
    assert!(matches!(&run.state.phase, Phase::Failed { message } if message.contains("plane")));
}

/// What was under way when a program ended, and was taken back, runs again under a ticket of its own.
#[test]
fn what_was_taken_back_runs_again() {
    let mut run = Follow::new();
    run.chose(json!(1)).take(Event::Resumed { missing: vec![], taken_back: true });
    assert_eq!(run.effects, [Effect::RunTemplate { ticket: 2, step: "add".into(), part: Part::Main }]);
    let late = Outcome::Failed { message: "late".into(), run: None };
    run.take(Event::Ran { ticket: 1, result: late });
    assert!(matches!(run.state.phase, Phase::Running { ticket: 2, .. }), "the result of the first is not wanted");
    run.take(Event::Resumed { missing: vec!["x".into()], taken_back: true });
    assert!(matches!(&run.state.phase, Phase::Failed { message } if message.contains('x')));
}

/// An event that fits or does not: anything a person, Slicer or the network may do, in any order.
fn events() -> impl Strategy<Value = Event> {
    let outcome = prop_oneof![
        3 => any::<u8>().prop_map(|number| Outcome::Ran {
            values: BTreeMap::from([(format!("made{}", number % 4), json!(number))]),
            created: vec![format!("node{number}")],
            run: Some(format!("run{number}")),
        }),
        1 => Just(Outcome::Failed { message: "no".into(), run: None }),
    ];
    let answer = prop_oneof![
        (0..5).prop_map(|number| json!(number)),
        Just(json!("yes")),
        Just(json!("No")),
        Just(json!("left")),
        Just(json!(null)),
    ];
    let words = prop::sample::select(vec!["done", "skip", "back", "yes", "no", "right", "retry", "what is this?"]);
    prop_oneof![
        1 => Just(Event::Start),
        // 0 stands for the ticket that is waited for.
        8 => (prop_oneof![4 => Just(0u64), 1 => 1..9u64], outcome).prop_map(|(ticket, result)| Event::Ran { ticket, result }),
        1 => prop::bool::ANY.prop_map(|all| Event::Restored {
            ticket: 0,
            missing: if all { vec![] } else { vec!["x".into()] },
        }),
        4 => answer.prop_map(|value| Event::Chose { value }),
        1 => Just(Event::ChooseForMe),
        1 => Just(Event::Proposed { value: json!(2) }),
        3 => Just(Event::Done),
        3 => (0..4u64).prop_map(|count| Event::Points { count }),
        1 => Just(Event::Skip),
        1 => Just(Event::Retry),
        1 => Just(Event::Back),
        1 => (0..6usize).prop_map(|index| Event::RunFrom { index }),
        2 => words.prop_map(|text| Event::Said { id: "m".into(), text: text.into() }),
        1 => (0..3u8).prop_map(|id| Event::Requested { id: id.to_string(), text: "do".into() }),
        1 => (0..3u8).prop_map(|id| Event::RunQueued { id: id.to_string() }),
        1 => Just(Event::ConnectionLost),
        1 => any::<bool>().prop_map(|taken_back| Event::Resumed { missing: vec![], taken_back }),
    ]
}

/// The event with the ticket that is waited for in place of 0.
fn fitted(event: Event, state: &State) -> Event {
    let awaited = match state.phase {
        Phase::Running { ticket, .. } | Phase::Restoring { ticket, .. } => ticket,
        _ => 1,
    };
    match event {
        Event::Ran { ticket: 0, result } => Event::Ran { ticket: awaited, result },
        Event::Restored { ticket: 0, missing } => Event::Restored { ticket: awaited, missing },
        other => other,
    }
}

/// Answers everything until the run ends; the bound says that it does.
fn to_the_end(graph: &Workflow, mut state: State) -> State {
    for _ in 0..2000 {
        let event = match &state.phase {
            _ if state.paused => Event::Resumed { missing: vec![], taken_back: false },
            Phase::Idle => Event::Start,
            Phase::Running { ticket, .. } => {
                let result = Outcome::Ran { values: BTreeMap::new(), created: vec![], run: None };
                Event::Ran { ticket: *ticket, result }
            }
            Phase::Restoring { ticket, .. } => Event::Restored { ticket: *ticket, missing: vec![] },
            Phase::WaitingChoice => match state.current.as_ref().unwrap().step.as_str() {
                "count" => Event::Chose { value: json!(3) },
                "note" => Event::Chose { value: json!("Left") },
                _ => Event::Chose { value: json!("Yes") },
            },
            Phase::WaitingUser if state.points != Some(2) => Event::Points { count: 2 },
            Phase::WaitingUser => Event::Done,
            // What comes up too often is left, so the ring of jumps ends.
            Phase::Failed { .. } => Event::Cancel,
            Phase::Done | Phase::Cancelled => return state,
        };
        state = update(graph, state, event).0;
    }
    panic!("the run does not end: {:?}", state.phase);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever happens: no value is lost, nothing runs twice, and the run can always be brought to an end.
    #[test]
    fn any_sequence_of_events(events in prop::collection::vec(events(), 1..120)) {
        let graph = graph();
        let (mut state, mut journal) = (begin(), Vec::new());
        let mut tickets = BTreeSet::new();
        let mut visited = BTreeSet::new();
        let mut epoch = 0;
        for event in events {
            let event = fitted(event, &state);
            journal.push(event.clone());
            let before = state.clone();
            let (after, effects) = update(&graph, state, event.clone());
            // Only the way back may take values away, and then it puts back those of that time.
            let went_back = matches!(before.phase, Phase::Restoring { .. }) || matches!(event, Event::RunFrom { .. });
            if !went_back {
                for (name, value) in &before.now.values {
                    let now = after.now.values.get(name);
                    prop_assert!(now.is_some(), "{name} was lost by {event:?}");
                    let may_change = matches!(event, Event::Ran { .. } | Event::Resumed { .. } | Event::Chose { .. }
                        | Event::Done | Event::Said { .. });
                    prop_assert!(may_change || now == Some(value));
                }
                prop_assert!(after.history.len() >= before.history.len());
            }
            if let (Event::Ran { ticket, result: Outcome::Ran { values, .. } }, Phase::Running { ticket: awaited, .. }) =
                (&event, &before.phase)
                && ticket == awaited
            {
                for (name, value) in values {
                    let late = after.late.is_some();
                    prop_assert!(late || after.now.values.get(name) == Some(value), "{name} did not arrive");
                }
            }
            let retried = matches!(before.phase, Phase::Failed { .. });
            let repeats = matches!(event, Event::Resumed { taken_back: true, .. });
            if retried || went_back || repeats {
                epoch += 1;
            }
            let running = effects.iter().filter(|effect| matches!(effect, Effect::RunTemplate { .. })).count();
            prop_assert!(running <= 1, "two templates at once");
            for effect in &effects {
                if let Effect::RunTemplate { ticket, step, part } = effect {
                    let entry = after.current.as_ref().unwrap();
                    prop_assert!(!before.paused || matches!(event, Event::Resumed { .. }), "sent while paused");
                    prop_assert!(tickets.insert(*ticket), "ticket {ticket} twice");
                    prop_assert!(visited.insert((step.clone(), entry.visit, *part, epoch)), "{step} {part:?} ran twice");
                }
            }
            // Every request is either in the queue, handed out, or dropped by the person.
            for queued in &before.queue {
                let handed = effects.iter().any(|effect| matches!(effect, Effect::HandOut { id, .. } if *id == queued.id));
                prop_assert!(handed || after.queue.contains(queued));
            }
            state = after;
        }
        let replayed = journal.into_iter().fold(begin(), |state, event| update(&graph, state, event).0);
        prop_assert_eq!(&replayed, &state, "a replay gives the same state");
        let ended = to_the_end(&graph, state);
        prop_assert!(ended.phase.is_over());
    }
}
