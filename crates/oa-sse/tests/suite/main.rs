//! The parser and the encoder through their public interface.

mod adapters;
mod allocations;
mod laws;
mod limits;
mod reference;
mod spec;

use oa_sse::{Item, Parser};

/// An item of a stream, in a form that is easy to compare and read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Seen {
    Event { event: String, data: String, id: String },
    Comment(Vec<u8>),
    Unknown(Vec<u8>),
    TooLarge,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    Strict,
    Lenient,
}

/// Feeds `chunks` to `parser`, some as `Bytes` and some as slices, and collects all items.
pub(crate) fn run<'a>(
    mut parser: Parser,
    chunks: impl IntoIterator<Item = &'a [u8]>,
    end: End,
) -> (Vec<Seen>, Parser) {
    let mut seen = Vec::new();
    for (number, chunk) in chunks.into_iter().enumerate() {
        if (number + chunk.len()).is_multiple_of(2) {
            parser.push_slice(chunk);
        } else {
            parser.push(chunk.to_vec().into());
        }
        drain(&mut parser, &mut seen);
        if chunk.len().is_multiple_of(3) {
            parser.release();
        }
    }
    match end {
        End::Strict => parser.finish(),
        End::Lenient => parser.finish_lenient(),
    }
    drain(&mut parser, &mut seen);
    (seen, parser)
}

fn drain(parser: &mut Parser, seen: &mut Vec<Seen>) {
    loop {
        seen.push(match parser.next_item() {
            Ok(None) => return,
            Ok(Some(Item::Event(event))) => {
                let lent = Seen::Event {
                    event: event.event().into_owned(),
                    data: event.data().into_owned(),
                    id: event.last_event_id().to_owned(),
                };
                assert_eq!(event.data_bytes(), event.raw_data());
                // A replacement may stand for bytes that are no text.
                assert!(event.event().contains('\u{fffd}') || event.is_named(&event.event()));
                assert!(!event.is_named("some other"));
                let owned = event.into_owned();
                let kept = Seen::Event {
                    event: owned.event().into_owned(),
                    data: owned.clone().compact().data().into_owned(),
                    id: owned.last_event_id().to_owned(),
                };
                assert_eq!(lent, kept);
                lent
            }
            Ok(Some(Item::Comment(text))) => Seen::Comment(text.to_vec()),
            Ok(Some(Item::Unknown(line))) => Seen::Unknown(line.to_vec()),
            Ok(Some(_)) => panic!("an item this suite does not know"),
            Err(_) => Seen::TooLarge,
        });
    }
}
