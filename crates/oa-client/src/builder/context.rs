//! Options for small contexts.

use oa_context::ContextPolicy;
use oa_types::Message;

use super::AgentOptionsBuilder;
use crate::step::boxed;

impl AgentOptionsBuilder {
    /// Lets a turn shorten its conversation before any of its requests, once it passes the trigger of the policy, as
    /// described at [`ContextPolicy::shorten`]. History has what the model sees from then on, and
    /// [`AgentEvent::ContextShortened`](crate::AgentEvent::ContextShortened) tells of it. Off by default.
    ///
    /// If a server refuses a request as too long, the conversation is shortened more, and the request is sent once more.
    /// A summary that fails is no error: the messages are dropped instead. Summaries count towards the budgets.
    ///
    /// ```
    /// use oa_client::AgentOptions;
    /// use oa_context::{ContextPolicy, Overflow};
    ///
    /// AgentOptions::builder()
    ///     .model("qwen3:4b")
    ///     .context(ContextPolicy::new(8_192).with_overflow(Overflow::Summarize))
    ///     .build()?;
    /// # Ok::<(), oa_client::Error>(())
    /// ```
    pub fn context(mut self, policy: ContextPolicy) -> Self {
        self.config.context = Some(policy);
        self.config.turn.shorten = true;
        self
    }

    /// Shows a function the messages that are about to leave history by [`context`](Self::context), in full: also those
    /// whose results are cleared. The request waits for it. A panic ends the turn with an error of kind `Hook`.
    pub fn archive_context<F, Fut>(mut self, archive: F) -> Self
    where
        F: Fn(Vec<Message>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Send> + Send + 'static,
    {
        self.config.steps.archive = Some(boxed(archive));
        self
    }

    /// Offers the model a tool `read_result`, once a result of this conversation was truncated or cleared: it reads the
    /// full result in pages, or searches it. Hooks and rules apply to it as to any tool. Each client keeps 8 MiB of
    /// results; the oldest leave first, and one that a hook replaces is not kept. For auto mode; a tool of your own with
    /// this name is an error at [`build`](Self::build).
    pub fn offer_full_results(mut self, offer: bool) -> Self {
        self.config.keeps_results = offer;
        if offer { self.auto_only("offer_full_results") } else { self }
    }
}
