use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use oa_types::Message;

use crate::error::Error;
use crate::turn::Turn;

/// Messages for a turn that another thread may be driving: at most 64, until [`enter`](Self::enter) moves them into it.
#[derive(Default)]
pub struct SteerQueue {
    messages: Mutex<VecDeque<Message>>,
    /// True if there may be messages, so that a driver need not lock.
    has_some: AtomicBool,
}

impl SteerQueue {
    /// Queues a user message.
    ///
    /// # Errors
    ///
    /// As [`Turn::steer`].
    pub fn push(&self, message: Message) -> Result<(), Error> {
        let mut messages = self.lock();
        Turn::check_steered(&message, messages.len())?;
        messages.push_back(message);
        self.has_some.store(true, Ordering::Release);
        Ok(())
    }

    /// Takes the messages that have not reached a turn.
    pub fn take(&self) -> impl Iterator<Item = Message> + use<> {
        let mut messages = self.lock();
        self.has_some.store(false, Ordering::Release);
        std::mem::take(&mut *messages).into_iter()
    }

    /// Returns the number of messages that have not reached a turn.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns `true` if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Moves the messages into a turn, as many as it accepts.
    #[inline]
    pub fn enter(&self, turn: &mut Turn) {
        if self.has_some.load(Ordering::Acquire) {
            self.enter_some(turn);
        }
    }

    #[inline(never)]
    fn enter_some(&self, turn: &mut Turn) {
        let mut messages = self.lock();
        while let Some(message) = messages.front() {
            // The messages were checked, so an error means that the turn's queue is full.
            if turn.steer(message.clone()).is_err() {
                return;
            }
            messages.pop_front();
        }
        self.has_some.store(false, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Message>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SteerQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SteerQueue").field("len", &self.len()).finish()
    }
}
