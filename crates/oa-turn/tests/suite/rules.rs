//! One test for each rule that a reader wants to see at work.

use oa_turn::{Action, Decision, ErrorKind, History, Options, Turn, repair};
use oa_types::{FinishReason, Message, ToolResultBlock};
use serde_json::json;

use crate::{answer, call, content, malformed, perform, text, told};

fn auto() -> Turn {
    begun(Options::auto())
}

fn manual() -> Turn {
    begun(Options::default())
}

fn begun(options: Options) -> Turn {
    let mut turn = Turn::new(options);
    turn.submit(Message::user("Go.")).expect("nothing is in progress");
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    turn
}

fn end(reason: FinishReason) -> Action {
    Action::End { reason }
}

#[test]
fn results_stand_in_call_order_whatever_the_order_of_completion() {
    let mut turn = auto();
    answer(&mut turn, vec![text("I look."), call("1", "a"), call("2", "b"), call("3", "c")]);
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    assert_eq!(
        told(&turn),
        [
            "user: Go.",
            r#"assistant: I look. [1 {"a":1}] [2 {"a":1}] [3 {"a":1}]"#,
            r#"tool: 1="ok""#,
            r#"tool: 2="ok""#,
            r#"tool: 3="ok""#,
        ]
    );
    answer(&mut turn, vec![text("Done.")]);
    assert_eq!(turn.next_action(), Some(end(FinishReason::Unspecified)));
    assert_eq!(turn.next_action(), None);
}

#[test]
fn every_call_is_decided_before_any_runs_and_a_refused_one_never_does() {
    let mut turn = auto();
    answer(&mut turn, vec![call("1", "a"), call("2", "b")]);
    assert_eq!(turn.next_action(), Some(Action::Decide { call: 0 }));
    assert_eq!(turn.next_action(), None);
    turn.decide(0, Decision::Refuse(json!({"error": "denied"})));
    assert_eq!(turn.next_action(), Some(Action::Decide { call: 1 }));
    turn.decide(1, Decision::Run(json!({"a": 2})));
    assert_eq!(turn.next_action(), Some(Action::Run { calls: vec![1] }));
    assert_eq!(turn.next_action(), Some(Action::Review { call: 0 }));
    turn.review(0, content(&turn, 0));
    assert_eq!(turn.next_action(), None);
    assert!(turn.finish_call(1, json!("ok"), false));
    assert!(!turn.finish_call(1, json!("again"), false));
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    assert_eq!(
        told(&turn)[1..],
        [
            // History keeps the model's own arguments.
            r#"assistant: [1 {"a":1}] [2 {"a":1}]"#,
            r#"tool: 1!{"error":"denied"}"#,
            r#"tool: 2="ok""#,
        ]
    );
}

