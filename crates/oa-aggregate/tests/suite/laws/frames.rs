//! Chunks that differ only in their delta, and other values assembled from many chunks.

use oa_aggregate::{Decoder, Options};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::decoding::{WORDS, check_answers_with, check_list, fill};
use crate::{delta, run};

/// The text around a delta `~`.
const FRAMES: &[&str] = &[
    r#"{"id":"1","created":#,"choices":[{"index":0,"delta":~,"finish_reason":null}],"usage":null}"#,
    r#"{"choices":[{"delta":~}]}"#,
    r#"{"choices": [{"index": #, "delta": ~ , "logprobs": null}], "usage": {"total_tokens": #}, "padding": "%"}"#,
    r#"{"choices":[{"message":{"content":"m"},"delta":~}]}"#,
    r#"{"choices":[{"delta":~,"message":{"content":"m"}}],"model":"%"}"#,
    r#"{"choices":[{"delta":~,"finish_reason":"stop"}]}"#,
    // More than one delta, or none.
    r#"{"choices":[{"delta":{"content":"a"},"delta":~}]}"#,
    r#"{"choices":[{"delta":~,"delta":{"content":"a"}}]}"#,
    r#"{"choices":[{"delta":~,"delta":5}]}"#,
    r#"{"choices":[{"delta":~},{"delta":{"content":"b"}}]}"#,
    r#"{"choices":[{"delta":~}],"choices":[]}"#,
    r#"{"choices":[{"delta":~}],"choices":[{"message":{"content":""}}]}"#,
    r#"{"choices":[{"content":"","message":~}]}"#,
];

const DELTAS: &[&str] = &[
    r#"{"content":"@"}"#,
    r#"{"role":"assistant","content":""}"#,
    r#"{"role":"assistant"}"#,
    "{}",
    r#"{"content":"","reasoning":"@"}"#,
    r#"{"reasoning":"@","reasoning_details":[{"type":"t","text":"@","index":0}]}"#,
    r#"{"reasoning_details":[{"type":"t","signature":"@","index":0}]}"#,
    r#"{"content":"@","reasoning":"@"}"#,
    r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}"#,
    r#"{"tool_calls":[{"index":0,"function":{"arguments":"@"}}]}"#,
    r#"{"content":["@"],"refusal":"@"}"#,
    r#"{"reasoning_content":{"text":"@"},"reasoning":""}"#,
    r#"{"content":"","thinking_blocks":[{"type":"thinking","thinking":"@"}]}"#,
    r#"{"content":"@","extra_content":{"google":{"thought":true}}}"#,
    r#"{"reasoning_text":"@","reasoning_opaque":"@"}"#,
    // No object.
    "null",
    r#""@""#,
    r#"[{"content":"@"}]"#,
    // More than the delta, or less.
    r#"{"content":"@"},"finish_reason":"stop""#,
    r#"{"content":"@"},"delta":{"content":"b"}"#,
    r#"{"content":"@"},"index":1"#,
    r#"{"content":"@"}},{"index":1,"delta":{"content":"b"}"#,
    r#"{"content":"@""#,
    r#"{"content":"@"}}"#,
    r#"{"content":"@"} 5"#,
    "",
];

/// Payloads of one frame: a delta, another one, the first again.
fn beside(frame: &str, delta: &str, other: &str) -> Vec<Vec<u8>> {
    let order = [delta, delta, other, other, delta, other];
    let payload = |(number, delta): (usize, &&str)| {
        fill(&frame.replace('~', delta), WORDS[number % 4], number as u32).into_bytes()
    };
    order.iter().enumerate().map(payload).collect()
}

#[test]
fn delta_alone_equals_delta_in_payload() {
    for frame in FRAMES {
        for delta in DELTAS {
            for other in DELTAS {
                let list = beside(frame, delta, other);
                check_list(&list);
                check_answers_with(Options::default(), &list);
            }
        }
    }
}

#[test]
fn same_frame_reads_only_deltas() {
    for frame in &FRAMES[..2] {
        for delta in &DELTAS[1..10] {
            let mut decoder = Decoder::new();
            for payload in beside(frame, DELTAS[0], delta) {
                assert!(decoder.decode(&payload).is_ok());
            }
            assert_eq!(decoder.hits_and_misses().1, 1, "{frame} {delta}");
            assert!(decoder.deltas_read() > 0);
        }
    }
}

