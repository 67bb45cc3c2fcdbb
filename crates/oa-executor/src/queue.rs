use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use oa_tools::{Emission, Emitter};

use crate::event::ToolRetry;

/// The queue between running calls and the stream: emitted events, retries, and the calls that were woken. The
/// only state that they share.
pub(crate) struct EventQueue {
    inner: Mutex<Inner>,
    /// The largest number of queued emissions.
    capacity: usize,
}

struct Inner {
    /// Emissions of tools; the oldest is dropped when the queue is full.
    emissions: VecDeque<Posted>,
    /// Retries, bounded by the attempts of the calls; never dropped.
    retries: Vec<Posted>,
    /// The number of events queued so far.
    posted: u64,
    calls: Vec<Slot>,
    /// Calls waiting to be polled.
    ready: Vec<usize>,
    reader: Option<Waker>,
}

struct Posted {
    /// The position among all events; merges the two lists again.
    number: u64,
    call: usize,
    event: QueuedEvent,
}

#[derive(Clone, Default)]
struct Slot {
    is_ready: bool,
    /// Events emitted after a call's end are ignored.
    has_ended: bool,
    dropped: u64,
}

pub(crate) enum QueuedEvent {
    Emission(Emission),
    Retry(ToolRetry),
}

impl EventQueue {
    pub(crate) fn new(calls: usize, capacity: usize) -> Self {
        Self {
            inner: Mutex::new(Inner {
                emissions: VecDeque::new(),
                retries: Vec::new(),
                posted: 0,
                calls: vec![Slot::default(); calls],
                ready: Vec::new(),
                reader: None,
            }),
            capacity,
        }
    }

    /// Sets the waker of the stream. Must be called before checking the queue, so that no wakeup is lost.
    pub(crate) fn listen(&self, waker: &Waker) {
        let waker = waker.clone();
        // Dropping a waker may run arbitrary code, so do it outside the lock.
        let replaced = self.lock().reader.replace(waker);
        drop(replaced);
    }

    pub(crate) fn post(&self, call: usize, event: QueuedEvent) {
        let mut inner = self.lock();
        if inner.calls[call].has_ended {
            return;
        }
        // Emissions and retries are kept apart because only emissions may be dropped.
        let posted = Posted { number: inner.posted, call, event };
        inner.posted += 1;
        match &posted.event {
            QueuedEvent::Emission(_) => inner.emissions.push_back(posted),
            QueuedEvent::Retry(_) => inner.retries.push(posted),
        }
        // Retries count toward the capacity, but only emissions are dropped.
        let is_full = inner.emissions.len() + inner.retries.len() > self.capacity;
        let overflow = is_full.then(|| inner.emissions.pop_front()).flatten();
        if let Some(dropped) = &overflow {
            inner.calls[dropped.call].dropped += 1;
        }
        // A reader is woken once and registers itself again with its next poll. Wakers run foreign code, so
        // the lock is released first.
        let reader = inner.reader.take();
        drop(inner);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Takes the queued events, in order.
    pub(crate) fn take_events(&self) -> Vec<(usize, QueuedEvent)> {
        let mut inner = self.lock();
        let (emissions, retries) = inner.take();
        drop(inner);
        in_order(emissions, retries)
    }

    /// Ends a call; returns the events queued so far and the number of its dropped events.
    pub(crate) fn close(&self, call: usize) -> (Vec<(usize, QueuedEvent)>, u64) {
        let mut inner = self.lock();
        // Under one lock: everything emitted before this point is returned here, and everything after it is
        // ignored. Events of other calls are returned too, so that the order between calls is kept.
        inner.calls[call].has_ended = true;
        let dropped = inner.calls[call].dropped;
        let (emissions, retries) = inner.take();
        drop(inner);
        (in_order(emissions, retries), dropped)
    }

    /// Marks a call to be polled and wakes the stream.
    pub(crate) fn ready(&self, call: usize) {
        let mut inner = self.lock();
        if !std::mem::replace(&mut inner.calls[call].is_ready, true) {
            inner.ready.push(call);
        }
        let reader = inner.reader.take();
        drop(inner);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Takes the calls to be polled.
    pub(crate) fn take_ready(&self) -> Vec<usize> {
        let inner = &mut *self.lock();
        let ready = std::mem::take(&mut inner.ready);
        // Cleared before the calls are polled: a wakeup during a poll must queue the call again.
        ready.iter().for_each(|call| inner.calls[*call].is_ready = false);
        ready
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn take(&mut self) -> (VecDeque<Posted>, Vec<Posted>) {
        (std::mem::take(&mut self.emissions), std::mem::take(&mut self.retries))
    }
}

/// Merges both in the order of their numbers, in which each of them is.
fn in_order(emissions: VecDeque<Posted>, retries: Vec<Posted>) -> Vec<(usize, QueuedEvent)> {
    let mut events = Vec::with_capacity(emissions.len() + retries.len());
    let mut retries = retries.into_iter().peekable();
    for emission in emissions {
        while let Some(retry) = retries.next_if(|retry| retry.number < emission.number) {
            events.push((retry.call, retry.event));
        }
        events.push((emission.call, emission.event));
    }
    events.extend(retries.map(|retry| (retry.call, retry.event)));
    events
}

impl fmt::Debug for EventQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventQueue").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

/// One call's end of the queue.
pub(crate) struct Sender {
    pub(crate) queue: Arc<EventQueue>,
    pub(crate) call: usize,
}

impl Emitter for Sender {
    fn emit(&self, emission: Emission) {
        self.queue.post(self.call, QueuedEvent::Emission(emission));
    }
}

impl Wake for Sender {
    fn wake(self: Arc<Self>) {
        self.queue.ready(self.call);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.queue.ready(self.call);
    }
}
