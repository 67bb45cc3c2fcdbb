//! Invariants of every dialect, for any text.

use std::sync::Arc;

use oa_fallback::{AfterCall, Dialect, Limits, Scanned, Scanner};
use oa_json::ThinkingTags;
use oa_types::wire::ChatParameters;
use oa_types::{ToolSpec, ToolUseBlock};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

use crate::{Written, dialects, read, read_cut_off, scanner, tools};

/// Pieces of what models write, and of what looks like it.
const FRAGMENTS: [&str; 161] = [
    "Action: ",
    "Action:",
    "\nAction: ",
    "\n**Action:** ",
    "\nACTION ",
    "\nAction Input: ",
    "Action Input:",
    "\nObservation: ",
    "\nThought: ",
    "Observation:",
    "Thought:",
    "add(",
    "add",
    "search",
    "get_time",
    "weather",
    "teleport",
    "a=1",
    "b=2",
    "query=",
    "days=",
    ", ",
    ",",
    "=",
    ":",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "\\",
    "\\\"",
    "`",
    "```",
    "```json\n",
    "```tool_code\n",
    "**",
    "\n",
    "\n\n",
    " ",
    "\r\n",
    "\t",
    "[TOOL:",
    "[TOOL",
    "[TO",
    "[TOOL:add:a=1,b=2]",
    "[TOOL:get_time]",
    "[RESULT:add]",
    "<tool_call>",
    "</tool_call>",
    "<tool_",
    "<tool_call>\n{",
    "{\"name\": \"add\", \"arguments\": {",
    "\"a\": 1",
    "}}",
    "{\"name\": \"get_time\", \"parameters\": {}}",
    "<|python_tag|>",
    "<|python",
    "[TOOL_CALLS]",
    "[ARGS]",
    "[TOOL_CALLS] [{\"name\": \"add\"",
    "<function=",
    "<function=add>",
    "</function>",
    "<parameter=a>",
    "</parameter>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "{\"answer\": \"",
    "{\"answer\": {",
    "{\"answer\":",
    "{\"tool\": \"add\", \"arguments\": {",
    "{\"tool\": \"",
    "{\"calls\": [",
    "\\ud83d",
    "\\ude42",
    "\\u00",
    "\\n",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<｜DSML｜function_calls>",
    "<｜DSML｜invoke name=\"add\">",
    "<｜DSML｜parameter name=\"a\" string=\"false\">1</｜DSML｜parameter>",
    "</｜DSML｜invoke>",
    "<minimax:tool_call>",
    "<invoke name=\"add\">",
    "<parameter name=\"a\">",
    "</invoke>",
    "<|start|>assistant",
    "<|channel|>commentary to=functions.add <|constrain|>json<|message|>",
    "<|channel|>analysis<|message|>",
    "<|call|>",
    "<|tool_call|>",
    "<|tool_call_start|>",
    "<|tools_prefix|>",
    "<function_calls>",
    "<tool_calls>",
    "<|tool_call>call:add{",
    "<|\"|>",
    "<tool_call|>",
    "<start_function_call>call:add{",
    "<escape>",
    "<end_function_call>",
    "[add(",
    "get_time()",
    "functools[",
    "functools[{\"name\": \"add\", \"arguments\": {",
    "<|action_start|><|plugin|>",
    "<|action_end|>",
    "<function_call>",
    "<tools>",
    "</tools>",
    "<longcat_tool_call>",
    "<tool_call:opensource>add<tool_sep:opensource>",
    "<|tool_call:start|>add\n",
    "<|tool_arg:start|>a<|tool_arg:value|>",
    "<|tool_arg:end|>",
    "<|tool_call:end|>",
    "<|message_sep|>",
    "function call<|role_sep|>",
    "<|open|>call tool=\"add\"<|sep|>",
    "<|open|>argument key=\"a\" type=\"number\"<|sep|>",
    "<|close|>argument<|sep|>",
    "<|close|>call<|sep|>",
    "]<]minimax[>[",
    "]<]minimax[>[<invoke name=\"add\">",
    "]<]minimax[>[</invoke>",
    "<a>",
    "</a>",
    "<item>",
    "</item>",
    ">>>add\n",
    ">>>",
    "Action: ```json\n",
    "<function name=\"add\"><param name=\"a\">",
    "</param>",
    "<![CDATA[",
    "]]>",
    "<think>",
    "</think>",
    "<thi",
    "[THINK]",
    "[/THINK]",
    "<|end|>",
    "Oslo",
    "3.5",
    "True",
    "None",
    "é",
    "🙂",
    "北京",
];

/// The words of which calls of our dialects begin, in small letters.
const OPENINGS: [&str; 45] = [
    "<tool_calls>",
    "<function_calls>",
    "<minimax:tool_call>",
    "<seed:tool_call>",
    "<toolcall>",
    "<|tool_call|>",
    "<|tool_call>",
    "<|tool_call_start|>",
    "<|tool_call_begin|>",
    "<|tool_calls_section_begin|>",
    "<|tools_prefix|>",
    "<|start_action|>",
    "<|start|>assistant",
    "<|channel|>",
    "<|python_start|>",
    "<｜tool",
    "<｜dsml｜",
    "<｜｜dsml｜｜",
    "<start_function_call>",
    "<invoke",
    "<steptml:invoke",
    "action",
    "**action",
    "[tool:",
    "<tool_call>",
    "<function=",
    "<|python_tag|>",
    "[tool_calls]",
    "<|action_start|>",
    "<|function_call|>",
    "<function_call>",
    "<tools>",
    "<longcat_tool_call>",
    "<tool_call:opensource>",
    "<|tool_call:start|>",
    "<|message_sep|>",
    "<|open|>",
    "<function ",
    "]<]minimax[>[",
    "functools[",
    "function call<|role_sep|>",
    ">>>",
    "```",
    "{",
    "[",
];

fn answer() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        16 => select(FRAGMENTS.to_vec()).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => "[a-zA-Z ]{0,20}",
        1 => "[ \n]{60,70}",
        1 => "[a-z ]{430,530}",
    ];
    vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

