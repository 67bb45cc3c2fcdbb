//! How fast does the parser read event streams, against its peers, in one run on one machine?
//!
//! Each row is a shape of input. Each contender reads it in a process of its own, so that the heap
//! one leaves behind neither helps nor hurts the next; the processes take turns, and the best time of
//! each counts. What matters are the ratios. `memchr` is a bound: one search for each line end and
//! nothing else. "checked" asks each event for text, "raw" takes its bytes, as a JSON reader does that
//! checks UTF-8 itself; the peers know only checked text. The bench turns our feature `simd` on, as
//! `sse-stream` has it on by default.
//!
//! `cargo bench -p oa-sse` prints the table.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

use std::convert::Infallible;
use std::env;
use std::hint::black_box;
use std::pin::pin;
use std::process::Command;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use eventsource_stream::Eventsource;
use futures_util::{Stream, stream};
use oa_sse::Parser;

/// A shape of input and the ratios to reach against the best peer.
struct Case {
    name: &'static str,
    chunks: Vec<Bytes>,
    events: usize,
    checked: f64,
    raw: f64,
}

type Run = fn(&[Bytes]) -> usize;

const RUNS: [(&str, Run); 6] = [
    ("checked", ours_checked),
    ("raw", ours_raw),
    ("sse-core", sse_core),
    ("sse-stream", sse_stream),
    ("eventsource-stream", eventsource_stream),
    ("memchr", memchr_bound),
];

const TURNS: usize = 3;

fn main() {
    // A child is told which case and which contender; `cargo bench` itself passes `--bench`.
    let arguments: Vec<usize> = env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    if let [case, run] = arguments[..] {
        println!("{}", measure(&cases()[case].chunks, RUNS[run].1).as_nanos());
        return;
    }
    let check = if cfg!(feature = "simd") { "simdutf8" } else { "std" };
    println!("nanoseconds per event, and ratios against the best peer (targets)");
    println!("our text is checked by {check}\n");
    print!("{:28}", "");
    for (name, _) in RUNS {
        print!("{name:>20}");
    }
    println!("{:>18}{:>18}", "checked", "raw");
    for (number, case) in cases().iter().enumerate() {
        let mut best = [f64::MAX; RUNS.len()];
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

/// The best time of a contender over the whole input, in nanoseconds, measured by a child process.
fn child(case: usize, run: usize) -> f64 {
    let program = env::current_exe().expect("a bench knows its own path");
    let output = Command::new(program)
        .args([case.to_string(), run.to_string()])
        .output()
        .expect("a bench can start itself");
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

fn cases() -> Vec<Case> {
    let payload = |size: usize| {
        let text = "the quick brown fox jumps over the lazy dog ".repeat(size / 44 + 1);
        let head = r#"{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"qwen3:8b","choices":[{"index":0,"delta":{"content":""#;
        let tail = r#""},"finish_reason":null}]}"#;
        format!("{head}{}{tail}", &text[..size.saturating_sub(head.len() + tail.len())])
    };
    let small = format!("data: {}\n\n", payload(242));
    assert_eq!(small.len(), 250);
    let one_read = vec![Bytes::from(small.clone()); 512];
    let many = Bytes::from(small.repeat(2048));
    let large = Bytes::from(format!("data: {}\n\n", payload(64 << 10)));
    let crlf = Bytes::from(small.replace('\n', "\r\n").repeat(2048));
    let named = Bytes::from(format!("event: chunk\n{small}").repeat(2048));
    let huge = Bytes::from(format!("data: {}\n\n", payload(500_000)));
    let mut tiny = Vec::new();
    let (mut start, mut size) = (0, 1);
    while start < many.len() / 4 {
        // 1 to 64 bytes, in an order that no branch predictor learns.
        size = (size * 37 + 11) % 64 + 1;
        tiny.push(many.slice(start..start + size));
        start += size;
    }
    let tiny_events = start / small.len();
    let cut = |stream: &Bytes, size: usize| -> Vec<Bytes> {
        (0..stream.len())
            .step_by(size)
            .map(|start| stream.slice(start..(start + size).min(stream.len())))
            .collect()
    };
    // A client reads into the same few buffers again and again, so that what it parses is in the
    // cache: the reads in the middle of a large event are all the same memory.
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
        case("reads of 1 to 64 bytes", tiny, tiny_events, 1.15, 1.2),
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
    let limit = std::num::NonZeroUsize::new(8 << 20).unwrap_or(std::num::NonZeroUsize::MIN);
    let mut decoder = sse_core::SseDecoder::with_limit(limit);
    let mut size = 0;
    for chunk in chunks {
        let mut chunk = chunk.clone();
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
