//! The guarantees of `oa-client`, through its public API only.
#![cfg(feature = "schemars")]

mod answers;
mod calls;
mod constrained;
mod context;
mod events;
mod external;
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
