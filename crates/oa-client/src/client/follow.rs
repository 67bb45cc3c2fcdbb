//! The implementation of `Follow` for clients.

use std::task::{Context, Poll, ready};

use oa_events::AgentEvent;
use oa_session::{Follow, FollowProgress};
use oa_types::{ContentBlock, Message};

use super::Client;
use crate::error::{Error, Result};

/// Lets `SavedSession::follow` save the conversation at each [checkpoint](Client::next_checkpoint).
impl Follow for Client {
    type Event = AgentEvent;
    type Error = Error;

    fn poll_progress(&mut self, cx: &mut Context<'_>) -> Poll<Result<FollowProgress<AgentEvent>>> {
        let event = self.driver.stopping(|driver| driver.poll_event(cx));
        let event = ready!(self.adopt(event))?;
        Poll::Ready(Ok(match (event, self.driver.reached()) {
            (Some(event), _) => FollowProgress::Event(event),
            (None, Some(_)) => FollowProgress::Checkpoint,
            (None, None) => FollowProgress::Over,
        }))
    }

    fn messages(&self) -> &[Message] {
        self.history()
    }

    fn block(event: AgentEvent) -> Option<ContentBlock> {
        match event {
            AgentEvent::Block(block) => Some(block),
            _ => None,
        }
    }
}
