//! Answers and results as history records them, and answers that lost their calls.

use oa_turn::{Action, Answer, CallState, Options, repair};
use oa_types::{
    ContentBlock, FinishReason, Message, MessageRole, Outcome, ThinkingBlock, ToolResultBlock,
};
use serde_json::{Value, json};

use crate::rules::begun;
use crate::{answer, call, malformed, perform, text};

fn thinking(words: &str) -> ContentBlock {
    ThinkingBlock::new(words).into()
}

/// The message of a result.
fn named(id: &str, name: &str, content: &str) -> Message {
    let mut result = ToolResultBlock::new(id, json!(content));
    result.name = Some(name.into());
    Message::tool(result)
}

/// An answer may come from anywhere, so its pieces need not be those of a stream.
#[test]
fn history_joins_pieces_and_drops_empty_ones() {
    let cases = [
        (vec![text("a"), text("b")], vec![text("ab")]),
        (vec![thinking("a"), thinking("b"), text("c")], vec![thinking("ab"), text("c")]),
        (vec![text("a"), thinking("b"), text("c")], vec![text("a"), thinking("b"), text("c")]),
        (vec![text("a"), thinking(""), text("b")], vec![text("ab")]),
        (vec![thinking("a"), text(""), thinking("b"), text("c")], vec![thinking("ab"), text("c")]),
        (vec![text(""), text("a"), thinking("")], vec![text("a")]),
        (
            vec![text("a"), call("1", "f"), text(""), text("b")],
            vec![text("a"), call("1", "f"), text("b")],
        ),
        (vec![thinking(""), call("1", "f"), thinking("b")], vec![call("1", "f"), thinking("b")]),
    ];
    for (blocks, recorded) in cases {
        for options in [Options::auto(), Options::default()] {
            let mut turn = begun(options);
            answer(&mut turn, blocks.clone());
            assert_eq!(turn.history()[1], Message::assistant(recorded.clone()), "{blocks:?}");
        }
        let mut turn = begun(Options::auto());
        let words = |block: &ContentBlock| !matches!(block, ContentBlock::ToolUse(_));
        let words: Vec<_> = recorded.into_iter().filter(words).collect();
        turn.interrupt(blocks);
        let has_text = words.iter().any(|block| block.as_text().is_some());
        let kept =
            turn.history().get(1).map(|message| (message.interrupted, message.content.len()));
        assert_eq!(kept.is_some(), has_text, "thinking alone is no answer");
        assert!(kept.is_none_or(|(interrupted, blocks)| interrupted && blocks <= words.len()));
    }
}

/// Only an answer that says it has calls has lost one.
#[test]
fn lost_calls_follow_from_the_finish_reason() {
    for (reason, is_lost) in [
        ("tool_calls", true),
        ("function_call", true),
        ("TOOL_USE", true),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", true),
        ("malformed_function_call", true),
        ("stop", false),
        ("length", false),
        ("content_filter", false),
    ] {
        let mut turn = begun(Options::auto());
        let mut lost = Answer::new(vec![text("Let me see."), malformed("1", None)]);
        lost.finish_reason = FinishReason::from(reason);
        turn.answer(lost);
        let next = perform(&mut turn);
        assert_eq!(matches!(next, Action::Request { .. }), is_lost, "{reason}: {next:?}");
        // An answer without a call has lost none.
        let mut turn = begun(Options::auto());
        let mut whole = Answer::new(vec![text("Done.")]);
        whole.finish_reason = FinishReason::from(reason);
        turn.answer(whole);
        assert_eq!(perform(&mut turn), Action::End { reason: FinishReason::from(reason) });
    }
}

/// Some APIs put results into user messages, among their text.
#[test]
fn results_leave_user_messages() {
    let result = |id: &str| ContentBlock::ToolResult(ToolResultBlock::new(id, json!(id)));
    let asked = Message::assistant(vec![call("1", "f"), call("2", "g")]);
    let mixed = vec![result("2"), text("And now?"), result("1")];
    let repaired = repair(vec![asked.clone(), Message::new(MessageRole::User, mixed)]);
    let results = [named("1", "f", "1"), named("2", "g", "2")];
    let expected = [vec![asked], results.to_vec(), vec![Message::user("And now?")]].concat();
    assert_eq!(repaired, expected);
}

