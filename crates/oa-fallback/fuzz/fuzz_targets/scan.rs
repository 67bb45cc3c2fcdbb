//! The same text and calls however an answer is cut, and no more held back than is said.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use oa_fallback::{Constrained, Dialect, Limits, Markers, React, Scanned, Scanner, TaggedJson};
use oa_types::ToolSpec;
use serde_json::json;

#[derive(Debug, Default, PartialEq)]
struct Found {
    text: String,
    calls: Vec<String>,
}

fn tools() -> Arc<[ToolSpec]> {
    let add = json!({"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]});
    let search = json!({"type": "object", "properties": {"query": {"type": "string"}}});
    Arc::new([ToolSpec::new("add", "", add), ToolSpec::new("search", "", search)])
}

fn read<'a>(mut scanner: Scanner, pieces: impl Iterator<Item = &'a str>) -> Found {
    let mut found = Found::default();
    for piece in pieces {
        scanner.push(piece);
        drain(&mut scanner, &mut found);
        assert!(scanner.held_bytes() <= Scanner::MOST_HELD);
    }
    scanner.finish();
    drain(&mut scanner, &mut found);
    found
}

fn drain(scanner: &mut Scanner, found: &mut Found) {
    while let Some(item) = scanner.next_item() {
        match item {
            Scanned::Text(text) => found.text.push_str(text),
            call => found.calls.push(format!("{call:?}")),
        }
    }
}

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

fuzz_target!(|data: &str| {
    let seed = data.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    let mut tight = Limits::default();
    (tight.argument_bytes, tight.calls) = ((seed % 48) as usize, (seed % 3) as usize);
    let dialects: [&dyn Dialect; 5] = [
        &React::new(),
        &Markers::new(),
        &Markers::inline(),
        &TaggedJson::new(),
        &Constrained::new(),
    ];
    for dialect in dialects {
        for limits in [Limits::default(), tight] {
            let scanner = || Scanner::with_limits(dialect.grammar(tools()), limits);
            let whole = read(scanner(), std::iter::once(data));
            let characters = data.split_inclusive(|_| true);
            assert_eq!(read(scanner(), characters), whole, "in characters");
            assert_eq!(read(scanner(), pieces(data, seed)), whole, "in pieces");
            // The label of an answer is not shown, and its text may be encoded.
            let is_labeled = ["final", "answer"].iter().any(|it| data.to_lowercase().contains(it));
            if whole.calls.is_empty() && !is_labeled {
                assert_eq!(whole.text, data, "text stays");
            }
        }
    }
});
