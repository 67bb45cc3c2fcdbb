//! The cost of a chunk from payload to delta, and how often comparing it is enough.
//!
//! Instructions are counted, not timed: `valgrind` counts them repeatably, see `instructions`. The
//! yardstick in the same run is `serde_json` reading the same payload into the smallest struct that
//! has the text in it: no ids, no calls, no usage. Where valgrind is not installed, nanoseconds stand
//! in for instructions, and hit rates are the same.
//!
//! The first table is of chunks made to one pattern, the second of calls, the third of short answers,
//! the fourth of recordings: the project's own and, where they lie beside it, those of other projects.
//! There a *text chunk* is one that brings text or thinking, the first and the odd ones among them; the
//! chunks of role, calls, finish and usage between them count in the average over all chunks only. A
//! *hit* is a chunk that was compared and not read; of those under *deltas* all but the delta was
//! compared.
//!
//! `cargo bench -p oa-aggregate` prints the tables.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

mod instructions;
mod made;
mod short;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use oa_aggregate::{Aggregator, Choice, Chunk, Decoder, Payload};
use oa_sse::Parser;
use serde::Deserialize;

use crate::instructions::{Valgrind, grouped, numbers};
use crate::made::{call_chunks, text_chunks};
use crate::short::SHORT;

/// Streams made to one pattern: a name, a target for ours, the payloads.
type Made = (&'static str, Option<f64>, fn() -> Vec<Bytes>);

const TEXTS: [Made; 5] = [
    ("text", Some(1_200.0), || text_chunks(false, false, false)),
    ("text with escapes", None, || text_chunks(true, false, false)),
    ("text, `created` ticks", None, || text_chunks(false, true, false)),
    ("escapes, `created` ticks", None, || text_chunks(true, true, false)),
    ("text, usage in each chunk", None, || text_chunks(false, false, true)),
];

const CALLS: [Made; 4] = [
    ("call of 16,000 fragments", Some(6_000.0), || call_chunks(16_000, false)),
    ("call of 1,000 fragments", Some(6_000.0), || call_chunks(1_000, false)),
    ("16,000, name in each", Some(6_000.0), || call_chunks(16_000, true)),
    ("1,000, name in each", Some(6_000.0), || call_chunks(1_000, true)),
];

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures");
const BESIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/streams");

/// Fewer chunks than this say nothing about a stream.
const FEWEST: usize = 8;

/// Below this hit rate the table says what was read in full.
const WORTH_A_WORD: f64 = 0.7;

/// The target for a text chunk of a recording that has at least so many of them.
const TARGET: f64 = 1_200.0;
const USEFUL: u64 = 20;

/// The number of streams that are made; they come before those that were recorded.
const MADE: usize = TEXTS.len() + CALLS.len() + SHORT.len();

/// A way to read a stream.
type Run = fn(&[Bytes]) -> usize;

const RUNS: [Run; 6] =
    [push_and_deltas, decoder_alone, serde_minimal, whole_answer, push_by_kind, short::fresh];
const PUSH: usize = 0;
const DECODE: usize = 1;
const SERDE: usize = 2;
const WHOLE: usize = 3;
const BY_KIND: usize = 4;
const FRESH: usize = 5;
/// The same with the templates of the answers before.
const WARM: usize = 6;

fn main() {
    // A child is told which stream, who reads it, and how many times.
    if let [stream, run, times] = numbers()[..] {
        let payloads = payloads(stream);
        if run == WARM {
            return short::warm(&payloads, times);
        }
        for _ in 0..times {
            black_box(RUNS[run](black_box(&payloads)));
        }
        return;
    }
    let valgrind = Valgrind::find();
    let unit = if valgrind.is_some() { "instructions" } else { "nanoseconds" };
    if valgrind.is_none() {
        println!("valgrind is not installed: times in place of instructions\n");
    }
    print_texts(valgrind, unit);
    print_calls(valgrind, unit);
    short::print(valgrind, unit, TEXTS.len() + CALLS.len());
    print_recordings(valgrind, unit);
}

fn print_texts(valgrind: Option<Valgrind>, unit: &str) {
    println!("{unit} per text chunk\n");
    println!(
        "{:28}{:>8}{:>16}{:>10}{:>16}{:>14}{:>14}",
        "", "bytes", "push + deltas", "(target)", "Decoder alone", "serde_json", "allocations",
    );
    for (number, (name, target, make)) in TEXTS.iter().enumerate() {
        let chunks = make();
        let size = chunks.iter().map(Bytes::len).sum::<usize>() / chunks.len();
        let cost = |run| cost(valgrind, number, run, chunks.len(), 1);
        println!(
            "{name:28}{size:>8}{:>16}{:>10}{:>16}{:>14}{:>14}",
            grouped(cost(PUSH)),
            target_of(valgrind, *target),
            grouped(cost(DECODE)),
            grouped(cost(SERDE)),
            allocations(valgrind, number, PUSH, chunks.len()),
        );
    }
}

fn print_calls(valgrind: Option<Valgrind>, unit: &str) {
    println!("\n{unit} per fragment of a call's arguments\n");
    println!(
        "{:28}{:>8}{:>16}{:>16}{:>10}{:>14}",
        "", "bytes", "push + deltas", "with answer", "(target)", "allocations",
    );
    for (number, (name, target, make)) in CALLS.iter().enumerate() {
        let chunks = make();
        let number = TEXTS.len() + number;
        let size = chunks.iter().map(Bytes::len).sum::<usize>() / chunks.len();
        let cost = |run| cost(valgrind, number, run, chunks.len(), 1);
        println!(
            "{name:28}{size:>8}{:>16}{:>16}{:>10}{:>14}",
            grouped(cost(PUSH)),
            grouped(cost(WHOLE)),
            target_of(valgrind, *target),
            allocations(valgrind, number, PUSH, chunks.len()),
        );
    }
}

/// Targets are of instructions.
fn target_of(valgrind: Option<Valgrind>, target: Option<f64>) -> String {
    let target = target.filter(|_| valgrind.is_some());
    target.map_or_else(String::new, |target| format!("({})", grouped(target)))
}

/// One line of the table of recordings.
struct Row {
    name: String,
    kinds: [Kind; KINDS.len()],
    /// The number of chunks that were read in full, by the reason why no template matched.
    misses: [u64; WHYS.len()],
    ours: f64,
    serde: f64,
    /// The cost of a text chunk, if there are any and it can be counted.
    text: Option<f64>,
}

const KINDS: [&str; 4] = ["text", "thinking", "argument fragments", "other"];

/// The first of them are text chunks.
const TEXT_KINDS: usize = 2;

/// Reasons why a chunk is read in full. The last are like others in what they say, and differ elsewhere from
/// the one before, or are the first of their form.
const WHYS: [&str; 7] =
    ["not JSON", "usage", "choices", "rare members", "finish", "no words", "differ"];

/// Chunks of one kind, and how many of them matched a template.
#[derive(Clone, Copy, Default)]
struct Kind {
    chunks: u64,
    hits: u64,
    /// The number of chunks that matched but for their delta, which was read.
    deltas: u64,
    /// Recordings that have such chunks: the first one can be told by no comparison.
    firsts: u64,
}

fn print_recordings(valgrind: Option<Valgrind>, unit: &str) {
    println!("\nrecordings of at least {FEWEST} chunks: {unit} per chunk");
    if !Path::new(BESIDE).is_dir() {
        println!("skipped: the recordings of other projects, which are not here");
    }
    println!();
    let recordings = recordings();
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut rows = Vec::new();
        while let Some(path) = recordings.get(next.fetch_add(1, Ordering::Relaxed)) {
            rows.extend(row(valgrind, &recordings, path));
        }
        rows
    };
    // What is counted may run side by side; what is timed may not.
    let workers = match valgrind {
        Some(_) => thread::available_parallelism().map_or(1, usize::from),
        None => 1,
    };
    let mut rows: Vec<Row> = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no case fails")).collect()
    });
    rows.sort_by_key(|row| (Reverse((1e6 * row.total().rate()) as u64), row.name.clone()));
    println!(
        "{:52}{:>8}{:>8}{:>8}{:>10}{:>12}{:>12}{:>16}{:>14}{:>8}   read in full",
        "",
        "chunks",
        "hits",
        "deltas",
        "hit rate",
        "text chunks",
        "per text",
        "push + deltas",
        "serde_json",
        "ratio",
    );
    for row in &rows {
        print_row(row, &row.why());
    }
    let chunks: u64 = rows.iter().map(|row| row.total().chunks).sum();
    let weigh = |cost: fn(&Row) -> f64| {
        rows.iter().map(|row| cost(row) * row.total().chunks as f64).sum::<f64>() / chunks as f64
    };
    let all_of =
        |number: usize| rows.iter().map(|row| row.kinds[number]).fold(Kind::default(), Kind::add);
    let texts: u64 = rows.iter().map(|row| row.text_chunks()).sum();
    let text = rows.iter().map(|row| Some(row.text? * row.text_chunks() as f64));
    let all = Row {
        name: format!("all {} recordings", rows.len()),
        kinds: std::array::from_fn(all_of),
        misses: [0; WHYS.len()],
        ours: weigh(|row| row.ours),
        serde: weigh(|row| row.serde),
        text: (texts > 0).then(|| text.flatten().sum::<f64>() / texts as f64),
    };
    print_row(&all, "");
    println!(
        "\n{:52}{:>8}{:>8}{:>8}{:>10}{:>30}",
        "chunks by what they bring",
        "chunks",
        "hits",
        "deltas",
        "hit rate",
        "but the first of each stream",
    );
    for (name, kind) in KINDS.iter().zip(all.kinds) {
        let later = Kind { chunks: kind.chunks - kind.firsts, ..kind };
        let (rate, later) = (100.0 * kind.rate(), 100.0 * later.rate());
        let Kind { chunks, hits, deltas, .. } = kind;
        println!("{name:52}{chunks:>8}{hits:>8}{deltas:>8}{rate:>9.1}%{later:>29.1}%");
    }
    let useful = rows.iter().filter(|row| row.text_chunks() >= USEFUL);
    let (within, above): (Vec<&Row>, Vec<&Row>) =
        useful.partition(|row| row.text.is_none_or(|text| text <= TARGET));
    println!(
        "\nat most {} per text chunk: {} of the {} recordings with at least {USEFUL} of them",
        grouped(TARGET),
        within.len(),
        within.len() + above.len(),
    );
    for row in above {
        println!("above: {} ({})", row.name, grouped(row.text.unwrap_or_default()));
    }
}

