//! Options for small contexts.

use oa_context::ContextPolicy;
use oa_types::Message;

use super::AgentOptionsBuilder;

impl AgentOptionsBuilder {
    /// Lets a turn shorten its conversation before each request, the first one and those between its steps, once it
    /// passes the trigger of the policy. [`ContextPolicy::shorten`] says what goes: old results of tools first, then the
    /// oldest messages, dropped or summarized by the model. The prompt of the turn and the last answer with its results
    /// stay. An [`AgentEvent::ContextShortened`](crate::AgentEvent::ContextShortened) tells of it, and history has what the
    /// model sees from then on. By default nothing is shortened.
    ///
    /// If a server refuses a request as too long, the conversation is shortened more, and the request is sent once more.
    /// A summary that fails is no error: the messages are dropped instead. Requests for summaries count towards the
    /// budgets.
    ///
    /// ```
    /// use oa_client::AgentOptions;
    /// use oa_context::{ContextPolicy, Overflow};
    ///
    /// let options = AgentOptions::builder()
    ///     .model("qwen3:4b")
    ///     .context(ContextPolicy::new(8_192).with_overflow(Overflow::Summarize))
    ///     .archive_context(|messages| async move { println!("{} messages leave", messages.len()) })
    ///     .build()?;
    /// # drop(options);
    /// # Ok::<(), oa_client::Error>(())
    /// ```
    pub fn context(mut self, policy: ContextPolicy) -> Self {
        self.config.context.policy = Some(policy);
        self.config.turn.shorten = true;
        self
    }

    /// Shows a function the messages that are about to leave history, in full, each time that
    /// [`context`](Self::context) shortens it: results before they are cleared, and messages that are dropped or
    /// summarized. The request waits for it. A panic ends the turn with an error of kind `Hook`.
    pub fn archive_context<F, Fut>(mut self, archive: F) -> Self
    where
        F: Fn(Vec<Message>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Send> + Send + 'static,
    {
        self.config.steps.set_archive(archive);
        self
    }

    /// Offers the model a tool `read_result`, once a result of this conversation was truncated or cleared. It reads
    /// the full result by line numbers, or searches it. The note in the result says so. Its calls pass hooks and rules
    /// like any others. For auto mode; a tool of your own with this name is an error at [`build`](Self::build).
    ///
    /// The results are kept in memory, for each client, up to 8 MiB; the oldest leave first. A result that a hook replaces
    /// is not kept.
    pub fn offer_full_results(mut self, offer: bool) -> Self {
        self.config.context.keeps_results = offer;
        if offer { self.auto_only("offer_full_results") } else { self }
    }
}
