//! Types shared by the open-agent crates: content blocks, messages, finish reasons, usage, their JSON wire format,
//! and the delays of retries.
//!
//! Data and pure conversions only: no network, no clock, no server names. Messages and blocks implement serde's traits
//! because users store them, and their stored shape (`{"type": "text", "text": ...}`) is part of the contract. [`wire`]
//! writes the JSON that is sent to servers; no other module knows both shapes.
//!
//! # When to use this crate directly
//!
//! Rarely: `oa-aggregate` and the facade `open-agent` re-export every type that appears in their signatures.
//!
//! ```
//! use oa_types::{ContentBlock, Message};
//!
//! let message = Message::user("What is in this picture?");
//! let json = serde_json::to_string(&message)?;
//! assert_eq!(json, r#"{"role":"user","content":[{"type":"text","text":"What is in this picture?"}]}"#);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod audio;
mod block;
mod extra;
mod history;
mod ids;
mod image;
mod media;
mod message;

mod assistant;
mod cost;
mod finish;
mod outcome;
mod price;
mod prompt_progress;
mod timeout;
mod tool;
mod usage;

mod backoff;
mod name;

pub mod micros;
pub mod wire;

mod erased;
mod error;
mod error_record;
mod json_size;
mod nesting;
mod percent;
mod permanent;
mod reference;

pub use crate::assistant::AssistantMessage;
pub use crate::audio::AudioBlock;
pub use crate::backoff::Backoff;
pub use crate::block::{
    ContentBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, ToolUseError,
};
pub use crate::cost::Cost;
#[doc(hidden)]
pub use crate::erased::{Erased, Exclusive};
pub use crate::error::{Error, ErrorKind};
pub use crate::error_record::ErrorRecord;
pub use crate::extra::Extra;
pub use crate::finish::FinishReason;
pub use crate::history::History;
pub use crate::ids::{MadeUpIds, UsedIds};
pub use crate::image::{ImageBlock, ImageDetail};
pub use crate::json_size::json_size;
pub use crate::message::{Message, MessageRole};
pub use crate::name::{BaseUrl, ModelName, Temperature};
#[doc(hidden)]
pub use crate::nesting::{MAX_NESTING, check_nesting, flattened, is_nested_within, shallow};
pub use crate::outcome::Outcome;
#[doc(hidden)]
pub use crate::percent::percent_decoded;
pub use crate::permanent::Permanent;
pub use crate::price::Price;
pub use crate::prompt_progress::PromptProgress;
#[doc(hidden)]
pub use crate::reference::{merge_schema, resolve};
pub use crate::timeout::Timeout;
pub use crate::tool::ToolSpec;
pub use crate::usage::Usage;

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
