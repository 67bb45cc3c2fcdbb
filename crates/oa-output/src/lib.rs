//! Structured output without I/O: what to ask for, what to read while it arrives, and what to answer when it does not
//! match.
//!
//! [`ResponseFormat`] is a name and a schema. [`FormatFallback`] asks in weaker ways where a server refuses a format.
//! [`OutputReader`] has the value so far while an answer arrives. [`OutputValidator`] checks complete answers, and says
//! what the model is told about one that does not match.
//!
//! # When to use this crate directly
//!
//! Use it under an agent loop or a client of your own. To run an agent, use the facade `open-agent`.
//!
//! # Features
//!
//! `schemars` adds `ResponseFormat::of`: formats from types.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
mod format_fallback;
mod mode;
mod partial;
mod reader;
mod response_format;
mod validator;

pub use crate::error::{Error, ErrorKind};
pub use crate::format_fallback::{FormatFallback, FormatRequest, refuses_format};
pub use crate::mode::OutputMode;
pub use crate::partial::Partial;
pub use crate::reader::OutputReader;
pub use crate::response_format::ResponseFormat;
pub use crate::validator::{OtherTools, OutputCheck, OutputOptions, OutputValidator, Validation};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
