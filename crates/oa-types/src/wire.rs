//! The JSON sent to chat-completions servers, and their errors.
//!
//! A request consists of head, messages and tail. [`ChatParameters::head`] and [`ChatParameters::tail`] enclose
//! the messages; [`write_message`] encodes each message once, however often it is sent.

mod demand;
mod error;
mod failure_marks;
mod images;
mod inlined;
mod loading_notice;
mod message;
mod overflow;
mod plain_schema;
mod rejected;
mod request;
mod retry_words;
mod single_types;
mod subschemas;
mod thinking;
mod thinking_refusal;
mod tool_name;
mod transient;

pub use self::demand::Demands;
pub use self::error::ServerError;
#[doc(hidden)]
pub use self::failure_marks::FailureMarks;
pub use self::images::{has_result_images, images_apart};
#[doc(hidden)]
pub use self::loading_notice::LoadingNotice;
pub use self::message::{
    CallIds, EmptyContent, MessageFormat, ResultImages, ResultNames, ThinkingReplay, instructions,
    write_message,
};
pub use self::request::{ChatParameters, TokenLimit, ToolChoice};
pub use self::thinking::{Thinking, ThinkingField};
#[doc(hidden)]
pub use self::tool_name::{bare_name, control_token};
