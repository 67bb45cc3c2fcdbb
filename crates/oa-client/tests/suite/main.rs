//! The promises of `oa-client`, through its public surface alone.
#![cfg(feature = "schemars")]

mod answers;
mod calls;
mod constrained;
mod context;
mod events;
#[cfg(feature = "session")]
mod follow;
mod images;
mod keys;
mod opened;
mod opened_steps;
mod options;
mod reading;
mod signals;
mod steps;
