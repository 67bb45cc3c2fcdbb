//! A conversation as plain messages.

use std::borrow::Cow;
use std::sync::Arc;

use oa_fallback::{Dialect, Markers, React, TaggedJson, plain_message};
use oa_types::wire::{MessageFormat, write_message};
use oa_types::{
    ContentBlock, ImageBlock, Message, MessageRole, TextBlock, ThinkingBlock, ToolResultBlock,
    ToolUseBlock, ToolUseError,
};
use serde_json::json;

use crate::{Written, dialects, read, scanner};

fn history() -> Vec<Message> {
    let add = ToolUseBlock::new("call_1", "add", json!({"a": 1, "b": 2}));
    let search = ToolUseBlock::new("call_2", "search", json!({"query": "two\nlines"}));
    let mut failed = ToolResultBlock::new("call_2", json!({"error": "no network"}));
    failed.is_error = true;
    vec![
        Message::system("You are brief."),
        Message::user("What is 1 + 2?"),
        Message::assistant(vec![
            ThinkingBlock::new("hm").into(),
            TextBlock::new("I use tools.").into(),
            add.into(),
            search.into(),
        ]),
        Message::tool(ToolResultBlock::new("call_1", json!(3))),
        Message::tool(failed),
        Message::assistant(vec![TextBlock::new("It is 3.").into()]),
    ]
}

fn plain(dialect: &dyn Dialect, history: &[Message]) -> Vec<Message> {
    let places = 0..history.len();
    places.map(|at| plain_message(dialect, &history[at], &history[..at]).into_owned()).collect()
}

#[track_caller]
fn texts(dialect: &dyn Dialect) -> String {
    let plain = plain(dialect, &history());
    let lines = plain.iter().map(|message| format!("{}: {}", message.role, message.text()));
    lines.collect::<Vec<_>>().join("\n---\n")
}

