//! The public API of `oa-mcp`, with real child processes and real sockets.

// The scripted server and the reference server are started by a shell.
#![cfg(unix)]

mod calls;
mod configs;
mod everything;
mod faults;
mod http;
mod library;
mod limits;
mod lists;
mod logs;
mod official;
// They are looked up in `/proc`.
#[cfg(target_os = "linux")]
mod processes;
mod questions;
mod refusals;
mod resumptions;
mod rounds;
mod starts;
mod stateless;
mod support;
mod untrusted;
