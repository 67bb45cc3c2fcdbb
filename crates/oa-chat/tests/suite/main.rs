//! The promises of `oa-chat`, through its public surface alone.

mod deltas;
mod pipeline;
mod requests;
mod servers;
