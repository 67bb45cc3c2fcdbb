//! The words that the open-agent crates share: blocks, messages, finish reasons, usage, and their
//! form on the wire.
//!
//! Data and pure conversions only: no network, no clock, and no server's name. Messages and blocks
//! carry serde because users store them; the shape (`{"type": "text", "text": ...}`) is part of the
//! contract. What goes to a server is written by [`wire`], which is the only place that knows both.
//!
//! # Who needs this crate alone
//!
//! Nobody, usually: `oa-aggregate` and the facade `open-agent` re-export what their signatures name.
//!
//! ```
//! use oa_types::{ContentBlock, Message};
//!
//! let message = Message::user("What is in this picture?");
//! let json = serde_json::to_string(&message)?;
//! assert_eq!(json, r#"{"role":"user","content":[{"type":"text","text":"What is in this picture?"}]}"#);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod block;
mod extra;
mod history;
mod image;
mod message;

mod assistant;
mod cost;
mod finish;
mod outcome;
mod tool;
mod usage;

mod name;

#[doc(hidden)]
pub mod contain;
pub mod wire;

mod error;
mod permanent;

pub use crate::assistant::AssistantMessage;
pub use crate::block::{
    ContentBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, ToolUseError,
};
pub use crate::cost::{Cost, Price};
pub use crate::error::{Error, ErrorKind};
pub use crate::extra::Extra;
pub use crate::finish::FinishReason;
pub use crate::history::History;
pub use crate::image::{ImageBlock, ImageDetail};
pub use crate::message::{Message, MessageRole};
pub use crate::name::{BaseUrl, ModelName, Temperature};
pub use crate::outcome::Outcome;
pub use crate::permanent::Permanent;
pub use crate::tool::ToolSpec;
pub use crate::usage::Usage;
