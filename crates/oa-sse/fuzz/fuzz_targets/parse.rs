//! The same events, errors and state however a stream is cut, and no event over the limit.

#![no_main]

use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use oa_sse::{Item, Limits, Parser};

#[derive(Debug, PartialEq)]
enum Seen {
    Event { name: String, data: String, id: String },
    Comment(Vec<u8>),
    Unknown(Vec<u8>),
    TooLarge,
}

#[derive(Debug, PartialEq)]
struct Outcome {
    seen: Vec<Seen>,
    id: String,
    retry: Option<Duration>,
}

#[derive(Clone, Copy)]
enum End {
    Strict,
    Lenient,
}

#[derive(Clone, Copy)]
struct Setup {
    end: End,
    limit: usize,
}

impl Setup {
    fn parser(self) -> Parser {
        let mut limits = Limits::default();
        limits.event_bytes = self.limit;
        Parser::with_limits(limits)
    }

    fn finish(self, parser: &mut Parser) {
        match self.end {
            End::Strict => parser.finish(),
            End::Lenient => parser.finish_lenient(),
        }
    }
}

fn items(setup: Setup, chunks: &[Bytes]) -> Outcome {
    let mut parser = setup.parser();
    let mut seen = Vec::new();
    for chunk in chunks {
        parser.push_slice(chunk);
        drain_items(setup, &mut parser, &mut seen);
    }
    setup.finish(&mut parser);
    drain_items(setup, &mut parser, &mut seen);
    Outcome { seen, id: parser.last_event_id().to_owned(), retry: parser.retry() }
}

fn drain_items(setup: Setup, parser: &mut Parser, seen: &mut Vec<Seen>) {
    loop {
        seen.push(match parser.next_item() {
            Ok(None) => return,
            Ok(Some(Item::Event(event))) => {
                assert!(event.raw_data().len() <= setup.limit);
                Seen::Event {
                    name: event.event().into_owned(),
                    data: event.data().into_owned(),
                    id: event.last_event_id().to_owned(),
                }
            }
            Ok(Some(Item::Comment(text))) => Seen::Comment(text.to_vec()),
            Ok(Some(Item::Unknown(line))) => Seen::Unknown(line.to_vec()),
            Ok(Some(_)) => unreachable!("an item this target does not know"),
            Err(_) => Seen::TooLarge,
        });
    }
}

/// Events alone, pushed all at once and asked for only then.
fn events(setup: Setup, chunks: &[Bytes]) -> Outcome {
    let mut parser = setup.parser();
    let mut seen = Vec::new();
    for chunk in chunks {
        parser.push(chunk.clone());
    }
    setup.finish(&mut parser);
    loop {
        seen.push(match parser.next_event() {
            Ok(None) => break,
            Ok(Some(event)) => {
                let event = event.into_owned().compact();
                Seen::Event {
                    name: event.event().into_owned(),
                    data: event.data().into_owned(),
                    id: event.last_event_id().to_owned(),
                }
            }
            Err(_) => Seen::TooLarge,
        });
    }
    Outcome { seen, id: parser.last_event_id().to_owned(), retry: parser.retry() }
}

/// Pieces of the sizes that `seed` comes to.
fn pieces(stream: &Bytes, mut seed: u64) -> Vec<Bytes> {
    let mut rest = stream.clone();
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        let size = (seed >> 59) as usize;
        // Empty chunks are chunks too.
        pieces.push(rest.split_to(size.min(rest.len())));
    }
    pieces
}

fuzz_target!(|data: &[u8]| {
    let stream = Bytes::copy_from_slice(data);
    let seed = data.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    for limit in [8 << 20, (seed % 48) as usize] {
        for end in [End::Strict, End::Lenient] {
            let setup = Setup { end, limit };
            let whole = items(setup, std::slice::from_ref(&stream));
            let bytes: Vec<Bytes> = (0..stream.len()).map(|at| stream.slice(at..=at)).collect();
            let some = pieces(&stream, seed);
            assert_eq!(items(setup, &bytes), whole, "byte by byte");
            assert_eq!(items(setup, &some), whole, "in pieces");

            let mut of_events = whole;
            of_events.seen.retain(|seen| matches!(seen, Seen::Event { .. } | Seen::TooLarge));
            assert_eq!(events(setup, std::slice::from_ref(&stream)), of_events, "events alone");
            assert_eq!(events(setup, &some), of_events, "events alone, in pieces");
        }
    }
});
