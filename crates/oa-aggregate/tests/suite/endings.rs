//! Ends of streams, and calls that were lost in them.

use oa_aggregate::{Aggregator, Options, Problem, UncleanEnd};
use oa_types::ContentBlock;

use crate::{delta, finish, fragment, run, text};

#[test]
fn break_after_finish_reason_is_complete() {
    for end in [UncleanEnd::Broken, UncleanEnd::Silent] {
        for (payloads, is_complete) in [
            (vec![], false),
            (vec![text("Hi.")], false),
            (vec![text("Hi."), finish("stop")], true),
            (vec![finish("length")], true),
            (vec!["[DONE]".to_owned()], true),
        ] {
            let mut aggregator = Aggregator::new();
            for payload in &payloads {
                aggregator.push(payload.as_bytes()).unwrap();
            }
            assert_eq!(aggregator.break_off(end), is_complete, "{payloads:?}");
            let told = Problem::UncleanEnd(end);
            let problems = aggregator.into_answer().problems;
            assert_eq!(problems, if is_complete { vec![told] } else { vec![] }, "{payloads:?}");
        }
    }
}

#[test]
fn call_in_unreadable_chunk_is_an_error() {
    let errors = |payloads: &[String]| {
        let blocks = run(Options::default(), payloads).answer.blocks;
        let errors = blocks.iter().filter(|block| matches!(block, ContentBlock::ToolUseError(_)));
        errors.count()
    };
    let broken = || r#"{"choices": [{"delta": {"tool_calls": [{"index": 0,, "#.to_owned();
    let call = || fragment(r#""index":0,"id":"c","function":{"name":"ring","arguments":"{}"}"#);
    assert_eq!(errors(&[broken(), finish("tool_calls")]), 1);
    assert_eq!(errors(&[text("I ring."), broken(), finish("function_call")]), 1);
    // The model did not mean to call anything, or a call is there.
    assert_eq!(errors(&[text("Hi."), broken(), finish("stop")]), 0);
    assert_eq!(errors(&[broken(), call(), finish("tool_calls")]), 0);
}

#[test]
fn announced_call_that_never_came_is_an_error() {
    let thinking = || delta(r#""reasoning_content":"I ring.""#);
    for (payloads, is_lost) in [
        (vec![finish("tool_calls")], true),
        (vec![thinking(), text("\n"), finish("TOOL_USE")], true),
        // Some servers name this reason whenever the request has tools.
        (vec![text("Hi."), finish("tool_calls")], false),
        (vec![thinking(), finish("stop")], false),
        (vec![thinking()], false),
    ] {
        let answer = run(Options::default(), &payloads).answer;
        let lost = answer.blocks.iter().find_map(ContentBlock::as_tool_use_error);
        assert_eq!(lost.is_some(), is_lost, "{payloads:?}");
        if let Some(lost) = lost {
            assert_eq!(
                lost.error,
                "the call was lost: the server announced it, but did not send it"
            );
        }
    }
}

#[test]
fn reasons_are_read_in_any_case() {
    for reason in ["error", "ERROR", "Network_Error", "ABORT", "insufficient_system_resource"] {
        let problems = run(Options::default(), [text("Hi"), finish(reason)]).answer.problems;
        let [Problem::Server(error)] = &problems[..] else { panic!("{reason}: {problems:?}") };
        assert!(error.message.contains(reason), "{error}");
    }
    for reason in ["MALFORMED_FUNCTION_CALL", "malformed_function_call"] {
        let blocks = run(Options::default(), [finish(reason)]).answer.blocks;
        assert!(matches!(&blocks[..], [ContentBlock::ToolUseError(_)]), "{reason}: {blocks:?}");
    }
}
