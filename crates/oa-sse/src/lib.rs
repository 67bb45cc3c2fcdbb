//! Server-sent events without I/O or copying.
//!
//! [`Parser`] turns chunks of bytes into events according to the WHATWG HTML standard, section 9.2.6
//! ("Interpreting an event stream"); [`Frame`] writes events. Neither interprets the data: no JSON, no
//! `[DONE]`.
//!
//! The parser has the methods *push / next / finish*:
//!
//! ```
//! use oa_sse::Parser;
//!
//! let mut parser = Parser::new();
//! let mut seen = Vec::new();
//! for chunk in ["data: one\n\nda", "ta: two\n", "\n", "data: cut off"] {
//!     parser.push(chunk.into());
//!     while let Some(event) = parser.next_event()? {
//!         seen.push(event.data().into_owned());
//!     }
//! }
//! parser.finish_lenient(); // `finish()` would drop the last event, as the standard requires
//! while let Some(event) = parser.next_event()? {
//!     seen.push(event.data().into_owned());
//! }
//! assert_eq!(seen, ["one", "two", "cut off"]);
//! # Ok::<(), oa_sse::Error>(())
//! ```
//!
//! # When to use this crate directly
//!
//! To read or write event streams with your own HTTP stack. To talk to a model, use the `open-agent` facade.
//!
//! # Performance
//!
//! An event inside one chunk is borrowed from that chunk: no allocation, no reference count. An event that
//! spans chunks is copied once, into a reused buffer. If reads are much smaller than events,
//! [`Parser::push_slice`] from a buffer that you reuse is cheapest. UTF-8 is validated only when you ask for
//! text; [`Event::raw_data`] returns raw bytes for readers that validate themselves.
//!
//! # Features
//!
//! Off by default: `stream` adds [`EventStream`] over any stream of `Bytes`, `body` adds [`BodyEvents`] over
//! any `http_body::Body`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod parser;

mod budget;
mod error;
mod event;
mod frame;
mod limits;
mod line;

#[cfg(any(feature = "body", feature = "stream"))]
mod reader;

#[cfg(feature = "body")]
mod body;
#[cfg(feature = "stream")]
mod stream;

#[cfg(feature = "body")]
pub use crate::body::BodyEvents;
pub use crate::budget::PollBudget;
#[cfg(any(feature = "body", feature = "stream"))]
pub use crate::error::ReadError;
pub use crate::error::{Error, ErrorKind};
pub use crate::event::{Event, EventBuf, Item};
pub use crate::frame::Frame;
pub use crate::limits::Limits;
pub use crate::parser::Parser;
#[cfg(feature = "stream")]
pub use crate::stream::EventStream;
