//! OpenAI's chat completions and models, for any OpenAI client.

mod encoder;
pub(crate) mod request;
mod routes;
mod sampling;

pub(crate) use self::encoder::CallIds;
pub(crate) use self::routes::routes;
pub(crate) use self::sampling::Sampling;
