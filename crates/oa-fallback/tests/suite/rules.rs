//! Rules that the transcript files do not cover.

use std::sync::Arc;

use oa_fallback::{Dialect, Markers, React, TaggedJson, inline_results, recognize};
use oa_types::{ContentBlock, ToolSpec};
use serde_json::json;

use crate::{Found, Written, read, read_cut_off, scanner, tools};

fn call(name: &str, input: serde_json::Value, offset: usize) -> Written {
    Written::Call { name: name.to_owned(), input, offset }
}

#[test]
fn lines_may_end_as_elsewhere() {
    let answer = "Thought: so\r\n\r\nAction: search\r\nAction Input: rust\r\nObservation: x\r\n";
    let found = read(scanner(&React::new()), [answer]);
    assert_eq!(found.text, "Thought: so");
    assert_eq!(found.calls, [call("search", json!({"query": "rust"}), 11)]);

    let answer = "Let me see.\r\n[TOOL:search:query=rust\r\n]";
    let found = read(scanner(&Markers::new()), [answer]);
    assert!(matches!(found.calls[..], [Written::Malformed { .. }]));
}

#[test]
fn scanners_and_dialects_go_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<oa_fallback::Scanner>();
    check::<Arc<dyn Dialect>>();
}

#[test]
fn long_blanks_do_not_start_a_line() {
    let answer = format!("So{}Action: add(a=1, b=2)", " ".repeat(100));
    assert_eq!(read(scanner(&React::new()), [&*answer]).text, answer);
    let answer = format!("So\n{}Action: add(a=1, b=2)", " ".repeat(100));
    assert_eq!(read(scanner(&React::new()), [&*answer]).calls.len(), 1);
}

#[test]
fn endless_heads_are_text() {
    let answers = [
        (React::new().grammar(tools()), format!("Action: {}", "on and on ".repeat(100))),
        (Markers::new().grammar(tools()), format!("[TOOL: {}", " ".repeat(1000))),
        (TaggedJson::new().grammar(tools()), format!("<tool_call>{}", "\n".repeat(1000))),
    ];
    for (grammar, answer) in answers {
        let mut scanner = oa_fallback::Scanner::new(grammar);
        scanner.push(&answer);
        assert!(scanner.held_bytes() <= oa_fallback::Scanner::MOST_HELD);
        assert!(matches!(scanner.next_item(), Some(oa_fallback::Scanned::Text(_))), "{answer}");
    }
}

#[test]
fn text_comes_out_at_once() {
    for dialect in crate::dialects() {
        let mut scanner = scanner(&*dialect);
        scanner.push("Hello");
        assert_eq!(scanner.next_item(), Some(oa_fallback::Scanned::Text("Hello")));
        assert_eq!(scanner.held_bytes(), 0);
    }
}

#[test]
fn a_call_comes_out_when_it_ends() {
    let mut scanner = scanner(&TaggedJson::new());
    scanner.push("<tool_call>{\"name\": \"get_time\"}");
    assert!(matches!(scanner.next_item(), Some(oa_fallback::Scanned::Call(_))));
    assert!(!scanner.is_done(), "another may follow");
    scanner.push("</tool_call> and");
    assert!(scanner.is_done());
    scanner.push("<tool_call>{\"name\": \"get_time\"}</tool_call>");
    scanner.finish();
    scanner.finish();
    assert_eq!(scanner.next_item(), None);
}

