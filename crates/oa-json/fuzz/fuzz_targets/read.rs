//! Every reader agrees with serde_json where that reads a text, and with itself however the text is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oa_json::{
    ErrorKind, LenientValue, Limits, ObjectFinder, PartialReader, Result, find_object, read_lenient,
    repair, unescape, unescape_lossy,
};
use serde_json::Value;

/// Pieces of the sizes that `seed` comes to.
fn pieces(text: &str, mut seed: u64) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        let size = ((seed >> 59) as usize).min(rest.len());
        let (piece, behind) = rest.split_at(rest.ceil_char_boundary(size));
        rest = behind;
        Some(piece)
    })
}

/// Reads a text in pieces, and what follows the value.
fn partial<'a>(pieces: impl Iterator<Item = &'a str>, limits: Limits) -> (Result<Value>, String) {
    let mut reader = PartialReader::with_limits(limits);
    let mut rest = String::new();
    for piece in pieces {
        rest.push_str(reader.push(piece));
    }
    (reader.finish(), rest)
}

fn found<'a>(pieces: impl Iterator<Item = &'a str>, limits: Limits) -> Result<Value> {
    let mut finder = ObjectFinder::with_limits(limits);
    pieces.for_each(|piece| finder.push(piece));
    finder.finish()
}

fuzz_target!(|data: &str| {
    let seed = data.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    let mut tight = Limits::default();
    (tight.held_bytes, tight.path_bytes) = ((seed % 4096) as usize, (seed % 32) as usize);
    for limits in [Limits::default(), tight] {
        let whole = partial(std::iter::once(data), limits);
        assert_eq!(partial(pieces(data, seed), limits), whole, "in pieces");
        assert_eq!(partial(data.split_inclusive(|_| true), limits), whole, "in characters");
        let object = find_object(data, limits);
        assert_eq!(found(pieces(data, seed), limits), object, "found in pieces");
        let lenient = read_lenient(data, limits);
        let tree = LenientValue::read(data, limits).and_then(LenientValue::into_value);
        if limits == Limits::default() {
            assert_eq!(lenient.as_ref().ok(), tree.as_ref().ok(), "by a tree");
        }
        let repaired = repair(data, limits);

        let Ok(value) = serde_json::from_str::<Value>(data) else { continue };
        let agree = |read: &Result<Value>| match read {
            Ok(read) => assert_eq!(*read, value),
            Err(error) => assert!(
                limits == tight || matches!(error.kind(), ErrorKind::Duplicate | ErrorKind::TooLarge),
                "{error}"
            ),
        };
        agree(&whole.0);
        agree(&repaired);
        if limits == Limits::default() {
            assert!(repaired.is_ok());
        }
        // A long integer is refused there, and so is a name that comes twice.
        if let Ok(lenient) = lenient {
            assert_eq!(lenient, value);
        }
    }
    let theirs = serde_json::from_str::<String>(&format!("\"{data}\"")).ok();
    assert_eq!(unescape(data).ok().map(String::from), theirs);
    let mut lossy = String::new();
    unescape_lossy(data, &mut lossy);
    if let Some(theirs) = theirs {
        assert_eq!(lossy, theirs);
    }
});
