//! The whole system against recorded and written streams.

mod bad_input;
mod streams;
mod transports;
