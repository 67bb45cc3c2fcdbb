//! The bounds of one run: an interrupt and a deadline.

use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use oa_executor::Run as ExecutorRun;
use oa_types::FinishReason;
use tokio::time::{Sleep, sleep};

/// A run: from a prompt, or its continuation, to the end of its turn.
pub(crate) struct Run {
    deadline: Option<Pin<Box<Sleep>>>,
    /// The executor's counters for its caps, once it has run.
    executor: Option<ExecutorRun>,
}

/// The reason why a run ends early.
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
        Self { deadline: max_time.map(|time| Box::pin(sleep(time))), executor: None }
    }

    /// Returns the executor's counters for its caps.
    pub(crate) fn executor(&mut self) -> ExecutorRun {
        self.executor.get_or_insert_default().clone()
    }

    /// Returns true if the time of the run is up; otherwise the task is woken then.
    #[inline]
    pub(crate) fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        self.deadline.as_mut().is_some_and(|deadline| deadline.as_mut().poll(cx).is_ready())
    }
}