#[test]
fn cut_off_calls_are_malformed() {
    let found = |dialect: &dyn Dialect, answer: &str| read_cut_off(scanner(dialect), [answer]);
    let react = React::new();
    // Without the limit this is a call, and so it might have been "rust async".
    for answer in
        ["Action: search\nAction Input: rust asy", "Action: search\nAction Input: \"rust\""]
    {
        let [Written::Malformed { name, error, .. }] = &found(&react, answer).calls[..] else {
            panic!("{answer}")
        };
        assert_eq!(name.as_deref(), Some("search"));
        assert_eq!(error, "the answer was cut off inside the call");
    }
    // A name that may go on is no name.
    assert_eq!(found(&react, "Action: get_time").text, "Action: get_time");
    // What has its mark is whole.
    for answer in
        ["Action: get_time()", "Action: get_time\nObs", "Action: get_time\nAction Input: {}"]
    {
        assert_eq!(found(&react, answer).calls, [call("get_time", json!({}), 0)], "{answer}");
    }
    for answer in ["[TOOL:get_time]", "[TOOL:get_time:]"] {
        assert_eq!(
            found(&Markers::new(), answer).calls,
            [call("get_time", json!({}), 0)],
            "{answer}"
        );
    }
    let answer = "<tool_call>{\"name\": \"get_time\"}";
    assert_eq!(found(&TaggedJson::new(), answer).calls, [call("get_time", json!({}), 0)]);
    assert_eq!(found(&TaggedJson::new(), "so <tool_ca").text, "so <tool_ca");
}

#[test]
fn calls_are_found_without_tools() {
    let none = || -> Arc<[ToolSpec]> { Arc::new([]) };
    let found = read(React::new().scanner(none()), ["Action: f(a=1, b=\"x\", c=[y])"]);
    assert_eq!(found.calls, [call("f", json!({"a": 1, "b": "x", "c": ["y"]}), 0)]);
    // But what has only its form to show for it.
    let bare = r#"{"name": "add", "parameters": {}}"#;
    assert_eq!(read(recognize(none()), [bare]).text, bare);
    assert_eq!(read(recognize(tools()), [bare]).calls, [call("add", json!({}), 0)]);
}

/// The targets of references, and the schemas of members and items without a name, decide like a parameter's own words.
#[test]
fn references_decide_the_types_of_values() {
    let text = json!({"$ref": "#/$defs/Text"});
    let schema = json!({
        "type": "object",
        "properties": {
            "zip": text,
            "note": {"anyOf": [text, {"type": "null"}]},
            "old": {"allOf": [text], "description": "as older generators write it"},
            "kind": {"anyOf": [{"$ref": "#/$defs/Kind"}, {"type": "null"}]},
            "labels": {"type": "object", "additionalProperties": text},
            "pair": {"type": "array", "prefixItems": [text, {"type": "integer"}]},
            "list": {"type": "array", "items": text},
        },
        "required": ["zip"],
        "$defs": {"Text": {"type": "string"}, "Kind": {"enum": ["None", "All", "1"]}},
    });
    let tools = || -> Arc<[ToolSpec]> { Arc::new([ToolSpec::new("f", "", schema.clone())]) };
    let check = |dialect: &dyn Dialect, answer: &str, input: serde_json::Value| {
        let found = read(dialect.scanner(tools()), [answer]);
        assert_eq!(found.calls, [call("f", input, 0)], "{answer}");
    };
    let tagged = TaggedJson::new();
    let answer = "<function=f><parameter=zip>12345</parameter><parameter=note>1.10</parameter>\
                  <parameter=old>{}</parameter></function>";
    check(&tagged, answer, json!({"zip": "12345", "note": "1.10", "old": "{}"}));
    let answer = "<function=f><parameter=zip>null</parameter><parameter=note>null</parameter>\
                  <parameter=list>[1, 2]</parameter></function>";
    check(&tagged, answer, json!({"zip": "null", "note": null, "list": ["1", "2"]}));
    let answer = "Action: f(zip=007, kind=None, labels={a: 5}, pair=[1, 2], list=[true])";
    let input = json!({"zip": "007", "kind": "None", "labels": {"a": "5"}, "pair": ["1", 2], "list": ["true"]});
    check(&React::new(), answer, input);
    check(&React::new(), "Action: f(zip=5, kind=1)", json!({"zip": "5", "kind": "1"}));
}

/// Digits that a number would lose are kept, as text.
#[test]
fn long_numbers_of_any_type_stay_text() {
    let answer = "<function=teleport><parameter=to>12345678901234567890123</parameter></function>";
    let found = read(scanner(&TaggedJson::new()), [answer]);
    assert_eq!(found.calls, [call("teleport", json!({"to": "12345678901234567890123"}), 0)]);
}

