//! The public surface of `oa-mcp`, against real child processes and real sockets.

mod calls;
mod everything;
mod faults;
mod http;
mod lists;
mod logs;
mod processes;
mod support;
