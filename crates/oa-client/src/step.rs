//! The caller's code for the steps of a turn.

use std::fmt;
use std::sync::Arc;

use oa_chat::BoxFuture;
use oa_contain::{Contained, Panic, contain};
use oa_hooks::HookError;
use oa_turn::{PlanStep, StepContext, StepPlan, StopOutcome};
use oa_types::Message;

use crate::callback::{CallbackOutput, Sealed};
use crate::error::{self, Error, ErrorKind};

/// The caller's code for steps.
#[derive(Clone, Default)]
pub(crate) struct StepHooks {
    pub(crate) before: Vec<Arc<BeforeStep>>,
    pub(crate) stop: Vec<Arc<StopWhen>>,
    pub(crate) archive: Option<Arc<Archive>>,
}

type BeforeStep = Callback<StepContext>;
type Archive = Callback<Vec<Message>>;
type Callback<T> = dyn Fn(T) -> BoxFuture<Result<(), HookError>> + Send + Sync;
type StopWhen = dyn Fn(&StepContext) -> bool + Send + Sync;

impl StepHooks {
    /// Archives messages. An error ends the turn.
    pub(crate) async fn archive(&self, messages: &[Message]) -> error::Result<()> {
        let Some(archive) = self.archive.clone() else { return Ok(()) };
        finished("archive_context", Contained::new(archive(messages.to_vec())).await)
    }

    /// Decides whether a turn ends after the calls of a step. A panic is an error, which ends the turn.
    pub(crate) fn check_stop(&self, seen: PlanStep) -> error::Result<StopOutcome> {
        let over = StepContext::new(seen);
        for stop in &self.stop {
            if contain(|| stop(&over)).map_err(|panic| panicked("a stop condition", &panic))? {
                return Ok(StopOutcome::Stop);
            }
        }
        Ok(StopOutcome::Continue)
    }

    /// Plans a request. An error ends the turn.
    pub(crate) async fn plan(self, seen: PlanStep) -> error::Result<StepPlan> {
        let step = StepContext::new(seen);
        for before in &self.before {
            finished("before_step", Contained::new(before(step.clone())).await)?;
            if step.plan().end.is_some() {
                break;
            }
        }
        Ok(step.plan())
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

fn finished(what: &str, output: Result<Result<(), HookError>, Panic>) -> error::Result<()> {
    let output = output.map_err(|panic| panicked(what, &panic))?;
    output.map_err(|error| Error::new(ErrorKind::Hook, format!("{what} failed: {error}")))
}

fn panicked(what: &str, panic: &Panic) -> Error {
    let words = panic.excerpt().unwrap_or_default();
    Error::new(ErrorKind::Hook, format!("{what} panicked: {words}"))
}

/// Boxes a function, which runs when its future is polled.
pub(crate) fn boxed<T, F, Fut>(run: F) -> Arc<Callback<T>>
where
    T: Send + 'static,
    F: Fn(T) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: CallbackOutput> + Send + 'static,
{
    let run = Arc::new(run);
    Arc::new(move |seen| {
        let run = Arc::clone(&run);
        Box::pin(async move { run(seen).await.into_result() })
    })
}
