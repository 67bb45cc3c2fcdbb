//! Failed turns: what they leave in history, and which prompts are sent again.

use oa_turn::{Action, Options, StepPlan, Turn};
use oa_types::{ContentBlock, FinishReason, Message, Outcome, ToolResultBlock};
use serde_json::json;

use crate::rules::{begun, end};
use crate::snapshots::{carried, json, restored};
use crate::{answer, call, perform, text, told};

/// A conversation whose answer to "Go." broke off after "He".
fn broken(options: Options) -> Turn {
    let mut turn = begun(options);
    turn.begin_answer();
    turn.fail_with(vec![text("He")]);
    turn
}

/// Submits "On." after the broken answer; a steered message enters behind it.
fn steered() -> Turn {
    let mut turn = broken(Options::auto());
    turn.steer(Message::user("Briefly.")).expect("it is a prompt");
    turn.submit(Message::user("On.")).expect("nothing is in progress");
    assert!(matches!(turn.next_action(), Some(Action::Submit { steered: true, .. })));
    turn.accept_prompt(None).expect("it is a prompt");
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    turn
}

#[test]
fn steering_ends_an_earlier_failure() {
    let mut turn = carried(&steered());
    let said = ["user: Go.", "assistant: He (interrupted)", "user: On.", "user: Briefly."];
    turn.fail();
    assert!(turn.is_retry(&Message::user("On.")) && !turn.is_retry(&Message::user("Go.")));
    assert_eq!(told(&carried(&turn)), said);
    turn.submit(Message::user("Else.")).unwrap();
    assert_eq!(told(&turn), [&said[..], &["user: Else."]].concat());
}

#[test]
fn a_planned_end_ends_an_earlier_failure() {
    let mut options = Options::auto();
    options.plan_steps = true;
    let mut turn = Turn::new(options);
    turn.submit(Message::user("Go.")).unwrap();
    assert_eq!(turn.next_action(), Some(Action::Plan { step: 1 }));
    turn.plan(StepPlan::default());
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    turn.begin_answer();
    turn.fail_with(vec![text("He")]);
    turn.submit(Message::user("On.")).unwrap();
    assert_eq!(turn.next_action(), Some(Action::Plan { step: 1 }));
    let mut plan = StepPlan::default();
    plan.end = Some(FinishReason::Stopped);
    turn.plan(plan);
    let mut turn = carried(&turn);
    assert_eq!(turn.next_action(), Some(end(FinishReason::Stopped)));
    assert!(!turn.is_retry(&Message::user("Go.")) && !turn.is_retry(&Message::user("On.")));
    turn.submit(Message::user("Else.")).unwrap();
    let said = ["user: Go.", "assistant: He (interrupted)", "user: On.", "user: Else."];
    assert_eq!(told(&turn), said);
}

/// Written when a steered message kept the failure of the prompt before its own.
#[test]
fn snapshots_with_an_old_failure_are_read() {
    let mut snapshot: serde_json::Value = serde_json::from_str(&json(&steered())).unwrap();
    let broken = &snapshot["turn"]["conversation"]["messages"][1];
    snapshot["turn"]["failure"] = json!({
        "asked": { "place": 0, "given": null },
        "broken": broken,
        "is_recorded": true,
    });
    let mut turn = restored(&snapshot.to_string()).unwrap();
    turn.fail();
    assert!(turn.is_retry(&Message::user("On.")) && !turn.is_retry(&Message::user("Go.")));
    assert_eq!(told(&turn).len(), 4);
}

/// A steered message that is refused leaves the prompt as it was: it can still be removed.
#[test]
fn refused_steering_keeps_the_failure() {
    let mut turn = broken(Options::auto());
    turn.steer(Message::user("Briefly.")).unwrap();
    turn.submit(Message::user("On.")).unwrap();
    assert!(matches!(turn.next_action(), Some(Action::Submit { .. })));
    turn.refuse_steered();
    carried(&turn).fail();
    turn.fail();
    assert_eq!(told(&turn), ["user: Go."]);
    assert!(turn.is_retry(&Message::user("Go.")));
}

#[test]
fn resumed_turns_record_broken_answers() {
    let mut turn = Turn::new(Options::auto());
    let asks = vec![call("1", "a")];
    let result = Message::tool(ToolResultBlock::new("1", json!("ok")));
    turn.resume(vec![Message::user("Go."), Message::assistant(asks), result]).unwrap();
    turn.continue_turn().unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    turn.begin_answer();
    turn.fail_with(vec![text("He")]);
    assert!(!turn.is_retry(&Message::user("Go.")), "it is not known which message it was");
    let mut turn = carried(&turn);
    turn.submit(Message::user("And?")).unwrap();
    turn = carried(&turn);
    assert_eq!(told(&turn)[3..], ["assistant: He (interrupted)", "user: And?"]);
    turn.fail();
    assert_eq!(told(&turn).len(), 3, "the prompt is removed, and what preceded it");
    turn.submit(Message::user("And?")).unwrap();
    assert_eq!(told(&turn)[3..], ["assistant: He (interrupted)", "user: And?"]);
}

