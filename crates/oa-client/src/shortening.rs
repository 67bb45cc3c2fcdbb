//! Shortens the conversation of a running turn: executes the plan of a [`ContextPolicy`](oa_context::ContextPolicy).

use std::future::poll_fn;
use std::sync::Arc;

use oa_context::{Estimator, RunningTurn, Shortening, Summary};
use oa_events::AgentEvent;
use oa_executor::ResultStore;
use oa_hooks::Hooks;
use oa_json::ThinkingTags;
use oa_turn::{BudgetLeft, ShortenOutcome, ShortenStep, Spent, StepOutcome};
use oa_types::{ContentBlock, FinishReason, Message};

use crate::driver::{BoxedDriver, Driver};
use crate::error::{Error, ErrorKind, Result};
use crate::settings::Settings;
use crate::work::{Done, SharedUsage, ShortenedTurn, locked};

impl Settings {
    /// Returns the plan for a conversation that is too long.
    pub(crate) fn plan_shortening(
        &self,
        step: &ShortenStep,
        results: Option<&ResultStore>,
    ) -> Option<Shortening> {
        let policy = self.config.context.as_ref()?;
        let readable = |result: &_| results?.keep_cleared(result);
        let system = self.chat.system_prompt.as_deref().map(Message::system);
        let turn = RunningTurn::new(&step.history, step.prompt, step.keep_from)
            .with_fixed(system.as_ref(), &self.chat.parameters.tools)
            .after_overflow(step.is_overflow)
            .with_refused(step.sizes.prompt, step.sizes.context)
            .without_summary(!step.can_ask)
            .with_reported(step.reported.map(|reported| (reported.tokens, reported.messages)))
            .with_readable(&readable);
        policy.shorten(&turn, &Estimator::new())
    }

    /// Executes a plan: has the model write the summary, and passes the removed messages to the archive.
    pub(crate) async fn shorten(
        self: Arc<Self>,
        mut shortening: Shortening,
        used: SharedUsage,
        left: BudgetLeft,
    ) -> ShortenedTurn {
        let mut summary_error = None;
        if let Some(summary) = shortening.summary()
            && let Err(error) = self.write_summary(summary, &used, left).await
        {
            summary_error = Some(error.to_string());
            shortening.give_up();
        }
        // Only after the summary it is certain which messages go. History still has them.
        if let Err(error) = self.config.steps.archive(shortening.archived()).await {
            let (error, spent) = (Box::new(error.to_record()), Spent::from(&*locked(&used)));
            return (ShortenOutcome::Failed { error, spent }, None);
        }
        let done = shortening.finish(&Estimator::new());
        let mut event = done.event();
        event.how.summary_error = summary_error;
        let spent = Spent::from(&*locked(&used));
        (ShortenOutcome::Replace { history: done.messages, spent }, Some(event))
    }

    /// Has the model write a summary, and adds the usage of its answers to `used`, even when the future is dropped.
    /// Fails once that usage exceeds what is left of the budgets.
    pub(crate) async fn write_summary(
        &self,
        words: &mut Summary,
        used: &SharedUsage,
        left: BudgetLeft,
    ) -> Result<()> {
        let settings = Arc::new(self.for_summaries()?);
        while let Some(request) = words.next_request() {
            for message in request {
                // Each part is a conversation of its own: the model does not see its earlier answers.
                let driver = Driver::new(Arc::clone(&settings), oa_turn::Options::default());
                let mut writer = Writer { driver, used };
                writer.driver.turn.set_outer_budget(left.after(Spent::from(&*locked(used))));
                words.push(answer_text(&mut writer.driver, message).await?);
            }
        }
        Ok(())
    }

    /// Returns these settings, changed for a model that writes a summary.
    fn for_summaries(&self) -> Result<Self> {
        let mut settings = self.without_tools()?;
        // The turn reports the usage of a summary.
        settings.config.outer = None;
        settings.config.hooks = Hooks::new();
        settings.change_chat(|chat| {
            (chat.system_prompt, chat.format_fallback) = (None, None);
            chat.parameters.response_format = None;
            chat.parameters.stop.clear();
        })?;
        Ok(settings)
    }
}

/// Sends a prompt and returns the text of the answer.
async fn answer_text(driver: &mut Driver, prompt: Message) -> Result<String> {
    driver.submit(prompt).await?;
    let mut text = String::new();
    while let Some(event) = poll_fn(|cx| driver.poll_event(cx)).await? {
        if let AgentEvent::Block(ContentBlock::Text(block)) = event {
            text.push_str(&block.text);
        }
    }
    let text = ThinkingTags::answer_in(&text);
    let problem = match &driver.metadata.finish_reason {
        Some(FinishReason::Refusal) => "the model refused to summarize".to_owned(),
        Some(reason) if !reason.is_complete() => {
            format!("the summary may be incomplete: it ended with {reason}")
        }
        _ if text.is_empty() => "the model wrote no summary".to_owned(),
        _ => return Ok(text.to_owned()),
    };
    Err(Error::new(ErrorKind::Stream, problem))
}

/// A driver whose usage is recorded when it is dropped.
struct Writer<'a> {
    driver: BoxedDriver,
    used: &'a SharedUsage,
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.driver.stop_work();
        locked(self.used).add(&self.driver.metadata.total_usage);
    }
}

impl Driver {
    /// Shortens the conversation if it is too long.
    #[inline(never)]
    pub(crate) fn shorten(&mut self) {
        let step = self.turn.shorten_step();
        let Some(plan) = self.settings.plan_shortening(&step, self.results.as_ref()) else {
            return drop(self.turn.take(StepOutcome::Shorten(ShortenOutcome::Keep)));
        };
        let (settings, used, left) =
            (Arc::clone(&self.settings), SharedUsage::default(), step.left);
        self.work.summary = Some(Arc::clone(&used));
        let done = async move { Done::Shortened(settings.shorten(plan, used, left).await.into()) };
        self.work.wait_for(done);
    }

    pub(crate) fn take_shortened(&mut self, done: ShortenedTurn) -> Result<Option<AgentEvent>> {
        let (outcome, event) = done;
        if let Some(used) = self.work.summary.take() {
            self.metadata.add(&locked(&used));
        }
        let taken = self.turn.take(StepOutcome::Shorten(outcome));
        taken.map_err(|error| self.fail(Error::from(*error)))?;
        Ok(event.map(AgentEvent::ContextShortened))
    }
}
