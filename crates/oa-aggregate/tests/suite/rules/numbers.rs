//! Rule 11: usage, and other numbers that servers write.

use super::*;

#[test]
fn usage_is_found_and_merged_by_number() {
    let outcome = plain(&[
        r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}"#,
        r#"{"choices":[{"usage":{"completion_tokens":2,"total_tokens":null}}]}"#,
        r#"{"choices":[],"x_groq":{"usage":{"total_tokens":7}}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":0}}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":"5","completion_tokens":1.5,"total_tokens":-1}}"#,
        r#"{"choices":[],"usage":null}"#,
    ]);
    assert_eq!(usage(&outcome.answer), [Some(5), Some(2), Some(7), Some(4), Some(0)]);
}

#[test]
fn integers_may_be_written_as_floats() {
    let count = |number: &str| {
        let payload = format!(r#"{{"choices":[],"usage":{{"prompt_tokens":{number}}}}}"#);
        usage(&plain(&[payload.clone(), payload]).answer)[0]
    };
    for (number, expected) in [
        ("12", Some(12)),
        ("12.0", Some(12)),
        ("1.2e1", Some(12)),
        ("0.0", Some(0)),
        ("18446744073709551615", Some(u64::MAX)),
        ("12.5", None),
        ("-1.0", None),
        ("1e20", None),
        ("1e999", None),
    ] {
        assert_eq!(count(number), expected, "{number}");
    }
    // Of choices and calls, too.
    let outcome = plain(&[
        r#"{"choices":[{"index":0.0,"delta":{"content":"a"}},{"index":1.0,"delta":{"content":"b"}}]}"#.to_owned(),
        fragment(r#""index":0.0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}"#),
        fragment(r#""index":1.0,"id":"b","function":{"name":"g","arguments":"{\"y\":"}"#),
        fragment(r#""index":0.0,"function":{"arguments":"1}"}"#),
        fragment(r#""index":1.0,"function":{"arguments":"2}"}"#),
    ]);
    assert_snapshot!(outcome.blocks(), @r#"
    text "a"
    call a f {"x":1}
    call b g {"y":2}
    "#);
}

#[test]
fn usage_details_take_precedence() {
    let outcome = plain(&[
        r#"{"choices":[],"usage":{"cached_tokens":3,"reasoning_tokens":5}}"#,
        r#"{"choices":[],"usage":{"cached_tokens":9,"prompt_tokens_details":{"cached_tokens":4}}}"#,
        r#"{"choices":[],"usage":{"completion_tokens_details":{"reasoning_tokens":6},"reasoning_tokens":0}}"#,
    ]);
    assert_eq!(usage(&outcome.answer), [None, None, None, Some(4), Some(6)]);
    // DeepSeek's own name (QUIRKS row 113).
    let outcome = plain(&[
        r#"{"choices":[],"usage":{"prompt_cache_hit_tokens":832,"prompt_cache_miss_tokens":68}}"#,
    ]);
    assert_eq!(usage(&outcome.answer), [None, None, None, Some(832), None]);
}
