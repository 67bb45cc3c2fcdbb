use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The retries left for the requests of one agent.
pub(crate) struct RetryBudget {
    most: u32,
    left: AtomicU32,
}

impl RetryBudget {
    pub(crate) fn new(most: u32) -> Self {
        Self { most, left: AtomicU32::new(most) }
    }

    /// Takes a retry, if one is left.
    pub(crate) fn reserve(self: &Arc<Self>) -> Option<ReservedRetry> {
        let less = |left: u32| left.checked_sub(1);
        let reserved = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        reserved.is_ok().then(|| ReservedRetry(Some(Arc::clone(self))))
    }

    /// Gives a retry back, for an answer that has begun or a retry that was not made.
    pub(crate) fn give_back(&self) {
        let more = |left: u32| (left < self.most).then(|| left + 1);
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }
}

/// A retry that waits for its time. Dropped before it is made, it is given back.
pub(crate) struct ReservedRetry(Option<Arc<RetryBudget>>);

impl ReservedRetry {
    pub(crate) fn use_up(mut self) {
        self.0 = None;
    }
}

impl Drop for ReservedRetry {
    fn drop(&mut self) {
        if let Some(budget) = self.0.take() {
            budget.give_back();
        }
    }
}