fn print_row(row: &Row, why: &str) {
    let total = row.total();
    let rate = 100.0 * total.rate();
    println!(
        "{:52}{:>8}{:>8}{:>8}{rate:>9.1}%{:>12}{:>12}{:>16}{:>14}{:>7.2}x   {why}",
        row.name,
        total.chunks,
        total.hits,
        total.deltas,
        row.text_chunks(),
        row.text.map_or_else(|| "-".to_owned(), grouped),
        grouped(row.ours),
        grouped(row.serde),
        row.serde / row.ours,
    );
}

impl Row {
    fn total(&self) -> Kind {
        self.kinds.into_iter().fold(Kind::default(), Kind::add)
    }

    fn text_chunks(&self) -> u64 {
        self.kinds[..TEXT_KINDS].iter().map(|kind| kind.chunks).sum()
    }

    /// Returns what is read in full, for recordings of which that is a good part.
    fn why(&self) -> String {
        if self.total().rate() > WORTH_A_WORD {
            return String::new();
        }
        let whys = WHYS.iter().zip(self.misses).filter(|(_, misses)| *misses > 0);
        let whys: Vec<String> = whys.map(|(why, misses)| format!("{misses} {why}")).collect();
        whys.join(", ")
    }
}

impl Kind {
    fn add(self, other: Self) -> Self {
        Self {
            chunks: self.chunks + other.chunks,
            hits: self.hits + other.hits,
            deltas: self.deltas + other.deltas,
            firsts: self.firsts + other.firsts,
        }
    }

