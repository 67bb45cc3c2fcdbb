//! The shared scheduler, with a lock and a clock. Wakers are called outside the lock.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use oa_chat::Error;
use tokio::time::{Sleep, sleep_until};

use crate::failures::excerpt;
use crate::outcome::{Outcome, classify};
use crate::scheduler::{Admission, Rejection, Scheduler, SlotRequest, Ticket};
use crate::slots::Grant;

#[derive(Debug)]
pub(crate) struct Dispatcher(Mutex<Scheduler>);

impl Dispatcher {
    pub(crate) fn new(scheduler: Scheduler) -> Self {
        Self(Mutex::new(scheduler))
    }

    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Scheduler, Instant) -> T) -> T {
        let now = tokio::time::Instant::now().into_std();
        let mut scheduler = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let result = act(&mut scheduler, now);
        // Any call can answer waiting requests: a slot came free, a circuit changed, or time has passed.
        // Their wakers run after the lock is released, because a waker may poll its task at once.
        let wakes = scheduler.take_wakes();
        drop(scheduler);
        for waker in wakes {
            waker.wake();
        }
        result
    }

    /// Waits for a server.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the queue.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        request: SlotRequest,
    ) -> (Option<Ticket>, Result<Lease, Rejection>) {
        // From a grant to its lease there is no `.await`: a future dropped in between would leak the slot.
        // While the request waits, the `Waiter` gives back a grant that it has not collected.
        let lease = |grant| Lease { dispatcher: Arc::clone(self), grant: Some(grant) };
        match self.with(|scheduler, now| scheduler.acquire(request, now)) {
            Admission::Granted(grant) => (request.ticket, Ok(lease(grant))),
            Admission::Rejected(rejection) => (request.ticket, Err(rejection)),
            Admission::Queued(ticket, again) => {
                let timer = Box::pin(sleep_until(again.into()));
                let waiter = Waiter { dispatcher: self, ticket: Some(ticket), timer };
                (Some(ticket), waiter.await.map(lease))
            }
        }
    }
}

/// A future that waits in the queue. Dropping it leaves the queue.
struct Waiter<'a> {
    dispatcher: &'a Dispatcher,
    /// `None` after the request got a response.
    ticket: Option<Ticket>,
    timer: Pin<Box<Sleep>>,
}

impl Future for Waiter<'_> {
    type Output = Result<Grant, Rejection>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(ticket) = this.ticket else { return Poll::Pending };
        loop {
            let result = match this
                .dispatcher
                .with(|scheduler, now| scheduler.poll(ticket, cx.waker(), now))
            {
                Admission::Granted(grant) => Ok(grant),
                Admission::Rejected(rejection) => Err(rejection),
                Admission::Queued(_, again) => {
                    // Resetting a timer takes a lock of the runtime, and the time is mostly the same.
                    if this.timer.deadline() != again.into() {
                        this.timer.as_mut().reset(again.into());
                    }
                    // The time has passed already: ask again. It cannot loop, because the scheduler returns
                    // times after `now`, or answers a request that is past its deadline.
                    if this.timer.as_mut().poll(cx).is_ready() {
                        continue;
                    }
                    return Poll::Pending;
                }
            };
            this.ticket = None;
            return Poll::Ready(result);
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.dispatcher.with(|scheduler, now| scheduler.leave(ticket, now));
        }
    }
}

/// A slot at a server, held until its answer ends. Dropping it counts the answer as given up.
#[derive(Debug)]
pub(crate) struct Lease {
    dispatcher: Arc<Dispatcher>,
    grant: Option<Grant>,
}

impl Lease {
    pub(crate) fn grant(&self) -> Option<Grant> {
        self.grant
    }

    /// Releases the server after an answer or a failure.
    pub(crate) fn end(mut self, failure: Option<&Error>) -> Outcome {
        let outcome = failure.map_or(Outcome::Answered, classify);
        let message = failure
            .filter(|_| !matches!(outcome, Outcome::Refused | Outcome::Unrelated))
            .map(excerpt);
        self.release(outcome, message);
        outcome
    }

    fn release(&mut self, outcome: Outcome, message: Option<String>) {
        if let Some(grant) = self.grant.take() {
            self.dispatcher.with(|scheduler, now| scheduler.done(grant, outcome, message, now));
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.release(Outcome::GivenUp, None);
    }
}
