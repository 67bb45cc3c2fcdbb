//! Results and answers that hooks may still change or refuse when the turn reports them.

use std::sync::Arc;

use oa_client::Client;
use oa_events::AgentEvent;
use oa_executor::{ExecutionResult, ToolEvent};
use oa_types::{ContentBlock, Message, ToolResultBlock};

/// Withholds the results of tools until the hooks have seen them, and collects the answers that hooks refuse.
#[derive(Debug, Default)]
pub(crate) struct Review {
    held: Vec<Arc<ExecutionResult>>,
    /// The text of the last answer, until the turn goes on.
    answer: String,
    refused: Vec<String>,
}

impl Review {
    /// Returns the events to publish for an event: none while a hook may change it, or it and those withheld before.
    pub(crate) fn follow(&mut self, mut event: AgentEvent, client: &Client) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        match &mut event {
            AgentEvent::Tool(ToolEvent::CallComplete(result))
                if client.options().hooks().has_post_tool_use(&result.tool_name) =>
            {
                self.held.push(Arc::clone(result));
                return events;
            }
            AgentEvent::Block(ContentBlock::ToolResult(block)) => {
                events.extend(self.release(block));
            }
            AgentEvent::Tool(ToolEvent::End(end)) => {
                let is_held = |id: &str| self.held.iter().any(|held| held.call_id == id);
                end.execution_results.retain(|result| !is_held(&result.call_id));
                end.tool_messages.retain(|message| {
                    !message.content.iter().any(|block| {
                        matches!(block, ContentBlock::ToolResult(it) if is_held(&it.tool_use_id))
                    })
                });
            }
            AgentEvent::AnswerStart => {
                self.answer.clear();
                events = self.rest(client.history());
            }
            AgentEvent::AnswerEnd(answer) => self.answer = answer.text(),
            AgentEvent::AnswerRetry(_) => self.refuse(),
            _ => {}
        }
        events.push(event);
        events
    }

    /// Returns the results that are still withheld and that history has: an agent that shows only its last text emits
    /// no blocks of results.
    pub(crate) fn rest(&mut self, history: &[Message]) -> Vec<AgentEvent> {
        if self.held.is_empty() {
            return Vec::new();
        }
        let blocks = history.iter().rev().flat_map(|message| &message.content);
        let events = blocks.filter_map(|block| match block {
            ContentBlock::ToolResult(block) => self.release(block),
            _ => None,
        });
        let mut events: Vec<_> = events.collect();
        events.reverse();
        self.held.clear();
        events
    }

    /// Records that a hook has refused the last answer.
    pub(crate) fn refuse(&mut self) {
        let answer = std::mem::take(&mut self.answer);
        if !answer.is_empty() {
            self.refused.push(answer);
        }
    }

    /// Returns the answers that hooks have refused since the last call.
    pub(crate) fn take_refused(&mut self) -> Vec<String> {
        std::mem::take(&mut self.refused)
    }

    /// Returns the end of a call with the result as the hooks have left it.
    fn release(&mut self, block: &ToolResultBlock) -> Option<AgentEvent> {
        let place = self.held.iter().position(|held| held.call_id == block.tool_use_id)?;
        let mut result = self.held.remove(place);
        let changed = Arc::make_mut(&mut result);
        if changed.result != block.content {
            (changed.result, changed.full_result) = (block.content.clone(), None);
        }
        changed.images.clone_from(&block.images);
        Some(AgentEvent::Tool(ToolEvent::CallComplete(result)))
    }
}
