use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use oa_client::{AgentOptions, AgentOptionsBuilder, Client, NestedEvent, ParentAgent, Result};
use oa_hooks::{
    History, HookOutcome, Permission, PermissionRequest, Permissions, PostToolUseEvent,
    PreToolUseEvent,
};
use oa_mcp::{Elicitation, ElicitationAnswer, Sampled, Sampling};
use oa_tools::{ToolContext, ToolError};
use oa_types::{FinishReason, Message, MessageRole, Outcome};
use serde_json::{Value, json};
use tokio::time::sleep;

type Answering<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Builder = dyn Fn() -> AgentOptionsBuilder + Send + Sync;

/// The permission category of questions, the same as for the servers' tools.
const CATEGORY: &str = "mcp";

/// An agent that answers questions from MCP servers. Its model answers sampling requests; your callback shows
/// elicitation requests to the user. Permissions and hooks see both first, as `<prefix>__sampling` and
/// `<prefix>__elicitation`.
///
/// A question belongs to the turn whose tool call caused it:
///
/// - The permissions of the agent that called the tool decide, as for a call: lists, rules, mode and callback. If they
///   reach no decision, the question is refused. Without any permission settings, it is answered. Permissions in the
///   options given here can only deny, unless no agent called the tool.
/// - The pre-tool and post-tool hooks in the options given here see it, with an empty history. They can block the
///   question, change it, or change the answer.
/// - The model gets no tools. Its usage counts toward the turn's budgets, which also end it. Its events reach the
///   caller as [`AgentEvent::Nested`](oa_client::AgentEvent::Nested).
///
/// ```
/// use oa_agents::McpHost;
/// use oa_client::AgentOptions;
/// use oa_mcp::{ElicitationAnswer, McpServer, Servers};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = || AgentOptions::builder().model("qwen3:8b").base_url("http://localhost:11434/v1");
/// let host = McpHost::new(agent)?;
/// let server = McpServer::stdio("booking", "booking-mcp")
///     .on_sampling(host.sampling())
///     .on_elicitation(host.elicitation(|question, _| async move {
///         println!("{} asks: {}", question.server, question.message);
///         ElicitationAnswer::Decline // or what the person enters
///     }));
/// let connected = Servers::new().add(server).connect().await?;
/// let options = agent().tool_source(connected.source()).auto_execute_tools(true).build()?;
/// # drop(options);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct McpHost {
    agent: Arc<Builder>,
    max_tokens: Option<u32>,
}

impl McpHost {
    /// Creates a host that answers with an agent built from these options. The function is called once here and once
    /// per question. Tools and the system prompt are ignored; `max_tokens` is an additional limit.
    ///
    /// # Errors
    ///
    /// `Config` if the options cannot be used.
    pub fn new(agent: impl Fn() -> AgentOptionsBuilder + Send + Sync + 'static) -> Result<Self> {
        let agent = move || agent().for_questions();
        let max_tokens = agent().build()?.max_tokens();
        Ok(Self { agent: Arc::new(agent), max_tokens })
    }

    /// Returns the callback for [`McpServer::on_sampling`](oa_mcp::McpServer::on_sampling).
    ///
    /// Refuses a request if permissions or hooks forbid it, if the model fails, or if its answer is empty. If a limit
    /// cuts the answer off, the stop reason says so.
    pub fn sampling(
        &self,
    ) -> impl Fn(Sampling, ToolContext) -> Answering<Result<Sampled, ToolError>>
    + Clone
    + Send
    + Sync
    + use<> {
        let host = self.clone();
        move |request, cx| {
            let host = host.clone();
            Box::pin(async move { host.sample(request, &cx).await })
        }
    }

