//! Agents as hosts of MCP servers: questions, budgets, interrupts and lists that change, with a real child process.

// The server is a shell script.
#![cfg(unix)]

mod changes;
mod questions;
mod rounds;
mod support;
