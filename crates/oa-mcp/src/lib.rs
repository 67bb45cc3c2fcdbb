//! Uses the tools of MCP servers as tools of an agent.
//!
//! [`McpServer`] configures one server: a program to start, or (feature `http`) a URL. [`Servers::connect`] connects to
//! all servers at once. [`Connected::tools`] returns ordinary tools: hooks, permissions, timeouts and truncation apply
//! to them as to any other, under the name `<server>__<tool>` and with the category `mcp`.
//!
//! ```no_run
//! use oa_mcp::{McpServer, Servers};
//!
//! # async fn connect() -> Result<(), oa_mcp::Error> {
//! // `no_run`, since it starts an npm package.
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
//! In the other direction, [`ToolServer`] (feature `server`) offers your tools, or whole agents, to MCP clients.
//!
//! # When to use this crate directly
//!
//! To use tools of MCP servers in your own agent loop. To write an agent, use the `open-agent` facade with its feature
//! `mcp`.
//!
//! # Misbehaving servers
//!
//! If a server dies, hangs, floods, prints garbage or sends malformed answers, the current call fails, and the next
//! call restarts a dead server. A call is repeated only if it never reached the server. Apart from a short default
//! list, a child process gets only the environment variables that you name; it ends with its connection, together with
//! everything that it started. [`Limits`] has the bounds.
//!
//! A server is offered nothing that you did not configure: it may question the user only with
//! [`on_elicitation`](McpServer::on_elicitation) and a model only with [`on_sampling`](McpServer::on_sampling), in both
//! cases only while it handles a request, and it is told only about the folders set with [`root`](McpServer::root).
//!
//! # Logs
//!
//! The protocol library, `rmcp`, logs with `tracing`. Configured keys, arguments, results, progress, log notifications
//! and the server's name and version do not pass through it: they are read and written below it.
//!
//! # Features
//!
//! All are off by default: `http` for servers at a URL, and `tls` for `https`; `server` to offer tools over standard
//! input and output, and `server-http` to offer them over streamable HTTP.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod config;
mod listener;
mod server;
mod servers;
mod stdio_spec;

mod connection;
mod library;
mod listing;
mod secrets;
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

pub use crate::connection::Connection;
pub use crate::error::{Error, ErrorKind};
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
    Elicitation, ElicitationAnswer, ElicitationMode, FilledPrompt, Ignored, Limits, Pins, Prompt,
    PromptArgument, Resource, ResourceContent, ResourceData, Sampled, Sampling, SchemaForm,
    UnconfirmedTool,
};

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
