//! Templates from other answers never change an answer.

use oa_aggregate::{Aggregator, Decoder, Options, Payload, TemplateCache};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::decoding::{fill, fixtures, form, words};
use super::payloads::{options, payload};
use crate::{delta, finish, fragment, run, run_with, text};

/// Answers as four servers write them, but for `@` and what differs from answer to answer: `$` is in its
/// id, `#` a time or a count.
const SERVERS: &[(&str, &[&str])] = &[
    (
        "llama.cpp",
        &[
            r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"created":17#,"id":"chatcmpl-$","model":"tiny","system_fingerprint":"b0-unknown","object":"chat.completion.chunk"}"#,
            r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"@"}}],"created":17#,"id":"chatcmpl-$","model":"tiny","system_fingerprint":"b0-unknown","object":"chat.completion.chunk"}"#,
            r#"{"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"created":17#,"id":"chatcmpl-$","model":"tiny","system_fingerprint":"b0-unknown","object":"chat.completion.chunk"}"#,
            r#"{"choices":[],"created":17#,"id":"chatcmpl-$","model":"tiny","system_fingerprint":"b0-unknown","object":"chat.completion.chunk","usage":{"completion_tokens":#,"prompt_tokens":28,"total_tokens":#,"prompt_tokens_details":{"cached_tokens":#}},"timings":{"cache_n":#,"prompt_ms":1#.418,"prompt_per_second":0.5#,"predicted_n":#}}"#,
        ],
    ),
    (
        "LM Studio",
        &[
            r#"{"id":"chatcmpl-$","object":"chat.completion.chunk","created":17#,"model":"qwen2.5-7b-instruct","system_fingerprint":"qwen2.5-7b-instruct","choices":[{"index":0,"delta":{"role":"assistant","content":"@"},"logprobs":null,"finish_reason":null}]}"#,
            r#"{"id":"chatcmpl-$","object":"chat.completion.chunk","created":17#,"model":"qwen2.5-7b-instruct","system_fingerprint":"qwen2.5-7b-instruct","choices":[{"index":0,"delta":{"content":"@"},"logprobs":null,"finish_reason":null}]}"#,
            r#"{"id":"chatcmpl-$","object":"chat.completion.chunk","created":17#,"model":"qwen2.5-7b-instruct","system_fingerprint":"qwen2.5-7b-instruct","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}"#,
            r#"{"id":"chatcmpl-$","object":"chat.completion.chunk","created":17#,"model":"qwen2.5-7b-instruct","system_fingerprint":"qwen2.5-7b-instruct","choices":[],"usage":{"prompt_tokens":#,"completion_tokens":#,"total_tokens":#}}"#,
        ],
    ),
    (
        "Ollama",
        &[
            r#"{"id":"chatcmpl-$","object":"chat.completion.chunk","created":17#,"model":"gpt-oss:120b","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"@"},"finish_reason":null}]}"#,
            r#"{"id":"chatcmpl-$","object":"chat.completion.chunk","created":17#,"model":"gpt-oss:120b","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"content":"","reasoning":"@"},"finish_reason":null}]}"#,
            r#"{"id":"chatcmpl-$","object":"chat.completion.chunk","created":17#,"model":"gpt-oss:120b","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"content":"@"},"finish_reason":null}]}"#,
            r#"{"id":"chatcmpl-$","object":"chat.completion.chunk","created":17#,"model":"gpt-oss:120b","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            r#"{"id":"chatcmpl-$","object":"chat.completion.chunk","created":17#,"model":"gpt-oss:120b","system_fingerprint":"fp_ollama","choices":[],"usage":{"prompt_tokens":#,"completion_tokens":#,"total_tokens":#}}"#,
        ],
    ),
    (
        "vLLM",
        &[
            r#"{"id":"chat-$","object":"chat.completion.chunk","created":17#,"model":"facebook/opt-125m","choices":[{"index":0,"delta":{"role":"assistant"},"logprobs":null,"finish_reason":null}]}"#,
            r#"{"id":"chat-$","object":"chat.completion.chunk","created":17#,"model":"facebook/opt-125m","choices":[{"index":0,"delta":{"content":"@"},"logprobs":null,"finish_reason":null}]}"#,
            r#"{"id":"chat-$","object":"chat.completion.chunk","created":17#,"model":"facebook/opt-125m","choices":[{"index":0,"delta":{"content":"@"},"logprobs":null,"finish_reason":"length","stop_reason":null}]}"#,
            r#"{"id":"chat-$","object":"chat.completion.chunk","created":17#,"model":"facebook/opt-125m","choices":[],"usage":{"prompt_tokens":#,"total_tokens":#,"completion_tokens":#}}"#,
        ],
    ),
];

