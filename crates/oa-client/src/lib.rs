//! The agent: options, a conversation that runs tools, structured output.
//!
//! [`query`] sends one prompt and streams the answer. A [`Client`] holds a conversation and runs tools.
//! [`AgentOptions`] configure the server, the model and everything else. Requests go through one tower service, so any
//! transport fits: the built-in one, your own, or a scripted model in a test.
//!
//! # When to use this crate directly
//!
//! Rarely: the facade `open-agent` re-exports it. To put a layer between an agent and its server, or to bring your own
//! model, use `oa-chat`.
//!
//! ```
//! use oa_client::{AgentOptions, query};
//! use oa_testkit::{MemoryServer, Reply};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), oa_client::Error> {
//! let options = AgentOptions::builder()
//!     .model("any")
//!     .transport(MemoryServer::new(Reply::text("Hello!"))) // leave this out for a real server
//!     .build()?;
//! let mut answer = query("Say hello.", &options).await?;
//! assert_eq!(answer.text().await?, "Hello!");
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! All are off by default. `tls` adds https. `tracing`, which the facade turns on, adds spans, and a log line when a
//! limit ends a turn. `session` lets a saved session follow a client. `schemars` adds structured output from types:
//! `Client::send_for` and `query_for`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod callback;
mod derived;
mod options;
mod query;
mod stream;

mod client;
mod nested;
mod parent_agent;
mod steer;
mod step;
mod steps;

mod structured;

mod answer_review;
mod cache_miss;
mod call_ids;
mod checkpoint;
mod decision;
mod driver;
mod gates;
mod hooks;
mod prompt_cut;
mod reading;
mod run;
mod settings;
mod shortening;
mod submit;
#[cfg(feature = "tracing")]
mod trace;
#[cfg(not(feature = "tracing"))]
#[path = "no_trace.rs"]
mod trace;
mod work;

mod error;

pub use crate::builder::AgentOptionsBuilder;
pub use crate::callback::CallbackOutput;
pub use crate::client::{Client, ClientStream, Compaction, HistoryMut};
pub use crate::error::{Error, ErrorKind, Result};
pub use crate::nested::ParentAgent;
pub use crate::options::AgentOptions;
#[cfg(feature = "schemars")]
pub use crate::query::query_for;
pub use crate::query::{query, query_for_format};
pub use crate::steer::SteerHandle;
pub use crate::steps::AgentSteps;
pub use crate::stream::BlockStream;
pub use crate::structured::{OutputMode, Partial, SendFor, Structured, StructuredStream};
pub use oa_events::{
    AgentEvent, CallDenied, NestedEvent, Reply, ToolUseDelta, TurnMetadata, TurnText,
};
pub use oa_executor::{InterruptGuard, InterruptHandle};
pub use oa_output::ResponseFormat;
#[doc(hidden)]
pub use oa_tools::read_value;
pub use oa_turn::stop_when;

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
