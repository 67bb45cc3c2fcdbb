//! The promises of `oa-batch`, through its public surface alone.

mod course;
#[cfg(feature = "log")]
mod log;
mod memory;
mod model;
mod retries;
mod servers;
