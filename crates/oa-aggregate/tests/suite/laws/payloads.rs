//! For any input: no panic, exactly one end, and an answer equal to its deltas.

use oa_aggregate::{
    Aggregator, ArgumentRepair, ChoiceIndex, ContentBlock, Options, Problem, StreamStatus,
    TextMode, ThinkTags,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};

use crate::{Told, drain, finish, fragment, run, text};

/// Any JSON whose members have names that mean something.
fn json() -> impl Strategy<Value = Value> {
    let name = select(vec![
        "choices",
        "delta",
        "message",
        "index",
        "content",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "refusal",
        "tool_calls",
        "function",
        "function_call",
        "name",
        "arguments",
        "id",
        "finish_reason",
        "usage",
        "total_tokens",
        "x_groq",
        "error",
        "extra_content",
        "text",
        "thinking",
        "type",
        "model",
        "prompt_tokens_details",
        "cached_tokens",
        "reasoning_tokens",
        "code",
        "error_code",
        "object",
        "reasoning_text",
        "reasoning_opaque",
        "thinking_blocks",
        "signature",
        "google",
        "thought",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..3_i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(vec![
            "",
            "a",
            "<think>",
            "{}",
            "{\"a\":",
            "stop",
            "length",
            "[DONE]",
            "error",
            "thinking",
            "</think>",
            "<thought>",
            "</thought>",
            "<|",
            "Once upon a time, ",
            "Once upon a time, there was "
        ])
        .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 5, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name.clone(), inner), 0..6).prop_map(|members| {
                Value::Object(
                    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
                )
            }),
        ]
    })
}

/// A chunk whose delta is anything.
fn chunk() -> impl Strategy<Value = Value> {
    let put = |path: &[&str], value: Value| {
        path.iter().rev().fold(value, |value, name| match *name {
            "[]" => Value::from(vec![value]),
            name => Value::Object(Map::from_iter([(name.to_owned(), value)])),
        })
    };
    let path = select(vec![
        &[][..],
        &["choices"],
        &["choices", "[]"],
        &["choices", "[]", "delta"],
        &["choices", "[]", "message"],
        &["choices", "[]", "delta", "content"],
        &["choices", "[]", "delta", "content", "[]"],
        &["choices", "[]", "delta", "content", "[]", "thinking"],
        &["choices", "[]", "delta", "reasoning_details"],
        &["choices", "[]", "delta", "reasoning_details", "[]"],
        &["choices", "[]", "delta", "thinking_blocks", "[]"],
        &["choices", "[]", "delta", "extra_content", "google"],
        &["choices", "[]", "delta", "tool_calls"],
        &["choices", "[]", "delta", "tool_calls", "[]"],
        &["choices", "[]", "delta", "tool_calls", "[]", "function"],
        &["choices", "[]", "delta", "function_call"],
        &["usage"],
        &["x_groq", "usage"],
        &["error"],
    ]);
    (path, json()).prop_map(move |(path, value)| put(path, value))
}

pub(super) fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => chunk().prop_map(|chunk| chunk.to_string().into_bytes()),
        2 => json().prop_map(|value| value.to_string().into_bytes()),
        1 => vec(any::<u8>(), 0..40),
        1 => chunk().prop_map(|chunk| {
            let mut bytes = chunk.to_string().into_bytes();
            bytes.truncate(bytes.len() / 2);
            bytes
        }),
    ]
}

pub(super) fn options() -> impl Strategy<Value = Options> {
    let text = select(vec![TextMode::Detect, TextMode::Cumulative, TextMode::Incremental]);
    let tags = select(vec![ThinkTags::Off, ThinkTags::Split, ThinkTags::StartsInThinking]);
    (text, tags, any::<bool>(), any::<bool>(), any::<u64>()).prop_map(
        |(text, tags, any, repair, seed)| {
            let mut options = Options::default();
            options.quirks.text = text;
            options.quirks.think_tags = tags;
            options.quirks.choice = if any { ChoiceIndex::Any } else { ChoiceIndex::Zero };
            options.quirks.repair = if repair { ArgumentRepair::On } else { ArgumentRepair::Off };
            options.id_seed = seed;
            options
        },
    )
}

/// The blocks as the deltas tell them, except calls, whose deltas may be held back.
fn blocks(told: &[Told]) -> Vec<Told> {
    let mut blocks: Vec<Told> = Vec::new();
    for told in told {
        match (blocks.last_mut(), told) {
            (Some(Told::Text(run)), Told::Text(more))
            | (Some(Told::Thinking(run)), Told::Thinking(more))
            | (Some(Told::Refusal(run)), Told::Refusal(more)) => run.push_str(more),
            (_, Told::CallArguments(..) | Told::CallStart(..) | Told::Problem(_)) => {}
            (_, told) => blocks.push(told.clone()),
        }
    }
    blocks
}

