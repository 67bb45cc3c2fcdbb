//! Served tools, with clients in child processes, on sockets and in memory.

// Child processes are looked up in `/proc`, and started by a shell.
#![cfg(unix)]
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
