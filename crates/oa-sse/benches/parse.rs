//! Measures how fast the parser reads event streams, compared with its peers in the same run.
//!
//! Each row is a shape of input. Each contender runs in its own process, so that the heap left by one does not
//! affect the next; the processes take turns, and the best time of each counts. The ratios are what matters.
//! `memchr` is a bound: one search for each line end and nothing else. "checked" asks each event for text;
//! "raw" takes its bytes, like a JSON reader that validates UTF-8 itself; the peers offer only checked text.
//! "slices" is checked text from reads into a buffer of the caller's; `sse-core` reads slices too, in its
//! column of that table.
//!
//! A second table counts instructions, if valgrind is installed, for the three shapes that are hard for a
//! parser: reads much smaller than events, events of several reads, and events of hundreds of reads.
//!
//! `cargo bench -p oa-sse` prints the tables.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

#[path = "../../oa-aggregate/benches/instructions.rs"]
#[expect(dead_code, reason = "allocations are counted by a test here")]
mod instructions;

use std::convert::Infallible;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use eventsource_stream::Eventsource;
use futures_util::{Stream, stream};
use oa_sse::Parser;

use crate::instructions::{Valgrind, again, grouped, numbers};

/// A shape of input, with the target ratios to the best peer.
struct Case {
    name: &'static str,
    chunks: Vec<Bytes>,
    events: usize,
    checked: f64,
    raw: f64,
}

type Run = fn(&[Bytes]) -> usize;

const RUNS: [(&str, Run); 8] = [
    ("checked", ours_checked),
    ("raw", ours_raw),
    ("sse-core", sse_core),
    ("sse-stream", sse_stream),
    ("eventsource-stream", eventsource_stream),
    ("memchr", memchr_bound),
    ("slices", ours_slices),
    ("sse-core, slices", sse_core_slices),
];

