//! Tools of MCP servers as tools of an agent.
//!
//! [`McpServer`] is one server as configured: a program that is started, or (feature `http`) a URL. [`Servers::connect`]
//! connects to all of them at once, and [`Connected::tools`] are ordinary tools: hooks, permissions, timeouts and
//! truncation see them like any other, under the name `<server>__<tool>` and with the category `mcp`.
//!
//! ```no_run
//! use oa_mcp::{McpServer, Servers};
//!
//! # async fn connect() -> Result<(), oa_mcp::Error> {
//! // `no_run`, since it starts a program of npm.
//! let connected = Servers::new()
//!     .add(McpServer::stdio("everything", "npx").args(["-y", "@modelcontextprotocol/server-everything"]))
//!     .connect()
//!     .await?;
//! for failure in connected.failures() {
//!     println!("{}", failure.error());
//! }
//! for tool in connected.tools() {
//!     println!("{}", tool.name()); // everything__echo, ..
//! }
//! connected.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! The other way around, [`ToolServer`] (feature `server`) offers tools of ours, or whole agents, to clients of the
//! protocol.
//!
//! # When to use this crate directly
//!
//! To use tools of MCP servers in your own agent loop. To write an agent, use the `open-agent` facade with its feature
//! `mcp`.
//!
//! # What a server can do to a program
//!
//! A server may die, hang, print garbage, flood, or answer in a wrong shape: each is an error of the call at hand, and
//! the next call starts a dead server again. A call is repeated only if it never reached the server. A child gets no
//! variable of the environment that was not named, and is gone with all that it has started when its connection ends.
//! [`Limits`] has the bounds.
//!
//! A server is offered nothing of ours that was not set: it may ask the person only with
//! [`on_elicitation`](McpServer::on_elicitation), a model only with [`on_sampling`](McpServer::on_sampling), both only
//! while it does something for us, and knows of no folder but those of [`root`](McpServer::root).
//!
//! # Logs
//!
//! The protocol's library, `rmcp`, logs by `tracing`. Keys of the configuration, arguments, results, progress and log
//! notifications do not pass through it: they are read and written below it. What a server is called and its
//! version do not either.
//!
//! # Features
//!
//! Off by default: `http`, for servers at a URL, and `tls` for `https`; `server`, to offer tools over standard input and
//! output, and `server-http`, to offer them over streamable HTTP.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod config;
mod listener;
mod server;
mod servers;
mod stdio_spec;

mod approval;
mod connection;
mod description;
mod library;
mod listing;
mod session;
mod tool;

mod child;
#[cfg(feature = "http")]
mod http;
mod lines;
mod link;
mod stdio;

#[cfg(feature = "server")]
mod tool_server;

mod error;
mod ignored;
mod limits;

pub use crate::connection::Connection;
pub use crate::error::{Error, ErrorKind};
pub use crate::ignored::Ignored;
pub use crate::limits::Limits;
pub use crate::server::McpServer;
pub use crate::servers::{Connected, Failure, McpTools, Servers};
#[cfg(feature = "server")]
pub use crate::tool_server::ToolServer;
#[cfg(feature = "server-http")]
pub use crate::tool_server::http::{HttpBody, HttpService};
#[cfg(feature = "server")]
pub use crate::tool_server::live::ToolServerHandle;
#[cfg(feature = "server")]
pub use oa_mcp_data::client::ServerLimits;
pub use oa_mcp_data::{
    Elicitation, ElicitationAnswer, ElicitationMode, FilledPrompt, Pins, Prompt, PromptArgument,
    Resource, ResourceContent, ResourceData, Sampled, Sampling, SchemaForm, UnconfirmedTool,
};

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
