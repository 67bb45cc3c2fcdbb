//! Events whose lines are payloads of their own (QUIRKS row 123).

use oa_aggregate::{Aggregator, Options, Problem, StreamStatus};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::{drain, finish, fragment, run, text};

/// Joins payloads as a parser joins the data lines of one event.
fn in_events(payloads: &[String], sizes: &[usize]) -> Vec<String> {
    let (mut rest, mut events) = (payloads, Vec::new());
    for &size in sizes.iter().cycle() {
        if rest.is_empty() {
            return events;
        }
        let (event, behind) = rest.split_at(size.min(rest.len()));
        events.push(event.join("\n"));
        rest = behind;
    }
    events
}

fn payload() -> impl Strategy<Value = String> {
    select(vec![
        text("one "),
        text("two\nlines "),
        fragment(r#""index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}"#),
        fragment(r#""index":0,"function":{"arguments":"1}"}"#),
        r#"{"error":{"message":"busy"}}"#.to_owned(),
        finish("stop"),
        "[DONE]".to_owned(),
    ])
}

proptest! {
    #[test]
    fn lines_of_an_event_are_payloads(
        payloads in vec(payload(), 1..10),
        sizes in vec(1..4_usize, 1..4),
    ) {
        let alone = run(Options::default(), &payloads);
        prop_assert_eq!(run(Options::default(), in_events(&payloads, &sizes)), alone);
    }
}

#[test]
fn json_over_several_lines_is_one_payload() {
    let spread = "{\n\"choices\": [\n{\"delta\":\n{\"content\": \"Hi.\"}\n}\n]\n}";
    assert_eq!(run(Options::default(), [spread]).text(), "Hi.");
    // Broken JSON is reported as a whole, although one of its lines is JSON.
    let broken = run(Options::default(), ["{\n{\"choices\":[]}\n"]);
    assert!(matches!(broken.answer.problems[..], [Problem::Unreadable(_)]));
}

#[test]
fn a_broken_line_hides_no_other() {
    let event = [text("a"), "{\"choices\":".to_owned(), text("b")].join("\n");
    let outcome = run(Options::default(), [event]);
    assert_eq!(outcome.text(), "ab");
    assert!(matches!(outcome.answer.problems[..], [Problem::Unreadable(_)]));
}

#[test]
fn lines_of_an_error_event_are_payloads() {
    let mut aggregator = Aggregator::new();
    let event = [r#"{"message":"busy"}"#, "[DONE]"].join("\n");
    aggregator.push_error(event.as_bytes()).expect("within the limits");
    drain(&mut aggregator, &mut Vec::new());
    let answer = aggregator.into_answer();
    let [Problem::Server(error)] = &answer.problems[..] else { panic!("{:?}", answer.problems) };
    assert_eq!((&*error.message, answer.done), ("busy", true));
}

/// As the pipeline of `oa-chat` reads them.
#[test]
fn lines_without_a_field_are_payloads() {
    let mut aggregator = Aggregator::new();
    let chunk = format!("  {}", text("a"));
    for line in [&*chunk, "error:", r#"error: {"message":"busy"}"#, "errors: {}", "later", ""] {
        assert_eq!(aggregator.push_line(line.as_bytes()).unwrap(), StreamStatus::More, "{line}");
    }
    assert_eq!(aggregator.push(b"[DONE]").unwrap(), StreamStatus::Done);
    assert_eq!(aggregator.push_line(b"later").unwrap(), StreamStatus::Done);
    let answer = aggregator.into_answer();
    let [Problem::Server(error)] = &answer.problems[..] else { panic!("{:?}", answer.problems) };
    assert_eq!((&*error.message, answer.blocks[0].as_text()), ("busy", Some("a")));
}