fn cut<'a>(whole: &'a str, cuts: &[Index]) -> Vec<&'a str> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len() + 1)).collect();
    places.retain(|&at| whole.is_char_boundary(at));
    places.push(whole.len());
    places.sort_unstable();
    let mut start = 0;
    places.into_iter().map(|end| &whole[std::mem::replace(&mut start, end)..end]).collect()
}

fn characters(whole: &str) -> Vec<&str> {
    whole.split_inclusive(|_| true).collect()
}

/// A schema and a value that it allows.
fn typed() -> impl Strategy<Value = (Value, Value)> {
    let text = || {
        prop_oneof![
            any::<String>(),
            vec(select(FRAGMENTS.to_vec()), 0..4).prop_map(|pieces| pieces.concat()),
            select(vec!["007", "3", "true", "null", "None", "[1]", "{}", "", " ", "\\u0041"])
                .prop_map(str::to_owned),
        ]
    };
    let number = || {
        prop_oneof![
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1e12..1e12_f64).prop_map(Value::from),
            any::<f64>().prop_filter("JSON has no others", |n| n.is_finite()).prop_map(Value::from),
        ]
    };
    let leaf = prop_oneof![
        text().prop_map(|text| (json!({"type": "string"}), json!(text))),
        any::<i64>().prop_map(|number| (json!({"type": "integer"}), json!(number))),
        any::<u64>().prop_map(|number| (json!({"type": "integer"}), json!(number))),
        number().prop_map(|number| (json!({"type": "number"}), number)),
        any::<bool>().prop_map(|value| (json!({"type": "boolean"}), json!(value))),
        text().prop_map(|text| (json!({"type": ["string", "null"]}), json!(text))),
        text().prop_map(|text| (json!({"type": ["string", "integer", "array"]}), json!(text))),
        number().prop_map(|number| (json!({"type": ["string", "number"]}), number)),
        text().prop_map(|text| (json!({"enum": [text, 5, null]}), json!(text))),
        text().prop_map(|text| {
            (json!({"anyOf": [{"type": "string"}, {"type": "boolean"}]}), json!(text))
        }),
        Just((json!({"type": ["integer", "null"]}), Value::Null)),
        text().prop_map(|text| (
            json!({"type": "array", "items": {"type": "string"}}),
            json!([text, ""])
        )),
        text().prop_map(|text| (json!({}), json!(text))),
        Just((json!({"$ref": "#/$defs/x"}), json!({"a": [1, null, "x"]}))),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(|list| {
                let values: Vec<Value> = list.into_iter().map(|(_, value)| value).collect();
                (json!({"type": "array"}), json!(values))
            }),
            btree_map(any::<String>(), inner, 0..3).prop_map(object),
        ]
    })
}

fn object(members: impl IntoIterator<Item = (String, (Value, Value))>) -> (Value, Value) {
    let (mut properties, mut values) = (Map::new(), Map::new());
    for (name, (schema, value)) in members {
        properties.insert(name.clone(), schema);
        values.insert(name, value);
    }
    (json!({"type": "object", "properties": properties}), Value::Object(values))
}

