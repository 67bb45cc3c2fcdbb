use std::fmt;
use std::sync::Arc;

use oa_turn::SteerQueue;
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
#[derive(Clone)]
pub struct SteerHandle(pub(crate) Arc<SteerQueue>);

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
        self.0.push(message).map_err(error::turn)
    }
}

impl fmt::Debug for SteerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SteerHandle").field("waiting", &self.0.len()).finish()
    }
}
