//! Composes parser, aggregator and transport into a client for chat-completions servers.
//!
//! [`query`] asks once and streams the answer; a [`Client`] has a conversation, and runs tools;
//! [`AgentOptions`] say whom and how. Everything goes over
//! one tower service, so that any transport fits: the default one, one of your own, or a scripted
//! model in a test.
//!
//! # Who needs this crate alone
//!
//! Nobody, usually: the facade `open-agent` is this crate with a list of names. [`Pipeline`] is for
//! those who have the bytes of a body and want deltas and blocks from it.
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
//! `tls` adds https, `tracing` spans and a line in the log when a limit ends a turn; both are off by
//! default here, on by default in the facade. `schemars` adds answers of a type: `Client::send_for`, `query_for`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod endpoint;
mod options;
mod profile;
mod provider;
mod query;
mod server_profile;
mod stream;
mod thinking;

mod agent;
mod agent_tool;
mod client;
mod event;
mod interrupt;
mod metadata;
mod reply;

mod response_format;
mod structured;

mod decision;
mod dialect;
mod driver;
mod gates;
mod run;
mod submit;
mod terminal;
mod trace;
mod work;

mod answer;
mod chat;
mod envelope;
mod gauge;
mod learned;
mod manner;
mod pipeline;
mod quotation;
mod retry;
mod scan;
mod service;
mod transcript;

mod doctor;

mod date;
mod models;
mod settings;
mod tokenize;
mod wait;

mod error;

pub use oa_executor::{ExecutorOptions, ToolEvent};
pub use oa_fallback::Dialect;
pub use oa_hooks::{Hooks, Permission, PermissionMode, PermissionRequest, Permissions, ToolRule};
pub use oa_tools::{Registry, Tool};
pub use oa_transport::{RequestBody, TimeoutKind};
pub use oa_types::wire::ToolChoice;

pub use crate::agent::{AgentService, AgentStream};
pub use crate::agent_tool::AgentTool;
pub use crate::answer::AnswerStream;
pub use crate::builder::AgentOptionsBuilder;
pub use crate::chat::{AnyChat, ChatRequest};
pub use crate::client::{Client, ClientStream, Compaction, HistoryMut};
pub use crate::dialect::ToolMode;
pub use crate::doctor::{Doctor, Finding, Probe, Report, Verdict, doctor};
pub use crate::endpoint::{Endpoint, EndpointBuilder};
pub use crate::error::{Error, ErrorKind, Result};
pub use crate::event::{AgentEvent, CallDenied, PromptCut, ToolUseDelta};
pub use crate::interrupt::InterruptHandle;
pub use crate::metadata::TurnMetadata;
pub use crate::models::list_models;
pub use crate::options::{AgentOptions, Limits, SystemRole};
pub use crate::pipeline::{OnBadChunk, Pipeline, PipelineError, PipelineOptions};
pub use crate::provider::Provider;
#[cfg(feature = "schemars")]
pub use crate::query::query_for;
pub use crate::query::{query, query_for_format};
pub use crate::reply::Reply;
pub use crate::response_format::ResponseFormat;
pub use crate::retry::{RetryConfig, retry_with_backoff};
pub use crate::server_profile::ServerProfile;
pub use crate::stream::BlockStream;
pub use crate::structured::{OutputMode, Partial, SendFor, Structured, StructuredStream};
pub use crate::terminal::TerminalPrompt;
pub use crate::thinking::Thinking;
pub use crate::tokenize::{count_text_tokens, count_tokens};
pub use crate::wait::Wait;
