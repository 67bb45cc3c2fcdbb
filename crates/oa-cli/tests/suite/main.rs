//! The program as users and scripts run it: in a terminal, in a pipe, with real sockets.

mod attach;
mod documents;
mod finding;
mod installed;
mod pipe;
mod program;
#[cfg(feature = "mcp")]
mod protocol;
mod resumed;
#[cfg(all(feature = "mcp", feature = "serve"))]
mod serve;
mod server;
mod sessions;
#[cfg(all(unix, feature = "mcp", feature = "serve"))]
mod settings;
#[cfg(unix)]
mod start;
#[cfg(unix)]
mod terminal;

#[cfg(all(unix, feature = "mcp"))]
mod changing;
#[cfg(unix)]
mod chat;
#[cfg(unix)]
mod looks;
#[cfg(all(unix, feature = "mcp", feature = "serve"))]
mod pages;
#[cfg(unix)]
mod typing;
#[cfg(all(unix, feature = "mcp", feature = "serve"))]
mod waiting;
