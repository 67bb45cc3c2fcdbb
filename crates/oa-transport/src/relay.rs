use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use crate::error::Heard;

/// A connection's waker, which forwards only wakeups that the reader needs, and records what the peer sent.
///
/// hyper's halves communicate through channels that wake each other. Both are polled in turn by the same task,
/// so nearly every such wakeup would reach a task that is already running and cost it another poll. A wakeup
/// counts only if it comes after the last poll began and that poll returned `Pending`; a task that gets a value
/// polls again anyway.
///
/// | call | from | to | effect |
/// | --- | --- | --- | --- |
/// | `begin` | any | `IDLE` | the poll that starts handles all earlier wakeups |
/// | `wake` | `IDLE`, `WOKEN` | `WOKEN` | remembered, in case the poll returns `Pending` |
/// | `wake` | `ARMED` | `WOKEN` | wakes the task |
/// | `arm` | `IDLE` | `ARMED` | the poll returned `Pending` |
/// | `arm` | `WOKEN` | `WOKEN` | wakes the task, which polls again |
///
/// `begin` and `arm` are called by the owner of the connection only, so they do not race with each other.
///
/// This also keeps pooled connections from holding on to a task's waker.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    state: AtomicU8,
    heard: AtomicU8,
    task: Mutex<Option<Waker>>,
}

/// No task waits; a poll may be running.
const IDLE: u8 = 0;
/// Woken since the last poll began.
const WOKEN: u8 = 1;
/// A task waits.
const ARMED: u8 = 2;

const NOTHING: u8 = 0;
const BYTES: u8 = 1;
const TLS: u8 = 2;

impl Relay {
    /// Clears earlier wakeups, because a poll is about to handle their cause.
    pub(crate) fn begin(&self) {
        // A swap, not a store, to see everything that happened before the wakeup.
        self.state.swap(IDLE, Ordering::AcqRel);
    }

    /// Registers `waker`, and wakes it immediately if there was a wakeup since the poll began.
    pub(crate) fn arm(&self, waker: &Waker) {
        // The waker is stored before the state says so: a wakeup that finds `ARMED` must find the waker, too.
        let mut task = self.task();
        match &*task {
            Some(armed) if armed.will_wake(waker) => (),
            _ => *task = Some(waker.clone()),
        }
        drop(task);
        if self.state.compare_exchange(IDLE, ARMED, Ordering::AcqRel, Ordering::Acquire).is_err() {
            waker.wake_by_ref();
        }
    }

    /// Releases the waker.
    pub(crate) fn disarm(&self) {
        self.begin();
        let task = self.task().take();
        drop(task);
    }

    /// Clears the record of what was received, before the next response.
    pub(crate) fn await_answer(&self) {
        self.heard.store(NOTHING, Ordering::Relaxed);
    }

    /// Records bytes from the peer.
    pub(crate) fn hear(&self, bytes: &[u8]) {
        // Alert and handshake records start like this; HTTP starts with a letter.
        if self.heard.load(Ordering::Relaxed) == NOTHING
            && let Some(first) = bytes.first()
        {
            let heard = if matches!(first, 0x15 | 0x16) { TLS } else { BYTES };
            self.heard.store(heard, Ordering::Relaxed);
        }
    }

    pub(crate) fn heard(&self) -> Heard {
        match self.heard.load(Ordering::Relaxed) {
            NOTHING => Heard::Nothing,
            TLS => Heard::Tls,
            _ => Heard::Bytes,
        }
    }

    fn task(&self) -> MutexGuard<'_, Option<Waker>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Between the swap and the take, the task may poll on its own and arm again. Then this wakeup takes
        // the new waker, and a later one finds none. Nothing is lost: the task is woken here after it armed,
        // and the poll that follows begins with the causes of both.
        if self.state.swap(WOKEN, Ordering::AcqRel) == ARMED {
            let task = self.task().take();
            // The guard is gone by now: a waker may poll its task at once, which arms this relay.
            if let Some(task) = task {
                task.wake();
            }
        }
    }
}
