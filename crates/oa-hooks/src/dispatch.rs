use std::time::Duration;

use serde_json::Value;

use crate::decision::{AnswerDecision, Change, ChangedResult, HookEvent, HookOutcome};
use crate::error::Error;
use crate::event::{AnswerEvent, PostToolUseEvent, PreToolUseEvent, UserPromptSubmitEvent};
use crate::handler::Handler;
use crate::hooks::Hooks;

/// The hook points of an agent.
///
/// `sleep` replaces a clock, which this crate does not have: it returns a future that completes after the given
/// time, such as `tokio::time::sleep`. It is called once for each hook with a timeout. Hooks run sequentially
/// on the polling task. Their panics are caught (unless the program aborts on panic).
impl Hooks {
    /// Asks the hooks whether a tool may run, and with which input.
    ///
    /// A hook that panics blocks the call; the reason contains the panic message.
    ///
    /// # Errors
    ///
    /// `Failed` and `TimedOut` if a hook could not decide. The tool must not run, and the turn ends.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the running hook; no further hook is asked.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::{pin::pin, task::{Context, Poll, Waker}};
    /// use oa_hooks::{History, HookDecision, Hooks, PreToolUseEvent, HookOutcome};
    /// use serde_json::json;
    ///
    /// let hooks = Hooks::new()
    ///     .add_pre_tool_use(|_| async { Some(HookDecision::block("nothing is allowed today")) });
    ///
    /// # let check = async {
    /// // With tokio: `hooks.pre_tool_use(event, tokio::time::sleep)`.
    /// let never = |_| std::future::pending();
    /// let event = PreToolUseEvent::new("add", json!({"a": 1}), "call_1", History::default());
    /// let outcome = hooks.pre_tool_use(event, never).await?;
    /// assert_eq!(outcome, HookOutcome::Block { reason: "nothing is allowed today".into() });
    /// # Ok::<(), oa_hooks::Error>(())
    /// # };
    /// # let polled = pin!(check).poll(&mut Context::from_waker(Waker::noop()));
    /// # assert!(matches!(polled, Poll::Ready(Ok(()))));
    /// ```
    pub async fn pre_tool_use<S, F>(
        &self,
        event: PreToolUseEvent,
        sleep: S,
    ) -> Result<HookOutcome<Value>, Error>
    where
        S: Fn(Duration) -> F + Send + Sync,
        F: Future<Output = ()> + Send,
    {
        let outcome = first_outcome(&self.pre_tool_use, event, &sleep).await;
        // A panic is no error at this point only: the call does not run, and the model can go on without it.
        outcome.or_else(|error| match error.panic_message() {
            Some(message) => {
                Ok(HookOutcome::Block { reason: format!("a hook panicked: {message}") })
            }
            None => Err(error),
        })
    }

    /// Asks the hooks for a result to show the model instead; `None` keeps the original.
    ///
    /// # Errors
    ///
    /// `Failed`, `Panicked` and `TimedOut` if a hook could not decide. The result stays unchanged, and the turn
    /// ends.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the running hook; no further hook is asked.
    pub async fn post_tool_use<S, F>(
        &self,
        event: PostToolUseEvent,
        sleep: S,
    ) -> Result<Option<Change<ChangedResult>>, Error>
    where
        S: Fn(Duration) -> F + Send + Sync,
        F: Future<Output = ()> + Send,
    {
        match first_outcome(&self.post_tool_use, event, &sleep).await? {
            HookOutcome::Modify(change) => Ok(Some(change)),
            // No decision about this event blocks, because the call has already happened.
            HookOutcome::Allow | HookOutcome::Block { .. } => Ok(None),
        }
    }

    /// Asks the hooks whether a prompt may be sent, and with which text.
    ///
    /// # Errors
    ///
    /// `Failed`, `Panicked` and `TimedOut` if a hook could not decide. The prompt must not be sent.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the running hook; no further hook is asked.
    pub async fn user_prompt_submit<S, F>(
        &self,
        event: UserPromptSubmitEvent,
        sleep: S,
    ) -> Result<HookOutcome<String>, Error>
    where
        S: Fn(Duration) -> F + Send + Sync,
        F: Future<Output = ()> + Send,
    {
        first_outcome(&self.user_prompt_submit, event, &sleep).await
    }

    /// Asks the hooks whether a turn may end with an answer.
    ///
    /// # Errors
    ///
    /// `Failed`, `Panicked` and `TimedOut` if a hook could not decide. The answer must not be used.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the running hook; no further hook is asked.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::{pin::pin, task::{Context, Poll, Waker}};
    /// use oa_hooks::{AnswerDecision, AnswerEvent, History, HookDecision, Hooks, Message};
    ///
    /// let hooks = Hooks::new().add_answer(|event| async move {
    ///     let is_cited = event.message.text().contains("https://");
    ///     (!is_cited).then(|| HookDecision::retry("cite a source by its address"))
    /// });
    ///
    /// # let check = async {
    /// let event = AnswerEvent::new(Message::assistant(vec![]), History::default(), 0);
    /// let decision = hooks.answer(event, |_| std::future::pending()).await?;
    /// assert_eq!(decision, AnswerDecision::Retry { reason: "cite a source by its address".into() });
    /// # Ok::<(), oa_hooks::Error>(())
    /// # };
    /// # let polled = pin!(check).poll(&mut Context::from_waker(Waker::noop()));
    /// # assert!(matches!(polled, Poll::Ready(Ok(()))));
    /// ```
    pub async fn answer<S, F>(&self, event: AnswerEvent, sleep: S) -> Result<AnswerDecision, Error>
    where
        S: Fn(Duration) -> F + Send + Sync,
        F: Future<Output = ()> + Send,
    {
        first_outcome(&self.answer, event, &sleep).await.map(AnswerDecision::from)
    }
}

/// Asks the hooks in order until one decides. The event is cloned for every hook but the last.
async fn first_outcome<E, S, F>(
    handlers: &[Handler<E>],
    event: E,
    sleep: &S,
) -> Result<HookOutcome<E::Changed>, Error>
where
    E: HookEvent,
    S: Fn(Duration) -> F + Sync,
    F: Future<Output = ()> + Send,
{
    // Hooks for other tools are left out first, so that the last one asked gets the event itself.
    let concerned = handlers.iter().filter(|handler| handler.concerns(event.tool()));
    let concerned: Vec<_> = concerned.collect();
    let Some((last, others)) = concerned.split_last() else { return Ok(HookOutcome::Allow) };
    for handler in others {
        let outcome = handler.ask(event.clone(), sleep).await?;
        if outcome != HookOutcome::Allow {
            return Ok(outcome);
        }
    }
    last.ask(event, sleep).await
}
