use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use crate::run_signal::RunSignal;

/// A run in progress that consists of several futures. Dropping this ends the run.
#[derive(Debug)]
#[must_use = "dropping it ends the run"]
pub struct RunGuard(Arc<RunSignal>);

impl RunGuard {
    /// Begins a run: see [`RunSignal::begin_run`].
    pub fn begin(signal: &Arc<RunSignal>) -> Self {
        signal.begin_run();
        Self(Arc::clone(signal))
    }

    /// Runs a part of the run; `None` after an interrupt, even one between two parts.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the part; the run continues.
    pub async fn unless_interrupted<T>(&self, part: impl Future<Output = T>) -> Option<T> {
        let mut part = pin!(part);
        // The signal is polled first: an interrupt wins over a part that is ready at the same time.
        poll_fn(|cx| match self.0.poll_interrupted(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => part.as_mut().poll(cx).map(Some),
        })
        .await
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.0.end_run();
    }
}