type Counted = (&'static str, fn() -> Vec<Bytes>, usize, f64);

/// The cases of the first table.
const TIMED: usize = 6;

/// The cases of the second table: name, reads, number of events, and the largest fraction of the best peer's
/// instructions allowed.
const COUNTED: [Counted; 4] = [
    ("250 bytes, reads of 1 to 64", || random_reads(&small_event().repeat(1_000)), 1_000, 0.87),
    ("64 KiB, 16 KiB reads", || cut(&event(64 << 10).repeat(8), 16 << 10), 8, 1.0),
    ("64 KiB, whole", || vec![Bytes::from(event(64 << 10)); 8], 8, 1.0),
    ("500 kB, reads of 1,460", || cut(&event(500_000).repeat(2), 1_460), 2, 0.83),
];

const TURNS: usize = 3;

fn main() {
    // A child process is told its case and contender, and for counting instructions the number of repetitions.
    match numbers()[..] {
        [case, run] => {
            println!("{}", measure(&cases()[case].chunks, RUNS[run].1).as_nanos());
        }
        [case, run, times] => {
            let chunks = COUNTED[case].1();
            for _ in 0..times {
                black_box(RUNS[run].1(black_box(&chunks)));
            }
        }
        _ => {
            print_times();
            match Valgrind::find() {
                Some(valgrind) => print_instructions(valgrind),
                None => println!("\nvalgrind is not installed: no instructions are counted"),
            }
        }
    }
}

fn print_times() {
    println!("nanoseconds per event, and ratios against the best peer (targets)\n");
    print!("{:28}", "");
    for (name, _) in &RUNS[..TIMED] {
        print!("{name:>20}");
    }
    println!("{:>18}{:>18}", "checked", "raw");
    for (number, case) in cases().iter().enumerate() {
        let mut best = [f64::MAX; TIMED];
        for _ in 0..TURNS {
            for (run, best) in best.iter_mut().enumerate() {
                *best = best.min(child(number, run) / case.events as f64);
            }
        }
        print!("{:28}", case.name);
        for nanoseconds in best {
            print!("{nanoseconds:>20.1}");
        }
        let peer = best[2].min(best[3]).min(best[4]);
        let ratio = |ours: f64, target: f64| format!("{:.2}x ({target}x)", peer / ours);
        println!("{:>18}{:>18}", ratio(best[0], case.checked), ratio(best[1], case.raw));
    }
}

fn print_instructions(valgrind: Valgrind) {
    // Contenders that read from `Bytes`, then those that read from slices; `eventsource-stream` takes quadratic
    // time here.
    const COLUMNS: [usize; 5] = [0, 2, 3, 6, 7];
    println!("\ninstructions per event, and ours of the best peer (at most)\n");
    print!("{:28}", "");
    for run in COLUMNS {
        print!("{:>18}", RUNS[run].0);
    }
    println!("{:>18}", "ours");
    for (number, (name, _, events, most)) in COUNTED.iter().enumerate() {
        let cost =
            COLUMNS.map(|run| valgrind.instructions(None, &[number, run], 1) / *events as f64);
        print!("{name:28}");
        for instructions in cost {
            print!("{:>18}", grouped(instructions));
        }
        let [checked, core, stream, slices, core_slices] = cost;
        let ratio = checked.min(slices) / core.min(stream).min(core_slices);
        println!("{:>18}", format!("{ratio:.2}x ({most}x)"));
    }
}

/// The best time of a contender over the whole input in nanoseconds, measured by a child process.
fn child(case: usize, run: usize) -> f64 {
    let output = again(&[case, run]).output().expect("a bench can start itself");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().expect("a child prints one number")
}

fn measure(chunks: &[Bytes], run: Run) -> Duration {
    let mut best = Duration::MAX;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(200) {
        let start = Instant::now();
        black_box(run(black_box(chunks)));
        best = start.elapsed().min(best);
    }
    best
}

/// The JSON of a chunk as servers write it, `size` bytes long.
fn payload(size: usize) -> String {
    let text = "the quick brown fox jumps over the lazy dog ".repeat(size / 44 + 1);
    let head = r#"{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"qwen3:8b","choices":[{"index":0,"delta":{"content":""#;
    let tail = r#""},"finish_reason":null}]}"#;
    format!("{head}{}{tail}", &text[..size.saturating_sub(head.len() + tail.len())])
}

fn event(size: usize) -> String {
    format!("data: {}\n\n", payload(size))
}

/// An event of 250 bytes.
fn small_event() -> String {
    event(250 - "data: \n\n".len())
}

fn cut(stream: &str, size: usize) -> Vec<Bytes> {
    stream.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect()
}

/// Pseudo-random reads of 1 to 64 bytes, from a xorshift generator.
fn random_reads(stream: &str) -> Vec<Bytes> {
    let mut rest = stream.as_bytes();
    let mut state = 88_172_645_463_325_252_u64;
    let mut reads = Vec::new();
    while !rest.is_empty() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let (read, after) = rest.split_at(rest.len().min((state % 64) as usize + 1));
        reads.push(Bytes::copy_from_slice(read));
        rest = after;
    }
    reads
}

