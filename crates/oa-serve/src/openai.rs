//! OpenAI's chat completions and models, so that any of its clients can chat with the agent.

mod encoder;
mod request;
mod routes;
mod sampling;

pub(crate) use self::routes::routes;
pub(crate) use self::sampling::Sampling;
