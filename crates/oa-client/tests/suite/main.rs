//! The promises of `oa-client`, through its public surface alone.
#![cfg(feature = "schemars")]

mod events;
mod constrained;
mod keys;
mod opened;
mod steps;
