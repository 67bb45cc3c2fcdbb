//! Rules of calls: the assignment of fragments to calls, and their arguments.

use super::*;

#[test]
fn index_is_a_key_not_a_position() {
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

/// Otherwise the fragments of calls that alternate would all belong to the latest.
#[test]
fn index_in_quotes_is_an_index() {
    let outcome = plain(&[
        fragment(r#""index":"0","id":"a","function":{"name":"f","arguments":"{\"x\":"}"#),
        fragment(r#""index":"1","id":"b","function":{"name":"g","arguments":"{\"y\":"}"#),
        fragment(r#""index":"0","function":{"arguments":"1}"}"#),
        fragment(r#""index":"1","function":{"arguments":"2}"}"#),
        r#"{"choices":[{"index":"0","delta":{"content":"one"}},{"index":"1","delta":{"content":"two"}}]}"#.to_owned(),
        finish("tool_calls"),
    ]);
    assert_snapshot!(outcome.blocks(), @r#"
    call a f {"x":1}
    call b g {"y":2}
    text "one"
    "#);
}

/// A fragment without an id, with an index or without.
#[test]
fn name_after_whole_arguments_is_a_new_call() {
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
fn changing_id_without_name_is_one_call() {
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

/// If the index is missing as well, the fragments must not become calls of their own: the first call would run without
/// its arguments.
#[test]
fn changing_id_without_name_needs_no_index() {
    for first in [r#""id":"a","#, ""] {
        let outcome = plain(&[
            fragment(&format!(r#"{first}"function":{{"name":"f","arguments":""}}"#)),
            fragment(r#""id":"b","function":{"arguments":"{\"x\""}"#),
            fragment(r#""id":"c","function":{"arguments":":1}"}"#),
            fragment(r#""id":"d","function":{"arguments":""}"#),
            // A name begins a call, and so does what follows complete arguments.
            fragment(r#""id":"e","function":{"name":"f","arguments":"{}"}"#),
            fragment(r#""id":"g","function":{"arguments":"{}"}"#),
            finish("tool_calls"),
        ]);
        let id = if first.is_empty() { "b" } else { "a" };
        let expected = format!(
            "call {id} f {{\"x\":1}}\ncall e f {{}}\nerror g  \"{{}}\": the call has no tool name"
        );
        assert_eq!(outcome.blocks(), expected);
        outcome.check_starts();
    }
}

#[test]
fn duplicate_ids_are_replaced() {
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
fn legacy_function_call_is_one_call() {
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

/// llama-cpp-python sends both, for programs of either kind; the name of the legacy call may be another.
#[test]
fn legacy_call_beside_calls_is_a_repeat() {
    let both = |arguments: &str| {
        let tool_calls = format!(
            r#""tool_calls":[{{"index":0,"id":"c","function":{{"name":"pay","arguments":{arguments}}}}}]"#
        );
        let legacy = format!(r#""function_call":{{"name":"pay","arguments":{arguments}}}"#);
        [format!("{legacy},{tool_calls}"), format!("{tool_calls},{legacy}")]
    };
    for order in 0..2 {
        let pieces = [r#""""#, r#""{\"eur\":""#, r#"" 5""#, r#""}""#];
        let deltas = pieces.map(|piece| delta(&both(piece)[order]));
        let message = r#""{\"eur\":5}""#;
        let message = format!(r#"{{"choices":[{{"message":{{{}}}}}]}}"#, both(message)[order]);
        for payloads in [&deltas[..], std::slice::from_ref(&message)] {
            let payloads: Vec<String> =
                payloads.iter().cloned().chain([finish("tool_calls")]).collect();
            assert_eq!(plain(&payloads).blocks(), r#"call c pay {"eur":5}"#, "{payloads:?}");
        }
    }
    // The name of a whole message may be wrong.
    let other = both(r#""{\"eur\":5}""#)[0].replacen("pay", "", 1);
    let message = format!(r#"{{"choices":[{{"message":{{{other}}}}}]}}"#);
    assert_eq!(plain(&[message, finish("tool_calls")]).blocks(), r#"call c pay {"eur":5}"#);
    // Only a call that is there is repeated.
    let alone = delta(r#""function_call":{"name":"f","arguments":"{}"},"tool_calls":[]"#);
    assert!(plain(&[alone, finish("function_call")]).blocks().ends_with(" f {}"));
}

#[test]
fn name_pieces_are_joined_before_arguments() {
    let outcome = plain(&[
        fragment(r#""index":0,"id":"a","function":{"name":"get_"}"#),
        fragment(r#""index":0,"function":{"name":"time","arguments":""}"#),
        fragment(r#""index":0,"function":{"name":"get_time","arguments":"{"}"#),
        fragment(r#""index":0,"function":{"name":"x","arguments":"}"}"#),
        finish("tool_calls"),
    ]);
    assert_eq!(outcome.blocks(), "call a get_time {}");
}

/// A server may send them in each chunk of a long answer.
#[test]
fn replaced_members_are_counted_once() {
    let mut options = Options::default();
    options.limits.held_bytes = 256 << 10;
    options.limits.text_bytes = 16 << 10;
    let payloads = (0..2_000).flat_map(|number| {
        let value = format!(r#"{{"status":"running","step":{}}}"#, number % 7);
        [
            delta(&format!(r#""content":"x","extra_content":{value},"reasoning_opaque":"s""#)),
            fragment(&format!(
                r#""index":0,"id":"a","state":{value},"function":{{"name":"f","arguments":" "}}"#
            )),
        ]
    });
    let outcome = run(options, payloads.chain([finish("tool_calls")]));
    assert_eq!((outcome.error, outcome.text().len()), (None, 2_000));
    assert_eq!(outcome.answer.extra["extra_content"]["step"], 4);
    let ContentBlock::ToolUse(call) = &outcome.answer.blocks[1] else { panic!("no call") };
    assert_eq!(call.extra["state"]["step"], 4);
}

#[test]
fn extra_members_stay_with_their_call() {
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

/// A conversation with such a call could not be stored.
#[test]
fn deep_arguments_are_malformed() {
    let nested = |levels| format!(r#"{{"a":{}1{}}}"#, "[".repeat(levels), "]".repeat(levels));
    let fits = nested(99);
    check_arguments(&[&fits], &format!("call a f {fits}"));
    for levels in [100, 126] {
        let deep = nested(levels);
        let error = "the arguments are nested more than 100 levels deep";
        check_arguments(&[&deep], &format!("error a f {deep:?}: {error}"));
    }
}

#[test]
fn repeats_are_tried_if_joining_fails() {
    check_arguments(&["{\"a\"", ":1}"], r#"call a f {"a":1}"#);
    check_arguments(&[""], "call a f {}");
    check_arguments(&[" ", "\n"], "call a f {}");
    check_arguments(&["null"], "call a f {}");
    check_arguments(&["\"\""], "call a f {}");
    check_arguments(&["\"{\\\"a\\\":1}\""], r#"call a f {"a":1}"#);
    check_arguments(&["{", "{\"a\"", "{\"a\":1}"], r#"call a f {"a":1}"#);
    check_arguments(&["{\"a\"", ":1}", "{\"a\":1}"], r#"call a f {"a":1}"#);
    check_arguments(&["{\"a\":1}", "{\"a\": 1}", "\n{\"a\":1}"], r#"call a f {"a":1}"#);
    // All of it behind its beginning, in several fragments (vllm-project/vllm #51697).
    check_arguments(&["{\"a\"", ":\"b", "{\"a\":\"bc\"}"], r#"call a f {"a":"bc"}"#);
    check_arguments(
        &["{\"a\"", ":\"b", "{\"a\":\"c\"}"],
        "error a f \"{\\\"a\\\":\\\"b{\\\"a\\\":\\\"c\\\"}\": the arguments are not valid JSON: expected `,` or `}` at line 1 column 10",
    );
    // An empty object may come first, as a placeholder.
    check_arguments(&["{}", "{\"a\"", ":1}"], r#"call a f {"a":1}"#);
    check_arguments(&["", " {} ", "{\"a\":1}"], r#"call a f {"a":1}"#);
    check_arguments(&["{}", "", "\n"], "call a f {}");
    check_arguments(&["{}", "{}"], "call a f {}");
    check_arguments(
        &["{}", "{\"a\""],
        "error a f \"{}{\\\"a\\\"\": the arguments are not valid JSON: trailing characters at line 1 column 3",
    );
    check_arguments(
        &["{\"a\":1}", "{}"],
        "error a f \"{\\\"a\\\":1}{}\": the arguments are not valid JSON: trailing characters at line 1 column 8",
    );
    // Joined it is JSON: the fragments look cumulative and are not.
    check_arguments(&["1", "12"], r#"error a f "112": the arguments are JSON, but not an object"#);
    check_arguments(
        &["{\"a\":[", "{\"a\":["],
        "error a f \"{\\\"a\\\":[{\\\"a\\\":[\": the arguments are not valid JSON: EOF while parsing a list at line 1 column 12",
    );
}

/// A gateway repeats each call when the answer ends, with its id and the next free index.
#[test]
fn repeated_calls_may_have_a_new_index() {
    let call = |index: u8, id: &str, name: &str, arguments: &str| {
        fragment(&format!(
            r#""index":{index},"id":"{id}","function":{{"name":"{name}","arguments":{}}}"#,
            json!(arguments)
        ))
    };
    let outcome = plain(&[
        call(0, "a", "pay", ""),
        fragment(r#""index":0,"function":{"arguments":"{\"eur\":"}"#),
        fragment(r#""index":0,"function":{"arguments":"5}"}"#),
        call(1, "b", "pay", r#"{"eur":5}"#),
        call(2, "a", "pay", r#"{"eur":5}"#),
        call(3, "b", "pay", r#"{"eur":5}"#),
        finish("tool_calls"),
    ]);
    assert_eq!(outcome.blocks(), "call a pay {\"eur\":5}\ncall b pay {\"eur\":5}");
    outcome.check_starts();
    // Other arguments or another tool make another call, although its id is taken.
    let outcome = plain(&[
        call(0, "a", "pay", r#"{"eur":5}"#),
        call(1, "a", "pay", r#"{"eur":6}"#),
        call(2, "a", "ask", r#"{"eur":5}"#),
        finish("tool_calls"),
    ]);
    assert_eq!(outcome.answer.blocks.len(), 3);
    // So do calls without arguments: a server may give one id to all calls.
    let bare = [call(0, "a", "pay", "{}"), call(1, "a", "pay", "{}")];
    assert_eq!(plain(&bare).answer.blocks.len(), 2);
    // So do equal beginnings of arguments.
    let end = |index: u8| fragment(&format!(r#""index":{index},"function":{{"arguments":"}}"}}"#));
    let begun = [call(0, "a", "pay", "{"), call(1, "a", "pay", "{"), end(0), end(1)];
    assert_eq!(plain(&begun).answer.blocks.len(), 2);
}

#[test]
fn two_objects_in_one_call_are_an_error() {
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

#[test]
fn empty_last_call_is_an_error_after_length() {
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

/// The model may have meant to write arguments.
#[test]
fn empty_last_call_is_an_error_if_it_was_stopped() {
    let filtered = "a content filter stopped the answer before the call's arguments";
    let unread = "the server could not read the call's arguments";
    for (reason, error) in [
        ("content_filter", filtered),
        ("SAFETY", filtered),
        ("content_filter: RECITATION", filtered),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", unread),
        ("malformed_function_call", unread),
    ] {
        let call = |arguments: &str| {
            fragment(&format!(
                r#""index":0,"id":"a","function":{{"name":"f","arguments":"{arguments}"}}"#
            ))
        };
        let outcome = plain(&[call(""), finish(reason)]);
        assert_eq!(outcome.blocks(), format!("error a f \"\": {error}"));
        assert_eq!(plain(&[call("{}"), finish(reason)]).blocks(), "call a f {}");
    }
}

/// The fixtures' oracle says `{}` here; nothing tells that the call was complete.
#[test]
fn empty_last_call_is_an_error_after_a_break() {
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
fn cut_arguments_break_only_the_last_call() {
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

#[test]
fn repeated_name_may_grow() {
    for (names, expected) in [
        (&["get", "get_weather"][..], "get_weather"),
        (&["get_", "get_weather", "get_weather"], "get_weather"),
        (&["g", "get", "get_", "get_weather"], "get_weather"),
        (&["get_", "weather", "get_weather_now"], "get_weather_now"),
        (&["get", "get_weather<|channel|>x", "get_weather<|channel|>x"], "get_weather"),
        // Pieces that do not begin with what is known.
        (&["get_", "weather"], "get_weather"),
        (&["get", "_get"], "get_get"),
    ] {
        for id in ["", r#""id":"a","#] {
            let named = names.iter().map(|name| {
                fragment(&format!(r#""index":0,{id}"function":{{"name":"{name}","arguments":""}}"#))
            });
            let last = fragment(r#""index":0,"function":{"arguments":"{}"}"#);
            let outcome = plain(&named.chain([last, finish("tool_calls")]).collect::<Vec<_>>());
            let [ContentBlock::ToolUse(call)] = &outcome.answer.blocks[..] else {
                panic!("{names:?}: {}", outcome.blocks());
            };
            assert_eq!(call.name, expected, "{names:?}");
            assert_eq!(outcome.answer.problems, []);
            assert_eq!(outcome.check_starts(), [0]);
        }
    }
}

#[test]
fn name_ends_at_control_token_at_any_cut() {
    let whole = "add <|channel|>commentary";
    for at in 1..whole.len() {
        let (one, two) = whole.split_at(at);
        let outcome = plain(&[
            fragment(&format!(r#""index":0,"id":"a","function":{{"name":"{one}"}}"#)),
            fragment(&format!(r#""index":0,"function":{{"name":"{two}"}}"#)),
            fragment(r#""index":0,"function":{"arguments":"{}"}"#),
        ]);
        assert_eq!(outcome.blocks(), "call a add {}", "{at}");
        assert_eq!(outcome.answer.problems, []);
    }
}

#[test]
fn name_after_a_control_token_may_be_split() {
    let outcome = plain(&[
        fragment(r#""index":0,"id":"a","function":{"name":"<|x|>"}"#),
        fragment(r#""index":0,"function":{"name":"get_"}"#),
        fragment(r#""index":0,"function":{"name":"weather"}"#),
        fragment(r#""index":0,"function":{"name":"<|x|>","arguments":"{}"}"#),
    ]);
    assert_eq!(outcome.blocks(), "call a get_weather {}");
}

#[test]
fn control_token_does_not_start_a_new_call() {
    let outcome = plain(&[
        fragment(r#""function":{"name":"add<|channel|>x","arguments":"{\"a\":"}"#),
        fragment(r#""function":{"name":"add<|channel|>x","arguments":"1}"}"#),
    ]);
    assert!(outcome.blocks().ends_with(r#" add {"a":1}"#), "{}", outcome.blocks());
}

// The first delta of a call.

#[test]
fn made_up_id_outlasts_a_late_server_id() {
    let outcome = plain(&[
        fragment(r#""index":0,"function":{"name":"f","arguments":"{\"a\":"}"#),
        fragment(r#""index":0,"function":{"arguments":"1"}"#),
        fragment(r#""index":0,"id":"late","function":{"arguments":"}"}"#),
        // The late id still finds its call.
        fragment(r#""index":5,"id":"late","function":{"arguments":" "}"#),
        finish("tool_calls"),
    ]);
    assert_eq!(outcome.check_starts(), [0]);
    let [ContentBlock::ToolUse(call)] = &outcome.answer.blocks[..] else {
        panic!("{:?}", outcome.answer.blocks)
    };
    assert_eq!((call.id.len(), &call.input), (9, &json!({ "a": 1 })));
    assert!(matches!(&outcome.told[0], Told::CallStart(0, id, _) if *id == call.id));
}

#[test]
fn an_id_may_be_one_fragment_late() {
    let outcome = plain(&[
        fragment(r#""index":0,"function":{"name":"f","arguments":"{\"a\":1}"}"#),
        fragment(r#""index":0,"id":"late""#),
        finish("tool_calls"),
    ]);
    assert_eq!(outcome.check_starts(), [0]);
    assert!(matches!(&outcome.told[0], Told::CallStart(0, id, _) if id == "late"));
}

#[test]
fn server_id_equal_to_made_up_id_is_replaced() {
    let first = plain(&[fragment(r#""index":0,"function":{"name":"f","arguments":"{}"}"#)]);
    let Told::CallStart(_, made_up, _) = &first.told[0] else { panic!("{:?}", first.told) };
    let outcome = plain(&[
        fragment(r#""index":0,"function":{"name":"f","arguments":"{}"}"#),
        fragment(&format!(
            r#""index":1,"id":"{made_up}","function":{{"name":"g","arguments":"{{"}}"#
        )),
        fragment(&format!(r#""index":7,"id":"{made_up}","function":{{"arguments":"}}"}}"#)),
        finish("tool_calls"),
    ]);
    assert_eq!(outcome.check_starts(), [0, 1]);
    assert_eq!(outcome.answer.blocks.len(), 2);
}

#[test]
fn a_call_starts_once_its_name_is_settled() {
    let outcome = plain(&[
        fragment(r#""index":0,"id":"a","function":{"arguments":"{\"a\""}"#),
        fragment(r#""index":0,"function":{"arguments":":1"}"#),
        text("While it waits."),
        fragment(r#""index":0,"function":{"name":"f","arguments":"}"}"#),
        // A name in two pieces, and no arguments at all.
        fragment(r#""index":1,"id":"b","function":{"name":"long_"}"#),
        fragment(r#""index":1,"function":{"name":"name"}"#),
        finish("tool_calls"),
    ]);
    assert_snapshot!(story(&outcome), @r#"
    + text "While it waits."
    + call 0 begins: a f
    + call 0: {"a":1}
    + call 1 begins: b long_name
    call a f {"a":1}
    text "While it waits."
    call b long_name {}
    "#);
}

#[test]
fn call_without_name_has_no_deltas() {
    let outcome = plain(&[
        fragment(r#""index":0,"id":"a","function":{"arguments":"{}"}"#),
        finish("tool_calls"),
    ]);
    assert_snapshot!(story(&outcome), @r#"error a  "{}": the call has no tool name"#);
}

/// QUIRKS row 134.
#[test]
fn members_of_a_missing_function_are_read() {
    let outcome = plain(&[
        fragment(r#""index":0,"id":"a","name":"f","arguments":"""#),
        fragment(r#""index":0,"arguments":"{\"x\"""#),
        fragment(r#""arguments":":1}""#),
        fragment(r#""arguments":{"y":[2]},"name":"g","id":"b","function":null"#),
        finish("tool_calls"),
    ]);
    assert_snapshot!(outcome.blocks(), @r#"
    call a f {"x":1}
    call b g {"y":[2]}
    "#);
    // Beside a function they are members like any other.
    for call in [
        r#""name":"f","function":{"name":"g","arguments":"{}"},"arguments":"{\"x\":1}""#,
        r#""function":{"name":"g"},"arguments":"{\"x\":1}","name":"f""#,
    ] {
        let blocks = plain(&[fragment(call), finish("tool_calls")]).answer.blocks;
        let [ContentBlock::ToolUse(call)] = &blocks[..] else { panic!("{blocks:?}") };
        assert_eq!((&*call.name, &call.input), ("g", &json!({})));
        assert_eq!(call.extra.get("name"), Some(&json!("f")));
    }
}
