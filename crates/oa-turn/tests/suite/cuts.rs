//! Turns that end early, and the results that the model then sees for calls.

use oa_turn::{Action, CallState, Decision, Turn};
use oa_types::{FinishReason, Message, Outcome};
use serde_json::json;

use crate::rules::{auto, end, shown};
use crate::{answer, call, perform, text, told};

#[test]
fn interrupt_keeps_text_and_answers_calls() {
    let mut turn = auto();
    turn.interrupt(vec![text("Half a"), text(" word"), call("1", "a")]);
    assert_eq!(turn.next_action(), Some(end(FinishReason::Interrupted)));
    assert_eq!(told(&turn)[1..], ["assistant: Half a word (interrupted)"]);
    assert_eq!(turn.continue_turn().unwrap_err().kind(), oa_turn::ErrorKind::NothingToContinue);

    let mut turn = auto();
    answer(&mut turn, vec![call("1", "a"), call("2", "b")]);
    shown(&mut turn);
    turn.decide(0, Decision::Run(json!({})));
    turn.interrupt(Vec::new());
    assert_eq!(turn.next_action(), Some(end(FinishReason::Interrupted)));
    assert!(!turn.finish_call(0, json!("late"), Outcome::Ok));
    assert_eq!(told(&turn)[2], r#"tool: 1!{"error":"cancelled: the user interrupted","tool":"a"}"#);
    assert_eq!(told(&turn).len(), 4);
    turn.interrupt(Vec::new());
    assert_eq!(turn.next_action(), None, "an idle conversation has nothing to interrupt");
}

#[test]
fn cut_running_calls_may_have_taken_effect() {
    type Cut = fn(&mut Turn);
    let cuts: [(Cut, &str); 4] = [
        (|turn| turn.interrupt(Vec::new()), "the user interrupted"),
        (|turn| turn.stop(FinishReason::MaxRunTime, Vec::new()), "the budget is used up"),
        (|turn| turn.abandon(Vec::new()), "the user moved on without it"),
        (|turn| turn.fail(), "the turn failed"),
    ];
    for (cut, why) in cuts {
        let mut turn = auto();
        answer(&mut turn, vec![call("1", "a")]);
        while let Some(action) = turn.next_action() {
            if let Action::Decide { call } = action {
                turn.decide(call, Decision::Run(json!({})));
            }
        }
        cut(&mut turn);
        let error = format!("cancelled: {why} while it ran; it may have taken effect");
        assert_eq!(told(&turn)[2], format!(r#"tool: 1!{{"error":"{error}","tool":"a"}}"#));
    }
}

/// Also if the interrupt comes while the decision on a later call is awaited.
#[test]
fn cut_calls_are_reviewed_in_call_order() {
    for decided in 0..3 {
        let mut turn = auto();
        answer(&mut turn, vec![call("1", "a"), call("2", "b"), call("3", "c")]);
        for call in 0..decided {
            shown(&mut turn);
            turn.decide(call, Decision::Run(json!({})));
        }
        shown(&mut turn);
        turn.interrupt(Vec::new());
        assert_eq!(turn.next_action(), Some(end(FinishReason::Interrupted)));
        turn.submit(Message::user("Go on.")).unwrap();
        for place in 0..3 {
            assert_eq!(turn.next_action(), Some(Action::Review { call: place }), "{decided}");
            turn.review(place, json!("reviewed"));
        }
        assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    }
}

#[test]
fn interrupt_clears_waiting_approvals() {
    let mut turn = auto();
    answer(&mut turn, vec![call("1", "a")]);
    turn.next_action();
    assert_eq!(turn.next_action(), Some(Action::Decide { call: 0 }));
    turn.decide(0, Decision::Wait(json!({})));
    // The end of a turn that shows its text last comes in two steps; here it is still to be told.
    turn.interrupt(Vec::new());
    assert_eq!(turn.next_action(), Some(end(FinishReason::Interrupted)));
    assert!(!turn.waits_for_approval());
}

#[test]
fn lost_results_have_an_unknown_outcome() {
    let mut turn = auto();
    answer(&mut turn, vec![call("1", "a"), call("2", "b")]);
    assert!(!turn.lose_call(0), "it has not started");
    while let Some(action) = turn.next_action() {
        if let Action::Decide { call } = action {
            turn.decide(call, Decision::Run(json!({})));
        }
    }
    assert_eq!(turn.pending_action(), Some(Action::Run { calls: vec![0, 1] }));
    assert!(turn.finish_call(1, json!("ok"), Outcome::Ok));
    assert!(turn.lose_call(0) && !turn.lose_call(1) && !turn.lose_call(2));
    let CallState::Answered { outcome, .. } = turn.calls()[0].state else { panic!() };
    assert_eq!(outcome, Outcome::Unknown);
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    let lost = "unknown: the call was started, and its result was lost; it may have taken effect";
    assert_eq!(told(&turn)[2], format!(r#"tool: 1!{{"error":"{lost}","tool":"a"}}"#));
}
