//! The shared board, with a lock and a clock. Wakers are called outside the lock.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use oa_chat::Error;
use tokio::time::{Sleep, sleep_until};

use crate::board::{Answer, Board, Refusal, Ticket, Wish};
use crate::failures::excerpt;
use crate::judge::judge;
use crate::seat::{Grant, Verdict};

#[derive(Debug)]
pub(crate) struct Desk(Mutex<Board>);

impl Desk {
    pub(crate) fn new(board: Board) -> Self {
        Self(Mutex::new(board))
    }

    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Board, Instant) -> T) -> T {
        let now = tokio::time::Instant::now().into_std();
        let mut board = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = act(&mut board, now);
        let wakes = board.take_wakes();
        drop(board);
        for waker in wakes {
            waker.wake();
        }
        outcome
    }

    /// Waits for a server.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the queue.
    pub(crate) async fn place(
        self: &Arc<Self>,
        wish: Wish,
    ) -> (Option<Ticket>, Result<Lease, Refusal>) {
        let lease = |grant| Lease { desk: Arc::clone(self), grant: Some(grant) };
        match self.with(|board, now| board.ask(wish, now)) {
            Answer::Go(grant) => (wish.ticket, Ok(lease(grant))),
            Answer::No(refusal) => (wish.ticket, Err(refusal)),
            Answer::Wait(ticket, again) => {
                let timer = Box::pin(sleep_until(again.into()));
                let place = Place { desk: self, ticket: Some(ticket), timer };
                (Some(ticket), place.await.map(lease))
            }
        }
    }
}

/// A position in the queue.
struct Place<'a> {
    desk: &'a Desk,
    /// `None` after the request got a response.
    ticket: Option<Ticket>,
    timer: Pin<Box<Sleep>>,
}

impl Future for Place<'_> {
    type Output = Result<Grant, Refusal>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(ticket) = this.ticket else { return Poll::Pending };
        loop {
            let answer = match this.desk.with(|board, now| board.poll(ticket, cx.waker(), now)) {
                Answer::Go(grant) => Ok(grant),
                Answer::No(refusal) => Err(refusal),
                Answer::Wait(_, again) => {
                    if this.timer.deadline() != again.into() {
                        this.timer.as_mut().reset(again.into());
                    }
                    if this.timer.as_mut().poll(cx).is_ready() {
                        continue;
                    }
                    return Poll::Pending;
                }
            };
            this.ticket = None;
            return Poll::Ready(answer);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.desk.with(|board, now| board.leave(ticket, now));
        }
    }
}

/// The permission to use a server until its answer ends. Dropping it gives the answer up.
#[derive(Debug)]
pub(crate) struct Lease {
    desk: Arc<Desk>,
    grant: Option<Grant>,
}

impl Lease {
    pub(crate) fn grant(&self) -> Option<Grant> {
        self.grant
    }

    /// Releases the server after an answer or a failure.
    pub(crate) fn end(mut self, failure: Option<&Error>) -> Verdict {
        let verdict = failure.map_or(Verdict::Answered, judge);
        let words = failure.filter(|_| verdict != Verdict::Refused).map(excerpt);
        self.give_back(verdict, words);
        verdict
    }

    fn give_back(&mut self, verdict: Verdict, words: Option<String>) {
        if let Some(grant) = self.grant.take() {
            self.desk.with(|board, now| board.done(grant, verdict, words, now));
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.give_back(Verdict::GivenUp, None);
    }
}
