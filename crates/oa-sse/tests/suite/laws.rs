//! Laws for all streams, however they are cut.

use std::time::Duration;

use oa_sse::{Frame, Limits, Parser};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::{End, Seen, reference, run};

/// Streams of significant pieces with noise between them.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            &b"data: "[..], b"data:", b"data", b"event: ", b"event:", b"id: ", b"id", b"retry: ", b":", b": ",
            b"\n", b"\n", b"\r", b"\r\n", b"\n\n", b"\xef\xbb\xbf", b"\xef", b"\xbb", b"\0", b" ", b"  ",
            b"{\"a\":1}", b"12", b"tick", b"\xc3\xa9", b"\xc3", b"\xf0\x9f\x99\x82", b"\xff", b"other: x",
        ])
        .prop_map(<[u8]>::to_vec),
        1 => vec(any::<u8>(), 0..6),
    ];
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Streams of whole blocks as servers send them, with occasional oddities.
fn blocks() -> impl Strategy<Value = Vec<u8>> {
    let line_end = prop::sample::select(vec!["\n", "\r\n", "\r"]);
    let name = prop::sample::select(vec![
        "",
        "event: tick",
        "event:x",
        "id: 7",
        ": note",
        "retry: 5",
        "odd",
    ]);
    let data = prop::sample::select(vec![
        "data: {\"a\":1}",
        "data:x",
        "data",
        "data: \u{e9}\u{1f642}",
        "data: ",
    ]);
    let more = prop::sample::select(vec!["", "", "", "data: second", "event: late", "id"]);
    let block =
        (name, data, more, line_end, 0..2_usize).prop_map(|(name, data, more, end, blanks)| {
            let lines = [name, data, more].into_iter().filter(|line| !line.is_empty());
            let lines: String = lines.map(|line| format!("{line}{end}")).collect();
            format!("{lines}{}", end.repeat(1 + blanks)).into_bytes()
        });
    vec(block, 0..12).prop_map(|blocks| blocks.concat())
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Strict), Just(End::Lenient)]
}

