//! Rules of messages: whole answers, and repeats of the deltas before them (QUIRKS rows 36 and 117).

use std::slice;

use super::*;

/// A payload whose only choice has this message.
fn message(members: &str) -> String {
    format!(r#"{{"choices":[{{"message":{{{members}}}}}]}}"#)
}

fn message_of(text: &str) -> String {
    message(&format!(r#""content":{}"#, json!(text)))
}

/// Calls of the list, each as a name and its arguments, without their ids.
fn calls(outcome: &Outcome) -> Vec<String> {
    outcome.check_starts();
    let call = |block: &ContentBlock| match block {
        ContentBlock::ToolUse(call) => format!("{} {}", call.name, call.input),
        ContentBlock::ToolUseError(call) => {
            format!("error {}", call.name.as_deref().unwrap_or_default())
        }
        block => panic!("no call: {block:?}"),
    };
    outcome.answer.blocks.iter().map(call).collect()
}

fn with_tags(tags: ThinkTags, payloads: &[String]) -> String {
    let mut options = Options::default();
    options.quirks.think_tags = tags;
    run(options, payloads).blocks()
}

#[test]
fn calls_of_a_message_are_whole() {
    for (list, expected) in [
        (
            r#"{"id":"0","function":{"name":"add","arguments":"{\"a\":1}"}},
               {"id":"0","function":{"name":"mul","arguments":"{\"b\":2}"}}"#,
            [r#"add {"a":1}"#, r#"mul {"b":2}"#],
        ),
        (
            r#"{"id":"0","function":{"name":"add","arguments":"{\"a\":1}"}},
               {"id":"0","function":{"name":"mul","arguments":""}}"#,
            [r#"add {"a":1}"#, "mul {}"],
        ),
        (
            r#"{"id":"0","function":{"name":"add","arguments":"{}"}},
               {"id":"0","function":{"name":"add","arguments":"{}"}}"#,
            ["add {}", "add {}"],
        ),
        (
            r#"{"function":{"name":"read","arguments":""}},
               {"function":{"name":"read","arguments":"{\"p\":1}"}}"#,
            ["read {}", r#"read {"p":1}"#],
        ),
        (
            r#"{"function":{"name":"read","arguments":"{\"p\": tru"}},
               {"function":{"name":"read","arguments":"{\"p\":1}"}}"#,
            ["error read", r#"read {"p":1}"#],
        ),
    ] {
        let list = message(&format!(r#""tool_calls":[{list}]"#));
        let outcome = plain(&[list.clone(), finish("tool_calls")]);
        assert_eq!(calls(&outcome), expected, "{list}");
        assert_eq!(outcome.answer.problems, []);
        // The same after deltas.
        let outcome = plain(&[delta(r#""reasoning":"Hm.""#), list.clone(), finish("tool_calls")]);
        let mut blocks = outcome;
        blocks.answer.blocks.remove(0);
        assert_eq!(calls(&blocks), expected, "{list}");
    }
}

#[test]
fn calls_in_two_messages_may_be_one() {
    let outcome = plain(&[
        message(r#""tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]"#),
        message(r#""tool_calls":[{"id":"a","function":{"arguments":"1}"}}]"#),
    ]);
    assert_eq!(outcome.blocks(), r#"call a f {"x":1}"#);
}

#[test]
fn final_message_repeats_calls_in_other_words() {
    let call = |id: &str, arguments: &str| {
        format!(r#"{{{id}"function":{{"name":"pay","arguments":{arguments}}}}}"#)
    };
    let spelled =
        [r#""{\"eur\": 5}""#, r#"{"eur":5}"#, r#""{\"eur\":5}""#, r#""\"{\\\"eur\\\":5}\"""#];
    for streamed in spelled {
        for whole in spelled {
            for ids in [
                ["", ""],
                [r#""id":"a","#, ""],
                ["", r#""id":"b","#],
                [r#""id":"a","#, r#""id":"b","#],
            ] {
                let outcome = plain(&[
                    delta(&format!(r#""tool_calls":[{}]"#, call(ids[0], streamed))),
                    message(&format!(r#""tool_calls":[{}]"#, call(ids[1], whole))),
                    finish("tool_calls"),
                ]);
                assert_eq!(calls(&outcome), [r#"pay {"eur":5}"#], "{streamed} {whole} {ids:?}");
            }
        }
    }
}

/// Arguments that were sent more than once (QUIRKS rows 20 and 21) are those of the message, too.
#[test]
fn final_message_repeats_resent_calls() {
    let whole = r#"{"a":1,"b":2}"#;
    let streams = [
        vec![whole, whole],
        vec![r#"{"a":1"#, r#","b":2}"#, whole],
        vec![r#"{"a"#, r#"{"a":1,"#, whole],
    ];
    for pieces in streams {
        for id in ["", r#""id":"other","#] {
            let named = |piece: &&str| {
                let arguments = json!(piece);
                fragment(&format!(
                    r#""index":0,"id":"c","function":{{"name":"add","arguments":{arguments}}}"#
                ))
            };
            let call = format!(
                r#"{{{id}"function":{{"name":"add","arguments":"{{ \"b\": 2, \"a\": 1 }}"}}}}"#
            );
            let last = message(&format!(r#""tool_calls":[{call}]"#));
            let payloads = pieces.iter().map(named).chain([last.clone(), last]);
            let outcome = plain(&payloads.chain([finish("tool_calls")]).collect::<Vec<_>>());
            assert_eq!(outcome.blocks(), format!("call c add {whole}"), "{pieces:?} {id}");
        }
    }
}

/// The deltas of a call may stop before its arguments do, whatever id the message has (QUIRKS rows 21, 117 and 126).
#[test]
fn final_message_completes_calls() {
    let whole = r#"{"a":1,"b":2}"#;
    let call = |members: &str, arguments: &str| {
        let arguments = json!(arguments);
        format!(
            r#""tool_calls":[{{{members},"function":{{"name":"add","arguments":{arguments}}}}}]"#
        )
    };
    for begun in ["", " ", "{}", "{", " {", r#"{"a":1"#, r#"{"a":1,"b":2"#] {
        for [streamed, repeated] in [
            [r#""index":0,"id":"c""#, r#""id":"c""#],
            [r#""index":0,"id":"c""#, r#""index":0,"id":"c""#],
            [r#""index":0,"id":"c""#, r#""id":"other""#],
            [r#""index":0,"id":"c""#, r#""index":0"#],
            [r#""id":"c""#, r#""id":"c""#],
        ] {
            let last = message(&call(repeated, whole));
            let outcome =
                plain(&[delta(&call(streamed, begun)), last.clone(), last, finish("tool_calls")]);
            assert_eq!(outcome.blocks(), format!("call c add {whole}"), "{begun} {repeated}");
        }
    }
    // What one call of the message continues, another does not repeat.
    let two = r#""tool_calls":[{"function":{"name":"add","arguments":"{\"a\":1}"}},{"function":{"name":"add"}}]"#;
    let outcome = plain(&[delta(&call(r#""id":"c""#, "")), message(two), finish("tool_calls")]);
    assert_eq!(calls(&outcome), [r#"add {"a":1}"#, "add {}"]);
    // Each message may have more of them, and white space in a string stays as it is.
    let text = |arguments: &str| call(r#""id":"c""#, arguments);
    let payloads = [
        delta(&text(r#"{"a":"b "#)),
        message(&text(r#"{"a":"b c"#)),
        message(&text(r#"{"a":"b c"#)),
        message(&text(r#"{"a":"b c d"}"#)),
    ];
    assert_eq!(plain(&payloads).blocks(), r#"call c add {"a":"b c d"}"#);
    // Other arguments do not replace those that were streamed.
    let last = message(&call(r#""id":"c""#, r#"{"a":2,"b":2}"#));
    let streamed = delta(&call(r#""index":0,"id":"c""#, r#"{"a":1}"#));
    assert_eq!(plain(&[streamed, last]).blocks(), r#"call c add {"a":1}"#);
}

#[test]
fn final_message_completes_name_and_members() {
    let outcome = plain(&[
        fragment(r#""index":0,"id":"c","function":{"arguments":"{\"a\":1}"}"#),
        message(
            r#""tool_calls":[{"id":"c","extra_content":{"s":1},"function":{"name":"add","arguments":"{\"a\":1}"}}]"#,
        ),
    ]);
    assert_eq!(outcome.blocks(), r#"call c add {"a":1}"#);
    let [ContentBlock::ToolUse(call)] = &outcome.answer.blocks[..] else { panic!("one call") };
    assert_eq!(call.extra["extra_content"], json!({"s": 1}));
}

#[test]
fn equal_calls_of_two_ids_stay_two() {
    let call =
        |id: &str| format!(r#"{{"id":"{id}","function":{{"name":"f","arguments":"{{}}"}}}}"#);
    let list = |ids: &[&str]| {
        let calls: Vec<String> = ids.iter().map(|id| call(id)).collect();
        format!(r#""tool_calls":[{}]"#, calls.join(","))
    };
    let ids = |streamed: &[&str], whole: &[&str]| {
        let outcome = plain(&[delta(&list(streamed)), message(&list(whole)), finish("tool_calls")]);
        calls(&outcome).len()
    };
    assert_eq!(ids(&["a", "b"], &["a", "b"]), 2);
    assert_eq!(ids(&["a", "b"], &["b", "a"]), 2);
    assert_eq!(ids(&["a", "b"], &["c", "d"]), 2);
    assert_eq!(ids(&["a"], &["a", "b"]), 2);
    assert_eq!(ids(&["a"], &["b", "a"]), 2);
    assert_eq!(ids(&["a", "b"], &["b"]), 2);
}

#[test]
fn tags_of_a_final_message_are_split() {
    let expected = "thinking \"Hm.\"\ntext \"Hello\"";
    let streamed = [text("<think>Hm.</think>"), text("Hello")];
    let whole = ["<think>Hm.</think>Hello", "<think>\nHm.\n</think>\n\nHello", "Hello"];
    for whole in whole {
        let list = [&streamed[..], &[message_of(whole)]].concat();
        assert_eq!(with_tags(ThinkTags::Split, &list), expected, "{whole}");
    }
    let streamed = [text("Hm.</think>"), text("Hello")];
    for whole in whole.into_iter().chain(["Hm.</think>Hello"]) {
        let list = [&streamed[..], &[message_of(whole)]].concat();
        assert_eq!(with_tags(ThinkTags::StartsInThinking, &list), expected, "{whole}");
    }
    // Cut off within the thinking.
    for whole in ["Hm.", "<think>Hm."] {
        let list = [text("Hm."), message_of(whole)];
        assert_eq!(with_tags(ThinkTags::StartsInThinking, &list), "thinking \"Hm.\"", "{whole}");
    }
    let list = [text("<think>Hm.</think>"), message_of("<think>Hm.</think>Hello")];
    assert_eq!(with_tags(ThinkTags::Split, &list), expected);
    let list = [text("<think>Hm.</think>Hel"), message_of("<think>Hm.</think>Hello")];
    assert_eq!(with_tags(ThinkTags::Split, &list), "thinking \"Hm.\"\ntext \"Hello\"");
}

#[test]
fn final_message_may_repeat_thinking_in_tags() {
    let whole = message_of("<think>Hm.</think>Hello");
    for tags in [ThinkTags::Off, ThinkTags::Split] {
        let thinking = delta(r#""reasoning":"Hm.""#);
        for streamed in [&[][..], &[text("Hello")], &[text("<think>Hm.</think>"), text("Hello")]] {
            let list = [slice::from_ref(&thinking), streamed, slice::from_ref(&whole)].concat();
            assert_eq!(with_tags(tags, &list), "thinking \"Hm.\"\ntext \"Hello\"", "{streamed:?}");
        }
    }
    // Tags that are text stay text.
    let list = [text("<think>Hm.</think>"), text("Hello"), whole];
    assert_eq!(with_tags(ThinkTags::Off, &list), "text \"<think>Hm.</think>Hello\"");
}

#[test]
fn repeated_text_is_no_thinking() {
    let list = [text("OK.</think>"), text("OK. Done."), message_of("OK. Done.")];
    let expected = "thinking \"OK.\"\ntext \"OK. Done.\"";
    assert_eq!(with_tags(ThinkTags::StartsInThinking, &list), expected);
}

#[test]
fn final_message_may_have_marked_thinking() {
    let mark = r#""extra_content":{"google":{"thought":true}}"#;
    let streamed = [delta(&format!(r#""content":"<thought>Hm.",{mark}"#)), text("</thought>Yes.")];
    let expected = "thinking \"Hm.\"\ntext \"Yes.\"";
    for mark in ["", mark] {
        for whole in ["<thought>Hm.</thought>Yes.", "<thought>Hm.</thought>"] {
            let comma = if mark.is_empty() { "" } else { "," };
            let whole = message(&format!(r#""content":"{whole}"{comma}{mark}"#));
            let list = [&streamed[..], slice::from_ref(&whole)].concat();
            assert_eq!(plain(&list).blocks(), expected, "{whole}");
        }
    }
}

#[test]
fn messages_without_deltas_are_like_deltas() {
    let all = ["The", "The answer", "The answer is", "The answer is four."];
    assert_eq!(plain(&all.map(message_of)).text(), all[3]);
    assert_eq!(plain(&["ha", "ha", "!"].map(message_of)).text(), "haha!");
    let cut = ["<thi", "nk>a</think>b"].map(message_of);
    assert_eq!(with_tags(ThinkTags::Split, &cut), "thinking \"a\"\ntext \"b\"");
    let echo = [message(r#""reasoning":"a""#), message_of("<thi"), message_of("nk>a</think>b")];
    assert_eq!(plain(&echo).blocks(), "thinking \"a\"\ntext \"b\"");
}

#[test]
fn empty_call_of_a_message_is_whole() {
    let call = |arguments: &str| {
        message(&format!(
            r#""tool_calls":[{{"id":"c","function":{{"name":"now","arguments":{arguments}}}}}]"#
        ))
    };
    for arguments in [r#""""#, "null", "{}"] {
        assert_eq!(plain(&[call(arguments)]).blocks(), "call c now {}");
    }
    let cut = plain(&[call("null"), finish("length")]);
    assert!(cut.blocks().starts_with("error c now"), "{}", cut.blocks());
}

#[test]
fn final_message_adds_only_new_content() {
    let call = r#""tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]"#;
    let outcome = plain(&[
        delta(r#""reasoning":"Hm.""#),
        text("Hel"),
        text("lo"),
        fragment(r#""index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}"#),
        format!(
            r#"{{"choices":[{{"message":{{"reasoning":"Hm.","content":"Hello!",{call}}},"finish_reason":"stop"}}]}}"#
        ),
    ]);
    assert_snapshot!(outcome.blocks(), @r#"
    thinking "Hm."
    text "Hello"
    call a f {"x":1}
    text "!"
    "#);
    assert_eq!(outcome.answer.finish_reason, FinishReason::Stop);
}
