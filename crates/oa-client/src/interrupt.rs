use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use oa_tools::Cancel;

/// Interrupts the run in progress of one [`Client`](crate::Client), from anywhere.
///
/// Clones are the same handle. Does nothing when no run is in progress: an interrupt is never kept for the next
/// prompt.
#[derive(Clone, Default)]
pub struct InterruptHandle(Arc<Signal>);

#[derive(Default)]
struct Signal {
    /// Changed under the lock, so that an interrupt finds the listeners of this run, not of the next.
    state: AtomicU8,
    listeners: Mutex<Listeners>,
}

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const INTERRUPTED: u8 = 2;

/// The parties to notify.
#[derive(Default)]
struct Listeners {
    /// The task that waits for the client.
    client: Option<Waker>,
    /// The tools of this run, once one has run.
    tools: Option<Cancel>,
}

impl InterruptHandle {
    /// Ends the run in progress at once, whatever it waits for.
    pub fn interrupt(&self) {
        let Listeners { client, tools } = {
            let mut listeners = self.0.lock();
            if self.0.state() != RUNNING {
                return;
            }
            self.0.state.store(INTERRUPTED, Ordering::Release);
            mem::take(&mut *listeners)
        };
        // Both run code of others: never under the lock.
        if let Some(tools) = tools {
            tools.cancel();
        }
        if let Some(client) = client {
            client.wake();
        }
    }

    /// Returns `true` if the run in progress has been interrupted.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.0.state() == INTERRUPTED
    }

    /// Interrupts if `interrupted` is true: a drop-in for programs that used an `Arc<AtomicBool>`.
    pub fn store(&self, interrupted: bool, _: Ordering) {
        if interrupted {
            self.interrupt();
        }
    }

    /// Returns `true` if the run in progress has been interrupted: the counterpart of [`store`](Self::store).
    #[must_use]
    pub fn load(&self, _: Ordering) -> bool {
        self.is_interrupted()
    }

    /// Begins a run, which lasts until the guard is dropped.
    pub(crate) fn running(&self) -> Running {
        self.begin_run();
        Running(self.clone())
    }

    /// Begins a run: it can be interrupted from now on.
    pub(crate) fn begin_run(&self) {
        self.turn_to(RUNNING);
    }

    /// Ends the run: interrupts do nothing from now on.
    pub(crate) fn end_run(&self) {
        self.turn_to(IDLE);
    }

    /// Waits for an interrupt; the last to wait is woken.
    pub(crate) fn poll_interrupted(&self, cx: &Context<'_>) -> Poll<()> {
        let mut listeners = self.0.lock();
        if self.is_interrupted() {
            return Poll::Ready(());
        }
        let waker = cx.waker();
        if !listeners.client.as_ref().is_some_and(|client| client.will_wake(waker)) {
            let client = listeners.client.replace(waker.clone());
            drop(listeners);
            drop(client);
        }
        Poll::Pending
    }

    /// Returns the cancel signal for tools of this run, set by an interrupt at the latest.
    pub(crate) fn for_tools(&self) -> Cancel {
        let mut listeners = self.0.lock();
        let tools = listeners.tools.get_or_insert_default().child();
        let is_interrupted = self.is_interrupted();
        drop(listeners);
        if is_interrupted {
            tools.cancel();
        }
        tools
    }

    #[inline]
    fn turn_to(&self, state: u8) {
        let listeners = {
            let mut listeners = self.0.lock();
            self.0.state.store(state, Ordering::Release);
            mem::take(&mut *listeners)
        };
        drop(listeners);
    }
}

/// A run of several requests, whose client does nothing else meanwhile.
pub(crate) struct Running(InterruptHandle);

impl Running {
    /// Runs a part of it; `None` after an interrupt, also one between two parts.
    pub(crate) async fn unless_interrupted<T>(&self, part: impl Future<Output = T>) -> Option<T> {
        let mut part = pin!(part);
        poll_fn(|cx| match self.0.poll_interrupted(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => part.as_mut().poll(cx).map(Some),
        })
        .await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.end_run();
    }
}

impl Signal {
    fn state(&self) -> u8 {
        self.state.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for InterruptHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterruptHandle")
            .field("is_interrupted", &self.is_interrupted())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::task::Wake;
    use std::thread;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn nothing_is_interrupted_but_the_run_in_progress() {
        let handle = InterruptHandle::default();
        handle.interrupt();
        assert!(!handle.is_interrupted());

        handle.begin_run();
        let before = handle.for_tools();
        handle.clone().store(true, Ordering::SeqCst);
        assert!(handle.load(Ordering::SeqCst) && before.is_cancelled());
        assert!(handle.for_tools().is_cancelled(), "tools that begin after that");
        handle.end_run();
        assert!(!handle.is_interrupted());

        handle.begin_run();
        handle.store(false, Ordering::SeqCst);
        assert!(!handle.is_interrupted() && !handle.for_tools().is_cancelled());
    }

    #[test]
    fn whoever_waits_is_woken_and_let_go() {
        let handle = InterruptHandle::default();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let cx = Context::from_waker(&waker);
        let poll = || handle.poll_interrupted(&cx);

        handle.begin_run();
        assert!(poll().is_pending() && poll().is_pending());
        assert_eq!(Arc::strong_count(&woken), 3, "one waker is kept");
        handle.end_run();
        assert_eq!(Arc::strong_count(&woken), 2, "none is");
        assert!(!woken.0.load(Ordering::Relaxed));

        handle.begin_run();
        assert!(poll().is_pending());
        handle.interrupt();
        assert!(poll().is_ready() && woken.0.load(Ordering::Relaxed));
    }

    #[test]
    fn an_interrupt_is_of_one_run_however_short_they_are() {
        let handle = InterruptHandle::default();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    handle.interrupt();
                    thread::yield_now();
                }
            });
            let mut interrupted = 0;
            let mut runs = 0;
            while runs < 1_000 || interrupted < 10 {
                handle.begin_run();
                let tools = handle.for_tools();
                thread::yield_now();
                if tools.is_cancelled() {
                    assert!(handle.is_interrupted(), "the tools of another run were told");
                }
                interrupted += u32::from(handle.is_interrupted());
                handle.end_run();
                runs += 1;
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}
