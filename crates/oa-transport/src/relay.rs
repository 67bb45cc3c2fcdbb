use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use crate::error::Heard;

/// The waker of a connection, which passes on only what the reader waits for, and what the
/// connection heard from its peer.
///
/// hyper's halves talk through channels that wake each other. Both are polled by the same task, one
/// after the other, so nearly every such wake-up would be for a task that is running already, and
/// cost it a turn for nothing. A wake-up counts only if it comes after the last poll began and that
/// poll ended with "not yet"; whoever is handed something polls again anyway.
///
/// It also means that a connection in the pool holds on to nobody's task.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    state: AtomicU8,
    heard: AtomicU8,
    task: Mutex<Option<Waker>>,
}

/// Nobody waits; a poll may be running.
const IDLE: u8 = 0;
/// Woken since the last poll began.
const WOKEN: u8 = 1;
/// Somebody waits.
const ARMED: u8 = 2;

const NOTHING: u8 = 0;
const BYTES: u8 = 1;
const TLS: u8 = 2;

impl Relay {
    /// Forgets earlier wake-ups: what they told of is about to be looked at.
    pub(crate) fn begin(&self) {
        // A swap and not a store, so that whatever came before the wake-up is seen.
        self.state.swap(IDLE, Ordering::AcqRel);
    }

    /// Has `waker` woken from now on, and at once if there was reason to since the poll began.
    pub(crate) fn arm(&self, waker: &Waker) {
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

    /// Lets go of the task.
    pub(crate) fn disarm(&self) {
        self.begin();
        let task = self.task().take();
        drop(task);
    }

    /// Forgets what was heard: another answer is to begin.
    pub(crate) fn await_answer(&self) {
        self.heard.store(NOTHING, Ordering::Relaxed);
    }

    /// Takes note of bytes from the peer.
    pub(crate) fn hear(&self, bytes: &[u8]) {
        // Alert and handshake records begin so; HTTP begins with a letter.
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
        if self.state.swap(WOKEN, Ordering::AcqRel) == ARMED {
            let task = self.task().take();
            if let Some(task) = task {
                task.wake();
            }
        }
    }
}
