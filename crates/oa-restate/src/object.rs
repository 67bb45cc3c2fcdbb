//! The virtual object of a session.

use std::sync::Arc;

use oa_client::AgentOptions;
use oa_session::SessionStore;
use oa_turn::{Fit, Turn};
use oa_types::{FinishReason, Message, MessageRole, ToolUseBlock, json_size};
use restate_sdk::context::{CallFuture, ContextWriteState, DurableFuture, RequestTarget};
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agents::{Shared, now_in_micros};
use crate::calls::{MAX_DEPTH, no_agent};
use crate::contract::{
    Approve, Deny, ExternalResult, Fork, Given, PendingCall, SessionPrompt, Status, TurnReply,
    TurnStatus, WaitsFor,
};
use crate::control::SIGNAL;
use crate::converse::{converse, refused};
use crate::layout::{Head, PENDING, RUNNING, Running, STEERED, TURN};
use crate::output::Output;
use crate::place::{CANCELLED, Durable, Happened, Place};
use crate::state::{BoxFuture, Reader, write};
use crate::steps::DurableSteps;
use crate::storage::{self, Change, Loaded, StoredAt};
use crate::warning::WorkerWarning;

/// A session.
pub(crate) struct Agent(pub(crate) Shared);

#[restate_sdk::object(client_visibility = "pub(crate)")]
impl Agent {
    /// Runs one turn.
    #[handler]
    async fn prompt(
        &self,
        ctx: ObjectContext<'_>,
        prompt: Json<SessionPrompt>,
    ) -> Result<Json<TurnReply>, HandlerError> {
        let Json(prompt) = prompt;
        self.turn(&ctx, prompt).await.map(Json)
    }

    /// Returns the messages of the finished turns.
    #[handler]
    async fn history(
        &self,
        ctx: SharedObjectContext<'_>,
    ) -> Result<Json<Vec<Message>>, HandlerError> {
        let keys: Vec<String> = Reader::Shared(&ctx).head().await?.turn_keys().collect();
        // A session with messages in the state has not moved to the store yet.
        if let (Some(store), true) = (&self.0.store, keys.is_empty())
            && let Some(messages) = storage::read(&**store, ctx.key()).await?
        {
            return Ok(Json(messages));
        }
        Ok(Json(Reader::Shared(&ctx).turns(&keys).await?))
    }

    /// Returns the status of the session.
    #[handler]
    async fn status(&self, ctx: SharedObjectContext<'_>) -> Result<Json<Status>, HandlerError> {
        let reader = Reader::Shared(&ctx);
        let head = reader.head().await?;
        let turn = reader.get::<TurnStatus>(TURN).await?;
        let pending = reader.get::<Vec<PendingCall>>(PENDING).await?.unwrap_or_default();
        let Head { prompts, messages, bytes, agent, .. } = head;
        Ok(Json(Status { prompts, messages, bytes, agent, turn, pending }))
    }

    /// Approves a call that waits for approval.
    #[handler]
    async fn approve(
        &self,
        ctx: SharedObjectContext<'_>,
        input: Json<Approve>,
    ) -> Result<(), HandlerError> {
        let Json(Approve { id, input }) = input;
        let call = Reader::Shared(&ctx).waiting(&id, WaitsFor::Approval).await?;
        let input = match input {
            None => call.input,
            Some(input) => {
                self.check_size("the input", &input)?;
                let running = Reader::Shared(&ctx).get::<Running>(RUNNING).await?;
                self.changed(running, &id, &call.tool, input)?
            }
        };
        ctx.resolve_awakeable(&call.awakeable, Json(Given::Approved { input }));
        Ok(())
    }

    /// Denies a call that waits for approval.
    #[handler]
    async fn deny(
        &self,
        ctx: SharedObjectContext<'_>,
        input: Json<Deny>,
    ) -> Result<(), HandlerError> {
        let Json(Deny { id, reason }) = input;
        let call = Reader::Shared(&ctx).waiting(&id, WaitsFor::Approval).await?;
        self.check_size("the reason", &reason)?;
        ctx.resolve_awakeable(&call.awakeable, Json(Given::Denied { reason }));
        Ok(())
    }

    /// Gives the result of a call whose tool is external.
    #[handler]
    async fn answer(
        &self,
        ctx: SharedObjectContext<'_>,
        input: Json<ExternalResult>,
    ) -> Result<(), HandlerError> {
        let Json(result) = input;
        let call = Reader::Shared(&ctx).waiting(&result.id, WaitsFor::Result).await?;
        self.check_size("the result", &result)?;
        ctx.resolve_awakeable(&call.awakeable, Json(Given::Result(result)));
        Ok(())
    }