/// The same answer with another id, other words, times and numbers.
fn answer(chunks: &[&str], number: u32) -> Vec<Vec<u8>> {
    let id = "id".repeat(1 + number as usize % 3) + &number.to_string();
    let chunk = |(place, chunk): (usize, &&str)| {
        let words =
            ["Hello", "!", r"\n\u00e9", " there are more words"][(place + number as usize) % 4];
        fill(&chunk.replace('$', &id), words, 7 * number).into_bytes()
    };
    let mut chunks: Vec<Vec<u8>> = chunks.iter().enumerate().map(chunk).collect();
    chunks.push(b"[DONE]".to_vec());
    chunks
}

/// Reads answers one after the other as one who remembers and as one who does not.
#[track_caller]
fn check_chain<'a>(options: Options, answers: impl IntoIterator<Item = &'a Vec<Vec<u8>>>) {
    let mut templates = TemplateCache::default();
    for payloads in answers {
        let (fresh, warm) = (run(options, payloads), run_with(options, &mut templates, payloads));
        let show = || payloads.iter().map(|payload| String::from_utf8_lossy(payload)).collect();
        if fresh != warm {
            let list: Vec<_> = show();
            panic!("{list:#?}\nsays {fresh:#?}\nand not {warm:#?}");
        }
    }
}

#[test]
fn similar_answers_need_no_parsing() {
    for (server, chunks) in SERVERS {
        let mut templates = TemplateCache::default();
        for number in 0..6 {
            let payloads = answer(chunks, number);
            let mut decoder = Decoder::with_templates(templates);
            for payload in &payloads {
                assert!(decoder.decode(payload).is_ok(), "{server}");
            }
            let (told, read) = decoder.hits_and_misses();
            if number > 0 {
                let count = chunks.len() as u64;
                assert_eq!((told, read, decoder.deltas_read()), (count, 0, 0), "{server} {number}");
            }
            templates = decoder.take_templates();
        }
        let answers: Vec<_> = (0..6).map(|number| answer(chunks, number)).collect();
        check_chain(Options::default(), &answers);
    }
}

#[test]
fn alternating_servers_do_not_mix() {
    let numbers = [0, 1, 5, 2, 2, 7, 0, 9];
    let mut answers = Vec::new();
    for (place, number) in numbers.iter().cycle().take(64).enumerate() {
        answers.push(answer(SERVERS[place * 7 % SERVERS.len()].1, *number));
        answers.push(answer(SERVERS[place / 2 % SERVERS.len()].1, *number + 1));
    }
    check_chain(Options::default(), &answers);
}

#[test]
fn fixtures_decode_the_same_in_any_order() {
    let fixtures = fixtures();
    for payloads in &fixtures {
        check_chain(Options::default(), [payloads, payloads, payloads]);
    }
    check_chain(Options::default(), &fixtures);
    check_chain(Options::default(), fixtures.iter().rev());
    check_chain(Options::default(), fixtures.iter().flat_map(|payloads| [payloads, payloads]));
}

/// Returns what a decoder says of payloads.
fn says(mut decoder: Decoder, payloads: &[String]) -> (Vec<String>, TemplateCache) {
    let says = payloads.iter().map(|payload| match decoder.decode(payload.as_bytes()) {
        Ok(Payload::Chunk(chunk)) => {
            let choices: Vec<_> = chunk.choices().collect();
            format!("{:?} {:?} {choices:?} {:?}", chunk.id, chunk.model, chunk.usage)
        }
        other => format!("{other:?}"),
    });
    let says = says.collect();
    (says, decoder.take_templates())
}

