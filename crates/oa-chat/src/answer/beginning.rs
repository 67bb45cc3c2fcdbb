//! Callbacks and state that depend on whether an answer has begun.

use std::sync::Arc;
use std::time::Duration;

use oa_transport::Watch;

use crate::error::{Error, Result};
use crate::retry_budget::RetryBudget;
use crate::service::BoxFuture;

/// State that depends on whether any of an answer was returned; `A` is the answer.
pub(crate) struct Beginning<A> {
    /// The time to the first token.
    pub(crate) first_token: Option<Duration>,
    /// Retries if the answer breaks before that.
    pub(crate) early_end: Option<EarlyEnd<A>>,
    pub(crate) on_begin: Option<OnBegin>,
    /// The budget to which the retry is returned.
    pub(crate) credited: Option<Arc<RetryBudget>>,
}

/// Retries, or returns the error.
pub(crate) type EarlyEnd<A> = Box<dyn FnOnce(Error) -> Result<BoxFuture<Result<A>>> + Send>;

/// A callback for the beginning of an answer.
pub(crate) type OnBegin = Box<dyn FnOnce() + Send>;

impl<A> Beginning<A> {
    /// Records that output is returned: from now on the answer is not replaced.
    #[inline]
    pub(crate) fn note(&mut self, watch: &Watch) {
        if self.first_token.is_none() {
            self.first_token = Some(watch.elapsed());
            self.early_end = None;
            self.give_back();
            if let Some(on_begin) = self.on_begin.take() {
                on_begin();
            }
        }
    }

    /// Gives the retry back to the budget, since the server answered.
    pub(crate) fn give_back(&mut self) {
        if let Some(budget) = self.credited.take() {
            budget.give_back();
        }
    }
}

impl<A> Default for Beginning<A> {
    fn default() -> Self {
        Self { first_token: None, early_end: None, on_begin: None, credited: None }
    }
}
