use std::time::Duration;

use serde_json::Value;

use crate::decision::{Change, HookEvent, Verdict};
use crate::error::Error;
use crate::event::{PostToolUseEvent, PreToolUseEvent, UserPromptSubmitEvent};
use crate::handler::Handler;
use crate::hooks::Hooks;

/// What an agent asks.
///
/// `sleep` stands in for a clock, which this crate does not have: it returns a future that completes after
/// the given time. It is called once for each hook that has a timeout. `tokio::time::sleep` fits as it
/// is. Hooks run on the task that polls, one after the other; a panic of theirs does not leave these
/// functions (unless the program aborts on panics).
impl Hooks {
    /// Asks the hooks whether a tool may run, and with what.
    ///
    /// A hook that panics blocks the call, with the panic's message in the reason.
    ///
    /// # Errors
    ///
    /// `Failed` and `TimedOut`: a hook could not decide. The tool must not run, and the turn ends.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the hook that runs; no further hook is asked.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::{pin::pin, task::{Context, Poll, Waker}};
    /// use oa_hooks::{History, HookDecision, Hooks, PreToolUseEvent, Verdict};
    /// use serde_json::json;
    ///
    /// let hooks = Hooks::new()
    ///     .add_pre_tool_use(|_| async { Some(HookDecision::block("nothing is allowed today")) });
    ///
    /// # let check = async {
    /// // With tokio: `hooks.pre_tool_use(event, tokio::time::sleep)`.
    /// let never = |_| std::future::pending();
    /// let event = PreToolUseEvent::new("add", json!({"a": 1}), "call_1", History::default());
    /// let verdict = hooks.pre_tool_use(event, never).await?;
    /// assert_eq!(verdict, Verdict::Block { reason: "nothing is allowed today".into() });
    /// # Ok::<(), oa_hooks::Error>(())
    /// # };
    /// # let polled = pin!(check).poll(&mut Context::from_waker(Waker::noop()));
    /// # assert!(matches!(polled, Poll::Ready(Ok(()))));
    /// ```
    pub async fn pre_tool_use<S, F>(
        &self,
        event: PreToolUseEvent,
        sleep: S,
    ) -> Result<Verdict<Value>, Error>
    where
        S: Fn(Duration) -> F + Send + Sync,
        F: Future<Output = ()> + Send,
    {
        let verdict = first_verdict(&self.pre_tool_use, event, &sleep).await;
        verdict.or_else(|error| match error.panic_message() {
            Some(message) => Ok(Verdict::Block { reason: format!("a hook panicked: {message}") }),
            None => Err(error),
        })
    }

    /// Asks the hooks what the model is to see in place of a result; `None` is the result as it is.
    ///
    /// # Errors
    ///
    /// `Failed`, `Panicked` and `TimedOut`: a hook could not decide. The result stays as it is, and
    /// the turn ends.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the hook that runs; no further hook is asked.
    pub async fn post_tool_use<S, F>(
        &self,
        event: PostToolUseEvent,
        sleep: S,
    ) -> Result<Option<Change<Value>>, Error>
    where
        S: Fn(Duration) -> F + Send + Sync,
        F: Future<Output = ()> + Send,
    {
        match first_verdict(&self.post_tool_use, event, &sleep).await? {
            Verdict::Modify(change) => Ok(Some(change)),
            // What has happened is not blocked: no decision about this event says so.
            Verdict::Allow | Verdict::Block { .. } => Ok(None),
        }
    }

    /// Asks the hooks whether a prompt may be sent, and which.
    ///
    /// # Errors
    ///
    /// `Failed`, `Panicked` and `TimedOut`: a hook could not decide. The prompt must not be sent.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the hook that runs; no further hook is asked.
    pub async fn user_prompt_submit<S, F>(
        &self,
        event: UserPromptSubmitEvent,
        sleep: S,
    ) -> Result<Verdict<String>, Error>
    where
        S: Fn(Duration) -> F + Send + Sync,
        F: Future<Output = ()> + Send,
    {
        first_verdict(&self.user_prompt_submit, event, &sleep).await
    }
}

/// Asks one after the other until one decides something.
async fn first_verdict<E, S, F>(
    handlers: &[Handler<E>],
    event: E,
    sleep: &S,
) -> Result<Verdict<E::Changed>, Error>
where
    E: HookEvent,
    S: Fn(Duration) -> F + Sync,
    F: Future<Output = ()> + Send,
{
    let concerned = handlers.iter().filter(|handler| handler.concerns(event.tool()));
    let concerned: Vec<_> = concerned.collect();
    let Some((last, others)) = concerned.split_last() else { return Ok(Verdict::Allow) };
    for handler in others {
        let verdict = handler.ask(event.clone(), sleep).await?;
        if verdict != Verdict::Allow {
            return Ok(verdict);
        }
    }
    last.ask(event, sleep).await
}
