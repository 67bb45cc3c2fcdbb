//! The whole system against recorded and written streams.

mod answers;
mod bad_input;
mod client;
mod error_bodies;
mod failures;
mod hooks;
mod interrupts;
mod laws;
mod leaks;
mod limits;
mod log;
mod prefixes;
mod requests;
mod rounds;
mod streaming;
mod streams;
mod talk;
mod threads;
mod tools;
mod transports;
