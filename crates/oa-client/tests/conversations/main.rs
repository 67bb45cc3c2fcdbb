//! Whole conversations through the client, with scripted servers in memory and on sockets.
#![cfg(all(feature = "schemars", feature = "tracing"))]

mod answers;
mod bad_chunks;
mod brought;
mod cassettes;
mod client;
mod compaction;
mod context;
mod dialects;
mod endings;
mod failures;
mod filled_in;
mod gates;
mod hooks;
mod interrupts;
mod leaks;
mod limits;
mod log;
mod memory;
mod options;
mod order;
mod permissions;
mod polls;
mod prefixes;
mod providers;
mod requests;
mod retries;
mod rounds;
mod secrets;
mod signatures;
mod sources;
mod stream_errors;
mod streaming;
mod structured;
mod threads;
mod tools;
