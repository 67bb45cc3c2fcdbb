use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::encoder::Encoder;
use crate::run_stream::RunStream;
use crate::tests::sample_turn::{encode, everything, lines, text_of, turn};

fn run(state: Value) -> RunStream<RunEvents> {
    RunStream::new(RunEvents::new("thread".to_owned(), "run".to_owned(), true, state))
}

#[test]
fn every_event_is_encoded() {
    insta::assert_snapshot!(lines(&encode(&mut run(Value::Null), everything())));
}

proptest! {
    /// The client's verifier finds nothing: what is opened is closed, ids of messages are used once, a call has one
    /// result, and nothing follows the end. Calls of its own tools come with all of their arguments.
    #[test]
    fn client_accepts_each_turn(events in turn(), is_external in any::<bool>()) {
        let external = is_external.then(|| "add".to_owned());
        let mut run = run(Value::Null).external(Arc::new(external.into_iter().collect()));
        let mut sent = encode(&mut run, events.clone());
        prop_assert!(run.is_over());
        let last = sent.pop().expect("a turn has an end");
        let failed = last["type"] == "RUN_ERROR";
        prop_assert!(failed || last["type"] == "RUN_FINISHED");
        prop_assert_eq!(&sent[0]["type"], "RUN_STARTED");

        let (mut open, mut messages, mut calls, mut results) =
            (HashSet::new(), HashSet::new(), HashSet::new(), HashSet::new());
        let mut text = String::new();
        for event in &sent[1..] {
            let kind = event["type"].as_str().expect("each event has a type");
            let message = event["messageId"].as_str().unwrap_or_default();
            let call = event["toolCallId"].as_str().unwrap_or_default();
            match kind {
                "TEXT_MESSAGE_START" | "REASONING_START" => {
                    prop_assert!(messages.insert(message) && open.insert(message));
                }
                "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => {
                    prop_assert!(open.contains(message));
                    if kind == "TEXT_MESSAGE_CONTENT" {
                        text.push_str(event["delta"].as_str().expect("deltas are text"));
                    }
                }
                "TEXT_MESSAGE_END" | "REASONING_END" => prop_assert!(open.remove(message)),
                "REASONING_MESSAGE_START" | "REASONING_MESSAGE_END" => {}
                "TOOL_CALL_START" => {
                    prop_assert!(calls.insert(call) && open.insert(call));
                }
                "TOOL_CALL_ARGS" => {
                    prop_assert!(open.contains(call));
                    let all = json!({"a": 1}).to_string();
                    prop_assert!(!is_external || event["delta"] == all);
                }
                "TOOL_CALL_END" => prop_assert!(open.remove(call)),
                "TOOL_CALL_RESULT" => {
                    prop_assert!(messages.insert(message) && results.insert(call));
                    prop_assert!(calls.contains(call) && !open.contains(call));
                    prop_assert!(event["content"].is_string());
                }
                "ACTIVITY_SNAPSHOT" => prop_assert!(!open.contains(message)),
                "CUSTOM" => prop_assert!(!event["value"].is_null()),
                other => prop_assert!(false, "{}", other),
            }
        }
        prop_assert!(failed || open.is_empty());
        prop_assert_eq!(text, text_of(&events));
        // No member is null: the client refuses most of them.
        prop_assert!(sent.iter().all(|event| event.as_object().is_some_and(|e| !e.values().any(Value::is_null))));
        prop_assert_eq!(encode(&mut run, events), Vec::<Value>::new());
    }
}

#[test]
fn state_snapshots_are_merged() {
    let (mut run, mut out) = (run(json!({"title": "Draft", "pages": 2})), Vec::new());
    run.writer.state(&json!({"title": "Report"}), &mut out);
    assert_eq!(run.writer.state, json!({"title": "Report", "pages": 2}));
    assert!(String::from_utf8_lossy(&out).contains("\"pages\":2"));
}

/// The client fails a run with any other.
#[test]
fn only_safe_integers_are_sent() {
    let mut counts = Usage::default();
    (counts.prompt_tokens, counts.completion_tokens) = (Some(u64::MAX), Some((1 << 53) - 1));
    assert_eq!(usage(&counts), Some(json!({"outputTokens": 9_007_199_254_740_991_u64})));
    counts.completion_tokens = Some(1 << 53);
    assert_eq!(usage(&counts), None);
}
