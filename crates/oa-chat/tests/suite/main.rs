//! The guarantees of `oa-chat`, through its public API only.

mod answers;
mod deltas;
mod keys;
mod pipeline;
mod records;
mod refusals;
mod requests;
mod retries;
mod schemas;
mod servers;
mod text_calls;
