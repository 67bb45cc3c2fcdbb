//! The promises of `oa-chat`, through its public surface alone.

mod deltas;
mod pipeline;
mod records;
mod requests;
mod servers;
