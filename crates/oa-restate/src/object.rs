//! The virtual object of a session.

use std::pin::Pin;

use oa_client::AgentOptions;
use oa_tools::ErrorBody;
use oa_turn::{CutBy, DriveError, Fit, StepCall, Turn, drive};
use oa_types::{ErrorRecord, FinishReason, Message, MessageRole, Outcome, ToolUseBlock};
use restate_sdk::context::{
    CallFuture, ContextReadState, ContextWriteState, DurableFuture, RequestTarget,
};
use restate_sdk::prelude::*;
use serde::de::DeserializeOwned;

use crate::agents::{Shared, now_in_micros};
use crate::calls::{MAX_DEPTH, no_agent};
use crate::contract::{
    Approve, Deny, ExternalResult, Fork, Given, PendingCall, SessionPrompt, Status, TurnReply,
    TurnStatus, WaitsFor,
};
use crate::control::SIGNAL;
use crate::layout::{HEAD, Head, PENDING, RUNNING, STEERED, TURN, Write, size};
use crate::place::{CANCELLED, Durable, Happened, Place};
use crate::steps::{DurableSteps, Stop};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

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
        Ok(Json(Reader::Shared(&ctx).turns(&keys).await?))
    }

    /// Returns what is known about the session.
    #[handler]
    async fn status(&self, ctx: SharedObjectContext<'_>) -> Result<Json<Status>, HandlerError> {
        let reader = Reader::Shared(&ctx);
        let head = reader.head().await?;
        let turn = reader.get::<TurnStatus>(TURN).await?;
        let pending = reader.get::<Vec<PendingCall>>(PENDING).await?.unwrap_or_default();
        let Head { prompts, messages, bytes, .. } = head;
        Ok(Json(Status { prompts, messages, bytes, turn, pending }))
    }

    /// Lets a call run that waits for approval.
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
                let head = Reader::Shared(&ctx).head().await?;
                let options = self.options(&head)?;
                let block = ToolUseBlock::new(&*id, &*call.tool, input);
                match oa_turn::Perform::prepare(&options.steps(), &block) {
                    (input, Fit::Fits) => input,
                    (_, fit) => {
                        let why = if let Fit::Unfit(why) = fit { why } else { String::new() };
                        let message =
                            format!("the input does not fit the tool {}: {why}", call.tool);
                        return Err(TerminalError::new_with_code(400, message).into());
                    }
                }
            }
        };
        ctx.resolve_awakeable(&call.awakeable, Json(Given::Approved { input }));
        Ok(())
    }

    /// Refuses a call that waits for approval.
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
        let (size, most) = (size(&result), self.0.limits.share(1));
        if size > most {
            let message = format!("the result takes {size} bytes, and at most {most} are kept");
            return Err(TerminalError::new_with_code(413, message).into());
        }
        ctx.resolve_awakeable(&call.awakeable, Json(Given::Result(result)));
        Ok(())
    }

    /// Ends the turn in progress. Returns false if there is none.
    #[handler]
    async fn interrupt(&self, ctx: SharedObjectContext<'_>) -> Result<Json<bool>, HandlerError> {
        let Some(watch) = Reader::Shared(&ctx).get::<String>(RUNNING).await? else {
            return Ok(Json(false));
        };
        ctx.invocation_handle(watch).signal(SIGNAL).resolve(true);
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
        let history = Reader::Object(&ctx).turns(&keys).await?;
        (head.turns, head.agent) = (0, None);
        save(&ctx, head.save(&history, &[]));
        for key in [TURN, PENDING, RUNNING, STEERED] {
            ctx.clear(key);
        }
        Ok(())
    }

    /// Fills an empty session with messages of another one.
    #[handler]
    async fn fork(&self, ctx: ObjectContext<'_>, input: Json<Fork>) -> Result<(), HandlerError> {
        let Json(Fork { from, keep }) = input;
        let head = Reader::Object(&ctx).head().await?;
        if head.messages > 0 {
            let message = "the session is not empty: clear it first";
            return Err(TerminalError::new_with_code(409, message).into());
        }
        let target = RequestTarget::object("Agent", from, "history");
        let Json(mut messages) = ctx.request::<(), Json<Vec<Message>>>(target, ()).call().await?;
        messages.truncate(keep.unwrap_or(usize::MAX));
        // A call that was cut off from its result is answered.
        let messages = oa_turn::repair(messages);
        save(&ctx, head.save(&[], &messages));
        Ok(())
    }
}

