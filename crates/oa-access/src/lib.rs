//! Decides which requests an HTTP server on this machine accepts: by `Host`, `Origin` and bearer token.
//!
//! A server on a loopback address is not private. Any web page in a browser on the same machine can send it requests:
//! from the page's own origin, which `Origin` names, or under a DNS name that the page's owner has pointed to this
//! machine (DNS rebinding), which `Host` names. [`Access`] holds the rules of one server, and [`Access::check`] applies
//! them to the head of a request, before its body is read.
//!
//! # When to use this crate directly
//!
//! In your own HTTP server for programs and pages on the same machine. `oa-serve` and the MCP server of `oa-mcp` check
//! their requests with it.
//!
//! # Not included
//!
//! The headers that browsers require before they let a page from another origin read a response (CORS). A layer such as
//! the one in `tower-http` sends them for the [origins](Access::origins) allowed here.

mod access;
mod header;
mod host;
mod origin;

pub use crate::access::{Access, Denial};
pub use crate::header::{has_token, single};
pub use crate::host::{is_loopback, requested_host, without_port};
pub use crate::origin::origin_as_sent;

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
