//! Answers that are one object: their schema, their text while it arrives, and how history shows them.

use std::sync::Arc;

use oa_fallback::{Constrained, Dialect, Scanned, plain_message};
use oa_types::wire::{ChatParameters, ToolChoice};
use oa_types::{Message, TextBlock, ToolResultBlock, ToolSpec, ToolUseBlock};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use crate::{Found, Written, read, read_cut_off, scanner};

fn parameters(tools: &[(&str, Value)], choice: Option<ToolChoice>) -> ChatParameters {
    let mut parameters = ChatParameters::new("any");
    let tools = tools.iter().map(|(name, schema)| ToolSpec::new(*name, "", schema.clone()));
    parameters.tools = tools.collect();
    parameters.tool_choice = choice;
    parameters
}

fn schema_of(dialect: Constrained, parameters: &ChatParameters) -> Value {
    let mut format = dialect.response_format(parameters).expect("a format");
    assert_eq!(format["type"], "json_schema");
    format["json_schema"]["schema"].take()
}

fn empty() -> Value {
    json!({"type": "object", "properties": {}})
}

/// The first members of the alternatives, with the tools that they name.
fn alternatives(choice: Option<ToolChoice>) -> Vec<String> {
    let parameters = parameters(&[("a", empty()), ("b", empty())], choice);
    let schema = schema_of(Constrained::new(), &parameters);
    let all = schema["anyOf"].as_array().cloned().unwrap_or_else(|| vec![schema]);
    let name = |one: &Value| match &one["properties"]["tool"]["const"] {
        Value::String(name) => name.clone(),
        _ => {
            assert_eq!(one["properties"]["answer"], json!({"type": "string", "minLength": 1}));
            "answer".to_owned()
        }
    };
    all.iter().map(name).collect()
}

#[test]
fn the_choice_narrows_the_alternatives() {
    assert_eq!(alternatives(None), ["a", "b", "answer"]);
    assert_eq!(alternatives(Some(ToolChoice::Auto)), ["a", "b", "answer"]);
    assert_eq!(alternatives(Some(ToolChoice::Required)), ["a", "b"]);
    assert_eq!(alternatives(Some(ToolChoice::Tool("b".to_owned()))), ["b"]);
    assert_eq!(alternatives(Some(ToolChoice::None)), ["answer"]);
    // A tool that is not offered cannot be chosen, and something must be possible.
    assert_eq!(alternatives(Some(ToolChoice::Tool("c".to_owned()))), ["answer"]);
    assert_eq!(Constrained::new().response_format(&parameters(&[], None)), None);
}

#[test]
fn the_schema_of_a_request() {
    let add = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Add",
        "type": "object",
        "properties": {
            "b": {"type": "number", "description": "the first"},
            "a": {"type": "number", "default": 1},
        },
        "required": ["b"],
    });
    let schema = schema_of(Constrained::new(), &parameters(&[("add", add)], None));
    assert_eq!(
        schema.to_string(),
        json!({"anyOf": [
            {
                "type": "object",
                "properties": {
                    "tool": {"const": "add"},
                    "arguments": {
                        "type": "object",
                        "properties": {"b": {"type": "number"}, "a": {"type": "number"}},
                        "required": ["b"],
                        "additionalProperties": false,
                    },
                },
                "required": ["tool", "arguments"],
                "additionalProperties": false,
            },
            {
                "type": "object",
                "properties": {"answer": {"type": "string", "minLength": 1}},
                "required": ["answer"],
                "additionalProperties": false,
            },
        ]})
        .to_string(),
        "in this order",
    );
}

#[test]
fn parallel_calls_are_a_list() {
    let dialect = Constrained::new().with_parallel_calls(true);
    let parameters = parameters(&[("a", empty()), ("b", empty())], Some(ToolChoice::Required));
    let schema = schema_of(dialect, &parameters);
    let calls = &schema["properties"]["calls"];
    assert_eq!((&calls["minItems"], &calls["maxItems"]), (&json!(1), &json!(16)));
    assert_eq!(calls["items"]["anyOf"][1]["properties"]["tool"], json!({"const": "b"}));

    let answer = r#"{"calls": [{"tool": "add", "arguments": {"a": 1, "b": 2}}, {"tool": "get_time", "arguments": {}}]}"#;
    for found in [read(scanner(&dialect), [answer]), read(scanner(&Constrained::new()), [answer])] {
        assert_eq!(names(&found), ["add", "get_time"]);
        assert_eq!(found.text, "");
    }
}

