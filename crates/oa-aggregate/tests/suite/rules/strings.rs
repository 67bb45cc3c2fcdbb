//! Rules of strings: in parts, in two members of one name, with half an emoji, and in place of deep values.

use oa_types::{MAX_NESTING, is_nested_within};

use super::*;

#[test]
fn refusal_parts_are_refusals() {
    let part = |words: &str| format!(r#"{{"type":"refusal","refusal":"{words}"}}"#);
    let text = r#"{"type":"text","text":"Well. "}"#;
    for (members, said) in [
        (format!(r#""content":[{}]"#, part("I can't.")), "I can't."),
        (format!(r#""content":[{text},{},{}]"#, part("I "), part("can't.")), "Well. I can't."),
        // The member of that name says the same, wherever it stands.
        (format!(r#""content":[{}],"refusal":"I can't.""#, part("I can't.")), "I can't."),
        (format!(r#""refusal":"I can't.","content":[{}]"#, part("I can't.")), "I can't."),
        (format!(r#""refusal":null,"content":[{}]"#, part("I can't.")), "I can't."),
    ] {
        for member in ["delta", "message"] {
            let payload = format!(r#"{{"choices":[{{"{member}":{{{members}}}}}]}}"#);
            let outcome = plain(&[payload.clone(), finish("stop")]);
            let words: String =
                outcome.answer.blocks.iter().filter_map(ContentBlock::as_text).collect();
            assert_eq!(words, said, "{payload}");
            assert_eq!(outcome.answer.refusal.as_deref(), Some("I can't."), "{payload}");
        }
    }
}

#[test]
fn last_of_two_contents_counts() {
    let list = r#"[{"type":"text","text":"b"},{"type":"refusal","refusal":"c"}]"#;
    for (members, said) in [
        (r#""content":"a","content":"b""#.to_owned(), "b"),
        (r#""content":"a","content":null"#.to_owned(), ""),
        (format!(r#""content":"a","content":{list}"#), "bc"),
        (format!(r#""content":{list},"content":"a""#), "a"),
        (format!(r#""content":{list},"content":[]"#), ""),
        (format!(r#""content":{list},"content":{list}"#), "bc"),
        (r#""refusal":"a","refusal":"b""#.to_owned(), "b"),
        (r#""refusal":"a","refusal":null"#.to_owned(), ""),
    ] {
        let outcome = plain(&[delta(&members)]);
        let words: String =
            outcome.answer.blocks.iter().filter_map(ContentBlock::as_text).collect();
        assert_eq!(words, said, "{members}");
    }
}

/// Half an emoji, which a server has cut in two.
#[test]
fn lone_surrogates_lose_nothing() {
    let words = r#"a\ud83d"#;
    let detail = format!(r#""reasoning_details":[{{"index":0,"type":"x","text":"{words}"}}]"#);
    let block = format!(
        r#""thinking_blocks":[{{"type":"thinking","signature":"s","thinking":"{words}"}}]"#
    );
    let kept = format!(r#""extra_content":{{"google":{{"b":"{words}"}}}}"#);
    let call = format!(r#""index":0,"id":"c","function":{{"name":"f","arguments":"{{}}"}},{kept}"#);
    let list = [delta(&detail), delta(&detail), delta(&kept), fragment(&call)];
    let outcome = plain(&list);
    assert_eq!(outcome.thinking(), "a\u{fffd}a\u{fffd}");
    let extra = &outcome.answer.extra;
    assert_eq!(extra["reasoning_details"][0]["text"], "a\u{fffd}a\u{fffd}");
    assert_eq!(extra["extra_content"], json!({"google": {"b": "a\u{fffd}"}}));
    let Some(ContentBlock::ToolUse(call)) = outcome.answer.blocks.last() else {
        panic!("{}", outcome.blocks());
    };
    assert_eq!(call.extra["extra_content"]["google"]["b"], "a\u{fffd}");
    let outcome = plain(&[delta(&block)]);
    assert_eq!(outcome.thinking(), "a\u{fffd}");
    assert_eq!(outcome.answer.extra["thinking_blocks"][0]["thinking"], "a\u{fffd}");
    let error = plain(&[format!(r#"{{"error":{{"message":"{words}","code":7}}}}"#)]);
    let [Problem::Server(error)] = &error.answer.problems[..] else { panic!("{error:?}") };
    assert_eq!(error.message, "a\u{fffd}");
}

/// A conversation with such a member could not be stored. Its neighbors are kept as they are.
#[test]
fn deep_members_become_texts() {
    let nested = |levels| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    for levels in [90, 96, 97, 98, 100, 101, 118] {
        let value = nested(levels);
        let kept = format!(r#""extra_content":{{"a":{value}}}"#);
        let detail = format!(r#""reasoning_details":[{{"type":"x","text":"Hm. ","a":{value}}}]"#);
        let signed = format!(
            r#""thinking_blocks":[{{"type":"thinking","thinking":"Well.","signature":"s","a":{value}}}]"#
        );
        let call =
            format!(r#""index":0,"id":"c","function":{{"name":"f","arguments":"{{}}"}},{kept}"#);
        let outcome = plain(&[delta(&kept), delta(&detail), fragment(&call)]);
        let Some(ContentBlock::ToolUse(call)) = outcome.answer.blocks.last() else {
            panic!("{levels}: {}", story(&outcome));
        };
        let thinking = plain(&[delta(&signed), finish("stop")]);
        assert_eq!((outcome.thinking(), thinking.thinking()), ("Hm. ".into(), "Well.".into()));
        let extra = &outcome.answer.extra;
        let (call, own) = (&call.extra["extra_content"], &extra["extra_content"]);
        let blocks = &thinking.answer.extra["thinking_blocks"];
        let details = &extra["reasoning_details"];
        for whole in [call, own, details, blocks] {
            assert!(is_nested_within(whole, MAX_NESTING), "{levels}: {whole}");
        }
        for member in [&call["a"], &own["a"], &details[0]["a"], &blocks[0]["a"]] {
            let is_text = levels > MAX_NESTING - 2;
            assert_eq!(member.as_str().unwrap_or(&member.to_string()), value);
            assert_eq!(member.is_string(), is_text, "{levels}");
        }
    }
}

/// An id and a model may have half a character, also in the chunk of a later answer that matches one of an earlier answer.
#[test]
fn identity_with_half_a_character_is_kept() {
    let payload = r#"{"id":"a\ud83d","model":"\ude00b","choices":[{"delta":{"content":"x"}}]}"#;
    let mut templates = TemplateCache::default();
    for _ in 0..3 {
        let mut aggregator = Aggregator::with_templates(Options::default(), templates);
        aggregator.push(payload.as_bytes()).unwrap();
        templates = aggregator.take_templates();
        let answer = aggregator.into_answer();
        assert_eq!(answer.id.as_deref(), Some("a\u{fffd}"));
        assert_eq!(answer.model.as_deref(), Some("\u{fffd}b"));
    }
}
