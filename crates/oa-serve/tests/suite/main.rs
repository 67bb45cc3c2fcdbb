//! The promises of `oa-serve`, through its public surface alone.

mod access;
mod app;
mod approvals;
mod conversations;
mod events;
mod load;
mod shutdown;
