//! Durable agents on a real server of the engine, with real workers that are killed.

// The servers run on Unix alone.
#![cfg(unix)]

mod support;
mod turns;
mod worker;
