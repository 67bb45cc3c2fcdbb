//! AG-UI, for CopilotKit and other unmodified front ends.

mod encoder;
mod request;
mod routes;

pub(crate) use self::routes::routes;
