//! The program as people and scripts use it: in a terminal, in a pipe, with real sockets.

mod pipe;
mod program;
#[cfg(unix)]
mod terminal;

#[cfg(unix)]
mod chat;