fn names(found: &Found) -> Vec<&str> {
    let calls = found.calls.iter();
    let names = calls.map(|call| match call {
        Written::Call { name, .. } => name.as_str(),
        Written::Malformed { error, .. } => panic!("{error}"),
    });
    names.collect()
}

/// All targets of references in a schema.
fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str() {
                    Some(target) if name == "$ref" => found.push(target.to_owned()),
                    _ => references(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[test]
fn conflicting_definitions_are_renamed() {
    let with = |place: Value| {
        json!({
            "type": "object",
            "properties": {
                "place": {"$ref": "#/$defs/Place"},
                "same": {"$ref": "#/$defs/Same", "description": "beside"},
                "old": {"$ref": "#/definitions/Place"},
                "tree": {"$ref": "#"},
                "first": {"$ref": "#/properties/place"},
                "encoded": {"$ref": "#/$defs/L%C3%B6we"},
                "gone": {"$ref": "#/$defs/Gone"},
                "far": {"$ref": "https://example.com/schema"},
            },
            "$defs": {"Place": place, "Same": {"enum": [1, 2]}, "Löwe": {"type": "boolean"}},
            "definitions": {"Place": {"type": "null"}},
        })
    };
    let one = with(json!({"type": "object", "properties": {"inner": {"$ref": "#/$defs/Place"}}}));
    let other = with(json!({"type": "string"}));
    let tools = [("one", one), ("other", other)];
    let schema = schema_of(Constrained::new(), &parameters(&tools, None));
    let mut found = Vec::new();
    references(&schema, &mut found);
    assert!(found.len() >= 10, "{found:?}");
    for target in &found {
        let target = target.strip_prefix('#').expect("here");
        assert!(schema.pointer(target).is_some(), "{target} of {schema:#}");
    }
    let arguments = |at: usize| &schema["anyOf"][at]["properties"]["arguments"]["properties"];
    let target = |at: usize, name: &str| {
        let target = arguments(at)[name]["$ref"].as_str().expect("a reference");
        &schema[&target[2..7]][&target[8..]]
    };
    assert_eq!(target(0, "place")["properties"]["inner"], arguments(0)["place"], "recursion");
    assert_eq!(target(1, "place"), &json!({"type": "string"}));
    assert_eq!(target(1, "old"), &json!({"type": "null"}));
    assert_eq!(target(1, "encoded"), &json!({"type": "boolean"}));
    assert_eq!(arguments(0)["same"], arguments(1)["same"], "shared");
    assert_eq!(arguments(0)["same"], json!({"$ref": "#/$defs/Same"}));
    for name in ["gone", "far"] {
        assert_eq!(arguments(1)[name], json!({}), "any value");
    }
}

/// Closed, the parts of an object would forbid what the others require.
#[test]
fn parts_of_an_object_are_not_closed() {
    let part = |name: &str| json!({"properties": {name: {"type": "null"}}, "required": [name]});
    let all = json!({"type": "object", "allOf": [part("a"), {"$ref": "#/$defs/B"}], "$defs": {"B": part("b")}});
    let beside = json!({
        "type": "object",
        "properties": {"kind": {"properties": {"inner": {}}}},
        "oneOf": [part("a"), {"anyOf": [part("b")]}],
    });
    let nested =
        json!({"type": "object", "allOf": [{"allOf": [part("a")]}, {"items": [part("b")]}]});
    let union = json!({"anyOf": [part("a"), {"allOf": [part("b")]}]});
    let unnamed = json!({"properties": {"a": {}, "c": part("c")}, "required": ["a", "b"]});
    let mut reference = part("b");
    (reference["$ref"], reference["$defs"]) = (json!("#/$defs/A"), json!({"A": part("a")}));
    let outside = json!({"anyOf": [part("a")], "required": ["b"]});
    let valued = json!({"properties": {"a": {}}, "enum": [{"a": 1}, {"b": 1}]});
    let tools = [
        ("all", all),
        ("beside", beside),
        ("nested", nested),
        ("union", union),
        ("unnamed", unnamed),
        ("reference", reference),
        ("outside", outside),
        ("valued", valued),
    ];
    let parameters = parameters(&tools, Some(ToolChoice::Required));
    let schema = schema_of(Constrained::new(), &parameters);
    let closed = |path: &str| schema.pointer(path).map(|part| part.get("additionalProperties"));
    for (path, is_closed) in [
        ("/anyOf/0/properties/arguments/allOf/0", false),
        ("/$defs/B", false),
        ("/anyOf/1/properties/arguments", false),
        ("/anyOf/1/properties/arguments/properties/kind", true),
        ("/anyOf/1/properties/arguments/anyOf/0", false),
        ("/anyOf/1/properties/arguments/anyOf/1/anyOf/0", false),
        ("/anyOf/2/properties/arguments/allOf/0/allOf/0", false),
        ("/anyOf/2/properties/arguments/allOf/1/items/0", true),
        ("/anyOf/3/properties/arguments/anyOf/0", true),
        ("/anyOf/3/properties/arguments/anyOf/1/allOf/0", true),
        ("/anyOf/4/properties/arguments", false),
        ("/anyOf/4/properties/arguments/properties/c", true),
        ("/$defs/A", false),
        ("/anyOf/6/properties/arguments/anyOf/0", false),
        ("/anyOf/7/properties/arguments", false),
    ] {
        assert_eq!(closed(path), Some(is_closed.then_some(&json!(false))), "{path} of {schema:#}");
    }
}

/// As of a struct with a flattened enum: a grammar that follows only the alternatives would leave out the rest.
#[test]
fn members_beside_alternatives_are_in_each() {
    let part = |kind: &str| json!({"properties": {"kind": {"const": kind}}, "required": ["kind"]});
    let tool = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "text": {}},
        "required": ["path"],
        "oneOf": [part("delete"), {"required": ["text"]}],
    });
    let mut parameters = parameters(&[("change", tool)], Some(ToolChoice::Required));
    let sent = |parameters: &_| {
        schema_of(Constrained::new(), parameters)["properties"]["arguments"].clone()
    };
    let path = json!({"type": "string"});
    assert_eq!(
        sent(&parameters),
        json!({"anyOf": [
            {
                "type": "object",
                "properties": {"path": path, "text": {}, "kind": {"const": "delete"}},
                "required": ["path", "kind"],
                "additionalProperties": false,
            },
            {
                "type": "object",
                "properties": {"path": path, "text": {}},
                "required": ["path", "text"],
                "additionalProperties": false,
            },
        ]})
    );
    parameters.tools[0].parameters["additionalProperties"] = true.into();
    assert_eq!(sent(&parameters)["anyOf"][0]["additionalProperties"], json!(true));
}

