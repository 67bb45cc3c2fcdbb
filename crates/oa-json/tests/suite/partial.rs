//! JSON that is parsed as it arrives.

use oa_json::{ErrorKind, MAX_DEPTH, PartialReader};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{begins, document, near_json, pieces};

/// Reads a text in pieces; returns every value on the way, and the end of it.
fn read(text: &str, cuts: u64) -> (Vec<Value>, Result<Value, String>) {
    let mut reader = PartialReader::new();
    let mut seen: Vec<Value> = Vec::new();
    let mut rest = String::new();
    for piece in pieces(text, cuts) {
        let before = reader.revision();
        rest.push_str(reader.push(piece));
        assert_eq!(reader.revision() != before, reader.value() != seen.last(), "{piece}");
        seen.extend(reader.value().cloned());
    }
    let end = reader.finish().map_err(|error| error.to_string());
    match end {
        Ok(_) if !rest.trim_matches([' ', '\t', '\n', '\r']).is_empty() => {
            (seen, Err("something follows".to_owned()))
        }
        end => (seen, end),
    }
}

fn strict(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

fn is_duplicate(text: &str) -> bool {
    let mut reader = PartialReader::new();
    reader.push(text);
    reader.finish().is_err_and(|error| error.kind() == ErrorKind::Duplicate)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Every prefix of a document reads as a prefix of its value.
    #[test]
    fn values_only_grow((value, text) in document(), cuts in any::<u64>()) {
        let (seen, end) = read(&text, cuts);
        prop_assert_eq!(end, Ok(value.clone()));
        for pair in seen.windows(2) {
            prop_assert!(begins(&pair[0], &pair[1]), "{} then {}", pair[0], pair[1]);
        }
        for part in seen {
            prop_assert!(begins(&part, &value), "{part} of {value}");
        }
    }

    #[test]
    fn accepts_what_serde_json_accepts(
        text in "([\\[\\]{},: \n]|\"a\"|\"b|\"|\\\\u[dD][89cC]0|0|e|-|1|\\.|true|null|\\\\|\t){0,14}",
        cuts in any::<u64>(),
    ) {
        prop_assume!(!is_duplicate(&text));
        prop_assert_eq!(read(&text, cuts).1.ok(), strict(&text));
    }

    #[test]
    fn broken_text_is_rejected_at_any_cut(
        (_, text) in document(),
        place in any::<prop::sample::Index>(),
        put in "[\\]}\"\\\\,:x ]",
        cuts in any::<u64>(),
    ) {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let at = *place.get(&places);
        let text = format!("{}{put}{}", &text[..at], &text[at..]);
        prop_assume!(!is_duplicate(&text));
        prop_assert_eq!(read(&text, cuts).1.ok(), strict(&text));
    }

    #[test]
    fn cuts_do_not_change_the_result(text in near_json(), cuts in any::<u64>()) {
        prop_assert_eq!(read(&text, cuts).1, read(&text, 0).1);
    }
}

#[test]
fn value_grows_with_each_byte() {
    let mut reader = PartialReader::new();
    let mut seen: Vec<String> = Vec::new();
    for next in r#" {"a": [true, -1.5], "bc": "x\u00e9"}"#.chars() {
        assert_eq!(reader.push(&next.to_string()), "");
        let value = reader.value().map(ToString::to_string).unwrap_or_default();
        if seen.last() != Some(&value) {
            seen.push(value);
        }
    }
    insta::assert_snapshot!(seen.join("\n"), @r#"

    {}
    {"a":[]}
    {"a":[true]}
    {"a":[true,-1.5]}
    {"a":[true,-1.5],"bc":""}
    {"a":[true,-1.5],"bc":"x"}
    {"a":[true,-1.5],"bc":"xé"}
    "#);
    assert!(reader.is_complete());
}

#[test]
fn depth_is_bounded_as_in_serde_json() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for depth in [MAX_DEPTH, MAX_DEPTH + 1] {
        let text = nested(depth);
        assert_eq!(read(&text, 0).1.ok(), strict(&text));
        assert_eq!(strict(&text).is_some(), depth == MAX_DEPTH);
    }
    let mut reader = PartialReader::new();
    reader.push(&nested(MAX_DEPTH + 1));
    assert_eq!(reader.error().map(oa_json::Error::kind), Some(ErrorKind::TooDeep));
}

#[test]
fn errors_name_path_and_cause() {
    for (text, kind, message) in [
        ("", ErrorKind::Missing, "expected a JSON value, found nothing"),
        ("tru", ErrorKind::Syntax, "`tru` is not a JSON value"),
        ("{\"a\": [1, {\"b\": x}]}", ErrorKind::Syntax, "`a[1].b`: `x` is not a JSON value"),
        (
            "{\"a\": \"cut o",
            ErrorKind::Unfinished,
            "`a`: the text ends before the value is complete",
        ),
        ("{n: 1}", ErrorKind::Syntax, "expected a name in quotes, found `n`"),
        ("{\"a\" 1}", ErrorKind::Syntax, "`a`: expected `:`, found `1`"),
        ("[1 2]", ErrorKind::Syntax, "`[0]`: expected `,` or `]`, found `2`"),
        ("{\"a\": 1, \"a\": 2}", ErrorKind::Duplicate, "`a` appears twice"),
        (
            "[\"\\q\"]",
            ErrorKind::Syntax,
            "`[0]`: a string contains `\\q`: write `\\\\` for a backslash",
        ),
        (
            "\"\\u12x4\"",
            ErrorKind::Syntax,
            "a string contains `\\u` without four hexadecimal digits",
        ),
        ("\"\\ud83dx\"", ErrorKind::Syntax, "a string contains an unpaired surrogate, `\\ud83d`"),
        ("\"a\nb\"", ErrorKind::Syntax, "a string contains `\\n`, which must be escaped"),
    ] {
        for cuts in [0, u64::MAX] {
            let mut reader = PartialReader::new();
            pieces(text, cuts).into_iter().for_each(|piece| _ = reader.push(piece));
            let error = reader.finish().unwrap_err();
            assert_eq!((error.kind(), &*error.to_string()), (kind, message), "{text}");
        }
    }
}

#[test]
fn number_ends_when_something_follows() {
    let mut reader = PartialReader::new();
    reader.push("12");
    assert_eq!((reader.value(), reader.is_complete()), (None, false));
    assert_eq!(reader.clone().finish(), Ok(json!(12)));
    assert_eq!(reader.push("3 4"), " 4");
    assert_eq!(reader.finish(), Ok(json!(123)));
}