/// The cancelled calls belong to the turn before, and have not run.
#[test]
fn cut_calls_are_no_repetition() {
    let same = || -> Vec<ContentBlock> { ["1", "2", "3", "4"].map(|id| call(id, "a")).into() };
    type Cut = fn(&mut Turn);
    let cuts: [Cut; 3] = [
        |turn| turn.interrupt(Vec::new()),
        |turn| turn.stop(FinishReason::MaxRunTime, Vec::new()),
        |turn| turn.fail(),
    ];
    for cut in cuts {
        let mut turn = crate::rules::auto();
        answer(&mut turn, same());
        while !matches!(turn.next_action(), Some(Action::Decide { .. })) {}
        cut(&mut turn);
        while turn.next_action().is_some() {}
        turn.submit(Message::user("On.")).unwrap();
        assert_eq!(perform(&mut turn), Action::Request { tools: true });
        assert!(!told(&turn).concat().contains("note"), "{:?}", told(&turn));
        answer(&mut turn, vec![text("Done.")]);
        assert_eq!(turn.next_action(), Some(end(FinishReason::Unspecified)));
    }

    let mut turn = Turn::new(Options::auto());
    let result = |id| Message::tool(ToolResultBlock::new(id, json!("ok")));
    let mut history = vec![Message::user("Go."), Message::assistant(same())];
    history.extend(["1", "2", "3", "4"].map(result));
    turn.resume(history).unwrap();
    turn.continue_turn().unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
}

/// An external call never runs, so the error that it gets does not say that it did.
#[test]
fn cut_external_calls_have_not_run() {
    type Cut = fn(&mut Turn);
    let cuts: [(Cut, &str, Outcome); 3] = [
        (|turn| turn.interrupt(Vec::new()), "cancelled: the user interrupted", Outcome::Cancelled),
        (
            |turn| turn.stop(FinishReason::MaxRunTime, Vec::new()),
            "not run: the budget is used up",
            Outcome::NotRun,
        ),
        (|turn| turn.fail(), "not run: the turn failed", Outcome::NotRun),
    ];
    for (cut, error, outcome) in cuts {
        let mut turn = crate::rules::auto();
        turn.set_external_tools(["ask".to_owned()]);
        answer(&mut turn, vec![call("1", "a"), call("2", "ask")]);
        while let Some(action) = turn.next_action() {
            if let Action::Decide { call } = action {
                turn.allow(call);
            }
        }
        cut(&mut turn);
        assert!(told(&turn)[2].contains("it may have taken effect"), "{:?}", told(&turn));
        assert_eq!(crate::content(&turn, 1), json!({ "error": error, "tool": "ask" }));
        let state = &turn.calls()[1].state;
        assert!(
            matches!(state, oa_turn::CallState::Answered { outcome: got, .. } if *got == outcome)
        );
    }
}

/// Until another answer begins, the first broken answer is the one that the caller has seen.
#[test]
fn failed_retries_keep_the_broken_answer() {
    let go = Message::user("Go.");
    let mut turn = broken(Options::auto());
    assert!(turn.is_retry(&go));
    turn.retry(&go).unwrap();
    assert!(!turn.is_retry(&go), "it has been sent again");
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    turn.fail();
    assert!(turn.is_retry(&go));
    let before = told(&turn);
    turn.submit(Message::user("Something else.")).unwrap();
    let broken = "assistant: He (interrupted)".to_owned();
    let other = "user: Something else.".to_owned();
    assert_eq!(told(&turn), [before, vec![broken, other]].concat());
}

/// A turn that is over neither fails nor is cut: calls that wait for the caller still do.
#[test]
fn late_endings_change_nothing() {
    let mut turn = begun(Options::default());
    answer(&mut turn, vec![call("1", "a")]);
    perform(&mut turn);
    let state = |turn: &Turn| serde_json::to_value(turn.snapshot()).expect("a snapshot is JSON");
    let before = state(&turn);
    turn.fail();
    turn.fail_with(vec![text("Half")]);
    turn.interrupt(vec![text("Half")]);
    turn.stop(FinishReason::MaxRunTime, vec![text("Half")]);
    turn.abandon(vec![text("Half")]);
    assert_eq!(state(&turn), before);
    assert_eq!(turn.next_action(), None);
}