/// The same definition is open where it is a part, and closed where it is the whole.
#[test]
fn a_definition_may_be_open_and_closed() {
    let item = json!({"properties": {"a": {}, "next": {"$ref": "#/$defs/Item"}}});
    let tool = json!({
        "type": "object",
        "properties": {
            "part": {"allOf": [{"$ref": "#/$defs/Item"}, {"properties": {"b": {}}}]},
            "whole": {"allOf": [{"$ref": "#/$defs/Item"}]},
        },
        "$defs": {"Item": item},
    });
    let parameters = parameters(&[("tool", tool)], Some(ToolChoice::Required));
    let schema = schema_of(Constrained::new(), &parameters);
    let target = |path: &str| {
        let pointer = schema.pointer(path).and_then(Value::as_str).expect("a reference");
        schema.pointer(&pointer[1..]).expect("a definition")
    };
    let members = "/properties/arguments/properties";
    let part = target(&format!("{members}/part/allOf/0/$ref"));
    let whole = target(&format!("{members}/whole/allOf/0/$ref"));
    assert_eq!(
        (part.get("additionalProperties"), &whole["additionalProperties"]),
        (None, &json!(false))
    );
    assert_eq!(part["properties"], whole["properties"], "what is inside is closed in both");
}

/// In linear time: they come from a server.
#[test]
fn many_definitions_of_one_name_are_numbered() {
    const MANY: usize = 20_000;
    let members = (0..MANY)
        .map(|number| (format!("p{number}"), json!({"$ref": format!("#/$defs/{number}/x")})));
    let members: serde_json::Map<_, _> = members.collect();
    let defs = (0..MANY).map(|number| (number.to_string(), json!({"x": {"const": number}})));
    let defs: serde_json::Map<_, _> = defs.collect();
    let tool = json!({"type": "object", "properties": members, "$defs": defs});
    let parameters = parameters(&[("tool", tool)], Some(ToolChoice::Required));
    let schema = schema_of(Constrained::new(), &parameters);
    assert_eq!(schema["$defs"].as_object().map(serde_json::Map::len), Some(MANY));
    assert_eq!(schema["$defs"][&format!("x_{MANY}")], json!({"const": MANY - 1}));
}