impl Agent {
    fn options(&self, head: &Head) -> Result<&AgentOptions, HandlerError> {
        let name = head.agent.as_deref();
        Ok(self.0.agent(name).ok_or_else(|| no_agent(name))?)
    }

    /// Runs one turn.
    fn turn<'x>(
        &'x self,
        ctx: &'x ObjectContext<'_>,
        prompt: SessionPrompt,
    ) -> BoxFuture<'x, Result<TurnReply, HandlerError>> {
        Box::pin(async move {
            let mut head = Reader::Object(ctx).head().await?;
            let keys: Vec<String> = head.turn_keys().collect();
            let history = Reader::Object(ctx).turns(&keys).await?;
            let options = self.admit(&mut head, &prompt)?.clone();
            head.prompts += 1;
            head.turns += 1;
            let (place, interrupted) = self.begin(ctx, &head, &prompt, &options).await?;
            let watch = place.watch.clone();
            let mut turn = options.turn().with_key_seed(ctx.invocation_id());
            turn.set_history(history).map_err(|error| refused(400, &error))?;
            turn.set_outer_budget(prompt.left);
            let before = turn.history().clone();
            let steered = Reader::Object(ctx).get::<Vec<Message>>(STEERED).await?;
            for message in steered.into_iter().flatten() {
                // Only what could enter was kept.
                let _ = turn.steer(message);
            }
            turn.prompt(prompt.message).map_err(|error| refused(400, &error))?;
            let steps = DurableSteps::new(ctx, &self.0, &options, place, interrupted);
            let ended = converse(&mut turn, &steps).await;
            ctx.invocation_handle(watch).signal(SIGNAL).resolve(false);
            let waiting: Vec<Message> = turn.steered().cloned().collect();
            match waiting.is_empty() {
                true => ctx.clear(STEERED),
                false => ctx.set(STEERED, Json(waiting)),
            }
            let number = head.prompts;
            save(ctx, head.save(&before, turn.history()));
            for key in [TURN, PENDING, RUNNING] {
                ctx.clear(key);
            }
            steps.tell_end(ended.as_ref().ok());
            if steps.is_cancelled() {
                return Err(
                    TerminalError::new_with_code(CANCELLED, "the turn was cancelled").into()
                );
            }
            let reason = ended?;
            let answers = turn.history()[before.len().min(turn.history().len())..].iter();
            let last = answers.rev().find(|message| message.role == MessageRole::Assistant);
            let text = last.map(Message::text).unwrap_or_default();
            Ok(TurnReply { turn: number, reason, text, spent: turn.spent() })
        })
    }

    /// Checks that the session takes the prompt, and returns its agent.
    fn admit(
        &self,
        head: &mut Head,
        prompt: &SessionPrompt,
    ) -> Result<&AgentOptions, HandlerError> {
        let refuse = |code, message: String| TerminalError::new_with_code(code, message);
        if head.messages == 0 {
            head.agent.clone_from(&prompt.agent);
        } else if prompt.agent.is_some() && prompt.agent != head.agent {
            let message = format!("the session belongs to the agent {:?}", head.agent);
            return Err(refuse(409, message).into());
        }
        let options = self.options(head)?;
        if prompt.depth > MAX_DEPTH {
            let message = format!("more than {MAX_DEPTH} agents call each other");
            return Err(refuse(400, message).into());
        }
        let used = usize::try_from(head.bytes).unwrap_or(usize::MAX);
        if !self.0.limits.admits(used, size(&prompt.message)) {
            let most = self.0.limits.session_bytes;
            let message = format!(
                "the session holds {used} bytes, and at most {most} with the prompt: clear it, or fork its beginning"
            );
            return Err(refuse(413, message).into());
        }
        let most = options.turn_options().max_turns.map_or(u64::MAX, u64::from);
        if head.turns >= most {
            return Err(refuse(403, format!("the limit of {most} turns has been reached")).into());
        }
        Ok(options)
    }

    /// Makes the turn interruptible, and tells readers that it is in progress.
    async fn begin<'ctx>(
        &self,
        ctx: &ObjectContext<'ctx>,
        head: &Head,
        prompt: &SessionPrompt,
        options: &AgentOptions,
    ) -> Result<(Place, Durable<'ctx, Happened>), HandlerError> {
        let target = RequestTarget::service("AgentInterrupt", "wait");
        // With a key, the engine lets others wait for the invocation as well.
        let watching =
            ctx.request::<(), bool>(target, ()).idempotency_key(ctx.invocation_id()).call();
        let watch = watching.invocation_handle().await?.invocation_id().to_owned();
        ctx.set(RUNNING, Json(watch.clone()));
        let invocation = ctx.invocation_id().to_owned();
        ctx.set(TURN, Json(TurnStatus { turn: head.prompts, invocation, requests: 0 }));
        let deadline = match options.max_run_time() {
            None => None,
            Some(limit) => {
                let limit = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
                let now = ctx.run(|| async { Ok(now_in_micros()) }).name("now").await?;
                Some(now.saturating_add(limit))
            }
        };
        let place = Place {
            session: ctx.key().to_owned(),
            agent: head.agent.clone(),
            turn: head.prompts,
            depth: prompt.depth,
            watch,
            deadline,
        };
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
            let reason = match drive(turn, steps).await {
                Ok(reason) => reason,
                Err(DriveError::Perform(Stop::Steered(messages))) => {
                    for message in messages {
                        // The inbox has checked it, and holds no more than a turn takes.
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
            if !turn.is_busy() {
                turn.continue_turn().map_err(|error| refused(500, &error))?;
            }
        }
    })
}