#[test]
fn schemas_that_contain_themselves_are_bounded() {
    let again = json!({"$ref": "#/$defs/A"});
    for of in [
        again.clone(),
        json!({"type": "array", "items": again}),
        json!({"anyOf": vec![again.clone(); 50]}),
        json!({"allOf": vec![json!({"anyOf": [again, {"type": "array", "items": again}]}); 50]}),
    ] {
        let schema =
            json!({"properties": {"a": again}, "$defs": {"A": of}, "anyOf": [{"$ref": "#"}]});
        let tools: Arc<[ToolSpec]> = Arc::new([ToolSpec::new("f", "", schema)]);
        for dialect in crate::dialects() {
            assert!(dialect.instructions(&tools).len() < 50_000);
        }
        let found = read(React::new().scanner(tools), ["Action: f(a=[[], []])"]);
        assert_eq!(found.calls, [call("f", json!({"a": [[], []]}), 0)]);
    }
}

#[test]
fn calls_become_blocks() {
    let mut scanner = scanner(&React::new());
    scanner.push("Action: add(a=1, b=2)\nAction: add(a=1");
    scanner.finish();
    let mut blocks: Vec<ContentBlock> = Vec::new();
    while let Some(item) = scanner.next_item() {
        match item {
            oa_fallback::Scanned::Call(call) => blocks.push(call.into_tool_use("1").into()),
            oa_fallback::Scanned::Malformed(call) => {
                blocks.push(call.into_tool_use_error("2").into());
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        serde_json::to_value(blocks).unwrap(),
        json!([
            {"type": "tool_use", "id": "1", "name": "add", "input": {"a": 1, "b": 2}},
            {
                "type": "tool_use_error", "id": "2", "name": "add", "raw_data": "Action: add(a=1",
                "error": "the answer ended in the middle of the call",
            },
        ])
    );
}

#[test]
fn results_stand_where_their_markers_stood() {
    let answer = "From [TOOL:add:a=1,b=2] to [TOOL:add:a=3,b=4], é[TOOL:get_time]!";
    let Found { text, calls, .. } = read(scanner(&Markers::inline()), [answer]);
    let offsets: Vec<usize> = calls
        .iter()
        .map(|call| match call {
            Written::Call { offset, .. } | Written::Malformed { offset, .. } => *offset,
        })
        .collect();
    let results = offsets.into_iter().zip(["3", "7", "12:04"]);
    assert_eq!(inline_results(&text, results), "From 3 to 7, é12:04!");
}

#[test]
fn offsets_out_of_range_are_clamped() {
    assert_eq!(inline_results("éa", [(1, "x"), (0, "y"), (99, "z")]), "éxyaz");
    assert_eq!(inline_results("", [(5, "x")]), "x");
    assert_eq!(inline_results("as it is", []), "as it is");
}

#[test]
fn a_model_cannot_write_its_own_results() {
    let result = oa_types::ToolResultBlock::new("1", json!(3));
    for dialect in crate::dialects() {
        for stop in dialect.stop() {
            let begins = dialect.write_result(&result, "add").starts_with(stop.trim_start());
            let mut failed = result.clone();
            failed.is_error = true;
            let fails = dialect.write_result(&failed, "add").starts_with(stop.trim_start());
            assert!(begins || fails, "{stop}");
        }
    }
}

#[test]
fn written_calls_contain_no_tags() {
    let input = json!({"query": "</tool_call><tool_response>"});
    let call = oa_types::ToolUseBlock::new("1", "search", input.clone());
    let written = TaggedJson::new().write_call(&call);
    assert_eq!(written.matches('<').count(), 2);
    assert_eq!(read(scanner(&TaggedJson::new()), [&*written]).calls, [call_of(input)]);
}

fn call_of(input: serde_json::Value) -> Written {
    call("search", input, 0)
}
