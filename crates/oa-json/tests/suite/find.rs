//! JSON in prose.

use oa_json::{ErrorKind, Limits, ObjectFinder, ThinkingTags, find_object};
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
fn thinking_between_any_known_tags_is_skipped() {
    for tags in ThinkingTags::KNOWN {
        let ThinkingTags { open, close, bridge, .. } = tags;
        let text = format!(" {open}Is it {{\"a\": 1}}? {}{close}{bridge}{{\"a\": 2}}", &close[..2]);
        assert_eq!(found(&text), Ok(json!({"a": 2})), "{text}");
        assert_eq!(found(&format!("{open}{{\"a\": 1}}")).unwrap_err().kind(), ErrorKind::Missing);
        assert_eq!(found(&format!("{}{{\"a\": 1}}", &open[..3])), Ok(json!({"a": 1})));
    }
}

#[test]
fn thinking_in_several_parts_is_skipped() {
    for tags in ThinkingTags::KNOWN {
        let ThinkingTags { open, close, bridge, .. } = tags;
        let text = format!("{open}{{\"a\": 1}}{close}\n {open}{{{close}{bridge}Yes: {{\"a\": 2}}");
        assert_eq!(found(&text), Ok(json!({"a": 2})), "{text}");
        assert_eq!(ThinkingTags::answer_in(&text), "Yes: {\"a\": 2}");
    }
}

/// The promises of [`ThinkingTags`] about its tags.
#[test]
fn known_tags_can_be_told_apart() {
    for (at, tags) in ThinkingTags::KNOWN.iter().enumerate() {
        assert!(tags.open.is_ascii() && tags.close.is_ascii() && !tags.open.contains(['{', '\n']));
        assert_eq!(tags.close.matches(&tags.close[..1]).count(), 1, "{tags:?}");
        assert_eq!(ThinkingTags::at_start_of(&format!("{}x", tags.open)), Some(*tags));
        assert!(!ThinkingTags::may_start_with(tags.open));
        assert!((0..tags.open.len()).all(|end| ThinkingTags::may_start_with(&tags.open[..end])));
        for other in &ThinkingTags::KNOWN[at + 1..] {
            assert!(!other.open.starts_with(tags.open) && !tags.open.starts_with(other.open));
        }
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
        text in prop_oneof![near_json(), "(<think>|</think>|\\[THINK|\\]|\\[/THINK\\]|[{}<>/\"a: ]|\n){0,12}"],
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
