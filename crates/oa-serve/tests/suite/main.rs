//! The guarantees of `oa-serve`, through its public API only.

mod access;
mod app;
mod approvals;
mod claims;
mod conversations;
mod events;
mod front_calls;
mod front_tools;
mod hooks;
mod kept;
mod load;
mod openai;
mod recordings;
mod repeated_ids;
mod shutdown;
mod slow_requests;
