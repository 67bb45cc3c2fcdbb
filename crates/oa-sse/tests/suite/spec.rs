//! The standard's examples and corner cases, one by one.

use std::time::Duration;

use insta::assert_debug_snapshot;
use oa_sse::{Frame, Parser};

use crate::{End, Seen, run};

fn events(input: &str, end: End) -> Vec<String> {
    let (seen, _) = run(Parser::new(), [input.as_bytes()], end);
    seen.into_iter()
        .map(|seen| match seen {
            Seen::Event { event, data, id } => format!("{event}|{id}|{data}"),
            other => format!("{other:?}"),
        })
        .collect()
}

#[track_caller]
fn check(input: &str, expected: &[&str]) {
    assert_eq!(events(input, End::Strict), expected);
}

#[test]
fn standard_stock_ticker_example() {
    check("data: YHOO\ndata: +2\ndata: 10\n\n", &["message||YHOO\n+2\n10"]);
}

#[test]
fn standard_four_blocks_example() {
    let input = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n";
    let (seen, parser) = run(Parser::new(), [input.as_bytes()], End::Strict);
    assert_debug_snapshot!(seen, @r#"
    [
        Comment(
            [
                116,
                101,
                115,
                116,
                32,
                115,
                116,
                114,
                101,
                97,
                109,
            ],
        ),
        Event {
            event: "message",
            data: "first event",
            id: "1",
        },
        Event {
            event: "message",
            data: "second event",
            id: "",
        },
    ]
    "#);
    assert_eq!(parser.last_event_id(), "");
}

#[test]
fn empty_data_is_an_event() {
    check("data\n\ndata\ndata\n\ndata:", &["message||", "message||\n"]);
    check("event: ping\n\ndata: x\n\n", &["message||x"]);
}

#[test]
fn exactly_one_space_is_stripped() {
    check(
        "data:test\n\ndata: test\n\ndata:  test\n\n",
        &["message||test", "message||test", "message|| test"],
    );
    check("data:\ttab\n\n", &["message||\ttab"]);
}

#[test]
fn line_ends_may_be_mixed() {
    check("data: a\r\ndata: b\rdata: c\n\r\n", &["message||a\nb\nc"]);
    check("data: a\r\r", &["message||a"]);
    check("data: a\n\rdata: b\r\n\n", &["message||a", "message||b"]);
}

#[test]
fn lone_cr_ends_the_line_at_once() {
    let mut parser = Parser::new();
    parser.push("data: a\r\r".into());
    assert_eq!(parser.next_event().unwrap().unwrap().data(), "a");
    assert!(parser.next_event().unwrap().is_none());
    parser.push("\ndata: b\n\n".into());
    assert_eq!(parser.next_event().unwrap().unwrap().data(), "b");
}

#[test]
fn only_one_byte_order_mark_is_skipped() {
    check("\u{feff}data: a\n\n", &["message||a"]);
    check(
        "\u{feff}\u{feff}data: a\n\n",
        &[r"Unknown([239, 187, 191, 100, 97, 116, 97, 58, 32, 97])"],
    );
    check("data: \u{feff}a\n\n", &["message||\u{feff}a"]);
}

#[test]
fn half_a_byte_order_mark_is_a_line() {
    for (input, expected) in
        [(&b"\xef"[..], &b"\xef"[..]), (b"\xef\xbb", b"\xef\xbb"), (b"\xef\xbbx", b"\xef\xbbx")]
    {
        let (seen, _) = run(Parser::new(), [input], End::Lenient);
        assert_eq!(seen, [Seen::Unknown(expected.to_vec())]);
    }
}

#[test]
fn event_and_id_are_cleared_by_empty_values() {
    check("event: x\nevent:\ndata: a\n\n", &["message||a"]);
    check(
        "id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
        &["message|7|a", "message|7|b", "message||c"],
    );
}

#[test]
fn an_id_with_nul_is_ignored() {
    check("id: 1\nid: 2\0 3\ndata: a\n\n", &["message|1|a"]);
}

#[test]
fn blocks_without_data_set_id_and_retry() {
    let (seen, parser) = run(Parser::new(), [&b"id: 9\nretry: 1500\n\n"[..]], End::Strict);
    assert!(seen.is_empty());
    assert_eq!(parser.last_event_id(), "9");
    assert_eq!(parser.retry(), Some(Duration::from_millis(1500)));
}

#[test]
fn id_of_unfinished_block_is_dropped() {
    let (_, parser) = run(Parser::new(), [&b"id: 1\n\nid: 2\n"[..]], End::Strict);
    assert_eq!(parser.last_event_id(), "1");
}

#[test]
fn retry_takes_digits_only() {
    for (input, expected) in [
        ("retry: 10\n\n", Some(10)),
        ("retry: 10\nretry: 1x\n\n", Some(10)),
        ("retry: -1\n\n", None),
        ("retry\n\n", None),
        ("retry: 99999999999999999999999\n\n", Some(u64::MAX)),
    ] {
        let (_, parser) = run(Parser::new(), [input.as_bytes()], End::Strict);
        assert_eq!(parser.retry(), expected.map(Duration::from_millis), "{input:?}");
    }
}

#[test]
fn invalid_utf8_is_replaced() {
    let (seen, _) =
        run(Parser::new(), [&b"event: \xff\ndata: a\xc3\ndata: \xf0\x9f\x99\n\n"[..]], End::Strict);
    let expected = Seen::Event {
        event: "\u{fffd}".into(),
        data: "a\u{fffd}\n\u{fffd}".into(),
        id: String::new(),
    };
    assert_eq!(seen, [expected]);
}

#[test]
fn lenient_end_delivers_unfinished_block() {
    for input in ["data: a\n\ndata: b", "data: a\n\ndata: b\n"] {
        assert_eq!(events(input, End::Strict), ["message||a"]);
        assert_eq!(events(input, End::Lenient), ["message||a", "message||b"]);
    }
}

#[test]
fn unknown_lines_are_items() {
    check(
        "{\"error\": \"x\"}\ndatax: y\n\n",
        &[
            "Unknown([123, 34, 101, 114, 114, 111, 114, 34, 58, 32, 34, 120, 34, 125])",
            "Unknown([100, 97, 116, 97, 120, 58, 32, 121])",
        ],
    );
}

#[test]
fn chunks_pushed_together_are_queued() {
    let mut parser = Parser::new();
    for chunk in ["data: a", "b\n", "\nda", "ta: c\n\n"] {
        parser.push(chunk.into());
    }
    parser.finish();
    assert_eq!(parser.next_event().unwrap().unwrap().data(), "ab");
    assert_eq!(parser.next_event().unwrap().unwrap().data(), "c");
    assert!(parser.next_event().unwrap().is_none());
}

#[test]
fn block_survives_comment_at_chunk_end() {
    let mut parser = Parser::new();
    parser.push("event: x\ndata: first\n: comment\n".into());
    assert!(matches!(parser.next_item().unwrap(), Some(oa_sse::Item::Comment(b"comment"))));
    parser.push("\n".into());
    let event = parser.next_event().unwrap().unwrap();
    assert_eq!((&*event.event(), &*event.data()), ("x", "first"));
}

#[test]
fn next_stream_discards_untaken_events() {
    let mut parser = Parser::new();
    parser.push("data: taken\n\ndata: left\n\ndata: last".into());
    assert_eq!(parser.next_event().unwrap().unwrap().data(), "taken");
    parser.finish_lenient();
    parser.push("data: other\n\n".into());
    assert_eq!(parser.next_event().unwrap().unwrap().data(), "other");
    assert!(parser.next_event().unwrap().is_none());
}

#[test]
fn last_event_id_survives_the_end() {
    let (_, parser) = run(Parser::new(), [&b"id: 4\ndata: a\n\ndata: lost"[..]], End::Strict);
    let (seen, _) = run(parser, ["\u{feff}data: b\n\n".as_bytes()], End::Strict);
    assert_eq!(seen, [Seen::Event { event: "message".into(), data: "b".into(), id: "4".into() }]);
}

#[test]
fn line_breaks_start_further_comments() {
    for (text, comments) in [("", ": \n\n"), ("a\r\nb\rc\n", ": a\n: b\n: c\n: \n\n")] {
        let mut out = Vec::new();
        Frame::write_comment(text, &mut out);
        assert_eq!(out, comments.as_bytes());
    }
}
