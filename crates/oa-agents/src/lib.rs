//! Agents as parts of something larger.
//!
//! - [`AgentService`]: an agent as a tower `Service`, a prompt in, a stream of events out.
//! - [`AgentTool`]: an agent as a tool of another agent.
//! - `McpHost` (feature `mcp`): an agent that answers the questions of MCP servers.
//!
//! # When to use this crate directly
//!
//! Both are in the facade `open-agent`, with everything else that an agent needs.

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
