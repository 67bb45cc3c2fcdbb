//! The contract of the readers, tested through the public API.

mod bounds;
mod ends;
mod escapes;
mod find;
mod held;
mod lenient;
mod partial;
mod repair;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::Value;

/// Splits a text after every character whose index is marked in `cuts`.
fn pieces(text: &str, cuts: u64) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (place, (at, next)) in text.char_indices().enumerate() {
        if cuts >> (place % 64) & 1 == 1 {
            let end = at + next.len_utf8();
            pieces.push(&text[start..end]);
            start = end;
        }
    }
    pieces.push(&text[start..]);
    pieces
}

/// Returns whether a value is the beginning of another.
fn begins(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::String(part), Value::String(whole)) => whole.starts_with(&**part),
        (Value::Array(part), Value::Array(whole)) => {
            let Some((last, before)) = part.split_last() else { return true };
            whole.starts_with(before)
                && whole.get(before.len()).is_some_and(|whole| begins(last, whole))
        }
        (Value::Object(part), Value::Object(whole)) => {
            let growing = part.iter().filter(|(name, part)| whole.get(*name) != Some(part));
            let growing: Vec<_> = growing.collect();
            growing.len() <= 1
                && growing
                    .iter()
                    .all(|(name, part)| whole.get(*name).is_some_and(|whole| begins(part, whole)))
        }
        (part, whole) => part == whole,
    }
}

/// Any value, with strings and names of which some are full of what has to be escaped.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        "[\\x00-\\x1f\"\\\\\u{1f600}é'/{}\\[\\],:`]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            btree_map("[a-c\"'é\\\\ ]{0,2}", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A value as text, on one line or on many, with or without escapes for all that is not ASCII.
fn document() -> impl Strategy<Value = (Value, String)> {
    (value(), any::<bool>(), any::<bool>()).prop_map(|(value, pretty, ascii)| {
        let text = match pretty {
            true => serde_json::to_string_pretty(&value).expect("a value can be written"),
            false => value.to_string(),
        };
        let text = if ascii { in_ascii(&text) } else { text };
        (value, text)
    })
}

/// Writes everything but ASCII as escapes.
fn in_ascii(json: &str) -> String {
    let mut units = [0; 2];
    let escaped = |c: char| match c.is_ascii() {
        true => c.to_string(),
        false => c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04X}")).collect(),
    };
    json.chars().map(escaped).collect()
}

/// Text that is JSON now and then, and nearly JSON most of the time.
fn near_json() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "'", "\\", "\\\"", "\\'", "\\u", "\\ud83d", "\\ude42",
            "\\u00e9", "\\n", "\\q", "`", "```", "```json\n", "json", "//", "/*", "*/", "\n", " ", "\t",
            "true", "True", "None", "nul", "0", "-", "1.5", "1e", "12345678901234567890123", "a", "a-b",
            "\"a\"", "'b'", "{\"a\":", "[1,", "é", "🙂", "<think>", "</think>", "\u{feff}", "\u{a0}",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}
