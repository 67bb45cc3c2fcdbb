//! Turns that end in the middle of whatever is in progress.

use oa_types::{ContentBlock, FinishReason, Outcome};

use super::Turn;
use super::phase::{Phase, Rest};
use crate::answer::unfinished;
use crate::options::Mode;

impl Turn {
    /// Ends the turn because the user wants it so. What had arrived of an answer stays as text, if text is shown
    /// as it arrives.
    pub fn interrupt(&mut self, partial: Vec<ContentBlock>) {
        let (reason, partial) = (Some(FinishReason::Interrupted), self.shown(partial));
        self.cut(partial, "cancelled: the user interrupted", Outcome::Cancelled, reason);
    }

    /// Ends the turn because a budget that the driver keeps (time) is used up. What had arrived of an
    /// answer stays as text, if text is shown as it arrives.
    pub fn stop(&mut self, reason: FinishReason, partial: Vec<ContentBlock>) {
        let partial = self.shown(partial);
        self.cut(partial, "not run: the budget is used up", Outcome::NotRun, Some(reason));
    }

    /// Ends the turn because the user goes on without it; nobody is told of its end. What had arrived
    /// of an answer stays as text.
    pub fn abandon(&mut self, partial: Vec<ContentBlock>) {
        self.cut(partial, "not run: the user went on without it", Outcome::NotRun, None);
    }

    /// The part of an answer that the caller has seen. The rest is no part of the conversation.
    pub(super) fn shown(&self, partial: Vec<ContentBlock>) -> Vec<ContentBlock> {
        if self.shows_text() { partial } else { Vec::new() }
    }

    /// Ends what is in progress, in the middle of whatever it is.
    fn cut(
        &mut self,
        partial: Vec<ContentBlock>,
        error: &str,
        outcome: Outcome,
        told: Option<FinishReason>,
    ) {
        let mut rested = Rest::Done;
        match self.phase {
            Phase::Idle { .. } => return,
            // Nothing has begun: what waited before the prompt still waits.
            Phase::Prompting { rest, .. } => rested = rest,
            Phase::Requesting { .. } => {
                if let Some(message) = unfinished(partial) {
                    self.conversation.push(message);
                }
                self.failure = None;
                self.rest();
            }
            _ => {
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

    /// Answers open calls in the middle of a turn: with this if they have not started. Of those that have,
    /// nobody can say that they were not run.
    pub(super) fn answer_cut_calls(&mut self, error: &str, outcome: Outcome) {
        let runs = matches!(self.phase, Phase::Calling { started: true, .. });
        if !runs || self.options.mode == Mode::Manual {
            return self.answer_open_calls(error, outcome);
        }
        let why = error.split_once(": ").map_or(error, |(_, why)| why);
        let error = format!("cancelled: {why} while it ran; it may have taken effect");
        self.answer_open_calls(&error, Outcome::Cancelled);
    }

    /// Nothing is in progress any more; what nobody has looked at is looked at before the next
    /// request.
    pub(super) fn rest(&mut self) {
        self.round.take_back();
        self.round.hide();
        self.out.clear();
        self.final_text = Box::default();
        self.phase = Phase::IDLE;
        self.progress.last = None;
    }
}