/// A tool and a call of it.
fn call() -> impl Strategy<Value = (ToolSpec, ToolUseBlock)> {
    let key = prop_oneof![2 => "[a-z_]{1,8}", 1 => any::<String>()];
    ("[a-zA-Z_][a-zA-Z0-9_-]{0,20}", btree_map(key, typed(), 0..4)).prop_map(|(name, members)| {
        let (schema, input) = object(members);
        (ToolSpec::new(&*name, "", schema), ToolUseBlock::new("1", name, input))
    })
}

/// Prose followed by calls of the tools, as the dialect writes them.
fn written(dialect: &dyn Dialect, prose: &str, calls: &[(ToolSpec, ToolUseBlock)]) -> String {
    let calls = calls.iter().map(|(_, call)| dialect.write_call(call));
    let lines: Vec<String> = std::iter::once(prose.to_owned()).chain(calls).collect();
    lines.join("\n")
}

fn scanner_for(dialect: &dyn Dialect, calls: &[(ToolSpec, ToolUseBlock)]) -> Scanner {
    dialect.scanner(calls.iter().map(|(tool, _)| tool.clone()).collect::<Arc<[ToolSpec]>>())
}

fn offset(call: &Written) -> usize {
    let (Written::Call { offset, .. } | Written::Malformed { offset, .. }) = call;
    *offset
}

/// Returns true if the pieces make up the whole answer, except for one marker between adjacent pieces.
fn is_without_markers(answer: &str, pieces: &[&str]) -> bool {
    let [first, others @ ..] = pieces else { return false };
    let Some(rest) = answer.strip_prefix(first) else { return false };
    if others.is_empty() {
        return rest.is_empty();
    }
    let is_marker = rest.get(..6).is_some_and(|opening| opening.eq_ignore_ascii_case("[tool:"));
    let mut ends = (6..=rest.len()).filter(|&end| rest.is_char_boundary(end));
    is_marker && ends.any(|end| is_without_markers(&rest[end..], others))
}

fn goes_on(dialect: &dyn Dialect) -> bool {
    dialect.grammar(Arc::new([])).after_call() == AfterCall::Keep
}

