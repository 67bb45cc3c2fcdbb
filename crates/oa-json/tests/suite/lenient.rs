//! Values as models write them.

use oa_json::{ErrorKind, LenientReader, LenientValue, Limits, literal, read_lenient};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{document, near_json};

/// Reads by both ways, which agree.
fn read(text: &str) -> Result<Value, oa_json::Error> {
    let limits = Limits::default();
    let value = read_lenient(text, limits);
    let by_tree = LenientValue::read(text, limits).and_then(LenientValue::into_value);
    // Of several errors the one may find the last word first, and the other the first name that is given twice.
    assert_eq!(by_tree.clone().ok(), value.clone().ok(), "{text}");
    value
}

#[track_caller]
fn reads(text: &str, value: Value) {
    assert_eq!(read(text), Ok(value), "{text}");
}

#[track_caller]
fn refuses(text: &str, kind: ErrorKind, message: &str) {
    let error = read(text).expect_err(text);
    assert_eq!(error.kind(), kind, "{text}: {error}");
    assert!(error.to_string().contains(message), "{text}: {error}");
}

#[test]
fn python_literals_are_read() {
    reads("{'a': True, 'b': None, 'c': [1, 2.5,], }", json!({"a": true, "b": null, "c": [1, 2.5]}));
    reads(r#"{a: 'it\'s "so"', "b": "it's"}"#, json!({"a": "it's \"so\"", "b": "it's"}));
    reads("\"two\nlines\"", json!("two\nlines"));
    reads(r#""\ud83d\ude42\u00e9\/""#, json!("🙂é/"));
}

#[test]
fn ambiguous_text_is_rejected() {
    use ErrorKind::{Ambiguous, Duplicate, Syntax, TooDeep, Unfinished};
    refuses(r#"{"a": "C:\Temp"}"#, Syntax, "a string contains `\\T`: write `\\\\` for a backslash");
    refuses(r#"{"a": 1, "a": 2}"#, Duplicate, "`a` appears twice");
    refuses(r#"{"a": Oslo}"#, Syntax, "`Oslo` is not a JSON value: strings need quotes");
    refuses(r#"{"a": 1 "b": 2}"#, Syntax, "expected a comma or `}`, found `\\\"b\\\": 2}`");
    refuses(r#"{"a": [1, 2}"#, Syntax, "expected a comma or `]`");
    refuses(r#"["a", ,]"#, Syntax, "expected a value");
    refuses(r#""\ud83d""#, Syntax, "an unpaired surrogate");
    refuses(r#""\u12""#, Syntax, "without four hexadecimal digits");
    refuses("{'a': 'it's'}", Syntax, "expected a comma");
    refuses("12345678901234567890123", Syntax, "is not a JSON value");
    refuses("007", Syntax, "is not a JSON value");
    refuses("1 2", Ambiguous, "`2` follows the value");
    refuses("", Unfinished, "expected a value, found the end");
    refuses("[1, ", Unfinished, "expected a value, found the end");
    refuses("'a", Unfinished, "a string is not closed");
    refuses(&"[".repeat(200), TooDeep, "nested more than 127 levels deep");
}

#[test]
fn reader_reads_successive_values() {
    let mut reader = LenientReader::new("f(a = 'x', \"b c\"=[1, Oslo]) tail");
    assert_eq!(reader.name(), Ok(Some("f".to_owned())));
    assert!(reader.take('(') && !reader.take(')'));
    assert_eq!(reader.name(), Ok(Some("a".to_owned())));
    assert!(reader.take('='));
    assert_eq!(reader.value(), Ok(LenientValue::Quoted("x".to_owned())));
    assert!(reader.take(','));
    assert_eq!(reader.name(), Ok(Some("b c".to_owned())));
    assert!(reader.take('='));
    let list = ["1", "Oslo"].map(|word| LenientValue::Word(word.to_owned()));
    assert_eq!(reader.value(), Ok(LenientValue::Array(list.to_vec())));
    assert!(reader.take(')'));
    assert_eq!(reader.rest(), "tail");
    assert_eq!(reader.end().unwrap_err().to_string(), "`tail` follows the value");
}

/// Returns whether the text has an integer that a float cannot hold.
fn has_long_integer(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_long_integer),
        Value::Object(members) => members.values().any(has_long_integer),
        value => value.is_f64() && literal(&value.to_string()).is_none(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn valid_json_matches_serde_json((value, text) in document()) {
        prop_assume!(!has_long_integer(&value));
        prop_assert_eq!(read(&text), Ok(value));
    }

    /// Whatever is read without doubt is read so by serde_json, too, if it reads it at all.
    #[test]
    fn accepted_text_matches_serde_json(text in near_json()) {
        if let (Ok(ours), Ok(theirs)) = (read(&text), serde_json::from_str::<Value>(&text)) {
            prop_assert_eq!(ours, theirs);
        }
    }
}