#[test]
fn unsupported_keywords_are_left_out() {
    let odd = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "maxLength": 100_000, "minLength": 1, "pattern": "\\d+"},
            "code": {"type": "string", "pattern": "^[A-Z]{3}$", "format": "email"},
            "day": {"type": "string", "format": "date"},
            "size": {"type": "integer", "minimum": 0, "maximum": u64::MAX, "multipleOf": 5},
            "one": {"oneOf": [{"type": "string"}, {"type": "null"}]},
            "not": {"not": {"type": "string"}},
            "yes": true,
        },
        "required": ["text", "nowhere"],
        "if": {"properties": {"text": {"const": "x"}}},
    });
    let schema =
        schema_of(Constrained::new(), &parameters(&[("odd", odd)], Some(ToolChoice::Required)));
    assert_eq!(
        schema["properties"]["arguments"],
        json!({
            "type": "object",
            "properties": {
                "text": {"type": "string", "minLength": 1},
                "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
                "day": {"type": "string", "format": "date"},
                "size": {"type": "integer", "minimum": 0},
                "one": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "not": {},
                "yes": {},
            },
            "required": ["text"],
        })
    );
    for none in [json!(null), json!({}), json!([1]), json!({"description": "anything"})] {
        let schema =
            schema_of(Constrained::new(), &parameters(&[("x", none)], Some(ToolChoice::Required)));
        assert_eq!(schema["properties"]["arguments"], json!({"type": "object"}));
    }
}

/// A map from numbers forbids the names that do not match its pattern, which no grammar can tell.
#[test]
fn maps_with_patterns_of_names_can_be_filled() {
    let text = json!({"type": "string", "description": "not sent"});
    let map = |additional: Value, properties: Value| {
        let mut map = json!({"type": "object", "patternProperties": {"^\\d+$": text}});
        for (keyword, value) in [("additionalProperties", additional), ("properties", properties)] {
            if !value.is_null() {
                map[keyword] = value;
            }
        }
        let schema = json!({"type": "object", "properties": {"map": map}});
        let parameters = parameters(&[("f", schema)], Some(ToolChoice::Required));
        schema_of(Constrained::new(), &parameters)["properties"]["arguments"]["properties"]["map"]
            .clone()
    };
    let sent = json!({"type": "string"});
    let (none, a) = (Value::Null, json!({"a": {"type": "null"}}));
    let of = |additional: Value| json!({"type": "object", "additionalProperties": additional});
    assert_eq!(map(json!(false), none.clone()), of(sent.clone()));
    assert_eq!(map(text.clone(), none.clone()), of(sent.clone()));
    let either = json!({"anyOf": [sent, {"type": "null"}]});
    assert_eq!(map(json!({"type": "null"}), none.clone()), of(either));
    assert_eq!(map(json!(true), none.clone()), of(json!(true)));
    assert_eq!(map(none.clone(), none), json!({"type": "object"}));
    let closed = map(Value::Null, a);
    assert_eq!(closed["additionalProperties"], sent);
}

/// A schema that refers to itself in a circle, or nests without end, is bounded.
#[test]
fn hostile_schemas_are_bounded() {
    let mut deep = json!({});
    for _ in 0..1000 {
        deep = json!({"type": "array", "items": deep});
    }
    let circle = json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}});
    let chain: serde_json::Map<String, Value> = (0..1000)
        .map(|at| (format!("d{at}"), json!({"items": {"$ref": format!("#/$defs/d{}", at + 1)}})))
        .collect();
    let chain = json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": chain});
    let tools = [("deep", deep), ("circle", circle), ("chain", chain)];
    let schema = schema_of(Constrained::new(), &parameters(&tools, None));
    assert!(schema.to_string().len() < 20_000);
}