    /// Ends the turn in progress. Returns false if there is none.
    #[handler]
    async fn interrupt(&self, ctx: SharedObjectContext<'_>) -> Result<Json<bool>, HandlerError> {
        let Some(running) = Reader::Shared(&ctx).get::<Running>(RUNNING).await? else {
            return Ok(Json(false));
        };
        // Not to the turn itself, which would notice a signal only after the step in progress.
        ctx.invocation_handle(running.watch).signal(SIGNAL).resolve(true);
        Ok(Json(true))
    }

    /// Adds a user's message to the turn in progress, or to the next one.
    #[handler]
    async fn steer(
        &self,
        ctx: SharedObjectContext<'_>,
        input: Json<SessionPrompt>,
    ) -> Result<(), HandlerError> {
        let Json(SessionPrompt { message, .. }) = input;
        Turn::check_message(&message).map_err(|error| refused(400, &error))?;
        let used = usize::try_from(Reader::Shared(&ctx).head().await?.bytes).unwrap_or(usize::MAX);
        self.check_room(used, json_size(&message))?;
        let target = RequestTarget::object("AgentInbox", ctx.key(), "push");
        ctx.request::<_, ()>(target, Json(message)).call().await?;
        Ok(())
    }

    /// Removes all messages.
    #[handler]
    async fn clear(&self, ctx: ObjectContext<'_>) -> Result<(), HandlerError> {
        let mut head = Reader::Object(&ctx).head().await?;
        let is_outermost = head.within.is_empty();
        let keys: Vec<String> = head.turn_keys().collect();
        // `Head::save` compares with it: an empty conversation after a longer one removes all values.
        let history = Reader::Object(&ctx).turns(&keys).await?;
        if let Some(store) = self.store(&head.within) {
            // First, so that the state keeps its messages if the store refuses.
            storage::clear(&ctx, store).await?;
        }
        if !head.within.is_empty() || head.prompts == 0 {
            // The session of a sub-agent's call, which has no further turns, or one that had none.
            ctx.clear_all();
        } else {
            (head.turns, head.agent) = (0, None);
            // What moved to a store has left no values here.
            let writes = match self.0.store {
                Some(_) => head.save_counts(0, 0),
                None => head.save(&history, &[]),
            };
            write(&ctx, writes);
            for key in [TURN, PENDING, RUNNING, STEERED] {
                ctx.clear(key);
            }
        }
        if is_outermost {
            // Messages that wait for the next turn go as well. Users steer the outermost session only.
            let target = RequestTarget::object("AgentInbox", ctx.key(), "take");
            ctx.request::<(), Json<Vec<Message>>>(target, ()).call().await?;
        }
        Ok(())
    }

    /// Copies messages of another session, and its agent, into an empty one.
    #[handler]
    async fn fork(&self, ctx: ObjectContext<'_>, input: Json<Fork>) -> Result<(), HandlerError> {
        let Json(Fork { from, keep }) = input;
        let mut head = Reader::Object(&ctx).head().await?;
        let kept = self.load(&ctx, head.clone(), &[]).await?;
        if !kept.is_empty() {
            let message = "the session is not empty: clear it first";
            return Err(TerminalError::new_with_code(409, message).into());
        }
        // `history` and `status` are shared handlers: they answer while a turn of the other session runs.
        let target = RequestTarget::object("Agent", &*from, "history");
        let Json(mut messages) = ctx.request::<(), Json<Vec<Message>>>(target, ()).call().await?;
        let target = RequestTarget::object("Agent", from, "status");
        let Json(status) = ctx.request::<(), Json<Status>>(target, ()).call().await?;
        head.agent = status.agent;
        messages.truncate(keep.unwrap_or(usize::MAX));
        // A call separated from its result gets an error as its result.
        let messages = oa_turn::repair(messages);
        kept.save(&ctx, head, &[], &messages, false).await
    }
}

/// A conversation and its storage.
struct Kept<'a> {
    messages: Vec<Message>,
    bytes: usize,
    /// `None` for a conversation in the engine's state.
    store: Option<(&'a Arc<dyn SessionStore>, StoredAt)>,
    /// True if another writer has removed messages since the first attempt.
    is_lost: bool,
}

