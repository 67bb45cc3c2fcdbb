use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use oa_tools::Cancel;

/// Interrupts the run in progress of one [`Client`](crate::Client), from anywhere.
///
/// Clones are the same handle. When nothing is in progress it does nothing: an interrupt is never kept
/// for the next prompt.
#[derive(Clone, Debug, Default)]
pub struct InterruptHandle(Arc<Mutex<Option<Cancel>>>);

impl InterruptHandle {
    /// Ends the run in progress at once, whatever it waits for.
    pub fn interrupt(&self) {
        if let Some(run) = self.current() {
            run.cancel();
        }
    }

    /// Returns whether the run in progress has been interrupted.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.current().is_some_and(|run| run.is_cancelled())
    }

    /// Interrupts if `interrupted` is true: for programs that held an `Arc<AtomicBool>` here.
    pub fn store(&self, interrupted: bool, _: Ordering) {
        if interrupted {
            self.interrupt();
        }
    }

    /// Returns whether the run in progress has been interrupted: the counterpart of
    /// [`store`](Self::store).
    #[must_use]
    pub fn load(&self, _: Ordering) -> bool {
        self.is_interrupted()
    }

    /// From now on this is the run in progress, or none is.
    pub(crate) fn set(&self, run: Option<Cancel>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = run;
    }

    fn current(&self) -> Option<Cancel> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
