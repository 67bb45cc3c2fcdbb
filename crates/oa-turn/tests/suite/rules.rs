//! One example test for each rule.

use oa_turn::{Action, Answer, Decision, ErrorKind, Options, Turn, repair};
use oa_types::{Cost, FinishReason, Message, Outcome, ToolResultBlock};
use serde_json::json;

use crate::{answer, call, content, malformed, perform, text, told};

pub(crate) fn auto() -> Turn {
    begun(Options::auto())
}

pub(crate) fn manual() -> Turn {
    begun(Options::default())
}

pub(crate) fn begun(options: Options) -> Turn {
    let mut turn = Turn::new(options);
    turn.submit(Message::user("Go.")).expect("nothing is in progress");
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
    turn
}

/// Returns the blocks shown to the caller, one line each, and the next action.
pub(crate) fn shown(turn: &mut Turn) -> (Vec<String>, Option<Action>) {
    let mut shown = Vec::new();
    loop {
        match turn.next_action() {
            Some(Action::Show { block }) => shown.push(crate::line(&block)),
            action => return (shown, action),
        }
    }
}

pub(crate) fn lines<const N: usize>(lines: [&str; N]) -> Vec<String> {
    lines.map(str::to_owned).into()
}

pub(crate) fn end(reason: FinishReason) -> Action {
    Action::End { reason }
}

