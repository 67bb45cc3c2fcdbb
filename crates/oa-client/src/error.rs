//! Errors of the agent itself, as opposed to its server.

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

/// Converts the error of a call that is invalid in the current state of the conversation.
pub(crate) fn turn(error: oa_turn::Error) -> Error {
    let kind = match error.kind() {
        oa_turn::ErrorKind::MaxTurns => ErrorKind::MaxTurns,
        _ => ErrorKind::InvalidInput,
    };
    Error::new(kind, error.to_string()).with_cause(error)
}

/// Converts an error of structured output. Its message may quote the model.
pub(crate) fn output(error: oa_output::Error) -> Error {
    let kind = match error.kind {
        oa_output::ErrorKind::Config => ErrorKind::Config,
        oa_output::ErrorKind::Interrupted => ErrorKind::Interrupted,
        _ => ErrorKind::Output,
    };
    let message = strip_invisible(&error.message);
    let model_output = error.model_output;
    let error = Error::new(kind, message);
    match model_output {
        Some(output) => error.with_model_output(output),
        None => error,
    }
}
