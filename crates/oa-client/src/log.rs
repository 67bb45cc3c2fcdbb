//! What is worth a line in a log; nothing without the feature `tracing`.

use oa_types::FinishReason;

/// A turn has ended. If a limit ended it that is a warning: the model was not done.
#[cfg(feature = "tracing")]
pub(crate) fn turn_ended(reason: &FinishReason, rounds: u32) {
    let is_limit = matches!(
        reason,
        FinishReason::MaxRunTime
            | FinishReason::MaxRunTokens
            | FinishReason::MaxToolCalls
            | FinishReason::MaxToolIterations
            | FinishReason::RepeatedToolCall
    );
    if is_limit {
        tracing::warn!(reason = reason.as_str(), rounds, "a limit ended the turn");
    }
}

#[cfg(not(feature = "tracing"))]
pub(crate) fn turn_ended(_: &FinishReason, _: u32) {}
