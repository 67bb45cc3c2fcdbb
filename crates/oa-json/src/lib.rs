//! JSON that is not finished or not quite right: as it streams in, cut off, slightly broken, or in the middle of prose.
//!
//! serde_json reads a text that is complete and correct. What a language model writes is often neither, and what can be
//! made of it depends on what it is for:
//!
//! | the text | what reads it | what it does with doubt |
//! | --- | --- | --- |
//! | arrives in pieces | [`PartialReader`] | strict as serde_json; at any moment there is the value so far |
//! | has an object somewhere in prose | [`ObjectFinder`], [`find_object`] | a second object is an error |
//! | is nearly JSON, and complete | [`LenientReader`], [`read_lenient`] | an error: nothing is guessed |
//! | is nearly JSON, and cut off | [`repair`](repair()) | closes what is open, drops what has no value |
//!
//! [`Escape`] is the one decoder of escapes and surrogates, [`held`] knows how much memory a value takes.
//!
//! ```
//! use oa_json::PartialReader;
//! use serde_json::json;
//!
//! let mut reader = PartialReader::new();
//! for piece in [r#"{"city": "Os"#, r#"lo", "days": [1"#, "2]}"] {
//!     reader.push(piece);
//!     println!("{:?}", reader.value()); // a form that fills in as the model writes
//! }
//! assert_eq!(reader.finish()?, json!({"city": "Oslo", "days": [12]}));
//! # Ok::<(), oa_json::Error>(())
//! ```
//!
//! # What holds for every reader
//!
//! - What is read does not depend on how the text was cut into pieces.
//! - JSON that is valid is read as serde_json reads it, or refused for a reason that the reader documents.
//! - No text panics. Depth is bounded by [`MAX_DEPTH`], memory by [`Limits`], and time is linear in the text.
//!
//! # When to use this crate directly
//!
//! Use it to show structured output or the arguments of a tool call while they stream, or to extract
//! JSON from the text of a model. To run an agent, use the facade `open-agent`.
//!
//! # Not in it
//!
//! No I/O, no schemas, no types but [`Value`](serde_json::Value), and no writer.

mod find;
mod lenient;
mod partial;
mod repair;

mod escape;
pub mod held;

mod error;
mod excerpt;
mod limits;
mod syntax;
mod value;

pub use crate::error::{Error, ErrorKind, Result};
pub use crate::escape::{Escape, EscapeError, unescape, unescape_lossy};
pub use crate::find::{ObjectFinder, find_object};
pub use crate::lenient::{LenientReader, LenientValue, read_lenient};
pub use crate::limits::{Limits, MAX_DEPTH};
pub use crate::partial::PartialReader;
pub use crate::repair::repair;
pub use crate::value::literal;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
