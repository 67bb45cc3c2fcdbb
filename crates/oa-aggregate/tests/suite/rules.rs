//! The rules of aggregation, each shown by a small stream.

mod calls;
mod loading;
mod messages;
mod numbers;
mod strings;

use insta::assert_snapshot;
use oa_aggregate::{
    AggregatedAnswer, Aggregator, ChoiceIndex, FinishReason, Options, Problem, StreamStatus,
    TemplateCache, ThinkTags,
};
use oa_types::ContentBlock;
use serde_json::json;

use crate::{Outcome, Told, delta, finish, fragment, run, text};

fn plain(payloads: &[impl AsRef<[u8]>]) -> Outcome {
    run(Options::default(), payloads)
}

/// The deltas, one per line, then the blocks.
fn story(outcome: &Outcome) -> String {
    let line = |told: &Told| match told {
        Told::Text(text) => format!("+ text {text:?}"),
        Told::Thinking(text) => format!("+ thinking {text:?}"),
        Told::Refusal(text) => format!("+ refusal {text:?}"),
        Told::CallStart(call, id, name) => format!("+ call {call} begins: {id} {name}"),
        Told::CallArguments(call, fragment) => format!("+ call {call}: {fragment}"),
        Told::Problem(problem) => format!("! {problem}"),
        Told::PromptProgress(progress) => format!("{progress:?}"),
    };
    let mut lines: Vec<String> = outcome.told.iter().map(line).collect();
    lines.push(outcome.blocks());
    lines.join("\n")
}

fn usage(answer: &AggregatedAnswer) -> [Option<u64>; 5] {
    let usage = answer.usage.unwrap_or_default();
    [
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.total_tokens,
        usage.cached_tokens,
        usage.reasoning_tokens,
    ]
}

// 1: every field is optional.

#[test]
fn null_empty_and_mistyped_are_absent() {
    let outcome = plain(&[
        "{}",
        "[]",
        "null",
        "\"text\"",
        "",
        " ",
        r#"{"choices":null}"#,
        r#"{"choices":{}}"#,
        r#"{"choices":[null,5,[]]}"#,
        r#"{"choices":[{"delta":null,"finish_reason":null}]}"#,
        r#"{"choices":[{"delta":[],"finish_reason":""}]}"#,
        r#"{"choices":[{"delta":{"content":null,"refusal":null,"tool_calls":null,"reasoning":5}}]}"#,
        r#"{"choices":[{"delta":{"content":"","refusal":"","tool_calls":[],"function_call":{}}}]}"#,
        r#"{"choices":[{"delta":{"content":{},"tool_calls":[{},null],"reasoning_details":{}}}]}"#,
        r#"{"error":null,"usage":null,"id":null,"model":5}"#,
        r#"{"error":"","usage":{},"id":"","model":""}"#,
    ]);
    assert_eq!(outcome.told, []);
    assert!(outcome.answer.is_empty() && !outcome.answer.is_complete());
    assert_eq!(outcome.answer.problems, []);
    assert_eq!((outcome.answer.usage, outcome.answer.id), (None, None));
}

#[test]
fn unknown_finish_reason_is_kept() {
    let outcome = plain(&[finish("eos_token")]);
    assert_eq!(outcome.answer.finish_reason.as_str(), "eos_token");
    assert!(outcome.answer.is_finished());
}

#[test]
fn null_as_a_word_is_no_finish_reason() {
    let payload = |text: &str, reason: &str| {
        format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}},"finish_reason":"{reason}"}}]}}"#)
    };
    let outcome = plain(&[payload("Hi", "null"), payload(".", "None")]);
    assert_eq!(outcome.answer.finish_reason, FinishReason::Unspecified);
    let outcome = plain(&[payload("Hi", "null"), payload(".", "length"), payload("", "null")]);
    assert_eq!(outcome.answer.finish_reason, FinishReason::Length);
}

#[test]
fn reasoning_parts_are_thinking() {
    let outcome = plain(&[delta(
        r#""content":[{"type":"reasoning","summary":[{"type":"summary_text","text":"Hm. "}]},
        {"text":"Ah. ","type":"reasoning"},{"type":"thinking","thinking":"So."},{"type":"text","text":"Yes."}]"#,
    )]);
    assert_eq!(outcome.blocks(), "thinking \"Hm. Ah. So.\"\ntext \"Yes.\"");
}

