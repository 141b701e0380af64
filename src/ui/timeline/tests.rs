//! The fold of facts into cards, with values.

use super::*;
use crate::engine::SceneDiff;

fn fold(events: Vec<TurnEvent>) -> Timeline {
    let stored: Vec<_> = events
        .into_iter()
        .enumerate()
        .map(|(index, event)| StoredTurnEvent { sequence: index as i64 + 1, at_ms: index as i64 * 100, event })
        .collect();
    Timeline::from_events(&stored)
}

fn user(text: &str) -> TurnEvent {
    TurnEvent::UserMessage { turn: 1, text: text.into() }
}

fn finished(finish: Finish, error: Option<Problem>) -> TurnEvent {
    TurnEvent::Finished { finish, error, timings: Timings::default(), run_folder: None }
}

fn run(ok: bool, run: &str) -> TurnEvent {
    let diff = SceneDiff { views: vec!["layout".into()], ..SceneDiff::default() };
    let report = RunReport { run: run.into(), ok, undoable: ok, diff, ..RunReport::default() };
    TurnEvent::RunFinished { report: Box::new(report) }
}

#[test]
fn pieces_of_an_answer_become_one_card_and_stop_streaming_at_the_end() {
    let timeline = fold(vec![
        user("hello"),
        TurnEvent::TextDelta { text: "Good ".into() },
        TurnEvent::TextDelta { text: "day".into() },
        finished(Finish::Answer, None),
    ]);
    assert_eq!(timeline.cards.len(), 3);
    assert_eq!(timeline.cards[1].kind, CardKind::Answer { text: "Good day".into(), streaming: false });
    assert!(!timeline.running());
    assert!(matches!(&timeline.cards[2].kind, CardKind::Footer { answer, .. } if answer == "Good day"));
}

#[test]
fn a_corrected_attempt_is_folded_into_one_card() {
    let code = |attempt| TurnEvent::Code { attempt, code: "x".into() };
    let timeline = fold(vec![
        user("segment the bone"),
        TurnEvent::Plan { plan: Plan::default() },
        code(1),
        run(false, "a"),
        TurnEvent::Repair { attempt: 2, of: 5, why: "NameError".into() },
        code(2),
        run(true, "b"),
    ]);
    let kinds: Vec<_> = timeline.cards.iter().map(|card| std::mem::discriminant(&card.kind)).collect();
    assert_eq!(kinds.len(), 5, "message, plan, repair, code, result");
    let CardKind::Repair { inside, .. } = &timeline.cards[2].kind else { panic!("the third card is the repair") };
    assert_eq!(inside.len(), 2);
    assert_eq!(timeline.undoable_run(), Some("b"));
}

#[test]
fn a_replaced_draft_leaves_only_its_replacement() {
    let timeline = fold(vec![
        user("x"),
        TurnEvent::TextDelta { text: "```agent_plan".into() },
        TurnEvent::TextReplaced { text: "I load the CT.".into() },
    ]);
    assert_eq!(timeline.cards.len(), 2);
    assert_eq!(timeline.cards[1].kind, CardKind::Answer { text: "I load the CT.".into(), streaming: false });
    let emptied = fold(vec![
        user("x"),
        TurnEvent::TextDelta { text: "draft".into() },
        TurnEvent::TextReplaced { text: String::new() },
    ]);
    assert_eq!(emptied.cards.len(), 1, "a draft that is replaced by nothing goes away");
}

#[test]
fn a_question_that_nobody_answered_expires_with_its_turn() {
    let asked = TurnEvent::PermissionAsked { request: "p".into(), findings: Vec::new() };
    let waiting = fold(vec![user("x"), asked.clone()]);
    assert_eq!(waiting.open_permission(), Some("p"));
    let over = fold(vec![user("x"), asked, finished(Finish::Stopped, None)]);
    assert_eq!(over.open_permission(), None);
    assert!(over.cards.iter().any(|card| matches!(card.kind, CardKind::Note { .. })), "it says who stopped it");
}

#[test]
fn thinking_is_timed_until_something_else_happens() {
    let timeline = fold(vec![
        user("x"),
        TurnEvent::ReasoningDelta { text: "hm".into() },
        TurnEvent::ReasoningDelta { text: "m".into() },
        TurnEvent::TextDelta { text: "Yes".into() },
    ]);
    assert_eq!(timeline.cards[1].kind, CardKind::Thinking { text: "hmm".into(), took_ms: Some(200) });
}

#[test]
fn an_error_offers_the_message_again() {
    let problem = Problem { kind: "NoSlicer".into(), message: "m".into(), advice: "a".into() };
    let timeline = fold(vec![user("load it"), finished(Finish::Failed, Some(problem))]);
    assert!(timeline.cards.iter().any(|card| matches!(&card.kind,
        CardKind::Error { retry, .. } if retry == "load it")));
}

#[test]
fn an_undone_run_cannot_be_undone_again() {
    let restored = RestoreReport { complete: true, ..RestoreReport::default() };
    let timeline = fold(vec![user("x"), run(true, "a"), TurnEvent::Undone { run: "a".into(), report: restored }]);
    assert_eq!(timeline.undoable_run(), None);
    assert!(timeline.last_run.is_none(), "marks of an undone run go away");
}

/// Undoing an older run would silently take later results with it; a measurement leaves nothing to undo.
#[test]
fn runs_are_undone_from_the_newest_change_backwards() {
    let measured = RunReport { run: "c".into(), ok: true, undoable: true, ..RunReport::default() };
    let mut events = vec![user("x"), run(true, "a"), run(true, "b")];
    events.push(TurnEvent::RunFinished { report: Box::new(measured) });
    assert_eq!(fold(events.clone()).undoable_run(), Some("b"));
    let report = RestoreReport { complete: true, ..RestoreReport::default() };
    events.push(TurnEvent::Undone { run: "b".into(), report });
    assert_eq!(fold(events).undoable_run(), Some("a"));
}

#[test]
fn card_ids_are_unique() {
    let problem = Problem::default();
    let timeline = fold(vec![user("x"), run(true, "a"), finished(Finish::Failed, Some(problem))]);
    let ids: std::collections::HashSet<_> = timeline.cards.iter().map(|card| card.id).collect();
    assert_eq!(ids.len(), timeline.cards.len());
}
