//! Turns that end early.

use oa_types::{ContentBlock, FinishReason, Outcome};

use super::Turn;
use super::phase::{Phase, Rest};
use crate::answer::unfinished;
use crate::options::Mode;

impl Turn {
    /// Ends the turn because the user interrupted it. The part of an answer that had arrived stays as text, if text is
    /// shown as it arrives.
    pub fn interrupt(&mut self, partial: Vec<ContentBlock>) {
        let (reason, partial) = (Some(FinishReason::Interrupted), self.shown(partial));
        self.cut(partial, "cancelled: the user interrupted", Outcome::Cancelled, reason);
    }

    /// Ends the turn because a budget that the driver tracks, such as time, is used up. The part of an answer that had
    /// arrived stays as text, if text is shown as it arrives.
    pub fn stop(&mut self, reason: FinishReason, partial: Vec<ContentBlock>) {
        let partial = self.shown(partial);
        self.cut(partial, "not run: the budget is used up", Outcome::NotRun, Some(reason));
    }

    /// Ends the turn because the user moved on, without an [`Action::End`](crate::Action::End). The part of an answer
    /// that had arrived stays as text.
    pub fn abandon(&mut self, partial: Vec<ContentBlock>) {
        self.cut(partial, "not run: the user moved on without it", Outcome::NotRun, None);
    }

    /// Returns the part of an answer that the caller has seen. The rest does not enter the conversation.
    pub(super) fn shown(&self, partial: Vec<ContentBlock>) -> Vec<ContentBlock> {
        if self.shows_text() { partial } else { Vec::new() }
    }

    /// Ends the turn in any phase.
    fn cut(
        &mut self,
        partial: Vec<ContentBlock>,
        error: &str,
        outcome: Outcome,
        told: Option<FinishReason>,
    ) {
        // A turn that was cut has not failed, so `failure` is cleared: the same prompt again is a new one.
        let mut rested = Rest::Done;
        match self.phase {
            Phase::Idle { .. } => return,
            // The turn has not begun: calls that waited before the prompt still wait.
            Phase::Prompting { rest, .. } => rested = rest,
            Phase::Requesting { .. } => {
                if let Some(message) = unfinished(partial) {
                    self.conversation.push(message);
                }
                self.failure = None;
                self.rest();
            }
            Phase::Answered { .. } => {
                // The answer is still under review: treat it like a partial one.
                let answer = self.take_answer_back();
                if let Some(message) = unfinished(self.shown(answer)) {
                    self.conversation.push(message);
                }
                self.failure = None;
                self.rest();
            }
            _ => {
                // Before `rest`, which resets the phase that says whether the calls have started.
                self.answer_cut_calls(error, outcome);
                self.failure = None;
                self.rest();
            }
        }
        self.phase = match told {
            Some(reason) => Phase::Ending { reason, rest: rested },
            None => Phase::Idle { rest: rested },
        };
    }

    /// Answers open calls in the middle of a turn, with this error if they have not started. Running calls may have
    /// taken effect, and their results say so.
    pub(super) fn answer_cut_calls(&mut self, error: &str, outcome: Outcome) {
        let runs = matches!(self.phase, Phase::Calling { started: true, .. });
        if !runs || self.options.mode == Mode::Manual {
            return self.answer_open_calls(error, outcome);
        }
        // The calls of external tools wait for their results, and never run.
        self.round.answer_open(&mut self.conversation, error, outcome, |call| call.is_external);
        // "not run: the turn failed" becomes "cancelled: the turn failed while it ran; it may have taken
        // effect".
        let why = error.split_once(": ").map_or(error, |(_, why)| why);
        let error = format!("cancelled: {why} while it ran; it may have taken effect");
        self.answer_open_calls(&error, Outcome::Cancelled);
    }

    /// Ends all progress. Results that await review are reviewed before the next request.
    pub(super) fn rest(&mut self) {
        self.forget_refused();
        self.forget_unshortened();
        self.round.take_back();
        self.round.hide();
        self.out.clear();
        self.final_text = Box::default();
        self.phase = Phase::IDLE;
        self.progress.last = None;
    }
}
