//! Moments at which a conversation is worth saving.

use std::mem;
use std::task::{Context, Poll};

use oa_events::AgentEvent;
use oa_turn::Checkpoint;

use super::Driver;
use crate::error::Result;

impl Driver {
    /// Polls for the next checkpoint; `None` if the turn is over. Events on the way are kept.
    pub(crate) fn poll_checkpoint(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Checkpoint>>> {
        // Set earlier events aside: a step adds events after the one that it returns, and a failure drops all.
        let mut events = mem::take(&mut self.events);
        if mem::take(&mut self.began) {
            events.push_back(AgentEvent::AnswerStart);
        }
        let polled = loop {
            match self.stopping(|this| this.poll_step(cx)) {
                Poll::Ready(Ok(Some(event))) => {
                    events.push_back(event);
                    events.append(&mut self.events);
                }
                Poll::Ready(Ok(None)) => break Poll::Ready(Ok(self.reached())),
                Poll::Ready(Err(error)) => break Poll::Ready(Err(error)),
                Poll::Pending => break Poll::Pending,
            }
        };
        events.append(&mut self.events);
        self.events = events;
        polled
    }

    /// Returns true if the driver should stop here, because a checkpoint has not been reported yet.
    #[inline]
    pub(crate) fn stops_at_checkpoint(&mut self) -> bool {
        let Some(checkpoints) = self.checkpoints.as_mut().filter(|them| them.stops) else {
            return false;
        };
        // Each checkpoint is reported once, also if the caller polls again before the turn moves on.
        let checkpoint = self.turn.checkpoint().filter(|it| checkpoints.last != Some(*it));
        if checkpoint.is_some() {
            (checkpoints.reached, checkpoints.last) = (checkpoint, checkpoint);
        }
        checkpoint.is_some()
    }

    /// Returns the checkpoint at which the driver has just stopped.
    pub(crate) fn reached(&mut self) -> Option<Checkpoint> {
        self.checkpoints.as_mut().and_then(|checkpoints| checkpoints.reached.take())
    }

    /// Polls, and stops at checkpoints.
    pub(crate) fn stopping<T>(&mut self, poll: impl FnOnce(&mut Self) -> T) -> T {
        self.checkpoints.get_or_insert_default().stops = true;
        let polled = poll(self);
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.stops = false;
        }
        polled
    }
}
