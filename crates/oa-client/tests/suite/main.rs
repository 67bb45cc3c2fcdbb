//! The promises of `oa-client`, through its public surface alone.
#![cfg(feature = "schemars")]

mod context;
mod events;
mod constrained;
mod keys;
mod opened;
mod reading;
mod steps;