#[test]
fn a_conversation_in_each_dialect() {
    insta::assert_snapshot!(texts(&React::new()), @r#"
    system: You are brief.
    ---
    user: What is 1 + 2?
    ---
    assistant: I use tools.
    Action: add(a=1, b=2)
    Action: search(query="two\nlines")
    ---
    user: Observation: 3
    ---
    user: Observation: search failed: {"error":"no network"}
    ---
    assistant: It is 3.
    "#);
    insta::assert_snapshot!(texts(&Markers::new()), @r#"
    system: You are brief.
    ---
    user: What is 1 + 2?
    ---
    assistant: I use tools.
    [TOOL:add:a=1, b=2]
    [TOOL:search:query="two\nlines"]
    ---
    user: [RESULT:add] 3
    ---
    user: [ERROR:search] {"error":"no network"}
    ---
    assistant: It is 3.
    "#);
    insta::assert_snapshot!(texts(&TaggedJson::new()), @r#"
    system: You are brief.
    ---
    user: What is 1 + 2?
    ---
    assistant: I use tools.
    <tool_call>
    {"name": "add", "arguments": {"a":1,"b":2}}
    </tool_call>
    <tool_call>
    {"name": "search", "arguments": {"query":"two\nlines"}}
    </tool_call>
    ---
    user: <tool_response>
    {"name": "add", "content": 3}
    </tool_response>
    ---
    user: <tool_response>
    {"name": "search", "error": {"error":"no network"}}
    </tool_response>
    ---
    assistant: It is 3.
    "#);
}

#[test]
fn plain_messages_have_no_calls_or_results() {
    for dialect in dialects() {
        let mut bytes = Vec::new();
        for message in plain(&*dialect, &history()) {
            assert_ne!(message.role, MessageRole::Tool);
            write_message(&message, &MessageFormat::default(), &mut bytes);
        }
        let json = String::from_utf8(bytes).unwrap();
        assert!(!json.contains("tool_calls") && !json.contains("tool_call_id"), "{json}");
    }
}

#[test]
fn own_calls_are_read_back_from_history() {
    let history = history();
    for dialect in [Arc::new(React::new()) as Arc<dyn Dialect>, Arc::new(TaggedJson::new())] {
        let written = plain_message(&*dialect, &history[2], &history[..2]).text();
        let found = read(scanner(&*dialect), [&*written]);
        assert_eq!(found.text, "I use tools.");
        let inputs: Vec<_> = found
            .calls
            .iter()
            .map(|call| match call {
                Written::Call { name, input, .. } => (&**name, input.clone()),
                Written::Malformed { error, .. } => panic!("{error}"),
            })
            .collect();
        let wanted = [("add", json!({"a": 1, "b": 2})), ("search", json!({"query": "two\nlines"}))];
        assert_eq!(inputs, wanted);
    }
}

#[test]
fn inline_markers_stay_in_place() {
    let dialect = Markers::inline();
    let answer = Message::assistant(vec![
        TextBlock::new("From ").into(),
        ToolUseBlock::new("1", "add", json!({"a": 1})).into(),
        TextBlock::new(" on, ").into(),
        ThinkingBlock::new("hm").into(),
        ToolUseBlock::new("2", "get_time", json!({})).into(),
        TextBlock::new("!").into(),
    ]);
    let plain = plain_message(&dialect, &answer, &[]);
    assert_eq!(plain.text(), "From [TOOL:add:a=1] on, [TOOL:get_time:]!");
    let found = read(scanner(&dialect), [&*plain.text()]);
    assert_eq!((&*found.text, found.calls.len()), ("From  on, !", 2));
}

#[test]
fn messages_without_calls_are_borrowed() {
    let history = history();
    for at in [0, 1, 5] {
        let plain = plain_message(&React::new(), &history[at], &history[..at]);
        assert!(matches!(plain, Cow::Borrowed(message) if *message == history[at]));
    }
}

#[test]
fn the_rest_of_a_message_stays() {
    let mut message = Message::assistant(vec![
        ThinkingBlock::new("hm").into(),
        ToolUseBlock::new("1", "add", json!({})).into(),
        TextBlock::new("Behind.").into(),
        ToolUseError::new("no", "raw").into(),
    ]);
    message.interrupted = true;
    message.extra.insert("reasoning_details".to_owned(), json!([1]));
    let plain = plain_message(&React::new(), &message, &[]).into_owned();
    assert!(plain.interrupted);
    assert_eq!(plain.extra, message.extra);
    // Text first, as the model may only write it; what is malformed is never sent.
    assert_eq!(plain.text(), "Behind.\nAction: add()");
    assert!(matches!(
        plain.content[..],
        [ContentBlock::Thinking(_), ContentBlock::ToolUseError(_), ContentBlock::Text(_)]
    ));

    let picture = Message::user_with_blocks(vec![
        ImageBlock::from_url("http://a.example/b.png").unwrap().into(),
        ToolResultBlock::new("1", json!("seen")).into(),
    ]);
    let plain = plain_message(&React::new(), &picture, &[message]).into_owned();
    assert!(matches!(plain.content[..], [ContentBlock::Image(_), ContentBlock::Text(_)]));
    assert_eq!(plain.text(), "Observation: seen");
}

#[test]
fn a_result_names_the_tool_it_comes_from() {
    let call =
        |name: &str| Message::assistant(vec![ToolUseBlock::new("1", name, json!({})).into()]);
    let result = Message::tool(ToolResultBlock::new("1", json!("so")));
    let of = |result: &Message, earlier: &[Message]| {
        plain_message(&Markers::new(), result, earlier).text()
    };
    assert_eq!(of(&result, &[call("old"), call("new")]), "[RESULT:new] so");
    assert_eq!(of(&result, &[]), "[RESULT:tool] so");
    let mut named = ToolResultBlock::new("1", json!("so"));
    named.name = Some("own".into());
    assert_eq!(of(&Message::tool(named), &[call("new")]), "[RESULT:own] so");
}

#[test]
fn arguments_that_are_no_object_are_none() {
    let call = ToolUseBlock::new("1", "add", json!([1]));
    assert_eq!(React::new().write_call(&call), "Action: add()");
    assert_eq!(Markers::new().write_call(&call), "[TOOL:add:]");
    assert!(TaggedJson::new().write_call(&call).contains(r#""arguments": {}"#));
}
