//! Long answers: linear time, bounded memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use allocation_counter::measure;
use oa_fallback::{
    AfterCall, BodyEnd, CallBody, CallHead, Constrained, Dialect, Grammar, Limits, Markers, Match,
    NoMatch, ParsedCall, Position, React, Scanned, Scanner, TaggedJson,
};

use crate::{Written, bounded, dialects, read, scanner, tools};

const LONG: usize = 10 << 20;

/// Counts what it is asked.
#[derive(Debug)]
struct Counting {
    inner: Box<dyn Grammar>,
    work: Arc<Work>,
}

#[derive(Debug, Default)]
struct Work {
    begins: AtomicUsize,
    body_bytes: AtomicUsize,
    read_bytes: AtomicUsize,
}

impl Grammar for Counting {
    fn may_begin(&self, byte: u8) -> bool {
        self.inner.may_begin(byte)
    }

    fn begin(&self, head: &mut CallHead<'_>, position: Position) -> Result<Match, NoMatch> {
        self.work.begins.fetch_add(1, Ordering::Relaxed);
        match self.inner.begin(head, position)? {
            Match::Call(inner) => {
                Ok(Match::Call(Box::new(CountingBody { inner, work: Arc::clone(&self.work) })))
            }
            found => Ok(found),
        }
    }

    fn after_call(&self) -> AfterCall {
        self.inner.after_call()
    }
}

#[derive(Debug)]
struct CountingBody {
    inner: Box<dyn CallBody>,
    work: Arc<Work>,
}

impl CallBody for CountingBody {
    fn push(&mut self, text: &str) -> Option<usize> {
        let end = self.inner.push(text);
        self.work.body_bytes.fetch_add(end.unwrap_or(text.len()), Ordering::Relaxed);
        end
    }

    fn read(&self, text: &str, end: BodyEnd) -> Vec<ParsedCall> {
        self.work.read_bytes.fetch_add(text.len(), Ordering::Relaxed);
        self.inner.read(text, end)
    }
}

/// Texts that begin something again and again.
const NUISANCES: [&str; 14] = [
    "It is so. ",
    "<",
    "[",
    "<tool_call>",
    "[TOOL:add",
    "[TOOL:add:a=1,b=2] ",
    "\nAction: add",
    "\nAction: a line that goes on and on",
    " \n \n",
    "<tool_call>{\"name\": \"get_time\"} x ",
    "[TOOL_CALLS]a",
    "`*A",
    "functools[",
    "]<]minimax[>[<invoke name=",
];

fn pieces(text: &str, size: usize) -> impl Iterator<Item = &str> {
    (0..text.len()).step_by(size).map(move |at| &text[at..text.len().min(at + size)])
}

#[test]
fn work_per_byte_is_bounded() {
    for dialect in dialects() {
        for nuisance in NUISANCES {
            let text = nuisance.repeat((1 << 15) / nuisance.len());
            for size in [1, 7, 4096, text.len()] {
                let work = Arc::new(Work::default());
                let inner = dialect.grammar(tools());
                let grammar = Box::new(Counting { inner, work: Arc::clone(&work) });
                read(Scanner::new(grammar), pieces(&text, size));
                let of = |count: &AtomicUsize| count.load(Ordering::Relaxed);
                // Once for each byte, and once more for each piece if something is held.
                let most = text.len() + text.len().div_ceil(size) + 1;
                assert!(of(&work.begins) <= most, "{dialect:?} begins {nuisance:?} by {size}");
                assert!(of(&work.body_bytes) <= text.len(), "{dialect:?} {nuisance:?} by {size}");
                assert!(of(&work.read_bytes) <= text.len(), "{dialect:?} {nuisance:?} by {size}");
            }
        }
    }
}

#[test]
fn a_long_answer_is_not_kept() {
    for dialect in dialects() {
        for nuisance in NUISANCES {
            let text = nuisance.repeat((1 << 20) / nuisance.len());
            let mut scanner = scanner(&*dialect);
            let cost = measure(|| {
                for piece in pieces(&text, 1000) {
                    scanner.push(piece);
                    while scanner.next_item().is_some() {}
                }
                scanner.finish();
            });
            assert!(cost.bytes_max < 256 << 10, "{dialect:?} {nuisance:?}: {}", cost.bytes_max);
        }
    }
}

