//! Tools that a language model can call: what one is, ways to make one, and what it may be called with.
//!
//! A closure becomes a tool by [`tool()`]; a type with state of its own implements [`Tool`]. A [`Registry`]
//! holds tools by name. Arguments are checked against the tool's schema before it runs, and the model
//! is told which field is wrong.
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
//! # Who needs this crate alone
//!
//! Whoever publishes tools, or runs them in a loop of their own; `oa-executor` runs many at once. To write
//! an agent, take the `open-agent` facade.
//!
//! # What is not in it
//!
//! No runtime, no I/O and no clock. A handler that blocks is only marked as such
//! ([`Tool::blocking`]), a timeout only told ([`Tool::timeout`]): whoever runs tools acts on them.
//! Arguments are checked for what [`check_arguments`] lists, which is less than all of JSON Schema.
//!
//! # Features
//!
//! `schemars` (off by default): `ToolBuilder::typed`, tools over a type that derives its schema.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod tool;

mod builder;
mod fn_tool;
mod name;
mod schema;
#[cfg(feature = "schemars")]
mod typed;

mod arguments;
mod excerpt;

mod cancel;
mod context;
mod emission;
mod state;

mod registry;

mod error;
mod error_body;
mod tool_error;

pub use crate::arguments::{ArgumentError, ArgumentProblem, check_arguments, complete_arguments};
pub use crate::builder::{ToolBuilder, tool};
pub use crate::cancel::{Cancel, Cancelled};
pub use crate::context::ToolContext;
pub use crate::emission::{Emission, Emitter, LogLevel, Progress};
pub use crate::error::{Error, ErrorKind};
pub use crate::error_body::ErrorBody;
pub use crate::fn_tool::FnTool;
pub use crate::registry::Registry;
pub use crate::state::State;
pub use crate::tool::{BlockingHandler, ExecuteFuture, Tool, ToolFuture};
pub use crate::tool_error::ToolError;
#[cfg(feature = "schemars")]
pub use crate::typed::schema_of;

/// The README's example, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
