//! The virtual object of a session.

use std::sync::Arc;

use oa_client::AgentOptions;
use oa_session::SessionStore;
use oa_tools::ErrorBody;
use oa_turn::{CutBy, DriveError, Fit, StepCall, Turn, drive};
use oa_types::{ErrorRecord, FinishReason, Message, MessageRole, Outcome, ToolUseBlock, json_size};
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
use crate::layout::{Head, PENDING, RUNNING, Running, STEERED, TURN};
use crate::output::Output;
use crate::place::{CANCELLED, Durable, Happened, Place};
use crate::state::{BoxFuture, Reader, write};
use crate::steps::{DurableSteps, Stop};
use crate::storage::{self, StoredAt};
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
        let (size, most) = (json_size(&result), self.0.limits.share(1));
        if size > most {
            let message = format!("the result has {size} bytes; the limit is {most}");
            return Err(TerminalError::new_with_code(413, message).into());
        }
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
        let target = RequestTarget::object("AgentInbox", ctx.key(), "push");
        ctx.request::<_, ()>(target, Json(message)).call().await?;
        Ok(())
    }

    /// Removes all messages.
    #[handler]
    async fn clear(&self, ctx: ObjectContext<'_>) -> Result<(), HandlerError> {
        let mut head = Reader::Object(&ctx).head().await?;
        let keys: Vec<String> = head.turn_keys().collect();
        // `Head::save` compares with it: an empty conversation after a longer one removes all values.
        let history = Reader::Object(&ctx).turns(&keys).await?;
        if let Some(store) = self.store(&head.within) {
            // First, so that the state keeps its messages if the store refuses.
            storage::clear(&ctx, store).await?;
        }
        (head.turns, head.agent, head.within) = (0, None, Vec::new());
        write(&ctx, head.save(&history, &[]));
        for key in [TURN, PENDING, RUNNING, STEERED] {
            ctx.clear(key);
        }
        Ok(())
    }

    /// Copies messages of another session, and its agent, into an empty one.
    #[handler]
    async fn fork(&self, ctx: ObjectContext<'_>, input: Json<Fork>) -> Result<(), HandlerError> {
        let Json(Fork { from, keep }) = input;
        let mut head = Reader::Object(&ctx).head().await?;
        let kept = self.load(&ctx, head.clone(), &[]).await?;
        if !kept.messages.is_empty() {
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
        kept.save(&ctx, head, &[], &messages).await
    }
}

/// A conversation and its storage.
struct Kept<'a> {
    messages: Vec<Message>,
    bytes: usize,
    /// `None` for a conversation in the engine's state.
    store: Option<(&'a Arc<dyn SessionStore>, StoredAt)>,
}

impl Kept<'_> {
    /// Writes the conversation. `before` is the conversation as loaded.
    async fn save(
        &self,
        ctx: &ObjectContext<'_>,
        head: Head,
        before: &[Message],
        after: &[Message],
    ) -> Result<(), HandlerError> {
        let Some((store, at)) = &self.store else {
            write(ctx, head.save(before, after));
            return Ok(());
        };
        // A conversation that was in the engine's state moves to the store as a whole.
        let before = if at.messages == 0 { &[] } else { before };
        let at = storage::save(ctx, store, at, before, after).await?;
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
                return Ok(Kept { messages, bytes, store: None });
            };
            let (stored, at) = storage::load(ctx, store).await?;
            // A session that began without a store continues with the messages in the state, and moves at its
            // next save.
            let (messages, bytes) = match stored.is_empty() {
                true if !messages.is_empty() => (messages, bytes),
                _ => (stored, at.bytes),
            };
            Ok(Kept { messages, bytes, store: Some((store, at)) })
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
            head.turns += 1;
            // Keys of calls derive from the invocation: equal in each attempt, and different in each turn.
            let mut turn = options.turn().with_key_seed(ctx.invocation_id());
            turn.set_history(kept.messages.clone()).map_err(|error| refused(400, &error))?;
            let steered = Reader::Object(ctx).get::<Vec<Message>>(STEERED).await?;
            let (place, interrupted) = self.begin(ctx, &head, &options).await?;
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
            let prompted = turn.prompt(prompt.message).map_err(|error| refused(400, &error));
            let steps = DurableSteps::new(ctx, &self.0, &options, place, output, interrupted);
            // Not `?`: since `begin`, the session has a turn in progress, which only the code below ends.
            let ended = match prompted {
                Ok(()) => converse(&mut turn, &steps).await,
                Err(error) => Err(error.into()),
            };
            if turn.is_busy() {
                // The engine rejected a step. History is left as after an interrupt.
                turn.abandon(Vec::new());
            }
            let _ = turn.end_output();
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
            let mut saved = kept.save(ctx, head.clone(), &before, turn.history()).await;
            if saved.is_err() && kept.store.is_some() && !steps.is_cancelled() {
                // A cancellation is reported only once, so the second attempt runs. The store recognizes a turn that is
                // already saved.
                saved = kept.save(ctx, head, &before, turn.history()).await;
            }
            for key in [TURN, PENDING, RUNNING] {
                ctx.clear(key);
            }
            steps.tell_end(ended.as_ref().ok());
            // Only now, so that a failed save leaves no turn in progress behind.
            saved?;
            if steps.is_cancelled() {
                return Err(
                    TerminalError::new_with_code(CANCELLED, "the turn was cancelled").into()
                );
            }
            let reason = ended?;
            let answers = turn.history()[before.len().min(turn.history().len())..].iter();
            let last = answers.rev().find(|message| message.role == MessageRole::Assistant);
            let text = last.map(Message::text).unwrap_or_default();
            let (value, tries) = steps.value(&reason)?;
            Ok(TurnReply { turn: number, reason, text, value, tries, spent: turn.spent() })
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
        if kept.messages.is_empty() {
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
        let used = kept.bytes;
        let wanted = prompt.output.as_ref().map_or(0, json_size);
        if !self.0.limits.admits(used, json_size(&prompt.message) + wanted) {
            let most = self.0.limits.session_bytes;
            let message = format!(
                "the session has {used} bytes; the limit is {most}, including the prompt: clear it, or fork its beginning"
            );
            return Err(refuse(413, message).into());
        }
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
        let place = Place { session, agent, turn, within, watch, deadline };
        Ok((place, Box::pin(watching.map(|_| Happened::Interrupted))))
    }
}