/// Returns the calls that wait for results from outside.
fn open_calls(turn: &Turn) -> Vec<StepCall> {
    let open = turn.calls().iter().enumerate().filter(|(_, call)| call.is_open());
    let step_call = |(place, call): (usize, &oa_turn::Call)| {
        let key = turn.call_key(place)?;
        let call = serde_json::json!({ "place": place, "key": key, "call": call });
        serde_json::from_value(call).ok()
    };
    open.filter_map(step_call).collect()
}

/// Waits for the results of calls whose tools are external. On an early end, the rest is answered with an error.
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
                // A call that is answered already keeps its result.
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

/// A context that reads state. Its futures are boxed: the compiler cannot see that those of the engine's traits are `Send`
/// for all lifetimes.
#[derive(Clone, Copy)]
enum Reader<'a> {
    Object(&'a ObjectContext<'a>),
    Shared(&'a SharedObjectContext<'a>),
}

impl<'a> Reader<'a> {
    /// Returns the value of a key.
    fn get<T: DeserializeOwned + Send + 'static>(
        self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<T>, TerminalError>> {
        Box::pin(async move {
            let value = match self {
                Self::Object(ctx) => ctx.get::<Json<T>>(key).await?,
                Self::Shared(ctx) => ctx.get::<Json<T>>(key).await?,
            };
            Ok(value.map(|Json(value)| value))
        })
    }

    /// Reads the head of a session.
    async fn head(self) -> Result<Head, HandlerError> {
        let head = self.get::<Head>(HEAD).await?.unwrap_or_default();
        head.check().map_err(|error| TerminalError::new_with_code(409, error.to_string()))?;
        Ok(head)
    }

    /// Reads the messages of finished turns.
    async fn turns(self, keys: &'a [String]) -> Result<Vec<Message>, HandlerError> {
        let mut messages = Vec::new();
        for key in keys {
            let Some(turn) = self.get::<Vec<Message>>(key).await? else {
                // The session is being shortened: the engine tries again.
                return Err(format!("the state has no {key}").into());
            };
            messages.extend(turn);
        }
        Ok(messages)
    }

    /// Returns the call that waits under this id.
    async fn waiting(self, id: &str, waits_for: WaitsFor) -> Result<PendingCall, HandlerError> {
        let pending = self.get::<Vec<PendingCall>>(PENDING).await?.unwrap_or_default();
        let is_it = |call: &PendingCall| call.id == id && call.waits_for == waits_for;
        let none = || TerminalError::new_with_code(404, format!("no call {id:?} waits for this"));
        Ok(pending.into_iter().find(is_it).ok_or_else(none)?)
    }
}

fn save(ctx: &ObjectContext<'_>, writes: Vec<Write>) {
    for write in writes {
        match write {
            Write::Clear(key) => ctx.clear(&key),
            Write::Head(head) => ctx.set(HEAD, Json(head)),
            Write::Turn(key, messages) => ctx.set(&key, Json(messages)),
        }
    }
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
