//! Calls. Each is a separate invocation, so that its result is recorded separately and any worker can run it.

use oa_client::AgentOptions;
use oa_tools::{Cancel, ErrorBody};
use oa_turn::{BudgetLeft, Call, CallResult, Fit, Perform, RunOutcome, RunStep, Spent, StepCall};
use oa_types::{Message, Outcome, json_size};
use restate_sdk::context::{CallFuture, DurableFuture, InvocationHandle, RequestTarget};
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agents::Shared;
use crate::contract::{SessionPrompt, TurnReply};
use crate::control::watched;
use crate::name;
use crate::place::{Durable, Happened, Place};
use crate::tap;

/// The maximum depth of nested turns.
pub(crate) const MAX_DEPTH: usize = 8;

/// The input of `AgentTool/run`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ToolCall {
    session: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    within: Vec<String>,
    turn: u64,
    /// One call.
    step: RunStep,
    watch: String,
    /// The maximum size of the result, in bytes.
    most: usize,
}

/// A call that has started.
pub(crate) struct Started {
    call: StepCall,
    invocation: Option<InvocationHandle>,
    /// The session of a sub-agent.
    sub_session: Option<String>,
}

impl Started {
    pub(crate) fn place(&self) -> usize {
        self.call.place
    }

    /// Returns the outcome of a call that has ended. If its invocation was killed, the call may have taken effect.
    pub(crate) fn ended(
        &self,
        ctx: &ObjectContext<'_>,
        outcome: Result<RunOutcome, TerminalError>,
    ) -> RunOutcome {
        if let Some(session) = &self.sub_session {
            // The outer conversation keeps only its result.
            let target = RequestTarget::object("Agent", session, "clear");
            // `send` takes effect at once; the future that it returns is only for the id of the invocation.
            drop(ctx.request::<(), ()>(target, ()).send());
        }
        outcome.unwrap_or_else(|_| RunOutcome::new(vec![CallResult::lost(&self.call)]))
    }

    /// Stops a call whose turn has ended early.
    pub(crate) fn stop(self, ctx: &ObjectContext<'_>) {
        if let Some(session) = &self.sub_session {
            let target = RequestTarget::object("Agent", session, "interrupt");
            drop(ctx.request::<(), ()>(target, ()).send());
        }
        if let Some(invocation) = self.invocation {
            // The turn of a sub-agent as well: an interrupt does not reach one that has not begun.
            invocation.cancel();
        }
        if let Some(session) = &self.sub_session {
            // This handler runs after the turn of that session is over.
            let target = RequestTarget::object("Agent", session, "clear");
            drop(ctx.request::<(), ()>(target, ()).send());
        }
    }
}

/// Returns true if a call is the turn of a sub-agent. The tool of this name only declares the call; its own code does
/// not run.
pub(crate) fn is_agent(shared: &Shared, call: &StepCall) -> bool {
    shared.named.contains_key(&call.call.block.name)
}

/// Returns true if a call may start the turn of a sub-agent: its arguments are valid, and no rule or mode denies it by
/// now.
pub(crate) fn may_start(options: &AgentOptions, call: &StepCall) -> bool {
    let Call { block, input, fit, .. } = &call.call;
    if *fit != Fit::Fits {
        return false;
    }
    let category = options.tool(&block.name).and_then(|tool| tool.category());
    options.permissions().denies(&block.name, input, category).is_none()
}

/// Starts a call of a turn: the turn of a sub-agent, or a tool. Also returns the future of its end.
pub(crate) async fn start<'ctx>(
    ctx: &ObjectContext<'ctx>,
    shared: &Shared,
    of: &Place,
    run: u64,
    step: &RunStep,
    call: &StepCall,
    left: BudgetLeft,
) -> (Started, Durable<'ctx, Happened>) {
    let most = shared.limits.share(step.calls.len());
    let place = call.place;
    if is_agent(shared, call) {
        let (session, invocation, reply) = start_agent(ctx, of, call, left).await;
        let tool = call.call.block.name.clone();
        let ended = reply.map(move |reply| {
            let outcome = Box::new(Ok(replied(reply, place, &tool, most)));
            Happened::Called { run, place, outcome }
        });
        let started = Started { call: call.clone(), invocation, sub_session: Some(session) };
        return (started, Box::pin(ended));
    }
    let mut step = step.clone();
    (step.calls, step.left) = (vec![call.clone()], left);
    let Place { session, agent, within, turn, watch, .. } = of.clone();
    let input = Json(ToolCall { session, agent, within, turn, step, watch, most });
    let target = RequestTarget::service("AgentTool", "run");
    let called = ctx.request::<_, Json<RunOutcome>>(target, input).call();
    let invocation = called.invocation_handle().await.ok();
    let ended = called.map(move |outcome| {
        let outcome = Box::new(outcome.map(|Json(outcome)| outcome));
        Happened::Called { run, place, outcome }
    });
    (Started { call: call.clone(), invocation, sub_session: None }, Box::pin(ended))
}

