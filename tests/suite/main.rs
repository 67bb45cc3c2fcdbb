//! The whole system against recorded and written streams.

mod bad_input;
mod client;
mod error_bodies;
mod faults;
mod limits_table;
mod providers;
mod retries;
mod streaming;
mod streams;
mod tools;
mod transports;
