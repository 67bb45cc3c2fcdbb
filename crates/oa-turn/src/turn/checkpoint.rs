use serde::{Deserialize, Serialize};

use super::Turn;
use super::phase::Phase;
use crate::call::Call;
use crate::options::Mode;

/// A moment at which a conversation is worth saving; see [`Turn::checkpoint`]. Within one turn, equal checkpoints are
/// the same moment.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Checkpoint {
    /// The number of messages in history.
    pub messages: usize,
    /// The number of requests sent in this turn.
    pub steps: u32,
    /// True if calls are open because they wait for permission or for results from the caller.
    pub waits: bool,
    /// The revision of the last message; 0 if there is none.
    pub revision: u64,
}

impl Turn {
    /// Returns the current checkpoint, if there is one: right after the last result of a step was reviewed, and when
    /// the turn is about to end, has ended or waits for the caller. History is then complete, except for open calls if
    /// the turn [waits](Checkpoint::waits) for them.
    ///
    /// Call this before each [`next_action`](Self::next_action), because the moment passes with the next request, and
    /// at [`Action::End`](crate::Action::End). If the conversation is saved at each checkpoint and the process dies,
    /// at most one answer of the model is lost, and no result of a call except those of the step in progress.
    ///
    /// There is no checkpoint while an answer awaits its review. When a turn is cut off, history may contain results
    /// that were not reviewed; they are reviewed before the next request, even after [`resume`](Self::resume).
    #[must_use]
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        let is_settled = |call: &Call| call.is_answered() && !call.awaits_review();
        match self.phase {
            Phase::Calling { started: true, .. } if self.options.mode == Mode::Auto => {
                // Results of the output tool are not reviewed.
                let is_output = |call: &Call| self.is_output_tool(&call.block.name);
                let is_over =
                    |call: &Call| is_settled(call) || call.is_answered() && is_output(call);
                if !self.round.calls.iter().all(is_over) {
                    return None;
                }
            }
            Phase::Ending { .. } | Phase::Idle { .. } => {}
            _ => return None,
        }
        Some(Checkpoint {
            messages: self.history().len(),
            steps: self.steps(),
            // Refused calls stay open in history until the turn continues.
            waits: !self.round.calls.iter().all(Call::is_answered),
            revision: self.revisions().last().copied().unwrap_or_default(),
        })
    }
}
