//! The callbacks and the bookkeeping that depend on whether an answer has begun.

use std::sync::Arc;
use std::time::Duration;

use oa_transport::Watch;

use crate::error::{Error, Result};
use crate::retry_budget::RetryBudget;
use crate::service::BoxFuture;

/// State that depends on whether anything of an answer was handed out; `A` is the answer.
pub(crate) struct Beginning<A> {
    /// The time to the first token.
    pub(crate) first_token: Option<Duration>,
    /// Asks again if the answer breaks before that.
    pub(crate) early_end: Option<EarlyEnd<A>>,
    pub(crate) on_begin: Option<OnBegin>,
    /// The budget that gets a retry back for it.
    pub(crate) credited: Option<Arc<RetryBudget>>,
}

/// Asks again, or gives the error back.
pub(crate) type EarlyEnd<A> = Box<dyn FnOnce(Error) -> Result<BoxFuture<Result<A>>> + Send>;

/// Is called when an answer has begun.
pub(crate) type OnBegin = Box<dyn FnOnce() + Send>;

impl<A> Beginning<A> {
    /// Notes that something is handed out: from now on the answer is not replaced.
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

    /// Gives the retry back: the server did what it was asked for.
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
