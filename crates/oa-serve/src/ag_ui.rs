//! AG-UI, for unmodified front ends such as CopilotKit.

mod encoder;
pub(crate) mod request;
mod routes;

pub(crate) use self::routes::routes;
