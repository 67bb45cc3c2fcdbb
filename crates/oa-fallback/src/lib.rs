//! Tool calls as text, for models and servers without function calling.
//!
//! A [`Dialect`] writes the instructions for the system prompt, finds calls in the text of an answer, and writes calls
//! and results as text when the conversation is sent. [`React`], [`Markers`] and [`TaggedJson`] are dialects; your own
//! implements the trait. The rest of a program sees ordinary [`ToolUseBlock`](oa_types::ToolUseBlock)s.
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
//! // 2. The answer, cut anywhere:
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
//! - Calls and text do not depend on how the answer was cut into pieces.
//! - Text that is no call is emitted unchanged, once, and at once; only text that may be the beginning of a call is
//!   held back, [`Scanner::MOST_HELD`] bytes at most. White space before a call is cut with it, and so is the label
//!   `Final Answer:` of [`React`].
//! - Calls that follow each other are all read. Text that the model wrote behind them is cut: it had not seen the
//!   results.
//! - A call that the dialect wrote is read as the same call.
//! - Doubt is a [`MalformedCall`] with the reason and the raw text, never a guess. The name of an unknown tool is no
//!   doubt: the program that runs the calls answers that there is no such tool.
//! - An answer that was cut off makes no call that the whole one would not have made, if it is ended by
//!   [`Scanner::finish_cut_off`].
//! - Time is linear in the text, and memory is bounded by [`Limits`].
//!
//! # Who needs this crate alone
//!
//! Programs with a loop of their own, and programs that look for calls in a text. To run an agent, take the facade
//! `open-agent`.
//!
//! # Not in it
//!
//! No I/O, no clock, no server's name, no JSON reader (that is `oa-json`), and no ids of calls: the caller makes them.

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

mod inline;
mod plain;
mod prompt;
mod refusal;

pub use crate::call::{MalformedCall, Scanned, TextCall};
pub use crate::dialect::Dialect;
pub use crate::grammar::{AfterCall, BodyEnd, CallBody, Grammar, Match, ParsedCall, Position};
pub use crate::head::{CallHead, NoMatch};
pub use crate::inline::inline_results;
pub use crate::markers::Markers;
pub use crate::plain::plain_message;
pub use crate::react::React;
pub use crate::refusal::says_no_tools;
pub use crate::scanner::{Limits, Scanner};
pub use crate::tagged::{TaggedJson, recognize};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
