//! Server-sent events without I/O and without copying.
//!
//! [`Parser`] turns chunks of bytes into events by the rules of the WHATWG HTML standard, section
//! 9.2.6 ("Interpreting an event stream"); [`Frame`] writes events. Neither knows what the data
//! means: there is no JSON here and no `[DONE]`.
//!
//! The parser speaks *push / next / finish*:
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
//! parser.finish_lenient(); // `finish()` would drop the last one, as the standard says
//! while let Some(event) = parser.next_event()? {
//!     seen.push(event.data().into_owned());
//! }
//! assert_eq!(seen, ["one", "two", "cut off"]);
//! # Ok::<(), oa_sse::Error>(())
//! ```
//!
//! # Who needs this crate alone
//!
//! Whoever reads or writes an event stream with an HTTP stack of their own. To talk to a model, take
//! the `open-agent` facade.
//!
//! # What it costs
//!
//! An event that lies inside one chunk is lent as slices of that chunk: no allocation, no reference
//! count. An event that straddles chunks is copied once, into a buffer that is reused. Reads much smaller
//! than events are cheapest through [`Parser::push_slice`], from a buffer that the caller reuses. Text is
//! checked for UTF-8 when you ask for text; [`Event::raw_data`] returns bytes unchecked, for readers that
//! check anyway.
//!
//! # Features
//!
//! All are off by default: `stream` adds [`EventStream`] over any stream of `Bytes`, `body` adds
//! [`BodyEvents`] over any `http_body::Body`.

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
