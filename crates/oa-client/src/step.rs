//! The caller's code for the steps of a turn.

use std::fmt;
use std::sync::Arc;

use oa_chat::BoxFuture;
use oa_contain::{Contained, contain};
use oa_turn::{PlanStep, StepContext, StepPlan, StopOutcome};
use oa_types::Message;

use crate::error::{Error, ErrorKind, Result};

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

    /// Decides whether a turn ends after the calls of a step. A panic is an error, which ends the turn.
    pub(crate) fn check_stop(&self, seen: PlanStep) -> Result<StopOutcome> {
        let over = StepContext::new(seen);
        for stop in &self.stop {
            let stops = contain(|| stop(&over));
            if stops.map_err(|panic| failed("a stop condition", &panic))? {
                return Ok(StopOutcome::Stop);
            }
        }
        Ok(StopOutcome::Continue)
    }

    /// Plans a request. A panic is an error, which ends the turn.
    pub(crate) async fn plan(self, seen: PlanStep) -> Result<StepPlan> {
        let step = StepContext::new(seen);
        for before in &self.before {
            let before = Contained::new(before(step.clone()));
            before.await.map_err(|panic| failed("before_step", &panic))?;
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
