//! How a turn begins: the prompt's way past the hooks, and the wait for an answer.

use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::pin::pin;
use std::task::Poll;

use oa_hooks::{UserPromptSubmitEvent, Verdict};
use oa_types::{ContentBlock, Message, Outcome, TextBlock};
use serde_json::Value;
use tokio::time::sleep;

use crate::driver::Driver;
use crate::error::{self, Result};
use crate::event::AgentEvent;
use crate::run::Cut;

impl Driver {
    /// Sends a prompt, and waits for its answer to begin.
    pub(crate) async fn submit(&mut self, prompt: Message) -> Result<()> {
        self.settings.check_usable()?;
        self.turn.check_prompt(&prompt).map_err(error::turn)?;
        self.abandon();
        self.forget_events();
        if self.turn.is_retry(&prompt) {
            // It stands in history, as the hooks have left it: they are not asked again.
            self.turn.retry(&prompt).map_err(error::turn)?;
            return self.begun_again().await;
        }
        let mut this = Beginning::of(self);
        let mut given = None;
        let prompt = if this.settings.config.hooks.has_user_prompt_submit() {
            // In a box, so that other prompts need no room for it.
            match Box::pin(this.hooked(prompt.clone())).await? {
                Ok(hooked) => {
                    given = (hooked != prompt).then_some(prompt);
                    hooked
                }
                Err(cut) => {
                    this.end_run(Some(cut.reason()));
                    this.events.push_back(AgentEvent::TurnEnd(cut.reason()));
                    return this.begun();
                }
            }
        } else {
            prompt
        };
        this.turn.submit(prompt).map_err(error::turn)?;
        if let Some(given) = given {
            this.turn.note_given(given);
        }
        poll_fn(|cx| this.poll_answer(cx)).await?;
        this.begun()
    }

    /// Goes on from the conversation as it stands, and waits for the answer to begin.
    pub(crate) async fn go_on(&mut self) -> Result<()> {
        self.settings.check_usable()?;
        self.settle();
        if !self.turn.is_busy() {
            self.forget_events();
        }
        let has_calls = self.turn.waits_for_approval();
        self.turn.continue_turn().map_err(error::turn)?;
        if has_calls {
            // They run while the caller receives, as in any other round.
            self.begin_run();
            return Ok(());
        }
        self.begun_again().await
    }

    /// As [`go_on`](Self::go_on), but in the middle of an answer's calls it only marks the wish.
    pub(crate) async fn go_on_when_answered(&mut self) -> Result<()> {
        if self.turn.waits_for_approval() {
            return self.go_on().await;
        }
        self.settings.check_usable()?;
        self.settle();
        if self.turn.continue_when_answered().map_err(error::turn)? {
            self.begun_again().await?;
        }
        Ok(())
    }

    /// Takes the result of a call. The last may set the turn going, as was wished.
    pub(crate) fn add_result(&mut self, id: &str, content: Value, outcome: Outcome) -> Result<()> {
        let was_busy = self.turn.is_busy();
        self.turn.add_result(id, content, outcome).map_err(error::turn)?;
        if !was_busy && self.turn.is_busy() {
            self.begin_run();
        }
        Ok(())
    }

    /// Waits for the answer of a turn that goes on to begin.
    async fn begun_again(&mut self) -> Result<()> {
        let mut this = Beginning::of(self);
        poll_fn(|cx| this.poll_answer(cx)).await?;
        this.begun()
    }

    /// The prompt that is sent: the user's, or what a hook put in its place; unless the run is cut
    /// before that is known.
    async fn hooked(&mut self, mut prompt: Message) -> Result<Result<Message, Cut>> {
        let hooks = self.settings.config.hooks.clone();
        // As it stands in the request.
        let words: Vec<&str> = prompt.content.iter().filter_map(ContentBlock::as_text).collect();
        let event = UserPromptSubmitEvent::new(words.join("\n"), self.turn.history().clone());
        let mut verdict = pin!(hooks.user_prompt_submit(event, sleep));
        let verdict = poll_fn(|cx| match verdict.as_mut().poll(cx) {
            Poll::Ready(verdict) => Poll::Ready(Ok(verdict)),
            Poll::Pending => self.poll_cut(cx).map(Err),
        });
        let verdict = match verdict.await {
            Ok(verdict) => verdict,
            Err(cut) => return Ok(Err(cut)),
        };
        match verdict.map_err(error::hook)? {
            Verdict::Allow => {}
            Verdict::Block { reason } => return Err(error::blocked(&reason)),
            Verdict::Modify(change) => {
                // Pictures stay; the words are the hook's.
                prompt.content.retain(|block| matches!(block, ContentBlock::Image(_)));
                prompt.content.insert(0, TextBlock::new(change.value).into());
            }
        }
        Ok(Ok(prompt))
    }
}

/// A turn whose answer has not begun. Unless it comes to that, it is taken back when dropped.
struct Beginning<'a> {
    driver: &'a mut Driver,
    has_begun: bool,
}

impl<'a> Beginning<'a> {
    fn of(driver: &'a mut Driver) -> Self {
        driver.begin_run();
        Self { driver, has_begun: false }
    }

    fn begun(mut self) -> Result<()> {
        self.has_begun = true;
        Ok(())
    }
}

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        if !self.has_begun {
            self.driver.abort();
        }
    }
}

impl Deref for Beginning<'_> {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        self.driver
    }
}

impl DerefMut for Beginning<'_> {
    fn deref_mut(&mut self) -> &mut Driver {
        self.driver
    }
}
