//! From the payloads of a chat-completions stream to text, thinking and whole tool calls.
//!
//! Servers that say they speak OpenAI's protocol each break it in their own way: indices are missing
//! or all the same, names and ids come late, twice or never, arguments are resent, finish reasons lie.
//! [`Aggregator`] takes them all, without being told which server it is: text leaves as it arrives,
//! calls are put together until they are whole, and what cannot be put together becomes a block that
//! says so. It has no I/O, no clock and no randomness.
//!
//! What servers do is listed with numbers in the manual of the facade, `open_agent::guide::quirks`: "QUIRKS row 12" in
//! the docs of this crate and of the others means row 12 there.
//!
//! # Who needs this crate alone
//!
//! Whoever has a transport of their own and wants the answer without a client around it; it needs
//! nothing but serde and serde_json. With an event stream, `oa-sse` goes before it. To run an agent,
//! take the facade `open-agent`.
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
//!
//! # What it costs
//!
//! A chunk that differs from one before only in its text is compared, not read; see [`Decoder`]. With
//! [`Forms`] carried from answer to answer nothing of a short answer has to be read.
//! Deltas are slices of the answer as it grows: nothing is allocated for them.

mod aggregator;
mod answer;
mod delta;
mod limits;

mod arguments;
mod blocks;
mod budget;
mod call;
mod calls;
mod details;
mod echo;
mod ids;
mod opaque;
mod repeat;
mod signed;
mod speech;
mod state;
mod text;
mod think;
mod thought;

mod chunk;
mod decode;
mod failure;
mod form;
mod forms;
mod hole;
mod json;
mod reasoning;
mod template;

mod error;
mod quirks;

pub use oa_types::wire::ServerError;
pub use oa_types::{
    AssistantMessage, ContentBlock, FinishReason, ImageBlock, ImageDetail, Message, MessageRole,
    TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, ToolUseError, Usage,
};

pub use crate::aggregator::{Aggregator, Options, Progress};
pub use crate::answer::Answer;
pub use crate::chunk::{Choice, Chunk, Fragment, Part, Payload};
pub use crate::decode::Decoder;
pub use crate::delta::Delta;
pub use crate::error::{Error, ErrorKind, Problem, UncleanEnd, Unreadable};
pub use crate::forms::Forms;
pub use crate::ids::MadeUpIds;
pub use crate::limits::Limits;
pub use crate::quirks::{ArgumentRepair, ChoiceIndex, Quirks, TextMode, ThinkTags};