/// As front ends of AG-UI write histories.
#[test]
fn results_are_moved_behind_their_calls() {
    let result = |id: &str| Message::tool(ToolResultBlock::new(id, json!(id)));
    let asks = |id: &str| Message::assistant(vec![call(id, "f")]);
    let says = || Message::assistant(vec![text("So.")]);
    let both = vec![asks("1"), named("1", "f", "1"), asks("2"), named("2", "f", "2")];
    assert_eq!(repair(vec![asks("1"), asks("2"), result("1"), result("2")]), both);
    let unanswered = |messages: Vec<Message>| {
        let repaired = format!("{:?}", repair(messages));
        repaired.matches("no result was recorded").count()
    };
    // The result of an earlier call that was removed.
    assert_eq!(unanswered(vec![result("2"), asks("1"), asks("2"), result("1")]), 1);
    let told = vec![asks("1"), named("1", "f", "1"), says()];
    assert_eq!(repair(vec![asks("1"), says(), result("1")]), told);
    // A model that counts its calls anew: the result may be that of either.
    let repaired = repair(vec![asks("1"), Message::user("No."), asks("1"), says(), result("1")]);
    let mut results = repaired.iter().filter(|message| message.role == MessageRole::Tool);
    assert!(results.all(|message| format!("{message:?}").contains("no result was recorded")));
}

/// A caller may change the conversation between a result and its review.
#[test]
fn results_in_a_new_history_are_reviewed() {
    let mut turn = begun(Options::default());
    answer(&mut turn, vec![call("1", "f"), call("2", "g")]);
    perform(&mut turn);
    turn.add_result("1", json!("raw"), Outcome::TimedOut).unwrap();
    turn.add_result("2", json!("raw"), Outcome::Ok).unwrap();
    let mut messages = turn.history().to_vec();
    messages.insert(0, Message::user("Earlier."));
    turn.set_history(messages).unwrap();
    turn.continue_turn().unwrap();
    assert_eq!(turn.next_action(), Some(Action::Review { call: 0 }));
    let CallState::Answered { outcome, .. } = turn.calls()[0].state else { panic!("a result") };
    assert_eq!(outcome, Outcome::TimedOut, "history does not say so");
    turn.review(0, json!("masked"));
    turn.abandon(Vec::new());

    // The second still awaits its review, the first not again.
    let mut messages = turn.history().to_vec();
    messages.remove(0);
    turn.set_history(messages.clone()).unwrap();
    turn.continue_turn().unwrap();
    assert_eq!(turn.next_action(), Some(Action::Review { call: 1 }));
    turn.abandon(Vec::new());

    // A conversation without that call has nothing to review.
    messages[1] = Message::assistant(vec![call("1", "f")]);
    messages.pop();
    turn.set_history(messages).unwrap();
    turn.continue_turn().unwrap();
    assert_eq!(turn.next_action(), Some(Action::Request { tools: true }));
}

/// The tool's own words stay, even a note of its own.
#[test]
fn repeat_notes_keep_the_result() {
    let noted = |content: Value| {
        let mut options = Options::auto();
        options.repeat_guard = Some(1);
        let mut turn = begun(options);
        answer(&mut turn, vec![call("1", "f")]);
        loop {
            match turn.next_action().expect("something is in progress") {
                Action::Decide { call } => turn.allow(call),
                Action::Run { .. } => assert!(turn.finish_call(0, content.clone(), Outcome::Ok)),
                Action::Review { call } => turn.review(call, content.clone()),
                Action::Show { .. } => {}
                action => break assert_eq!(action, Action::Request { tools: true }),
            }
        }
        crate::content(&turn, 0)
    };
    let text = noted(json!("Done."));
    let note = text.as_str().and_then(|text| text.strip_prefix("Done.\n\n")).expect("a note");
    assert!(note.starts_with("f has returned a result for these arguments. "), "{note}");
    assert_eq!(noted(json!({ "sum": 3 })), json!({ "sum": 3, "note": note }));
    for other in [json!([3]), json!({ "note": "of the tool" })] {
        assert_eq!(noted(other.clone()), json!({ "result": other, "note": note }));
    }
}