    fn rate(self) -> f64 {
        if self.chunks == 0 { 0.0 } else { self.hits as f64 / self.chunks as f64 }
    }
}

/// Measures a recording; none if it has too few chunks.
fn row(valgrind: Option<Valgrind>, recordings: &[PathBuf], path: &PathBuf) -> Option<Row> {
    let place = recordings.iter().position(|other| other == path)?;
    let number = MADE + place;
    let payloads = payloads(number);
    if payloads.len() < FEWEST {
        return None;
    }
    let mut kinds = [Kind::default(); KINDS.len()];
    let mut misses = [0; WHYS.len()];
    let mut decoder = Decoder::new();
    for payload in &payloads {
        let (hits, in_full) = decoder.hits_and_misses();
        let deltas = decoder.deltas_read();
        let (kind, why) = match &decoder.decode(payload) {
            Ok(Payload::Chunk(chunk)) => (kind_of(chunk), why(chunk)),
            _ => (KINDS.len() - 1, 0),
        };
        kinds[kind].chunks += 1;
        kinds[kind].firsts = 1;
        kinds[kind].hits += decoder.hits_and_misses().0 - hits;
        kinds[kind].deltas += decoder.deltas_read() - deltas;
        misses[why] += decoder.hits_and_misses().1 - in_full;
    }
    let cost = |run| cost(valgrind, number, run, payloads.len(), 8);
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    let file = path.file_stem().unwrap_or_default();
    let name = format!("{}/{}", folder.display(), file.display());
    let mut row = Row { name, kinds, misses, ours: cost(PUSH), serde: cost(SERDE), text: None };
    if let Some(valgrind) = valgrind.filter(|_| row.text_chunks() > 0) {
        let all = valgrind.instructions(Some("push_text_chunk"), &[number, BY_KIND], 8);
        row.text = Some(all / row.text_chunks() as f64);
    }
    Some(row)
}

