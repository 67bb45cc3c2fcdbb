//! What bounds one run: an interrupt, and the time that it may take.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use oa_executor::Run as ExecutorRun;
use oa_tools::{Cancel, Cancelled};
use oa_types::FinishReason;
use tokio::time::{Sleep, sleep};

/// From a prompt, or the wish to go on, to the end of its turn.
pub(crate) struct Run {
    cancel: Cancel,
    cancelled: Cancelled,
    deadline: Option<Pin<Box<Sleep>>>,
    /// What the executor counts for its caps, once it has run.
    executor: Option<ExecutorRun>,
}

/// Why a run ends before its time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cut {
    Interrupted,
    TimeUp,
}

impl Cut {
    pub(crate) fn reason(self) -> FinishReason {
        match self {
            Self::Interrupted => FinishReason::Interrupted,
            Self::TimeUp => FinishReason::MaxRunTime,
        }
    }
}

impl Run {
    pub(crate) fn new(max_time: Option<Duration>) -> Self {
        let cancel = Cancel::new();
        Self {
            cancelled: cancel.cancelled(),
            cancel,
            deadline: max_time.map(|time| Box::pin(sleep(time))),
            executor: None,
        }
    }

    /// The signal that interrupts it.
    pub(crate) fn signal(&self) -> &Cancel {
        &self.cancel
    }

    /// What the executor counts for its caps.
    pub(crate) fn executor(&mut self) -> ExecutorRun {
        self.executor.get_or_insert_default().clone()
    }

    /// Whether it is cut, as far as that is known without waiting.
    #[inline]
    pub(crate) fn is_cut(&mut self, cx: &mut Context<'_>) -> Option<Cut> {
        if self.cancel.is_cancelled() {
            return Some(Cut::Interrupted);
        }
        let deadline = self.deadline.as_mut()?;
        deadline.as_mut().poll(cx).is_ready().then_some(Cut::TimeUp)
    }

    /// Waits for a cut.
    pub(crate) fn poll_cut(&mut self, cx: &mut Context<'_>) -> Poll<Cut> {
        match Pin::new(&mut self.cancelled).poll(cx) {
            Poll::Ready(()) => Poll::Ready(Cut::Interrupted),
            Poll::Pending => self.is_cut(cx).map_or(Poll::Pending, Poll::Ready),
        }
    }
}
