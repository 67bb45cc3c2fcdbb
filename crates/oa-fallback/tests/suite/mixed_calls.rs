//! Calls in the text of an answer beside those that the server sends itself.

use oa_fallback::MixedCalls;
use oa_types::{ContentBlock, TextBlock, ToolUseBlock};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

fn call(id: &str, name: &str, input: Value) -> ContentBlock {
    ToolUseBlock::new(id, name, input).into()
}

/// Returns the arguments as another parser may read them.
fn read_otherwise(mut input: Value) -> Value {
    for (_, value) in input.as_object_mut().into_iter().flatten() {
        match value {
            Value::String(text) => text.insert(0, '\n'),
            value => *value = value.to_string().into(),
        }
    }
    input["more"] = Value::Null;
    input
}

/// Merges an answer whose calls in the text come first or last. Returns the ids of its calls, and those that were shown
/// before.
fn merged(found: &[ContentBlock], sent: &[ContentBlock], found_first: bool) -> [Vec<String>; 2] {
    let mut calls = MixedCalls::new();
    let mut shown = Vec::new();
    let mut show = |number: Option<usize>, call: &ToolUseBlock| {
        if let Some(number) = number {
            assert_eq!(number, shown.len(), "calls are numbered as they are shown");
            shown.push(call.id.clone());
        }
    };
    let uses = |blocks: &[ContentBlock]| -> Vec<ToolUseBlock> {
        blocks.iter().filter_map(ContentBlock::as_tool_use).cloned().collect()
    };
    for finds in [found_first, !found_first] {
        if finds {
            for (place, block) in found.iter().enumerate() {
                let Some(call) = block.as_tool_use() else { continue };
                show(calls.add_found(&call.name, place), call);
            }
        } else {
            let before = if found_first { found.len() } else { 0 };
            for (number, call) in uses(sent).iter().enumerate() {
                show(calls.add_sent(number, &call.name, before), call);
            }
        }
    }
    let merged = uses(&calls.merge(found.to_vec(), sent.to_vec()));
    [merged.into_iter().map(|call| call.id).collect(), shown]
}

proptest! {
    /// A call in both forms is in the answer once, in the form in which it came first. All others are in it.
    #[test]
    fn each_call_is_in_the_answer_once(
        both in vec((select(vec!["add", "get"]), 0..3_i64), 0..6),
        in_text in vec(3..5_i64, 0..3),
        native in vec(5..7_i64, 0..3),
        order in Just((0..9_usize).collect::<Vec<_>>()).prop_shuffle(),
        found_first: bool,
    ) {
        let input = |n| json!({ "n": n, "list": [n, { "half": 0.5 }], "text": "a b", "is": true });
        let mut found: Vec<_> = both.iter().map(|(name, n)| call("both", name, input(*n))).collect();
        found.push(TextBlock::new("And now:").into());
        found.extend(in_text.iter().map(|n| call("found", "add", input(*n))));
        let again = |(name, n): &(&str, i64)| call("both", name, read_otherwise(input(*n)));
        let alone = native.iter().map(|n| call("sent", "add", input(*n)));
        let all: Vec<_> = both.iter().map(again).chain(alone).collect();
        let sent: Vec<_> = order.iter().filter_map(|at| all.get(*at).cloned()).collect();

        let [ids, shown] = merged(&found, &sent, found_first);
        let count = |id: &str| ids.iter().filter(|one| *one == id).count();
        prop_assert_eq!([count("both"), count("found"), count("sent")], [both.len(), in_text.len(), native.len()]);
        let first = if found_first { &found } else { &sent };
        let first = first.iter().filter(|block| block.as_tool_use().is_some()).count();
        prop_assert!(shown.len() >= first, "all calls of the form that comes first are shown");
    }
}

#[test]
fn same_names_are_different_calls_by_arguments() {
    let one = json!({ "n": 1, "s": "a b", "list": [1, 2] });
    for (name, other) in [
        ("sub", one.clone()),
        ("add", json!({ "n": 2, "s": "a b", "list": [1, 2] })),
        ("add", json!({ "n": 1.5, "s": "a b", "list": [1, 2] })),
        ("add", json!({ "n": 1, "s": "a  b", "list": [1, 2] })),
        ("add", json!({ "n": 1, "s": "A b", "list": [1, 2] })),
        ("add", json!({ "n": 1, "s": "a b", "list": [2, 1] })),
        ("add", json!({ "n": 1, "s": "a b" })),
        ("add", json!({ "n": 1, "s": "a b", "list": [1, 2], "more": false })),
        ("add", json!({})),
    ] {
        let found = [call("found", "add", one.clone())];
        let [ids, _] = merged(&found, &[call("sent", name, other)], true);
        assert_eq!(ids, ["found", "sent"]);
    }
    let large = |id, n: u64| [call(id, "add", json!({ "n": n }))];
    let [ids, _] = merged(&large("found", u64::MAX), &large("sent", u64::MAX - 1), true);
    assert_eq!(ids, ["found", "sent"]);
    let [ids, _] = merged(&large("found", u64::MAX), &large("sent", u64::MAX), false);
    assert_eq!(ids, ["sent"]);
}

#[test]
fn sent_calls_stand_where_they_began() {
    let text = |text: &str| TextBlock::new(text).into();
    let mut calls = MixedCalls::new();
    assert_eq!(calls.add_sent(0, "get", 1), Some(0));
    assert_eq!(calls.add_malformed(), 1);
    assert_eq!(calls.add_found("get", 2), None);
    assert_eq!(calls.add_sent(1, "add", 3), Some(2));
    assert_eq!([0, 1, 2].map(|call| calls.number_of(call)), [Some(0), Some(2), None]);
    assert_eq!([1, 2].map(|place| calls.shows(place)), [true, false]);
    let found = vec![text("one"), text("two"), call("found", "get", json!({}))];
    let sent = vec![call("a", "get", json!({})), call("b", "add", json!({}))];
    let merged = calls.merge(found, sent);
    let order =
        [text("one"), call("a", "get", json!({})), text("two"), call("b", "add", json!({}))];
    assert_eq!(merged, order);
}
