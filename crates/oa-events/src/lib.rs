//! The events of an agent's turn as data, for front ends, logs and other processes.
//!
//! [`AgentEvent`] has a stable JSON form, whose JSON Schema is in the crate's folder `schema`.
//!
//! ```
//! use oa_events::AgentEvent;
//!
//! let event: AgentEvent = serde_json::from_str(r#"{"type": "turn_end", "data": "stop"}"#)?;
//! assert_eq!(serde_json::to_string(&event)?, r#"{"type":"turn_end","data":"stop"}"#);
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! # When to use this crate directly
//!
//! Use it to read events that another process wrote. To run an agent, use the facade `open-agent`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod event;
mod metadata;
mod reply;
mod turn_text;

pub use crate::event::{AgentEvent, CallDenied, NestedEvent, ToolUseDelta};
pub use crate::metadata::TurnMetadata;
pub use crate::reply::Reply;
pub use crate::turn_text::TurnText;

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
