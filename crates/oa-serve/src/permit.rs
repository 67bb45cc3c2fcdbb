//! The limit of concurrent runs.

use std::sync::Arc;

use tokio::sync::watch;

/// The place of a run among those in progress.
#[derive(Debug)]
pub(crate) struct Permit(Arc<watch::Sender<usize>>);

impl Permit {
    /// Returns a place, unless there are `most` runs.
    pub(crate) fn take(runs: &Arc<watch::Sender<usize>>, most: usize) -> Option<Self> {
        let has_room = runs.send_if_modified(|runs| {
            let has_room = *runs < most;
            *runs += usize::from(has_room);
            has_room
        });
        has_room.then(|| Self(Arc::clone(runs)))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.send_modify(|runs| *runs -= 1);
    }
}
