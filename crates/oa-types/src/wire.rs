//! The JSON sent to chat-completions servers, and their errors.
//!
//! A request consists of head, messages and tail. [`ChatParameters::head`] and [`ChatParameters::tail`] enclose
//! the messages; [`write_message`] encodes each message once, however often it is sent.

mod error;
mod images;
mod message;
mod overflow;
mod request;
mod retry_words;
mod tool_name;

pub use self::error::ServerError;
pub use self::images::{has_result_images, images_apart};
pub use self::message::{
    CallIds, EmptyContent, MessageFormat, ResultImages, ThinkingReplay, instructions, write_message,
};
pub use self::request::{ChatParameters, TokenLimit, ToolChoice};
