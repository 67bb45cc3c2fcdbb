//! The promises of `oa-client`, through its public surface alone.
#![cfg(feature = "schemars")]

mod steps;
mod strict;
