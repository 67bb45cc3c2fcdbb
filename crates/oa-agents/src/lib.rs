//! Agents as parts of something larger.
//!
//! - [`AgentService`]: an agent as a tower `Service`, a prompt in, a stream of events out.
//! - [`AgentTool`]: an agent as a tool of another agent.
//!
//! # When to use this crate directly
//!
//! Both are in the facade `open-agent`, with everything else that an agent needs.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod service;

mod progress;
mod tool;

pub use crate::service::{AgentService, AgentStream};
pub use crate::tool::AgentTool;
