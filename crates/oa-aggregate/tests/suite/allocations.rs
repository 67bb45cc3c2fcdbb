//! The cost of a chunk in allocations and copies.

use std::mem::take;

use allocation_counter::{AllocationInfo, measure};
use oa_aggregate::{Aggregator, Options, TemplateCache, TextMode};

/// Pushes a list and takes its deltas.
fn push(aggregator: &mut Aggregator, payloads: &[String]) -> usize {
    let mut bytes = 0;
    for payload in payloads {
        aggregator.push(payload.as_bytes()).expect("no list here passes a limit");
        while let Some(delta) = aggregator.next_delta() {
            bytes += match delta {
                oa_aggregate::Delta::Text(text) | oa_aggregate::Delta::Thinking(text) => text.len(),
                oa_aggregate::Delta::CallArguments { fragment, .. } => fragment.len(),
                _ => 0,
            };
        }
    }
    bytes
}

fn chunks(count: usize, members: impl Fn(usize) -> String) -> Vec<String> {
    let chunk = |number| {
        format!(
            r#"{{"id":"chatcmpl-1","object":"chat.completion.chunk","created":{},"model":"m","choices":[{{"index":0,"delta":{{{}}},"logprobs":null,"finish_reason":null}}],"usage":null}}"#,
            1_700_000_000 + number / 40,
            members(number),
        )
    };
    (0..count).map(chunk).collect()
}

/// Returns what `list` costs after `first`, which it is like.
fn cost(first: &[String], list: &[String]) -> AllocationInfo {
    let mut aggregator = Aggregator::new();
    push(&mut aggregator, first);
    measure(|| {
        push(&mut aggregator, list);
    })
}

