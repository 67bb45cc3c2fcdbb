//! The instructions for the model.

use oa_fallback::{Constrained, Dialect, Markers, React, Scanned, TaggedJson};
use oa_types::ToolSpec;
use serde_json::json;

use crate::{dialects, scanner, tools};

fn tool() -> [ToolSpec; 2] {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "where"},
            "days": {"type": "integer", "default": 3},
            "unit": {"enum": ["celsius", "fahrenheit"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "area": {"type": "object", "properties": {"km": {"type": "number"}}},
            "since": {"type": ["string", "null"]},
            "other": {"anyOf": [{"type": "string"}, {"type": "number"}]},
            "any": {},
        },
        "required": ["unit", "city"],
    });
    [
        ToolSpec::new("weather", "Tells the weather to come", schema),
        ToolSpec::new("clock", "", json!({"type": "object", "properties": {}})),
    ]
}

#[test]
fn react_tells_its_form_and_the_tools() {
    insta::assert_snapshot!(React::new().instructions(&tool()), @r#"
    You can use tools. To use one, write what you think, then the call on a line of its own, and stop:

    Thought: what you need to find out
    Action: tool_name(argument="text", other=3)

    The next message has the result, and you continue from there:

    Observation: the result

    Never write an observation yourself. Give every argument its name; write text in double quotes, and lists and objects as in JSON. When you need no more tools, write:

    Thought: what you have found out
    Final Answer: your answer

    Tools:

    weather(unit, city, days, tags, area, since, other, any): Tells the weather to come
    - unit (value, required); one of "celsius", "fahrenheit"
    - city (string, required): where
    - days (integer, optional); 3 if left out
    - tags (array of string, optional)
    - area (object {"type":"object","properties":{"km":{"type":"number"}}}, optional)
    - since (string or null, optional)
    - other ({"anyOf":[{"type":"string"},{"type":"number"}]}, optional)
    - any (any value, optional)

    clock()
    "#);
}

/// A model cannot look up what a schema refers to, so its words are there.
#[test]
fn complex_schemas_are_told_in_full() {
    let unit = json!({"$ref": "#/$defs/Unit"});
    let referring = json!({
        "type": "object",
        "properties": {
            "unit": unit,
            "old": {"allOf": [unit], "description": "as before"},
            "maybe": {"anyOf": [unit, {"type": "null"}]},
            "units": {"type": "array", "items": unit},
            "sizes": {"type": "object", "additionalProperties": {"type": "integer"}},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
        },
        "required": ["unit"],
        "$defs": {"Unit": {"type": "string", "enum": ["celsius", "kelvin"]}},
    });
    let side = json!({"properties": {"side": {"type": "number"}}, "required": ["side"]});
    let alternatives = json!({
        "type": "object",
        "properties": {"color": {"type": "string"}},
        "oneOf": [side, {"properties": {"radius": {"type": "number"}}}],
    });
    let tools =
        [ToolSpec::new("measure", "", referring), ToolSpec::new("draw", "Draws", alternatives)];
    let told = React::new().instructions(&tools);
    let (_, told) = told.split_once("Tools:\n\n").unwrap();
    insta::assert_snapshot!(told, @r##"
    measure(unit, old, maybe, units, sizes, pair)
    - unit (string, required); one of "celsius", "kelvin"
    - old (string, optional): as before; one of "celsius", "kelvin"
    - maybe ({"anyOf":[{"$ref":"#/$defs/Unit"},{"type":"null"}]}, optional)
    - units (array of one of "celsius", "kelvin", optional)
    - sizes (object {"type":"object","additionalProperties":{"type":"integer"}}, optional)
    - pair (array {"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]}, optional)
    - $defs: {"Unit":{"type":"string","enum":["celsius","kelvin"]}}

    draw(color, side, radius): Draws
    - color (string, optional)
    - as in one of [{"properties":{"side":{"type":"number"}},"required":["side"]},{"properties":{"radius":{"type":"number"}}}]
    "##);
}

#[test]
fn markers_tell_their_form_and_the_tools() {
    insta::assert_snapshot!(Markers::new().instructions(&tool()[1..]), @r#"
    You can use tools. To use one, end your answer with a marker:

    [TOOL:name:argument=value, other="text, with a comma"]

    Then stop and wait: the next message has the result, as [RESULT:name] and the result. Never write a result yourself. When you need no tool, answer without a marker. A marker must be on one line; text with commas, brackets or line breaks is quoted as in JSON, and lists and objects are written as in JSON.

    Tools:

    clock()
    "#);
}

#[test]
fn inline_markers_are_explained() {
    insta::assert_snapshot!(Markers::inline().instructions(&tool()[1..]), @r#"
    You can use tools. Wherever your answer needs a result, write a marker in its place:

    [TOOL:name:argument=value, other="text, with a comma"]

    The marker is replaced by the result before your answer is shown, so never write the result yourself. If a tool fails you are told, as [ERROR:name] and why: then write the answer again. A marker must be on one line; text with commas, brackets or line breaks is quoted as in JSON, and lists and objects are written as in JSON.

    Tools:

    clock()
    "#);
}

#[test]
fn tagged_json_tells_its_form_and_the_tools() {
    insta::assert_snapshot!(TaggedJson::new().instructions(&tool()[1..]), @r#"
    You can use tools. Each line between these tags describes one:

    <tools>
    {"type": "function", "function": {"name": "clock", "description": "", "parameters": {"type":"object","properties":{}}}}
    </tools>

    To use one, write its name and its arguments as a JSON object between tags, and stop:

    <tool_call>
    {"name": "tool_name", "arguments": {"argument": "value"}}
    </tool_call>

    For several calls at once, write several such pairs of tags. The next message has the results between <tool_response> tags; never write those yourself. When you need no tool, answer in plain text.
    "#);
}

#[test]
fn constrained_answers_are_explained() {
    insta::assert_snapshot!(Constrained::new().instructions(&tool()[1..]), @r#"
    Answer with one JSON object. To use a tool:

    {"tool": "name", "arguments": {"argument": "value"}}

    The next message has its result. If no tool fits, or you have the result: {"answer": "..."}

    Tools:

    clock()
    "#);
    let several = Constrained::new().with_parallel_calls(true).instructions(&tool()[1..]);
    assert!(
        several.contains(r#"{"calls": [{"tool": "name", "arguments": {"argument": "value"}}]}"#)
    );
    assert!(several.contains("The list may have several calls."));
}

#[test]
fn without_tools_there_is_nothing_to_tell() {
    for dialect in dialects() {
        assert_eq!(dialect.instructions(&[]), "");
    }
}

#[test]
fn every_tool_and_parameter_is_told() {
    for dialect in dialects() {
        let told = dialect.instructions(&tools());
        for word in ["add", "weather", "fahrenheit", "Searches the web", "what to look for", "zip"]
        {
            assert!(told.contains(word), "{word}: {told}");
        }
    }
}

/// A model that repeats its instructions calls nothing but the example.
#[test]
fn the_example_in_the_instructions_is_a_call() {
    for dialect in dialects() {
        let mut scanner = scanner(&*dialect);
        scanner.push(&dialect.instructions(&tools()));
        scanner.finish();
        let mut names = Vec::new();
        while let Some(item) = scanner.next_item() {
            match item {
                Scanned::Call(call) => names.push(call.name),
                Scanned::Malformed(call) => panic!("{}", call.error),
                _ => {}
            }
        }
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(["name", "tool_name"].contains(&&*names[0]), "{names:?}");
    }
}

#[test]
fn invalid_schemas_do_not_panic() {
    for schema in [
        json!(null),
        json!({}),
        json!({"properties": [1]}),
        json!({"properties": {"a": 5}, "required": 1}),
    ] {
        for dialect in dialects() {
            assert!(
                dialect.instructions(&[ToolSpec::new("odd", "", schema.clone())]).contains("odd")
            );
        }
    }
}
