//! The promises of `oa-client`, through its public surface alone.
#![cfg(feature = "schemars")]

mod answers;
mod constrained;
mod events;
#[cfg(feature = "session")]
mod follow;
mod keys;
mod opened;
mod signals;
mod steps;
