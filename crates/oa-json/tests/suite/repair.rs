//! JSON that is cut off or slightly broken.

use oa_json::{ErrorKind, Limits};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{begins, document, near_json};

fn repair(text: &str) -> Result<Value, oa_json::Error> {
    oa_json::repair(text, Limits::default())
}

#[track_caller]
fn check(text: &str, expected: Value) {
    assert!(serde_json::from_str::<Value>(text).is_err(), "{text} needs no repair");
    assert_eq!(repair(text), Ok(expected), "{text}");
}

#[track_caller]
fn refuses(text: &str, kind: ErrorKind) {
    let error = repair(text).expect_err(text);
    assert_eq!(error.kind(), kind, "{text}: {error}");
}

#[test]
fn open_values_are_closed() {
    check("{", json!({}));
    check(r#"{"a": "b"#, json!({"a": "b"}));
    check(r#"{"a": ""#, json!({"a": ""}));
    check(r#"{"a": [1, [2, {"b": "c"#, json!({"a": [1, [2, {"b": "c"}]]}));
    check(r#"{"a": {"b": {"c": 1"#, json!({"a": {"b": {"c": 1}}}));
    check(r#"{"a": [1, 2"#, json!({"a": [1, 2]}));
    check(r#"{"a": ["#, json!({"a": []}));
    check(r#"{"a": 1, "#, json!({"a": 1}));
    check("[1, 2", json!([1, 2]));
    check("\"so it", json!("so it"));
}

#[test]
fn member_without_value_is_dropped() {
    for cut in [
        r#"{"a": 1, "b"#,
        r#"{"a": 1, "b""#,
        r#"{"a": 1, "b":"#,
        r#"{"a": 1, "b": "#,
        "{\"a\": 1, b",
    ] {
        check(cut, json!({"a": 1}));
    }
}

#[test]
fn cut_words_are_not_guessed() {
    for cut in [r#"{"a": tr"#, r#"{"a": -"#, r#"{"a": 1."#, r#"{"a": 1e"#, r#"{"a": nul"#] {
        refuses(cut, ErrorKind::Syntax);
    }
}

#[test]
fn superfluous_commas_are_skipped() {
    check(r#"{"a": 1,}"#, json!({"a": 1}));
    check(r#"{"a": [1, 2,],}"#, json!({"a": [1, 2]}));
    check(r#"{"a": 1,,"b": 2}"#, json!({"a": 1, "b": 2}));
    check("[,1]", json!([1]));
}

#[test]
fn python_and_javascript_notation_is_read() {
    check(r#"{'a': 'say "hi"'}"#, json!({"a": "say \"hi\""}));
    check(r#"{"a": 'it\'s'}"#, json!({"a": "it's"}));
    check("{a: 1, b_c: [2], $d-e: 3, f.g: 4}", json!({"a": 1, "b_c": [2], "$d-e": 3, "f.g": 4}));
    check("{'a': [True, False, None]}", json!({"a": [true, false, null]}));
    check("{\"a\": \"b\nc\td\"}", json!({"a": "b\nc\td"}));
    refuses("{'a': undefined}", ErrorKind::Syntax);
}

#[test]
fn fences_and_comments_are_skipped() {
    for text in
        ["```json\n{\"a\": 1}\n```", "```\n{\"a\": 1}\n```", "```json\n{\"a\": 1", "`{\"a\": 1}` "]
    {
        check(text, json!({"a": 1}));
    }
    for language in ["JSON", "Json", "json5", "JSON5", "jsonc"] {
        check(&format!("```{language}\n{{\"a\": 1}}\n```"), json!({"a": 1}));
    }
    check("{\"a\": 1 // one\n, \"b\": 2}", json!({"a": 1, "b": 2}));
    check("{/* first */\"a\": /*/ 2 */ 1} // done", json!({"a": 1}));
    check("{\"a\": /* é */ 1 /* cut", json!({"a": 1}));
    check("// before\n{\"a\": 1}", json!({"a": 1}));
    check(r#"{"a": "b // c /* d */",}"#, json!({"a": "b // c /* d */"}));
}

#[test]
fn cut_escapes_are_dropped() {
    for cut in [r#"{"a": "b\"#, r#"{"a": "b\u"#, r#"{"a": "b\u00e"#] {
        check(cut, json!({"a": "b"}));
    }
    check(r#"{"a": "b\ud83d\ude42"#, json!({"a": "b🙂"}));
    // Half a pair.
    check(r#"{"a": "b\ud83d"#, json!({"a": "b\u{fffd}"}));
    check(r#"{"a": "b\ud83d\ude4"#, json!({"a": "b\u{fffd}"}));
    check(r#"{"a": "\ud83d\u0041\ude42x",}"#, json!({"a": "\u{fffd}A\u{fffd}x"}));
    check(r#"{"a": "\ud83d\ud83d\ude42",}"#, json!({"a": "\u{fffd}🙂"}));
}

#[test]
fn ambiguous_text_is_rejected() {
    for text in
        ["x", "{:1}", "{1 2}", "{\"a\" 1}", "{\"a\": 1 \"b\": 2}", "{\"a\": 1]", "{\"a\": [1}"]
    {
        refuses(text, ErrorKind::Syntax);
    }
    for text in ["{\"a\": 1} and that is it", "{\"a\": 1}{\"b\": 2}", "12 apples"] {
        refuses(text, ErrorKind::Ambiguous);
    }
    for text in ["", " \n", "``` ```", "// nothing"] {
        refuses(text, ErrorKind::Missing);
    }
    // A path, or a pattern: its backslash may be meant.
    for text in [
        r#"{"path": "C:\Temp"}"#,
        r#"{'pattern': '\d+'"#,
        "{\"a\": \"one\\\ntwo\"}",
        r#"["\ud83d\uzz"]"#,
    ] {
        refuses(text, ErrorKind::Syntax);
    }
    refuses(&"{\"a\":".repeat(10_000), ErrorKind::TooDeep);
    refuses(&format!("{{\"a\":{}", "[".repeat(100_000)), ErrorKind::TooDeep);
}

/// A string as it is written, and as it is meant; nothing is meant if one of its escapes is none of JSON's.
fn written() -> impl Strategy<Value = (String, Option<String>)> {
    let escapes = vec![
        (r#"\""#, '"'),
        (r"\'", '\''),
        (r"\\", '\\'),
        (r"\/", '/'),
        (r"\b", '\u{8}'),
        (r"\f", '\u{c}'),
        (r"\n", '\n'),
        (r"\r", '\r'),
        (r"\t", '\t'),
        (r"\u00e9", 'é'),
        (r"\ud83d\ude42", '🙂'),
    ];
    let piece = prop_oneof![
        4 => any::<char>()
            .prop_filter("stands for itself", |c| !matches!(c, '"' | '\\'))
            .prop_map(|c| (c.to_string(), Some(c))),
        2 => prop::sample::select(escapes)
            .prop_map(|(written, meant)| (written.to_owned(), Some(meant))),
        1 => any::<char>()
            .prop_filter("is no escape", |c| !"\"'\\/bfnrtu".contains(*c))
            .prop_map(|c| (format!("\\{c}"), None)),
    ];
    vec(piece, 0..8).prop_map(|pieces| {
        let meant = pieces.iter().map(|(_, meant)| *meant).collect();
        (pieces.into_iter().map(|(written, _)| written).collect(), meant)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Repair of a valid document changes nothing.
    #[test]
    fn valid_json_is_not_changed((value, text) in document()) {
        prop_assert_eq!(repair(&text), Ok(value));
    }

    #[test]
    fn accepted_text_matches_serde_json(text in near_json()) {
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            prop_assert_eq!(repair(&text), Ok(value));
        }
    }

    /// A prefix of a document is a prefix of its value or an error, unless a number or an escape is cut.
    #[test]
    fn prefix_is_repaired_to_a_prefix((value, text) in document(), at in any::<prop::sample::Index>()) {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let cut = &text[..*at.get(&places)];
        prop_assume!(!cut.ends_with(|c: char| c.is_ascii_digit()));
        match repair(cut) {
            Ok(Value::String(part)) if part.ends_with('\u{fffd}') => {}
            Ok(part) if part.to_string().contains('\u{fffd}') => {}
            Ok(part) => prop_assert!(begins(&part, &value), "{part} of {value} by {cut}"),
            Err(error) => {
                let is_word = cut.ends_with(|c: char| c.is_ascii_alphanumeric() || "-+.".contains(c));
                prop_assert!(is_word || cut.trim().is_empty(), "{error}: {cut}");
            }
        }
    }

    #[test]
    fn strings_are_exact_or_an_error(
        (name, meant_name) in written(),
        (text, meant_text) in written(),
    ) {
        let repaired = repair(&format!("{{\"{name}\": \"{text}\",}}"));
        match (meant_name, meant_text) {
            (Some(name), Some(text)) => prop_assert_eq!(repaired, Ok(json!({ name: text }))),
            _ => prop_assert!(repaired.is_err()),
        }
    }
}
