use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::run_signal::RunSignal;

/// Interrupts the run in progress of one conversation, from anywhere.
///
/// Clones are the same handle. Does nothing when no run is in progress: an interrupt is never kept for the next prompt.
#[derive(Clone, Debug, Default)]
pub struct InterruptHandle(Arc<RunSignal>);

impl InterruptHandle {
    /// Ends the run in progress at once, whatever it waits for.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }

    /// Interrupts when the guard is dropped, for example together with the response to a browser that goes away.
    pub fn interrupt_on_drop(self) -> InterruptGuard {
        InterruptGuard(Some(self))
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

    /// Returns the signal, for the driver of the runs.
    #[must_use]
    pub fn signal(&self) -> &Arc<RunSignal> {
        &self.0
    }
}

/// Interrupts the run in progress when it is dropped, returned by [`InterruptHandle::interrupt_on_drop`].
///
/// If no run is in progress then, nothing happens. A guard that outlives its turn interrupts the next one.
#[derive(Debug)]
#[must_use = "dropping it interrupts"]
pub struct InterruptGuard(Option<InterruptHandle>);

impl InterruptGuard {
    /// Drops the guard without an interrupt.
    pub fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for InterruptGuard {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            handle.interrupt();
        }
    }
}
