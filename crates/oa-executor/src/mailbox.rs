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
    letters: VecDeque<(usize, Letter)>,
    calls: Vec<Slot>,
    /// Calls that want to be polled.
    ready: Vec<usize>,
    reader: Option<Waker>,
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
                letters: VecDeque::new(),
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
        let overflow = match inner.letters.len() >= self.capacity {
            true => inner.letters.pop_front(),
            false => None,
        };
        if let Some((call, _)) = &overflow {
            inner.calls[*call].dropped += 1;
        }
        inner.letters.push_back((call, letter));
        let reader = inner.reader.take();
        drop(inner);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    pub(crate) fn take_letters(&self) -> VecDeque<(usize, Letter)> {
        std::mem::take(&mut self.lock().letters)
    }

    /// Ends a call: returns what was said until then, and how much of its own was dropped.
    pub(crate) fn close(&self, call: usize) -> (VecDeque<(usize, Letter)>, u64) {
        let mut inner = self.lock();
        inner.calls[call].has_ended = true;
        (std::mem::take(&mut inner.letters), inner.calls[call].dropped)
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
