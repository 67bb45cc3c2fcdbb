use std::collections::BTreeSet;
use std::fmt;
use std::future;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use oa_types::contain::{Contained, Panic};

use crate::decision::{HookDecision, HookEvent, Verdict};
use crate::error::{Error, HookError};

/// What a hook answers: a decision, none, or that it cannot say.
pub(crate) type Answer<E> = Result<Option<HookDecision<E>>, HookError>;

pub(crate) type Running<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// One hook: the closure, and when it is asked.
pub(crate) struct Handler<E: HookEvent> {
    added: &'static Location<'static>,
    call: Arc<dyn Fn(E) -> Running<Answer<E>> + Send + Sync>,
    timeout: Option<Duration>,
    /// The only tools that it is asked about; `None` is all.
    tools: Option<BTreeSet<String>>,
}

impl<E: HookEvent> Handler<E> {
    #[track_caller]
    pub(crate) fn new<F, Fut>(handler: F) -> Self
    where
        F: Fn(E) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer<E>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let call = move |event| -> Running<Answer<E>> {
            let handler = Arc::clone(&handler);
            // The closure, too, runs inside of the future, where its panic is caught.
            Box::pin(async move { handler(event).await })
        };
        Self { added: Location::caller(), call: Arc::new(call), timeout: None, tools: None }
    }

    /// Lowers the timeout to `limit`.
    pub(crate) fn limit_time(&mut self, limit: Duration) {
        self.timeout = Some(self.timeout.map_or(limit, |timeout| timeout.min(limit)));
    }

    /// Lowers the tools to those of `names`.
    pub(crate) fn limit_tools(&mut self, names: &BTreeSet<String>) {
        match &mut self.tools {
            Some(tools) => tools.retain(|tool| names.contains(tool)),
            None => self.tools = Some(names.clone()),
        }
    }

    /// Whether it is asked about events of this tool; a prompt is about none.
    pub(crate) fn concerns(&self, tool: Option<&str>) -> bool {
        match (&self.tools, tool) {
            (Some(tools), Some(tool)) => tools.contains(tool),
            (None, _) | (_, None) => true,
        }
    }

    /// Asks the hook.
    pub(crate) async fn ask<S, F>(&self, event: E, sleep: &S) -> Result<Verdict<E::Changed>, Error>
    where
        S: Fn(Duration) -> F + Sync,
        F: Future<Output = ()> + Send,
    {
        let answer = Contained::new((self.call)(event));
        let answered = match self.timeout {
            Some(limit) => within(answer, sleep(limit)).await.ok_or(limit),
            None => Ok(answer.await),
        };
        match answered {
            Ok(Ok(Ok(decision))) => Ok(decision.map_or(Verdict::Allow, HookDecision::into_verdict)),
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

/// Waits for an answer until `end`; an answer that is there in the same moment counts.
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

/// What a panic said, as the model is told it.
pub(crate) fn message_of(panic: &Panic) -> String {
    panic.excerpt().unwrap_or_else(|| "no message".to_owned())
}