#[test]
fn results_are_in_call_order() {
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
fn all_calls_are_decided_before_any_runs() {
    let mut turn = auto();
    answer(&mut turn, vec![call("1", "a"), call("2", "b")]);
    let calls = lines([r#"[1 {"a":1}]"#, r#"[2 {"a":1}]"#]);
    assert_eq!(shown(&mut turn), (calls, Some(Action::Decide { call: 0 })));
    assert_eq!(turn.next_action(), None);
    turn.decide(0, Decision::Refuse(json!({"error": "denied"})));
    assert_eq!(turn.next_action(), Some(Action::Decide { call: 1 }));
    assert_eq!(told(&turn).len(), 2, "while calls are decided, history ends with the answer");
    turn.decide(1, Decision::Run(json!({"a": 2})));
    assert_eq!(turn.next_action(), Some(Action::Run { calls: vec![1] }));
    assert_eq!(turn.next_action(), Some(Action::Review { call: 0 }));
    turn.review(0, content(&turn, 0));
    assert_eq!(shown(&mut turn), (lines(["1?denied", r#"1!{"error":"denied"}"#]), None));
    assert!(turn.finish_call(1, json!("ok"), Outcome::Ok));
    assert!(!turn.finish_call(1, json!("again"), Outcome::Ok));
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
            Action::Show { .. } => {}
            Action::Run { .. } => assert!(turn.finish_call(0, json!("secret"), Outcome::Ok)),
            Action::Review { call } => turn.review(call, json!("****")),
            _ => break,
        }
    }
    assert_eq!(told(&turn)[2], r#"tool: 1="****""#);
}

/// In auto mode the model reads the error and can repair the call; in manual mode the call is left out.
#[test]
fn malformed_calls_stay_only_in_auto_mode() {
    let broken =
        || vec![text("Hm."), malformed("1", Some("a")), malformed("2", None), call("3", "c")];
    let mut turn = auto();
    answer(&mut turn, broken());
    perform(&mut turn);
    assert_eq!(
        told(&turn)[1..],
        [
            r#"assistant: Hm. [1 {}] [3 {"a":1}]"#,
            r#"tool: 1!{"error":"the arguments are not valid JSON","tool":"a","arguments":"{\"a\":"}"#,
            r#"tool: 3="ok""#,
        ]
    );
    let mut turn = manual();
    answer(&mut turn, broken());
    perform(&mut turn);
    assert_eq!(told(&turn)[1..], [r#"assistant: Hm. [3 {"a":1}]"#]);
}

#[test]
fn calls_beyond_max_rounds_do_not_run() {
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
fn one_answer_without_tools_follows_a_limit() {
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

/// By default, the third equal result carries a note, and the fourth ends the turn.
#[test]
fn repeat_guard_warns_then_ends_the_turn() {
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
    assert!(told[6].contains("will not change it"), "{}", told[6]);
    assert_eq!(told[8], r#"tool: c4="ok""#);
}

#[test]
fn manual_mode_waits_for_the_caller() {
    let mut turn = manual();
    answer(&mut turn, vec![call("1", "a"), call("2", "b")]);
    assert_eq!(perform(&mut turn), end(FinishReason::Unspecified));
    let error = turn.continue_turn().unwrap_err();
    assert_eq!(
        (error.kind(), &*error.to_string()),
        (ErrorKind::OpenCalls, "calls have no result yet: 1, 2")
    );
    assert_eq!(
        turn.add_result("9", json!(0), Outcome::Ok).unwrap_err().kind(),
        ErrorKind::UnknownCall
    );
    turn.add_result("2", json!("two"), Outcome::Ok).unwrap();
    assert_eq!(
        turn.add_result("2", json!("two"), Outcome::Ok).unwrap_err().kind(),
        ErrorKind::AlreadyAnswered
    );
    turn.add_result("1", json!("one"), Outcome::Failed).unwrap();
    assert_eq!(told(&turn)[2..], [r#"tool: 1!"one""#, r#"tool: 2="two""#]);
    turn.continue_turn().unwrap();
    // Results are looked at before the request, in the order in which they came.
    assert_eq!(turn.next_action(), Some(Action::Review { call: 1 }));
    turn.review(1, json!("changed"));
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    assert_eq!(told(&turn)[3], r#"tool: 2="changed""#);
}

/// A request to continue that comes while calls are shown is remembered until all have results.
#[test]
fn early_continue_waits_for_the_last_result() {
    for (told_of_the_end, says_it_again) in [(false, false), (true, false), (true, true)] {
        let mut turn = manual();
        answer(&mut turn, vec![call("1", "a"), call("2", "b")]);
        assert_eq!(turn.next_action(), Some(Action::Decide { call: 0 }));
        turn.decide(0, Decision::Run(json!({"a": 1})));
        assert!(matches!(turn.next_action(), Some(Action::Show { .. })));
        turn.add_result("1", json!(1), Outcome::Ok).unwrap();
        assert!(!turn.continue_when_answered().unwrap());
        assert_eq!(turn.next_action(), Some(Action::Decide { call: 1 }));
        turn.decide(1, Decision::Run(json!({"a": 1})));
        assert!(matches!(turn.next_action(), Some(Action::Show { .. })));
        // Everything is shown: a wish without a result is a mistake now.
        let error = turn.continue_when_answered().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OpenCalls);
        if told_of_the_end {
            assert_eq!(turn.next_action(), Some(end(FinishReason::Unspecified)));
            assert_eq!(turn.next_action(), None);
        }
        turn.add_result("2", json!(2), Outcome::Ok).unwrap();
        if says_it_again {
            turn.continue_turn().unwrap();
        }
        assert_eq!(perform(&mut turn), Action::Request { tools: true });
    }
}

#[test]
fn unread_errors_do_not_wait_for_results() {
    for review_answers in [false, true] {
        let mut options = Options::default();
        options.review_answers = review_answers;
        let mut turn = begun(options);
        answer(&mut turn, vec![malformed("1", None)]);
        let error = turn.continue_when_answered().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NothingToContinue);
    }
}

#[test]
fn answers_before_a_decision_hide_no_block() {
    let mut turn = manual();
    answer(&mut turn, vec![call("1", "a"), malformed("2", None)]);
    assert_eq!(turn.next_action(), Some(Action::Decide { call: 0 }));
    turn.add_result("1", json!(1), Outcome::Ok).unwrap();
    assert_eq!(turn.next_action(), Some(Action::Show { block: call("1", "a") }));
    assert_eq!(turn.next_action(), Some(Action::Show { block: malformed("2", None) }));
    assert!(matches!(turn.next_action(), Some(Action::End { .. })));
}

/// The caller may answer the last call and continue before it takes `Action::End`.
#[test]
fn continue_is_allowed_before_end_is_taken() {
    let go_on_when_answered =
        |turn: &mut Turn| turn.continue_when_answered().map(|now| assert!(now));
    for go_on in [Turn::continue_turn, go_on_when_answered] {
        let mut turn = manual();
        answer(&mut turn, vec![text("Hm."), call("1", "a")]);
        turn.next_action();
        turn.decide(0, Decision::Run(json!({"a": 1})));
        assert_eq!(turn.next_action(), Some(Action::Show { block: call("1", "a") }));
        turn.add_result("1", json!(1), Outcome::Ok).unwrap();
        go_on(&mut turn).unwrap();
        assert_eq!(perform(&mut turn), Action::Request { tools: true });
    }
}

#[test]
fn reviewed_results_are_shown_in_call_order() {
    let mut turn = auto();
    answer(&mut turn, vec![call("1", "a"), malformed("2", Some("a")), call("3", "a")]);
    let mut shown = Vec::new();
    loop {
        match turn.next_action() {
            Some(Action::Show { block }) => shown.push(crate::line(&block)),
            Some(Action::Decide { call }) => turn.decide(call, Decision::Run(json!({"b": call}))),
            Some(Action::Run { calls }) => {
                assert_eq!(calls, [0, 2]);
                assert!(turn.finish_call(2, json!({"error": "no luck"}), Outcome::Failed));
            }
            Some(Action::Review { call: 0 }) => turn.review(0, json!("checked")),
            Some(Action::Review { call }) => turn.review(call, content(&turn, call)),
            None => assert!(turn.finish_call(0, json!("ok"), Outcome::Ok)),
            Some(_) => break,
        }
    }
    assert_eq!(
        shown,
        [
            r#"[1 {"a":1}]"#,
            "2?the arguments are not valid JSON",
            r#"[3 {"a":1}]"#,
            r#"1="checked""#,
            r#"2!{"error":"the arguments are not valid JSON","tool":"a","arguments":"{\"a\":"}"#,
            "3?no luck",
            r#"3!{"error":"no luck"}"#,
        ]
    );
}

/// A call is shown with the input that hooks gave it; a refused one is shown only as an error.
#[test]
fn manual_mode_shows_calls_as_decided() {
    let mut turn = manual();
    answer(&mut turn, vec![call("1", "a"), malformed("2", None), call("3", "a")]);
    assert_eq!(shown(&mut turn), (vec![], Some(Action::Decide { call: 0 })));
    turn.decide(0, Decision::Run(json!({"safe": true})));
    let first = lines([r#"[1 {"safe":true}]"#, "2?the arguments are not valid JSON"]);
    assert_eq!(shown(&mut turn), (first, Some(Action::Decide { call: 1 })));
    turn.decide(1, Decision::Refuse(json!({"error": "denied", "reason": "too risky"})));
    let blocked = lines(["3?denied: too risky", r#"3!{"error":"denied","reason":"too risky"}"#]);
    assert_eq!(shown(&mut turn), (blocked, Some(end(FinishReason::Unspecified))));
    assert_eq!(
        turn.add_result("3", json!(1), Outcome::Ok).unwrap_err().kind(),
        ErrorKind::AlreadyAnswered
    );
    turn.add_result("1", json!("ok"), Outcome::Ok).unwrap();
    assert_eq!(
        told(&turn)[1..],
        [
            // History keeps the model's own arguments.
            r#"assistant: [1 {"a":1}] [3 {"a":1}]"#,
            r#"tool: 1="ok""#,
            r#"tool: 3!{"error":"denied","reason":"too risky"}"#,
        ]
    );
}

#[test]
fn final_text_only_shows_the_last_text() {
    let mut options = Options::auto();
    options.final_text_only = true;
    let mut turn = begun(options);
    answer(&mut turn, vec![text("I look."), call("1", "a"), malformed("2", None)]);
    let mut shown = Vec::new();
    let reason = loop {
        match turn.next_action().unwrap() {
            Action::Show { block } => shown.push(crate::line(&block)),
            Action::Decide { call } => turn.decide(call, Decision::Run(json!({}))),
            Action::Run { .. } => assert!(turn.finish_call(0, json!("ok"), Outcome::Ok)),
            Action::Review { call } => turn.review(call, content(&turn, call)),
            Action::Request { .. } => answer(&mut turn, vec![text("It is "), text("done.")]),
            Action::End { reason } => break reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((shown, reason), (lines(["It is done."]), FinishReason::Unspecified));
}

#[test]
fn failed_prompts_do_not_count() {
    let mut options = Options::auto();
    (options.max_turns, options.max_tokens) = (Some(1), Some(100));
    let mut turn = Turn::new(options);
    // A prompt that failed does not count.
    for failed in [true, false] {
        turn.submit(Message::user("Go.")).unwrap();
        perform(&mut turn);
        if failed {
            turn.fail();
        }
    }
    for (number, end) in [(1, false), (2, true)] {
        let mut spent = Answer::new(vec![call(&format!("c{number}"), "a")]);
        spent.tokens = 50;
        turn.answer(spent);
        let next = perform(&mut turn);
        assert_eq!(next == self::end(FinishReason::MaxRunTokens), end, "{next:?}");
    }
    assert!(told(&turn).last().unwrap().contains("not run: token limit"));
    assert_eq!(turn.turns(), 1);
    assert_eq!(turn.submit(Message::user("Again.")).unwrap_err().kind(), ErrorKind::MaxTurns);
}

#[test]
fn max_cost_ends_the_turn() {
    let cost = |amount| Cost::new(amount).unwrap();
    let mut options = Options::auto();
    options.max_cost = Some(cost(0.3));
    options.last_answer_without_tools = true;
    let mut turn = begun(options);
    for (number, amount, end) in [(1, 0.1, false), (2, 0.1, false), (3, 0.1, true)] {
        let mut spent = Answer::new(vec![call(&format!("c{number}"), "a")]);
        spent.cost = cost(amount);
        turn.answer(spent);
        let next = perform(&mut turn);
        assert_eq!(next == self::end(FinishReason::MaxRunCost), end, "{next:?}");
    }
    assert!(told(&turn).last().unwrap().contains("not run: cost limit"));
    // A prompt more has its own.
    turn.submit(Message::user("Go.")).unwrap();
    perform(&mut turn);
    turn.answer(Answer::new(vec![call("c4", "a")]));
    assert_ne!(perform(&mut turn), end(FinishReason::MaxRunCost));
}

#[test]
fn unchanged_messages_keep_their_revisions() {
    let mut turn = auto();
    answer(&mut turn, vec![call("1", "a"), call("2", "a")]);
    let first = turn.revisions().to_vec();
    perform(&mut turn);
    assert_eq!(turn.revisions()[..2], first[..]);
    answer(&mut turn, vec![text("Done.")]);
    perform(&mut turn);
    let before = turn.revisions().to_vec();
    let mut messages = turn.history().to_vec();
    messages.insert(0, Message::system("Be brief."));
    messages[1] = Message::user("Go on.");
    turn.set_history(messages).unwrap();
    let after = turn.revisions();
    assert_eq!(after[2..], before[1..]);
    assert!(after[..2].iter().all(|revision| !before.contains(revision)));
}

#[test]
fn new_prompts_answer_open_calls() {
    let mut turn = manual();
    answer(&mut turn, vec![call("1", "a")]);
    perform(&mut turn);
    turn.submit(Message::user("Never mind.")).unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    assert_eq!(
        told(&turn)[2..],
        [
            r#"tool: 1!{"error":"not run: the user moved on without it","tool":"a"}"#,
            "user: Never mind.",
        ]
    );
}

/// A failed continuation removes nothing, and neither does a failure after the answer began.
#[test]
fn failed_request_removes_its_prompt() {
    let mut turn = auto();
    turn.fail();
    assert!(turn.history().is_empty());
    // Once an answer has begun the prompt stays, so that it can be gone on from.
    let mut turn = auto();
    turn.begin_answer();
    turn.fail();
    assert_eq!(told(&turn), ["user: Go."]);
    turn.continue_turn().unwrap();
    let mut turn = auto();
    answer(&mut turn, vec![call("1", "a")]);
    perform(&mut turn);
    turn.fail();
    assert_eq!(told(&turn).len(), 3);
    turn.continue_turn().unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
}

#[test]
fn misuse_is_an_error_and_changes_nothing() {
    let mut turn = Turn::new(Options::default());
    assert_eq!(turn.submit(Message::user(" ")).unwrap_err().kind(), ErrorKind::InvalidPrompt);
    assert_eq!(turn.continue_turn().unwrap_err().kind(), ErrorKind::NothingToContinue);
    assert_eq!(
        turn.add_result("1", json!(1), Outcome::Ok).unwrap_err().kind(),
        ErrorKind::UnknownCall
    );
    turn.submit(Message::user("Go.")).unwrap();
    assert_eq!(turn.submit(Message::user("Go.")).unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(turn.set_history(Vec::new()).unwrap_err().kind(), ErrorKind::Busy);
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
            call("4", "d"),
        ]),
        result("2"),
        result("2"),
        result("9"),
        Message::assistant(vec![]),
        Message::user(""),
        Message::user("On."),
        result("1"),
    ]);
    let mut turn = Turn::new(Options::default());
    turn.set_history(repaired.clone()).unwrap();
    assert_eq!(
        told(&turn),
        [
            "user: Go.",
            r#"assistant: [1 {"a":1}] [2 {"a":1}] [4 {"a":1}]"#,
            "tool: 1=1",
            "tool: 2=1",
            r#"tool: 4!{"error":"unknown: no result was recorded, so the call may or may not have run","tool":"d"}"#,
            "user: On.",
        ]
    );
    assert_eq!(repair(repaired.clone()), repaired);
}

/// A call without a name cannot have a result, so the model is asked to call again.
#[test]
fn lost_calls_count_as_rounds() {
    let lost = |turn: &mut Turn| {
        let mut lost = Answer::new(vec![malformed("1", None)]);
        lost.finish_reason = FinishReason::ToolCalls;
        turn.answer(lost);
        shown(turn)
    };
    let mut options = Options::auto();
    options.max_rounds = 2;
    let mut turn = begun(options);
    for round in 1..=2 {
        let (shown, next) = lost(&mut turn);
        assert_eq!((shown.len(), next), (1, Some(Action::Request { tools: true })));
        assert_eq!(turn.rounds(), round);
    }
    assert_eq!(lost(&mut turn).1, Some(end(FinishReason::MaxToolIterations)));
    let told = told(&turn);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[2].starts_with("user: Your tool call could not be used"), "{told:?}");

    // The caller of manual mode is told, and decides.
    let mut turn = manual();
    assert_eq!(lost(&mut turn).1, Some(end(FinishReason::ToolCalls)));
    assert_eq!(crate::told(&turn).len(), 1);
}

#[test]
fn output_tool_results_are_not_reviewed() {
    let mut turn = auto();
    turn.begin_output(Some("final_answer".to_owned()));
    answer(&mut turn, vec![malformed("1", Some("final_answer"))]);
    let (shown, next) = shown(&mut turn);
    assert_eq!(shown.len(), 2, "the call and its result: {shown:?}");
    assert_eq!(next, Some(Action::Request { tools: true }));
}

#[test]
fn results_may_arrive_before_the_decision() {
    let mut turn = manual();
    answer(&mut turn, vec![call("1", "a"), call("2", "b")]);
    assert_eq!(turn.next_action(), Some(Action::Decide { call: 0 }));
    turn.add_result("1", json!("early"), Outcome::Ok).unwrap();
    turn.decide(0, Decision::Refuse(json!("late")));
    assert_eq!(perform(&mut turn), end(FinishReason::Unspecified));
    assert_eq!(told(&turn)[2..], [r#"tool: 1="early""#]);
}

/// A server would reject each of these forever.
#[test]
fn calls_without_id_or_name_are_dropped() {
    let mut turn = Turn::new(Options::auto());
    turn.submit(Message::user("Go.")).unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    let odd = [call("", "a"), call("1", ""), malformed("", Some("a")), malformed("2", Some(""))];
    answer(&mut turn, [text("Hm.")].into_iter().chain(odd).collect());
    let mut shown = 0;
    while let Some(Action::Show { block }) = turn.next_action() {
        assert!(matches!(block, oa_types::ContentBlock::ToolUseError(_)), "{block:?}");
        shown += 1;
    }
    assert_eq!((shown, turn.calls().len()), (4, 0));
    assert_eq!(turn.history()[1], Message::assistant(vec![text("Hm.")]));

    turn.submit(Message::user("Again.")).unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    answer(&mut turn, vec![text("Yes.")]);
    let history = turn.history().to_vec();
    for message in [Message::user(" "), Message::assistant(vec![text("No.")])] {
        assert!(!turn.correct(message));
        assert_eq!(turn.history().to_vec(), history);
    }
    assert!(turn.correct(Message::user("No.")));
}
