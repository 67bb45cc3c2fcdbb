//! The body of an answer, split into pieces that one poll can process.

use std::pin::pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use oa_sse::PollBudget;
use oa_transport::{TimeoutKind, Watch};
use tokio::task::yield_now;

use crate::body::{AnyBody, BoxError};

/// A body read piece by piece. One poll reads at most as much as a [`PollBudget`] allows.
///
/// The budget lasts from one `Pending` to the next, so it also bounds callers that skip items, at any layer.
pub(crate) struct Source {
    body: AnyBody,
    /// The rest of a frame that was larger than a piece.
    rest: Bytes,
    budget: PollBudget,
}

/// The outcome of a read.
pub(crate) enum Piece {
    Broken(BoxError),
    /// Empty for a frame without data.
    Bytes(Bytes),
    End,
    Expired(TimeoutKind),
}

impl Source {
    pub(crate) fn new(body: AnyBody) -> Self {
        Self { body, rest: Bytes::new(), budget: PollBudget::default() }
    }

    /// Waits for the next piece, within the watch's timeouts. A spent budget has woken the task and is pending.
    #[inline]
    pub(crate) fn poll_piece(&mut self, watch: &mut Watch, cx: &mut Context<'_>) -> Poll<Piece> {
        if self.budget.is_spent() {
            return self.poll_spent(watch, cx);
        }
        if !self.rest.is_empty() {
            return Poll::Ready(Piece::Bytes(self.budget.take(&mut self.rest)));
        }
        Poll::Ready(match self.body.poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let mut bytes = frame.into_data().unwrap_or_default();
                let piece = self.budget.take(&mut bytes);
                if !bytes.is_empty() {
                    self.rest = bytes;
                }
                Piece::Bytes(piece)
            }
            Poll::Ready(Some(Err(error))) => Piece::Broken(error),
            Poll::Ready(None) => Piece::End,
            Poll::Pending => {
                self.budget.refill();
                return watch.poll_expired(cx).map(Piece::Expired);
            }
        })
    }

    /// Yields to other tasks. While data floods in, this is the only time to check the clock.
    #[cold]
    fn poll_spent(&mut self, watch: &mut Watch, cx: &mut Context<'_>) -> Poll<Piece> {
        self.budget.refill();
        if let Some(kind) = watch.expired() {
            return Poll::Ready(Piece::Expired(kind));
        }
        // Yield instead of waking at once, so that timers and sockets are polled before this task.
        let _ = pin!(yield_now()).poll(cx);
        Poll::Pending
    }

    /// Charges the budget for the events found in the last piece.
    #[inline]
    pub(crate) fn charge(&mut self, events: u64) {
        self.budget.charge(events);
    }

    pub(crate) fn into_body(self) -> AnyBody {
        self.body
    }
}
