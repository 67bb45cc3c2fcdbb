//! The program as people and scripts use it: in a terminal, in a pipe, with real sockets.

mod documents;
mod pipe;
mod program;
mod server;
#[cfg(unix)]
mod terminal;

#[cfg(unix)]
mod chat;
