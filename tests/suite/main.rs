//! The whole system against recorded and written streams.

mod agents;
mod answers;
mod bad_input;
mod client;
mod error_bodies;
mod failures;
mod faults;
mod hooks;
mod interrupts;
mod laws;
mod leaks;
mod limits;
mod limits_table;
mod log;
mod prefixes;
mod providers;
mod requests;
mod retries;
mod rounds;
mod soak;
mod streaming;
mod streams;
mod talk;
mod threads;
mod tools;
mod transports;
