//! Reads JSON that is incomplete or slightly broken: while it streams in, truncated, almost valid, or embedded in prose.
//!
//! serde_json requires text that is complete and valid. Language models often write text that is neither. Choose a
//! reader by the kind of text:
//!
//! | text | reader | handling of problems |
//! | --- | --- | --- |
//! | arrives in pieces | [`PartialReader`] | as strict as serde_json; the value so far is always available |
//! | has an object somewhere in prose | [`ObjectFinder`], [`find_object`] | a second object is an error |
//! | almost valid and complete | [`LenientReader`], [`read_lenient`] | ambiguity is an error; nothing is guessed |
//! | almost valid and truncated | [`repair`](repair()) | closes open values, drops members without a value |
//!
//! [`Escape`] decodes escapes and surrogate pairs for all of them, and [`held`] bounds the memory that a value takes.
//! [`ValueEnd`], [`value_length`], [`string_length`] and [`number_length`] find where a value ends, without reading
//! it, and [`count_values`] bounds how many there are. [`replace_lone_surrogates`] makes text that was cut within a
//! character readable for serde_json.
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
//! # Guarantees of every reader
//!
//! - The result does not depend on how the text was split into pieces.
//! - Valid JSON gives the same value as with serde_json, or an error that the reader documents.
//! - No text causes a panic. Depth is bounded by [`MAX_DEPTH`] and memory by [`Limits`]; time is linear in the text.
//!
//! # When to use this crate directly
//!
//! Use it to show structured output or the arguments of a tool call while they stream, or to extract
//! JSON from the text of a model. To run an agent, use the facade `open-agent`.
//!
//! # Out of scope
//!
//! No I/O, no schemas, no types other than [`Value`](serde_json::Value), and no writer.

mod find;
mod lenient;
mod partial;
mod repair;

mod escape;
pub mod held;

mod error;
mod excerpt;
mod json_str;
mod limits;
mod scalar;
mod syntax;
mod thinking;
mod trim;
mod value;
mod value_count;
mod value_end;

pub use crate::error::{Error, ErrorKind, Result};
pub use crate::escape::{
    Escape, EscapeError, Halves, escape_control_characters, replace_lone_surrogates, unescape,
    unescape_lossy,
};
#[doc(hidden)]
pub use crate::excerpt::{beginning, excerpt, quoted};
pub use crate::find::{ObjectFinder, find_object};
pub use crate::json_str::JsonStr;
pub use crate::lenient::{LenientReader, LenientValue, read_lenient};
pub use crate::limits::{Limits, MAX_DEPTH};
pub use crate::partial::PartialReader;
pub use crate::repair::{read_or_text, repair};
pub use crate::scalar::{Escapes, number_length, string_length};
pub use crate::thinking::ThinkingTags;
pub use crate::trim::Trim;
pub use crate::value::{literal, read_strict, read_within};
pub use crate::value_count::count_values;
pub use crate::value_end::{ValueEnd, value_length};

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
