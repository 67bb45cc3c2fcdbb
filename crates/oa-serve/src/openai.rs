//! OpenAI's chat completions and models, so that any of its clients can chat with the agent.

mod encoder;
mod request;
mod routes;

pub(crate) use self::routes::routes;
