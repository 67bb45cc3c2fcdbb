use std::sync::Arc;

use oa_client::{AgentOptions, Client, Error, NestedEvent, ParentAgent, Result};
use oa_tools::{Tool, ToolContext, ToolError, ToolFuture};
use oa_types::{AssistantMessage, ContentBlock, FinishReason, Message, MessageRole};
use serde_json::{Value, json};

use crate::progress::AgentProgress;

/// An agent that another agent calls as a tool.
///
/// The model calls it with a prompt. Each call runs a conversation of its own and returns the text of the last answer.
/// Like any tool, it can run several calls in parallel.
///
/// A sub-agent takes part in the turn that calls it:
///
/// - Its events reach the caller of the outer agent as [`AgentEvent::Nested`](oa_client::AgentEvent::Nested), in
///   order, between the start and the completion of the call. The sub-agent waits if the caller does not read them.
/// - Its calls, tokens and cost, at its own price, count toward the outer agent's budgets as well as its own. Each
///   running agent can exceed a budget by at most one answer. Rounds are counted per agent. If the outer agent runs
///   out of time or is interrupted, the sub-agent stops at once.
/// - It cannot run a call that the outer agent's settings forbid. Without permission settings of its own, it uses
///   those of the outer agent: see `Permissions::within` in `oa-hooks`. Hooks and state are not inherited.
/// - Its calls cannot wait for approval. If one needs it and gets no decision, the sub-agent ends, as incomplete with
///   the reason `approval_pending`, and the call cannot be approved later.
///
/// If no agent runs it, for example in an MCP server, it reports each of its steps as
/// [progress](oa_tools::ToolContext::emit_progress) with a message and a growing count.
///
/// If the answer may be incomplete, the result says so. Unless the server reported a normal end, the result is
/// `{"text": "..", "incomplete": "<reason>"}`. The reason is one of [`FinishReason::as_str`], such as `length`,
/// `max_tool_iterations`, `max_run_time`, or `unspecified` if the server gave none. An answer without text is an
/// error.
///
/// ```
/// use oa_agents::AgentTool;
/// use oa_client::{AgentOptions, Client};
/// use oa_testkit::{MemoryServer, Reply};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oa_client::Result<()> {
/// # let poets_model = MemoryServer::new(Reply::text("An old silent pond..."));
/// # let editors_model = MemoryServer::new([
/// #     Reply::new().call("poet", json!({"prompt": "A haiku about a frog."})),
/// #     Reply::text("I like it."),
/// # ]);
/// let poet = AgentOptions::builder()
///     .model("small")
///     .system_prompt("You write haiku.")
/// #   .transport(poets_model)
///     .build()?;
/// let editor = AgentOptions::builder()
///     .model("large")
///     .tool(AgentTool::new("poet", "Writes a haiku about anything", poet)?)
///     .auto_execute_tools(true)
/// #   .transport(editors_model)
///     .build()?;
///
/// let mut client = Client::new(editor)?;
/// assert_eq!(client.ask("Get me a poem about a frog.").await?.text, "I like it.");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AgentTool {
    name: String,
    description: String,
    schema: Value,
    options: AgentOptions,
    max_depth: usize,
}

/// The default of [`AgentTool::max_depth`].
const MAX_DEPTH: usize = 8;

impl AgentTool {
    /// Creates a tool that runs an agent with these options.
    ///
    /// # Errors
    ///
    /// `Config` if the options are invalid, or if the agent has tools but not `auto_execute_tools`: nothing would run
    /// its calls.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        options: AgentOptions,
    ) -> Result<Self> {
        let name = name.into();
        if !options.tools().is_empty() && !options.auto_execute_tools() {
            let why = "has tools but not auto_execute_tools";
            return Err(Error::config(format!("the agent of the tool {name} {why}")));
        }
        options.check()?;
        let prompt = json!({
            "type": "string",
            "description": "The task for the agent, which sees nothing else of this conversation.",
        });
        let schema = json!({
            "type": "object",
            "properties": { "prompt": prompt },
            "required": ["prompt"],
        });
        Ok(Self { name, description: description.into(), schema, options, max_depth: MAX_DEPTH })
    }

    /// Sets the maximum nesting depth, including this agent; 8 by default. A call at a greater depth fails.
    #[must_use]
    pub fn max_depth(mut self, agents: usize) -> Self {
        self.max_depth = agents;
        self
    }

    async fn ask(&self, input: &Value, cx: &ToolContext) -> Result<Value, ToolError> {
        // Dropping this future drops the client, which closes its connection and cancels its tools.
        let mut client = Client::new(self.options.clone())?;
        // The agent's own calls have the same keys wherever this call is repeated.
        client.set_key_prefix(cx.idempotency_key().unwrap_or_default());
        let parent = cx.state::<ParentAgent>();
        if let Some(parent) = parent {
            if parent.agents().len() >= self.max_depth {
                let path = parent.agents().join(" > ");
                let message =
                    format!("sub-agents may be nested at most {} deep: {path}", self.max_depth);
                return Err(ToolError::new(message).retryable(false));
            }
            parent.adopt(&mut client, cx.tool_name())?;
        }
        client.send(input["prompt"].as_str().unwrap_or_default()).await?;
        let mut progress = AgentProgress::default();
        while let Some(event) = client.next_event().await? {
            match parent {
                Some(parent) => {
                    parent.tell(NestedEvent::new(cx.call_id(), cx.tool_name(), event)).await;
                }
                None if cx.is_emitting() => {
                    if let Some(step) = progress.read(&event) {
                        cx.emit_progress(step);
                    }
                }
                None => {}
            }
        }
        let reason = client.finish_reason().unwrap_or(&FinishReason::Unspecified);
        // The text of an answer that a limit cut off is only in the history. After a normal end, earlier text does
        // not stand for an answer that neither says nor calls anything, which is not in the history.
        let is_silent = reason.is_complete() && client.message().is_some_and(is_empty);
        let is_answer = |message: &&Message| message.role == MessageRole::Assistant;
        let last = client.history().iter().rfind(is_answer).filter(|_| !is_silent);
        let text = last.map(Message::text).unwrap_or_default();
        if text.is_empty() {
            return Err(ToolError::new(format!("no answer: the agent ended with {reason}")));
        }
        if reason.is_complete() {
            return Ok(text.into());
        }
        Ok(json!({ "text": text, "incomplete": reason.as_str() }))
    }
}

/// Returns true for an answer without text and calls.
fn is_empty(answer: &AssistantMessage) -> bool {
    let is_call = |block: &ContentBlock| matches!(block, ContentBlock::ToolUse(_));
    answer.text().trim().is_empty() && !answer.content.iter().any(is_call)
}

impl Tool for AgentTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn input_schema(&self) -> &Value {
        &self.schema
    }

    fn is_agent(&self) -> bool {
        true
    }

    fn agent_tools(&self) -> Option<Vec<Arc<dyn Tool>>> {
        Some(self.options.tools().iter().cloned().collect())
    }

    fn call(&self, input: Value, cx: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move { self.ask(&input, &cx).await })
    }
}
