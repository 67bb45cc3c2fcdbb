use oa_types::Message;
use serde::{Deserialize, Serialize};

/// A prompt in history.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct SubmittedPrompt {
    pub(super) place: usize,
    /// The prompt as the caller gave it, if history has a different one.
    pub(super) given: Option<Box<Message>>,
}

/// A turn that failed in the middle of an answer, so that its prompt is still in history.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Failure {
    /// The prompt, unless the turn continued a conversation that the caller supplied.
    pub(super) asked: Option<SubmittedPrompt>,
    /// The part of the answer that the caller has seen.
    pub(super) broken: Option<Message>,
    /// True if `broken` is in history, before a prompt whose answer has not begun.
    pub(super) is_recorded: bool,
}
