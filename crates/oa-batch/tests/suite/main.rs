//! The guarantees of `oa-batch`, through its public API only.

mod course;
#[cfg(feature = "log")]
mod log;
mod memory;
mod model;
mod retries;
mod servers;
#[cfg(feature = "schemars")]
mod typed;
