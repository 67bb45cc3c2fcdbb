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
    pub(crate) fn spend(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Gives a retry back, for an answer that has begun.
    pub(crate) fn give_back(&self) {
        let more = |left: u32| (left < self.most).then_some(left + 1);
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }
}
