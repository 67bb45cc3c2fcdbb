use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oa_turn::Turn;
use oa_types::Message;

use crate::error::{self, Result};

/// A handle that sends messages to the model during a turn of one [`Client`](crate::Client), from anywhere.
///
/// A message enters the conversation before the turn's next request, never between a call and its result. Hooks see it
/// like a prompt, but it does not count as one. [`AgentEvent::Steered`](crate::AgentEvent::Steered) reports that it has
/// entered. If the turn is about to end before that, it continues for one more request, unless a limit or an interrupt
/// ended it or [`steer_after_end`](crate::AgentOptionsBuilder::steer_after_end) says otherwise. Without a turn in
/// progress, and after a failed or interrupted turn, messages wait for the next turn; one whose own hook fails is
/// dropped ([`SteerBlocked`](crate::AgentEvent::SteerBlocked)). A message that has entered stays:
/// if the request after it fails, the prompt before it stays, too, and sending that prompt again is a retry.
/// [`Client::take_steered`](crate::Client::take_steered) takes back the messages that are still waiting.
///
/// Clones are the same handle.
#[derive(Clone, Default)]
pub struct SteerHandle(Arc<Queue>);

#[derive(Default)]
struct Queue {
    messages: Mutex<VecDeque<Message>>,
    /// True if there may be messages, so that the client need not lock.
    has_some: AtomicBool,
}

/// The maximum number of waiting messages.
const MOST: usize = 64;

impl SteerHandle {
    /// Queues a user message.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if it is blank, or if 64 messages are already waiting.
    pub fn steer(&self, text: impl Into<String>) -> Result<()> {
        self.steer_message(Message::user(text))
    }

    /// Queues a user message of text and images.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if it is blank or not a user message, or if 64 messages are already waiting.
    pub fn steer_message(&self, message: Message) -> Result<()> {
        Turn::check_message(&message).map_err(error::turn)?;
        let mut messages = self.0.lock();
        if messages.len() >= MOST {
            let why = format!("{MOST} messages are already waiting for the next request");
            return Err(error::invalid_input(why));
        }
        messages.push_back(message);
        self.0.has_some.store(true, Ordering::Release);
        Ok(())
    }

    /// Takes the messages that have not reached a turn.
    pub(crate) fn take(&self) -> impl Iterator<Item = Message> + use<> {
        let mut messages = self.0.lock();
        self.0.has_some.store(false, Ordering::Release);
        std::mem::take(&mut *messages).into_iter()
    }

    /// Moves the messages into a turn, as many as it accepts.
    #[inline]
    pub(crate) fn enter(&self, turn: &mut Turn) {
        if self.0.has_some.load(Ordering::Acquire) {
            self.0.enter(turn);
        }
    }
}

impl Queue {
    #[inline(never)]
    fn enter(&self, turn: &mut Turn) {
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

impl fmt::Debug for SteerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SteerHandle").field("waiting", &self.0.lock().len()).finish()
    }
}
