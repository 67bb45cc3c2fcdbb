//! Durable agents on a real server of the engine, with real workers that are killed.

// The servers run on Unix alone.
#![cfg(unix)]

mod crashes;
mod limits;
mod operators;
mod outputs;
mod permissions;
mod store;
mod stored;
mod support;
mod turns;
mod versions;
mod waits;
mod worker;
