//! Callbacks and state that depend on whether an answer has begun.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use oa_transport::Watch;
use oa_types::{Exclusive, micros};

use crate::answer_outcome::AnswerOutcome;
use crate::error::{Error, Result};
use crate::retry_budget::RetryBudget;
use crate::service::BoxFuture;

/// State that depends on whether any of an answer was returned; `A` is the answer.
pub(crate) struct Beginning<A> {
    /// The time to the first token.
    pub(crate) first_token: Option<Duration>,
    /// Those of all services around the answer, innermost first. One of them may replace the answer: those inside of
    /// it are done then, and those outside never see that it broke, so theirs move to the replacement.
    pub(crate) callbacks: Vec<Callback<A>>,
}

pub(crate) enum Callback<A> {
    Begin(Exclusive<Box<dyn FnOnce() + Send>>),
    /// A budget to which a retry is returned. Services inside of one another may each have their own.
    Credit(Arc<RetryBudget>),
    End(OnEnd),
    EarlyEnd(EarlyEnd<A>),
}

/// A callback for the outcome of an answer.
pub(crate) type OnEnd = Exclusive<Box<dyn FnOnce(&AnswerOutcome<'_>) + Send>>;

/// Replaces an answer, or returns the error.
pub(crate) type EarlyEnd<A> =
    Exclusive<Box<dyn FnOnce(Error) -> Result<BoxFuture<Result<A>>> + Send>>;

impl<A> Beginning<A> {
    /// Records that output is returned: from now on the answer is not replaced.
    #[inline]
    pub(crate) fn note(&mut self, watch: &Watch) {
        if self.first_token.is_none() {
            self.first_token = Some(micros::whole(watch.elapsed()));
            for callback in mem::take(&mut self.callbacks) {
                match callback {
                    Callback::Begin(on_begin) => on_begin.into_inner()(),
                    Callback::Credit(budget) => budget.give_back(),
                    Callback::End(_) => self.callbacks.push(callback),
                    Callback::EarlyEnd(_) => {}
                }
            }
        }
    }

    /// Gives the retries back to their budgets, since the server answered.
    pub(crate) fn give_back(&self) {
        for callback in &self.callbacks {
            if let Callback::Credit(budget) = callback {
                budget.give_back();
            }
        }
    }

    /// Takes the callbacks of the innermost service that may replace the answer, and of those inside of it.
    pub(crate) fn take_replacement(&mut self) -> Option<(Vec<Callback<A>>, EarlyEnd<A>)> {
        let is_early_end = |callback: &Callback<A>| matches!(callback, Callback::EarlyEnd(_));
        let outer = self.callbacks.split_off(self.callbacks.iter().position(is_early_end)? + 1);
        let mut inner = mem::replace(&mut self.callbacks, outer);
        let Some(Callback::EarlyEnd(early_end)) = inner.pop() else { return None };
        Some((inner, early_end))
    }
}

impl<A> Default for Beginning<A> {
    fn default() -> Self {
        Self { first_token: None, callbacks: Vec::new() }
    }
}
