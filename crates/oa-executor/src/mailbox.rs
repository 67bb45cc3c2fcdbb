use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use oa_tools::{Emission, Emitter};

use crate::event::ToolRetry;

/// Where running calls leave what they have to say, and who is woken by it: the one thing that they
/// share with the stream.
pub(crate) struct Mailbox {
    inner: Mutex<Inner>,
    /// How many emissions may wait.
    capacity: usize,
}

struct Inner {
    /// What tools said: of these the oldest goes when there are too many.
    emissions: VecDeque<Posted>,
    /// As many as calls are tried again; none is dropped.
    retries: Vec<Posted>,
    /// How many letters were posted.
    posted: u64,
    calls: Vec<Slot>,
    /// Calls that want to be polled.
    ready: Vec<usize>,
    reader: Option<Waker>,
}

struct Posted {
    number: u64,
    call: usize,
    letter: Letter,
}

#[derive(Clone, Default)]
struct Slot {
    is_ready: bool,
    /// What it says after its end is not heard.
    has_ended: bool,
    dropped: u64,
}

pub(crate) enum Letter {
    Emission(Emission),
    Retry(ToolRetry),
}

impl Mailbox {
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

    /// Sets who is woken; to be done before looking what is there.
    pub(crate) fn listen(&self, waker: &Waker) {
        let waker = waker.clone();
        // Wakers are dropped outside the lock: that may run anything.
        let replaced = self.lock().reader.replace(waker);
        drop(replaced);
    }

    pub(crate) fn post(&self, call: usize, letter: Letter) {
        let mut inner = self.lock();
        if inner.calls[call].has_ended {
            return;
        }
        let posted = Posted { number: inner.posted, call, letter };
        inner.posted += 1;
        match &posted.letter {
            Letter::Emission(_) => inner.emissions.push_back(posted),
            Letter::Retry(_) => inner.retries.push(posted),
        }
        // Retries count too: the queue is as long as was asked, unless it is nothing but retries.
        let is_full = inner.emissions.len() + inner.retries.len() > self.capacity;
        let overflow = is_full.then(|| inner.emissions.pop_front()).flatten();
        if let Some(dropped) = &overflow {
            inner.calls[dropped.call].dropped += 1;
        }
        let reader = inner.reader.take();
        drop(inner);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Takes what was said, in the order in which it was.
    pub(crate) fn take_letters(&self) -> Vec<(usize, Letter)> {
        let mut inner = self.lock();
        let (emissions, retries) = inner.take();
        drop(inner);
        in_order(emissions, retries)
    }

    /// Ends a call: returns what was said until then, and how much of its own was dropped.
    pub(crate) fn close(&self, call: usize) -> (Vec<(usize, Letter)>, u64) {
        let mut inner = self.lock();
        inner.calls[call].has_ended = true;
        let dropped = inner.calls[call].dropped;
        let (emissions, retries) = inner.take();
        drop(inner);
        (in_order(emissions, retries), dropped)
    }

    /// Marks a call as to be polled, and wakes the reader.
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

    /// Takes the calls that are to be polled.
    pub(crate) fn take_ready(&self) -> Vec<usize> {
        let inner = &mut *self.lock();
        let ready = std::mem::take(&mut inner.ready);
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

/// Puts both together in the order of their numbers, in which each of them is.
fn in_order(emissions: VecDeque<Posted>, retries: Vec<Posted>) -> Vec<(usize, Letter)> {
    let mut letters = Vec::with_capacity(emissions.len() + retries.len());
    let mut retries = retries.into_iter().peekable();
    for emission in emissions {
        while let Some(retry) = retries.next_if(|retry| retry.number < emission.number) {
            letters.push((retry.call, retry.letter));
        }
        letters.push((emission.call, emission.letter));
    }
    letters.extend(retries.map(|retry| (retry.call, retry.letter)));
    letters
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

/// One call's own slot in the mailbox.
pub(crate) struct Sender {
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) call: usize,
}

impl Emitter for Sender {
    fn emit(&self, emission: Emission) {
        self.mailbox.post(self.call, Letter::Emission(emission));
    }
}

impl Wake for Sender {
    fn wake(self: Arc<Self>) {
        self.mailbox.ready(self.call);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.mailbox.ready(self.call);
    }
}