fn cases() -> Vec<Case> {
    let small = small_event();
    assert_eq!(small.len(), 250);
    let one_read = vec![Bytes::from(small.clone()); 512];
    let many = small.repeat(2048);
    let large = event(64 << 10);
    let crlf = small.replace('\n', "\r\n").repeat(2048);
    let named = format!("event: chunk\n{small}").repeat(2048);
    let huge = event(500_000);
    // A client reads into the same few buffers repeatedly, so the parsed data is in the cache: the reads in the
    // middle of a large event all share the same memory.
    let warm = |mut chunks: Vec<Bytes>| {
        let last = chunks.len() - 1;
        let middle = chunks[1].clone();
        chunks[1..last].fill(middle);
        chunks
    };
    let again = |chunks: Vec<Bytes>| vec![chunks; 8].concat();
    let case = |name, chunks, events, checked, raw| Case { name, chunks, events, checked, raw };
    vec![
        case("one 250-byte event a read", one_read, 512, 1.6, 2.3),
        case("250-byte events, 16 KiB", cut(&many, 16 << 10), 2048, 2.2, 3.8),
        case("reads of 1 to 64 bytes", random_reads(&small.repeat(512)), 512, 1.15, 1.2),
        case("64 KiB events, whole", vec![Bytes::from(large.clone()); 8], 8, 1.3, 2.0),
        case("64 KiB events, 16 KiB", again(warm(cut(&large, 16 << 10))), 8, 1.3, 2.0),
        case("CRLF, 16 KiB", cut(&crlf, 16 << 10), 2048, 1.8, 2.5),
        case("named events, 16 KiB", cut(&named, 16 << 10), 2048, 1.6, 2.2),
        case("500 kB event, 1460 bytes", again(warm(cut(&huge, 1460))), 8, 1.2, 1.6),
    ]
}

fn ours_checked(chunks: &[Bytes]) -> usize {
    let mut parser = Parser::new();
    let mut size = 0;
    for chunk in chunks {
        parser.push(chunk.clone());
        while let Ok(Some(event)) = parser.next_event() {
            size += black_box(event.data()).len();
        }
    }
    size
}

fn ours_slices(chunks: &[Bytes]) -> usize {
    let mut parser = Parser::new();
    let mut size = 0;
    for chunk in chunks {
        parser.push_slice(chunk);
        while let Ok(Some(event)) = parser.next_event() {
            size += black_box(event.data()).len();
        }
    }
    size
}

fn ours_raw(chunks: &[Bytes]) -> usize {
    let mut parser = Parser::new();
    let mut size = 0;
    for chunk in chunks {
        parser.push(chunk.clone());
        while let Ok(Some(event)) = parser.next_event() {
            size += black_box(event.raw_data()).len();
        }
    }
    size
}

fn sse_core(chunks: &[Bytes]) -> usize {
    sse_core_reads(chunks.iter().cloned())
}

fn sse_core_slices(chunks: &[Bytes]) -> usize {
    sse_core_reads(chunks.iter().map(|chunk| &chunk[..]))
}

fn sse_core_reads<B: Buf>(chunks: impl Iterator<Item = B>) -> usize {
    let limit = std::num::NonZeroUsize::new(8 << 20).unwrap_or(std::num::NonZeroUsize::MIN);
    let mut decoder = sse_core::SseDecoder::with_limit(limit);
    let mut size = 0;
    for mut chunk in chunks {
        while let Some(event) = decoder.next(&mut chunk) {
            if let Ok(sse_core::SseEvent::Message(message)) = event {
                size += black_box(message.data).len();
            }
        }
    }
    size
}

fn sse_stream(chunks: &[Bytes]) -> usize {
    let source = stream::iter(chunks.iter().cloned().map(Ok::<_, Infallible>));
    drain(sse_stream::SseStream::from_bytes_stream(source), |event| {
        event.ok().and_then(|event| event.data).map_or(0, |data| black_box(data).len())
    })
}

fn eventsource_stream(chunks: &[Bytes]) -> usize {
    let source = stream::iter(chunks.iter().cloned().map(Ok::<_, Infallible>));
    drain(source.eventsource(), |event| event.map_or(0, |event| black_box(event.data).len()))
}

fn drain<S: Stream>(stream: S, size: impl Fn(S::Item) -> usize) -> usize {
    let mut stream = pin!(stream);
    let mut cx = Context::from_waker(Waker::noop());
    let mut sum = 0;
    while let Poll::Ready(Some(item)) = stream.as_mut().poll_next(&mut cx) {
        sum += size(item);
    }
    sum
}

fn memchr_bound(chunks: &[Bytes]) -> usize {
    chunks.iter().flat_map(|chunk| memchr::memchr_iter(b'\n', chunk)).map(black_box).sum()
}
