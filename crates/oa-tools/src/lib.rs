//! Tools for language models: the [`Tool`] trait, builders, argument checks and a registry.
//!
//! [`tool()`] makes a tool from a closure; a type with state implements [`Tool`]. A [`Registry`] holds tools by
//! name. Arguments are checked against the tool's schema before it runs, and the error names the invalid field for
//! the model. [`strict_schema`] rewrites a schema for servers with a strict mode.
//!
//! ```
//! use oa_tools::{ErrorKind, tool};
//! use serde_json::json;
//!
//! let add = tool("add", "Add two numbers").param("a", "number").param("b", "number").build(
//!     |args| async move {
//!         let number = |name: &str| args[name].as_f64().unwrap_or_default();
//!         Ok(json!({ "sum": number("a") + number("b") }))
//!     },
//! );
//!
//! # use std::task::{Context, Poll, Waker};
//! # let mut run = |input| match add.execute(input).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
//! #     Poll::Ready(result) => result,
//! #     Poll::Pending => panic!("this tool does not wait"),
//! # };
//! // `run` awaits `add.execute(input)`
//! assert_eq!(run(json!({ "a": 25, "b": 17 }))?, json!({ "sum": 42.0 }));
//! assert_eq!(run(json!({ "a": 25 })).unwrap_err().kind(), ErrorKind::InvalidInput);
//! # Ok::<(), oa_tools::Error>(())
//! ```
//!
//! # When to use this crate directly
//!
//! To publish tools, or to run them in your own loop; `oa-executor` runs many calls at once. To write an agent, use the
//! `open-agent` facade.
//!
//! # Not included
//!
//! No runtime, no I/O, no clock. A blocking handler is only marked as such ([`Tool::blocking`]) and a timeout
//! only declared ([`Tool::timeout`]); the code that runs tools applies them. [`check_arguments`] checks the
//! keywords that it lists, a subset of JSON Schema; the feature `jsonschema` checks all of them.
//!
//! # Features
//!
//! - `schemars` (off by default): `ToolBuilder::typed`, for tools whose argument type derives its schema.
//! - `jsonschema` (off by default): checks arguments against every keyword of JSON Schema, including patterns and
//!   formats.
//! - `macros` (off by default): support for the expansion of `#[tool]`, which is in `oa-macros`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod tool;

mod builder;
mod fn_tool;
mod name;
#[cfg(feature = "macros")]
mod returned;
mod schema;
mod strict;
#[cfg(feature = "schemars")]
mod typed;

mod arguments;
mod bounds;
mod excerpt;
mod keywords;
mod located;
mod members;
#[cfg(feature = "jsonschema")]
mod validator;

mod cancel;
mod context;
mod emission;
mod idempotency;
mod images;
mod state;

mod registry;
mod source;

mod error;
mod error_body;
mod tool_error;

pub use crate::arguments::{ArgumentError, ArgumentProblem, check_arguments, complete_arguments};
pub use crate::builder::{ToolBuilder, tool};
pub use crate::cancel::{Cancel, Cancelled};
pub use crate::context::ToolContext;
pub use crate::emission::{Emission, Emissions, Emitter, LogLevel, Progress};
pub use crate::error::{Error, ErrorKind};
pub use crate::error_body::ErrorBody;
pub use crate::fn_tool::FnTool;
pub use crate::idempotency::IdempotencyKey;
#[doc(hidden)]
pub use crate::located::read_value;
pub use crate::registry::Registry;
pub use crate::source::{SourcedTools, ToolSource};
pub use crate::state::State;
pub use crate::strict::strict_schema;
pub use crate::tool::{BlockingHandler, ExecuteFuture, Tool, ToolFuture};
pub use crate::tool_error::ToolError;
#[cfg(feature = "schemars")]
pub use crate::typed::schema_of;
#[cfg(feature = "jsonschema")]
pub use crate::validator::SchemaValidator;

/// Names in the expansion of `#[tool]`: not part of the public surface.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __private {
    pub use schemars;
    pub use serde;

    pub use crate::returned::{PlainValue, Returned};
    pub use crate::typed::to_value;
}

/// Runs the README's example as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
