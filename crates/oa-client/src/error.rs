//! Errors of the agent, beside those that its server causes.

use oa_redact::strip_invisible;

pub use oa_chat::{Error, ErrorKind, Result};

pub(crate) fn invalid_input(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}

pub(crate) fn blocked(reason: &str) -> Error {
    Error::new(ErrorKind::Blocked, format!("a hook blocked the prompt: {reason}"))
}

pub(crate) fn hook(error: oa_hooks::Error) -> Error {
    Error::new(ErrorKind::Hook, error.to_string()).with_cause(error)
}

/// Tells of a call that makes no sense for the conversation as it stands.
pub(crate) fn turn(error: oa_turn::Error) -> Error {
    let kind = match error.kind() {
        oa_turn::ErrorKind::MaxTurns => ErrorKind::MaxTurns,
        _ => ErrorKind::InvalidInput,
    };
    Error::new(kind, error.to_string()).with_cause(error)
}

/// Tells that no answer fit the type that was requested. The message may quote the model.
pub(crate) fn output(kind: ErrorKind, message: &str, model_output: Option<String>) -> Error {
    let error = Error::new(kind, strip_invisible(message));
    match model_output {
        Some(output) => error.with_model_output(output),
        None => error,
    }
}
