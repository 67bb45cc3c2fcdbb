//! Every limit can be reached, is named in its error, and keeps the output before it.

use oa_aggregate::{
    Aggregator, ErrorKind, Limits, Options, Problem, StreamStatus, TextMode, ThinkTags,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::{Outcome, delta, finish, fragment, run, text};

fn options(set: impl FnOnce(&mut Limits)) -> Options {
    let mut options = Options::default();
    set(&mut options.limits);
    options
}

fn call(number: usize, arguments: &str) -> String {
    let arguments = serde_json::Value::from(arguments);
    fragment(&format!(
        r#""index":{number},"id":"c{number}","function":{{"name":"f","arguments":{arguments}}}"#
    ))
}

fn more(number: usize, arguments: &str) -> String {
    let arguments = serde_json::Value::from(arguments);
    fragment(&format!(r#""index":{number},"function":{{"arguments":{arguments}}}"#))
}

#[track_caller]
fn check(outcome: &Outcome, kind: Option<ErrorKind>, blocks: &str) {
    assert_eq!(outcome.error, kind);
    assert_eq!(outcome.blocks(), blocks);
}

#[test]
fn text_limit_is_exact() {
    let options = options(|limits| limits.text_bytes = 10);
    let thinking = delta(r#""reasoning":"12345""#);
    let refusal = delta(r#""refusal":"no""#);
    let within = run(options, [&thinking, &text("abc"), &refusal]);
    check(&within, None, "thinking \"12345\"\ntext \"abc\"\ntext \"no\"");
    for last in [text("d"), delta(r#""reasoning":"d""#), delta(r#""refusal":"d""#)] {
        let beyond = run(options, [&thinking, &text("abc"), &refusal, &last]);
        let kept = "thinking \"12345\"\ntext \"abc\"\ntext \"no\"";
        check(&beyond, Some(ErrorKind::TextTooLong), kept);
    }
}

#[test]
fn held_back_text_counts() {
    let mut options = options(|limits| limits.text_bytes = 100);
    // Dashes never show that a stream is cumulative.
    let dashes: Vec<String> = (0..60).map(|count| text(&"-".repeat(count + 1))).collect();
    assert_eq!(run(options, &dashes).error, Some(ErrorKind::TextTooLong));
    options.quirks.text = TextMode::Cumulative;
    assert_eq!(run(options, &dashes).error, None);
}

#[test]
fn white_space_before_thinking_counts() {
    let mut options = options(|limits| limits.text_bytes = 100);
    options.quirks.think_tags = ThinkTags::StartsInThinking;
    options.quirks.text = TextMode::Incremental;
    let blanks = vec![text(&" ".repeat(10)); 1_000];
    let mut aggregator = Aggregator::with_options(options);
    let refused = blanks.iter().position(|blank| aggregator.push(blank.as_bytes()).is_err());
    assert_eq!(refused, Some(10), "nothing may be held without a limit");
}

#[test]
fn call_limit_is_exact() {
    let options = options(|limits| limits.calls = 2);
    let calls: Vec<String> = (0..3).map(|number| call(number, "{}")).collect();
    check(&run(options, &calls[..2]), None, "call c0 f {}\ncall c1 f {}");
    let beyond = run(options, &calls);
    check(&beyond, Some(ErrorKind::TooManyCalls), "call c0 f {}\ncall c1 f {}");
}

#[test]
fn argument_limit_is_exact() {
    let options = options(|limits| limits.argument_bytes = 8);
    let within = run(options, [call(0, r#"{"a":"#), more(0, "12}"), finish("tool_calls")]);
    check(&within, None, r#"call c0 f {"a":12}"#);
    // Another call has a limit of its own.
    let within = run(options, [call(0, r#"{"a":12}"#), call(1, r#"{"a":12}"#)]);
    check(&within, None, "call c0 f {\"a\":12}\ncall c1 f {\"a\":12}");
}

#[test]
fn oversized_arguments_never_make_a_call() {
    let options = options(|limits| limits.argument_bytes = 8);
    for list in [vec![call(0, r#"{"a":123}"#)], vec![call(0, r#"{"a":"#), more(0, "123}")]] {
        let list: Vec<String> = [vec![text("so"), call(1, "{}")], list].concat();
        let outcome = run(options, list);
        assert_eq!(outcome.error, Some(ErrorKind::ArgumentsTooLong));
        let blocks = outcome.blocks();
        let lines: Vec<&str> = blocks.lines().collect();
        assert_eq!(lines[..2], ["text \"so\"", "call c1 f {}"]);
        assert!(lines[2..].iter().all(|line| line.starts_with("error ")), "{blocks}");
    }
}

#[test]
fn payloads_after_a_limit_are_rejected() {
    let small = options(|limits| {
        limits.argument_bytes = 8;
        limits.calls = 1;
        limits.text_bytes = 8;
    });
    let causes = [
        (ErrorKind::ArgumentsTooLong, more(0, "123456789")),
        (ErrorKind::TooManyCalls, call(1, "{}")),
        (ErrorKind::TextTooLong, text("123456789")),
    ];
    for (kind, cause) in causes {
        let mut aggregator = Aggregator::with_options(small);
        aggregator.push(call(0, "{").as_bytes()).unwrap();
        assert_eq!(aggregator.push(cause.as_bytes()).unwrap_err().kind(), kind);
        for next in [text("a"), more(0, "}"), more(0, ""), finish("stop")] {
            let refused = aggregator.push(next.as_bytes()).map_err(|error| error.kind());
            assert_eq!(refused, Err(kind), "{next} after {kind:?}");
        }
    }
}

#[test]
fn nothing_grows_without_a_limit() {
    let long = "x".repeat(1_000);
    let kinds: [(&str, &dyn Fn(usize) -> String); 10] = [
        ("text", &|_| text(&long)),
        ("arguments", &|_| more(0, &long)),
        ("names", &|number| {
            fragment(&format!(r#""index":0,"function":{{"name":"{number}{long}"}}"#))
        }),
        ("members of a call", &|number| fragment(&format!(r#""index":0,"x{number}":"{long}""#))),
        ("details", &|_| delta(&format!(r#""reasoning_details":[{{"data":"{long}"}}]"#))),
        ("details of one index", &|_| {
            delta(&format!(r#""reasoning_details":[{{"index":0,"data":"{long}"}}]"#))
        }),
        ("thinking blocks", &|number| {
            let block =
                format!(r#"{{"type":"thinking","thinking":"{long}","signature":"{number}"}}"#);
            delta(&format!(r#""reasoning":"a","thinking_blocks":[{block}]"#))
        }),
        ("signatures", &|_| delta(&format!(r#""reasoning_opaque":"{long}""#))),
        ("text that is marked", &|_| {
            let mark = r#""extra_content":{"google":{"thought":true}}"#;
            delta(&format!(r#""content":"<thought>{long}",{mark}"#))
        }),
        ("text that repeats thinking", &|number| {
            let tag = if number == 0 { "<think>" } else { "" };
            delta(&format!(r#""reasoning":"{long}","content":"{tag}{long}""#))
        }),
    ];
    let options = options(|limits| {
        limits.text_bytes = 10_000;
        limits.argument_bytes = 10_000;
    });
    let grows = |payload: &&(&str, &dyn Fn(usize) -> String)| {
        let cost = allocation_counter::measure(|| {
            let mut aggregator = Aggregator::with_options(options);
            for number in 0..1_000 {
                if aggregator.push(payload.1(number).as_bytes()).is_err() {
                    break;
                }
                while aggregator.next_delta().is_some() {}
            }
        });
        cost.bytes_max > 200_000
    };
    let kinds: Vec<&str> = kinds.iter().filter(grows).map(|kind| kind.0).collect();
    assert!(kinds.is_empty(), "a megabyte is kept of {kinds:?}");
}

#[test]
fn only_the_first_problems_are_kept() {
    let options = options(|limits| limits.problems = 3);
    let bad: Vec<String> = (0..9).map(|number| format!("no JSON {number}")).collect();
    let outcome = run(options, [&bad[..], &[text("still here")]].concat());
    assert_eq!((outcome.error, outcome.text()), (None, "still here".to_owned()));
    let kept: Vec<&str> = outcome
        .answer
        .problems
        .iter()
        .map(|problem| match problem {
            Problem::Unreadable(unreadable) => unreadable.excerpt(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kept, ["no JSON 0", "no JSON 1", "no JSON 2"]);
    assert_eq!(outcome.told.len(), 4);
}

#[test]
fn server_error_is_kept_beyond_problem_limit() {
    let error = r#"{"error":{"message":"out of memory"}}"#.to_owned();
    for most in [0, 3] {
        let options = options(|limits| limits.problems = most);
        let bad: Vec<String> = vec!["ping".into(); 9];
        let outcome = run(options, [&bad[..], &[error.clone(), error.clone()]].concat());
        let errors = outcome.answer.problems.iter().filter(
            |problem| matches!(problem, Problem::Server(error) if error.message == "out of memory"),
        );
        assert_eq!((errors.count(), outcome.answer.problems.len()), (1, most + 1));
    }
}

#[test]
fn alternating_kinds_reach_the_limit_early() {
    let options = options(|limits| limits.text_bytes = 1 << 20);
    let thinking = delta(r#""reasoning":"a""#);
    let payloads = [text("a"), thinking].into_iter().cycle().take(100_000).collect::<Vec<_>>();
    let outcome = run(options, &payloads);
    assert_eq!(outcome.error, Some(ErrorKind::TextTooLong));
    assert_eq!(outcome.answer.blocks.len(), 1024 + (1 << 20) / 64);
}

#[test]
fn long_unreadable_payload_is_cut() {
    let outcome = run(Options::default(), ["é".repeat(10_000)]);
    let Problem::Unreadable(unreadable) = &outcome.answer.problems[0] else { panic!() };
    assert_eq!((unreadable.excerpt(), unreadable.payload().len()), (&*"é".repeat(200), 4096));
}

#[test]
fn long_broken_arguments_are_cut() {
    let outcome = run(Options::default(), [call(0, &"é".repeat(20_000)), finish("stop")]);
    let oa_aggregate::ContentBlock::ToolUseError(error) = &outcome.answer.blocks[0] else {
        panic!()
    };
    assert_eq!(error.raw_data.len(), 16 << 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_answer_is_larger_than_its_limits(
        text_bytes in 0..40_usize,
        argument_bytes in 0..20_usize,
        calls in 0..4_usize,
        list in vec((0..5_u8, 0..4_usize, "[-ab{}\"]{0,12}"), 0..20),
    ) {
        let options = options(|limits| {
            limits.text_bytes = text_bytes;
            limits.argument_bytes = argument_bytes;
            limits.calls = calls;
        });
        let payload = |(kind, number, words): &(u8, usize, String)| {
            let json = serde_json::Value::from(words.as_str());
            match kind {
                0 => text(words),
                1 => delta(&format!(r#""reasoning":{json}"#)),
                2 => delta(&format!(r#""refusal":{json}"#)),
                3 => call(*number, words),
                _ => more(*number, words),
            }
        };
        let outcome = run(options, list.iter().map(payload));
        let (mut words, mut arguments) = (0, vec![0; 4]);
        let mut begun = 0;
        for told in &outcome.told {
            match told {
                crate::Told::Text(text) | crate::Told::Thinking(text) | crate::Told::Refusal(text) => {
                    words += text.len();
                }
                crate::Told::CallStart(..) => begun += 1,
                crate::Told::CallArguments(call, fragment) => arguments[*call] += fragment.len(),
                crate::Told::Problem(_) | crate::Told::PromptProgress(_) => {}
            }
        }
        prop_assert!(words <= text_bytes);
        prop_assert!(begun <= calls);
        prop_assert!(arguments.iter().all(|&bytes| bytes <= argument_bytes));
        let blocks: usize = outcome
            .answer
            .blocks
            .iter()
            .map(|block| match block {
                oa_aggregate::ContentBlock::Text(block) => block.text.len(),
                oa_aggregate::ContentBlock::Thinking(block) => block.thinking.len(),
                _ => 0,
            })
            .sum();
        prop_assert_eq!(blocks, words, "what came before is kept");
    }
}

/// Thinking that fails at once, although half of a character is still held back.
#[test]
fn half_a_character_may_outlive_a_limit() {
    let options = options(|limits| limits.text_bytes = 10);
    let thinking = delta(r#""reasoning":"01234567890\ud83d""#);
    check(&run(options, [thinking]), Some(ErrorKind::TextTooLong), "");
}

/// Marked text that is held back, with half of a character behind it that the limit has no room for.
#[test]
fn text_before_half_a_character_is_released() {
    let options = options(|limits| limits.text_bytes = 2);
    let mark = r#""extra_content":{"google":{"thought":true}}"#;
    let outcome = run(options, [delta(&format!(r#""content":" \ud83d",{mark}"#))]);
    check(&outcome, Some(ErrorKind::TextTooLong), r#"thinking " ""#);
    assert_eq!(outcome.told, [crate::Told::Thinking(" ".to_owned())]);
}

#[test]
fn payloads_after_the_end_are_ignored() {
    let mut aggregator = Aggregator::new();
    aggregator.push(text("a").as_bytes()).unwrap();
    aggregator.finish().unwrap();
    for payload in [text("b"), "no JSON".to_owned()] {
        assert_eq!(aggregator.push(payload.as_bytes()).unwrap(), StreamStatus::Done);
        assert_eq!(aggregator.push_error(payload.as_bytes()).unwrap(), StreamStatus::Done);
    }
    assert!(!aggregator.is_complete(), "the server has reported no end");
    assert_eq!(aggregator.into_answer().blocks.len(), 1);
}

/// Words that are held back, compared or cut, as the contents of a JSON string.
fn pieces() -> impl Strategy<Value = String> {
    let pieces = [
        "a",
        "ab",
        " ",
        r"\n",
        r"\ud83d",
        r"\ude42",
        "<",
        "<think>",
        "</think>",
        "<thought>",
        "</thought>",
        "{",
        "}",
    ];
    vec(prop::sample::select(pieces.to_vec()), 1..5).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Whichever limit ends an answer, and whatever is held back then.
    #[test]
    fn answers_end_well_at_any_limit(
        text_bytes in 0..80_usize,
        held_bytes in prop_oneof![Just(64_usize << 20), 0..8_000_usize],
        mode in prop::sample::select(vec![TextMode::Detect, TextMode::Cumulative, TextMode::Incremental]),
        tags in prop::sample::select(vec![ThinkTags::Off, ThinkTags::Split, ThinkTags::StartsInThinking]),
        list in vec((0..8_u8, pieces()), 1..16),
    ) {
        let mut options = options(|limits| {
            limits.text_bytes = text_bytes;
            limits.held_bytes = held_bytes;
        });
        (options.quirks.text, options.quirks.think_tags) = (mode, tags);
        let payload = |(kind, words): &(u8, String)| match kind {
            0 => delta(&format!(r#""content":"{words}""#)),
            1 => delta(&format!(r#""reasoning":"{words}""#)),
            2 => delta(&format!(r#""reasoning":"{words}","content":"{words}""#)),
            3 => {
                let mark = r#""extra_content":{"google":{"thought":true}}"#;
                delta(&format!(r#""content":"{words}",{mark}"#))
            }
            4 => delta(&format!(r#""refusal":"{words}""#)),
            5 => fragment(&format!(r#""index":0,"function":{{"name":"f","arguments":"{words}"}}"#)),
            6 => delta(&format!(r#""reasoning_details":[{{"index":0,"text":"{words}"}}]"#)),
            _ => delta(&format!(r#""content":"{words}""#)).replace("delta", "message"),
        };
        let outcome = run(options, list.iter().map(payload));
        outcome.check_starts();
        let told = outcome.told.iter().map(|told| match told {
            crate::Told::Text(text) | crate::Told::Refusal(text) | crate::Told::Thinking(text) => text.len(),
            _ => 0,
        });
        let kept = outcome.answer.blocks.iter().map(|block| {
            block.as_text().or_else(|| block.as_thinking()).map_or(0, str::len)
        });
        prop_assert_eq!(told.sum::<usize>(), kept.sum::<usize>());
    }
}

/// Text that is not JSON may still have JSON in its lines, behind a quote.
#[test]
fn errors_of_many_values_are_read_as_text() {
    let values = vec![r#"{"":0}"#; 100_000].join(",");
    for payload in [format!("\"\ndata: [{values}]"), "a ".repeat(350_000)] {
        let cost = allocation_counter::measure(|| {
            let mut aggregator = Aggregator::new();
            aggregator.push_error(payload.as_bytes()).expect("it is within the limits");
            assert_eq!(aggregator.problems().len(), 1);
        });
        assert!(cost.bytes_max < 8 << 20, "{} bytes of {}", cost.bytes_max, payload.len());
    }
}
