//! The native interface: JSON, and a stream of events.

mod events;
mod routes;

pub(crate) use self::routes::routes;
