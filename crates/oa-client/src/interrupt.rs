use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use oa_executor::RunSignal;

/// Interrupts the run in progress of one [`Client`](crate::Client), from anywhere.
///
/// Clones are the same handle. Does nothing when no run is in progress: an interrupt is never kept for the next prompt.
#[derive(Clone, Default)]
pub struct InterruptHandle(pub(crate) Arc<RunSignal>);

impl InterruptHandle {
    /// Ends the run in progress at once, whatever it waits for.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }

    /// Returns `true` if the run in progress has been interrupted.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.0.is_interrupted()
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
}

/// A run of several requests, during which the client does nothing else. Dropping this ends the run.
pub(crate) struct Running(Arc<RunSignal>);

impl Running {
    pub(crate) fn begin(signal: &Arc<RunSignal>) -> Self {
        signal.begin_run();
        Self(Arc::clone(signal))
    }

    /// Runs a part of the run; `None` after an interrupt, even one between two parts.
    pub(crate) async fn unless_interrupted<T>(&self, part: impl Future<Output = T>) -> Option<T> {
        let mut part = pin!(part);
        // The signal is polled first: an interrupt wins over a part that is ready at the same time.
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

impl fmt::Debug for InterruptHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterruptHandle")
            .field("is_interrupted", &self.is_interrupted())
            .finish_non_exhaustive()
    }
}
