//! The turn of a session, from its prompt to its end.

use oa_tools::ErrorBody;
use oa_turn::{CutBy, DriveError, StepCall, Turn, drive};
use oa_types::{ErrorRecord, FinishReason, Outcome};
use restate_sdk::prelude::*;

use crate::contract::{ExternalResult, Given, PendingCall, WaitsFor};
use crate::state::BoxFuture;
use crate::steps::{DurableSteps, Stop};

/// Drives the turn to its end, through steered messages and external results.
pub(crate) fn converse<'x>(
    turn: &'x mut Turn,
    steps: &'x DurableSteps<'_, '_>,
) -> BoxFuture<'x, Result<FinishReason, TerminalError>> {
    Box::pin(async move {
        loop {
            // With `Stop::Steered`, the step was performed, but its outcome is kept until the messages are in
            // the turn. The next `drive` comes back to the step and gets the outcome.
            let reason = match drive(turn, steps).await {
                Ok(reason) => reason,
                Err(DriveError::Perform(Stop::Steered(messages))) => {
                    for message in messages {
                        // The inbox has checked the messages, and holds no more than a turn accepts.
                        let _ = turn.steer(message);
                    }
                    continue;
                }
                Err(DriveError::Perform(Stop::Terminal(error))) => return Err(error),
                Err(DriveError::Failed(error)) => return Err(failed(&error)),
                Err(_) => return Err(TerminalError::new("no turn is in progress")),
            };
            let open = open_calls(turn);
            if open.is_empty() {
                return Ok(reason);
            }
            if let Err(by) = await_results(turn, steps, &open).await {
                return Ok(match by {
                    CutBy::Budget { reason } => reason,
                    _ => FinishReason::Interrupted,
                });
            }
            // The last result may have continued the turn by itself.
            if !turn.is_busy() {
                turn.continue_turn().map_err(|error| refused(500, &error))?;
            }
        }
    })
}

/// Returns the calls that wait for external results.
fn open_calls(turn: &Turn) -> Vec<StepCall> {
    let open = turn.calls().iter().enumerate().filter(|(_, call)| call.is_open());
    // `StepCall` has no constructor outside of its crate.
    let step_call = |(place, call): (usize, &oa_turn::Call)| {
        let key = turn.call_key(place)?;
        let call = serde_json::json!({ "place": place, "key": key, "call": call });
        serde_json::from_value(call).ok()
    };
    open.filter_map(step_call).collect()
}

/// Waits for the results of calls whose tools are external. On an early end, the remaining calls get an error as their
/// result.
async fn await_results(
    turn: &mut Turn,
    steps: &DurableSteps<'_, '_>,
    open: &[StepCall],
) -> Result<(), CutBy> {
    steps.wait_for(open, WaitsFor::Result).await;
    let mut left: Vec<(&str, &str)> =
        open.iter().map(|call| (&*call.call.block.id, &*call.call.block.name)).collect();
    let mut ended = Ok(());
    while !left.is_empty() && ended.is_ok() {
        match steps.next_given().await {
            Ok((PendingCall { id, tool, .. }, given)) => {
                left.retain(|(open, _)| *open != id);
                let (content, images, outcome) = match given {
                    Some(Given::Result(ExternalResult { content, is_error, images, .. })) => {
                        (content, images, if is_error { Outcome::Failed } else { Outcome::Ok })
                    }
                    _ => {
                        let body = ErrorBody::new(tool, "no result came in time");
                        (body.to_value(), Vec::new(), Outcome::Unknown)
                    }
                };
                // A call that already has a result keeps it.
                let _ = turn.add_result_with_images(&id, content, images, outcome);
            }
            Err(by) => ended = Err(by),
        }
    }
    for (id, tool) in left {
        let body = ErrorBody::new(tool, "cancelled: the turn ended before a result came");
        let _ = turn.add_result(id, body.to_value(), Outcome::Cancelled);
    }
    ended
}

pub(crate) fn refused(code: u16, error: &oa_turn::Error) -> TerminalError {
    TerminalError::new_with_code(code, error.to_string())
}

/// Returns the error of a turn that has failed.
fn failed(error: &ErrorRecord) -> TerminalError {
    let code = match &*error.kind {
        "blocked" => 403,
        "context_overflow" => 413,
        "invalid_input" => 400,
        "timeout" => 504,
        _ => 502,
    };
    TerminalError::new_with_code(code, format!("{}: {}", error.kind, error.message))
}