impl Kept<'_> {
    /// Returns true if the conversation was empty in the first attempt.
    fn is_empty(&self) -> bool {
        self.messages.is_empty() && !self.is_lost
    }

    /// Returns the size of the removed messages.
    fn lost(&self) -> usize {
        if self.is_lost { self.bytes.saturating_sub(json_size(&self.messages)) } else { 0 }
    }

    /// Writes the conversation. `before` is the conversation as loaded.
    async fn save(
        &self,
        ctx: &ObjectContext<'_>,
        head: Head,
        before: &[Message],
        after: &[Message],
        is_shortened: bool,
    ) -> Result<(), HandlerError> {
        let Some((store, at)) = &self.store else {
            write(ctx, head.save(before, after));
            return Ok(());
        };
        // A conversation that was in the engine's state moves to the store as a whole.
        let before = if at.messages == 0 { &[] } else { before };
        // Decided by recorded facts and not by the messages, which may differ in a replay.
        let change = match after.get(before.len()..) {
            Some(added) if !is_shortened => Change::Added(added.to_vec()),
            _ => Change::Replaced(after.to_vec()),
        };
        let at = storage::save(ctx, store, at, change, json_size(after), self.is_lost).await?;
        write(ctx, head.save_counts(at.messages, at.bytes));
        Ok(())
    }
}

/// The first entry of a turn's journal.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Begun {
    /// The time in microseconds since 1970.
    at: u64,
    /// The digest of the worker.
    digest: String,
}

impl Agent {
    /// Returns the store of a session. The session of a sub-agent's call has none, because only the result is kept.
    fn store(&self, within: &[String]) -> Option<&Arc<dyn SessionStore>> {
        self.0.store.as_ref().filter(|_| within.is_empty())
    }

