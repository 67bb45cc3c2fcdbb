//! Sub-agents: the calls that run them, and their link to the calling agent.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use oa_contain::contain;
use oa_events::{AgentEvent, NestedEvent};
use oa_executor::{Batch, BatchStream, ExecutionResult, ResultStore, ToolEvent};
use oa_hooks::Permissions;
use oa_turn::{BudgetLeft, SharedBudget, Spent};
use oa_types::{Outcome, ToolUseBlock};
use tokio::sync::mpsc;

use crate::settings::{AgentConfig, Settings};

/// The maximum number of sub-agent events that wait for the caller. Beyond it, the sub-agents wait.
const WAITING: usize = 32;

/// The agent that calls a tool, for tools that run an agent. It connects the events, budgets and permissions of both.
///
/// The client puts it into the [state](oa_tools::ToolContext::state) of each call of a tool that [is an
/// agent](oa_tools::Tool::is_agent).
#[derive(Clone)]
pub struct ParentAgent {
    events: mpsc::Sender<NestedEvent>,
    pub(crate) permissions: Permissions,
    pub(crate) budget: Arc<SharedBudget>,
}

impl ParentAgent {
    /// Passes an event to the caller of the outermost agent, waiting until there is room for it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses the event.
    pub async fn tell(&self, event: NestedEvent) {
        // Without a reader the call is about to be dropped.
        let _ = self.events.send(event).await;
    }

    /// Returns the names of the sub-agents that led to this agent, outermost first; empty for a top-level agent.
    #[must_use]
    pub fn agents(&self) -> &[String] {
        self.permissions.agents()
    }
}

impl fmt::Debug for ParentAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParentAgent").field("agents", &self.agents()).finish_non_exhaustive()
    }
}

/// The running calls, and the sub-agents among them.
pub(crate) struct RunningBatch {
    stream: BatchStream,
    nested: Option<Nested>,
}

struct Nested {
    events: mpsc::Receiver<NestedEvent>,
    budget: Arc<SharedBudget>,
    /// The completion of a call, held back until its agent's events are returned.
    held: Option<ToolEvent>,
}

impl RunningBatch {
    pub(crate) fn start(
        settings: &Settings,
        blocks: Vec<ToolUseBlock>,
        batch: Batch,
        results: Option<&ResultStore>,
        left: impl FnOnce() -> BudgetLeft,
    ) -> Self {
        let Settings { config, executor, .. } = settings;
        let mut state = config.state.clone();
        if let Some(results) = results {
            state.insert(results.clone());
        }
        let nested = blocks.iter().any(|call| config.is_agent(&call.name)).then(|| {
            let (sender, events) = mpsc::channel(WAITING);
            let outer = config.outer.as_ref().map(|outer| Arc::clone(outer.shared()));
            let budget = Arc::new(SharedBudget::new(left(), outer));
            state.insert(ParentAgent {
                events: sender,
                permissions: config.permissions.clone(),
                budget: Arc::clone(&budget),
            });
            Nested { events, budget, held: None }
        });
        Self { stream: executor.execute_batch_streaming(blocks, batch.state(state)), nested }
    }

    /// Returns what sub-agents have spent since the last call.
    pub(crate) fn take_spent(&self) -> Spent {
        let take = |nested: &Nested| nested.budget.take();
        self.nested.as_ref().map_or_else(Spent::default, take)
    }

    /// Stops the calls. Returns the results of those that had ended or never began, and what sub-agents have spent
    /// since the last call of [`take_spent`](Self::take_spent).
    pub(crate) fn stop(mut self) -> (Vec<Arc<ExecutionResult>>, Spent) {
        self.stream.cancel();
        // A canceled batch ends without waiting.
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(_)) = Pin::new(&mut self.stream).poll_next(&mut cx) {}
        let was_cut = |it: &ExecutionResult| it.outcome == Outcome::Cancelled && it.attempts > 0;
        let results = self.stream.results().iter().filter(|it| !was_cut(it)).cloned().collect();
        (results, self.take_spent())
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        // Tools and sub-agents send on two channels, and what a sub-agent sent before its call ended comes
        // before that end. So a completion waits in `held` while events of sub-agents are left.
        let held = self.nested.as_mut().and_then(|nested| nested.held.take());
        let event = match held {
            Some(event) => Poll::Ready(Some(event)),
            None => Pin::new(&mut self.stream).poll_next(cx),
        };
        let Some(nested) = &mut self.nested else {
            return event.map(|it| it.map(AgentEvent::Tool));
        };
        let told = match &event {
            // A call that has run may have sent events before its end.
            Poll::Ready(Some(ToolEvent::CallComplete(result))) if result.attempts > 0 => {
                nested.events.try_recv().ok()
            }
            Poll::Ready(_) => None,
            Poll::Pending => match nested.events.poll_recv(cx) {
                Poll::Ready(told) => told,
                Poll::Pending => None,
            },
        };
        match (told, event) {
            (Some(told), event) => {
                if let Poll::Ready(event) = event {
                    nested.held = event;
                }
                Poll::Ready(Some(AgentEvent::Nested(Box::new(told))))
            }
            (None, event) => event.map(|it| it.map(AgentEvent::Tool)),
        }
    }
}

impl AgentConfig {
    /// Returns true if one of the tools runs an agent.
    pub(crate) fn has_agents(&self) -> bool {
        self.tools.names().any(|name| self.is_agent(name))
    }

    fn is_agent(&self, name: &str) -> bool {
        let tool = self.tools.get(name);
        tool.is_some_and(|tool| contain(|| tool.is_agent()).unwrap_or(false))
    }
}

impl fmt::Debug for RunningBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stream.fmt(f)
    }
}
