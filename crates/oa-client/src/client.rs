mod calls;
mod checkpoint;
mod compaction;
#[cfg(feature = "session")]
mod follow;
mod history;
mod structured;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http::{Request, Response};
use http_body::Body;
use oa_events::{AgentEvent, Reply, TurnMetadata, TurnText};
use oa_executor::InterruptHandle;
use oa_hooks::PermissionMode;
use oa_tools::{Registry, SourcedTools, Tool, ToolContext};
use oa_transport::RequestBody;
use oa_types::wire::{ChatParameters, Thinking};
use oa_types::{AssistantMessage, ContentBlock, FinishReason, Message, ToolUseBlock, Usage};

use crate::driver::{BoxedDriver, Driver};
use crate::error::{self, Error, Result};
use crate::options::AgentOptions;
use crate::settings::Settings;
use crate::steer::SteerHandle;

pub use self::compaction::Compaction;
pub use self::history::HistoryMut;

/// A conversation with a model that can call tools.
///
/// [`send`](Self::send) a prompt, then [`receive`](Self::receive) content blocks until `None`: text as it is generated,
/// tool calls, and results. With [`auto_execute_tools`](crate::AgentOptionsBuilder::auto_execute_tools), the client
/// runs the calls and continues. Otherwise, add results with [`add_tool_result`](Self::add_tool_result) and continue
/// with [`continue_turn`](Self::continue_turn).
///
/// [`history`](Self::history) is always valid for the next request: each call in it has exactly one result,
/// unless the caller has yet to add it.
///
/// # Cancel safety
///
/// Every future of a client may be dropped. Dropping `send` removes the new prompt; dropping `receive` loses nothing.
/// Dropping the client closes its connection and cancels its tools.
///
/// ```
/// use oa_client::{AgentOptions, Client};
/// use oa_testkit::{MemoryServer, Reply};
/// use oa_tools::tool;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), oa_client::Error> {
/// # let model = MemoryServer::new([
/// #     Reply::new().call("double", json!({"n": 21})),
/// #     Reply::text("It is 42."),
/// # ]);
/// let options = AgentOptions::builder()
///     .model("any")
///     .tool(tool("double", "Double a number").param("n", "integer").build(|args| async move {
///         Ok(json!(args["n"].as_i64().unwrap_or_default() * 2))
///     }))
///     .auto_execute_tools(true)
/// #   .transport(model)
///     .build()?;
///
/// let mut client = Client::new(options)?;
/// let reply = client.ask("What is twice 21?").await?;
/// assert_eq!(reply.text, "It is 42.");
/// assert_eq!(client.history().len(), 4); // prompt, call, result, answer
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Client {
    driver: BoxedDriver,
    options: AgentOptions,
    interrupt: InterruptHandle,
    steer: SteerHandle,
}

impl Client {
    /// Creates a client with an empty history.
    ///
    /// The options may lack a model, as [`AgentOptions::default`] may. In that case, the first request fails with kind
    /// `Config`, unless you call [`set_model`](Self::set_model) first.
    ///
    /// # Errors
    ///
    /// None today.
    pub fn new(options: AgentOptions) -> Result<Self> {
        let mut driver = Driver::new(Arc::clone(&options.0), options.settings().config.turn);
        let (interrupt, steer) = (InterruptHandle::default(), SteerHandle(Arc::default()));
        (driver.interrupt, driver.steer) =
            (Some(Arc::clone(interrupt.signal())), Some(Arc::clone(&steer.0)));
        // Calls of a resumed conversation need the current tools. The first request reports a failure.
        let _ = driver.refresh_tools();
        let options = AgentOptions(Arc::clone(&driver.settings));
        Ok(Self { driver, options, interrupt, steer })
    }