/// Starts the turn of a sub-agent, in its own session.
async fn start_agent<'ctx>(
    ctx: &ObjectContext<'ctx>,
    of: &Place,
    call: &StepCall,
    left: BudgetLeft,
) -> (String, Option<InvocationHandle>, Durable<'ctx, Result<Json<TurnReply>, TerminalError>>) {
    let session = name::of_sub_session(&of.session, call);
    let said = call.call.input["prompt"].as_str().unwrap_or_default();
    let mut prompt = SessionPrompt::new(Message::user(said));
    prompt.agent = Some(call.call.block.name.clone());
    (prompt.left, prompt.is_call) = (left, true);
    // An empty name is the worker's main agent.
    let outer = of.agent.clone().unwrap_or_default();
    prompt.within = of.within.iter().cloned().chain([outer]).collect();
    let target = RequestTarget::object("Agent", &*session, "prompt");
    let called = ctx.request::<_, Json<TurnReply>>(target, Json(prompt)).call();
    let invocation = called.invocation_handle().await.ok();
    (session, invocation, Box::pin(called))
}

/// Returns the result of a call from the reply of the sub-agent.
fn replied(
    reply: Result<Json<TurnReply>, TerminalError>,
    place: usize,
    tool: &str,
    most: usize,
) -> RunOutcome {
    let failed = |why: &str| {
        let body = ErrorBody::new(tool, "the agent failed").with_reason(why);
        (body.to_value(), Outcome::Failed)
    };
    let ((content, outcome), spent) = match reply {
        Ok(Json(reply)) => {
            // As the result of an agent that is a tool.
            let said = match reply {
                TurnReply { failure: Some(why), .. } => failed(&why),
                TurnReply { text, reason, .. } if text.is_empty() => {
                    failed(&format!("no answer: the agent ended with {reason}"))
                }
                TurnReply { text, reason, .. } if reason.is_complete() => {
                    (Value::from(text), Outcome::Ok)
                }
                TurnReply { text, reason, .. } => {
                    (json!({ "text": text, "incomplete": reason.as_str() }), Outcome::Ok)
                }
            };
            (said, reply.spent)
        }
        Err(error) => (failed(error.message()), Spent::default()),
    };
    let result = bounded(CallResult::new(place, content, outcome), tool, most);
    let mut outcome = RunOutcome::new(vec![result]);
    outcome.spent = spent;
    outcome
}

/// Runs tools.
pub(crate) struct AgentTool(pub(crate) Shared);

#[restate_sdk::service(client_visibility = "pub(crate)")]
impl AgentTool {
    /// Runs one call, at least once.
    #[handler]
    async fn run(
        &self,
        ctx: Context<'_>,
        input: Json<ToolCall>,
    ) -> Result<Json<RunOutcome>, HandlerError> {
        let Json(ToolCall { session, agent, within, turn, step, watch, most }) = input;
        let Some(call) = step.calls.first().cloned() else {
            return Err(TerminalError::new_with_code(400, "the step contains no call").into());
        };
        let options = match self.0.agent_within(agent.as_deref(), &within) {
            Some(Ok(options)) => options,
            Some(Err(error)) => {
                return Err(TerminalError::new_with_code(400, error.to_string()).into());
            }
            None => return Err(no_agent(agent.as_deref()).into()),
        };
        let name = name::of_call("call", &call);
        let (shared, of) = (self.0.clone(), name.clone());
        // The turn cancels this invocation when it ends early, and an operator may cancel it alone.
        let cancelled = tap::heard();
        let closure = move || async move {
            let cancel = Cancel::new();
            let steps = options
                .steps()
                .with_cancel(cancel.clone())
                .on_event(shared.publisher(&session, turn, &of));
            let work = steps.run(step);
            let work = watched(shared.control.clone(), &watch, &cancel, cancelled, work);
            let Ok(mut outcome) = work.await;
            let tool = &call.call.block.name;
            let results = outcome.results.into_iter();
            // Within the closure, so that the journal never holds more.
            outcome.results = results.map(|result| bounded(result, tool, most)).collect();
            // The turn decides whether it ends.
            outcome.cut = None;
            Ok(Json(outcome))
        };
        Ok(ctx.run(closure).name(name).await?)
    }
}

/// Returns the result, or an error in its place if it is too large to keep.
fn bounded(result: CallResult, tool: &str, most: usize) -> CallResult {
    let size = json_size(&result);
    if size <= most {
        return result;
    }
    let reason = format!("it is {size} bytes, and the limit is {most}; request less data");
    let body = ErrorBody::new(tool, "the result is too large").with_reason(reason);
    CallResult::new(result.place, body.to_value(), Outcome::Failed)
}

pub(crate) fn no_agent(name: Option<&str>) -> TerminalError {
    let message = format!("this worker has no agent {:?}", name.unwrap_or_default());
    TerminalError::new_with_code(404, message)
}
