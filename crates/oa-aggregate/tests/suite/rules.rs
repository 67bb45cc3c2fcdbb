//! The rules of aggregation, one small stream for each that is easier read than measured.

use insta::assert_snapshot;
use oa_aggregate::{Answer, ChoiceIndex, FinishReason, Options, Problem, ThinkTags};
use oa_types::ContentBlock;

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
        Told::CallStart(call, name) => {
            format!("+ call {call} begins: {}", name.as_deref().unwrap_or("?"))
        }
        Told::CallArguments(call, fragment) => format!("+ call {call}: {fragment}"),
        Told::Problem(problem) => format!("! {problem}"),
    };
    let mut lines: Vec<String> = outcome.told.iter().map(line).collect();
    lines.push(outcome.blocks());
    lines.join("\n")
}

fn usage(answer: &Answer) -> [Option<u64>; 5] {
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
fn what_is_null_empty_or_of_another_type_is_absent() {
    let outcome = plain(&[
        "{}",
        "[]",
        "null",
        "\"text\"",
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
fn a_finish_reason_nobody_knows_is_kept_as_a_word() {
    let outcome = plain(&[finish("eos_token")]);
    assert_eq!(outcome.answer.finish_reason.as_str(), "eos_token");
    assert!(outcome.answer.is_finished());
}

#[test]
fn a_server_cannot_say_that_the_caller_interrupted() {
    let outcome = plain(&[text("Hi"), finish("interrupted")]);
    assert_eq!(outcome.answer.finish_reason, FinishReason::Other("interrupted".into()));
}

#[test]
fn the_first_id_and_model_are_the_answers() {
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
fn an_error_beside_a_delta_is_told_first_and_the_delta_is_kept() {
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
fn a_payload_that_is_not_json_is_told_and_the_stream_goes_on() {
    let outcome = plain(&[text("a"), "<html>".to_owned(), text("b")]);
    assert_snapshot!(story(&outcome), @r#"
    + text "a"
    ! not JSON at byte 0: "<html>"
    + text "b"
    text "ab"
    "#);
}

#[test]
fn usage_errors_and_text_after_the_finish_reason_count() {
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
fn the_last_finish_reason_counts_and_null_does_not_erase_it() {
    let outcome = plain(&[finish("length"), finish("stop"), delta(""), finish("")]);
    assert_eq!(outcome.answer.finish_reason, FinishReason::Stop);
}

// 3: which choice.

#[test]
fn other_choices_are_passed_over_unless_every_one_counts() {
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
fn a_message_stands_in_for_a_delta_and_beside_one_it_is_passed_over() {
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
fn a_chunk_with_everything_is_told_in_order() {
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
    + call 0 begins: f
    + call 0: {}
    + call 1 begins: g
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
fn thinking_is_the_first_of_its_names_that_is_not_empty() {
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
fn an_empty_name_gives_way_to_the_next_also_when_chunks_are_alike() {
    let both = |one: &str, two: &str| {
        delta(&format!(r#""reasoning_content":"{one}","reasoning":"{two}""#))
    };
    let outcome = plain(&[both("a", "x"), both("b", "x"), both("", "x")]);
    assert_eq!(outcome.thinking(), "abx");
}

#[test]
fn parts_of_content_are_sorted_into_text_and_thinking() {
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
fn tags_in_text_are_split_when_asked_and_only_in_text() {
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

#[test]
fn an_index_is_a_key_and_no_position() {
    let outcome = plain(&[
        fragment(r#""index":900000000,"id":"a","function":{"name":"f","arguments":"{\"x\":"}"#),
        fragment(r#""index":-3,"id":"b","function":{"name":"g","arguments":"{"}"#),
        fragment(r#""index":900000000,"function":{"arguments":"1}"}"#),
        fragment(r#""index":-3,"function":{"arguments":"}"}"#),
        finish("tool_calls"),
    ]);
    assert_snapshot!(outcome.blocks(), @r#"
    call a f {"x":1}
    call b g {}
    "#);
}

#[test]
fn a_name_without_id_after_whole_arguments_begins_another_call() {
    let call = |name: &str, arguments: &str| {
        let function = format!(r#""function":{{"name":"{name}","arguments":"{arguments}"}}"#);
        [fragment(&format!(r#""index":0,{function}"#)), fragment(&function)]
    };
    for form in [0, 1] {
        let list = [call("f", r#"{\"a\":"#), call("f", "1}"), call("f", r#"{\"a\":2}"#)];
        let mut list: Vec<String> = list.iter().map(|forms| forms[form].clone()).collect();
        list.push(finish("tool_calls"));
        let inputs: Vec<String> = plain(&list)
            .blocks()
            .lines()
            .map(|line| line.split_once(" f ").unwrap().1.to_owned())
            .collect();
        assert_eq!(inputs, [r#"{"a":1}"#, r#"{"a":2}"#]);
    }
}

#[test]
fn an_id_that_changes_without_a_name_is_the_same_call() {
    let outcome = plain(&[
        fragment(r#""index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}"#),
        fragment(r#""index":0,"id":"b","function":{"arguments":":1}"}"#),
        fragment(r#""index":0,"id":"c","function":{"name":"g","arguments":"{}"}"#),
        finish("tool_calls"),
    ]);
    assert_snapshot!(outcome.blocks(), @r#"
    call a f {"x":1}
    call c g {}
    "#);
}

#[test]
fn an_id_that_another_call_has_is_not_given_twice() {
    let call = |index: usize, name: &str, arguments: &str| {
        fragment(&format!(
            r#""index":{index},"id":"0","function":{{{name}"arguments":"{arguments}"}}"#
        ))
    };
    let outcome = plain(&[
        call(0, r#""name":"f","#, "{}"),
        call(1, r#""name":"g","#, r#"{\"a\":"#),
        call(1, "", "1}"),
        finish("tool_calls"),
    ]);
    let blocks = outcome.blocks();
    let lines: Vec<&str> = blocks.lines().collect();
    assert_eq!(lines[0], "call 0 f {}");
    assert!(lines[1].starts_with("call ") && !lines[1].starts_with("call 0 "), "{blocks}");
    assert!(lines[1].ends_with(r#" g {"a":1}"#), "{blocks}");
}

#[test]
fn the_old_function_call_is_one_call() {
    let outcome = plain(&[
        delta(r#""function_call":{"name":"f","arguments":""}"#),
        delta(r#""function_call":{"arguments":"{\"a\":"}"#),
        delta(r#""function_call":{"name":"f","arguments":"1}"}"#),
        delta(r#""function_call":{"arguments":""}"#),
        finish("function_call"),
    ]);
    let blocks = outcome.blocks();
    let (id, call) = blocks.strip_prefix("call ").unwrap().split_once(' ').unwrap();
    assert_eq!((id.len(), call), (9, r#"f {"a":1}"#));
}

// 7: ids and names.

#[test]
fn a_name_in_pieces_is_joined_until_arguments_come() {
    let outcome = plain(&[
        fragment(r#""index":0,"id":"a","function":{"name":"get_"}"#),
        fragment(r#""index":0,"function":{"name":"time","arguments":""}"#),
        fragment(r#""index":0,"function":{"name":"get_time","arguments":"{"}"#),
        fragment(r#""index":0,"function":{"name":"x","arguments":"}"}"#),
        finish("tool_calls"),
    ]);
    assert_eq!(outcome.blocks(), "call a get_time {}");
}

#[test]
fn what_only_the_server_understands_stays_with_its_call() {
    let outcome = plain(&[
        fragment(
            r#""index":0,"id":"a","extra_content":{"google":{"thought_signature":"s"}},"function":{"name":"f","arguments":"{}"}"#,
        ),
        delta(r#""content":"x","extra_content":{"other":1}"#),
        finish("tool_calls"),
    ]);
    let ContentBlock::ToolUse(call) = &outcome.answer.blocks[0] else { panic!() };
    assert_eq!(call.extra["extra_content"]["google"]["thought_signature"], "s");
    assert_eq!(outcome.answer.extra["extra_content"]["other"], 1);
}

// 8: arguments.

#[track_caller]
fn check_arguments(fragments: &[&str], expected: &str) {
    let call = |(number, piece): (usize, &&str)| {
        let name =
            if number == 0 { r#""id":"a","function":{"name":"f","# } else { r#""function":{"# };
        fragment(&format!(r#""index":0,{name}"arguments":{}}}"#, serde_json::Value::from(*piece)))
    };
    let mut list: Vec<String> = fragments.iter().enumerate().map(call).collect();
    list.push(finish("tool_calls"));
    assert_eq!(plain(&list).blocks(), expected);
}

#[test]
fn arguments_are_joined_first_and_told_to_repeat_only_if_that_fails() {
    check_arguments(&["{\"a\"", ":1}"], r#"call a f {"a":1}"#);
    check_arguments(&[], "");
    check_arguments(&[""], "call a f {}");
    check_arguments(&[" ", "\n"], "call a f {}");
    check_arguments(&["null"], "call a f {}");
    check_arguments(&["\"\""], "call a f {}");
    check_arguments(&["\"{\\\"a\\\":1}\""], r#"call a f {"a":1}"#);
    check_arguments(&["{", "{\"a\"", "{\"a\":1}"], r#"call a f {"a":1}"#);
    check_arguments(&["{\"a\"", ":1}", "{\"a\":1}"], r#"call a f {"a":1}"#);
    check_arguments(&["{\"a\":1}", "{\"a\": 1}", "\n{\"a\":1}"], r#"call a f {"a":1}"#);
    // Joined it is JSON: the fragments look cumulative and are not.
    check_arguments(&["1", "12"], r#"error a f "112": the arguments are JSON, but no object"#);
    check_arguments(
        &["{\"a\":[", "{\"a\":["],
        "error a f \"{\\\"a\\\":[{\\\"a\\\":[\": the arguments are not valid JSON: EOF while parsing a list at line 1 column 12",
    );
}

#[test]
fn two_objects_in_one_call_are_an_error_that_leaves_other_calls_alone() {
    let outcome = plain(&[
        fragment(r#""index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}"#),
        fragment(r#""index":0,"function":{"arguments":"{\"x\":2}"}"#),
        fragment(r#""index":1,"id":"b","function":{"name":"g","arguments":"{}"}"#),
        finish("tool_calls"),
    ]);
    assert_snapshot!(outcome.blocks(), @r#"
    error a f "{\"x\":1}{\"x\":2}": the arguments are not valid JSON: trailing characters at line 1 column 8
    call b g {}
    "#);
}

#[test]
fn a_call_without_a_name_is_an_error() {
    let outcome = plain(&[
        fragment(r#""index":0,"id":"a","function":{"arguments":"{}"}"#),
        finish("tool_calls"),
    ]);
    assert_snapshot!(outcome.blocks(), @r#"error a  "{}": the call has no tool name"#);
}

// 9: what was cut off.

#[test]
fn the_last_call_without_arguments_is_an_error_if_the_answer_was_cut_off() {
    let calls = [
        fragment(r#""index":0,"id":"a","function":{"name":"f","arguments":""}"#),
        fragment(r#""index":1,"id":"b","function":{"name":"g","arguments":" "}"#),
    ];
    for reason in ["length", "model_length", "max_tokens"] {
        let outcome = plain(&[&calls[..], &[finish(reason)]].concat());
        assert_eq!(
            outcome.blocks(),
            "call a f {}\nerror b g \" \": \
             the call was cut off by the token limit before its arguments"
        );
    }
    for end in [finish("stop"), finish("tool_calls"), "[DONE]".to_owned()] {
        let outcome = plain(&[&calls[..], &[end]].concat());
        assert_eq!(outcome.blocks(), "call a f {}\ncall b g {}");
    }
}

/// The fixtures' oracle says `{}` here; nothing tells that the call was complete.
#[test]
fn the_last_call_without_arguments_is_an_error_if_the_stream_broke_off() {
    let outcome = plain(&[
        fragment(r#""index":0,"id":"a","function":{"name":"f"}"#),
        fragment(r#""index":1,"id":"b","function":{"name":"g"}"#),
    ]);
    assert_snapshot!(outcome.blocks(), @r#"
    call a f {}
    error b g "": the stream broke off before the call's arguments
    "#);
}

#[test]
fn a_call_that_was_cut_inside_its_arguments_is_an_error_and_earlier_ones_survive() {
    let outcome = plain(&[
        fragment(r#""index":0,"id":"a","function":{"name":"f","arguments":"{}"}"#),
        fragment(r#""index":1,"id":"b","function":{"name":"g","arguments":"{\"x\":"}"#),
        // Some servers report this as if nothing had happened.
        finish("tool_calls"),
    ]);
    assert_snapshot!(outcome.blocks(), @r#"
    call a f {}
    error b g "{\"x\":": the arguments are not valid JSON: EOF while parsing a value at line 1 column 5
    "#);
}

// 10: text that repeats, beside the laws.

#[test]
fn text_that_is_held_back_comes_before_a_call_that_follows() {
    let outcome = plain(&[
        text("ha "),
        text("ha "),
        fragment(r#""index":0,"id":"a","function":{"name":"f","arguments":"{}"}"#),
        text("ok"),
    ]);
    assert_eq!(outcome.blocks(), "text \"ha ha \"\ncall a f {}\ntext \"ok\"");
}

#[test]
fn text_that_is_held_back_comes_before_thinking_that_follows() {
    let outcome = plain(&[text("ha "), text("ha "), delta(r#""reasoning":"Hm.""#), text("ok")]);
    assert_eq!(outcome.blocks(), "text \"ha ha \"\nthinking \"Hm.\"\ntext \"ok\"");
}

#[test]
fn text_that_is_held_back_comes_before_a_refusal_that_follows() {
    let outcome = plain(&[text("ha "), text("ha "), delta(r#""refusal":"No.""#)]);
    assert_eq!(outcome.blocks(), "text \"ha ha \"\ntext \"No.\"");
}

// 11: usage.

#[test]
fn usage_is_taken_wherever_it_stands_and_merged_number_by_number() {
    let outcome = plain(&[
        r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}"#,
        r#"{"choices":[{"usage":{"completion_tokens":2,"total_tokens":null}}]}"#,
        r#"{"choices":[],"x_groq":{"usage":{"total_tokens":7}}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":0}}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":"5","completion_tokens":1.5,"total_tokens":-1}}"#,
        r#"{"choices":[],"usage":null}"#,
    ]);
    assert_eq!(usage(&outcome.answer), [Some(5), Some(2), Some(7), Some(4), Some(0)]);
}

// 12: blocks.

#[test]
fn blocks_stand_in_the_order_in_which_they_began() {
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