#[test]
fn ten_megabyte_calls_are_malformed() {
    let openings: [(&dyn Dialect, &str); 15] = [
        (&React::new(), "Action: search(query=\""),
        (&React::new(), "Action: search\nAction Input: "),
        (&Markers::new(), "[TOOL:search:query=\""),
        (&TaggedJson::new(), "<tool_call>{\"name\": \"search\", \"arguments\": {\"query\": \""),
        (&Constrained::new(), "{\"tool\": \"search\", \"arguments\": {\"query\": \""),
        (&TaggedJson::new(), "<tool_call>search<arg_key>query</arg_key><arg_value>"),
        (&TaggedJson::new(), "<function=search><parameter=query>"),
        (&TaggedJson::new(), "[TOOL_CALLS]search[ARGS]{\"query\": \""),
        (&TaggedJson::new(), "<invoke name=\"search\"><parameter name=\"query\">"),
        (&TaggedJson::new(), "<|tool_call_start|>[search(query=\""),
        (&TaggedJson::new(), "<function_calls>search(query=\""),
        (&TaggedJson::new(), "<|tool_call>call:search{query:<|\"|>"),
        (&TaggedJson::new(), "functools[{\"name\": \"search\", \"arguments\": {\"query\": \""),
        (
            &TaggedJson::new(),
            "<|open|>call tool=\"search\"<|sep|><|open|>argument key=\"query\"<|sep|>",
        ),
        (&TaggedJson::new(), "]<]minimax[>[<invoke name=\"search\">]<]minimax[>[<query>"),
    ];
    for (dialect, opening) in openings {
        let text = opening.to_owned() + &"word ".repeat(LONG / 5);
        let mut found = Default::default();
        let cost = measure(|| found = read(scanner(dialect), pieces(&text, 1000)));
        // What is kept doubles when it grows.
        assert!(cost.bytes_max < 3 * (4 << 20) + (1 << 20), "{opening}: {}", cost.bytes_max);
        let [Written::Malformed { name, error, raw, .. }] = &found.calls[..] else {
            panic!("{opening}")
        };
        assert_eq!(name.as_deref(), Some("search"));
        assert_eq!(error, "the call is longer than 4194304 bytes");
        assert_eq!(raw.len(), 4096);
        assert_eq!(found.text, "");
    }
}

/// A decoded answer of any length is handed on, and not kept.
#[test]
fn a_long_encoded_answer_is_not_kept() {
    let text = format!("{{\"answer\": \"{}\"}}", "w\\u00f6rd \\ud83d\\ude42".repeat(LONG / 20));
    for size in [1, 1000] {
        let mut scanner = scanner(&Constrained::new());
        let mut shown = 0;
        let cost = measure(|| {
            for piece in pieces(&text, size) {
                scanner.push(piece);
                while let Some(Scanned::Text(text)) = scanner.next_item() {
                    shown += text.len();
                }
            }
            scanner.finish();
        });
        assert_eq!(shown, "wörd 🙂".len() * (LONG / 20));
        assert!(cost.bytes_max < 64 << 10, "{}", cost.bytes_max);
    }
}

#[test]
fn arguments_up_to_the_limit_are_read() {
    for (length, is_read) in [(1000, true), (1001, false)] {
        let call = format!("[TOOL:search:query={}]", "x".repeat(length - "query=]".len()));
        let found = read(bounded(&Markers::new(), 1000, 1), [&*call]);
        assert_eq!(matches!(found.calls[..], [Written::Call { .. }]), is_read, "{length}");
    }
}

