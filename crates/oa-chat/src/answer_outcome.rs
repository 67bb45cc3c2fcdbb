use oa_types::{FinishReason, Usage};

use crate::error::Error;

/// The outcome of an answer, passed to the callback of [`AnswerStream::on_end`](crate::AnswerStream::on_end).
///
/// Exactly one of these holds: the answer is complete, [`error`](Self::error) says why it broke, or it was
/// [`interrupted`](Self::interrupted).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AnswerOutcome<'a> {
    /// The model that answered, as the server named it; otherwise the requested one. Empty if neither is known.
    pub model: &'a str,
    /// The base URL of the server that answered; empty for an answer made from deltas.
    pub server: &'a str,
    /// Tokens and time, as far as they are known.
    pub usage: Option<Usage>,
    /// The finish reason, as the server reported it.
    pub finish_reason: &'a FinishReason,
    /// The error that broke the answer.
    pub error: Option<&'a Error>,
    /// True if the answer was dropped before its end: by an interrupt, a timeout of the run, or its client.
    pub interrupted: bool,
}
