//! The agent's own interface: JSON, and a stream of its events.

mod events;
mod routes;

pub(crate) use self::routes::routes;
