//! An answer takes no more memory than its limit, because memory is counted before it is taken.

use allocation_counter::measure;
use oa_aggregate::{Aggregator, ArgumentRepair, ErrorKind, Limits, Options, TextMode, ThinkTags};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::{delta, finish, fragment, run, text};

/// The memory that is held in any case: templates, buffers, room for a short text.
const FIXED: u64 = 256 << 10;

/// JSON of which each byte takes much memory.
fn heavy_json(size: usize) -> Vec<(&'static str, String)> {
    let repeated = |piece: &str| vec![piece; size / piece.len() + 1].join(",");
    vec![
        ("numbers", format!("[{}]", repeated("0"))),
        ("empty lists", format!("[{}]", repeated("[]"))),
        ("lists of one", format!("[{}]", repeated("[0]"))),
        ("lists of five", format!("[{}]", repeated("[0,0,0,0,0]"))),
        ("objects of one", format!("[{}]", repeated(r#"{"":0}"#))),
        ("deep lists", format!("[{}]", repeated(&format!("{}{}", "[".repeat(99), "]".repeat(99))))),
        (
            "deep objects",
            format!("[{}]", repeated(&format!("{}0{}", r#"{"":"#.repeat(99), "}".repeat(99)))),
        ),
        ("strings", format!("[{}]", repeated(r#""a""#))),
        ("escapes", format!(r#"["{}"]"#, r"\u0001".repeat(size / 6))),
        ("members", {
            let members: Vec<String> = (0..size / 9).map(|n| format!(r#""{n:x}":0"#)).collect();
            format!("[{{{}}}]", members.join(","))
        }),
        ("members backwards", {
            let members: Vec<String> =
                (0..size / 11).rev().map(|n| format!(r#""{n:06x}":0"#)).collect();
            format!("[{{{}}}]", members.join(","))
        }),
        ("one long name", format!(r#"[{{"{}":0}}]"#, "n".repeat(size))),
    ]
}

/// Streams that a server may send without end, each time one payload of about so many bytes.
const MEMBERS: [&str; 39] = [
    "text",
    "text of completions",
    "cumulative text",
    "words in turns",
    "thinking",
    "thinking of structure",
    "cumulative thinking",
    "thinking again in text",
    "marked thoughts",
    "blanks behind a thought",
    "refusal",
    "parts",
    "thinking parts",
    "blanks",
    "messages behind deltas",
    "arguments",
    "pieces of arguments",
    "calls",
    "names",
    "late names",
    "ids",
    "members of a call",
    "extra",
    "opaque",
    "details",
    "details of one index",
    "cumulative details",
    "other details",
    "blocks",
    "blocks of thinking",
    "blocks that are signed",
    "choices",
    "errors",
    "errors of choices",
    "errors as a whole",
    "errors by name",
    "error codes",
    "finish reasons",
    "unreadable",
];

/// A payload of which the framing says that it is an error begins with this.
const BY_NAME: char = '!';

fn payload(member: &str, number: usize, json: &str) -> String {
    let size = json.len();
    let string = Value::from(json);
    let long = "x".repeat(size);
    let list = |item: &str| vec![item; size / item.len() + 1].join(",");
    match member {
        "text" => text(&long),
        "text of completions" => format!(r#"{{"choices":[{{"text":{string}}}]}}"#),
        "cumulative text" => text(&long.repeat(number + 1)),
        "words in turns" => {
            let pairs = list(r#"{"text":"a","thinking":"b"}"#);
            delta(&format!(r#""content":[{pairs}]"#))
        }
        "thinking" => delta(&format!(r#""reasoning":{string}"#)),
        "thinking of structure" => delta(&format!(
            r#""reasoning_content":[{{"text":{string}}}],"reasoning":{{"text":{string}}}"#
        )),
        "cumulative thinking" => {
            delta(&format!(r#""reasoning_text":"{}""#, long.repeat(number + 1)))
        }
        "thinking again in text" => match number {
            0 => delta(&format!(r#""reasoning":"{}""#, "x".repeat(3 * size))),
            1 => text(&format!("<think>{long}")),
            _ => text(&long),
        },
        "marked thoughts" => {
            let mark = r#""extra_content":{"google":{"thought":true}}"#;
            delta(&format!(r#""content":"<thought>{long}",{mark}"#))
        }
        "blanks behind a thought" => {
            let mark = r#","extra_content":{"google":{"thought":true}}"#;
            let blanks = " ".repeat(size);
            let mark = if number == 0 { mark } else { "" };
            delta(&format!(r#""content":"{blanks}"{mark}"#))
        }
        "refusal" => delta(&format!(r#""refusal":{string}"#)),
        "parts" => delta(&format!(r#""content":[{}]"#, list(r#""a""#))),
        "thinking parts" => {
            delta(&format!(r#""content":[{{"thinking":[{}]}}]"#, list(r#"{"text":"a"}"#)))
        }
        "blanks" => text(&" ".repeat(size)),
        "messages behind deltas" if number == 0 => delta(r#""content":"a","reasoning":"b""#),
        "messages behind deltas" => format!(
            r#"{{"choices":[{{"message":{{"content":"{number}{long}","reasoning":"{number}{long}","refusal":"{number}"}}}}]}}"#
        ),
        "arguments" => {
            let arguments = Value::from(format!(r#"{{"a":{json}}}"#));
            fragment(&format!(
                r#""index":{number},"id":"c{number}","function":{{"name":"f","arguments":{arguments}}}"#
            ))
        }
        "pieces of arguments" => {
            let pieces = list(r#"{"index":0,"function":{"name":"f","arguments":"1"}}"#);
            delta(&format!(r#""tool_calls":[{pieces}]"#))
        }
        "calls" => {
            let calls: Vec<String> = (0..size / 40)
                .map(|call| format!(r#"{{"index":{call},"function":{{"name":"f{number}"}}}}"#))
                .collect();
            delta(&format!(r#""tool_calls":[{}]"#, calls.join(",")))
        }
        "names" => fragment(&format!(r#""index":0,"function":{{"name":"{number}{long}"}}"#)),
        "late names" => fragment(&format!(
            r#""index":0,"function":{{"name":"{number}{long}","arguments":"{{"}}"#
        )),
        "ids" => fragment(&format!(
            r#""index":{number},"id":"{number}{long}","function":{{"name":"f"}}"#
        )),
        "members of a call" => fragment(&format!(r#""index":0,"x{number}":{json}"#)),
        "extra" => delta(&format!(r#""extra_content":{json}"#)),
        "opaque" => delta(&format!(r#""reasoning_opaque":{string}"#)),
        "details" => delta(&format!(r#""reasoning_details":[{json}]"#)),
        "details of one index" => {
            delta(&format!(r#""reasoning_details":[{{"index":0,"type":"t","text":{string}}}]"#))
        }
        "cumulative details" => {
            let whole = long.repeat(number + 1);
            delta(&format!(r#""reasoning_details":[{{"index":0,"type":"t","text":"{whole}"}}]"#))
        }
        "other details" => delta(&format!(r#""reasoning_details":{json}"#)),
        "choices" => format!(r#"{{"choices":[{}]}}"#, list("{}")),
        "blocks" => delta(&format!(
            r#""thinking_blocks":[{{"type":"redacted_thinking","data":{json}}},{{"b":{json}}}]"#
        )),
        "blocks of thinking" => {
            let block = format!(r#"{{"type":"thinking","thinking":{string},"more":{json}}}"#);
            delta(&format!(r#""thinking_blocks":[{block},{block}]"#))
        }
        "blocks that are signed" => {
            let blocks = list(&format!(r#"{{"type":"thinking","signature":"{number}"}}"#));
            delta(&format!(r#""thinking_blocks":[{{"signature":"{number}{long}"}},{blocks}]"#))
        }
        "errors of choices" => {
            let choice = r#"{"error":{"message":"no"}}"#;
            let choices = list(choice);
            format!(r#"{{"choices":[{{"error":{{"message":"no","loc":{json}}}}},{choices}]}}"#)
        }
        "errors as a whole" => format!(r#"{{"object":"error","message":"no","loc":{json}}}"#),
        "errors by name" => format!(r#"{BY_NAME}{{"message":"no","loc":{json}}}"#),
        "error codes" => format!(r#"{{"error_code":{json}}}"#),
        "errors" => format!(r#"{{"error":{{"message":"no","loc":{json}}}}}"#),
        "finish reasons" => finish(&long),
        _ => format!("no JSON {json}"),
    }
}

fn options(limit: usize, flags: u8) -> Options {
    let mut options = Options::default();
    options.limits.held_bytes = limit;
    options.limits.text_bytes = limit / 4;
    options.limits.argument_bytes = limit / 4;
    options.quirks.text =
        [TextMode::Detect, TextMode::Incremental, TextMode::Cumulative][flags as usize % 3];
    options.quirks.think_tags =
        [ThinkTags::Off, ThinkTags::Split, ThinkTags::StartsInThinking][flags as usize / 3 % 3];
    options.quirks.repair = [ArgumentRepair::Off, ArgumentRepair::On][flags as usize / 9 % 2];
    options
}

/// The most bytes that are held while an answer is read, and in which history is as good as made.
fn most_held(options: Options, payloads: &[String]) -> u64 {
    let cost = measure(|| {
        let mut aggregator = Aggregator::with_options(options);
        for payload in payloads {
            let pushed = match payload.strip_prefix(BY_NAME) {
                Some(payload) => aggregator.push_error(payload.as_bytes()),
                None => aggregator.push(payload.as_bytes()),
            };
            if pushed.is_err() {
                break;
            }
            while aggregator.next_delta().is_some() {}
        }
        let _ = aggregator.finish();
        while aggregator.next_delta().is_some() {}
        let message = oa_types::AssistantMessage::from(aggregator.into_answer());
        let history = message.clone();
        // What runs, what it runs with, and what is shown of it.
        let calls = || {
            let is_call = |block: &&oa_types::ContentBlock| {
                !matches!(
                    block,
                    oa_types::ContentBlock::Text(_) | oa_types::ContentBlock::Thinking(_)
                )
            };
            message.content.iter().filter(is_call).cloned().collect::<Vec<_>>()
        };
        std::hint::black_box((&history, calls(), calls(), calls()));
    });
    cost.bytes_max
}

#[test]
fn no_payload_exceeds_the_memory_limit() {
    const LIMIT: usize = 2 << 20;
    let mut beyond = Vec::new();
    for size in [100, 32 << 10, 256 << 10] {
        for (shape, json) in heavy_json(size) {
            for member in MEMBERS {
                // Most say the same whatever the JSON is.
                let is_json = ["members", "extra", "details", "error", "arguments", "blocks"]
                    .iter()
                    .any(|word| member.contains(word));
                if !is_json && shape != "numbers" {
                    continue;
                }
                let count = if size == 100 { 300 } else { 6 };
                let payloads: Vec<String> =
                    (0..count).map(|number| payload(member, number, &json)).collect();
                for flags in if is_json { vec![0, 9] } else { (0..9).collect() } {
                    let held = most_held(options(LIMIT, flags), &payloads);
                    let longest = payloads.iter().map(String::len).max().unwrap_or_default() as u64;
                    let most = LIMIT as u64 * 3 / 2 + FIXED;
                    if held > most {
                        beyond
                            .push(format!("{member} of {shape}, {longest} bytes, {flags}: {held}"));
                    }
                }
            }
        }
    }
    assert!(beyond.is_empty(), "{beyond:#?}");
}

#[test]
fn oversized_arguments_break_only_their_call() {
    let mut options = Options::default();
    options.limits.held_bytes = 1 << 20;
    let call = |number: usize, json: &str| {
        let arguments = Value::from(json);
        fragment(&format!(
            r#""index":{number},"id":"c{number}","function":{{"name":"f","arguments":{arguments}}}"#
        ))
    };
    let heavy = format!(r#"{{"a":[{}0]}}"#, "0,".repeat(20_000));
    for heavy in [heavy.clone(), Value::from(heavy).to_string()] {
        let outcome = run(
            options,
            [call(0, "{}"), call(1, &heavy), call(2, r#"{"b":1}"#), finish("tool_calls")],
        );
        assert_eq!(outcome.error, None);
        let blocks = outcome.blocks();
        let lines: Vec<&str> = blocks.lines().collect();
        assert_eq!((lines[0], lines[2]), ("call c0 f {}", r#"call c2 f {"b":1}"#));
        assert!(lines[1].starts_with("error "), "{}", &lines[1][..80]);
    }
}

/// Each piece repeats the one before, and joined they look like one long string.
#[test]
fn resent_arguments_are_counted() {
    let mut options = options(1 << 20, 1);
    options.limits.argument_bytes = 1 << 20;
    let whole = format!(r#"{{"a":[{}0]}}"#, "0,".repeat(100_000));
    let piece = |arguments: &str| {
        let arguments = Value::from(arguments);
        fragment(&format!(
            r#""index":0,"id":"c","function":{{"name":"f","arguments":{arguments}}}"#
        ))
    };
    let payloads = [piece("{\"a"), piece(&whole), finish("tool_calls")];
    assert!(run(options, &payloads).blocks().starts_with("error "));
    assert!(most_held(options, &payloads) < 3 << 19);
}

#[test]
fn excess_ends_the_answer_and_names_the_limit() {
    let mut options = Options::default();
    options.limits.held_bytes = 1 << 20;
    let heavy = format!("[{}0]", "0,".repeat(20_000));
    let payloads = [
        delta(&format!(r#""extra_content":{heavy}"#)),
        delta(&format!(r#""reasoning_details":{heavy}"#)),
        delta(&format!(r#""content":{}"#, heavy.replace('0', r#""a""#))),
        text(&"x".repeat(900_000)),
    ];
    for payload in payloads {
        let outcome = run(options, [text("so"), payload]);
        assert_eq!(outcome.error, Some(ErrorKind::AnswerTooLarge));
        assert!(outcome.text().starts_with("so"));
    }
    let mut aggregator = Aggregator::with_options(options);
    let error = aggregator.push(text(&"x".repeat(900_000)).as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "the answer takes more memory than the limit of 1048576 bytes");
}

#[test]
fn default_memory_fits_the_other_limits() {
    let Limits { text_bytes, argument_bytes, .. } = Limits::default();
    // Each is unlike the one before: otherwise they would be taken for repeats.
    let piece = |number: usize| text(&format!("{number:08}{}", "x".repeat(992)));
    let mut words: Vec<String> = (0..text_bytes / 1_000).map(piece).collect();
    assert_eq!(run(Options::default(), &words).error, None);
    // Beyond it the limit of text is the one that is named.
    words.push(piece(0));
    assert_eq!(run(Options::default(), &words).error, Some(ErrorKind::TextTooLong));
    let content = Value::from("x".repeat(argument_bytes - 100));
    let arguments = Value::from(format!(r#"{{"content":{content}}}"#));
    let call = fragment(&format!(
        r#""index":0,"id":"c","function":{{"name":"f","arguments":{arguments}}}"#
    ));
    let outcome = run(Options::default(), [call, finish("tool_calls")]);
    assert!(outcome.blocks().starts_with("call c f"), "{:?}", outcome.error);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_answer_exceeds_the_memory_limit(
        flags in 0..18_u8,
        limit in 100_000..2_000_000_usize,
        list in vec((0..MEMBERS.len(), 0..12_usize, 1..30_000_usize), 1..12),
    ) {
        let payload = |(number, (member, shape, size)): (usize, &(usize, usize, usize))| {
            payload(MEMBERS[*member], number, &heavy_json(*size)[*shape].1)
        };
        let payloads: Vec<String> = list.iter().enumerate().map(payload).collect();
        let longest = payloads.iter().map(String::len).max().unwrap_or_default() as u64;
        let held = most_held(options(limit, flags), &payloads);
        // Beside the answer there is its latest payload without its escapes.
        prop_assert!(held <= limit as u64 * 3 / 2 + longest + FIXED, "{held} bytes");
    }
}
