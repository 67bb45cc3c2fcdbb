//! The public API of `oa-mcp`, with real child processes and real sockets.

mod calls;
mod configs;
mod everything;
// Its servers are scripts of a shell.
#[cfg(unix)]
mod faults;
mod http;
mod lenient;
mod library;
mod limits;
mod lists;
mod logs;
mod official;
mod overload;
// They are looked up in `/proc`.
#[cfg(target_os = "linux")]
mod processes;
mod questions;
mod redirects;
mod refusals;
mod resumptions;
mod rounds;
#[cfg(windows)]
mod scripts;
mod starts;
mod stateless;
mod support;
mod untrusted;
