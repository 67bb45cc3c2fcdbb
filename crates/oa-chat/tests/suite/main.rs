//! The guarantees of `oa-chat`, through its public API only.

mod deltas;
mod pipeline;
mod records;
mod requests;
mod servers;
