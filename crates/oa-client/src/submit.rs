//! The beginning of a turn: the hooks of the prompt, and the wait for an answer.

use std::future::poll_fn;

use oa_events::AgentEvent;
use oa_hooks::HookOutcome;
use oa_turn::{Action, PromptOutcome, StepOutcome};
use oa_types::{ImageBlock, Message, Outcome};
use serde_json::Value;
use tokio::time::sleep;

use crate::driver::Driver;
use crate::error::{self, Result};
use crate::hooks;
use crate::work::Done;

impl Driver {
    /// Sends a prompt and waits for its answer to begin.
    pub(crate) async fn submit(&mut self, prompt: Message) -> Result<()> {
        self.settings.check_usable()?;
        self.turn.check_prompt(&prompt).map_err(error::turn)?;
        // Everything that can be refused was checked above: from here on the conversation changes.
        self.abandon();
        self.forget_events();
        self.metadata.begin();
        if self.turn.is_retry(&prompt) {
            // The prompt is in history, as the hooks have left it. They do not see it again.
            self.turn.retry(&prompt).map_err(error::turn)?;
            return SubmitGuard::new(self).begun().await;
        }
        let guard = SubmitGuard::new(self);
        let Self { settings, turn, .. } = &mut *guard.driver;
        if settings.config.hooks.has_user_prompt_submit() {
            turn.prompt(prompt).map_err(error::turn)?;
        } else {
            turn.submit(prompt).map_err(error::turn)?;
        }
        guard.begun().await
    }

    /// Continues the conversation and waits for the answer to begin.
    pub(crate) async fn go_on(&mut self) -> Result<()> {
        self.settings.check_usable()?;
        self.settle();
        let has_calls = self.turn.waits_for_approval();
        self.turn.continue_turn().map_err(error::turn)?;
        if has_calls {
            // The calls run while the caller receives, as in any other round.
            self.begin_run();
            return Ok(());
        }
        SubmitGuard::new(self).begun().await
    }

    /// Like [`go_on`](Self::go_on), but while calls are open it only records the request.
    pub(crate) async fn go_on_when_answered(&mut self) -> Result<()> {
        if self.turn.waits_for_approval() {
            return self.go_on().await;
        }
        self.settings.check_usable()?;
        self.settle();
        if self.turn.continue_when_answered().map_err(error::turn)? {
            SubmitGuard::new(self).begun().await?;
        }
        Ok(())
    }

    /// Takes the result of a call. The last one may continue the turn, if that was requested.
    pub(crate) fn add_result(
        &mut self,
        id: &str,
        content: Value,
        images: Vec<ImageBlock>,
        outcome: Outcome,
    ) -> Result<()> {
        let (was_busy, pending) = (self.turn.is_busy(), self.turn.pending_action());
        let added = self.turn.add_result_with_images(id, content, images, outcome);
        added.map_err(error::turn)?;
        if matches!(pending, Some(Action::Decide { .. })) && self.turn.pending_action() != pending {
            // The call needs no decision any more, and a late one must not reach the next call.
            self.work.futures.get_mut().hooks = None;
        }
        if !was_busy && self.turn.is_busy() {
            self.begin_run();
        }
        Ok(())
    }

    /// Runs the hooks on a prompt of the turn, or on a steered message. Returns an event if it entered at once.
    #[inline(never)]
    pub(crate) fn submit_prompt(&mut self, prompt: &Message, steered: bool) -> Option<AgentEvent> {
        let hooks = &self.settings.config.hooks;
        if steered && !hooks.has_user_prompt_submit() {
            return self.enter_steered(PromptOutcome::Allow);
        }
        let (hooks, event) = (hooks.clone(), hooks::prompt_event(prompt, self.turn.history()));
        self.work
            .wait_for(async move { Done::Prompt(hooks.user_prompt_submit(event, sleep).await) });
        None
    }

    /// Reports the hooks' decision about a prompt to the turn. After an error, the waiting caller takes the turn back.
    pub(crate) fn take_prompt(
        &mut self,
        outcome: Result<HookOutcome<String>, oa_hooks::Error>,
    ) -> Result<Option<AgentEvent>> {
        if let Some(Action::Submit { steered: true, .. }) = self.turn.pending_action() {
            if let Err(failed) = outcome {
                let error = hooks::record(&failed);
                // The turn drops the message, which would fail every later turn, too.
                self.events.push_back(AgentEvent::SteerBlocked(error.message.clone()));
                drop(self.turn.take(StepOutcome::SubmitPrompt(PromptOutcome::Failed { error })));
                return Err(self.fail(error::hook(failed)));
            }
            return Ok(self.enter_steered(hooks::prompt_outcome(outcome)));
        }
        // An error leaves the turn as it is: `SubmitGuard` takes the prompt back.
        let words = match outcome.map_err(error::hook)? {
            HookOutcome::Allow => None,
            HookOutcome::Block { reason } => return Err(error::blocked(&reason)),
            HookOutcome::Modify(change) => Some(change.value),
        };
        self.turn.accept_prompt(words).map_err(error::turn)?;
        Ok(None)
    }

    /// Adds a steered message to history, or drops it.
    fn enter_steered(&mut self, outcome: PromptOutcome) -> Option<AgentEvent> {
        let before = self.turn.history().len();
        let reason = match &outcome {
            PromptOutcome::Block { reason } => reason.clone(),
            _ => "a hook removed all of its text".to_owned(),
        };
        let taken = self.turn.take(StepOutcome::SubmitPrompt(outcome));
        debug_assert!(taken.is_ok(), "the turn continues without it");
        Some(match self.turn.history().get(before) {
            // The turn decides whether a message enters. Its place in history tells what became of it.
            Some(message) => AgentEvent::Steered(message.clone()),
            None => AgentEvent::SteerBlocked(reason),
        })
    }
}

/// A turn whose answer has not begun. It is taken back when dropped before that.
struct SubmitGuard<'a> {
    driver: &'a mut Driver,
    has_begun: bool,
}

impl<'a> SubmitGuard<'a> {
    fn new(driver: &'a mut Driver) -> Self {
        driver.begin_run();
        Self { driver, has_begun: false }
    }

    /// Waits for the answer to begin.
    async fn begun(mut self) -> Result<()> {
        let begun = poll_fn(|cx| self.driver.poll_answer(cx)).await;
        // The error of a prompt has not ended the turn yet.
        begun.map_err(|error| self.driver.fail(error))?;
        self.has_begun = true;
        Ok(())
    }
}

impl Drop for SubmitGuard<'_> {
    fn drop(&mut self) {
        if !self.has_begun {
            self.driver.abort();
        }
    }
}