#[test]
fn calls_up_to_the_limit_are_read() {
    let list = format!("[TOOL_CALLS][{}{{}}]", r#"{"name": "get_time"}, "#.repeat(200));
    let calls = r#"<tool_call>{"name": "get_time"}</tool_call>"#.repeat(200);
    for text in [list, calls] {
        let found = read(scanner(&TaggedJson::new()), [&*text]);
        assert_eq!(found.calls.len(), 129);
        let Some(Written::Malformed { error, .. }) = found.calls.last() else { panic!("no end") };
        assert_eq!(error, "more than 128 calls in one answer");
    }
}

#[test]
fn endless_white_space_is_text() {
    for dialect in dialects() {
        let text = " \n".repeat(1 << 20);
        // All at once, as from a server that does not stream: in quadratic time, this would take hours.
        for size in [333, text.len()] {
            let found = read(scanner(&*dialect), pieces(&text, size));
            assert_eq!(found.text.len(), text.len());
            assert!(found.held <= Scanner::MOST_HELD);
        }
    }
}

/// A name is not spelled for each of its items.
#[test]
fn memory_is_not_name_times_items() {
    let (name, items) = ("n".repeat(1 << 20), "1,".repeat(1 << 18));
    for answer in [
        format!("Action: f({name}=[{items}])"),
        format!("Action: f({name}=[{items}x y])"),
        format!("Action: lookup(options={{\"{name}\": [{items}]}})"),
    ] {
        let cost = measure(|| {
            assert_eq!(read(scanner(&React::new()), [&*answer]).calls.len(), 1);
        });
        assert!(cost.bytes_total < 200 << 20, "{} bytes", cost.bytes_total);
    }
}

#[test]
fn what_is_nested_too_deeply_is_malformed() {
    let deep = "[".repeat(100_000);
    for answer in [
        format!("Action: search(query={deep}"),
        format!("Action: search(query={deep}{})", "]".repeat(100_000)),
        format!("Action: search(query=\"{deep}{}\")", "]".repeat(100_000)),
        format!("Action: lookup(tags=\"{deep}{}\")", "]".repeat(100_000)),
    ] {
        let found = read(scanner(&React::new()), [&*answer]);
        assert_eq!(found.calls.len(), 1);
        let is_text = answer.contains("query=\"");
        assert_eq!(matches!(found.calls[0], Written::Call { .. }), is_text);
    }
    let answer = format!(
        "<tool_call>{{\"name\": \"f\", \"arguments\": {{\"a\": {deep}{}}}}}",
        "]".repeat(100_000)
    );
    let tag = |tag: &str| format!("]<]minimax[>[<{tag}>");
    let [open, close] = ["a", "/a"].map(|name| tag(name).repeat(50_000));
    let elements = tag("invoke name=\"f\"") + &open + &close + &tag("/invoke");
    for answer in [answer, elements] {
        let found = read(scanner(&TaggedJson::new()), [&*answer]);
        assert!(matches!(found.calls[..], [Written::Malformed { .. }]));
    }
}

/// As in native calls.
#[test]
fn arguments_are_nested_at_most_100_levels() {
    for (levels, fits) in [(99, true), (100, false)] {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        let tagged = format!(
            "<tool_call>{{\"name\": \"f\", \"arguments\": {{\"a\": {open}{close}}}}}</tool_call>"
        );
        let react = format!("Action: unknown(tags={open}{close})");
        for found in
            [read(scanner(&TaggedJson::new()), [&*tagged]), read(scanner(&React::new()), [&*react])]
        {
            assert_eq!(found.calls.len(), 1);
            assert_eq!(matches!(found.calls[0], Written::Call { .. }), fits, "{:?}", found.calls);
        }
    }
}

/// Numbers, texts and objects take up to a hundred times their text, and another call may still fit.
#[test]
fn calls_take_no_more_memory_than_the_limit() {
    const LIMIT: usize = 2 << 20;
    let mut limits = Limits::default();
    limits.held_bytes = LIMIT;
    let list = |item: &str| vec![item; 200_000 / (item.len() + 1)].join(",");
    for item in
        ["0", "[]", "[0]", r#"{"":0}"#, "'a'", r#""a""#, r#"{"a": '"', "b": [0], "c": '"'}"#]
    {
        let arguments = format!(r#"{{"a": [{}]}}"#, list(item));
        let call =
            format!("<tool_call>{{\"name\": \"f\", \"arguments\": {arguments}}}</tool_call>");
        let answer =
            format!("{call}{call}<tool_call>{{\"name\": \"g\", \"arguments\": {{}}}}</tool_call>");
        let mut found = Vec::new();
        let cost = measure(|| {
            let grammar = TaggedJson::new().grammar(tools());
            found = read(Scanner::with_limits(grammar, limits), [&*answer]).calls;
        });
        // Beside the calls there is the text of one as it grows.
        assert!(cost.bytes_max < (LIMIT * 3 / 2) as u64, "{item}: {} bytes", cost.bytes_max);
        let malformed = |call: &Written| matches!(call, Written::Malformed { .. });
        assert!(malformed(&found[0]) && malformed(&found[1]), "{item}");
        assert!(!malformed(&found[2]), "{item}: {:?}", found[2]);
    }
}
