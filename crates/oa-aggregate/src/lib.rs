//! Turns the payloads of a chat-completions stream into text, thinking and complete tool calls.
//!
//! Servers that claim to speak OpenAI's protocol each break it in their own way: indices are missing or all the same,
//! names and ids arrive late, twice or never, arguments are resent, and finish reasons are wrong. [`Aggregator`]
//! accepts all of that, without knowing the server. It returns text as it arrives and assembles calls until they are
//! complete; a call that cannot be completed becomes a block with the error. It has no I/O, no clock and no randomness.
//!
//! The numbered list of server quirks is in the facade's manual, `open_agent::guide::quirks`. In the docs of all
//! crates, "QUIRKS row 12" means row 12 of that list.
//!
//! # When to use this crate directly
//!
//! Use it if you have your own transport and want answers without a client. For an event stream, put `oa-sse` in front
//! of it. To run an agent, use the facade `open-agent`.
//!
//! ```
//! use oa_aggregate::{Aggregator, ContentBlock, Delta};
//!
//! let mut aggregator = Aggregator::new();
//! for payload in [
//!     r#"{"choices":[{"delta":{"content":"Let me add."}}]}"#,
//!     r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"add","arguments":"{\"a\":"}}]}}]}"#,
//!     r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"25}"}}]},"finish_reason":"tool_calls"}]}"#,
//!     "[DONE]",
//! ] {
//!     aggregator.push(payload.as_bytes())?;
//!     while let Some(delta) = aggregator.next_delta() {
//!         if let Delta::Text(text) = delta {
//!             print!("{text}");
//!         }
//!     }
//! }
//! aggregator.finish()?;
//! while let Some(delta) = aggregator.next_delta() {
//!     // What was held back, if anything was.
//! }
//! let answer = aggregator.into_answer();
//! let ContentBlock::ToolUse(call) = &answer.blocks[1] else { panic!("no call") };
//! assert_eq!((&*call.name, &call.input["a"]), ("add", &25.into()));
//! # Ok::<(), oa_aggregate::Error>(())
//! ```
#![doc = include_str!("streams.md")]
//! # Performance
//!
//! A chunk that differs from an earlier one only in its text is compared, not parsed; see [`Decoder`]. With a
//! [`TemplateCache`] that is reused across answers, a short answer need not be parsed at all. Deltas are slices of the
//! growing answer, without allocations of their own.

mod aggregator;
mod allowance;
mod answer;
mod arguments;
mod blocks;
mod budget;
mod call;
mod calls;
mod chunk;
mod decode;
mod delta;
mod details;
mod echo;
mod error;
mod failure;
mod json;
mod limits;
mod opaque;
mod options;
mod parts;
mod place;
mod prompt_progress;
mod quirks;
mod reasoning;
mod repeat;
mod signed;
mod speech;
mod state;
mod stream_status;
mod template;
mod text;
mod think;
mod thought;
mod value;

pub use oa_types::wire::ServerError;
pub use oa_types::{
    AssistantMessage, ContentBlock, Cost, Extra, FinishReason, ImageBlock, ImageDetail, MadeUpIds,
    Message, MessageRole, PromptProgress, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock,
    ToolUseError, Usage, UsedIds,
};

pub use crate::aggregator::Aggregator;
#[doc(hidden)]
pub use crate::aggregator::payload_of_line;
pub use crate::answer::AggregatedAnswer;
pub use crate::chunk::{Choice, Chunk, Fragment, Part, Payload};
pub use crate::decode::Decoder;
pub use crate::delta::Delta;
pub use crate::error::{Error, ErrorKind, Problem, UncleanEnd, UnreadablePayload};
pub use crate::limits::Limits;
pub use crate::options::Options;
pub use crate::quirks::{ArgumentRepair, ChoiceIndex, Quirks, TextMode, ThinkTags};
pub use crate::stream_status::StreamStatus;
pub use crate::template::TemplateCache;

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
