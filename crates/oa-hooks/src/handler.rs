use std::fmt;
use std::future;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use oa_contain::{Contained, Panic};

use crate::decision::{HookDecision, HookEvent, HookOutcome};
use crate::error::{Error, HookError};
use crate::rule::Pattern;

/// The result of a hook: a decision, no opinion, or an error.
pub(crate) type HookResult<E> = Result<Option<HookDecision<E>>, HookError>;

pub(crate) type Running<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A registered hook: the closure, its timeout and its tools.
pub(crate) struct Handler<E: HookEvent> {
    added: &'static Location<'static>,
    call: Arc<dyn Fn(E) -> Running<HookResult<E>> + Send + Sync>,
    timeout: Option<Duration>,
    /// The restrictions to tools, all of which apply.
    tools: Vec<Arc<[Pattern]>>,
}

impl<E: HookEvent> Handler<E> {
    #[track_caller]
    pub(crate) fn new<F, Fut>(handler: F) -> Self
    where
        F: Fn(E) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HookResult<E>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let call = move |event| -> Running<HookResult<E>> {
            let handler = Arc::clone(&handler);
            // Call the closure inside the future too, where its panic is caught.
            Box::pin(async move { handler(event).await })
        };
        Self { added: Location::caller(), call: Arc::new(call), timeout: None, tools: Vec::new() }
    }

    /// Lowers the timeout to at most `limit`.
    pub(crate) fn limit_time(&mut self, limit: Duration) {
        self.timeout = Some(self.timeout.map_or(limit, |timeout| timeout.min(limit)));
    }

    /// Restricts the hook to tools that match one of the patterns, and all earlier restrictions.
    pub(crate) fn limit_tools(&mut self, tools: &Arc<[Pattern]>) {
        self.tools.push(Arc::clone(tools));
    }

    /// Returns the patterns of all restrictions.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().flat_map(|tools| tools.iter()).map(Pattern::as_str)
    }

    /// Returns true if the hook is asked about events of this tool. A prompt involves no tool.
    pub(crate) fn concerns(&self, tool: Option<&str>) -> bool {
        let Some(tool) = tool else { return true };
        self.tools.iter().all(|tools| tools.iter().any(|pattern| pattern.fits(tool)))
    }

    /// Runs the hook.
    pub(crate) async fn ask<S, F>(
        &self,
        event: E,
        sleep: &S,
    ) -> Result<HookOutcome<E::Changed>, Error>
    where
        S: Fn(Duration) -> F + Sync,
        F: Future<Output = ()> + Send,
    {
        let answer = Contained::new((self.call)(event));
        // When the time is up, `within` drops the future; `Contained` catches a panic in its destructor.
        let answered = match self.timeout {
            Some(limit) => within(answer, sleep(limit)).await.ok_or(limit),
            None => Ok(answer.await),
        };
        match answered {
            // From the outside in: in time, without a panic, without an error of its own.
            Ok(Ok(Ok(decision))) => {
                Ok(decision.map_or(HookOutcome::Allow, HookDecision::into_outcome))
            }
            Ok(Ok(Err(error))) => Err(Error::failed(E::NAME, self.added, error)),
            Ok(Err(panic)) => Err(Error::panicked(E::NAME, self.added, message_of(&panic))),
            Err(limit) => Err(Error::timed_out(E::NAME, self.added, limit)),
        }
    }
}

impl<E: HookEvent> Clone for Handler<E> {
    fn clone(&self) -> Self {
        Self {
            added: self.added,
            call: Arc::clone(&self.call),
            timeout: self.timeout,
            tools: self.tools.clone(),
        }
    }
}

impl<E: HookEvent> fmt::Debug for Handler<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler")
            .field("added", &format_args!("{}", self.added))
            .field("timeout", &self.timeout)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

/// Waits for an answer until `end`. An answer ready at the same moment counts.
pub(crate) async fn within<T>(
    answer: impl Future<Output = T>,
    end: impl Future<Output = ()>,
) -> Option<T> {
    let mut answer = pin!(answer);
    let mut end = pin!(end);
    future::poll_fn(|cx| match answer.as_mut().poll(cx) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending => end.as_mut().poll(cx).map(|()| None),
    })
    .await
}

/// Returns a panic message as the model reads it.
pub(crate) fn message_of(panic: &Panic) -> String {
    panic.excerpt().unwrap_or_else(|| "no message".to_owned())
}
