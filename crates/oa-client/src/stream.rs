use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use oa_context::PromptCut;
use oa_types::{AssistantMessage, ContentBlock, FinishReason, Usage};

use crate::driver::BoxedDriver;
use crate::error::Result;

/// The answer to a [`query`](crate::query): blocks as they arrive.
///
/// Each piece of text or thinking is a block. Tool calls are complete and come after the text, with the input to run:
/// the model's input with the tool's defaults, or a hook's replacement. Input that does not match the tool's schema is
/// unchanged. A call that a hook blocked arrives as a `ToolUseError`, followed by its result. At the end,
/// [`message`](Self::message) has the whole answer, [`usage`](Self::usage) the reported usage, and
/// [`finish_reason`](Self::finish_reason) says whether the answer is complete: a limit that ends it early, such as
/// `max_run_time`, is not an error.
///
/// # Cancel safety
///
/// Dropping a pending [`next`](Self::next) loses nothing. Dropping the stream stops the server, too.
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct BlockStream {
    driver: BoxedDriver,
}

impl BlockStream {
    pub(crate) fn new(driver: BoxedDriver) -> Self {
        Self { driver }
    }

    /// Returns the next block, or `None` at the end.
    ///
    /// # Panics
    ///
    /// When polled outside of a tokio runtime, or in one without time or I/O.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<ContentBlock>> {
        poll_fn(|cx| self.driver.poll_block(cx)).await.transpose()
    }

    /// Reads to the end and returns all remaining text, joined. Text cut off by a limit is not an error: check
    /// [`finish_reason`](Self::finish_reason).
    ///
    /// # Errors
    ///
    /// Any error that ends the stream early; [`message`](Self::message) has the part that arrived before.
    ///
    /// # Panics
    ///
    /// As [`next`](Self::next).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses the text that it read, except in [`message`](Self::message).
    pub async fn text(&mut self) -> Result<String> {
        let mut text = String::new();
        while let Some(block) = self.next().await {
            if let ContentBlock::Text(block) = block? {
                text.push_str(&block.text);
            }
        }
        Ok(text)
    }

    /// Returns why the answer ended, once it has; `Unspecified` if the server gave no reason.
    ///
    /// A client-side limit ([`FinishReason::is_limit`]) overrides the server's reason, and is reported even
    /// without a [`message`](Self::message).
    #[must_use]
    pub fn finish_reason(&self) -> Option<&FinishReason> {
        let said = || self.message().map(|message| &message.finish_reason);
        self.driver.metadata.finish_reason.as_ref().or_else(said)
    }

    /// Returns the usage of the answer once it has ended: time, and tokens if the server reported them. If a limit cut
    /// it off, the usage reported by then.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.driver.metadata.usage
    }

    /// Returns details if the server seems to have truncated the prompt, once the answer has ended.
    #[must_use]
    pub fn prompt_cut(&self) -> Option<PromptCut> {
        self.driver.metadata.prompt_cut
    }

    /// Returns the whole answer once it has ended; if it failed, the part that arrived; `None` if a limit cut it.
    #[must_use]
    pub fn message(&self) -> Option<&AssistantMessage> {
        self.driver.message.as_deref()
    }
}

impl Stream for BlockStream {
    type Item = Result<ContentBlock>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.driver.poll_block(cx).map(Result::transpose)
    }
}
