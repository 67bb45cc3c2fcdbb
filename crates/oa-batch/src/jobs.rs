//! The futures of a batch, polled when they are woken.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

pub(crate) type JobFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A set of futures that run while it is polled.
///
/// They are not tasks: dropping the set drops all of them at once, so nothing of a batch outlives it, and their borrows
/// and panics stay with the caller. One core is enough, since an answer costs far less to read than to generate.
pub(crate) struct Jobs<T> {
    slots: Vec<Option<Job<T>>>,
    free: Vec<usize>,
    queue: Arc<Queue>,
}

struct Job<T> {
    future: JobFuture<T>,
    waker: Waker,
}

impl<T> Jobs<T> {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), queue: Arc::default() }
    }

    pub(crate) fn push(&mut self, future: JobFuture<T>) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let woken = Arc::new(Woken { slot, queue: Arc::clone(&self.queue) });
        self.slots[slot] = Some(Job { future, waker: Waker::from(Arc::clone(&woken)) });
        woken.wake();
    }

    /// Polls the jobs that were woken and returns the output of the first that is done; pending without jobs.
    pub(crate) fn poll_next(&mut self, cx: &Context<'_>) -> Poll<T> {
        // Jobs that wake themselves, as tokio's do when their budget is used up, must not keep the caller's thread.
        for _ in 0..self.slots.len().max(1) {
            let Some(slot) = self.queue.pop(cx) else {
                return Poll::Pending;
            };
            // Out of its slot while it is polled: a job that panics is gone, and never polled again.
            let Some(mut job) = self.slots[slot].take() else {
                continue;
            };
            match job.future.as_mut().poll(&mut Context::from_waker(&job.waker)) {
                Poll::Ready(output) => {
                    self.free.push(slot);
                    return Poll::Ready(output);
                }
                Poll::Pending => self.slots[slot] = Some(job),
            }
        }
        // Jobs may be left in the queue, and the waker was not stored in this pass.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// The slots that were woken, each at most once, in order.
#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
}

#[derive(Default)]
struct QueueState {
    slots: VecDeque<usize>,
    is_queued: Vec<bool>,
    waker: Option<Waker>,
}

impl Queue {
    /// Takes the next slot; if there is none, `cx` is woken when there is.
    fn pop(&self, cx: &Context<'_>) -> Option<usize> {
        let mut state = self.lock();
        let slot = state.slots.pop_front();
        match slot {
            // Before the poll, so that a wakeup during the poll queues the slot again.
            Some(slot) => state.is_queued[slot] = false,
            None if state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) => {}
            None => state.waker = Some(cx.waker().clone()),
        }
        slot
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The waker of one slot. It may outlive its job, and then wakes the next one in the slot needlessly.
struct Woken {
    slot: usize,
    queue: Arc<Queue>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let waker = {
            let mut state = self.queue.lock();
            if state.is_queued.len() <= self.slot {
                state.is_queued.resize(self.slot + 1, false);
            }
            if std::mem::replace(&mut state.is_queued[self.slot], true) {
                return;
            }
            state.slots.push_back(self.slot);
            // Used once: the queue is not empty until the next poll, which stores a waker again if needed.
            state.waker.take()
        };
        // Outside of the lock: it is foreign code.
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn, ready};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counted() -> (Arc<Count>, Waker) {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        (Arc::clone(&count), Waker::from(count))
    }

    #[test]
    fn only_woken_jobs_are_polled() {
        let (wakes, waker) = counted();
        let cx = Context::from_waker(&waker);
        let polls = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&polls);
        let mut jobs = Jobs::new();
        jobs.push(Box::pin(poll_fn(move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
            Poll::<i32>::Pending
        })));
        let inner = Arc::new(Mutex::new(None::<Waker>));
        let shared = Arc::clone(&inner);
        let mut times = 0;
        jobs.push(Box::pin(poll_fn(move |cx| {
            times += 1;
            *shared.lock().unwrap() = Some(cx.waker().clone());
            if times == 3 { Poll::Ready(7) } else { Poll::Pending }
        })));
        for wake in 0..2 {
            assert!(jobs.poll_next(&cx).is_pending());
            assert!(jobs.poll_next(&cx).is_pending());
            let waker = inner.lock().unwrap().clone().unwrap();
            let before = wakes.0.load(Ordering::Relaxed);
            waker.wake_by_ref();
            waker.wake_by_ref();
            assert_eq!(wakes.0.load(Ordering::Relaxed) - before, 1, "wake {wake}");
        }
        assert_eq!(jobs.poll_next(&cx), Poll::Ready(7));
        assert_eq!(polls.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn self_waking_job_yields_to_the_caller() {
        let (wakes, waker) = counted();
        let mut jobs = Jobs::<()>::new();
        jobs.push(Box::pin(poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::Pending
        })));
        assert!(jobs.poll_next(&Context::from_waker(&waker)).is_pending());
        assert!(wakes.0.load(Ordering::Relaxed) > 0);
    }

    #[test]
    fn slots_are_used_again() {
        let mut jobs = Jobs::new();
        let cx = Context::from_waker(Waker::noop());
        jobs.push(Box::pin(pending()));
        for number in 0..100 {
            jobs.push(Box::pin(ready(number)));
            let done = (0..2).map(|_| jobs.poll_next(&cx)).find(Poll::is_ready);
            assert_eq!(done, Some(Poll::Ready(number)));
        }
        assert_eq!(jobs.slots.len(), 2);
    }
}