/// Cuts `input` at these positions (modulo its length).
fn cut<'a>(input: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).collect();
    cuts.sort_unstable();
    let mut start = 0;
    let mut chunks: Vec<&[u8]> = cuts
        .into_iter()
        .map(|cut| {
            let chunk = &input[start..cut];
            start = cut;
            chunk
        })
        .collect();
    chunks.push(&input[start..]);
    chunks
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn streams_match_reference_at_any_cut(
        input in prop_oneof![stream(), blocks()],
        cuts in vec(any::<usize>(), 0..12),
        end in end(),
    ) {
        let expected = reference::read(&input, end);
        for chunks in [cut(&input, &cuts), vec![&input[..]], input.chunks(1).collect()] {
            let (seen, parser) = run(Parser::new(), chunks, end);
            // Comments and unknown lines are raw bytes here, but decoded text in the reference.
            let seen: Vec<Seen> = seen.into_iter().map(decoded).collect();
            prop_assert_eq!(&seen, &expected.seen);
            prop_assert_eq!(parser.last_event_id(), &expected.last_event_id);
            prop_assert_eq!(parser.retry(), expected.retry.map(Duration::from_millis));
        }
    }

    /// Only the last event id and the retry time are kept.
    #[test]
    fn reused_parser_reads_like_a_new_one(
        before in prop_oneof![stream(), blocks()],
        input in prop_oneof![stream(), blocks()],
        marks in 0..3_usize,
        cuts in vec(any::<usize>(), 0..6),
        limit in prop_oneof![Just(usize::MAX), 0_usize..24],
        ends in (end(), end()),
        is_drained in any::<bool>(),
    ) {
        let input = ["\u{feff}".repeat(marks).as_bytes(), b"data: a\n\n\xef\xbb\xbf", &input].concat();
        let new = || {
            let mut limits = Limits::default();
            limits.event_bytes = limit;
            Parser::with_limits(limits)
        };
        let mut parser = if is_drained {
            run(new(), cut(&before, &cuts), ends.0).1
        } else {
            let mut parser = new();
            parser.push(before.into());
            let _ = parser.next_item();
            match ends.0 {
                End::Strict => parser.finish(),
                End::Lenient => parser.finish_lenient(),
            }
            parser
        };
        parser.push_slice(b"");
        let last_id = parser.last_event_id().to_owned();
        let with_id = |mut seen: Vec<Seen>| {
            for item in &mut seen {
                if let Seen::Event { id, .. } = item
                    && id.is_empty()
                {
                    id.clone_from(&last_id);
                }
            }
            seen
        };
        let (again, _) = run(parser, cut(&input, &cuts), ends.1);
        let (first, _) = run(new(), cut(&input, &cuts), ends.1);
        prop_assert_eq!(with_id(again), with_id(first));
    }

    #[test]
    fn next_event_returns_all_events(
        input in prop_oneof![stream(), blocks()],
        cuts in vec(any::<usize>(), 0..12),
    ) {
        let (mut items, _) = run(Parser::new(), [&input[..]], End::Lenient);
        items.retain(|item| matches!(item, Seen::Event { .. }));
        let mut parser = Parser::new();
        let mut events = Vec::new();
        let mut drain = |parser: &mut Parser| {
            while let Some(event) = parser.next_event().unwrap() {
                events.push(Seen::Event {
                    event: event.event().into_owned(),
                    data: event.data().into_owned(),
                    id: event.last_event_id().to_owned(),
                });
            }
        };
        for chunk in cut(&input, &cuts) {
            parser.push(chunk.to_vec().into());
            drain(&mut parser);
        }
        parser.finish_lenient();
        drain(&mut parser);
        prop_assert_eq!(events, items);
    }

    #[test]
    fn limit_errors_do_not_depend_on_cuts(
        input in prop_oneof![stream(), blocks()],
        cuts in vec(any::<usize>(), 0..12),
        limit in 0_usize..24,
        end in end(),
    ) {
        let parser = || {
            let mut limits = Limits::default();
            limits.event_bytes = limit;
            Parser::with_limits(limits)
        };
        let (whole, _) = run(parser(), [&input[..]], end);
        let (parts, _) = run(parser(), cut(&input, &cuts), end);
        let (bytes, _) = run(parser(), input.chunks(1), end);
        prop_assert_eq!(&parts, &whole);
        prop_assert_eq!(&bytes, &whole);
        for seen in &whole {
            if let Seen::Event { data, .. } = seen {
                // A replacement character is up to three times as long as what it replaces.
                prop_assert!(data.len() <= 3 * limit + 3);
            }
        }
    }

    /// Short and long texts are validated by different functions.
    #[test]
    fn text_decodes_as_in_std(
        pieces in vec(
            prop_oneof![
                8 => prop::sample::select(vec!["plain text ", "\u{e9}", "\u{20ac}", "\u{1f642}"])
                    .prop_map(|text| text.as_bytes().to_vec()),
                1 => vec(any::<u8>(), 0..3),
            ],
            0..80,
        ),
    ) {
        let mut bytes = pieces.concat();
        bytes.retain(|byte| !matches!(byte, b'\n' | b'\r'));
        let mut parser = Parser::new();
        parser.push([b"data: ", &bytes[..], b"\n\n"].concat().into());
        let event = parser.next_event().unwrap().unwrap();
        prop_assert_eq!(event.data(), String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn parser_reads_encoded_frames(
        frames in vec((any::<String>(), "[^\r\n]{0,8}", "[^\r\n\0]{0,8}", any::<u32>()), 0..8),
        cuts in vec(any::<usize>(), 0..6),
    ) {
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for (data, event, id, retry) in &frames {
            Frame::new(data).event(event).id(id).retry(Duration::from_millis(u64::from(*retry)))
                .write_to(&mut stream).unwrap();
            Frame::write_comment(event, &mut stream);
            expected.push(Seen::Event {
                event: if event.is_empty() { "message".into() } else { event.clone() },
                data: data.replace("\r\n", "\n").replace('\r', "\n"),
                id: id.clone(),
            });
            expected.push(Seen::Comment(event.clone().into_bytes()));
        }
        let (seen, parser) = run(Parser::new(), cut(&stream, &cuts), End::Strict);
        prop_assert_eq!(seen, expected);
        prop_assert_eq!(parser.retry(), frames.last().map(|last| Duration::from_millis(u64::from(last.3))));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Events so large that buffers grow, are swapped and freed.
    #[test]
    fn large_events_match_reference_at_any_cut(
        lines in vec((prop::sample::select(vec!["data: ", "data:", ": ", "event: ", "odd"]), 0..40_000_usize), 1..6),
        blank in 1..4_usize,
        sizes in vec(prop_oneof![1..64_usize, 1_000..20_000_usize], 1..6),
    ) {
        let mut input = Vec::new();
        for (number, (field, size)) in lines.iter().cycle().take(12).enumerate() {
            let text = "a line\tof text, ".bytes().cycle().take(*size);
            input.extend(field.bytes().chain(text));
            input.extend_from_slice(if number % blank == 0 { b"\n\n" } else { b"\r\n" });
        }
        let mut chunks = Vec::new();
        let mut rest = &input[..];
        for size in sizes.iter().cycle() {
            let (chunk, after) = rest.split_at(rest.len().min(*size));
            chunks.push(chunk);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        let (seen, _) = run(Parser::new(), chunks, End::Lenient);
        prop_assert!(seen == reference::read(&input, End::Lenient).seen);
    }
}

fn decoded(seen: Seen) -> Seen {
    let decode = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned().into_bytes();
    match seen {
        Seen::Comment(text) => Seen::Comment(decode(text)),
        Seen::Unknown(line) => Seen::Unknown(decode(line)),
        other => other,
    }
}
