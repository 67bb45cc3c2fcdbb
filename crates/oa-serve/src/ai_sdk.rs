//! The AI SDK's UI message stream, so that `useChat` works unchanged.

mod encoder;
mod keys;
mod request;
mod routes;

pub(crate) use self::routes::routes;
