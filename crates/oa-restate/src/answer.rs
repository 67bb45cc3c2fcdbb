//! The outcome of a request to the model, before it is recorded.

use std::time::Duration;

use oa_tools::Cancel;
use oa_turn::{AskOutcome, CutBy, Spent};
use oa_types::{ContentBlock, ErrorRecord, FinishReason, json_size};

use crate::agents::now_in_micros;

/// Interrupts a request when the turn's time is up.
pub(crate) async fn in_time(
    deadline: Option<u64>,
    cancel: &Cancel,
    ask: impl Future<Output = Result<AskOutcome, std::convert::Infallible>>,
) -> AskOutcome {
    let Some(deadline) = deadline else {
        let Ok(outcome) = ask.await;
        return outcome;
    };
    // Reads the clock within the recorded closure, which a replay does not run.
    let left = Duration::from_micros(deadline.saturating_sub(now_in_micros()));
    let mut ask = std::pin::pin!(ask);
    match tokio::time::timeout(left, ask.as_mut()).await {
        Ok(Ok(outcome)) => outcome,
        Err(_) => {
            // It returns at once with the part that has arrived.
            cancel.cancel();
            let Ok(outcome) = ask.await;
            match outcome {
                AskOutcome::Cut { partial, spent, .. } => {
                    let by = CutBy::Budget { reason: FinishReason::MaxRunTime };
                    AskOutcome::Cut { by, partial, spent }
                }
                outcome => outcome,
            }
        }
    }
}

/// Returns the outcome, or a failure if it exceeds the limit.
pub(crate) fn bounded(outcome: AskOutcome, most: usize) -> AskOutcome {
    let size = json_size(&outcome);
    if size <= most {
        return outcome;
    }
    let message = format!("the answer has {size} bytes; the limit is {most}");
    let error = Box::new(ErrorRecord::new("limit", message));
    let spent = match &outcome {
        AskOutcome::Answered { answer, .. } => Some(Spent::new(0, answer.tokens, answer.cost)),
        AskOutcome::Cut { spent, .. } | AskOutcome::Failed { spent, .. } => Some(*spent),
        _ => None,
    };
    let spent = spent.unwrap_or_default();
    AskOutcome::Failed { error, has_begun: false, partial: Vec::new(), spent }
}

/// Returns true for an answer with neither text nor calls.
pub(crate) fn is_silent(blocks: &[ContentBlock]) -> bool {
    blocks.iter().all(|block| match block {
        ContentBlock::Text(text) => text.text.trim().is_empty(),
        ContentBlock::ToolUse(_) => false,
        _ => true,
    })
}

/// Returns the outcome of a request that ended before any part of its answer was kept.
pub(crate) fn nothing_of_it(by: CutBy) -> AskOutcome {
    AskOutcome::Cut { by, partial: Vec::new(), spent: Spent::default() }
}
