//! Dialects through the public API.

use std::sync::Arc;

use oa_fallback::{Constrained, Dialect, Limits, Markers, React, Scanned, Scanner, TaggedJson};
use oa_types::ToolSpec;
use serde_json::{Value, json};

mod bounds;
mod constrained;
mod instructions;
mod laws;
mod messages;
mod mixed_calls;
mod refusals;

mod rules;
mod transcripts;

/// The parts of a scanned answer, with pieces of text joined.
#[derive(Clone, Debug, Default, PartialEq)]
struct Found {
    text: String,
    calls: Vec<Written>,
    /// The most bytes held back after any piece.
    held: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum Written {
    Call { name: String, input: Value, offset: usize },
    Malformed { name: Option<String>, error: String, raw: String, offset: usize },
}

impl Found {
    /// Without what depends on the cuts.
    fn settled(mut self) -> Self {
        self.held = 0;
        self
    }
}

/// Reads an answer that comes in pieces.
fn read<'a>(scanner: Scanner, pieces: impl IntoIterator<Item = &'a str>) -> Found {
    read_until(Scanner::finish, scanner, pieces)
}

/// Reads an answer that was cut off.
fn read_cut_off<'a>(scanner: Scanner, pieces: impl IntoIterator<Item = &'a str>) -> Found {
    read_until(Scanner::finish_cut_off, scanner, pieces)
}

fn read_until<'a>(
    end: fn(&mut Scanner),
    mut scanner: Scanner,
    pieces: impl IntoIterator<Item = &'a str>,
) -> Found {
    let mut found = Found::default();
    for piece in pieces {
        scanner.push(piece);
        drain(&mut scanner, &mut found);
        found.held = found.held.max(scanner.held_bytes());
    }
    end(&mut scanner);
    drain(&mut scanner, &mut found);
    assert_eq!(scanner.held_bytes(), 0);
    found
}

fn drain(scanner: &mut Scanner, found: &mut Found) {
    while let Some(item) = scanner.next_item() {
        match item {
            Scanned::Text(piece) => {
                assert!(!piece.is_empty(), "an empty piece of text");
                found.text.push_str(piece);
            }
            Scanned::Call(call) => found.calls.push(Written::Call {
                name: call.name,
                input: Value::Object(call.input),
                offset: call.offset,
            }),
            Scanned::Malformed(call) => found.calls.push(Written::Malformed {
                name: call.name,
                error: call.error,
                raw: call.raw,
                offset: call.offset,
            }),
            other => panic!("an item that is not known here: {other:?}"),
        }
    }
}

fn dialects() -> Vec<Arc<dyn Dialect>> {
    vec![
        Arc::new(React::new()),
        Arc::new(Markers::new()),
        Arc::new(Markers::inline()),
        Arc::new(TaggedJson::new()),
        Arc::new(Constrained::new()),
        Arc::new(Constrained::new().with_parallel_calls(true)),
    ]
}

fn scanner(dialect: &dyn Dialect) -> Scanner {
    dialect.scanner(tools())
}

fn bounded(dialect: &dyn Dialect, argument_bytes: usize, calls: usize) -> Scanner {
    let mut limits = Limits::default();
    (limits.argument_bytes, limits.calls) = (argument_bytes, calls);
    Scanner::with_limits(dialect.grammar(tools()), limits)
}

/// The tools of every test.
fn tools() -> Arc<[ToolSpec]> {
    let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required});
    let number = json!({"type": "number"});
    let text = json!({"type": "string"});
    Arc::new([
        ToolSpec::new(
            "add",
            "Adds two numbers",
            object(json!({"a": number, "b": number}), json!(["a", "b"])),
        ),
        ToolSpec::new("get_time", "Tells the time", object(json!({}), json!([]))),
        ToolSpec::new(
            "search",
            "Searches the web",
            object(
                json!({"query": {"type": "string", "description": "what to look for"}}),
                json!(["query"]),
            ),
        ),
        ToolSpec::new(
            "weather",
            "Tells the weather to come",
            object(
                json!({
                    "city": text,
                    "days": {"type": "integer", "default": 1},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                }),
                json!(["city"]),
            ),
        ),
        ToolSpec::new(
            "write_file",
            "Writes a file",
            object(json!({"path": text, "content": text}), json!(["path", "content"])),
        ),
        ToolSpec::new(
            "lookup",
            "",
            object(
                json!({
                    "id": text,
                    "zip": text,
                    "active": {"type": "boolean"},
                    "tags": {"type": "array", "items": text},
                    "options": {
                        "type": "object",
                        "properties": {"limit": {"type": "integer"}, "deep": {"type": "boolean"}},
                    },
                }),
                json!([]),
            ),
        ),
    ])
}
