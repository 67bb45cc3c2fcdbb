//! The AI SDK's UI message stream, for unmodified `useChat` front ends.

mod encoder;
mod keys;
pub(crate) mod request;
mod routes;

pub(crate) use self::routes::routes;
