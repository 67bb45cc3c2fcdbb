use proptest::prelude::*;
use serde_json::Value;

use super::Reader;

fn accepts(text: &str) -> bool {
    let mut skipped = Vec::new();
    let mut reader = Reader::new(text, &mut skipped);
    reader.skip().and_then(|()| reader.end()).is_ok()
}

/// Texts that are JSON or nearly so.
fn near_json() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\"a\"",
        "\"\\n\"",
        "\\",
        "\\u00e9",
        "\\ud83d\\ude42",
        "0",
        "-",
        "01",
        "1.5",
        "1.",
        "e",
        "1e5",
        "1E+2",
        "-0.0",
        "true",
        "false",
        "null",
        "nul",
        " ",
        "\n",
        "\u{e9}",
        "\u{1}",
        "{\"a\":1}",
        "[1,2]",
        "\"x\":",
        "{}",
        "[]",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn accepts_what_serde_json_accepts(text in near_json()) {
        prop_assert_eq!(accepts(&text), serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok());
    }

    #[test]
    fn strings_match_serde_json(text in any::<String>(), ascii in any::<bool>()) {
        let json = Value::from(text.clone()).to_string();
        let json = if ascii { escape_all(&json) } else { json };
        let mut skipped = Vec::new();
        let read = Reader::new(&json, &mut skipped).text().unwrap();
        prop_assert_eq!(read.map(|read| read.text().into_owned()).unwrap_or_default(), text);
    }

    #[test]
    fn raw_returns_whole_values(value in value(), pretty in any::<bool>()) {
        let json = if pretty { format!("{value:#}") } else { value.to_string() };
        let mut skipped = Vec::new();
        prop_assert_eq!(Reader::new(&json, &mut skipped).raw().unwrap().raw, &json);
        prop_assert!(skipped.is_empty());
    }
}

/// Everything outside ASCII as `\u` escapes, in pairs where needed.
fn escape_all(json: &str) -> String {
    json.chars()
        .map(|c| match c {
            ' '..='~' => c.to_string(),
            _ => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect(),
        })
        .collect()
}

#[test]
fn nesting_is_bounded_as_in_serde_json() {
    for depth in [126, 127, 128, 129, 100_000] {
        let text = "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(accepts(&text), depth <= 127 || serde_json::from_str::<Value>(&text).is_ok());
    }
}

#[test]
fn lone_surrogate_becomes_replacement_char() {
    let mut skipped = Vec::new();
    let text =
        Reader::new(r#""a\ud83d b\ude42\ud83d\u0041""#, &mut skipped).text().unwrap().unwrap();
    assert_eq!(text.text(), "a\u{fffd} b\u{fffd}\u{fffd}A");
}

#[test]
fn python_numbers_are_skipped() {
    for text in ["NaN", "[-Infinity]", r#"{"logprob":Infinity,"b":[NaN,1]}"#] {
        assert!(accepts(text), "{text}");
    }
    for text in
        ["-NaN", "nan", "Infinit", "--Infinity", "-Infinity1", "Infinity2", "N", "+Infinity"]
    {
        assert!(!accepts(text), "{text}");
    }
}

#[test]
fn skipped_scalars_are_recorded() {
    let mut skipped = Vec::new();
    let text = r#"{"a":"xy","b":[1,-2.5,null,true],"c":{"d":"z"}}"#;
    Reader::new(text, &mut skipped).skip().unwrap();
    let noted: Vec<&str> =
        skipped.iter().map(|scalar| &text[scalar.start()..scalar.end()]).collect();
    assert_eq!(noted, ["xy", "1", "-2.5", "z"]);
}