/// Returns which of [`KINDS`] a chunk is.
fn kind_of(chunk: &Chunk<'_>) -> usize {
    let has = |is: fn(&Choice<'_>) -> bool| chunk.choices().any(is);
    let brings = [
        has(|choice| choice.text.is_some()),
        has(|choice| choice.thinking.is_some()),
        has(|choice| choice.calls().any(|call| call.arguments.is_some())),
    ];
    brings.into_iter().position(|brings| brings).unwrap_or(KINDS.len() - 1)
}

/// Returns which of [`WHYS`] keeps a chunk from matching a template.
fn why(chunk: &Chunk<'_>) -> usize {
    let has = |is: fn(&Choice<'_>) -> bool| chunk.choices().any(is);
    let is_rare = |choice: &Choice<'_>| {
        choice.refusal().is_some()
            || !choice.parts().is_empty()
            || !choice.details().is_empty()
            || choice.extra().is_some_and(|extra| !extra.is_empty())
            || choice.calls().any(|call| call.extra.is_some())
            || choice.calls().count() > 1
    };
    let whys = [
        chunk.usage.is_some(),
        chunk.choices().count() > 1 || has(|choice| choice.index != 0),
        has(is_rare),
        has(|choice| choice.finish_reason.is_some()),
        kind_of(chunk) == KINDS.len() - 1,
    ];
    1 + whys.into_iter().position(|why| why).unwrap_or(whys.len())
}

/// Returns the cost of one chunk: instructions, or nanoseconds where those cannot be counted.
fn cost(valgrind: Option<Valgrind>, stream: usize, run: usize, chunks: usize, times: usize) -> f64 {
    let whole = match valgrind {
        Some(valgrind) => valgrind.instructions(None, &[stream, run], times),
        None => nanoseconds(RUNS[run], &payloads(stream)),
    };
    whole / chunks as f64
}

fn allocations(valgrind: Option<Valgrind>, stream: usize, run: usize, chunks: usize) -> String {
    let Some(valgrind) = valgrind else { return "-".to_owned() };
    format!("{:.3}", valgrind.allocations(&[stream, run], 1) / chunks as f64)
}

fn nanoseconds(run: Run, payloads: &[Bytes]) -> f64 {
    let mut best = Duration::MAX;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(50) {
        let start = Instant::now();
        black_box(run(black_box(payloads)));
        best = start.elapsed().min(best);
    }
    best.as_nanos() as f64
}

/// The payloads of a stream by its number: what is made comes before what was recorded.
fn payloads(stream: usize) -> Vec<Bytes> {
    if let Some((_, _, make)) = TEXTS.iter().chain(&CALLS).chain(&SHORT).nth(stream) {
        return make();
    }
    let path = &recordings()[stream - MADE];
    let body = fs::read(path).expect("a recording that was listed can be read");
    let mut parser = Parser::new();
    parser.push(body.into());
    parser.finish_lenient();
    let mut payloads = Vec::new();
    while let Ok(Some(event)) = parser.next_event() {
        payloads.push(event.data_bytes());
    }
    payloads.retain(|payload| payload.trim_ascii() != b"[DONE]");
    payloads
}

/// All recordings, in order; none of a folder that is not there.
fn recordings() -> Vec<PathBuf> {
    let own = ["live", "made", "own"].map(|folder| streams_in(&Path::new(FIXTURES).join(folder)));
    let mut paths = own.concat();
    let beside = streams_in(Path::new(BESIDE));
    // Those are among the fixtures.
    let is_made = |path: &Path| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"made-"))
    };
    paths.extend(beside.into_iter().filter(|path| !is_made(path)));
    paths
}