    /// Returns the callback for [`McpServer::on_elicitation`](oa_mcp::McpServer::on_elicitation). Once permissions and
    /// hooks have allowed a question, `ask` shows it to the user.
    pub fn elicitation<F, R>(
        &self,
        ask: F,
    ) -> impl Fn(Elicitation, ToolContext) -> Answering<ElicitationAnswer>
    + Clone
    + Send
    + Sync
    + use<F, R>
    where
        F: Fn(Elicitation, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = ElicitationAnswer> + Send + 'static,
    {
        let (host, ask) = (self.clone(), Arc::new(ask));
        move |question, cx| {
            let (host, ask) = (host.clone(), Arc::clone(&ask));
            Box::pin(async move {
                let answered = host.elicit(question, cx, &*ask).await;
                answered.unwrap_or_else(|error| ElicitationAnswer::Refuse(error.to_string()))
            })
        }
    }

    async fn sample(&self, request: Sampling, cx: &ToolContext) -> Result<Sampled, ToolError> {
        let gate = Gate::new((self.agent)(), &request.name, cx)?;
        let request = gate.admit(serde_json::to_value(&request)?).await?;
        let input = request.clone();
        let request: Sampling = serde_json::from_value(request)?;
        let sampled = self.ask_model(request, cx).await?;
        let answer = json!({ "text": sampled.text, "model": sampled.model });
        let Some(changed) = gate.review(input, answer).await? else { return Ok(sampled) };
        let mut other = Sampled::new(sampled.model, text_of(&changed));
        other.finish_reason = sampled.finish_reason;
        Ok(other)
    }

    async fn ask_model(&self, request: Sampling, cx: &ToolContext) -> Result<Sampled, ToolError> {
        // Hooks may have raised the number of the request.
        let most = self.max_tokens.map_or(request.max_tokens, |own| own.min(request.max_tokens));
        let mut options = (self.agent)().max_tokens(most);
        if let Some(temperature) = request.temperature {
            options = options.temperature(temperature);
        }
        options = request.stop.iter().fold(options, |options, text| options.stop(text));
        let mut messages = request.messages;
        let prompt = messages.pop().filter(|last| last.role == MessageRole::User);
        let prompt = prompt.ok_or_else(|| refusal("the last message must be a user message"))?;
        // The request is the server's: the agent's tools and system prompt stay out of it.
        let mut client = Client::with_history(options.build()?.without_tools()?, messages)?;
        client.set_system_prompt(request.system_prompt.unwrap_or_default())?;
        let parent = cx.state::<ParentAgent>();
        if let Some(parent) = parent {
            parent.adopt(&mut client, &request.name)?;
        }
        client.send_message(prompt).await?;
        while let Some(event) = client.next_event().await? {
            if let Some(parent) = parent {
                parent.tell(NestedEvent::new(cx.call_id(), &request.name, event)).await;
            }
        }
        // An earlier message is the prompt, or one that the server wrote.
        let is_answer = |message: &&Message| message.role == MessageRole::Assistant;
        let last = client.history().last().filter(is_answer);
        let text = last.map(Message::text).unwrap_or_default();
        let reason = client.finish_reason().cloned().unwrap_or(FinishReason::Unspecified);
        if text.is_empty() {
            return Err(refusal(format!("the model gave no answer: it ended with {reason}")));
        }
        let mut sampled = Sampled::new(client.options().model(), text);
        sampled.finish_reason = reason;
        Ok(sampled)
    }

    async fn elicit<F, R>(
        &self,
        question: Elicitation,
        cx: ToolContext,
        ask: &F,
    ) -> Result<ElicitationAnswer, ToolError>
    where
        F: Fn(Elicitation, ToolContext) -> R,
        R: Future<Output = ElicitationAnswer>,
    {
        let gate = Gate::new((self.agent)(), &question.name, &cx)?;
        let input = gate.admit(serde_json::to_value(&question)?).await?;
        let answer = ask(serde_json::from_value(input.clone())?, cx).await;
        let ElicitationAnswer::Accept(content) = answer else { return Ok(answer) };
        let changed = gate.review(input, content.clone()).await?;
        Ok(ElicitationAnswer::Accept(changed.unwrap_or(content)))
    }
}

impl fmt::Debug for McpHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpHost").field("max_tokens", &self.max_tokens).finish_non_exhaustive()
    }
}

/// The permissions and hooks that decide about one question.
struct Gate {
    options: AgentOptions,
    /// The permissions of the agent that called the tool.
    outer: Option<Permissions>,
    name: String,
    id: String,
}

impl Gate {
    fn new(agent: AgentOptionsBuilder, name: &str, cx: &ToolContext) -> Result<Self, ToolError> {
        let outer = cx.state::<ParentAgent>().map(|parent| parent.permissions_for(name));
        let (name, id) = (name.to_owned(), cx.call_id().to_owned());
        Ok(Self { options: agent.build()?, outer, name, id })
    }

    /// Returns the question after hooks and permissions, which may have changed it.
    async fn admit(&self, mut question: Value) -> Result<Value, ToolError> {
        let options = &self.options;
        let event =
            PreToolUseEvent::new(&self.name, question.clone(), &self.id, History::default());
        match options.hooks().pre_tool_use(event, sleep).await {
            Ok(HookOutcome::Allow) => {}
            Ok(HookOutcome::Modify(change)) => question = change.value,
            Ok(HookOutcome::Block { reason }) => return Err(refusal(reason)),
            Err(error) => return Err(refusal(error.to_string())),
        }
        let request =
            PermissionRequest::new(&self.name, question.clone(), &self.id, History::default())
                .with_category(Some(CATEGORY));
        let own = options.permissions();
        let permissions = self.outer.as_ref().unwrap_or(own);
        let denies = |permissions: &Permissions, question: &Value| {
            let reason = permissions.denies(&self.name, question, Some(CATEGORY));
            reason.map_or(Ok(()), |reason| Err(refusal(reason)))
        };
        // Before anybody is asked.
        denies(own, &question)?;
        match permissions.decide(request, sleep).await {
            Permission::Allow => Ok(question),
            Permission::AllowWith(other) => {
                // The callback has replaced a question that the rules let pass; its own must pass them too.
                denies(permissions, &other)?;
                denies(own, &other)?;
                Ok(other)
            }
            Permission::Deny(reason) => Err(refusal(reason)),
            _ => Err(refusal("no user is available to approve it")),
        }
    }

    /// Returns the replacement for the answer, if a hook has one.
    async fn review(&self, question: Value, answer: Value) -> Result<Option<Value>, ToolError> {
        let event = PostToolUseEvent::new(
            &self.name,
            question,
            &self.id,
            answer,
            Outcome::Ok,
            History::default(),
        );
        let changed = self.options.hooks().post_tool_use(event, sleep).await;
        let changed = changed.map_err(|error| refusal(error.to_string()))?;
        Ok(changed.map(|change| change.value.content))
    }
}

/// Returns the text of an answer that a hook replaced: a string, or an object of the shape that the hook received.
fn text_of(answer: &Value) -> String {
    match answer.as_str().or_else(|| answer.get("text")?.as_str()) {
        Some(text) => text.to_owned(),
        None => answer.to_string(),
    }
}

fn refusal(reason: impl Into<String>) -> ToolError {
    ToolError::new(reason).retryable(false)
}
