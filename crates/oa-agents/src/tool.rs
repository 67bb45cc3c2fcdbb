use oa_client::{AgentOptions, Client, Error, NestedEvent, ParentAgent, Result};
use oa_tools::{Tool, ToolContext, ToolError, ToolFuture};
use oa_types::{FinishReason, Message, MessageRole};
use serde_json::{Value, json};

use crate::progress::AgentProgress;

/// An agent as a tool of another agent.
///
/// The model calls it with a prompt. Each call is a conversation of its own; its result is the text of the last
/// answer. Several calls run at once, as those of any tool.
///
/// It is part of the turn that calls it:
///
/// - Each of its events reaches the caller of the outer agent as [`AgentEvent::Nested`](oa_client::AgentEvent::Nested),
///   in order, between the start and the completion of the call. An event waits until the caller takes it.
/// - It uses up the outer agent's budgets of calls, tokens, and money, by its own price, and ends by their limits like
///   by its own: none is passed by more than one answer of each agent that runs. Rounds are counted by each agent for
///   itself. When the outer agent's time is over or it is interrupted, this one stops at once.
/// - A call that the outer agent's settings forbid does not run here either. Without permission settings of its own,
///   it asks as the outer agent does; see `Permissions::within` of `oa-hooks`. Hooks are not
///   inherited.
///
/// Called by no agent, as over the protocol MCP, it reports each thing that it does as
/// [progress](oa_tools::ToolContext::emit_progress), with a message and a count that grows.
///
/// An answer that may be incomplete says so: unless the server reported a normal end, the result is
/// `{"text": "..", "incomplete": "<reason>"}`, with a reason of [`FinishReason::as_str`]: `length`,
/// `max_tool_iterations`, `max_run_time`, or `unspecified` if there is none. Without any text it is an error.
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
    /// Creates a tool that asks an agent with these options.
    ///
    /// # Errors
    ///
    /// `Config` if the options cannot be used, or if the agent has tools but not `auto_execute_tools`, so that
    /// nobody would run them.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        options: AgentOptions,
    ) -> Result<Self> {
        let name = name.into();
        if !options.tools().is_empty() && !options.auto_execute_tools() {
            let why = "has tools, but no auto_execute_tools";
            return Err(Error::config(format!("the agent behind the tool {name} {why}")));
        }
        options.check()?;
        let prompt = json!({
            "type": "string",
            "description": "What the agent is to do. It sees nothing else of this conversation.",
        });
        let schema = json!({
            "type": "object",
            "properties": { "prompt": prompt },
            "required": ["prompt"],
        });
        Ok(Self { name, description: description.into(), schema, options, max_depth: MAX_DEPTH })
    }

    /// Sets how many agents deep this one may run, itself included: its call fails if more are on the way to it. 8 by
    /// default.
    #[must_use]
    pub fn max_depth(mut self, agents: usize) -> Self {
        self.max_depth = agents;
        self
    }

    async fn ask(&self, input: &Value, cx: &ToolContext) -> Result<Value, ToolError> {
        let mut client = Client::new(self.options.clone())?;
        // The agent's own calls have the same keys wherever this call is repeated.
        client.set_key_prefix(cx.idempotency_key().unwrap_or_default());
        let parent = cx.state::<ParentAgent>();
        if let Some(parent) = parent {
            if parent.agents().len() >= self.max_depth {
                let path = parent.agents().join(" > ");
                let message = format!("sub-agents may be {} deep: {path}", self.max_depth);
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
        // The text of an answer that a limit cut off is only in the history.
        let is_answer = |message: &&Message| message.role == MessageRole::Assistant;
        let last = client.history().iter().rfind(is_answer);
        let text = last.map(Message::text).unwrap_or_default();
        let reason = client.finish_reason().unwrap_or(&FinishReason::Unspecified);
        if text.is_empty() {
            return Err(ToolError::new(format!("no answer: the agent ended by {reason}")));
        }
        if reason.is_complete() {
            return Ok(text.into());
        }
        Ok(json!({ "text": text, "incomplete": reason.as_str() }))
    }
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

    fn call(&self, input: Value, cx: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move { self.ask(&input, &cx).await })
    }
}