    /// Reads the conversation of a session.
    fn load<'x>(
        &'x self,
        ctx: &'x ObjectContext<'_>,
        head: Head,
        within: &'x [String],
    ) -> BoxFuture<'x, Result<Kept<'x>, HandlerError>> {
        Box::pin(async move {
            let keys: Vec<String> = head.turn_keys().collect();
            let messages = Reader::Object(ctx).turns(&keys).await?;
            let bytes = usize::try_from(head.bytes).unwrap_or(usize::MAX);
            let Some(store) = self.store(within) else {
                return Ok(Kept { messages, bytes, store: None, is_lost: false });
            };
            let Loaded { messages: stored, at, is_lost } = storage::load(ctx, store).await?;
            // A session that began without a store continues with the messages in the state, and moves at its
            // next save.
            let (messages, bytes) = match at.messages == 0 {
                true if !messages.is_empty() => (messages, bytes),
                _ => (stored, at.bytes),
            };
            Ok(Kept { messages, bytes, store: Some((store, at)), is_lost })
        })
    }

    /// Returns the replacement input of a call, converted and validated for its tool.
    fn changed(
        &self,
        running: Option<Running>,
        id: &str,
        tool: &str,
        input: Value,
    ) -> Result<Value, HandlerError> {
        let refuse = |code, message: String| TerminalError::new_with_code(code, message);
        let Some(Running { agent, within, .. }) = running else {
            return Err(refuse(404, "no turn is in progress".to_owned()).into());
        };
        let options = self.options(agent.as_deref(), &within)?;
        let block = ToolUseBlock::new(id, tool, input);
        let input = match oa_turn::Perform::prepare(&options.steps(), &block) {
            (input, Fit::Fits) => input,
            (_, fit) => {
                let why = if let Fit::Unfit(why) = fit { why } else { String::new() };
                let message =
                    format!("the input does not match the schema of the tool {tool}: {why}");
                return Err(refuse(400, message).into());
            }
        };
        // The same rules deny it as if the model had sent it.
        let category = options.tool(tool).and_then(|tool| tool.category());
        match options.permissions().denies(tool, &input, category) {
            Some(reason) => Err(refuse(403, reason).into()),
            None => Ok(input),
        }
    }

    /// Checks that a session of this size has room for a message of that size.
    fn check_room(&self, used: usize, message: usize) -> Result<(), TerminalError> {
        if self.0.limits.admits(used, message) {
            return Ok(());
        }
        let most = self.0.limits.session_bytes;
        let message = format!(
            "the session has {used} bytes; the limit is {most}, including the prompt: clear it, or fork its beginning"
        );
        Err(TerminalError::new_with_code(413, message))
    }

    /// Checks the size of a decision or a result, which becomes a part of the turn's journal.
    fn check_size(&self, name: &str, value: &impl Serialize) -> Result<(), TerminalError> {
        let (size, most) = (json_size(value), self.0.limits.share(1));
        if size <= most {
            return Ok(());
        }
        let message = format!("{name} has {size} bytes; the limit is {most}");
        Err(TerminalError::new_with_code(413, message))
    }

    fn options(&self, name: Option<&str>, within: &[String]) -> Result<AgentOptions, HandlerError> {
        let agent = self.0.agent_within(name, within).ok_or_else(|| no_agent(name))?;
        let invalid =
            |error: oa_client::Error| TerminalError::new_with_code(400, error.to_string());
        Ok(agent.map_err(invalid)?)
    }

    /// Runs one turn.
    fn turn<'x>(
        &'x self,
        ctx: &'x ObjectContext<'_>,
        prompt: SessionPrompt,
    ) -> BoxFuture<'x, Result<TurnReply, HandlerError>> {
        Box::pin(async move {
            // Reads the conversation, admits the prompt, makes the turn interruptible, drives it, saves it,
            // and replies. What decides the path comes from the journal or the options, so a replay takes the
            // same one.
            let mut head = Reader::Object(ctx).head().await?;
            let within = prompt.within.clone();
            let kept = self.load(ctx, head.clone(), &within).await?;
            let mut options = self.admit(&mut head, &kept, &prompt)?;
            let mut output = None;
            if let Some(wanted) = prompt.output {
                let begun = Output::begin(&options, *wanted);
                let begun =
                    begun.map_err(|error| TerminalError::new_with_code(400, error.to_string()))?;
                (options, output) = (begun.0, Some(begun.1));
            }
            head.prompts += 1;
            // Keys of calls derive from the invocation: equal in each attempt, and different in each turn.
            let mut turn = options.turn().with_key_seed(ctx.invocation_id());
            turn.set_history(kept.messages.clone()).map_err(|error| refused(400, &error))?;
            let steered = Reader::Object(ctx).get::<Vec<Message>>(STEERED).await?;
            let (mut place, interrupted) = self.begin(ctx, &head, &options).await?;
            (place.is_lost, place.lost) = (kept.is_lost, kept.lost());
            let watch = place.watch.clone();
            if let Some(output) = &output {
                turn.begin_output(output.tool());
            }
            turn.set_outer_budget(prompt.left);
            let before = turn.history().clone();
            for message in steered.into_iter().flatten() {
                // Only valid messages were kept.
                let _ = turn.steer(message);
            }
            let is_call = prompt.is_call;
            let prompted = turn.prompt(prompt.message).map_err(|error| refused(400, &error));
            let steps = DurableSteps::new(ctx, &self.0, &options, place, output, interrupted);
            // Not `?`: since `begin`, the session has a turn in progress, which only the code below ends.
            let ended = match prompted {
                Ok(()) => converse(&mut turn, &steps).await,
                Err(error) => Err(error),
            };
            if turn.is_busy() {
                // The engine rejected a step. History is left as after an interrupt.
                turn.abandon(Vec::new());
            }
            let _ = turn.end_output();
            // Prompts that failed or were blocked are not counted: the turn has taken them back.
            head.turns += u64::from(turn.turns());
            // Ends the invocation that waits for an interrupt; otherwise it would wait forever.
            ctx.invocation_handle(watch).signal(SIGNAL).resolve(false);
            let waiting: Vec<Message> = turn.steered().cloned().collect();
            match waiting.is_empty() {
                true => ctx.clear(STEERED),
                false => ctx.set(STEERED, Json(waiting)),
            }
            // Saves before the keys of the turn in progress are cleared: a reader that sees no turn finds its
            // messages.
            let number = head.prompts;
            let is_shortened = steps.is_shortened();
            let mut saved =
                kept.save(ctx, head.clone(), &before, turn.history(), is_shortened).await;
            if saved.is_err() && kept.store.is_some() && !steps.is_cancelled() {
                // A cancellation is reported only once, so the second attempt runs. The store recognizes a turn that is
                // already saved.
                saved = kept.save(ctx, head, &before, turn.history(), is_shortened).await;
            }
            for key in [TURN, PENDING, RUNNING] {
                ctx.clear(key);
            }
            steps.tell_end(ended.as_ref().ok());
            // Only now, so that a failed save leaves no turn in progress behind.
            saved?;
            if steps.is_cancelled() {
                return Err(TerminalError::new_with_code(CANCELLED, "the turn was canceled").into());
            }
            let spent = turn.spent();
            let reason = match ended {
                Ok(reason) => reason,
                Err(error) if is_call => {
                    let failure = Some(error.message().to_owned());
                    let (reason, text) = (FinishReason::Unspecified, String::new());
                    let (value, tries) = (None, 0);
                    return Ok(TurnReply {
                        turn: number,
                        reason,
                        text,
                        value,
                        tries,
                        spent,
                        failure,
                    });
                }
                Err(error) => return Err(error.into()),
            };
            let history = turn.history();
            // In a conversation that was shortened, the last prompt tells where this turn begins.
            let is_prompt = |message: &Message| message.role == MessageRole::User;
            let begin = match is_shortened {
                true => history.iter().rposition(is_prompt).unwrap_or(0),
                false => before.len().min(history.len()),
            };
            let mut answers = history[begin..].iter().rev();
            let last = answers.find(|message| message.role == MessageRole::Assistant);
            // An answer that neither says nor calls anything is not in history; an earlier text does not stand for it.
            let last = last.filter(|_| !(reason.is_complete() && steps.is_silent()));
            let text = last.map(Message::text).unwrap_or_default();
            let (value, tries) = steps.value(&reason, turn.history().last())?;
            Ok(TurnReply { turn: number, reason, text, value, tries, spent, failure: None })
        })
    }

    /// Checks that the session accepts the prompt, and returns its agent.
    fn admit(
        &self,
        head: &mut Head,
        kept: &Kept<'_>,
        prompt: &SessionPrompt,
    ) -> Result<AgentOptions, HandlerError> {
        let refuse = |code, message: String| TerminalError::new_with_code(code, message);
        Turn::check_message(&prompt.message).map_err(|error| refused(400, &error))?;
        if kept.is_empty() {
            head.agent.clone_from(&prompt.agent);
        } else if prompt.agent.is_some() && prompt.agent != head.agent {
            let message = match &head.agent {
                Some(agent) => format!("the session belongs to the agent {agent:?}"),
                None => "the session belongs to the main agent".to_owned(),
            };
            return Err(refuse(409, message).into());
        }
        head.within.clone_from(&prompt.within);
        if prompt.within.len() > MAX_DEPTH {
            let message = format!("agents may be nested at most {MAX_DEPTH} levels deep");
            return Err(refuse(400, message).into());
        }
        let options = self.options(head.agent.as_deref(), &head.within)?;
        let wanted = prompt.output.as_ref().map_or(0, json_size);
        self.check_room(kept.bytes, json_size(&prompt.message) + wanted)?;
        let most = options.turn_options().max_turns.map_or(u64::MAX, u64::from);
        if head.turns >= most {
            return Err(refuse(403, format!("the limit of {most} turns has been reached")).into());
        }
        Ok(options)
    }

    /// Makes the turn interruptible, and publishes that it is in progress.
    async fn begin<'ctx>(
        &self,
        ctx: &ObjectContext<'ctx>,
        head: &Head,
        options: &AgentOptions,
    ) -> Result<(Place, Durable<'ctx, Happened>), HandlerError> {
        let target = RequestTarget::service("AgentInterrupt", "wait");
        // With a key, others can wait for the invocation, too.
        let watching =
            ctx.request::<(), bool>(target, ()).idempotency_key(ctx.invocation_id()).call();
        let watch = watching.invocation_handle().await?.invocation_id().to_owned();
        let (agent, within, turn) = (head.agent.clone(), head.within.clone(), head.prompts);
        let running =
            Running { watch: watch.clone(), agent: agent.clone(), within: within.clone() };
        ctx.set(RUNNING, Json(running));
        let invocation = ctx.invocation_id().to_owned();
        ctx.set(TURN, Json(TurnStatus { turn, invocation, requests: 0 }));
        // Left over from a turn that an operator killed.
        ctx.clear(PENDING);
        // The start time is recorded, so the deadline is the same in each attempt.
        let digest = self.0.digest.clone();
        let begin = || async move { Ok(Json(Begun { at: now_in_micros(), digest })) };
        let begun = ctx.run(begin).name("begin").await.inspect_err(|_| {
            // Cancelled by an operator before the turn began.
            ctx.invocation_handle(watch.clone()).signal(SIGNAL).resolve(false);
            ctx.clear(TURN);
            ctx.clear(RUNNING);
        });
        let Json(begun) = begun?;
        let session = ctx.key().to_owned();
        if begun.digest != self.0.digest {
            let (digest, begun_by) = (self.0.digest.clone(), begun.digest);
            let session = session.clone();
            let warning = WorkerWarning::OtherVersion { session, turn, begun_by, digest };
            self.0.warn(ctx.invocation_id(), &warning);
        }
        let limit = options.max_run_time();
        let limit = limit.map(|limit| u64::try_from(limit.as_micros()).unwrap_or(u64::MAX));
        let deadline = limit.map(|limit| begun.at.saturating_add(limit));
        let (began, is_lost, lost) = (begun.at, false, 0);
        let place = Place { session, agent, turn, within, watch, deadline, began, is_lost, lost };
        Ok((place, Box::pin(watching.map(|_| Happened::Interrupted))))
    }
}