#[test]
fn a_review_may_change_a_result() {
    let mut turn = auto();
    answer(&mut turn, vec![call("1", "a")]);
    while let Some(action) = turn.next_action() {
        match action {
            Action::Decide { call } => turn.decide(call, Decision::Run(json!({}))),
            Action::Run { .. } => assert!(turn.finish_call(0, json!("secret"), false)),
            Action::Review { call } => turn.review(call, json!("****")),
            _ => break,
        }
    }
    assert_eq!(told(&turn)[2], r#"tool: 1="****""#);
}

#[test]
fn a_malformed_call_is_mended_by_the_model_in_auto_mode_and_left_out_in_manual_mode() {
    let broken =
        || vec![text("Hm."), malformed("1", Some("a")), malformed("2", None), call("3", "c")];
    let mut turn = auto();
    answer(&mut turn, broken());
    perform(&mut turn);
    assert_eq!(
        told(&turn)[1..],
        [
            r#"assistant: Hm. [1 {}] [3 {"a":1}]"#,
            r#"tool: 1!{"arguments":"{\"a\":","error":"the arguments are not valid JSON","tool":"a"}"#,
            r#"tool: 3="ok""#,
        ]
    );
    let mut turn = manual();
    answer(&mut turn, broken());
    perform(&mut turn);
    assert_eq!(told(&turn)[1..], [r#"assistant: Hm. [3 {"a":1}]"#]);
}

#[test]
fn calls_after_the_last_round_are_not_run_and_answered() {
    let mut options = Options::auto();
    (options.max_rounds, options.repeat_guard) = (2, None);
    let mut turn = Turn::new(options);
    turn.submit(Message::user("Go.")).unwrap();
    for round in 0..2 {
        assert_eq!(perform(&mut turn), Action::Request { tools: true });
        answer(&mut turn, vec![call(&format!("r{round}"), "a")]);
    }
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    answer(&mut turn, vec![call("late", "a")]);
    assert_eq!(perform(&mut turn), end(FinishReason::MaxToolIterations));
    assert_eq!(
        told(&turn).last().unwrap(),
        r#"tool: late!{"error":"not run: iteration limit","tool":"a"}"#
    );
    // It goes on from there, with a fresh budget.
    turn.continue_turn().unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
}

#[test]
fn a_limit_may_be_followed_by_one_last_answer_without_tools() {
    let mut options = Options::auto();
    (options.max_rounds, options.last_answer_without_tools) = (1, true);
    for obedient in [true, false] {
        let mut turn = Turn::new(options);
        turn.submit(Message::user("Go.")).unwrap();
        perform(&mut turn);
        answer(&mut turn, vec![call("1", "a")]);
        perform(&mut turn);
        answer(&mut turn, vec![call("2", "a")]);
        assert_eq!(perform(&mut turn), Action::Request { tools: false });
        answer(&mut turn, if obedient { vec![text("So far.")] } else { vec![call("3", "a")] });
        assert_eq!(perform(&mut turn), end(FinishReason::MaxToolIterations));
    }
}

#[test]
fn the_same_call_again_and_again_is_told_at_the_third_time_and_ended_at_the_fourth() {
    let mut options = Options::auto();
    options.max_rounds = 10;
    let mut turn = Turn::new(options);
    turn.submit(Message::user("Go.")).unwrap();
    for round in 1..=4 {
        assert_eq!(perform(&mut turn), Action::Request { tools: true }, "round {round}");
        answer(&mut turn, vec![call(&format!("c{round}"), "a")]);
    }
    assert_eq!(perform(&mut turn), end(FinishReason::RepeatedToolCall));
    let told = told(&turn);
    assert_eq!(told[4], r#"tool: c2="ok""#);
    assert!(told[6].contains("It will not change"), "{}", told[6]);
    assert_eq!(told[8], r#"tool: c4="ok""#);
}

#[test]
fn in_manual_mode_the_caller_answers_and_says_when_to_go_on() {
    let mut turn = manual();
    answer(&mut turn, vec![call("1", "a"), call("2", "b")]);
    assert_eq!(perform(&mut turn), end(FinishReason::Unspecified));
    let error = turn.continue_turn().unwrap_err();
    assert_eq!(
        (error.kind(), &*error.to_string()),
        (ErrorKind::OpenCalls, "calls have no result yet: 1, 2")
    );
    assert_eq!(turn.add_result("9", json!(0), false).unwrap_err().kind(), ErrorKind::UnknownCall);
    turn.add_result("2", json!("two"), false).unwrap();
    assert_eq!(
        turn.add_result("2", json!("two"), false).unwrap_err().kind(),
        ErrorKind::AlreadyAnswered
    );
    turn.add_result("1", json!("one"), true).unwrap();
    assert_eq!(told(&turn)[2..], [r#"tool: 1!"one""#, r#"tool: 2="two""#]);
    turn.continue_turn().unwrap();
    // Results are looked at before the request, in the order in which they came.
    assert_eq!(turn.next_action(), Some(Action::Review { call: 1 }));
    turn.review(1, json!("changed"));
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    assert_eq!(told(&turn)[3], r#"tool: 2="changed""#);
}

#[test]
fn a_wish_to_go_on_waits_for_the_last_result() {
    let mut turn = manual();
    answer(&mut turn, vec![call("1", "a"), call("2", "b")]);
    perform(&mut turn);
    turn.continue_when_answered().unwrap();
    turn.add_result("1", json!(1), false).unwrap();
    assert_eq!(turn.next_action(), None);
    turn.add_result("2", json!(2), false).unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
}

#[test]
fn a_new_prompt_answers_open_calls_with_not_run() {
    let mut turn = manual();
    answer(&mut turn, vec![call("1", "a")]);
    perform(&mut turn);
    turn.submit(Message::user("Never mind.")).unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    assert_eq!(
        told(&turn)[2..],
        [
            r#"tool: 1!{"error":"not run: the user went on without it","tool":"a"}"#,
            "user: Never mind.",
        ]
    );
}

#[test]
fn an_interrupt_keeps_words_and_answers_calls() {
    let mut turn = auto();
    turn.interrupt(vec![text("Half a"), text(" word"), call("1", "a")]);
    assert_eq!(turn.next_action(), Some(end(FinishReason::Interrupted)));
    assert_eq!(told(&turn)[1..], ["assistant: Half a word (interrupted)"]);
    assert_eq!(turn.continue_turn().unwrap_err().kind(), ErrorKind::NothingToContinue);

    let mut turn = auto();
    answer(&mut turn, vec![call("1", "a"), call("2", "b")]);
    turn.next_action();
    turn.decide(0, Decision::Run(json!({})));
    turn.interrupt(Vec::new());
    assert_eq!(turn.next_action(), Some(end(FinishReason::Interrupted)));
    assert!(!turn.finish_call(0, json!("late"), false));
    assert_eq!(told(&turn)[2], r#"tool: 1!{"error":"cancelled: the user interrupted","tool":"a"}"#);
    assert_eq!(told(&turn).len(), 4);
    turn.interrupt(Vec::new());
    assert_eq!(turn.next_action(), None, "an idle conversation has nothing to interrupt");
}

#[test]
fn a_failed_send_takes_its_prompt_back_and_a_failed_continuation_nothing() {
    let mut turn = auto();
    turn.fail();
    assert!(turn.history().is_empty());
    let mut turn = auto();
    answer(&mut turn, vec![call("1", "a")]);
    perform(&mut turn);
    turn.fail();
    assert_eq!(told(&turn).len(), 3);
    turn.continue_turn().unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
}

#[test]
fn what_makes_no_sense_is_an_error_and_changes_nothing() {
    let mut turn = Turn::new(Options::default());
    assert_eq!(turn.submit(Message::user(" ")).unwrap_err().kind(), ErrorKind::EmptyPrompt);
    assert_eq!(turn.continue_turn().unwrap_err().kind(), ErrorKind::NothingToContinue);
    assert_eq!(turn.add_result("1", json!(1), false).unwrap_err().kind(), ErrorKind::UnknownCall);
    turn.submit(Message::user("Go.")).unwrap();
    assert_eq!(turn.submit(Message::user("Go.")).unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(turn.clear_history().unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(turn.history().len(), 1);
}

#[test]
fn any_list_of_messages_is_repaired() {
    let result = |id: &str| Message::tool(ToolResultBlock::new(id, json!(1)));
    let repaired = repair(vec![
        result("0"),
        Message::user("Go."),
        Message::assistant(vec![
            call("1", "a"),
            call("2", "b"),
            call("2", "c"),
            malformed("3", None),
        ]),
        result("2"),
        result("2"),
        result("9"),
        Message::assistant(vec![]),
        Message::user("On."),
        result("1"),
    ]);
    let turn = Turn::with_history(Options::default(), History::new(repaired.clone()));
    assert_eq!(
        told(&turn),
        [
            "user: Go.",
            r#"assistant: [1 {"a":1}] [2 {"a":1}]"#,
            r#"tool: 1!{"error":"not run","tool":"a"}"#,
            "tool: 2=1",
            "user: On.",
        ]
    );
    assert_eq!(repair(repaired.clone()), repaired);
}
