//! Tool calls as text, for models and servers without function calling.
//!
//! A [`Dialect`] writes what the model is told of its tools, finds the calls in what the model writes, and
//! writes calls and results as text when the conversation is sent. [`React`], [`Markers`] and
//! [`TaggedJson`] are dialects; your own implements the trait. The rest of a program sees ordinary
//! [`ToolUseBlock`](oa_types::ToolUseBlock)s.
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
//! // 1. Into the system prompt, and into `stop` of the request:
//! assert!(dialect.instructions(&tools).contains("forecast(zip, days): The weather to come"));
//! assert_eq!(dialect.stop(), ["\nObservation:"]);
//!
//! // 2. What the model writes, in any pieces:
//! let mut scanner = dialect.scanner(tools);
//! for piece in ["Thought: I look it up.\nAct", "ion: forecast(zip=0", "1234, days=\"3\")"] {
//!     scanner.push(piece);
//! }
//! scanner.finish();
//! assert_eq!(scanner.next_item(), Some(Scanned::Text("Thought: I look it up.")));
//! let Some(Scanned::Call(call)) = scanner.next_item() else { panic!("no call") };
//! // Values are read by the schema: the one is text, the other a number.
//! assert_eq!(json!(call.input), json!({"zip": "01234", "days": 3}));
//!
//! // 3. In history it is a call like any other; `plain_message` writes it as text for the next request.
//! let block = call.into_tool_use("call_1");
//! assert_eq!(dialect.write_call(&block), r#"Action: forecast(zip="01234", days=3)"#);
//! ```
//!
//! # What holds for every dialect
//!
//! - What is found does not depend on how the text was cut into pieces.
//! - Text that is no call goes out unchanged, once, and at once; only what may be the beginning of a call
//!   is held back, [`Scanner::MOST_HELD`] bytes at most. White space before a call goes with it, and so
//!   does the label `Final Answer:` of [`React`].
//! - Calls that follow each other are all read. What the model wrote behind them is cut: it had not seen
//!   the results.
//! - A call that was written by the dialect is read as the same call.
//! - Doubt is a [`MalformedCall`] with the reason and the raw text, never a guess. A name that no tool has
//!   is no doubt: whoever runs the calls answers that there is no such tool.
//! - An answer that was cut off, by the limit of its length or by a broken stream, makes no call that the whole
//!   one would not have made: say so by [`Scanner::finish_cut_off`].
//! - Time is linear in the text, and memory is bounded by [`Limits`].
//!
//! # Who needs this crate alone
//!
//! Whoever has a loop of their own, or wants the calls in a text. To run an agent, take the facade
//! `open-agent`.
//!
//! # Not in it
//!
//! No I/O, no clock, no server's name, and no ids: those of calls are the caller's to make up.

mod dialect;

mod markers;
mod react;
mod tagged;

mod call;
mod grammar;
mod head;
mod scanner;

mod arguments;
mod balance;
mod bare;
mod bodies;
mod closing;
mod convert;
mod object;
mod quote;
mod tools;

mod fill;
mod plain;
mod prompt;
mod refusal;

pub use crate::call::{Call, MalformedCall, Scanned};
pub use crate::dialect::Dialect;
pub use crate::fill::fill_in;
pub use crate::grammar::{After, Body, End, Found, Grammar, Place, Reading, Stop};
pub use crate::head::Head;
pub use crate::markers::Markers;
pub use crate::plain::plain_message;
pub use crate::react::React;
pub use crate::refusal::says_no_tools;
pub use crate::scanner::{Limits, Scanner};
pub use crate::tagged::{TaggedJson, recognise};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
