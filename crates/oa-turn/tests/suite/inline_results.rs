//! Results in the place of their calls.

use oa_turn::{Action, Options, Turn};
use oa_types::{ContentBlock, FinishReason, Message, Outcome};
use serde_json::{Value, json};

use crate::{answer, call, malformed, perform, text, told};

fn options() -> Options {
    let mut options = Options::auto();
    options.inline_results = true;
    options
}

fn asked(options: Options) -> Turn {
    let mut turn = Turn::new(options);
    turn.submit(Message::user("Go.")).expect("it is a prompt");
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    turn
}

/// Performs everything up to the next request or the end, with these results, and returns the text that
/// is shown on the way.
fn play(turn: &mut Turn, results: &[(Value, Outcome)]) -> (String, Action) {
    let mut shown = String::new();
    loop {
        match turn.next_action().expect("something is in progress") {
            Action::Decide { call } => {
                let input = turn.calls()[call].block.input.clone();
                turn.decide(call, oa_turn::Decision::Run(input));
            }
            Action::Run { calls } => {
                for call in calls {
                    let (content, outcome) = results[call].clone();
                    assert!(turn.finish_call(call, content, outcome));
                }
            }
            Action::Review { call } => {
                let content = crate::content(turn, call);
                turn.review(call, content);
            }
            Action::Show { block: ContentBlock::Text(block) } => shown.push_str(&block.text),
            Action::Show { .. } => {}
            action => return (shown, action),
        }
    }
}

fn ok(content: impl Into<Value>) -> (Value, Outcome) {
    (content.into(), Outcome::Ok)
}

#[test]
fn results_replace_calls_in_the_text() {
    let mut turn = asked(options());
    assert!(turn.inlines_results());
    let blocks = vec![
        text("From "),
        call("1", "a"),
        text(" to "),
        call("2", "b"),
        call("3", "c"),
        text("!"),
    ];
    answer(&mut turn, blocks);
    let (shown, end) = play(&mut turn, &[ok("3"), ok(json!({"n": 7})), ok("")]);
    assert_eq!(shown, r#"3 to {"n":7}!"#, "what stood before the first call was shown before");
    assert_eq!(end, Action::End { reason: FinishReason::Stop });
    assert_eq!(
        told(&turn)[1..],
        [
            r#"assistant: From  [1 {"a":1}]  to  [2 {"a":1}] [3 {"a":1}] !"#,
            r#"tool: 1="3""#,
            r#"tool: 2={"n":7}"#,
            r#"tool: 3="""#,
            r#"assistant: From 3 to {"n":7}!"#,
        ]
    );
    assert_eq!(turn.rounds(), 1);
    turn.submit(Message::user("Again.")).unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
    answer(&mut turn, vec![text("No calls.")]);
    assert_eq!(perform(&mut turn), Action::End { reason: FinishReason::Unspecified });
}

#[test]
fn failed_calls_ask_the_model_again() {
    for (blocks, results) in [
        (vec![text("It is "), call("1", "a"), text(".")], vec![(json!("no"), Outcome::Failed)]),
        (vec![call("1", "a"), malformed("2", Some("b"))], vec![ok("3")]),
    ] {
        let mut turn = asked(options());
        answer(&mut turn, blocks);
        let (shown, next) = play(&mut turn, &results);
        assert_eq!((&*shown, next), ("", Action::Request { tools: true }));
        answer(&mut turn, vec![text("It is not known.")]);
        assert_eq!(perform(&mut turn), Action::End { reason: FinishReason::Unspecified });
    }
}

/// Text after a call is held back for its result. If the model is not asked again, it is shown unchanged.
#[test]
fn held_text_is_shown_when_a_limit_ends_it() {
    let mut limited = options();
    limited.max_calls = Some(1);
    let mut turn = asked(limited);
    answer(&mut turn, vec![text("From "), call("1", "a"), text(" to "), call("2", "a")]);
    let (shown, end) = play(&mut turn, &[]);
    assert_eq!((&*shown, end), (" to ", Action::End { reason: FinishReason::MaxToolCalls }));
    assert_eq!(turn.history().len(), 4, "no text was made up");
}

#[test]
fn repeat_guard_ignores_inlined_results() {
    let mut turn = asked(options());
    answer(&mut turn, (0..9).map(|number| call(&format!("c{number}"), "a")).collect());
    let results: Vec<_> = (0..9).map(|_| ok("x")).collect();
    let (shown, end) = play(&mut turn, &results);
    assert_eq!((&*shown, end), ("xxxxxxxxx", Action::End { reason: FinishReason::Stop }));
}

#[test]
fn empty_results_add_no_message() {
    for empty in ["", " ", "\n"] {
        let mut turn = asked(options());
        answer(&mut turn, vec![call("1", "a")]);
        let (shown, end) = play(&mut turn, &[ok(empty)]);
        assert_eq!((&*shown, end), (empty, Action::End { reason: FinishReason::Stop }));
        assert_eq!(crate::snapshots::carried(&turn).history().len(), 3);
    }
}

#[test]
fn final_text_only_shows_filled_text_once() {
    let mut quiet = options();
    quiet.final_text_only = true;
    let mut turn = asked(quiet);
    answer(&mut turn, vec![text("It is "), call("1", "a"), text(".")]);
    let (shown, _) = play(&mut turn, &[ok("3")]);
    assert_eq!(shown, "It is 3.");
}

#[test]
fn manual_mode_does_not_inline_results() {
    let mut manual = Options::default();
    manual.inline_results = true;
    let mut turn = asked(manual);
    assert!(!turn.inlines_results());
    answer(&mut turn, vec![text("It is "), call("1", "a")]);
    assert_eq!(perform(&mut turn), Action::End { reason: FinishReason::Unspecified });
    turn.add_result("1", json!("3"), Outcome::Ok).unwrap();
    turn.continue_turn().unwrap();
    assert_eq!(perform(&mut turn), Action::Request { tools: true });
}
