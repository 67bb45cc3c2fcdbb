//! Served tools, with clients in child processes, on sockets and in memory.

#![expect(clippy::print_stdout, reason = "what a tool prints where it must not, and figures")]

mod changes;
mod http;
mod laws;
mod memory;
mod official;
mod own_client;
mod stateless;
mod stdio;
mod support;
#[path = "../offered/tools.rs"]
mod tools;
