//! The promises of `oa-client`, through its public surface alone.
#![cfg(feature = "schemars")]

mod constrained;
mod context;
mod events;
mod keys;
mod opened;
mod reading;
mod steps;
