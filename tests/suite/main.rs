//! The whole system, with recorded and written streams.

mod agents;
mod bad_input;
mod compatibility;
mod endpoints;
mod error_bodies;
mod excerpts;
mod faults;
mod laws;
mod limits_table;
mod middleware;
mod quirks_list;
mod router;
mod soak;
mod stand_in;
mod streams;
mod transports;