#[test]
fn answers_follow_the_callers_format() {
    let mut parameters = parameters(&[("a", empty())], Some(ToolChoice::None));
    let place = json!({"type": "object", "properties": {"city": {"$ref": "#/$defs/City"}}, "$defs": {"City": {"type": "string"}}});
    parameters.response_format =
        Some(json!({"type": "json_schema", "json_schema": {"name": "place", "schema": place}}));
    let schema = schema_of(Constrained::new(), &parameters);
    assert_eq!(
        schema["properties"]["answer"]["properties"]["city"],
        json!({"$ref": "#/$defs/City"})
    );
    assert_eq!(schema["$defs"], json!({"City": {"type": "string"}}));
    parameters.response_format = Some(json!({"type": "json_object"}));
    let schema = schema_of(Constrained::new(), &parameters);
    assert_eq!(schema["properties"]["answer"], json!({"type": "object"}));
    parameters.response_format = Some(json!({"type": "grammar"}));
    assert_eq!(Constrained::new().response_format(&parameters), None, "it stays as it is");

    let answer = r#"{"answer": {"city": "Oslo {", "n": [1]} }"#;
    for at in 0..answer.len() {
        let found = read(scanner(&Constrained::new()), [&answer[..at], &answer[at..]]);
        assert_eq!(found.text, r#"{"city": "Oslo {", "n": [1]}"#, "cut at {at}");
    }
    for (answer, text) in [(r#"{"answer": 42}"#, "42"), (r#"{"answer":true }"#, "true")] {
        assert_eq!(read(scanner(&Constrained::new()), [answer]).text, text);
    }
}

#[test]
fn text_arrives_while_it_is_written() {
    let mut scanner = scanner(&Constrained::new());
    let mut shown = Vec::new();
    for piece in [
        "{\n  \"ans",
        "wer\":",
        " \"",
        "It is",
        " 3",
        " \\u00e",
        "9 \\ud83d",
        "\\ude42",
        "\"",
        "\n}",
    ] {
        scanner.push(piece);
        let mut text = String::new();
        while let Some(Scanned::Text(more)) = scanner.next_item() {
            text.push_str(more);
        }
        shown.push(text);
    }
    assert_eq!(shown, ["", "", "", "It is", " 3", " ", "é ", "🙂", "", ""]);
    assert!(!scanner.is_done(), "usage may follow");
}

#[test]
fn unenforced_answers_are_read_too() {
    let check = |answer: &str, text: &str, calls: &[&str]| {
        let found = read(scanner(&Constrained::new()), [answer]);
        assert_eq!((&*found.text, names(&found)), (text, calls.to_vec()), "{answer}");
    };
    check("It is noon.", "It is noon.", &[]);
    check(r#"{"city": "Oslo"}"#, r#"{"city": "Oslo"}"#, &[]);
    check("```json\n{\"answer\": \"noon\"}\n```", "noon", &[]);
    check(r#"{"answer": "half \q a \ud83d pair"}"#, "half \\q a \u{fffd} pair", &[]);
    check("{\"answer\": \"two\nlines\"}", "two\nlines", &[]);
    check(r#"{"tool": "get_time", "arguments": {}}"#, "", &["get_time"]);
    check(r#"{"tool": "get_time"} and so on"#, "", &["get_time"]);
    check("```json\n{\"tool\": \"nobody\", \"arguments\": {}}\n```", "", &["nobody"]);
    check(r#"{"name": "get_time", "arguments": {}}"#, "", &["get_time"]);
    check("<tool_call>{\"name\": \"get_time\"}</tool_call>", "", &["get_time"]);
    check("Let me see.\n{\"tool\": \"get_time\", \"arguments\": {}}", "Let me see.", &["get_time"]);
    check(
        "{\"answer\": \"Let me see.\"}\n{\"tool\": \"get_time\", \"arguments\": {}}",
        "Let me see.",
        &["get_time"],
    );
    // Written without the result.
    check("{\"tool\": \"get_time\", \"arguments\": {}}\n{\"answer\": \"noon\"}", "", &["get_time"]);

    for (answer, name) in [
        (r#"{"tool": "add", "arguments": {"a": 1, "b": }}"#, Some("add")),
        (r#"{"tool": "add", "arguments": [1]}"#, Some("add")),
        (r#"{"tool": "add", "a": 1}"#, Some("add")),
        (r#"{"calls": []}"#, None),
    ] {
        let found = read(scanner(&Constrained::new()), [answer]);
        let [Written::Malformed { name: told, .. }] = &found.calls[..] else {
            panic!("{answer}: {found:?}")
        };
        assert_eq!(told.as_deref(), name, "{answer}");
    }
}

#[test]
fn cut_off_calls_are_not_made() {
    let answer = r#"{"tool": "search", "arguments": {"query": "rust as"#;
    let found = read_cut_off(scanner(&Constrained::new()), [answer]);
    assert!(matches!(&found.calls[..], [Written::Malformed { .. }]), "{found:?}");
    let found = read_cut_off(scanner(&Constrained::new()), [r#"{"answer": "It is \ud83d"#]);
    assert_eq!((&*found.text, found.calls.len()), ("It is ", 0));
}

#[test]
fn history_is_written_as_the_model_writes() {
    let call = |id: &str| ToolUseBlock::new(id, "add", json!({"a": 1}));
    let one = Message::assistant(vec![call("1").into()]);
    let two = Message::assistant(vec![call("1").into(), call("2").into()]);
    let said = Message::assistant(vec![TextBlock::new("It is \"3\".").into()]);
    let json = Message::assistant(vec![TextBlock::new("{\"n\": 3}").into()]);
    let both = Message::assistant(vec![TextBlock::new("Wait.").into(), call("1").into()]);
    let mut failed = ToolResultBlock::new("1", json!("no network"));
    failed.is_error = true;
    let history = [one, two, said, json, both, Message::tool(failed), Message::assistant(vec![])];
    let plain = |dialect: &dyn Dialect| -> Vec<String> {
        let plain = |at: usize| plain_message(dialect, &history[at], &history[..at]).text();
        (0..history.len()).map(plain).collect()
    };
    let list = r#"{"calls": [{"tool": "add", "arguments": {"a":1}}, {"tool": "add", "arguments": {"a":1}}]}"#;
    let mut expected = [
        r#"{"tool": "add", "arguments": {"a":1}}"#,
        list,
        r#"{"answer": "It is \"3\"."}"#,
        r#"{"answer": {"n": 3}}"#,
        "Wait.\n{\"tool\": \"add\", \"arguments\": {\"a\":1}}",
        r#"{"tool": "add", "error": "no network"}"#,
        "",
    ];
    assert_eq!(plain(&Constrained::new()), expected);
    expected[0] = r#"{"calls": [{"tool": "add", "arguments": {"a":1}}]}"#;
    expected[4] = "Wait.\n{\"calls\": [{\"tool\": \"add\", \"arguments\": {\"a\":1}}]}";
    assert_eq!(plain(&Constrained::new().with_parallel_calls(true)), expected);
}

/// A text as a JSON string, some of its characters escaped though they need not be.
fn quoted(text: &str, escaped: &[bool]) -> String {
    let mut json = String::from("\"");
    for (c, escaped) in text.chars().zip(escaped.iter().cycle()) {
        if *escaped || c < ' ' || matches!(c, '"' | '\\') {
            for unit in c.encode_utf16(&mut [0; 2]) {
                json.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            json.push(c);
        }
    }
    json + "\""
}

fn cut<'a>(whole: &'a str, cuts: &[Index]) -> Vec<&'a str> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len() + 1)).collect();
    places.retain(|&at| whole.is_char_boundary(at));
    places.push(whole.len());
    places.sort_unstable();
    let mut start = 0;
    places.into_iter().map(|end| &whole[std::mem::replace(&mut start, end)..end]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// However a text is escaped and cut, it is shown as it is, and only grows.
    #[test]
    fn escapes_are_decoded_across_pieces(
        text in prop_oneof![any::<String>(), "[a\"\\\\/\n\u{1}é🙂北]{0,20}"],
        escaped in vec(any::<bool>(), 1..8),
        space in select(vec!["", " ", "\n  "]),
        cuts in vec(any::<Index>(), 0..8),
    ) {
        let json = quoted(&text, &escaped);
        prop_assert_eq!(&serde_json::from_str::<String>(&json).expect("JSON"), &text);
        let answer = format!("{space}{{{space}\"answer\":{space}{json}{space}}}");
        for pieces in [cut(&answer, &cuts), answer.split_inclusive(|_| true).collect()] {
            let found = read(scanner(&Constrained::new()), pieces);
            prop_assert_eq!(&found.text, &text);
            prop_assert!(found.calls.is_empty());
        }
    }

    /// An answer in history is read back as the text that it was.
    #[test]
    fn an_answer_in_history_is_read_as_its_text(text in "[a-z{}\"\\\\: \n🙂]{1,30}") {
        let message = Message::assistant(vec![TextBlock::new(&*text).into()]);
        let written = Constrained::new().write_answer(&message).expect("always");
        prop_assert_eq!(read(Constrained::new().scanner(Arc::new([])), [&*written]).text, text);
    }
}
