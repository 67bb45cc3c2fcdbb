//! Compaction of a conversation on request.

use std::sync::Arc;

use oa_context::{ContextPolicy, Estimator, Plan, Summary, TokenCounter};
use oa_executor::RunGuard;
use oa_turn::{BudgetLeft, Call};
use oa_types::{Message, Usage};

use super::Client;
use crate::error::{self, Error, Result};
use crate::work::{SharedUsage, locked};

/// The result of [`Client::compact`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Compaction {
    /// The oldest messages were dropped.
    Dropped {
        /// The number of messages.
        messages: usize,
    },
    /// Compaction was interrupted while a summary was written; history is unchanged.
    Interrupted,
    /// The conversation is short enough; history is unchanged.
    Kept,
    /// The conversation is too long, but no message may be dropped; history is unchanged.
    Stuck,
    /// Messages were replaced by a summary, which is in the first remaining prompt.
    Summarized {
        /// The number of messages.
        messages: usize,
        /// Usage of the answers that compaction took, also counted in
        /// [`TurnMetadata::total_usage`](crate::TurnMetadata::total_usage).
        usage: Usage,
    },
}

impl Client {
    /// Shortens the conversation if the policy requires it, based on the estimated tokens of the conversation, the
    /// system prompt and the tools. The client does this on its own only during turns, and only if
    /// [`AgentOptionsBuilder::context`](crate::AgentOptionsBuilder::context) sets a policy. Nothing is archived.
    ///
    /// The same model writes the summary, with the same sampling, but without tools, system prompt and hooks. A long
    /// conversation takes several answers. They emit no events, and only the summary enters history.
    ///
    /// ```
    /// use oa_client::{AgentOptions, Client, Compaction};
    /// use oa_context::{ContextPolicy, Overflow};
    /// # use oa_testkit::{MemoryServer, Reply, Script};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), oa_client::Error> {
    /// # let model = MemoryServer::new(Script::new().otherwise(Reply::text("Bees. ".repeat(50))));
    /// # let options = AgentOptions::builder().model("any").transport(model).build()?;
    /// let policy = ContextPolicy::new(1_000).with_overflow(Overflow::Summarize);
    /// let mut client = Client::new(options)?;
    /// for _ in 0..20 {
    ///     client.ask("Tell me about bees.").await?;
    ///     if let Compaction::Summarized { messages, .. } = client.compact(&policy).await? {
    ///         println!("{messages} messages became a summary");
    ///     }
    /// }
    /// assert!(client.history().len() < 40);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `Config` if the policy [is invalid](ContextPolicy::check), `InvalidInput` while a turn is in progress or calls
    /// have no result yet, and the server errors of [`query`](crate::query); history is unchanged. `Stream` if a
    /// summary may be incomplete: cut off by `max_tokens` or `max_run_time`, or without a finish reason.
    /// [`Overflow::DropOldest`](oa_context::Overflow::DropOldest) needs no model and cannot fail this way.
    ///
    /// # Panics
    ///
    /// As [`send`](Self::send).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection; history is unchanged.
    pub async fn compact(&mut self, policy: &ContextPolicy) -> Result<Compaction> {
        self.compact_with(policy, &Estimator::new()).await
    }

    /// Like [`compact`](Self::compact), with another token counter: an exact one, or one calibrated by reported usage.
    ///
    /// # Errors
    ///
    /// As [`compact`](Self::compact).
    ///
    /// # Panics
    ///
    /// As [`send`](Self::send).
    ///
    /// # Cancel safety
    ///
    /// As [`compact`](Self::compact).
    pub async fn compact_with<C>(
        &mut self,
        policy: &ContextPolicy,
        counter: &C,
    ) -> Result<Compaction>
    where
        C: TokenCounter + ?Sized,
    {
        policy.check().map_err(Error::config)?;
        self.driver.settle();
        if self.driver.turn.is_busy() {
            return Err(error::invalid_input("a turn is in progress: read it to its end first"));
        }
        let turn = &self.driver.turn;
        // A denied call has its result only once the turn continues.
        if turn.waits_for_approval() || turn.calls().iter().any(Call::is_open) {
            return Err(error::invalid_input("calls have no result yet"));
        }
        let settings = Arc::clone(&self.driver.settings);
        // The system prompt counts toward the size and is always kept.
        let system = settings.chat.system_prompt.as_deref().map(Message::system);
        let before = usize::from(system.is_some());
        let messages: Vec<Message> = system.into_iter().chain(self.history().to_vec()).collect();
        let (left, usage) = match policy.plan(&messages, &settings.chat.parameters.tools, counter) {
            Plan::Drop(cut) => (cut.apply(&messages), None),
            Plan::Stuck => return Ok(Compaction::Stuck),
            Plan::Summarize(summary) => match self.summarize(summary).await? {
                Some((summary, usage)) => (summary.finish(&messages), Some(usage)),
                None => return Ok(Compaction::Interrupted),
            },
            _ => return Ok(Compaction::Kept),
        };
        let gone = messages.len().saturating_sub(left.len());
        self.set_history(left.into_iter().skip(before).collect());
        Ok(match usage {
            None => Compaction::Dropped { messages: gone },
            Some(usage) => Compaction::Summarized { messages: gone, usage },
        })
    }

    /// Has the model write a summary; `None` after an interrupt.
    async fn summarize(&mut self, mut summary: Summary) -> Result<Option<(Summary, Usage)>> {
        let (settings, run) =
            (Arc::clone(&self.driver.settings), RunGuard::begin(self.interrupt.signal()));
        let used = Counted(&mut self.driver.metadata.total_usage, SharedUsage::default());
        let written = settings.write_summary(&mut summary, &used.1, BudgetLeft::default());
        let written = run.unless_interrupted(written).await;
        let usage = *locked(&used.1);
        Ok(written.transpose()?.map(|()| (summary, usage)))
    }
}

/// The usage of the answers that a summary takes. It is added to the total when dropped, also before the end.
struct Counted<'a>(&'a mut Usage, SharedUsage);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.add(&locked(&self.1));
    }
}