#[test]
fn changed_byte_at_a_delta_is_noticed() {
    let bytes = b"\"\\{}[],: 0-.n\x1f\xff";
    for frame in FRAMES {
        let plain = fill(&frame.replace('~', DELTAS[0]), "word", 5).into_bytes();
        let other = fill(&frame.replace('~', DELTAS[4]), "word", 5).into_bytes();
        for at in 0..other.len() {
            for &byte in bytes {
                for cut in [at, at + 1] {
                    let changed = [&other[..at], &[byte], &other[cut..]].concat();
                    check_list(&[&plain, &plain, &changed, &other, &changed]);
                }
            }
        }
    }
}

#[test]
fn delta_alone_has_the_same_depth_limit() {
    for depth in 120..130 {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        check_list(&beside(FRAMES[0], DELTAS[0], &deep));
    }
}

/// An item of `reasoning_details` with `@` for what is said, and whether it is said elsewhere, too.
fn detail() -> impl Strategy<Value = String> {
    let member = select(vec!["text", "summary", "data", "signature"]);
    let second =
        select(vec!["", r#","text":"b""#, r#","data":null"#, r#","id":7"#, r#","a":["%"]"#]);
    let index = select(vec!["", r#","index":0"#, r#","index":1"#, r#","index":null"#]);
    let kind = select(vec![r#""type":"x""#, r#""type":"y""#, r#""format":null"#]);
    let reasoning = select(vec!["", r#""reasoning":"@","#, r#""reasoning_content":"","#]);
    (member, second, index, kind, reasoning).prop_map(|(member, second, index, kind, reasoning)| {
        format!(r#"{reasoning}"reasoning_details":[{{{kind},"{member}":"@"{second}{index}}}]"#)
    })
}

fn usage() -> impl Strategy<Value = String> {
    let number = || select(vec!["0", "7", "-1", "1.5", "1e3", "18446744073709551616", "null"]);
    let name = select(vec!["usage", "x_groq", "other"]);
    (name, number(), number(), number()).prop_map(|(name, one, two, three)| {
        let usage = format!(
            r#"{{"prompt_tokens":{one},"completion_tokens":{two},"prompt_tokens_details":{{"cached_tokens":{three}}}}}"#
        );
        match name {
            "x_groq" => format!(r#""x_groq":{{"usage":{usage}}}"#),
            name => format!(r#""{name}":{usage}"#),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn details_grow_as_without_templates(
        list in vec((detail(), vec(select(WORDS), 1..5)), 0..6),
        text_bytes in prop_oneof![Just(1 << 20), 0..400_usize],
    ) {
        let mut options = Options::default();
        options.limits.text_bytes = text_bytes;
        let payloads: Vec<Vec<u8>> = list
            .iter()
            .flat_map(|(detail, words)| words.iter().map(|words| fill(&delta(detail), words, 3)))
            .map(String::into_bytes)
            .collect();
        check_list(&payloads);
        check_answers_with(options, &payloads);
    }

    #[test]
    fn usage_merges_as_without_templates(list in vec((usage(), select(WORDS)), 0..12)) {
        let payload = |(usage, words): &(String, &str)| {
            format!(r#"{{"choices":[{{"delta":{{"content":"{words}"}}}}],{usage}}}"#).into_bytes()
        };
        let payloads: Vec<Vec<u8>> = list.iter().map(payload).collect();
        check_list(&payloads);
        check_answers_with(Options::default(), &payloads);
    }
}

#[test]
fn last_reported_usage_counts() {
    let chunk =
        |usage: &str| format!(r#"{{"choices":[{{"delta":{{"content":"a"}}}}],"usage":{usage}}}"#);
    let list: Vec<String> = (1..20)
        .map(|number| chunk(&format!(r#"{{"prompt_tokens":25,"completion_tokens":{number}}}"#)))
        .chain([chunk("null"), chunk(r#"{"prompt_tokens":null,"completion_tokens":20.5}"#)])
        .collect();
    let usage = run(Options::default(), list).answer.usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (Some(25), Some(19)));
}