#[test]
fn servers_cannot_report_an_interrupt() {
    let outcome = plain(&[text("Hi"), finish("interrupted")]);
    assert_eq!(outcome.answer.finish_reason, FinishReason::Other("interrupted".into()));
}

#[test]
fn first_id_and_model_are_kept() {
    let outcome = plain(&[
        r#"{"id":"","model":null,"choices":[]}"#,
        r#"{"id":"a","model":"m","choices":[{"delta":{"content":"x"}}]}"#,
        r#"{"id":"b","model":"n","choices":[{"delta":{"content":"y"}}]}"#,
    ]);
    assert_eq!(outcome.answer.id.as_deref(), Some("a"));
    assert_eq!(outcome.answer.model.as_deref(), Some("m"));
}

// 2: errors and ends.

#[test]
fn error_beside_a_delta_comes_first() {
    let outcome = plain(&[
        text("so "),
        r#"{"choices":[{"delta":{"content":"far"}}],"error":{"message":"overloaded","code":529}}"#
            .to_owned(),
    ]);
    assert_snapshot!(story(&outcome), @r#"
    + text "so "
    ! overloaded
    + text "far"
    text "so far"
    "#);
}

#[test]
fn an_error_may_be_a_string() {
    let outcome = plain(&[r#"{"error":"no such model"}"#]);
    let [Problem::Server(error)] = &outcome.answer.problems[..] else { panic!() };
    assert_eq!(error.message, "no such model");
    assert!(outcome.answer.is_empty());
}

#[test]
fn stream_continues_after_unreadable_payload() {
    let outcome = plain(&[text("a"), "<html>".to_owned(), text("b")]);
    assert_snapshot!(story(&outcome), @r#"
    + text "a"
    ! not JSON at byte 0: "<html>"
    + text "b"
    text "ab"
    "#);
}

#[test]
fn chunks_after_the_finish_reason_count() {
    let outcome = plain(&[
        text("a"),
        finish("stop"),
        r#"{"choices":[],"usage":{"total_tokens":3}}"#.to_owned(),
        r#"{"error":"late","choices":[]}"#.to_owned(),
        text("b"),
        "[DONE]".to_owned(),
    ]);
    assert_eq!(outcome.text(), "ab");
    assert_eq!(outcome.answer.problems.len(), 1);
    assert_eq!(usage(&outcome.answer)[2], Some(3));
    assert!(outcome.answer.done);
}

#[test]
fn last_finish_reason_counts() {
    let outcome = plain(&[finish("length"), finish("stop"), delta(""), finish("")]);
    assert_eq!(outcome.answer.finish_reason, FinishReason::Stop);
}

// 3: which choice.

#[test]
fn other_choices_are_ignored_by_default() {
    let list = [
        r#"{"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"stop"},{"index":0,"delta":{"content":"yes"}}]}"#,
        r#"{"choices":[{"index":2,"delta":{"tool_calls":[{"index":0,"function":{"name":"f"}}]}}]}"#,
        r#"{"choices":[{"delta":{"content":", no index"}}]}"#,
    ];
    let outcome = plain(&list);
    assert_eq!(outcome.blocks(), "text \"yes, no index\"");
    assert!(!outcome.answer.is_finished());
    let mut options = Options::default();
    options.quirks.choice = ChoiceIndex::Any;
    assert_eq!(run(options, &list[..1]).text(), "noyes");
}

#[test]
fn message_replaces_only_a_missing_delta() {
    let outcome = plain(&[
        r#"{"choices":[{"message":{"role":"assistant","content":"whole"},"finish_reason":"stop"}]}"#,
    ]);
    assert_eq!(outcome.text(), "whole");
    let outcome = plain(&[
        r#"{"choices":[{"message":{"content":"a"},"delta":{"content":"a"}}]}"#,
        r#"{"choices":[{"delta":{"content":"b"},"message":{"content":"ab"}}]}"#,
        r#"{"choices":[{"delta":{},"message":{"content":"ab"}}]}"#,
        r#"{"choices":[{"delta":null,"message":{"content":"!"}}]}"#,
    ]);
    assert_eq!(outcome.text(), "ab!");
}

// 4: steps within a chunk.

#[test]
fn chunk_with_everything_keeps_its_order() {
    let outcome = plain(&[r#"{
        "usage": {"total_tokens": 9},
        "choices": [{
            "finish_reason": "tool_calls",
            "delta": {
                "tool_calls": [
                    {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}},
                    {"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}}
                ],
                "refusal": "I would rather not.",
                "content": "Let me see.",
                "reasoning_content": "Hm."
            }
        }],
        "error": "slow"
    }"#]);
    assert_snapshot!(story(&outcome), @r#"
    ! slow
    + thinking "Hm."
    + text "Let me see."
    + refusal "I would rather not."
    + call 0 begins: a f
    + call 0: {}
    + call 1 begins: b g
    + call 1: {}
    thinking "Hm."
    text "Let me see."
    text "I would rather not."
    call a f {}
    call b g {}
    "#);
    assert_eq!(outcome.answer.finish_reason, FinishReason::ToolCalls);
    assert_eq!(usage(&outcome.answer)[2], Some(9));
}

// 5: thinking.

#[test]
fn first_nonempty_reasoning_name_counts() {
    let outcome = plain(&[
        delta(r#""reasoning_content":"a","reasoning":"no","reasoning_details":[{"text":"no"}]"#),
        delta(r#""reasoning_content":"","reasoning":"b","reasoning_details":[{"text":"no"}]"#),
        delta(
            r#""reasoning":null,"reasoning_details":[{"text":"c"},{"summary":"d"},{"data":"no"}]"#,
        ),
    ]);
    assert_eq!(outcome.thinking(), "abcd");
    assert!(outcome.answer.extra.contains_key("reasoning_details"));
}

#[test]
fn empty_reasoning_falls_back_with_templates() {
    let both = |one: &str, two: &str| {
        delta(&format!(r#""reasoning_content":"{one}","reasoning":"{two}""#))
    };
    let outcome = plain(&[both("a", "x"), both("b", "x"), both("", "x")]);
    assert_eq!(outcome.thinking(), "abx");
}

#[test]
fn content_parts_become_text_and_thinking() {
    let parts = r#""content":[
        {"type":"thinking","thinking":[{"type":"text","text":"Hm"},{"type":"text","text":"."}]},
        {"type":"thinking","thinking":" So."},
        {"type":"text","text":"Yes"},
        {"type":"reference","reference_ids":[1]},
        " or no"
    ]"#;
    let outcome = plain(&[delta(&parts.replace('\n', " "))]);
    assert_eq!(outcome.blocks(), "thinking \"Hm. So.\"\ntext \"Yes or no\"");
}

#[test]
fn think_tags_are_split_only_in_text() {
    let list = [
        text("<th"),
        text("ink>a <b>"),
        delta(r#""reasoning":"<think>""#),
        text("</think>c"),
        text("</think>"),
    ];
    let mut options = Options::default();
    options.quirks.think_tags = ThinkTags::Split;
    let outcome = run(options, &list);
    assert_eq!(outcome.blocks(), "thinking \"a <b><think>\"\ntext \"c</think>\"");
    assert_eq!(plain(&list).text(), "<think>a <b></think>c</think>");
}

// 6: which call.

// 7: ids and names.

// 8: arguments.

// 9: what was cut off.

// 10: text that repeats, beside the laws.

#[test]
fn held_back_text_precedes_later_call() {
    let outcome = plain(&[
        text("ha "),
        text("ha "),
        fragment(r#""index":0,"id":"a","function":{"name":"f","arguments":"{}"}"#),
        text("ok"),
    ]);
    assert_eq!(outcome.blocks(), "text \"ha ha \"\ncall a f {}\ntext \"ok\"");
}

#[test]
fn held_back_text_precedes_later_thinking() {
    let outcome = plain(&[text("ha "), text("ha "), delta(r#""reasoning":"Hm.""#), text("ok")]);
    assert_eq!(outcome.blocks(), "text \"ha ha \"\nthinking \"Hm.\"\ntext \"ok\"");
}

#[test]
fn held_back_text_precedes_later_refusal() {
    let outcome = plain(&[text("ha "), text("ha "), delta(r#""refusal":"No.""#)]);
    assert_eq!(outcome.blocks(), "text \"ha ha \"\ntext \"No.\"");
}

#[test]
fn rows_of_one_character_are_kept() {
    for row in
        ["────────", "哈哈哈哈哈哈", "🎉🎉🎉🎉", "\u{3000}\u{3000}\u{3000}\u{3000}\u{3000}\u{3000}"]
    {
        let words = [row, row, row, row, row, "\nTable"];
        assert_eq!(plain(&words.map(text)).text(), words.concat());
        let thoughts = words.map(|word| delta(&format!(r#""reasoning":{}"#, json!(word))));
        assert_eq!(plain(&thoughts).thinking(), words.concat());
        let outcome = plain(&words.map(detail));
        assert_eq!(outcome.thinking(), words.concat());
        assert_eq!(outcome.answer.extra["reasoning_details"][0]["text"], words.concat());
    }
}

// 12: blocks.

#[test]
fn blocks_keep_the_order_of_their_starts() {
    let outcome = plain(&[
        delta(r#""reasoning":"one""#),
        delta(r#""content":"""#),
        fragment(r#""index":1,"id":"b","function":{"name":"g","arguments":"{"}"#),
        text("two"),
        fragment(r#""index":0,"id":"a","function":{"name":"f","arguments":"{}"}"#),
        fragment(r#""index":1,"function":{"arguments":"}"}"#),
        delta(r#""reasoning":"three""#),
        finish("tool_calls"),
    ]);
    assert_snapshot!(outcome.blocks(), @r#"
    thinking "one"
    call b g {}
    text "two"
    call a f {}
    thinking "three"
    "#);
}

#[test]
fn a_refusal_is_never_silence() {
    let outcome = plain(&[
        delta(r#""content":null,"refusal":"I can't ""#),
        delta(r#""refusal":"do that.""#),
        finish("stop"),
    ]);
    assert_eq!(outcome.answer.refusal.as_deref(), Some("I can't do that."));
    assert_eq!(outcome.blocks(), "text \"I can't do that.\"");
    assert!(!outcome.answer.is_empty());
}

// 13: what more servers do (QUIRKS rows 104 to 119).

/// A chunk with a reasoning detail that has this text.
fn detail(text: &str) -> String {
    delta(&format!(
        r#""reasoning_details":[{{"type":"reasoning.text","index":0,"text":{}}}]"#,
        serde_json::Value::from(text)
    ))
}

#[test]
fn error_finish_reason_is_one_error() {
    let alone = plain(&[text("so "), finish("error")]);
    assert_snapshot!(story(&alone), @r#"
    + text "so "
    ! the server ended the answer with the finish reason "error" and no details
    text "so "
    "#);
    let explained = plain(&[
        r#"{"choices":[{"delta":{},"finish_reason":"error","error":{"code":502,"message":"gone"}}]}"#,
    ]);
    assert_snapshot!(story(&explained), @"! gone");
}

#[test]
fn explanation_comes_before_the_error() {
    let outcome = plain(&[finish("error"), r#"{"error":"out of memory"}"#.to_owned()]);
    let words: Vec<String> = outcome.answer.problems.iter().map(Problem::to_string).collect();
    assert_eq!(words[0], "out of memory");
    assert_eq!(words.len(), 2);
}

#[test]
fn error_of_another_choice_is_ignored() {
    let outcome =
        plain(&[r#"{"choices":[{"index":1,"delta":{},"finish_reason":"error","error":"no"}]}"#]);
    assert_eq!(outcome.answer.problems, []);
}

#[test]
fn list_starting_with_an_error_is_an_error() {
    let answer = r#"[{"error":{"code":503,"message":"overloaded"}},{"error":"unread"}]"#;
    for payload in [answer.to_owned(), format!(" \n{answer} ")] {
        let problems = plain(&[&payload]).answer.problems;
        let words: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(words, ["overloaded"], "{payload}");
    }
}

/// The member `error` may say little or nothing, and those beside it the rest.
#[test]
fn members_beside_an_error_explain_it() {
    for (payload, expected) in [
        (r#"{"error":true,"message":"no memory"}"#, "no memory"),
        (r#"{"error":1,"msg":"no memory"}"#, "no memory"),
        (r#"{"choices":[],"error":"Bad Request","detail":"no memory"}"#, "Bad Request: no memory"),
        (r#"{"error":{"reason":"no memory"}}"#, r#"{"error":{"reason":"no memory"}}"#),
        (r#"{"error":"no memory","model":"m"}"#, "no memory"),
        (r#"{"error":{"message":"no memory"},"message":"else"}"#, "no memory"),
    ] {
        let problems = plain(&[payload]).answer.problems;
        let words: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(words, [expected], "{payload}");
    }
    // Beside an answer, only the error itself is one.
    let answer = r#"{"error":"odd","message":"else","choices":[{"delta":{"content":"a"}}]}"#;
    assert_eq!(plain(&[answer]).answer.problems[0].to_string(), "odd");
}

/// QUIRKS row 136.
#[test]
fn code_and_message_are_an_error() {
    for (payload, expected) in [
        (r#"{"code":50505,"message":"no memory","data":null}"#, "no memory"),
        (r#"{"code":"rate_limit_daily","message":"no memory"}"#, "no memory"),
        (r#"{"msg":"no memory","code":"400"}"#, "no memory"),
        (r#"{"id":"1","choices":[],"status":503,"message":"no memory"}"#, "no memory"),
        (r#"{"status":"Error","message":"no memory"}"#, "no memory"),
        (r#"{"detail":"no memory"}"#, "no memory"),
        (r#"{"success":false,"errors":[{"code":1,"message":"no memory"}]}"#, "no memory"),
        (r#"{"detail":[{"loc":["body"],"msg":"no memory"}]}"#, "no memory"),
    ] {
        // The template of a payload that is no error is no excuse for one.
        for before in ["", r#"{"code":0,"message":"OK"}"#, r#"{"status":"queued","message":"a"}"#] {
            let problems = plain(&[before, before, payload]).answer.problems;
            let words: Vec<String> = problems.iter().map(Problem::to_string).collect();
            assert_eq!(words, [expected], "{payload}");
        }
    }
}

#[test]
fn payloads_like_errors_are_no_errors() {
    let outcome = plain(&[
        r#"{"code":20000,"message":"OK"}"#,
        r#"{"code":200,"message":"go on"}"#,
        r#"{"code":"success","message":"go on"}"#,
        r#"{"code":500,"message":{"role":"assistant"}}"#,
        r#"{"code":null,"status":"in_progress","message":"go on"}"#,
        r#"{"message":"go on","detail":null}"#,
        r#"{"code":500,"message":"beside","detail":"it","choices":[{"delta":{"content":""}}]}"#,
        "[]",
        r#"[5, "error", {"error":"not the first"}]"#,
        r#"[{"error":null}]"#,
        r#"{"object":"error","choices":[{"delta":{"content":"a"}}]}"#,
        r#"{"text":"fine","error_code":0}"#,
        r#"{"object":"list","message":"hello"}"#,
    ]);
    assert_eq!((outcome.text(), outcome.answer.problems), ("a".to_owned(), vec![]));
}

/// A chunk in an event named `error` is read once, so it does not match the template that is made of it.
#[test]
fn chunks_framed_as_errors_have_id_and_model() {
    let chunk = r#"{"id":"a1","model":"m","choices":[{"delta":{"content":"a"}}]}"#;
    let mut aggregator = Aggregator::with_templates(Options::default(), TemplateCache::default());
    assert_eq!(aggregator.push_error(chunk.as_bytes()).unwrap(), StreamStatus::More);
    let answer = aggregator.into_answer();
    assert_eq!((answer.id.as_deref(), answer.model.as_deref()), (Some("a1"), Some("m")));
    assert_eq!(answer.blocks[0].as_text(), Some("a"));
}

#[test]
fn framed_errors_are_errors_unless_chunks() {
    let mut aggregator = Aggregator::new();
    for payload in [
        &br#"{"choices":[{"delta":{"content":"a"}}]}"#[..],
        br#"{"error":{"message":"one"}}"#,
        br#"{"message":"two"}"#,
        b"three",
        b"",
    ] {
        assert_eq!(aggregator.push_error(payload).unwrap(), StreamStatus::More);
    }
    assert_eq!(aggregator.push_error(b"[DONE]").unwrap(), StreamStatus::Done);
    let answer = aggregator.into_answer();
    let words: Vec<String> = answer.problems.iter().map(Problem::to_string).collect();
    assert_eq!(words, ["one", "two", "three", "the server reported an error without details"]);
    assert_eq!(answer.blocks[0].as_text(), Some("a"));
}

#[test]
fn cumulative_thinking_is_kept_once() {
    let all = ["So", "So, four", "So, four and four", "So, four and four are eight."];
    let outcome = plain(&all.map(detail));
    assert_eq!(outcome.thinking(), all[3]);
    assert_eq!(outcome.answer.extra["reasoning_details"][0]["text"], all[3]);
}

#[test]
fn stammering_thinking_is_kept() {
    for words in [vec!["ha"; 40], vec!["ha", "haha", "x"], vec!["a", "ab", "abc", "abcd"]] {
        let outcome = plain(&words.iter().copied().map(detail).collect::<Vec<_>>());
        assert_eq!(outcome.thinking(), words.concat());
        assert_eq!(outcome.answer.extra["reasoning_details"][0]["text"], words.concat());
    }
}

#[test]
fn cumulative_details_count_once() {
    let whole = "x".repeat(50) + "y";
    let chunks: Vec<String> =
        (1..=20).map(|end| whole.repeat(end)).map(|text| detail(&text)).collect();
    let mut options = Options::default();
    options.limits.text_bytes = 3_000;
    let outcome = run(options, &chunks);
    assert_eq!((outcome.error, outcome.thinking()), (None, whole.repeat(20)));
}

#[test]
fn tagged_text_repeating_thinking_is_dropped() {
    let payloads = [
        delta(r#""content":"<think>","reasoning_content":"Two""#),
        delta(r#""content":"Two and","reasoning_content":" and two""#),
        text(" two\n</think>\n"),
        text("Four."),
    ];
    for tags in [ThinkTags::Off, ThinkTags::Split] {
        let mut options = Options::default();
        options.quirks.think_tags = tags;
        let outcome = run(options, &payloads);
        assert_eq!(outcome.blocks(), "thinking \"Two and two\"\ntext \"\\nFour.\"");
    }
}

/// Such thinking is held back, because it may be that of a cumulative stream.
#[test]
fn stammering_thinking_may_be_repeated() {
    let thinking = || delta(r#""reasoning":"ha""#);
    let outcome = plain(&[thinking(), thinking(), text("<think>haha"), text("</think>Yes.")]);
    assert_eq!(outcome.blocks(), "thinking \"haha\"\ntext \"Yes.\"");
}

#[test]
fn tagged_text_of_its_own_is_kept() {
    let outcome = plain(&[delta(r#""reasoning":"Hm.""#), text("<think>"), text("Ah.</think>Yes.")]);
    assert_eq!(outcome.blocks(), "thinking \"Hm.\"\ntext \"<think>Ah.</think>Yes.\"");
    let outcome = plain(&[delta(r#""reasoning":"Hm.""#), text("<thi"), finish("stop")]);
    assert_eq!(outcome.blocks(), "thinking \"Hm.\"\ntext \"<thi\"");
}

#[test]
fn thought_mark_is_removed_from_extra() {
    let marked = r#""extra_content":{"google":{"thought":true,"thought_signature":"s"}}"#;
    let outcome =
        plain(&[delta(&format!(r#""content":"<thought>Hm.",{marked}"#)), text("</thought>Yes.")]);
    assert_eq!(outcome.blocks(), "thinking \"Hm.\"\ntext \"Yes.\"");
    let kept = outcome.answer.extra["extra_content"].to_string();
    assert_eq!(kept, r#"{"google":{"thought_signature":"s"}}"#);
}
