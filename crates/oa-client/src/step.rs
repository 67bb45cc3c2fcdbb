//! The steps of a turn, as the caller's code sees and plans them.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oa_chat::BoxFuture;
use oa_contain::{Contained, contain};
use oa_turn::{Call, PlanStep, StepPlan};
use oa_types::wire::ToolChoice;
use oa_types::{FinishReason, Message, Usage};

use crate::error::{Error, ErrorKind, Result};

/// A step of a turn: one request, its answer, and the calls of the answer.
///
/// Functions set with [`before_step`](crate::AgentOptionsBuilder::before_step) see it before the request and can plan
/// it. Conditions set with [`stop_when`](crate::AgentOptionsBuilder::stop_when) see it after its calls.
///
/// Clones are handles to the same step. Changes apply to this step only.
#[derive(Clone)]
pub struct StepContext(Arc<Inner>);

struct Inner {
    seen: PlanStep,
    /// The number of the coming request, or of the completed one.
    number: u32,
    plan: Mutex<StepPlan>,
}

impl StepContext {
    fn new(seen: PlanStep, number: u32) -> Self {
        Self(Arc::new(Inner { seen, number, plan: Mutex::default() }))
    }

    /// Returns the number of the step within its turn, from 1.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.0.number
    }

    /// Returns the conversation so far, without the system prompt.
    #[must_use]
    pub fn history(&self) -> &[Message] {
        &self.0.seen.history
    }

    /// Returns the usage of this turn so far: all tokens that the server reported, and their cost.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        let PlanStep { tokens, cost, .. } = &self.0.seen;
        usage.total_tokens = Some(*tokens).filter(|tokens| *tokens > 0);
        usage.cost = Some(*cost).filter(|cost| *cost > oa_types::Cost::ZERO);
        usage
    }

    /// Returns the calls of the last answer of this turn, with their results.
    #[must_use]
    pub fn last_calls(&self) -> &[Call] {
        &self.0.seen.last_calls
    }
}

#[expect(
    clippy::return_self_not_must_use,
    reason = "the change is in the step, of which a handle is returned"
)]
impl StepContext {
    /// Sets the model of this request.
    pub fn model(&self, model: impl Into<String>) -> Self {
        self.change(|plan| plan.model = Some(model.into()))
    }

    /// Offers only these tools. A call to any other tool is answered with "no such tool".
    pub fn only_tools(&self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        self.change(|plan| plan.only_tools = Some(names))
    }

    /// Sets which tools the model may or must call. A choice that names a tool that is not offered is ignored.
    pub fn tool_choice(&self, choice: impl Into<ToolChoice>) -> Self {
        self.change(|plan| plan.tool_choice = Some(choice.into()))
    }

    /// Appends instructions to the system prompt of this request. Several calls append in order.
    pub fn instructions(&self, text: impl AsRef<str>) -> Self {
        self.change(|plan| {
            let instructions = plan.instructions.get_or_insert_default();
            if !instructions.is_empty() {
                instructions.push_str("\n\n");
            }
            instructions.push_str(text.as_ref());
        })
    }

    /// Ends the turn for this reason instead of sending the request. History does not change.
    pub fn end(&self, reason: impl Into<FinishReason>) -> Self {
        self.change(|plan| plan.end = Some(reason.into()))
    }

    fn change(&self, change: impl FnOnce(&mut StepPlan)) -> Self {
        change(&mut self.plan());
        self.clone()
    }

    fn plan(&self) -> MutexGuard<'_, StepPlan> {
        self.0.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for StepContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepContext")
            .field("number", &self.number())
            .field("plan", &*self.plan())
            .finish_non_exhaustive()
    }
}

/// The caller's code for steps.
#[derive(Clone, Default)]
pub(crate) struct StepHooks {
    before: Vec<Arc<BeforeStep>>,
    stop: Vec<Arc<StopWhen>>,
    pub(crate) archive: Option<Arc<Archive>>,
}

type BeforeStep = dyn Fn(StepContext) -> BoxFuture<()> + Send + Sync;
type Archive = dyn Fn(Vec<Message>) -> BoxFuture<()> + Send + Sync;
type StopWhen = dyn Fn(&StepContext) -> bool + Send + Sync;

impl StepHooks {
    pub(crate) fn add_before<F, Fut>(&mut self, plan: F)
    where
        F: Fn(StepContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Send> + Send + 'static,
    {
        self.before.push(boxed(plan));
    }

    pub(crate) fn add_stop(&mut self, stop: impl Fn(&StepContext) -> bool + Send + Sync + 'static) {
        self.stop.push(Arc::new(stop));
    }

    /// Archives messages. A panic is an error, which ends the turn.
    pub(crate) async fn archive(&self, messages: &[Message]) -> Result<()> {
        let Some(archive) = self.archive.clone() else { return Ok(()) };
        let archived = Contained::new(archive(messages.to_vec())).await;
        archived.map_err(|panic| failed("archive_context", &panic))
    }

    /// Plans a request. A panic is an error, which ends the turn.
    pub(crate) async fn plan(self, seen: PlanStep) -> Result<StepPlan> {
        let number = seen.step;
        if !seen.last_calls.is_empty() {
            let over = StepContext::new(seen.clone(), number - 1);
            for stop in &self.stop {
                let stops = contain(|| stop(&over));
                if stops.map_err(|panic| failed("a stop condition", &panic))? {
                    over.end(FinishReason::Stopped);
                    return Ok(over.plan().clone());
                }
            }
        }
        let step = StepContext::new(seen, number);
        for before in &self.before {
            let before = Contained::new(before(step.clone()));
            before.await.map_err(|panic| failed("before_step", &panic))?;
            if step.plan().end.is_some() {
                break;
            }
        }
        let plan = step.plan().clone();
        Ok(plan)
    }
}

impl fmt::Debug for StepHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepHooks")
            .field("before", &self.before.len())
            .field("stop", &self.stop.len())
            .field("archive", &self.archive.is_some())
            .finish()
    }
}

fn failed(what: &str, panic: &oa_contain::Panic) -> Error {
    let words = panic.excerpt().unwrap_or_default();
    Error::new(ErrorKind::Hook, format!("{what} panicked: {words}"))
}

/// Boxes a function, which runs when its future is polled. Its return value is dropped.
pub(crate) fn boxed<T, F, Fut>(run: F) -> Arc<dyn Fn(T) -> BoxFuture<()> + Send + Sync>
where
    T: Send + 'static,
    F: Fn(T) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: Send> + Send + 'static,
{
    let run = Arc::new(run);
    Arc::new(move |seen| {
        let run = Arc::clone(&run);
        Box::pin(async move { drop(run(seen).await) })
    })
}
