use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use oa_executor::RunSignal;

/// Interrupts the run in progress of one [`Client`](crate::Client), from anywhere.
///
/// Clones are the same handle. Does nothing when no run is in progress: an interrupt is never kept for the next prompt.
#[derive(Clone)]
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

impl fmt::Debug for InterruptHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterruptHandle")
            .field("is_interrupted", &self.is_interrupted())
            .finish_non_exhaustive()
    }
}
