//! Tool calls as text, for models and servers without function calling.
//!
//! A [`Dialect`] writes the instructions for the system prompt, finds calls in the text of an answer, and writes calls
//! and results as text when the conversation is sent. [`React`], [`Markers`], [`TaggedJson`] and [`Constrained`] are built
//! in; implement the trait for your own. The rest of a program sees ordinary [`ToolUseBlock`](oa_types::ToolUseBlock)s.
//!
//! ```
//! use std::sync::Arc;
//! use oa_fallback::{Dialect, React, Scanned};
//! use oa_types::ToolSpec;
//! use serde_json::json;
//!
//! let schema = json!({
//!     "type": "object",
//!     "properties": { "zip": { "type": "string" }, "days": { "type": "integer" } },
//!     "required": ["zip"],
//! });
//! let tools: Arc<[ToolSpec]> = Arc::new([ToolSpec::new("forecast", "The weather to come", schema)]);
//! let dialect = React::new();
//!
//! // 1. Add the instructions to the system prompt and the stop sequences to the request:
//! assert!(dialect.instructions(&tools).contains("forecast(zip, days): The weather to come"));
//! assert_eq!(dialect.stop(), ["\nObservation:"]);
//!
//! // 2. Scan the answer, which may be split anywhere:
//! let mut scanner = dialect.scanner(tools);
//! for piece in ["Thought: I look it up.\nAct", "ion: forecast(zip=0", "1234, days=\"3\")"] {
//!     scanner.push(piece);
//! }
//! scanner.finish();
//! assert_eq!(scanner.next_item(), Some(Scanned::Text("Thought: I look it up.")));
//! let Some(Scanned::Call(call)) = scanner.next_item() else { panic!("no call") };
//! // The schema decides the types: `zip` is a string, `days` a number.
//! assert_eq!(json!(call.input), json!({"zip": "01234", "days": 3}));
//!
//! // 3. History holds an ordinary call; `plain_message` writes it as text for the next request.
//! let block = call.into_tool_use("call_1");
//! assert_eq!(dialect.write_call(&block), r#"Action: forecast(zip="01234", days=3)"#);
//! ```
//!
//! # Guarantees of every dialect
//!
//! - Calls and text do not depend on how the answer was split into pieces.
//! - Text outside calls is emitted unchanged, once, and immediately; text in an answer of [`Constrained`] is decoded
//!   first. Only text that may be the start of a call is held back, at most [`Scanner::MOST_HELD`] bytes. White space
//!   before a call is removed with the call, and so is the label `Final Answer:` of [`React`].
//! - Thinking at the start of an answer, such as from `<think>` to `</think>`, is text: a call in it is only a draft.
//!   What follows is read as if the answer began there. [`ThinkingTags`](oa_json::ThinkingTags) lists the tags. What
//!   follows the first `</think>` is also read like that, because some templates put `<think>` into the prompt.
//! - All consecutive calls are read. Text after them is dropped, because the model wrote it without the results.
//! - A call written by a dialect is read back as the same call.
//! - An ambiguous call becomes a [`MalformedCall`] with the reason and the raw text; nothing is guessed. An unknown
//!   tool name is not ambiguous: the program that runs the calls answers that there is no such tool.
//! - A truncated answer that is ended with [`Scanner::finish_cut_off`] yields no call that the complete answer would
//!   not have yielded.
//! - Time is linear in the text, and memory is bounded by [`Limits`].
//!
//! # When to use this crate directly
//!
//! Use it to write your own agent loop, or to find calls in text. [`MixedCalls`] merges them with calls that the server
//! sends itself. To run an agent, use the facade `open-agent`.
//!
//! # Out of scope
//!
//! No I/O, no clock, no server names, no JSON reader (see `oa-json`), and no call ids, which the caller creates.

mod dialect;

mod constrained;
mod markers;
mod react;
mod tagged;

mod call;
mod grammar;
mod head;
mod mixed_calls;
mod scanner;

mod arguments;
mod balance;
mod bare;
mod bodies;
mod closing;
mod convert;
mod memory;
mod object;
mod schema;
mod tools;

mod inline;
mod plain;
mod prompt;
mod refusal;
mod thinking_calls;

pub use crate::call::{MalformedCall, Scanned, TextCall};
pub use crate::constrained::Constrained;
pub use crate::dialect::Dialect;
pub use crate::grammar::{
    AfterCall, BodyEnd, CallBody, Grammar, Match, ParsedCall, Position, TextBody,
};
pub use crate::head::{CallHead, NoMatch};
pub use crate::inline::inline_results;
pub use crate::markers::Markers;
pub use crate::mixed_calls::MixedCalls;
pub use crate::plain::plain_message;
pub use crate::react::React;
pub use crate::refusal::says_no_tools;
pub use crate::scanner::{Limits, Scanner};
pub use crate::tagged::{TaggedJson, recognize};
pub use crate::thinking_calls::calls_in_thinking;

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
