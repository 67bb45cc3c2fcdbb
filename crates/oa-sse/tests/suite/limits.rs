//! Everything a peer can make the parser hold is limited, and the parser continues after an excess.

use oa_sse::{ErrorKind, Frame, Limits, Parser};

use crate::{End, Seen, run};

fn small() -> Parser {
    let mut limits = Limits::default();
    limits.event_bytes = 32;
    Parser::with_limits(limits)
}

fn event(data: &str) -> Seen {
    Seen::Event { event: "message".into(), data: data.into(), id: String::new() }
}

#[test]
fn oversized_event_is_one_error() {
    let long = "x".repeat(100);
    for input in [
        format!("data: {long}\ndata: more\n\ndata: next\n\n"),
        format!("{}\ndata: next\n\n", "data: 0123456789\n".repeat(5)),
        format!("event: {long}\ndata: a\n\ndata: next\n\n"),
        format!(": {long}\n\ndata: next\n\n"),
    ] {
        for size in [1, 7, 1000] {
            let (seen, _) = run(small(), input.as_bytes().chunks(size), End::Strict);
            assert_eq!(seen, [Seen::TooLarge, event("next")], "{input:?} in {size}s");
        }
    }
}

#[test]
fn limit_applies_to_events_not_reads() {
    let input = "data: 0123456789\n\n".repeat(100);
    let (seen, _) = run(small(), [input.as_bytes()], End::Strict);
    assert_eq!(seen, vec![event("0123456789"); 100]);
}

#[test]
fn default_limit_is_eight_mebibytes() {
    assert_eq!(Parser::new().limits().event_bytes, 8 * 1024 * 1024);
}

#[test]
fn huge_line_is_held_within_the_limit() {
    let chunk = bytes::Bytes::from(vec![b'x'; 64 * 1024]);
    let mut parser = Parser::new();
    let mut errors = 0;
    let held = allocation_counter::measure(|| {
        parser.push("data: ".into());
        for _ in 0..1600 {
            parser.push(chunk.clone());
            match parser.next_event() {
                Ok(event) => assert!(event.is_none()),
                Err(error) => {
                    errors += 1;
                    assert_eq!(error.kind(), ErrorKind::EventTooLarge);
                    assert_eq!(
                        error.to_string(),
                        "an event is larger than the limit of 8388608 bytes"
                    );
                }
            }
        }
    });
    assert_eq!(errors, 1);
    // The buffer doubles as it grows, so at most the old half and the new whole exist at once.
    assert!(held.bytes_max <= 3 * 8 * 1024 * 1024, "{} bytes", held.bytes_max);
    parser.push("\n\ndata: after\n\n".into());
    assert_eq!(parser.next_event().unwrap().unwrap().data(), "after");
}

#[test]
fn huge_buffers_are_freed() {
    let line = "y".repeat(4 << 20);
    for field in ["data: ", "event: "] {
        let mut parser = Parser::new();
        let left = allocation_counter::measure(|| {
            parser.push(field.into());
            parser.push(line.clone().into());
            assert!(parser.next_event().unwrap().is_none());
            parser.push("\ndata:\n\n: \n".into());
            let event = parser.next_event().unwrap().unwrap();
            assert!(event.raw_data().len().max(event.event().len()) >= line.len());
            assert!(parser.next_event().unwrap().is_none());
            parser.push(bytes::Bytes::new());
        });
        assert!(left.bytes_current <= 1 << 20, "{} bytes after {field}", left.bytes_current);
    }
}

#[test]
fn line_breaks_in_fields_are_rejected() {
    let mut out = Vec::new();
    for frame in
        [Frame::new("x").event("a\nb"), Frame::new("x").id("a\rb"), Frame::new("x").id("a\0b")]
    {
        let error = frame.write_to(&mut out).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LineBreakInField);
    }
    assert!(out.is_empty());
}
