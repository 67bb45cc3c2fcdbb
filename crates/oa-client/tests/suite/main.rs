//! The promises of `oa-client`, through its public surface alone.
#![cfg(feature = "schemars")]

mod constrained;
mod events;
mod images;
mod keys;
mod opened;
mod steps;
