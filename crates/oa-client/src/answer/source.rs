//! The body of an answer, in pieces that one poll can deal with.

use std::pin::pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use oa_sse::PollBudget;
use tokio::task::yield_now;

use crate::service::{AnyBody, BoxError};

/// A body that is read piece by piece, and no more of it at once than a [`PollBudget`] allows.
///
/// The budget lasts from one `Pending` to the next, however often it is polled in between: callers that skip
/// what they have no use for, at any layer above, are bounded by it as well.
pub(crate) struct Source {
    body: AnyBody,
    /// The rest of a frame that was larger than a piece.
    rest: Bytes,
    budget: PollBudget,
}

impl Source {
    pub(crate) fn new(body: AnyBody) -> Self {
        Self { body, rest: Bytes::new(), budget: PollBudget::default() }
    }

    /// Returns the next piece, which is empty for a frame without data; `None` at the end. Where the budget
    /// is spent, it is pending and the task has been woken already: this is the moment to look at clocks.
    #[inline]
    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BoxError>>> {
        if self.budget.is_spent() {
            self.budget.refill();
            // Rather than waking at once: timers and sockets get their turn before this task does.
            return pin!(yield_now()).poll(cx).map(|()| None);
        }
        if self.rest.is_empty() {
            match self.body.poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => self.rest = frame.into_data().unwrap_or_default(),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => {
                    self.budget.refill();
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Some(Ok(self.budget.take(&mut self.rest))))
    }

    /// Charges for what was found in the last piece.
    #[inline]
    pub(crate) fn charge(&mut self, events: u64) {
        self.budget.charge(events);
    }

    pub(crate) fn into_body(self) -> AnyBody {
        self.body
    }
}
