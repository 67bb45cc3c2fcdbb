//! AG-UI, so that CopilotKit and its kin work unchanged.

mod encoder;
mod request;
mod routes;

pub(crate) use self::routes::routes;
