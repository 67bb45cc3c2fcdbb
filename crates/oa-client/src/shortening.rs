//! Shortens the conversation of a running turn: carries out the plan of a [`ContextPolicy`].

use std::fmt;
use std::sync::Arc;

use oa_chat::BoxFuture;
use oa_contain::Contained;
use oa_context::{ContextPolicy, Estimator, RunningTurn, Shortened, Shortening, Summary};
use oa_executor::{READ_RESULT, ResultStore, reading_hint};
use oa_turn::{ShortenOutcome, ShortenStep, StepOutcome};
use oa_types::{Cost, Message, ToolResultBlock, Usage};
use serde::{Deserialize, Serialize};

use crate::client::answer_text;
use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::event::AgentEvent;
use crate::settings::Settings;
use crate::work::Done;

/// A conversation that was shortened before a request; see
/// [`context`](crate::AgentOptionsBuilder::context).
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ContextShortened {
    /// The tokens before: as the server reported them and estimated since, with tools and system prompt.
    pub before: usize,
    /// The estimated tokens afterwards.
    pub after: usize,
    /// The way in which it was shortened.
    pub how: HowShortened,
}

/// The way in which a conversation was shortened. More than one number may be above 0.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HowShortened {
    /// The number of results of tools whose content was cleared.
    pub results_cleared: usize,
    /// The number of messages that were dropped.
    pub messages_dropped: usize,
    /// The number of messages that a summary replaced.
    pub messages_summarized: usize,
    /// The error of a summary that failed, so that messages were dropped instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_error: Option<String>,
}

/// The options for shortening.
#[derive(Clone, Default)]
pub(crate) struct ContextOptions {
    pub(crate) policy: Option<ContextPolicy>,
    pub(crate) archive: Option<Arc<Archive>>,
    /// True if the model may read full results.
    pub(crate) keeps_results: bool,
}

pub(crate) type Archive = dyn Fn(Vec<Message>) -> BoxFuture<()> + Send + Sync;

/// A completed shortening.
pub(crate) struct ShortenedTurn {
    pub(crate) outcome: ShortenOutcome,
    pub(crate) used: Usage,
    pub(crate) event: Option<ContextShortened>,
}

impl Settings {
    /// Returns the plan for a conversation that is too long.
    pub(crate) fn plan_shortening(
        &self,
        step: &ShortenStep,
        results: Option<&ResultStore>,
    ) -> Option<Shortening> {
        let policy = self.config.context.policy.as_ref()?;
        let readable = |result: &ToolResultBlock| {
            // Its pages can be read again.
            let results = results.filter(|_| result.name.as_deref() != Some(READ_RESULT))?;
            results.keep(&result.tool_use_id, &result.content).map(|id| reading_hint(&id))
        };
        let system = self.chat.system_prompt.as_deref().map(Message::system);
        let mut turn = RunningTurn::new(&step.history, step.prompt, step.keep_from)
            .with_fixed(system.as_ref(), &self.chat.parameters.tools)
            .after_overflow(step.is_overflow)
            .without_summary(!step.can_ask)
            .with_readable(&readable);
        if let Some(reported) = step.reported {
            turn = turn.with_reported(reported.tokens, reported.messages);
        }
        policy.shorten(&turn, &Estimator::new())
    }

    /// Carries out a plan: has the model write the summary, and shows the archive what leaves.
    pub(crate) async fn shorten(self: Arc<Self>, mut shortening: Shortening) -> ShortenedTurn {
        let (mut used, mut summary_error) = (Usage::default(), None);
        if let Some(summary) = shortening.summary()
            && let Err(error) = self.write_summary(summary, &mut used).await
        {
            summary_error = Some(error.to_string());
            shortening.give_up();
        }
        let counts = (used.total().unwrap_or_default(), used.cost.unwrap_or(Cost::ZERO));
        if let Some(archive) = &self.config.context.archive {
            let (archive, leaving) = (Arc::clone(archive), shortening.archived().to_vec());
            let archived = Contained::new(Box::pin(async move { archive(leaving).await })).await;
            if let Err(panic) = archived {
                let words = panic.excerpt().unwrap_or_default();
                let message = format!("archive_context panicked: {words}");
                let error = Box::new(Error::new(ErrorKind::Hook, message).to_record());
                return ShortenedTurn {
                    outcome: ShortenOutcome::Failed { error },
                    used,
                    event: None,
                };
            }
        }
        let done = shortening.finish(&Estimator::new());
        let Shortened { messages: history, cleared, dropped, is_summarized, .. } = done;
        let (summarized, dropped) = if is_summarized { (dropped, 0) } else { (0, dropped) };
        let how = HowShortened {
            results_cleared: cleared,
            messages_dropped: dropped,
            messages_summarized: summarized,
            summary_error,
        };
        let event = ContextShortened { before: done.before, after: done.after, how };
        let (tokens, cost) = counts;
        let outcome = ShortenOutcome::Replace { history, tokens, cost };
        ShortenedTurn { outcome, used, event: Some(event) }
    }

    /// Has the model answer the requests of a summary, and adds what they take to `used`.
    pub(crate) async fn write_summary(
        &self,
        summary: &mut Summary,
        used: &mut Usage,
    ) -> Result<()> {
        let settings = Arc::new(self.for_summaries()?);
        while let Some(request) = summary.next_request() {
            for message in request {
                let mut driver = Driver::new(Arc::clone(&settings), oa_turn::Options::default());
                let text = answer_text(&mut driver, message).await;
                used.add(&driver.metadata.usage.unwrap_or_default());
                summary.push(text?);
            }
        }
        Ok(())
    }
}

impl Driver {
    /// Shortens the conversation if it is too long.
    #[inline(never)]
    pub(crate) fn shorten(&mut self) {
        let step = self.turn.shorten_step();
        let Some(plan) = self.settings.plan_shortening(&step, self.results.as_ref()) else {
            let kept = self.turn.take(StepOutcome::Shorten(ShortenOutcome::Keep));
            debug_assert!(kept.is_ok(), "keeping the history cannot fail");
            return;
        };
        let settings = Arc::clone(&self.settings);
        self.work.hooks =
            Some(Box::pin(async move { Done::Shortened(Box::new(settings.shorten(plan).await)) }));
    }

    pub(crate) fn take_shortened(
        &mut self,
        shortened: ShortenedTurn,
    ) -> Result<Option<AgentEvent>> {
        let ShortenedTurn { outcome, used, event } = shortened;
        self.metadata.total_usage.add(&used);
        let taken = self.turn.take(StepOutcome::Shorten(outcome));
        taken.map_err(|error| self.fail(Error::from(*error)))?;
        Ok(event.map(AgentEvent::ContextShortened))
    }
}

impl fmt::Debug for ContextOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextOptions")
            .field("policy", &self.policy)
            .field("archive", &self.archive.is_some())
            .field("keeps_results", &self.keeps_results)
            .finish()
    }
}
