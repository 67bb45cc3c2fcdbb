//! Memory use of one answer, from its bytes to history, for any content that a server can send.

use allocation_counter::measure;
use insta::assert_snapshot;
use oa_aggregate::ThinkTags;
use oa_chat::{Limits, RetryConfig, ToolMode};
use oa_client::{AgentOptions, Client};
use oa_testkit::{Cut, MemoryServer, Reply, Script};
use oa_types::ContentBlock;
use serde_json::Value;

/// The memory budget of these tests; other limits have their default proportion to it.
const BUDGET: usize = 8 << 20;

/// The allowance for everything held besides an answer: client, connection, templates. In bytes.
const FIXED: u64 = 256 << 10;

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.answer.held_bytes = BUDGET;
    limits.answer.text_bytes = BUDGET / 4;
    limits.answer.argument_bytes = BUDGET / 16;
    limits.events.event_bytes = BUDGET / 8;
    limits
}

/// JSON of about this size in which each byte takes much memory.
fn heavy(size: usize) -> String {
    let list = |item: &str| vec![item; size / 4 / (item.len() + 1)].join(",");
    let escapes = r"\u0001\n".repeat(size / 32);
    format!(r#"[[{}],[{}],[{}],"{escapes}"]"#, list("0"), list(r#"{"":0}"#), list("[[0]]"))
}

fn delta(members: &str) -> String {
    format!(r#"{{"id":"a","model":"m","choices":[{{"index":0,"delta":{{{members}}}}}]}}"#)
}

fn call(number: usize, name: &str, arguments: &str) -> String {
    let arguments = Value::from(arguments);
    delta(&format!(
        r#""tool_calls":[{{"index":{number},"id":"c{number}","function":{{"name":"{name}","arguments":{arguments}}}}}]"#
    ))
}

/// Bodies that fill an answer with one kind of content, in events of maximal or small size.
fn bodies() -> Vec<(&'static str, String)> {
    let size = BUDGET / 8 - 4_096;
    let json = heavy(size - 4_096);
    let arguments = format!(r#"{{"a":{}}}"#, heavy(BUDGET / 16 - 8_192));
    let long = "x".repeat(size / 2);
    let list = |item: &str| vec![item; size / (item.len() + 1)].join(",");
    let numbers = list("0");
    let events = |count: usize, event: &dyn Fn(usize) -> String| {
        let events: Vec<String> = (0..count).map(|n| format!("data: {}\n\n", event(n))).collect();
        events.concat()
    };
    let content = |text: &str| delta(&format!(r#""content":{}"#, Value::from(text)));
    vec![
        ("text", events(8, &|_| content(&long))),
        (
            "text in small pieces",
            events(40_000, &|n| content(&format!("{n} is a number of many. "))),
        ),
        ("thinking", events(8, &|_| delta(&format!(r#""reasoning_content":"{long}""#)))),
        (
            "escaped text",
            events(4, &|_| delta(&format!(r#""content":"{}""#, r"\n\u00e9".repeat(size / 8)))),
        ),
        ("refusal", events(8, &|_| delta(&format!(r#""refusal":"{long}""#)))),
        (
            "words in turns",
            events(40_000, &|n| {
                delta(if n % 2 == 0 { r#""content":"a""# } else { r#""reasoning":"a""# })
            }),
        ),
        ("parts", events(2, &|_| delta(&format!(r#""content":[{}]"#, list(r#""a""#))))),
        (
            "arguments",
            events(128, &|n| if n < 24 { call(n, "f", &arguments) } else { call(n, "f", "{}") }),
        ),
        ("arguments of text", {
            let text = format!(r#"{{"a":"{}"}}"#, "x".repeat(BUDGET / 16 - 64));
            events(40, &|n| call(n, "f", &text))
        }),
        ("broken arguments", events(128, &|n| call(n, "f", &"[0,".repeat(6_000)))),
        ("arguments in bytes", events(100_000, &|n| call(0, if n == 0 { "f" } else { "" }, "1"))),
        (
            "arguments in a string",
            events(8, &|n| call(n, "f", &Value::from(&*arguments).to_string())),
        ),
        ("names", events(8, &|n| call(n, &long, "{}"))),
        (
            "ids",
            events(8, &|n| {
                delta(&format!(
                    r#""tool_calls":[{{"index":{n},"id":"{n}{long}","function":{{"name":"f"}}}}]"#
                ))
            }),
        ),
        (
            "members of calls",
            events(8, &|n| {
                delta(&format!(
                    r#""tool_calls":[{{"index":{n},"function":{{"name":"f"}},"extra_content":{json}}}]"#
                ))
            }),
        ),
        ("members of messages", events(8, &|_| delta(&format!(r#""extra_content":{json}"#)))),
        ("details", events(8, &|_| delta(&format!(r#""reasoning_details":{json}"#)))),
        (
            "details in pieces",
            events(40_000, &|_| {
                delta(
                    r#""reasoning_details":[{"index":0,"type":"t","text":"some of a longer text"}]"#,
                )
            }),
        ),
        (
            "details of one number each",
            events(8, &|_| delta(&format!(r#""reasoning_details":[{numbers}]"#))),
        ),
        ("opaque reasoning", events(8, &|_| delta(&format!(r#""reasoning_opaque":"{long}""#)))),
        (
            "thinking of structure",
            events(8, &|_| delta(&format!(r#""reasoning":[{{"text":"{long}"}},"{long}"]"#))),
        ),
        (
            "cumulative thinking",
            events(8, &|n| {
                let whole = "x y".repeat((n + 1) * size / 64);
                delta(&format!(r#""reasoning_text":"{whole}""#))
            }),
        ),
        (
            "thinking again in words",
            events(8, &|n| match n {
                0..3 => delta(&format!(r#""reasoning":"{long}""#)),
                3 => content(&format!("<think>{long}")),
                _ => content(&long),
            }),
        ),
        (
            "marked thoughts",
            events(8, &|n| {
                let mark = r#","extra_content":{"google":{"thought":true}}"#;
                let blanks = " ".repeat(size / 2);
                delta(&format!(r#""content":"{blanks}"{}"#, if n < 2 { mark } else { "" }))
            }),
        ),
        (
            "signed blocks",
            events(8, &|n| {
                let block = format!(r#"{{"type":"thinking","thinking":"{n}","signature":{json}}}"#);
                delta(&format!(r#""thinking_blocks":[{block},{{"data":{json}}}]"#))
            }),
        ),
        (
            "blocks of thinking",
            events(8, &|_| {
                delta(&format!(r#""thinking_blocks":[{{"type":"thinking","thinking":"{long}"}}]"#))
            }),
        ),
        (
            "cumulative details",
            events(8, &|n| {
                let whole = "x y".repeat((n + 1) * size / 64);
                delta(&format!(
                    r#""reasoning_details":[{{"index":0,"type":"t","text":"{whole}"}}]"#
                ))
            }),
        ),
        ("late names", events(64, &|n| call(0, &format!("{n}{}", &long[..size / 4]), "{"))),
        (
            "messages behind deltas",
            events(8, &|n| match n {
                0 => content("a"),
                _ => format!(r#"{{"choices":[{{"message":{{"content":"{n}{long}"}}}}]}}"#),
            }),
        ),
        (
            "errors of choices",
            events(8, &|_| {
                let error = r#"{"error":{"message":"no"}}"#;
                format!(r#"{{"choices":[{}]}}"#, list(error))
            }),
        ),
        (
            "errors as a whole",
            events(64, &|_| format!(r#"{{"object":"error","message":"no","loc":{json}}}"#)),
        ),
        (
            "errors by name",
            (0..64).map(|_| format!("event: error\ndata: {{\"loc\":{json}}}\n\n")).collect(),
        ),
        ("ids of answers", events(8, &|_| format!(r#"{{"id":"{long}","model":"{long}"}}"#))),
        ("choices", events(8, &|_| format!(r#"{{"choices":[{}]}}"#, list("{}")))),
        (
            "probabilities",
            events(8, &|_| {
                format!(r#"{{"choices":[{{"delta":{{"content":"a"}},"logprobs":{json}}}]}}"#)
            }),
        ),
        ("usage", events(8, &|_| format!(r#"{{"choices":[],"usage":{{"extra":{json}}}}}"#))),
        ("errors", events(64, &|_| format!(r#"{{"error":{{"message":"no","loc":{json}}}}}"#))),
        (
            "finish reasons",
            events(8, &|_| {
                format!(r#"{{"choices":[{{"delta":{{"content":"a"}},"finish_reason":"{long}"}}]}}"#)
            }),
        ),
        ("unreadable events", events(64, &|_| format!("[{long}"))),
        (
            "repeated members",
            events(8, &|_| {
                let piece = r#""content":"a\n","extra_content":[0,0,0,0]"#;
                delta(&list(piece))
            }),
        ),
        (
            "events with names",
            (0..8)
                .map(|n| format!("event: {long}\nid: {n}{long}\ndata: {}\n\n", content("a")))
                .collect(),
        ),
        ("lines of data", events(1, &|_| content("a")) + &"data: 1\n".repeat(BUDGET / 64) + "\n"),
        ("comments", format!(": {long}\n").repeat(16) + &events(1, &|_| content("a"))),
        ("a document", {
            let parts = list(r#"{"text":"a"}"#);
            format!(
                r#"{{"choices":[{{"message":{{"content":[{parts}]}},"finish_reason":"stop"}}]}}"#
            )
        }),
        ("a document with a call", {
            let arguments = Value::from(&*arguments);
            format!(
                r#"{{"choices":[{{"message":{{"tool_calls":[{{"id":"c","function":{{"name":"f","arguments":{arguments}}}}}]}},"finish_reason":"tool_calls"}}]}}"#
            )
        }),
        (
            "calls in text",
            events(24, &|_| {
                content(&format!(
                    "<tool_call>{{\"name\": \"f\", \"arguments\": {arguments}}}</tool_call>\n"
                ))
            }),
        ),
        ("calls of text in text", {
            let text = "it's, ".repeat(BUDGET / 16 / 7);
            events(8, &|_| {
                content(&format!(
                    "<tool_call>{{\"name\": \"f\", \"arguments\": {{\"a\": \"{text}\"}}}}</tool_call>\n"
                ))
            })
        }),
        (
            "other calls in text",
            events(24, &|_| content(&format!("Action: f(a={json})\nObservation: "))),
        ),
    ]
}

/// Returns the peak memory of a client that asks once, in bytes, and the outcome.
fn asked(
    body: &str,
    set: impl Fn(oa_client::AgentOptionsBuilder) -> oa_client::AgentOptionsBuilder,
) -> (u64, String) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime is there");
    let reply = Reply::sse(body.as_bytes().to_vec()).cut(Cut::Every(64 << 10));
    let server = MemoryServer::new(Script::from(vec![reply]));
    let options = AgentOptions::builder().model("any").transport(server).limits(limits());
    let options = set(options.retry(RetryConfig::none())).build().expect("these can work");
    let mut client = Client::new(options).expect("there is a model");
    let mut ended = String::new();
    let cost = measure(|| {
        ended = runtime.block_on(async {
            if let Err(error) = client.send("Go.").await {
                return format!("{:?}: {error}", error.kind());
            }
            let (mut text, mut calls, mut broken) = (0, 0, 0);
            loop {
                match client.receive().await {
                    Ok(Some(ContentBlock::Text(block))) => text += block.text.len(),
                    Ok(Some(ContentBlock::ToolUse(_))) => calls += 1,
                    Ok(Some(ContentBlock::ToolUseError(_))) => broken += 1,
                    Ok(Some(_)) => {}
                    Ok(None) => return format!("{text} bytes, {calls} calls, {broken} broken"),
                    Err(error) => return format!("{:?}: {error}", error.kind()),
                }
            }
        });
    });
    (cost.bytes_max, ended)
}

/// The peak is at most one and a half times the budget.
#[test]
fn answers_stay_within_memory_budget() {
    let (mut beyond, mut outcomes) = (Vec::new(), Vec::new());
    for (name, body) in bodies() {
        let modes: [(
            &str,
            &dyn Fn(oa_client::AgentOptionsBuilder) -> oa_client::AgentOptionsBuilder,
        ); 4] = [
            ("plain", &|options| options),
            ("lenient", &|options| options.lenient_tool_json(true).think_tags(ThinkTags::Split)),
            ("tagged", &|options| {
                options.tool_mode(ToolMode::TaggedJson).tool(suite::talk::echo())
            }),
            ("react", &|options| options.tool_mode(ToolMode::React).tool(suite::talk::echo())),
        ];
        for (mode, set) in modes {
            let is_text = name.contains("text");
            if mode != "plain" && !is_text && !name.contains("arguments") {
                continue;
            }
            let (held, ended) = asked(&body, set);
            println!("{name}, {mode}: {:.2} times", held as f64 / BUDGET as f64);
            let ended: String = ended.chars().take(40).collect();
            outcomes.push(format!("{name}, {mode}: {}", ended.trim_end()));
            if held > BUDGET as u64 * 3 / 2 + FIXED {
                beyond.push(format!("{name}, {mode}: {held}"));
            }
        }
    }
    assert!(beyond.is_empty(), "{beyond:#?}");
    // An answer that is rejected early takes little memory, so the outcomes count too.
    assert_snapshot!(outcomes.join("\n"), @"
    text, plain: Limit: the answer takes more memory than
    text, lenient: Limit: the answer takes more memory than
    text, tagged: Limit: the answer takes more memory than
    text, react: Limit: the answer takes more memory than
    text in small pieces, plain: 1068890 bytes, 0 calls, 0 broken
    text in small pieces, lenient: 1068890 bytes, 0 calls, 0 broken
    text in small pieces, tagged: Limit: the answer takes more memory than
    text in small pieces, react: Limit: the answer takes more memory than
    thinking, plain: Limit: the answer takes more memory than
    escaped text, plain: 391680 bytes, 0 calls, 0 broken
    escaped text, lenient: 391680 bytes, 0 calls, 0 broken
    escaped text, tagged: Limit: the answer takes more memory than
    escaped text, react: Limit: the answer takes more memory than
    refusal, plain: Limit: the text of the answer is longer
    words in turns, plain: Limit: the answer takes more memory than
    parts, plain: Limit: the answer takes more memory than
    arguments, plain: Limit: the answer takes more memory than
    arguments, lenient: Limit: the answer takes more memory than
    arguments, tagged: Limit: the answer takes more memory than
    arguments, react: Limit: the answer takes more memory than
    arguments of text, plain: Limit: the answer takes more memory than
    arguments of text, lenient: Limit: the answer takes more memory than
    arguments of text, tagged: Limit: the answer takes more memory than
    arguments of text, react: Limit: the answer takes more memory than
    broken arguments, plain: 0 bytes, 0 calls, 128 broken
    broken arguments, lenient: 0 bytes, 0 calls, 128 broken
    broken arguments, tagged: Limit: the answer takes more memory than
    broken arguments, react: Limit: the answer takes more memory than
    arguments in bytes, plain: 0 bytes, 0 calls, 1 broken
    arguments in bytes, lenient: 0 bytes, 0 calls, 1 broken
    arguments in bytes, tagged: 0 bytes, 0 calls, 1 broken
    arguments in bytes, react: 0 bytes, 0 calls, 1 broken
    arguments in a string, plain: Limit: the arguments of a tool call are
    arguments in a string, lenient: Limit: the arguments of a tool call are
    arguments in a string, tagged: Limit: the arguments of a tool call are
    arguments in a string, react: Limit: the arguments of a tool call are
    names, plain: Limit: the answer takes more memory than
    ids, plain: Limit: the answer takes more memory than
    members of calls, plain: Limit: the answer takes more memory than
    members of messages, plain: Limit: the answer takes more memory than
    details, plain: Limit: the answer takes more memory than
    details in pieces, plain: 0 bytes, 0 calls, 0 broken
    details of one number each, plain: Limit: the answer takes more memory than
    opaque reasoning, plain: Stream: the stream ended without an answ
    thinking of structure, plain: Limit: the answer takes more memory than
    cumulative thinking, plain: 0 bytes, 0 calls, 0 broken
    thinking again in words, plain: Limit: the answer takes more memory than
    marked thoughts, plain: Limit: the text of the answer is longer
    signed blocks, plain: Limit: an event is larger than the limit
    blocks of thinking, plain: Limit: the answer takes more memory than
    cumulative details, plain: 0 bytes, 0 calls, 0 broken
    late names, plain: Limit: the answer takes more memory than
    messages behind deltas, plain: Limit: the text of the answer is longer
    errors of choices, plain: Limit: the answer takes more memory than
    errors as a whole, plain: Api: the server reported an error: the s
    errors by name, plain: Api: the server reported an error: the s
    ids of answers, plain: Stream: the stream ended without an answ
    choices, plain: Limit: the answer takes more memory than
    probabilities, plain: 8 bytes, 0 calls, 0 broken
    usage, plain: Stream: the stream ended without an answ
    errors, plain: Api: the server reported an error: the s
    finish reasons, plain: 8 bytes, 0 calls, 0 broken
    unreadable events, plain: Stream: no part of the answer could be r
    repeated members, plain: Limit: the answer takes more memory than
    events with names, plain: 8 bytes, 0 calls, 0 broken
    lines of data, plain: 1 bytes, 0 calls, 0 broken
    comments, plain: 1 bytes, 0 calls, 0 broken
    a document, plain: 80344 bytes, 0 calls, 0 broken
    a document with a call, plain: 0 bytes, 0 calls, 1 broken
    calls in text, plain: Limit: the answer takes more memory than
    calls in text, lenient: Limit: the answer takes more memory than
    calls in text, tagged: Limit: the answer takes more memory than
    calls in text, react: Limit: the answer takes more memory than
    calls of text in text, plain: Limit: the answer takes more memory than
    calls of text in text, lenient: Limit: the answer takes more memory than
    calls of text in text, tagged: Limit: the answer takes more memory than
    calls of text in text, react: Limit: the answer takes more memory than
    other calls in text, plain: Limit: an event is larger than the limit
    other calls in text, lenient: Limit: an event is larger than the limit
    other calls in text, tagged: Limit: an event is larger than the limit
    other calls in text, react: Limit: an event is larger than the limit
    ");
}

/// A regression: four calls of 4 MB took more than a gigabyte.
#[test]
fn calls_of_many_numbers_have_bounded_memory() {
    let numbers = format!(r#"{{"a":[{}0]}}"#, "0,".repeat((4 << 20) / 2 - 8));
    let calls: String =
        (0..4).map(|number| format!("data: {}\n\n", call(number, "f", &numbers))).collect();
    let whole = format!("data: {}\n\n", call(4, "f", r#"{"b":1}"#));
    let (held, ended) = asked(&(calls + &whole), |options| options.limits(Limits::default()));
    assert_eq!(ended, "0 bytes, 1 calls, 4 broken");
    assert!(held < 3 * (32 << 20), "{held} bytes");
}
