//! Structured output without I/O: requesting a format, reading partial values, and validating answers.
//!
//! [`ResponseFormat`] is a name and a schema. [`FormatFallback`] lists weaker ways to request the output if a server
//! rejects a format. [`OutputReader`] reads the value while the answer arrives. [`OutputValidator`] checks complete
//! answers and writes the correction for an answer that does not match.
//!
//! # When to use this crate directly
//!
//! Use it in your own agent loop or client. To run an agent, use the facade `open-agent`.
//!
//! # Features
//!
//! `schemars` adds `ResponseFormat::of`, which creates a format from a type.

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

/// Runs the README's example as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