#[test]
fn id_and_model_are_of_the_current_answer() {
    let chunk = |id: &str, model: &str| {
        format!(r#"{{"id":{id},"model":{model},"choices":[{{"delta":{{"content":"a"}}}}]}}"#)
    };
    let ids = [
        r#""a""#,
        r#""b\u00e9\n""#,
        r#""""#,
        "null",
        "5",
        r#""b""#,
        r#"{"a":"b"}"#,
        r#""long one""#,
    ];
    let mut templates = TemplateCache::default();
    for round in 0..ids.len() {
        for (place, id) in ids.iter().enumerate() {
            // The first may be absent and the second there.
            let (next, model) =
                (ids[(place + round) % ids.len()], ids[(2 * place + round) % ids.len()]);
            let list = [chunk(id, model), chunk(next, id), chunk(id, next)];
            let (fresh, warm) = (
                run(Options::default(), &list),
                run_with(Options::default(), &mut templates, &list),
            );
            assert_eq!(fresh, warm, "{list:#?}");
        }
    }
    // A member that comes twice, of which the last counts.
    let twice = |one: &str, two: &str| format!(r#"{{"id":{one},"id":{two},"choices":[]}}"#);
    for one in ids {
        for two in ids {
            let list = [twice(one, two), twice(two, one)];
            let fresh = run(Options::default(), &list);
            assert_eq!(fresh, run_with(Options::default(), &mut templates, &list), "{list:#?}");
        }
    }
}

#[test]
fn only_the_first_match_has_id_and_model() {
    let list = |id: &str| {
        let chunk =
            format!(r#"{{"id":"{id}","model":"m","choices":[{{"delta":{{"content":"a"}}}}]}}"#);
        [chunk.clone(), chunk]
    };
    let (_, templates) = says(Decoder::with_templates(TemplateCache::default()), &list("1"));
    let (warm, _) = says(Decoder::with_templates(templates), &list("22"));
    let (fresh, _) = says(Decoder::new(), &list("22"));
    assert_eq!(warm, fresh);
    assert!(warm[0].starts_with(r#"Some("22") Some("m")"#), "{}", warm[0]);
    assert!(warm[1].starts_with("None None"), "{}", warm[1]);
}

#[test]
fn earlier_answers_do_not_leak_into_later() {
    let call = |id: &str, name: &str, arguments: &str| {
        fragment(&format!(
            r#""index":0,"id":"{id}","function":{{"name":"{name}","arguments":"{arguments}"}}"#
        ))
    };
    let more = |arguments: &str| {
        fragment(&format!(r#""index":0,"function":{{"arguments":"{arguments}"}}"#))
    };
    let detail = |text: &str, id: &str| {
        delta(&format!(
            r#""reasoning_details":[{{"index":0,"type":"t","text":"{text}","id":"{id}"}}]"#
        ))
    };
    let deep_detail = |text: &str| {
        let deep = format!("{}{}", "[".repeat(110), "]".repeat(110));
        delta(&format!(r#""reasoning_details":[{{"index":0,"text":"{text}","deep":{deep}}}]"#))
    };
    let usage = |usage: &str| format!(r#"{{"choices":[],"usage":{usage}}}"#);
    let answers = [
        vec![text("secret"), finish("stop"), usage(r#"{"prompt_tokens":1,"total_tokens":9}"#)],
        vec![text("a"), usage(r#"{"prompt_tokens":null,"total_tokens":8}"#), finish("length")],
        vec![text(""), finish("tool_calls"), usage(r#"{"prompt_tokens":1.5,"total_tokens":-3}"#)],
        vec![text("b"), finish("stop"), usage(r#"{"prompt_tokens":"1","total_tokens":"9"}"#)],
        vec![call("call_1", "add", "{}"), finish("tool_calls")],
        vec![call("call_2", "add", "{}"), finish("tool_calls")],
        vec![call("call_2", "sub", "{}")],
        vec![call("call_3", "", r#"{\"a\":"#), more("1"), more("2"), more("}")],
        vec![call("call_4", "add", ""), more("{"), more("}"), finish("stop")],
        vec![more("{}"), finish("stop")],
        vec![detail("one", "x"), detail("two", "x"), detail("three", "y")],
        vec![detail("four", "x"), detail("five", "x")],
        vec![detail("six", "y"), text("b"), detail("seven", "x")],
        vec![deep_detail("eight"), deep_detail("nine")],
    ];
    let answers = answers.map(|list| list.into_iter().map(String::into_bytes).collect::<Vec<_>>());
    for first in &answers {
        for second in &answers {
            check_chain(Options::default(), [first, second, first, second, second]);
        }
    }
    check_chain(Options::default(), answers.iter().chain(answers.iter().rev()));
}

/// A reasoning detail of an earlier shape goes to its own item: that of another takes no more.
#[test]
fn taking_templates_midway_changes_nothing() {
    let detail = |number: usize, text: &str| {
        delta(&format!(r#""reasoning_details":[{{"index":{number},"text":"{text}"}}]"#))
    };
    let list = [detail(0, "a"), detail(0, "b"), detail(1, "c"), detail(1, "d"), detail(0, "e")];
    for at in 0..list.len() {
        for again in 0..list.len() {
            let list: Vec<&String> = list.iter().chain(&list[again..]).collect();
            let mut aggregator =
                Aggregator::with_templates(Options::default(), TemplateCache::default());
            for (place, payload) in list.iter().enumerate() {
                if place == at {
                    drop(aggregator.take_templates());
                }
                aggregator.push(payload.as_bytes()).unwrap();
            }
            assert_eq!(aggregator.into_answer(), run(Options::default(), &list).answer);
        }
    }
}

#[test]
fn debug_of_templates_shows_no_text() {
    let mut templates = TemplateCache::default();
    run_with(Options::default(), &mut templates, [text("my secret"), text("and more")]);
    let shown = format!("{templates:?}");
    assert!(shown.starts_with("TemplateCache") && !shown.contains("secret"), "{shown}");
}

/// Streams that are made of a few shapes of chunk each, some of which others have, too.
fn streams() -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> {
    let shapes = select(SERVERS)
        .prop_flat_map(|(_, chunks)| select(chunks))
        .prop_map(|chunk| chunk.replace('$', "%").into_bytes());
    let ends = select(vec![
        r#"{"id":"%","choices":[{"delta":{"content":"@"},"finish_reason":"stop"}]}"#,
        r#"{"id":"%","choices":[{"index":#,"delta":{},"finish_reason":"length"}]}"#,
        r#"{"id":"%","choices":[{"finish_reason":"@"}]}"#,
        r#"{"id":"%","choices":[],"usage":{"total_tokens":#}}"#,
        r#"{"model":"%","usage":{"total_tokens":#,"prompt_tokens":null}}"#,
        r#"{"id":"%","choices":[],"usage":{"prompt_tokens":"17","total_tokens":#}}"#,
        r#"{"choices":[{"usage":{"total_tokens":#}}],"choices":[]}"#,
        r#"{"error":0,"choices":null}"#,
        r#"["%",#]"#,
        "#",
    ]);
    let ends = ends.prop_map(|end| end.as_bytes().to_vec());
    let form = prop_oneof![4 => form(), 2 => shapes, 2 => ends];
    let stream = vec((any::<Index>(), words(), 0..20_u32), 0..10);
    (vec(form, 1..6), vec(stream, 1..6)).prop_map(|(forms, streams)| {
        let payload = |(form, words, number): &(Index, String, u32)| {
            let form = &forms[form.index(forms.len())];
            match str::from_utf8(form) {
                Ok(form) => fill(form, words, *number).into_bytes(),
                Err(_) => form.clone(),
            }
        };
        streams.iter().map(|stream| stream.iter().map(payload).collect()).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn similar_streams_decode_as_each_alone(
        options in options(),
        streams in streams(),
    ) {
        check_chain(options, &streams);
    }

    #[test]
    fn any_streams_decode_as_each_alone(
        options in options(),
        streams in vec(vec(payload(), 0..6), 1..5),
        order in vec(any::<Index>(), 0..8),
    ) {
        let order: Vec<_> = order.iter().map(|index| &streams[index.index(streams.len())]).collect();
        check_chain(options, order);
    }
}
