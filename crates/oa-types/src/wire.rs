//! The JSON that goes to chat-completions servers, and the errors that come back.
//!
//! A request is head, messages, tail: [`ChatParameters::head`] and [`ChatParameters::tail`] enclose the
//! messages, each of which [`write_message`] turns into bytes once, however often it is sent.

mod error;
mod message;
mod overflow;
mod request;
mod tool_name;

pub use self::error::ServerError;
pub use self::message::{
    CallIds, EmptyContent, MessageFormat, ThinkingReplay, instructions, write_message,
};
pub use self::request::{ChatParameters, TokenLimit, ToolChoice};
