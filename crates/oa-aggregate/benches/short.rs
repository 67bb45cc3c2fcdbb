//! The cost of a short answer from its first payload to its blocks, alone and after others.

use std::hint::black_box;

use bytes::Bytes;
use oa_aggregate::{Aggregator, Options, TemplateCache};

use crate::instructions::{Valgrind, grouped};
use crate::{FRESH, Made, WARM, push, whole_answer};

/// Two short answers each, that differ in id, time and numbers.
pub(crate) const SHORT: [Made; 3] = [
    ("llama.cpp", None, || answers(&LLAMA_CPP)),
    ("Ollama", None, || answers(&OLLAMA)),
    ("vLLM", None, || answers(&VLLM)),
];

/// The text around an answer's choices, and behind them in its last chunk; its role, a word and its end.
/// `#` differs from answer to answer.
type Short = ([&'static str; 2], &'static str, [&'static str; 3]);

const LLAMA_CPP: Short = (
    [
        r#"{"choices":["#,
        r#"],"created":179522685#,"id":"chatcmpl-2kHw4Z24inpMWrdzHVKC5bVLcGmWzvK#","model":"tiny","system_fingerprint":"b0-unknown","object":"chat.completion.chunk""#,
    ],
    r#","usage":{"completion_tokens":2#,"prompt_tokens":25,"total_tokens":4#,"prompt_tokens_details":{"cached_tokens":2#}},"timings":{"cache_n":2#,"prompt_n":1,"prompt_ms":0.3#6,"prompt_per_second":246#.05,"predicted_n":3,"predicted_ms":0.6#2}"#,
    [
        r#"{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}"#,
        r#"{"finish_reason":null,"index":0,"delta":{"content":" word"}}"#,
        r#"{"finish_reason":"stop","index":0,"delta":{}}"#,
    ],
);

const OLLAMA: Short = (
    [
        r#"{"id":"chatcmpl-50#","object":"chat.completion.chunk","created":178661587#,"model":"gpt-oss:120b","system_fingerprint":"fp_ollama","choices":["#,
        "]",
    ],
    r#","usage":{"prompt_tokens":7#,"completion_tokens":4#,"total_tokens":11#}"#,
    [
        r#"{"index":0,"delta":{"role":"assistant","content":" one"},"finish_reason":null}"#,
        r#"{"index":0,"delta":{"content":" word"},"finish_reason":null}"#,
        r#"{"index":0,"delta":{},"finish_reason":"stop"}"#,
    ],
);

const VLLM: Short = (
    [
        r#"{"id":"chat-22c24755532348e6b6ff75297b1a71b#","object":"chat.completion.chunk","created":172907236#,"model":"facebook/opt-125m","choices":["#,
        "]",
    ],
    r#","usage":{"prompt_tokens":7#,"total_tokens":11#,"completion_tokens":4#}"#,
    [
        r#"{"index":0,"delta":{"role":"assistant"},"logprobs":null,"finish_reason":null}"#,
        r#"{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}"#,
        r#"{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"stop","stop_reason":null}"#,
    ],
);

/// `first` is the number of the first of these streams.
pub(crate) fn print(valgrind: Option<Valgrind>, unit: &str, first: usize) {
    let Some(valgrind) = valgrind else { return };
    println!("\n{unit} per short answer: role, one word, finish, usage\n");
    println!("{:28}{:>16}{:>16}{:>14}", "", "alone", "after others", "allocations");
    for (number, (name, ..)) in SHORT.iter().enumerate() {
        let case = |run| [first + number, run];
        let cost = |run| grouped(valgrind.instructions(None, &case(run), 8) / 2.0);
        let allocations = valgrind.allocations(&case(WARM), 8) / 2.0;
        println!("{name:28}{:>16}{:>16}{allocations:>14.1}", cost(FRESH), cost(WARM));
    }
}

fn answers(&([before, behind], usage, choices): &Short) -> Vec<Bytes> {
    let chunks = choices.map(|choice| format!("{before}{choice}{behind}}}"));
    let chunks = chunks.into_iter().chain([format!("{before}{behind}{usage}}}")]);
    let chunks: Vec<String> = chunks.collect();
    let answer = |number| chunks.iter().map(move |chunk| chunk.replace('#', number).into());
    ["1", "62"].into_iter().flat_map(answer).collect()
}

pub(crate) fn fresh(payloads: &[Bytes]) -> usize {
    let (one, other) = payloads.split_at(payloads.len() / 2);
    whole_answer(one) + whole_answer(other)
}

pub(crate) fn warm(payloads: &[Bytes], times: usize) {
    let mut templates = TemplateCache::default();
    for _ in 0..times {
        for payloads in payloads.chunks(payloads.len() / 2) {
            let mut aggregator = Aggregator::with_templates(Options::default(), templates);
            for payload in payloads {
                push(&mut aggregator, payload);
            }
            templates = aggregator.take_templates();
            black_box(aggregator.take_answer());
        }
    }
}
