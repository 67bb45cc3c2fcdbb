//! Shows calls to the hooks before anybody else sees them.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::vec;

use oa_hooks::{History, Hooks, PreToolUseEvent, Verdict};
use oa_types::{AssistantMessage, ContentBlock, Message, ToolUseBlock, ToolUseError};
use serde_json::Value;
use tokio::time::sleep;

use crate::error::{Error, Result};

type Asking = Pin<Box<dyn Future<Output = Result<Verdict<Value>, oa_hooks::Error>> + Send>>;

/// Hands out the calls of an answer one by one, each after the hooks had their say.
pub(crate) struct Gate {
    hooks: Hooks,
    prompt: Message,
    history: History,
    calls: vec::IntoIter<ContentBlock>,
    asked: Option<(ToolUseBlock, Asking)>,
}

impl Gate {
    pub(crate) fn new(hooks: Hooks, prompt: Message) -> Self {
        let calls = Vec::new().into_iter();
        Self { hooks, prompt, history: History::default(), calls, asked: None }
    }

    /// Takes the calls of an answer that has ended.
    pub(crate) fn open(&mut self, answer: &AssistantMessage) {
        let is_call = |block: &&ContentBlock| {
            matches!(block, ContentBlock::ToolUse(_) | ContentBlock::ToolUseError(_))
        };
        let calls: Vec<ContentBlock> = answer.content.iter().filter(is_call).cloned().collect();
        if !calls.is_empty() && !self.hooks.is_empty() {
            self.history = vec![self.prompt.clone(), answer.clone().into()].into();
        }
        self.calls = calls.into_iter();
    }

    /// The next call: as the model made it, with the input a hook gave it, or as an error if a hook
    /// blocked it.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ContentBlock>>> {
        loop {
            if let Some((call, asking)) = &mut self.asked {
                let verdict = ready!(asking.as_mut().poll(cx));
                let mut call = call.clone();
                self.asked = None;
                return Poll::Ready(Some(match verdict {
                    Ok(Verdict::Allow) => Ok(call.into()),
                    Ok(Verdict::Modify(change)) => {
                        call.input = change.value;
                        Ok(call.into())
                    }
                    Ok(Verdict::Block { reason }) => Ok(blocked(call, &reason).into()),
                    Err(error) => {
                        // Nothing passes a hook that failed.
                        self.calls = Vec::new().into_iter();
                        Err(Error::hook(error))
                    }
                }));
            }
            match self.calls.next() {
                Some(ContentBlock::ToolUse(call)) if self.hooks.has_pre_tool_use(&call.name) => {
                    let ToolUseBlock { id, name, input, .. } = call.clone();
                    let event = PreToolUseEvent::new(name, input, id, self.history.clone());
                    let hooks = self.hooks.clone();
                    let asking = async move { hooks.pre_tool_use(event, sleep).await };
                    self.asked = Some((call, Box::pin(asking)));
                }
                other => return Poll::Ready(other.map(Ok)),
            }
        }
    }
}

fn blocked(call: ToolUseBlock, reason: &str) -> ToolUseError {
    let error = format!("a hook blocked the call: {reason}");
    let mut blocked = ToolUseError::new(error, call.input.to_string());
    (blocked.id, blocked.name) = (Some(call.id), Some(call.name));
    blocked
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("hooks", &self.hooks).finish_non_exhaustive()
    }
}
