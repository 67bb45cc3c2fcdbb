//! Arguments that are almost valid JSON.

use oa_aggregate::{ArgumentRepair, ContentBlock, Options};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{finish, fragment, run};

fn resolve(raw: &str, repair: ArgumentRepair) -> Result<Value, String> {
    let mut options = Options::default();
    options.quirks.repair = repair;
    let arguments = Value::from(raw);
    let call = fragment(&format!(
        r#""index":0,"id":"1","function":{{"name":"f","arguments":{arguments}}}"#
    ));
    let blocks = run(options, [call, finish("tool_calls")]).answer.blocks;
    match &blocks[..] {
        [ContentBlock::ToolUse(call)] => Ok(call.input.clone()),
        [ContentBlock::ToolUseError(error)] => {
            assert!(raw.starts_with(&error.raw_data));
            Err(error.error.clone())
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check(raw: &str, expected: Value) {
    assert!(resolve(raw, ArgumentRepair::Off).is_err(), "{raw} needs no mending");
    assert_eq!(resolve(raw, ArgumentRepair::On).as_ref(), Ok(&expected), "{raw}");
}

#[track_caller]
fn check_hopeless(raw: &str) {
    let without = resolve(raw, ArgumentRepair::Off);
    assert!(without.is_err(), "{raw} needs no mending");
    assert_eq!(resolve(raw, ArgumentRepair::On), without, "{raw}");
}

#[test]
fn open_values_are_closed() {
    check("{", json!({}));
    check(r#"{"a": "b"#, json!({"a": "b"}));
    check(r#"{"a": """#, json!({"a": ""}));
    check(r#"{"a": ""#, json!({"a": ""}));
    check(r#"{"a": [1, [2, {"b": "c"#, json!({"a": [1, [2, {"b": "c"}]]}));
    check(r#"{"a": {"b": {"c": 1"#, json!({"a": {"b": {"c": 1}}}));
    check(r#"{"a": [1, 2"#, json!({"a": [1, 2]}));
    check(r#"{"a": ["#, json!({"a": []}));
    check(r#"{"a": 1, "#, json!({"a": 1}));
    check(r#"{"a": true"#, json!({"a": true}));
}

#[test]
fn member_without_value_is_dropped() {
    check(r#"{"a": 1, "b"#, json!({"a": 1}));
    check(r#"{"a": 1, "b""#, json!({"a": 1}));
    check(r#"{"a": 1, "b":"#, json!({"a": 1}));
    check(r#"{"a": 1, "b": "#, json!({"a": 1}));
}

#[test]
fn cut_numbers_and_words_are_not_guessed() {
    check_hopeless(r#"{"a": tr"#);
    check_hopeless(r#"{"a": -"#);
    check_hopeless(r#"{"a": 1."#);
    check_hopeless(r#"{"a": 1e"#);
    check_hopeless(r#"{"a": nul"#);
}

#[test]
fn trailing_commas_are_dropped() {
    check(r#"{"a": 1,}"#, json!({"a": 1}));
    check(r#"{"a": [1, 2,],}"#, json!({"a": [1, 2]}));
    check(r#"{"a": 1,,"b": 2}"#, json!({"a": 1, "b": 2}));
}

#[test]
fn single_quotes_and_bare_keys_are_read() {
    check("{'a': 'b'}", json!({"a": "b"}));
    check(r#"{'a': 'say "hi"'}"#, json!({"a": "say \"hi\""}));
    check(r#"{"a": 'it\'s'}"#, json!({"a": "it's"}));
    check("{a: 1, b_c: [2], $d-e: 3}", json!({"a": 1, "b_c": [2], "$d-e": 3}));
}

#[test]
fn python_words_are_read() {
    check("{'a': True, 'b': False, 'c': None}", json!({"a": true, "b": false, "c": null}));
    check("{'a': [True, None]}", json!({"a": [true, null]}));
    check_hopeless("{'a': Truely}");
    check_hopeless("{'a': undefined}");
}

#[test]
fn code_fences_are_dropped() {
    check("```json\n{\"a\": 1}\n```", json!({"a": 1}));
    check("```\n{\"a\": 1}\n```", json!({"a": 1}));
    check("```json\n{\"a\": 1", json!({"a": 1}));
    check("`{\"a\": 1}`", json!({"a": 1}));
}

#[test]
fn comments_are_dropped() {
    check("{\"a\": 1 // one\n, \"b\": 2}", json!({"a": 1, "b": 2}));
    check("{/* first */\"a\": 1}", json!({"a": 1}));
    check("{\"a\": /* é */ 1 /* cut", json!({"a": 1}));
    check("{\"a\": 1} // done", json!({"a": 1}));
    // In a string they are text.
    check(r#"{"a": "b // c /* d */",}"#, json!({"a": "b // c /* d */"}));
    check("{\"a\": /*/ 2 */ 1}", json!({"a": 1}));
}

#[test]
fn control_characters_in_strings_need_no_repair() {
    for (raw, expected) in [
        ("{\"a\": \"b\nc\td\r\0\"}", json!({"a": "b\nc\td\r\0"})),
        ("{\n\t\"a\nb\": [\"\\\"\n\\\\\"],\n\t\"c\": 1\n}", json!({"a\nb": ["\"\n\\"], "c": 1})),
    ] {
        assert_eq!(resolve(raw, ArgumentRepair::Off), Ok(expected.clone()), "{raw}");
        assert_eq!(resolve(raw, ArgumentRepair::On), Ok(expected), "{raw}");
    }
    // What else is wrong with them stays wrong.
    check("{\"a\": \"b\nc\",}", json!({"a": "b\nc"}));
    check("{\"a\": \"b\nc", json!({"a": "b\nc"}));
    check_hopeless("{\"a\": \"b\nc\"} {\"a\": 1}");
    check_hopeless("{\"a\": \"b\\\nc\"}");
}

#[test]
fn cut_escapes_are_dropped() {
    check(r#"{"a": "b\"#, json!({"a": "b"}));
    check(r#"{"a": "b\u"#, json!({"a": "b"}));
    check(r#"{"a": "b\u00e"#, json!({"a": "b"}));
    check(r#"{"a": "b\u00e9"#, json!({"a": "bé"}));
    check(r#"{"a": "b\ud83d\ude42"#, json!({"a": "b🙂"}));
    check(r#"{"a": "\n\t\"\\\/\b\f\r"#, json!({"a": "\n\t\"\\/\u{8}\u{c}\r"}));
    // The first half of a pair alone.
    check(r#"{"a": "b\ud83d"#, json!({"a": "b\u{fffd}"}));
    check(r#"{"a": "b\ud83d\"#, json!({"a": "b\u{fffd}"}));
}

#[test]
fn unknown_escapes_are_not_guessed() {
    check_hopeless(r#"{"path": "C:\Temp"}"#);
    check_hopeless(r#"{"pattern": "\d+"}"#);
    check_hopeless(r#"{'pattern': '\d+'}"#);
    check_hopeless(r#"{"pattern": "\d+"#);
    check_hopeless(r#"{"C:\Temp": 1,}"#);
    check_hopeless("{\"a\": \"one\\\ntwo\"}");
    check(r#"{"a": "it\'s"}"#, json!({"a": "it's"}));
}

#[test]
fn text_after_lone_surrogate_is_kept() {
    check(r#"{"a": "\ud83dx",}"#, json!({"a": "\u{fffd}x"}));
    check(r#"{"a": "\ud83d\n",}"#, json!({"a": "\u{fffd}\n"}));
    check(r#"{"a": "\ud83d\u0041",}"#, json!({"a": "\u{fffd}A"}));
    check(r#"{"a": "\ud83d\ud83d\ude42",}"#, json!({"a": "\u{fffd}🙂"}));
    check_hopeless(r#"{"a": "\ud83d\uzz",}"#);
}

#[test]
fn garbage_is_an_error() {
    for raw in [
        "x",
        "[1, 2",
        "\"a",
        "{a}",
        "{:1}",
        "{1 2}",
        "{\"a\" 1}",
        "{\"a\": 1 \"b\": 2}",
        "{\"a\": 1]",
        "{\"a\": [1}",
        "{\"a\": @}",
        "{\"a\": 1} and that is it",
        "{\"a\": 1}{\"b\": 2}",
        "Sure! {\"a\": 1}",
        "<tool_call>{\"a\": 1}</tool_call>",
        "{'it's': 1}",
        "{\"a\": \"\\u00g9\"}",
    ] {
        check_hopeless(raw);
    }
    check_hopeless(&"{\"a\":".repeat(10_000));
    check_hopeless(&format!("{{\"a\":{}", "[".repeat(100_000)));
}

#[test]
fn other_json_does_not_become_an_object() {
    for raw in ["[1]", "5", "true", "\"text\""] {
        check_hopeless(raw);
    }
}

#[test]
fn repair_allocates_linearly() {
    let cost = |count: usize| {
        let raw = format!("{{\"a\": [{}", "'word', // so\n".repeat(count));
        let call = fragment(&format!(
            r#""index":0,"id":"1","function":{{"name":"f","arguments":{}}}"#,
            Value::from(raw)
        ));
        let mut options = Options::default();
        options.quirks.repair = ArgumentRepair::On;
        allocation_counter::measure(|| drop(run(options, [&call, &finish("stop")]))).bytes_total
    };
    let (small, large) = (cost(500), cost(5_000));
    assert!(large <= 20 * small, "{small} bytes for 500 items, {large} for 5,000");
}

/// Objects as models send them.
fn object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z '\"{}/*,:`]{0,12}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec(("[a-z'\" ]{0,4}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    vec(("[a-z_]{1,4}", value), 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// Strings as written and as meant; nothing is meant if one of the escapes is none of JSON's.
fn written() -> impl Strategy<Value = (String, Option<String>)> {
    let piece = prop_oneof![
        4 => any::<char>()
            .prop_filter("stands for itself", |c| !matches!(c, '"' | '\\'))
            .prop_map(|c| (c.to_string(), Some(c))),
        2 => prop::sample::select(vec![
            (r#"\""#, '"'), (r"\'", '\''), (r"\\", '\\'), (r"\/", '/'), (r"\b", '\u{8}'),
            (r"\f", '\u{c}'), (r"\n", '\n'), (r"\r", '\r'), (r"\t", '\t'), (r"\u00e9", 'é'),
            (r"\ud83d\ude42", '🙂'),
        ]).prop_map(|(written, meant)| (written.to_owned(), Some(meant))),
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
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn strings_are_exact_or_an_error(
        (name, meant_name) in written(),
        (text, meant_text) in written(),
    ) {
        let mended = resolve(&format!("{{\"{name}\": \"{text}\",}}"), ArgumentRepair::On);
        match (meant_name, meant_text) {
            (Some(name), Some(text)) => prop_assert_eq!(mended, Ok(json!({ name: text }))),
            _ => prop_assert!(mended.is_err()),
        }
    }

    #[test]
    fn valid_json_is_never_changed(object in object(), pretty in any::<bool>()) {
        let raw = if pretty { format!("{object:#}") } else { object.to_string() };
        let mended = resolve(&raw, ArgumentRepair::On);
        prop_assert_eq!(&mended, &resolve(&raw, ArgumentRepair::Off));
        prop_assert_eq!(mended, serde_json::from_str(&raw).map_err(|error| error.to_string()));
    }

    #[test]
    fn broken_json_keeps_its_meaning(object in object()) {
        // The comma is what has to be mended; the reader for it sees all the rest.
        let raw = object.to_string();
        let broken = format!("{},}}", &raw[..raw.len() - 1]);
        let mended = resolve(&broken, ArgumentRepair::On);
        prop_assert_eq!(mended, serde_json::from_str(&raw).map_err(|error| error.to_string()));
    }

    #[test]
    fn any_prefix_is_an_object_or_an_error(
        object in object(),
        at in any::<prop::sample::Index>(),
    ) {
        let raw = object.to_string();
        let mut at = at.index(raw.len());
        while !raw.is_char_boundary(at) {
            at -= 1;
        }
        if let Ok(mended) = resolve(&raw[..at], ArgumentRepair::On) {
            let mended = mended.as_object().unwrap();
            // Only members of the original, in their order, the last one perhaps shortened.
            prop_assert!(mended.keys().all(|key| object.get(key).is_some()));
        }
    }

    #[test]
    fn any_text_is_an_object_or_an_error(
        raw in "[{}\\[\\]\"':,/*\\\\u0-9a-fé`\n nrtTFN.+-]{0,40}",
    ) {
        if let Ok(value) = resolve(&raw, ArgumentRepair::On) {
            prop_assert!(value.is_object());
        }
    }
}
