//! The whole system, with recorded and written streams.

mod bad_input;
mod compatibility;
mod endpoints;
mod excerpts;
mod faults;
mod laws;
mod limits_table;
mod quirks_list;
mod soak;
mod stand_in;
mod streams;
mod transports;
