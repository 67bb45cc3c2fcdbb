//! Streams whose parts are held back, compared or extended: each byte is examined once. If one of these took quadratic
//! time, its test would take minutes.

use oa_aggregate::{Aggregator, ContentBlock, Options, ThinkTags};

use crate::{delta, drain, finish, fragment, text};

const MANY: usize = 16_000;

/// Returns the answer as text, with thinking in brackets.
fn answer(options: Options, payloads: impl IntoIterator<Item = String>) -> String {
    let mut aggregator = Aggregator::with_options(options);
    for payload in payloads {
        aggregator.push(payload.as_bytes()).expect("the answer is within the limits");
        drain(&mut aggregator, &mut Vec::new());
    }
    let blocks = aggregator.into_answer().blocks;
    let show = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Thinking(thinking) => format!("[{}]", thinking.thinking),
        ContentBlock::ToolUse(call) => format!("{}({})", call.name, call.input),
        _ => format!("{block:?}"),
    };
    blocks.iter().map(show).collect()
}

fn thinking(words: &str) -> String {
    delta(&format!(r#""reasoning":"{words}""#))
}

fn marked(words: &str) -> String {
    let mark = r#""extra_content":{"google":{"thought":true}}"#;
    delta(&format!(r#""content":"{words}",{mark}"#))
}

fn message(members: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"message":{{{members}}}}}]}}"#)
}

/// White space that no delta before it begins with, in many deltas.
fn spaces() -> (String, impl Iterator<Item = String>) {
    let space = " ".repeat(200);
    let deltas = [text("\n")].into_iter().chain((0..MANY).map({
        let space = space.clone();
        move |_| text(&space)
    }));
    (format!("\n{}", space.repeat(MANY)), deltas)
}

#[test]
fn white_space_before_a_tag() {
    let mut options = Options::default();
    options.quirks.think_tags = ThinkTags::StartsInThinking;
    let (_, deltas) = spaces();
    assert_eq!(answer(options, deltas.chain([text("<think>a</think>b")])), "[a]b");
    let (space, deltas) = spaces();
    assert_eq!(answer(options, deltas.chain([text("<thin air")])), format!("[{space}<thin air]"));
    let (space, deltas) = spaces();
    assert_eq!(answer(options, deltas), format!("[{space}]"));
}

#[test]
fn white_space_after_marked_thinking() {
    let thought = || [marked("<thought>a"), text("\n")].into_iter();
    let (_, deltas) = spaces();
    assert_eq!(
        answer(Options::default(), thought().chain(deltas).chain([text("</thought>b")])),
        "[a]b"
    );
    let (space, deltas) = spaces();
    let expected = format!("[a]\n{space}b");
    assert_eq!(answer(Options::default(), thought().chain(deltas).chain([text("b")])), expected);
}

#[test]
fn white_space_in_marked_thinking() {
    let space = " ".repeat(200);
    let deltas =
        (0..MANY).map(|_| marked(&space)).chain([marked("<thought>a"), text("</thought>b")]);
    assert_eq!(answer(Options::default(), deltas), "[a]b");
}

#[test]
fn repeated_thinking_with_white_space() {
    let space = " ".repeat(200);
    let spaces = space.repeat(MANY);
    let tail = |deltas: Vec<String>, end: &str| {
        let spaces = (0..MANY).map(|_| text(&space));
        answer(Options::default(), deltas.into_iter().chain(spaces).chain([text(end)]))
    };
    // Around it, and in it.
    assert_eq!(tail(vec![thinking("a"), text("<think>")], "a</think>b"), "[a]b");
    assert_eq!(tail(vec![thinking("a"), text("<think>a")], "</think>b"), "[a]b");
    let words = format!("{spaces}a{spaces}z");
    let begin = vec![thinking(&words), text("<think>a")];
    assert_eq!(tail(begin.clone(), "z</think>b"), format!("[{words}]b"));
    assert_eq!(tail(begin, "y</think>b"), format!("[{words}]<think>a{spaces}y</think>b"));
}

#[test]
fn messages_after_deltas() {
    let space = " ".repeat(200 * MANY);
    let text_and_space = format!("a b{space}");
    let repeated = (0..MANY).map(|_| message(r#""content":"b""#));
    assert_eq!(
        answer(Options::default(), [text(&text_and_space)].into_iter().chain(repeated)),
        text_and_space
    );
    let parts = || (0..MANY).flat_map(|_| [text("word "), thinking("x")]);
    let repeated = (0..MANY).map(|_| message(r#""content":"word""#));
    let new = [message(&format!(r#""content":"{}!""#, "word ".repeat(MANY)))];
    assert_eq!(
        answer(Options::default(), parts().chain(repeated).chain(new)),
        "word [x]".repeat(MANY) + "!"
    );
}

#[test]
fn messages_after_calls() {
    let space = " ".repeat(200 * MANY);
    let call = |space: &str| {
        format!(
            r#""tool_calls":[{{"index":0,"function":{{"name":"f","arguments":"{{}}{space}"}}}}]"#
        )
    };
    let repeated = (0..MANY).map(|_| message(&call("")));
    assert_eq!(
        answer(Options::default(), [delta(&call(&space))].into_iter().chain(repeated)),
        "f({})"
    );
}

#[test]
fn names_in_pieces() {
    let piece = |number: usize| {
        fragment(&format!(r#""index":0,"function":{{"name":"piece{:0>40}<"}}"#, number))
    };
    let names: String = (0..MANY).map(|number| format!("piece{number:0>40}<")).collect();
    let end = [fragment(r#""index":0,"function":{"name":"|end|>"}"#), finish("tool_calls")];
    let expected = format!("{}({{}})", names.strip_suffix('<').expect("it ends with one"));
    assert_eq!(answer(Options::default(), (0..MANY).map(piece).chain(end)), expected);
}
