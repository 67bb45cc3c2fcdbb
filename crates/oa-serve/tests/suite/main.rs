//! The promises of `oa-serve`, through its public surface alone.

mod app;
mod approvals;
mod conversations;
mod events;