/// Drives the turn to its end, through steered messages and external results.
fn converse<'x>(
    turn: &'x mut Turn,
    steps: &'x DurableSteps<'_, '_>,
) -> BoxFuture<'x, Result<FinishReason, HandlerError>> {
    Box::pin(async move {
        loop {
            // With `Stop::Steered`, the step was performed, but its outcome is kept until the messages are in
            // the turn. The next `drive` comes back to the step and gets the outcome.
            let reason = match drive(turn, steps).await {
                Ok(reason) => reason,
                Err(DriveError::Perform(Stop::Steered(messages))) => {
                    for message in messages {
                        // The inbox has checked the messages, and holds no more than a turn accepts.
                        let _ = turn.steer(message);
                    }
                    continue;
                }
                Err(DriveError::Perform(Stop::Terminal(error))) => return Err(error.into()),
                Err(DriveError::Failed(error)) => return Err(failed(&error).into()),
                Err(_) => return Err(TerminalError::new("no turn is in progress").into()),
            };
            let open = open_calls(turn);
            if open.is_empty() {
                return Ok(reason);
            }
            if let Err(by) = await_results(turn, steps, &open).await {
                return Ok(match by {
                    CutBy::Budget { reason } => reason,
                    _ => FinishReason::Interrupted,
                });
            }
            // The last result may have continued the turn by itself.
            if !turn.is_busy() {
                turn.continue_turn().map_err(|error| refused(500, &error))?;
            }
        }
    })
}

/// Returns the calls that wait for external results.
fn open_calls(turn: &Turn) -> Vec<StepCall> {
    let open = turn.calls().iter().enumerate().filter(|(_, call)| call.is_open());
    // `StepCall` has no constructor outside of its crate.
    let step_call = |(place, call): (usize, &oa_turn::Call)| {
        let key = turn.call_key(place)?;
        let call = serde_json::json!({ "place": place, "key": key, "call": call });
        serde_json::from_value(call).ok()
    };
    open.filter_map(step_call).collect()
}

/// Waits for the results of calls whose tools are external. On an early end, the remaining calls get an error as their
/// result.
async fn await_results(
    turn: &mut Turn,
    steps: &DurableSteps<'_, '_>,
    open: &[StepCall],
) -> Result<(), CutBy> {
    steps.wait_for(open, WaitsFor::Result).await;
    let mut left: Vec<(&str, &str)> =
        open.iter().map(|call| (&*call.call.block.id, &*call.call.block.name)).collect();
    let mut ended = Ok(());
    while !left.is_empty() && ended.is_ok() {
        match steps.next_given().await {
            Ok((PendingCall { id, tool, .. }, given)) => {
                left.retain(|(open, _)| *open != id);
                let (content, images, outcome) = match given {
                    Some(Given::Result(ExternalResult { content, is_error, images, .. })) => {
                        (content, images, if is_error { Outcome::Failed } else { Outcome::Ok })
                    }
                    _ => {
                        let body = ErrorBody::new(tool, "no result came in time");
                        (body.to_value(), Vec::new(), Outcome::Unknown)
                    }
                };
                // A call that already has a result keeps it.
                let _ = turn.add_result_with_images(&id, content, images, outcome);
            }
            Err(by) => ended = Err(by),
        }
    }
    for (id, tool) in left {
        let body = ErrorBody::new(tool, "cancelled: the turn ended before a result came");
        let _ = turn.add_result(id, body.to_value(), Outcome::Cancelled);
    }
    ended
}

fn refused(code: u16, error: &oa_turn::Error) -> TerminalError {
    TerminalError::new_with_code(code, error.to_string())
}

/// Returns the error of a turn that has failed.
fn failed(error: &ErrorRecord) -> TerminalError {
    let code = match &*error.kind {
        "blocked" => 403,
        "context_overflow" => 413,
        "invalid_input" => 400,
        "timeout" => 504,
        _ => 502,
    };
    TerminalError::new_with_code(code, format!("{}: {}", error.kind, error.message))
}