/// True if text for the user may be encoded.
fn decodes(dialect: &dyn Dialect) -> bool {
    let mut parameters = ChatParameters::new("any");
    parameters.tools = tools().to_vec();
    dialect.response_format(&parameters).is_some()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn pieces_do_not_change_the_items(
        whole in answer(),
        cuts in vec(any::<Index>(), 0..8),
        argument_bytes in 0..64_usize,
        calls in 0..3_usize,
        held_bytes in prop_oneof![Just(64_usize << 20), 0..20_000_usize],
    ) {
        let mut limits = Limits::default();
        (limits.argument_bytes, limits.calls, limits.held_bytes) = (argument_bytes, calls, held_bytes);
        let bounded = |dialect: &dyn Dialect| Scanner::with_limits(dialect.grammar(tools()), limits);
        for dialect in dialects() {
            let uncut = read(scanner(&*dialect), [&*whole]).settled();
            let tight = read(bounded(&*dialect), [&*whole]).settled();
            prop_assert!(tight.calls.len() <= calls + 1);
            for pieces in [cut(&whole, &cuts), characters(&whole)] {
                let found = read(scanner(&*dialect), pieces.clone());
                prop_assert!(found.held <= Scanner::MOST_HELD);
                prop_assert_eq!(found.settled(), uncut.clone());
                let found = read(bounded(&*dialect), pieces);
                prop_assert_eq!(found.settled(), tight.clone());
            }
        }
    }

    #[test]
    fn cut_off_answers_add_no_calls(
        whole in answer(),
        at in any::<Index>(),
        cuts in vec(any::<Index>(), 0..8),
    ) {
        let mut at = at.index(whole.len() + 1);
        while !whole.is_char_boundary(at) {
            at -= 1;
        }
        for dialect in dialects() {
            let all = read(scanner(&*dialect), [&*whole]);
            let mut begun = read_cut_off(scanner(&*dialect), cut(&whole[..at], &cuts));
            prop_assert_eq!(
                read_cut_off(scanner(&*dialect), [&whole[..at]]).settled(),
                begun.clone().settled()
            );
            begun.calls.pop_if(|last| matches!(last, Written::Malformed { .. }));
            prop_assert!(all.calls.starts_with(&begun.calls), "{begun:?} of {all:?}");
        }
    }

    #[test]
    fn prose_is_shown_exactly_once(whole in answer()) {
        for dialect in dialects() {
            let found = read(scanner(&*dialect), [&*whole]);
            if decodes(&*dialect) && whole.contains("\"answer\"") {
                continue; // See `constrained.rs`.
            }
            if found.calls.is_empty() {
                prop_assert_eq!(&found.text, &whole);
            } else if !goes_on(&*dialect) {
                // All before the first call, whose white space goes with it.
                prop_assert!(whole.starts_with(&found.text));
                let call = whole[found.text.len()..].trim_start().to_ascii_lowercase();
                prop_assert!(OPENINGS.iter().any(|opening| call.starts_with(opening)), "{call}");
                for call in &found.calls {
                    prop_assert_eq!(offset(call), found.text.len());
                }
            } else {
                // All but the calls, each of which stood where it says.
                let offsets = found.calls.iter().map(offset);
                let (mut pieces, mut start) = (Vec::new(), 0);
                for end in offsets.chain([found.text.len()]) {
                    pieces.push(&found.text[start..end]);
                    start = end;
                }
                prop_assert!(is_without_markers(&whole, &pieces), "{whole:?} is not {found:?}");
            }
        }
    }

    #[test]
    fn written_calls_are_read_back(
        calls in vec(call(), 1..3),
        prose in "[a-z .é🙂\n]{0,40}",
        cuts in vec(any::<Index>(), 0..8),
    ) {
        // Two tools of one name are none.
        prop_assume!(calls.len() < 2 || calls[0].0.name != calls[1].0.name);
        for dialect in dialects() {
            let answer = written(&*dialect, &prose, &calls);
            let found = read(scanner_for(&*dialect, &calls), cut(&answer, &cuts));
            let inputs: Vec<(&str, &Value)> = found.calls.iter().map(|call| match call {
                Written::Call { name, input, .. } => (&**name, input),
                Written::Malformed { error, .. } => panic!("{error}: {answer}"),
            }).collect();
            let wanted: Vec<(&str, &Value)> =
                calls.iter().map(|(_, call)| (&*call.name, &call.input)).collect();
            prop_assert_eq!(inputs, wanted, "{}", answer);
            if goes_on(&*dialect) {
                prop_assert_eq!(found.text, prose.clone() + &"\n".repeat(calls.len()));
            } else {
                prop_assert_eq!(&found.text, prose.trim_end());
            }
        }
    }

    #[test]
    fn half_a_marker_never_leaks(calls in vec(call(), 1..2), prose in "[a-z .é\n]{0,40}") {
        for dialect in dialects() {
            let answer = written(&*dialect, &prose, &calls);
            let mut scanner = scanner_for(&*dialect, &calls);
            let mut shown = 0;
            let mut read = 0;
            for character in characters(&answer) {
                scanner.push(character);
                read += character.len();
                while let Some(item) = scanner.next_item() {
                    if let Scanned::Text(text) = item {
                        shown += text.len();
                    }
                }
                prop_assert!(shown <= prose.len() + 1, "{shown} of {prose:?}");
                // At once: of prose no more than white space waits, and what may begin a label.
                if read <= prose.len() {
                    let held = prose[shown..read].trim_start();
                    prop_assert!(held.len() <= "final answer".len(), "{held:?}");
                }
            }
        }
    }

    /// Thinking at the start is text, and the answer behind it is read as if it stood alone.
    #[test]
    fn thinking_holds_no_calls(
        blank in "[ \n]{0,70}",
        tags in select(ThinkingTags::KNOWN.to_vec()),
        thought in answer(),
        whole in answer(),
        cuts in vec(any::<Index>(), 0..8),
    ) {
        let ThinkingTags { open, close, .. } = tags;
        let thought = thought.replace(close, "");
        prop_assume!(!thought.contains(close));
        let thinking = format!("{blank}{open}{thought}{close}");
        let both = thinking.clone() + &whole;
        for dialect in dialects() {
            let mut alone = read(scanner(&*dialect), [&*whole]).settled();
            alone.text.insert_str(0, &thinking);
            for call in &mut alone.calls {
                let (Written::Call { offset, .. } | Written::Malformed { offset, .. }) = call;
                *offset += thinking.len();
            }
            for pieces in [cut(&both, &cuts), characters(&both)] {
                prop_assert_eq!(&read(scanner(&*dialect), pieces).settled(), &alone);
            }
            // Without its end, all of it is text.
            let open = &both[..thinking.len() - 1];
            prop_assert_eq!(&read(scanner(&*dialect), [open]).text, open);
        }
    }

    #[test]
    fn malformed_calls_keep_their_beginning(whole in answer()) {
        for dialect in dialects() {
            for call in read(scanner(&*dialect), [&*whole]).calls {
                if let Written::Malformed { error, raw, .. } = call {
                    prop_assert!(!error.is_empty());
                    prop_assert!(raw.len() <= 4096);
                    prop_assert!(whole.contains(&raw));
                }
            }
        }
    }
}
