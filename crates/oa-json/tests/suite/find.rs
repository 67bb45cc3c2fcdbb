//! JSON in prose.

use oa_json::{ErrorKind, Limits, ObjectFinder, find_object};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{document, near_json, pieces};

fn found(text: &str) -> Result<Value, oa_json::Error> {
    find_object(text, Limits::default())
}

#[test]
fn prose_around_the_object_is_skipped() {
    let object = json!({"a": {"b": "}{"}});
    for text in [
        r#"{"a":{"b":"}{"}}"#,
        "\n ```json\n{\"a\": {\"b\": \"}{\"}}\n```\n",
        "Here you are: {\"a\": {\"b\": \"}{\"}} Anything else?",
        "<think>Is it {\"a\": 1}? < No. <</think>\n{\"a\": {\"b\": \"}{\"}}",
        "<thin {\"a\": {\"b\": \"}{\"}}",
    ] {
        assert_eq!(found(text), Ok(object.clone()), "{text}");
    }
}

#[test]
fn ambiguous_text_is_rejected() {
    let missing = (ErrorKind::Missing, "the text contains no JSON object");
    let ambiguous = (ErrorKind::Ambiguous, "there is another `{` after the JSON object");
    for (text, expected) in [
        ("", missing),
        ("I cannot know that.", missing),
        ("<think>{\"a\": 1}", missing),
        ("{\"a\": 1} or {\"a\": 2}", ambiguous),
        ("{\"a\": 1}}, {", ambiguous),
        ("{\"a\": [1, {\"b\": x}]}", (ErrorKind::Syntax, "`a[1].b`: `x` is not a JSON value")),
        (
            "{\"a\": \"cut o",
            (ErrorKind::Unfinished, "`a`: the text ends before the value is complete"),
        ),
        (
            "Use {name} like this: {\"a\": 1}",
            (ErrorKind::Syntax, "expected a name in quotes, found `n`"),
        ),
        ("{\"a\": 1, \"a\": 2}", (ErrorKind::Duplicate, "`a` appears twice")),
    ] {
        let error = found(text).unwrap_err();
        assert_eq!((error.kind(), &*error.to_string()), expected, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn cuts_do_not_change_the_result(
        text in prop_oneof![near_json(), "(<think>|</think>|[{}<>/\"a: ]|\n){0,12}"],
        cuts in any::<u64>(),
    ) {
        let mut finder = ObjectFinder::new();
        for piece in pieces(&text, cuts) {
            finder.push(piece);
        }
        prop_assert_eq!(finder.finish(), found(&text));
    }

    #[test]
    fn object_is_found_in_any_prose(
        (value, text) in document(),
        before in "[^{<]{0,20}",
        behind in "[^{]{0,20}",
    ) {
        let found = found(&format!("{before}{{\"a\": {text}}}{behind}"));
        prop_assert_eq!(found, Ok(json!({ "a": value })));
    }
}
