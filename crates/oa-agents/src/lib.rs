//! Use an agent as a component: a tower service, a tool of another agent, or a host for MCP servers.
//!
//! - [`AgentService`]: an agent as a tower `Service` from a prompt to a stream of events.
//! - [`AgentTool`]: an agent that another agent calls as a tool.
//! - `McpHost` (feature `mcp`): an agent that answers questions from MCP servers.
//!
//! # When to use this crate directly
//!
//! To build a service or a nested agent on `oa-client`. The facade `open-agent` re-exports all three.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "mcp")]
mod mcp_host;
mod service;

mod progress;
mod tool;

#[cfg(feature = "mcp")]
#[cfg_attr(docsrs, doc(cfg(feature = "mcp")))]
pub use crate::mcp_host::McpHost;
pub use crate::service::{AgentService, AgentStream};
pub use crate::tool::AgentTool;
