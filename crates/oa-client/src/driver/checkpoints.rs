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
        // Set events aside: a step adds events after the one that it returns, and a failure drops all.
        self.pass(None);
        let polled = loop {
            match self.stopping(|this| this.poll_step(cx)) {
                Poll::Ready(Ok(Some(event))) => self.pass(Some(event)),
                over => break over.map_ok(|_| self.reached()),
            }
        };
        self.pass(None);
        self.events = mem::take(&mut self.checkpoints.get_or_insert_default().passed);
        polled
    }

    /// Sets aside an event of a step, and those that follow it.
    fn pass(&mut self, event: Option<AgentEvent>) {
        let began = mem::take(&mut self.began).then_some(AgentEvent::AnswerStart);
        let passed = &mut self.checkpoints.get_or_insert_default().passed;
        passed.extend(event);
        passed.append(&mut self.events);
        passed.extend(began);
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
        self.checkpoints.get_or_insert_default().stops = false;
        polled
    }
}
