//! Interrupts of runs.

use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use oa_tools::Cancel;

/// An interrupt signal for a driver that performs one run at a time. An interrupt wakes the task that waits for the
/// run and cancels its tools. It affects only the run in progress: without one it does nothing, and it is never kept
/// for the next.
///
/// ```
/// use oa_executor::RunSignal;
///
/// let signal = RunSignal::default();
/// signal.interrupt();
/// assert!(!signal.is_interrupted(), "nothing runs");
/// signal.begin_run();
/// let tools = signal.for_tools();
/// signal.interrupt();
/// assert!(signal.is_interrupted() && tools.is_cancelled());
/// signal.end_run();
/// assert!(!signal.is_interrupted());
/// ```
#[derive(Default)]
pub struct RunSignal {
    /// Changed under the lock, so that an interrupt notifies the listeners of this run and not of the next.
    state: AtomicU8,
    listeners: Mutex<Listeners>,
}

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const INTERRUPTED: u8 = 2;

/// The parties to notify.
#[derive(Default)]
struct Listeners {
    /// The waiting task.
    client: Option<Waker>,
    /// The signal of this run's tools, once created.
    tools: Option<Cancel>,
}

impl RunSignal {
    /// Interrupts the run in progress, whatever it waits for.
    pub fn interrupt(&self) {
        let Listeners { client, tools } = {
            let mut listeners = self.lock();
            if self.state() != RUNNING {
                return;
            }
            self.state.store(INTERRUPTED, Ordering::Release);
            // Taken together with the change of state: whoever listens from here on sees the state instead.
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
        self.state() == INTERRUPTED
    }

    /// Begins a run. From now on it can be interrupted.
    pub fn begin_run(&self) {
        self.turn_to(RUNNING);
    }

    /// Ends the run. From now on interrupts do nothing.
    pub fn end_run(&self) {
        self.turn_to(IDLE);
    }

    /// Polls for an interrupt. Only the last task to poll is woken.
    pub fn poll_interrupted(&self, cx: &Context<'_>) -> Poll<()> {
        let mut listeners = self.lock();
        // Checked under the lock, so that an interrupt comes either before this or after the waker is stored.
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
    #[must_use]
    pub fn for_tools(&self) -> Cancel {
        let mut listeners = self.lock();
        // A child for each batch: canceling a batch must not cancel the other tools of the run. An interrupt
        // has taken the parent that it canceled, so a signal that is made later is canceled below.
        let tools = listeners.tools.get_or_insert_default().child();
        let is_interrupted = self.is_interrupted();
        drop(listeners);
        if is_interrupted {
            tools.cancel();
        }
        tools
    }

    fn state(&self) -> u8 {
        self.state.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn turn_to(&self, state: u8) {
        let listeners = {
            let mut listeners = self.lock();
            self.state.store(state, Ordering::Release);
            mem::take(&mut *listeners)
        };
        drop(listeners);
    }
}

impl fmt::Debug for RunSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunSignal")
            .field("is_interrupted", &self.is_interrupted())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
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
    fn interrupt_affects_only_the_current_run() {
        let signal = RunSignal::default();
        signal.interrupt();
        assert!(!signal.is_interrupted());

        signal.begin_run();
        let before = signal.for_tools();
        signal.interrupt();
        assert!(signal.is_interrupted() && before.is_cancelled());
        assert!(signal.for_tools().is_cancelled(), "tools that begin after that");
        signal.end_run();
        assert!(!signal.is_interrupted());

        signal.begin_run();
        assert!(!signal.is_interrupted() && !signal.for_tools().is_cancelled());
    }

    #[test]
    fn interrupt_wakes_the_waiting_task() {
        let signal = RunSignal::default();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let cx = Context::from_waker(&waker);
        let poll = || signal.poll_interrupted(&cx);

        signal.begin_run();
        assert!(poll().is_pending() && poll().is_pending());
        assert_eq!(Arc::strong_count(&woken), 3, "one waker is kept");
        signal.end_run();
        assert_eq!(Arc::strong_count(&woken), 2, "none is");
        assert!(!woken.0.load(Ordering::Relaxed));

        signal.begin_run();
        assert!(poll().is_pending());
        signal.interrupt();
        assert!(poll().is_ready() && woken.0.load(Ordering::Relaxed));
    }

    #[test]
    fn interrupts_never_reach_another_run() {
        let signal = RunSignal::default();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    signal.interrupt();
                    thread::yield_now();
                }
            });
            let mut interrupted = 0;
            let mut runs = 0;
            while runs < 1_000 || interrupted < 10 {
                signal.begin_run();
                let tools = signal.for_tools();
                thread::yield_now();
                if tools.is_cancelled() {
                    assert!(signal.is_interrupted(), "the tools of another run were told");
                }
                interrupted += u32::from(signal.is_interrupted());
                signal.end_run();
                runs += 1;
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}
