//! Bounds on memory and work, for any text.

use allocation_counter::measure;
use oa_json::{
    ErrorKind, LenientValue, Limits, ObjectFinder, PartialReader, find_object, held, read_lenient,
    repair, unescape, unescape_lossy,
};
use proptest::prelude::*;
use serde_json::json;

use crate::near_json;

/// JSON of which each byte takes much memory.
pub(crate) fn heavy_json(size: usize) -> Vec<(&'static str, String)> {
    let repeated = |piece: &str| vec![piece; size / piece.len() + 1].join(",");
    vec![
        ("numbers", format!("[{}]", repeated("0"))),
        ("empty lists", format!("[{}]", repeated("[]"))),
        ("lists of one", format!("[{}]", repeated("[0]"))),
        ("lists of five", format!("[{}]", repeated("[0,0,0,0,0]"))),
        ("empty objects", format!("[{}]", repeated("{}"))),
        ("objects of one", format!("[{}]", repeated(r#"{"":0}"#))),
        ("deep lists", format!("[{}]", repeated(&format!("{}{}", "[".repeat(99), "]".repeat(99))))),
        (
            "deep objects",
            format!("[{}]", repeated(&format!("{}0{}", r#"{"":"#.repeat(99), "}".repeat(99)))),
        ),
        ("strings", format!("[{}]", repeated(r#""a""#))),
        ("empty strings", format!("[{}]", repeated(r#""""#))),
        ("escapes", format!(r#"["{}"]"#, r"\u0001".repeat(size / 6))),
        ("one long string", format!(r#"["{}"]"#, "x".repeat(size))),
        ("one long number", format!("[0.{}]", "1".repeat(size.min(300)))),
        ("members", {
            let members: Vec<String> = (0..size / 9).map(|n| format!(r#""{n:x}":0"#)).collect();
            format!("[{{{}}}]", members.join(","))
        }),
        ("members backwards", {
            let members: Vec<String> =
                (0..size / 11).rev().map(|n| format!(r#""{n:06x}":0"#)).collect();
            format!("[{{{}}}]", members.join(","))
        }),
        ("one long name", format!(r#"[{{"{}":0}}]"#, "n".repeat(size))),
    ]
}

fn limits(held_bytes: usize) -> Limits {
    let mut limits = Limits::default();
    (limits.held_bytes, limits.path_bytes) = (held_bytes, 1 << 20);
    limits
}

/// Pushes an ASCII text in pieces of this many bytes.
fn push(reader: &mut PartialReader, text: &str, size: usize) {
    (0..text.len()).step_by(size).for_each(|at| {
        _ = reader.push(&text[at..text.len().min(at + size)]);
    });
}

/// A way to read a text whole, which returns why it could not.
type Way = (&'static str, fn(&str, Limits) -> Option<ErrorKind>);

const WAYS: [Way; 6] = [
    ("partial, by bytes", |text, limits| {
        let mut reader = PartialReader::with_limits(limits);
        push(&mut reader, text, 1);
        reader.finish().err().map(|error| error.kind())
    }),
    ("partial, whole", |text, limits| {
        let mut reader = PartialReader::with_limits(limits);
        reader.push(text);
        reader.finish().err().map(|error| error.kind())
    }),
    ("find", |text, limits| find_object(text, limits).err().map(|error| error.kind())),
    ("repair", |text, limits| repair(text, limits).err().map(|error| error.kind())),
    ("lenient", |text, limits| read_lenient(text, limits).err().map(|error| error.kind())),
    ("lenient tree", |text, limits| {
        LenientValue::read(text, limits).err().map(|error| error.kind())
    }),
];

#[test]
fn memory_stays_within_the_limit() {
    const LIMIT: usize = 1 << 20;
    for (way, read) in WAYS {
        for (shape, json) in heavy_json(1 << 20) {
            let json = format!("{{\"a\":{json}}}");
            let mut error = None;
            let cost = measure(|| error = read(&json, limits(LIMIT)));
            // What grows holds its old and its new room for a moment.
            let most = LIMIT as u64 * 3 / 2 + 4096;
            assert!(cost.bytes_max <= most, "{way}, {shape}: {} bytes", cost.bytes_max);
            if shape == "numbers" {
                assert_eq!(error, Some(ErrorKind::TooLarge), "{way}");
            }
        }
    }
}

/// A limit that is large enough refuses nothing: counts are not wild.
#[test]
fn values_within_the_limit_are_read() {
    for (way, read) in WAYS {
        for (shape, json) in heavy_json(10_000) {
            let json = format!("{{\"a\":{json}}}");
            let limits = limits(held::by_json(&json) + 3 * json.len() + 256);
            assert_eq!(read(&json, limits), None, "{way}, {shape}");
        }
    }
}

/// Texts that make a careless reader look at everything again and again.
fn nuisances(size: usize) -> Vec<(&'static str, String)> {
    let mut texts = heavy_json(size);
    texts.extend([
        ("open strings", "\"a".repeat(size / 2)),
        ("quotes within quotes", format!("\"{}\"", "'".repeat(size))),
        ("backslashes", format!("\"{}\"", "\\".repeat(size))),
        ("surrogates", format!("\"{}\"", r"\ud83d".repeat(size / 6))),
        ("comments", format!("[{}1]", "/**/ // \n".repeat(size / 9))),
        ("an open comment", format!("[1{}", "/* ".repeat(size / 3))),
        ("commas", format!("[{}", ",".repeat(size))),
        ("white space", format!("[{}", " \n".repeat(size / 2))),
        ("a long word", format!("[{}", "a".repeat(size))),
        ("fences", "`".repeat(size)),
        ("thinking", format!("<think>{}", "</think".repeat(size / 7))),
        ("braces", "{\"a\":1} {".repeat(size / 9)),
        ("words", format!("{{{}}}", "a:Oslo,".repeat(size / 7))),
    ]);
    texts
}

/// A way to read a text, with what it costs alone.
type Reading = (&'static str, fn(&str));

#[test]
fn work_is_linear_in_the_text() {
    let ways: [Reading; 4] = [
        ("by bytes", |text| {
            let mut finder = ObjectFinder::with_limits(limits(usize::MAX));
            let mut reader = PartialReader::with_limits(limits(usize::MAX));
            for at in 0..text.len() {
                finder.push(&text[at..=at]);
                reader.push(&text[at..=at]);
                let _ = (finder.object().value(), reader.value());
            }
            _ = (finder.finish(), reader.finish());
        }),
        ("repair", |text| _ = repair(text, limits(usize::MAX))),
        ("lenient", |text| {
            _ = read_lenient(text, limits(usize::MAX));
            _ = LenientValue::read(text, limits(usize::MAX));
        }),
        ("escapes", |text| {
            _ = unescape(text);
            unescape_lossy(text, &mut String::new());
        }),
    ];
    for (way, read) in ways {
        let sizes = [5_000, 50_000].map(nuisances);
        for ((shape, short), (_, long)) in sizes[0].iter().zip(&sizes[1]) {
            let cost = |text: &str| measure(|| read(text)).bytes_total;
            let (few, many) = (cost(short), cost(long));
            assert!(many <= 20 * few + 4096, "{way}, {shape}: {few} and {many} bytes");
        }
    }
}

#[test]
fn long_paths_are_rejected_early() {
    let name = "n".repeat(4096);
    let read = |text: &str| {
        let mut reader = PartialReader::new();
        reader.push(text);
        reader.finish()
    };
    // Names are bounded on one path, not in all.
    let beside = format!("[{{\"{name}\": 1}}, {{\"{name}\": 2}}]");
    assert_eq!(read(&beside).unwrap()[1], json!({ &*name: 2 }));
    let error = read(&format!("{{\"a\": {{\"{name}\": 1}}}}")).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::TooLarge, "a"));
    assert_eq!(error.to_string(), "`a`: the path to this value is longer than 4096 bytes");
    let mut reader = PartialReader::new();
    reader.push("{\"");
    let long = "n".repeat(1 << 20);
    let cost = measure(|| push(&mut reader, &long, 100));
    assert!(cost.bytes_max < 3 * 4096, "{} bytes", cost.bytes_max);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_panics(text in near_json(), held_bytes in 0..4_000_usize) {
        for limits in [Limits::default(), limits(held_bytes)] {
            for (way, read) in WAYS {
                if text.is_ascii() || way != "partial, by bytes" {
                    read(&text, limits);
                }
            }
        }
        _ = unescape(&text);
        unescape_lossy(&text, &mut String::new());
    }
}
