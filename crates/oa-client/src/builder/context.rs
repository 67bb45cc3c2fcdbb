//! Options for small contexts.

use oa_context::ContextPolicy;
use oa_types::Message;

use super::AgentOptionsBuilder;
use crate::callback::CallbackOutput;
use crate::step::boxed;

impl AgentOptionsBuilder {
    /// Shortens the conversation during a turn: before each request, once the policy's trigger is exceeded, as
    /// described at [`ContextPolicy::shorten`]. History then contains what the model sees, and
    /// [`AgentEvent::ContextShortened`](crate::AgentEvent::ContextShortened) reports it. Off by default.
    ///
    /// If a server rejects a request as too long, the conversation is shortened further and the request is sent once
    /// more. If the server rejects that one, too, the turn fails with `ContextOverflow`, and history is as it was
    /// before the prompt. A failed summary is not an error: the messages are dropped instead. Budgets include summaries.
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

    /// Sets a function that receives the messages that [`context`](Self::context) is about to remove from history, in
    /// full, including those whose results are cleared. The request waits for it. If it returns an error or panics, the
    /// messages stay in history, and the turn ends with an error of kind `Hook`. If the server rejects the rest as too
    /// long, too, the messages return to history, and are passed to the function again when they are removed again.
    pub fn archive_context<F, Fut>(mut self, archive: F) -> Self
    where
        F: Fn(Vec<Message>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: CallbackOutput> + Send + 'static,
    {
        self.config.steps.archive = Some(boxed(archive));
        self
    }

    /// Offers the model a tool `read_result` once a result of this conversation has been truncated or cleared. The tool
    /// reads the full result in pages, or searches it. Hooks and rules apply to it as to any other tool of the category
    /// `read`. Each client stores up to 8 MiB of results and removes the oldest first. A result that a hook replaced is
    /// not stored. A result that a hook saw is stored only if a hook also sees the results of `read_result`. Applies to
    /// auto mode. A tool of your own with this name is an error at [`build`](Self::build).
    pub fn offer_full_results(mut self, offer: bool) -> Self {
        self.config.keeps_results = offer;
        self.auto_only_if(offer, "offer_full_results")
    }
}