    /// Creates a client that sends its requests through your own service: one with middleware, or a model in memory.
    ///
    /// See [`AgentOptionsBuilder::transport`](crate::AgentOptionsBuilder::transport) for an example with tower.
    ///
    /// # Errors
    ///
    /// `Config` for a [`chat_service`](crate::AgentOptionsBuilder::chat_service), which has its own transports.
    pub fn with_transport<S, B>(options: AgentOptions, service: S) -> Result<Self>
    where
        S: tower::Service<Request<RequestBody>, Response = Response<B>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Error: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut client = Self::new(options)?;
        client.change(|settings| {
            settings.use_endpoint(|endpoint| endpoint.with_transport(service))
        })?;
        Ok(client)
    }

    /// Creates a client that continues a conversation, which is repaired first (see
    /// [`history_mut`](Self::history_mut)). The results in it are accepted as they are: no hook sees them.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and `InvalidInput` if a system message holds an image or audio.
    pub fn with_history(options: AgentOptions, messages: Vec<Message>) -> Result<Self> {
        let mut client = Self::new(options)?;
        client.set_history(messages);
        client.driver.turn.check_history().map_err(error::turn)?;
        Ok(client)
    }

    /// Creates a client that continues a suspended conversation. Calls without a result at its end stay open; the rest
    /// is repaired first.
    ///
    /// In auto mode, all open calls wait for [`approve`](Self::approve) or [`deny`](Self::deny), even those that a
    /// rule allows. They have the model's input with the tool's defaults. Earlier decisions are not stored: hooks and
    /// rules decide again when the turn continues. Before the next request, hooks see the results at the end of the
    /// conversation, because they may not have seen them yet.
    ///
    /// In manual mode, open calls wait for their results, except those of tools that the lists forbid, which get an
    /// error. Those that hooks apply to are decided again, and [`receive`](Self::receive) returns them then.
    ///
    /// Calls of [external](oa_tools::ToolBuilder::external) tools wait for their results if the rules and the mode
    /// allow them and no hook applies to them. Otherwise, they wait for approval like the others: history does not
    /// record whether they were approved, or what a hook decided.
    ///
    /// # Errors
    ///
    /// As [`with_history`](Self::with_history).
    pub fn resume(options: AgentOptions, messages: Vec<Message>) -> Result<Self> {
        let mut client = Self::new(options)?;
        client.driver.turn.resume(messages).map_err(error::turn)?;
        client.driver.turn.check_history().map_err(error::turn)?;
        client.driver.prepare_open_calls();
        let settings = Arc::clone(&client.driver.settings);
        client.driver.turn.allow_external(|call| settings.config.is_allowed(call));
        client.driver.refuse_forbidden()?;
        let hooks = &settings.config.hooks;
        client.driver.turn.decide_resumed(|call| hooks.has_pre_tool_use(&call.block.name));
        Ok(client)
    }

    /// Sends a prompt and waits for the head of its answer.
    ///
    /// An answer in progress is ended first, and open calls are answered with "not run". `send("")` is
    /// [`continue_turn`](Self::continue_turn), except that while calls are open it continues the turn once the last of
    /// them has a result.
    ///
    /// If an answer broke off, sending the same prompt again is a retry: the prompt is not recorded twice, and hooks do
    /// not see it again. Before a different prompt, the text of the broken answer is recorded, marked as interrupted.
    ///
    /// An interrupt is not an error: `send` returns `Ok`, [`receive`](Self::receive) returns `None`, and the prompt
    /// stays in history if its hooks have accepted it.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a blank prompt, for an empty one with nothing to continue, or if history has a system message
    /// with an image or audio; `MaxTurns`; `Blocked` or `Hook` if a hook stops the prompt; `Connect`, `Timeout`, `Api`,
    /// `ContextOverflow`, `Stream`. The prompt is removed and history is restored, with two exceptions: calls that were
    /// open stay answered, and a conversation that was shortened stays short, unless the server rejected the rest as
    /// too long, too. A failed retry removes nothing.
    ///
    /// # Panics
    ///
    /// When polled outside of a tokio runtime, or in one without time or I/O.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection and removes the prompt, unless it is a retry or a steered message has
    /// entered after it. A conversation that was shortened stays short.
    pub async fn send(&mut self, prompt: &str) -> Result<()> {
        let sent = match prompt {
            "" => self.driver.go_on_when_answered().await,
            _ => self.driver.submit(Message::user(prompt)).await,
        };
        self.adopt(sent)
    }

    /// Sends a prompt of text, images and audio; otherwise like [`send`](Self::send).
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send), and `InvalidInput` if it is not a user message.
    ///
    /// # Panics
    ///
    /// As [`send`](Self::send).
    ///
    /// # Cancel safety
    ///
    /// As [`send`](Self::send).
    pub async fn send_message(&mut self, prompt: Message) -> Result<()> {
        let sent = self.driver.submit(prompt).await;
        self.adopt(sent)
    }

    /// Continues the conversation with fresh budgets: after all calls have results, after an error, or after a limit.
    /// Waits for the head of the answer. If calls waited for approval, it returns at once, and they run as you receive.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if calls have no result yet (the message lists their ids), or if the last message is neither the
    /// user's nor a result: an interrupted answer cannot be resumed, so send a prompt instead. Otherwise the server
    /// errors of [`send`](Self::send).
    ///
    /// # Panics
    ///
    /// As [`send`](Self::send).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection, and you can call the method again. History is unchanged, except by
    /// what happens before the request: hooks that change results, steered messages, and shortening.
    pub async fn continue_turn(&mut self) -> Result<()> {
        let continued = self.driver.go_on().await;
        self.adopt(continued)
    }

    /// Sends a prompt, text or a user [`Message`] with images or audio, and collects the answer.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send) and [`receive`](Self::receive).
    ///
    /// # Panics
    ///
    /// As [`send`](Self::send).
    ///
    /// # Cancel safety
    ///
    /// As [`send`](Self::send) before the answer begins, and as [`collect_reply`](Self::collect_reply) afterwards.
    pub async fn ask(&mut self, prompt: impl Into<Message>) -> Result<Reply> {
        self.send_message(prompt.into()).await?;
        self.collect_reply().await
    }

    /// Collects the rest of the turn: the answer after [`send_message`](Self::send_message) or
    /// [`continue_turn`](Self::continue_turn).
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive).
    ///
    /// # Panics
    ///
    /// As [`receive`](Self::receive).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses the text read so far, except what is in history. You can still receive the rest.
    pub async fn collect_reply(&mut self) -> Result<Reply> {
        let (mut text, mut turn) = (String::new(), TurnText::default());
        while let Some(event) = self.next_event().await? {
            turn.apply(&mut text, &event);
        }
        let mut reply = Reply::new(text, self.finish_reason().cloned().unwrap_or_default());
        (reply.message, reply.usage) = (self.message().cloned(), self.usage());
        let metadata = &self.driver.metadata;
        (reply.turn_usage, reply.sub_agents) = (metadata.turn_usage, metadata.sub_agents);
        Ok(reply)
    }

    /// Waits for the next block; `None` if the turn is over, was interrupted, or waits for results of calls.
    /// [`finish_reason`](Self::finish_reason) says which.
    ///
    /// # Errors
    ///
    /// The error that ended the turn: `Timeout`, `Stream`, `Limit`, `Hook`, `Blocked` if a hook blocks an answer, and
    /// in later rounds the server errors of [`send`](Self::send). Completed blocks stay in history, and so does the
    /// prompt once an answer to it has begun; the text of a broken answer does not. [`continue_turn`] asks the model
    /// again, and so does [`send`](Self::send) with the same prompt.
    ///
    /// [`continue_turn`]: Self::continue_turn
    ///
    /// # Panics
    ///
    /// When polled outside of a tokio runtime, or in one without time or I/O.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: the next call continues the work in progress.
    pub async fn receive(&mut self) -> Result<Option<ContentBlock>> {
        poll_fn(|cx| self.poll_block(cx)).await
    }

    /// Waits for the next event; `None` as for [`receive`](Self::receive), which returns only the blocks among them.
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive).
    ///
    /// # Panics
    ///
    /// As [`receive`](Self::receive).
    ///
    /// # Cancel safety
    ///
    /// As [`receive`](Self::receive).
    pub async fn next_event(&mut self) -> Result<Option<AgentEvent>> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Returns the blocks of [`receive`](Self::receive) as a `Stream`, which ends after an error.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing.
    pub fn stream(&mut self) -> ClientStream<'_> {
        ClientStream { client: self, is_over: false }
    }

    /// Returns a tool by name, for callers that run calls themselves.
    #[must_use]
    pub fn get_tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.driver.settings.config.tools.get(name)
    }

    /// Returns the context to run a call with, for callers that run calls themselves. It contains the call's id and
    /// name, its idempotency key if the call is from the last answer, and the options' state. Only you can cancel it.
    #[must_use]
    pub fn tool_context(&self, call: &ToolUseBlock) -> ToolContext {
        let cx = ToolContext::new(&*call.id, &*call.name)
            .with_state(self.driver.settings.config.state.clone());
        let place = self.driver.turn.calls().iter().position(|made| made.block.id == call.id);
        match place.and_then(|place| self.driver.key(place)) {
            Some(key) => cx.with_idempotency_key(key),
            None => cx,
        }
    }

    /// Sets the prefix of the [idempotency keys](ToolContext::idempotency_key) of calls, from now on. The default,
    /// also set by an empty text, is a random number, so that no two clients have the same keys.
    ///
    /// The rest of a key counts the answers since then, so use each prefix only once. To keep the key of an open call
    /// in another process, use a prefix that identifies the stored messages, such as `SavedSession::key_prefix`. Set it
    /// each time they are saved, and after [`resume`](Self::resume).
    pub fn set_key_prefix(&mut self, prefix: impl Into<String>) {
        self.driver.turn.set_key_seed(prefix);
    }

    /// Returns the conversation, without the system prompt.
    #[must_use]
    pub fn history(&self) -> &[Message] {
        self.driver.turn.history()
    }

    /// Clears the conversation. A turn in progress is ended; options and counts stay.
    pub fn clear_history(&mut self) {
        self.driver.abandon();
        self.set_history(Vec::new());
    }

    /// Returns the options, including later changes.
    #[must_use]
    pub fn options(&self) -> &AgentOptions {
        &self.options
    }

    /// Sets the model, from the next request on.
    ///
    /// # Errors
    ///
    /// `Config` if the name is empty or has control characters.
    pub fn set_model(&mut self, model: impl AsRef<str>) -> Result<()> {
        self.derive(|options| options.with_model(model))
    }

    /// Sets the system prompt, from the next request on. An empty text means none.
    ///
    /// # Errors
    ///
    /// None today: any text can be sent.
    pub fn set_system_prompt(&mut self, prompt: impl Into<String>) -> Result<()> {
        self.derive(|options| options.with_system_prompt(prompt))
    }

    /// Sets how much the model thinks, from the next request on: `true`, `false`, or an effort such as `"low"`.
    ///
    /// # Errors
    ///
    /// `Config` without a provider, because each has its own member for it.
    pub fn set_thinking(&mut self, thinking: impl Into<Thinking>) -> Result<()> {
        self.derive(|options| options.with_thinking(thinking))
    }

    /// Changes sampling, the response format and similar parameters, from the next request on. Values are not checked.
    ///
    /// # Errors
    ///
    /// None today: any parameters can be sent.
    pub fn change_parameters(&mut self, change: impl FnOnce(&mut ChatParameters)) -> Result<()> {
        self.derive(|options| options.with_parameters(change))
    }

    /// Shares a value with tools, from the next call on. The value replaces an earlier one of the same type.
    pub fn set_state<T: Send + Sync + 'static>(&mut self, value: T) {
        self.adopt_options(AgentOptions(Arc::clone(&self.driver.settings)).with_state(value));
    }

    /// Replaces the tools, from the next request on. The tools of a
    /// [`tool_source`](crate::AgentOptionsBuilder::tool_source) are added to them.
    ///
    /// # Errors
    ///
    /// `Config` for a tool that cannot be offered, or for two tools with the same name; nothing changes in that case.
    pub fn set_tools<T: Tool + 'static>(
        &mut self,
        tools: impl IntoIterator<Item = T>,
    ) -> Result<()> {
        let tools = Registry::from_tools(tools)?;
        self.change(|settings| {
            settings.config.sources.iter_mut().for_each(SourcedTools::forget);
            settings.set_tools(tools)
        })?;
        self.driver.turn.set_external_tools(self.options.settings().config.external_tools());
        self.driver.check_open_calls();
        Ok(())
    }

    /// Sets what happens to calls that no rule matches, from now on: for example, to leave [`PermissionMode::Plan`].
    /// Switching to `Plan` also stops calls approved before, unless the calls of their answer have started.
    ///
    /// # Errors
    ///
    /// `Config` in manual mode, where the caller decides, and if `can_use_tool` would never be called in this mode.
    pub fn set_permission_mode(&mut self, mode: PermissionMode) -> Result<()> {
        if !self.options.auto_execute_tools() {
            return Err(Error::config(
                "a permission mode has no effect without auto_execute_tools",
            ));
        }
        self.change(|settings| {
            let permissions = &mut settings.config.permissions;
            *permissions = std::mem::take(permissions).mode(mode);
            permissions.check().map_err(Error::config)
        })
    }

    /// Returns metadata of the turns so far.
    #[must_use]
    pub fn turn_metadata(&self) -> TurnMetadata {
        let turn = &self.driver.turn;
        let mut metadata = TurnMetadata::clone(&self.driver.metadata);
        (metadata.turns, metadata.rounds) = (turn.turns(), turn.rounds());
        metadata
    }

    /// Returns why the last turn ended; `None` while it is in progress, and if it failed.
    #[must_use]
    pub fn finish_reason(&self) -> Option<&FinishReason> {
        self.driver.metadata.finish_reason.as_ref()
    }

    /// Returns the usage of the last answer of this turn: the tokens, if the server reported them, and the time; `None`
    /// until an answer has ended. For an interrupted answer, it is the usage reported up to that point, or `None`.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.driver.metadata.usage
    }

    /// Returns the last answer of this turn once it has ended; if the answer failed, the part that arrived.
    #[must_use]
    pub fn message(&self) -> Option<&AssistantMessage> {
        self.driver.message.as_deref()
    }

    /// Ends the turn in progress at once; does nothing if there is none.
    ///
    /// [`receive`](Self::receive) then returns `None`. Text received so far stays in history, marked as interrupted;
    /// open calls are answered as canceled.
    pub fn interrupt(&self) {
        self.interrupt.interrupt();
    }

    /// Returns a handle to interrupt from elsewhere: another task, a signal handler, or a guard that is dropped.
    #[must_use]
    pub fn interrupt_handle(&self) -> InterruptHandle {
        self.interrupt.clone()
    }

    /// Returns a handle that sends messages to the model while a turn runs, from anywhere.
    #[must_use]
    pub fn steer_handle(&self) -> SteerHandle {
        self.steer.clone()
    }

    /// Takes out the steered messages that the model has not read, in order; otherwise they enter the next turn.
    ///
    /// A message whose prompt hooks are running stays.
    pub fn take_steered(&mut self) -> Vec<Message> {
        let mut messages = self.driver.turn.take_steered();
        messages.extend(self.steer.0.take());
        messages
    }

    /// Polls for the next event; [`next_event`](Self::next_event) waits for it. For streams of your own.
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive).
    ///
    /// # Panics
    ///
    /// As [`receive`](Self::receive).
    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<AgentEvent>>> {
        let event = self.driver.poll_event(cx);
        self.adopt(event)
    }

    /// Adopts the driver's settings after it has worked: the tools of a source may have changed.
    fn adopt<T>(&mut self, outcome: T) -> T {
        if !Arc::ptr_eq(&self.options.0, &self.driver.settings) {
            self.options.0 = Arc::clone(&self.driver.settings);
        }
        outcome
    }

    fn poll_block(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<ContentBlock>>> {
        let block = self.driver.poll_block(cx);
        self.adopt(block)
    }

    fn set_history(&mut self, messages: Vec<Message>) {
        let idle = self.driver.turn.set_history(messages);
        debug_assert!(idle.is_ok(), "a turn in progress was ended before");
    }

    pub(crate) fn change(
        &mut self,
        change: impl FnOnce(&mut Settings) -> Result<()>,
    ) -> Result<()> {
        self.derive(|options| options.changed(change))
    }

    fn derive(&mut self, from: impl FnOnce(&AgentOptions) -> Result<AgentOptions>) -> Result<()> {
        self.adopt_options(from(&AgentOptions(Arc::clone(&self.driver.settings)))?);
        Ok(())
    }

    fn adopt_options(&mut self, options: AgentOptions) {
        self.options = options;
        self.driver.settings = Arc::clone(&self.options.0);
    }
}

/// A stream of a turn's blocks, returned by [`Client::stream`].
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct ClientStream<'a> {
    client: &'a mut Client,
    is_over: bool,
}

impl Stream for ClientStream<'_> {
    type Item = Result<ContentBlock>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let block = ready!(self.client.poll_block(cx)).transpose();
        self.is_over = !matches!(block, Some(Ok(_)));
        Poll::Ready(block)
    }
}