/// Runs of text and of thinking. A refusal is text in an answer.
fn joined(words: &[Told]) -> Vec<Told> {
    let mut runs: Vec<Told> = Vec::new();
    for told in words {
        match (runs.last_mut(), told) {
            (Some(Told::Text(run)), Told::Text(more) | Told::Refusal(more))
            | (Some(Told::Thinking(run)), Told::Thinking(more)) => run.push_str(more),
            (_, Told::Refusal(text)) => runs.push(Told::Text(text.clone())),
            (_, told) => runs.push(told.clone()),
        }
    }
    runs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn answer_equals_its_deltas(
        options in options(),
        payloads in vec(payload(), 0..10),
    ) {
        let outcome = run(options, payloads);
        let said = blocks(&outcome.told);
        // Text before and after a call is two blocks, and one run of deltas.
        let mut words: Vec<Told> = Vec::new();
        for block in &outcome.answer.blocks {
            match block {
                ContentBlock::Text(block) => words.push(Told::Text(block.text.clone())),
                ContentBlock::Thinking(block) => words.push(Told::Thinking(block.thinking.clone())),
                _ => {}
            }
        }
        let of_blocks = joined(&words);
        prop_assert!(of_blocks.iter().all(|run| !matches!(run, Told::Text(text) if text.is_empty())));
        prop_assert_eq!(of_blocks, joined(&said));
        outcome.check_starts();
        let problems: Vec<_> = outcome.told.iter().filter_map(|told| match told {
            Told::Problem(problem) => Some(problem.clone()),
            _ => None,
        }).collect();
        // What explains an error stands before it in the answer.
        let sorted = |problems: Vec<Problem>| {
            let mut list: Vec<String> = problems.iter().map(|problem| format!("{problem:?}")).collect();
            list.sort_unstable();
            list
        };
        prop_assert_eq!(sorted(problems), sorted(outcome.answer.problems));
    }

    #[test]
    fn finishing_twice_changes_nothing(options in options(), payloads in vec(payload(), 0..6)) {
        let mut aggregator = Aggregator::with_options(options);
        for payload in &payloads {
            let _ = aggregator.push(payload);
        }
        let _ = aggregator.finish();
        let mut told = Vec::new();
        drain(&mut aggregator, &mut told);
        aggregator.finish().unwrap();
        prop_assert!(aggregator.next_delta().is_none());
        prop_assert_eq!(aggregator.into_answer(), run(options, payloads).answer);
    }

    #[test]
    fn no_deltas_after_the_answer_is_taken(
        options in options(),
        payloads in vec(payload(), 0..6),
    ) {
        let mut aggregator = Aggregator::with_options(options);
        for payload in &payloads {
            let _ = aggregator.push(payload);
        }
        prop_assert_eq!(aggregator.take_answer(), run(options, &payloads).answer);
        prop_assert!(aggregator.next_delta().is_none());
        for payload in &payloads {
            let _ = aggregator.push(payload);
        }
        prop_assert!(aggregator.next_delta().is_none());
        prop_assert!(aggregator.finish().is_ok() && aggregator.take_answer().is_empty());
    }

    #[test]
    fn timing_of_next_delta_does_not_matter(options in options(), payloads in vec(payload(), 0..6)) {
        let mut aggregator = Aggregator::with_options(options);
        for payload in &payloads {
            aggregator.push(payload).unwrap();
        }
        aggregator.finish().unwrap();
        let mut told = Vec::new();
        drain(&mut aggregator, &mut told);
        let outcome = run(options, &payloads);
        prop_assert_eq!(told, outcome.told);
        prop_assert_eq!(aggregator.into_answer(), outcome.answer);
    }

    #[test]
    fn payloads_after_done_are_ignored(
        before in vec(payload(), 0..4),
        after in vec(payload(), 0..4),
        done in select(vec!["[DONE]", " [DONE]", "[DONE]\r\n"]),
    ) {
        let mut aggregator = Aggregator::new();
        for payload in &before {
            let _ = aggregator.push(payload);
        }
        prop_assert_eq!(aggregator.push(done.as_bytes()).unwrap(), StreamStatus::Done);
        let mut told = Vec::new();
        drain(&mut aggregator, &mut told);
        let late = [text("late"), fragment(r#""index":9,"id":"late""#), finish("late")];
        for payload in after.iter().map(Vec::as_slice).chain(late.iter().map(String::as_bytes)) {
            prop_assert_eq!(aggregator.push(payload).unwrap(), StreamStatus::Done);
            prop_assert!(aggregator.next_delta().is_none());
        }
        let alone: Vec<Vec<u8>> = [&before[..], &[done.as_bytes().to_vec()]].concat();
        prop_assert_eq!(aggregator.into_answer(), run(Options::default(), alone).answer);
    }
}

#[test]
fn endless_nesting_is_a_problem() {
    for open in [
        "[",
        "{\"a\":",
        "{\"choices\":[",
        "{\"error\":[",
        "{\"choices\":[{\"delta\":{\"content\":[",
    ] {
        let outcome = run(Options::default(), [open.repeat(100_000), text("still here")]);
        assert_eq!(outcome.answer.problems.len(), 1, "{open}");
        assert_eq!(outcome.text(), "still here");
    }
}