#[test]
fn text_chunks_allocate_only_to_grow() {
    let said = [
        ("plain", r#""content":" word""#),
        ("escaped", r#""content":"\n\"so\" \u00e9\ud83d\ude42""#),
        ("thinking", r#""content":"","reasoning_content":" hm""#),
        ("details", r#""reasoning_details":[{"type":"reasoning.text","index":0,"text":" hm\n"}]"#),
        ("details, too", r#""reasoning":" hm","reasoning_details":[{"index":0,"data":" hm"}]"#),
    ];
    for (what, members) in said {
        let list = chunks(1_000, |_| members.to_owned());
        let cost = cost(&chunks(100, |_| members.to_owned()), &list);
        assert!(cost.count_total <= 30, "{what}: {} allocations", cost.count_total);
    }
}

#[test]
fn text_that_fits_allocates_nothing() {
    for word in [r" word", r"\n\u00e9\ud83d\ude42"] {
        let mut aggregator = Aggregator::new();
        // The text doubles its space just past 64 KiB and has room for as much again.
        let first = chunks(120, |_| format!(r#""content":"{}""#, "x".repeat(600)));
        push(&mut aggregator, &first);
        push(&mut aggregator, &chunks(100, |_| format!(r#""content":"{word}""#)));
        // No second begins within the window.
        let list = chunks(40, |_| format!(r#""content":"{word}""#));
        let cost = measure(|| {
            assert!(push(&mut aggregator, &list) > 0);
        });
        assert_eq!(cost.count_total, 0, "{word}");
    }
}

#[test]
fn changing_timestamp_needs_no_parsing() {
    let mut aggregator = Aggregator::new();
    push(&mut aggregator, &chunks(1_000, |_| r#""content":"x""#.to_owned()));
    let (told, read) = aggregator.decoder().hits_and_misses();
    assert_eq!((told, read), (999, 1), "the first chunk, and none when the next second begins");
}

#[test]
fn varying_padding_needs_no_parsing() {
    let mut aggregator = Aggregator::new();
    let chunk = |number: usize| {
        format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"x"}}}}],"obfuscation":"{}"}}"#,
            "p".repeat(number % 17)
        )
    };
    push(&mut aggregator, &(0..1_000).map(chunk).collect::<Vec<_>>());
    assert_eq!(aggregator.decoder().hits_and_misses(), (999, 1));
}

/// A short answer with what differs from answer to answer.
fn short_answer(number: usize) -> Vec<String> {
    let chunk = |choices: &str, rest: &str| {
        format!(
            r#"{{"choices":[{choices}],"created":{number},"id":"chatcmpl-{number}","model":"m"{rest}}}"#
        )
    };
    let choice = |delta: &str, reason: &str| {
        chunk(&format!(r#"{{"finish_reason":{reason},"index":0,"delta":{{{delta}}}}}"#), "")
    };
    vec![
        choice(r#""role":"assistant","content":null"#, "null"),
        choice(r#""content":"Hello""#, "null"),
        choice("", r#""stop""#),
        chunk("", &format!(r#","usage":{{"prompt_tokens":25,"total_tokens":{number}}}"#)),
    ]
}

#[test]
fn short_answer_allocates_for_content_only() {
    let mut templates = TemplateCache::default();
    for number in [5, 66] {
        let mut aggregator = Aggregator::with_templates(Options::default(), templates);
        push(&mut aggregator, &short_answer(number));
        templates = aggregator.take_templates();
    }
    let list = short_answer(77);
    let mut aggregator = Aggregator::with_templates(Options::default(), templates);
    let cost = measure(|| {
        assert_eq!(push(&mut aggregator, &list), 5);
        drop(aggregator.take_templates());
        assert_eq!(aggregator.take_answer().id.as_deref(), Some("chatcmpl-77"));
    });
    // Of words: parts, runs, deltas, the text, and what may be repeated. Then id, model, and the blocks.
    assert!(cost.count_total <= 8, "{} allocations", cost.count_total);
}

/// The memory that a server may make an endpoint keep for it.
#[test]
fn template_cache_is_bounded() {
    let list = |length: usize| -> Vec<String> {
        let number = |place| format!(r#""member-{place}":"{}""#, "x".repeat(length));
        let detail = |place| {
            let text = "y".repeat(length);
            format!(
                r#""reasoning_details":[{{"index":{place},"a":"{text}","text":"
{text}"}}]"#
            )
        };
        let calls = |place| {
            let name = "z".repeat(length);
            format!(
                r#""tool_calls":[{{"index":{place},"id":"{name}","function":{{"arguments":"
"}}}}]"#
            )
        };
        [chunks(40, number), chunks(40, detail), chunks(40, calls)].concat()
    };
    let mut most = 0;
    for length in [10, 1_000, 3_000, 100_000] {
        let mut templates = TemplateCache::default();
        for _ in 0..3 {
            let list = list(length);
            let mut kept = TemplateCache::default();
            let cost = measure(|| {
                let mut aggregator =
                    Aggregator::with_templates(Options::default(), take(&mut templates));
                push(&mut aggregator, &list);
                kept = aggregator.take_templates();
            });
            assert!(cost.bytes_current <= 80 << 10, "{length}: {} bytes", cost.bytes_current);
            templates = kept;
        }
        most = most.max(-measure(|| drop(templates)).bytes_current);
    }
    assert!((24 << 10..=80 << 10).contains(&most), "{most} bytes");
}

/// Fragments of the arguments of one call; `members` are what each has beside them.
fn fragments(count: usize, members: &str) -> Vec<String> {
    let call = |number: usize| {
        let piece = match number {
            0 => r#"{\"list\":[0"#.to_owned(),
            _ if number + 1 == count => "]}".to_owned(),
            _ => format!(",{}", number % 10),
        };
        let first = if number == 0 { r#""id":"call_1","# } else { "" };
        let name = if number == 0 && !members.contains("name") { r#""name":"add","# } else { "" };
        let members = members.replace("NUMBER", &number.to_string());
        format!(r#""tool_calls":[{{{first}"function":{{{name}"arguments":"{piece}"}}{members}}}]"#)
    };
    chunks(count, call)
}

#[track_caller]
fn check_linear(what: &str, list: impl Fn(usize) -> Vec<String>) {
    let traffic = |count: usize| {
        let list = list(count);
        measure(|| {
            let mut options = Options::default();
            options.quirks.text = TextMode::Detect;
            let mut aggregator = Aggregator::with_options(options);
            push(&mut aggregator, &list);
            let answer = aggregator.into_answer();
            assert!(!answer.blocks.is_empty());
        })
        .bytes_total
    };
    let (small, large) = (traffic(4_000), traffic(16_000));
    assert!(2 * large <= 9 * small, "{what}: {small} bytes for 4,000, {large} for 16,000");
}

#[test]
fn argument_fragments_copy_linearly() {
    check_linear("index alone", |count| fragments(count, r#","index":0"#));
    check_linear("no index", |count| fragments(count, ""));
    check_linear("another id each time", |count| {
        let mut list = fragments(count, r#","index":0"#);
        for (number, chunk) in list.iter_mut().enumerate().skip(1) {
            *chunk =
                chunk.replace(r#"[{"function""#, &format!(r#"[{{"id":"c{number}","function""#));
        }
        list
    });
    check_linear("the name each time", |count| {
        let named = r#""function":{"name":"add","arguments""#;
        let list = fragments(count, r#","index":0"#);
        list.iter().map(|chunk| chunk.replace(r#""function":{"arguments""#, named)).collect()
    });
    check_linear("the name each time, no index", |count| {
        let named = r#""function":{"name":"add","arguments""#;
        let list = fragments(count, "");
        list.iter().map(|chunk| chunk.replace(r#""function":{"arguments""#, named)).collect()
    });
}

#[test]
fn repeated_names_make_one_call() {
    let named = r#""function":{"name":"add","arguments""#;
    for members in [r#","index":0"#, ""] {
        let list = fragments(500, members);
        let list: Vec<String> =
            list.iter().map(|chunk| chunk.replace(r#""function":{"arguments""#, named)).collect();
        let mut aggregator = Aggregator::new();
        push(&mut aggregator, &list);
        let answer = aggregator.into_answer();
        let [oa_aggregate::ContentBlock::ToolUse(call)] = &answer.blocks[..] else {
            panic!("{:?}", answer.blocks)
        };
        assert_eq!(call.input["list"].as_array().map(Vec::len), Some(499));
    }
}

#[test]
fn text_chunks_copy_linearly() {
    check_linear("words", |count| chunks(count, |_| r#""content":" word""#.to_owned()));
    check_linear("dashes", |count| chunks(count, |_| r#""content":"-""#.to_owned()));
    check_linear("half tags", |count| chunks(count, |_| r#""content":"<""#.to_owned()));
    check_linear("thinking", |count| chunks(count, |_| r#""reasoning":" hm""#.to_owned()));
    check_linear("details", |count| {
        let detail = r#""reasoning_details":[{"type":"reasoning.text","index":0,"text":" hm"}]"#;
        chunks(count, |_| detail.to_owned())
    });
}

#[test]
fn reasoning_details_copy_linearly() {
    let traffic = |count: usize| {
        let detail = |number| {
            format!(
                r#""reasoning_details":[{{"type":"reasoning.text","index":{number},"text":"a"}}]"#
            )
        };
        let list = chunks(count, detail);
        measure(|| {
            push(&mut Aggregator::new(), &list);
        })
        .bytes_total
    };
    let (small, large) = (traffic(300), traffic(1_200));
    assert!(2 * large <= 9 * small, "{small} bytes for 300, {large} for 1,200");
}

/// The notes that a reader takes of a payload must not outweigh it.
#[test]
fn small_values_cost_no_more_than_the_payload() {
    let list = format!("{{\"choices\":[],\"logprobs\":[{}0]}}", "0,".repeat(100_000));
    let cost = measure(|| {
        let mut aggregator = Aggregator::new();
        aggregator.push(list.as_bytes()).unwrap();
    });
    assert!(
        cost.bytes_max <= list.len() as u64,
        "{} bytes held for a payload of {}",
        cost.bytes_max,
        list.len()
    );
}