fn streams_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "sse"));
    paths.sort();
    paths
}

fn push_and_deltas(payloads: &[Bytes]) -> usize {
    usize::from(read(payloads).has_begun())
}

fn whole_answer(payloads: &[Bytes]) -> usize {
    black_box(read(payloads).into_answer()).blocks.len()
}

#[inline]
fn read(payloads: &[Bytes]) -> Aggregator {
    let mut aggregator = Aggregator::new();
    for payload in payloads {
        push(&mut aggregator, payload);
    }
    aggregator
}

/// Reads as [`read`] does, text chunks in a function of their own.
fn push_by_kind(payloads: &[Bytes]) -> usize {
    let is_text = |payload: &Bytes| match &Decoder::new().decode(payload) {
        Ok(Payload::Chunk(chunk)) => kind_of(chunk) < TEXT_KINDS,
        _ => false,
    };
    let mut aggregator = Aggregator::new();
    for payload in payloads {
        if is_text(payload) {
            push_text_chunk(&mut aggregator, payload);
        } else {
            push(&mut aggregator, payload);
        }
    }
    usize::from(aggregator.has_begun())
}

/// Never part of another function: what is counted is what happens in here.
#[inline(never)]
fn push_text_chunk(aggregator: &mut Aggregator, payload: &[u8]) {
    push(aggregator, payload);
}

#[inline]
fn push(aggregator: &mut Aggregator, payload: &[u8]) {
    black_box(&aggregator.push(payload));
    while let Some(delta) = aggregator.next_delta() {
        black_box(&delta);
    }
}

fn decoder_alone(payloads: &[Bytes]) -> usize {
    let mut decoder = Decoder::new();
    payloads.iter().filter(|payload| black_box(&decoder.decode(payload)).is_ok()).count()
}

/// The smallest struct that has the text in it.
#[derive(Deserialize)]
struct Minimal<'a> {
    #[serde(borrow, default)]
    choices: Vec<MinimalChoice<'a>>,
}

#[derive(Deserialize)]
struct MinimalChoice<'a> {
    #[serde(borrow, default)]
    delta: MinimalDelta<'a>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
}

#[derive(Default, Deserialize)]
struct MinimalDelta<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
}

/// In an `Option` a bare `Cow` would always be copied.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A payload that the struct does not fit costs what it takes to find that out.
fn serde_minimal(payloads: &[Bytes]) -> usize {
    let mut size = 0;
    for payload in payloads {
        if let Ok(chunk) = serde_json::from_slice::<Minimal<'_>>(payload)
            && let Some(choice) = chunk.choices.first()
        {
            size += choice.delta.content.as_ref().map_or(0, |text| black_box(&text.0).len());
            size += choice.finish_reason.as_ref().map_or(0, |text| black_box(&text.0).len());
        }
    }
    size
}
