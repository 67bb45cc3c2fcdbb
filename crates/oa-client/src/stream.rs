use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use oa_types::{AssistantMessage, ContentBlock, FinishReason, Usage};

use crate::driver::Driver;
use crate::error::Result;
use crate::event::{AgentEvent, PromptCut};

/// The answer to a [`query`](crate::query): blocks as they arrive.
///
/// Each piece of text or thinking is a block of its own; tool calls come whole, after the text, with the
/// input that would run: with the defaults of the tool, or the input that a hook has put in its place. An input that does
/// not fit the tool's schema comes as it is. A call that a hook blocked comes as
/// `ToolUseError` and the result that says so. When
/// it has ended, [`message`](Self::message) has the whole answer, [`usage`](Self::usage) what the server said
/// about it, and [`finish_reason`](Self::finish_reason) tells whether it is whole: a limit that ends it early,
/// as `max_run_time`, is no error.
///
/// # Cancel safety
///
/// Dropping a pending [`next`](Self::next) loses nothing. Dropping the stream closes the connection,
/// and the server stops.
#[must_use = "streams do nothing unless polled"]
pub struct BlockStream {
    driver: Box<Driver>,
}

impl BlockStream {
    pub(crate) fn new(driver: Box<Driver>) -> Self {
        Self { driver }
    }

    /// Returns the next block, or `None` at the end.
    ///
    /// # Panics
    ///
    /// When it is polled outside of a tokio runtime, or in one without time or I/O.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<ContentBlock>> {
        poll_fn(|cx| self.poll_block(cx)).await
    }

    /// Reads to the end and returns all text that was not read before, joined. Text that a limit has cut is
    /// no error: [`finish_reason`](Self::finish_reason) tells.
    ///
    /// # Errors
    ///
    /// Any error that ends the stream early; [`message`](Self::message) has what arrived before.
    ///
    /// # Panics
    ///
    /// As [`next`](Self::next).
    ///
    /// # Cancel safety
    ///
    /// Text that was read is lost if the future is dropped, but for [`message`](Self::message).
    pub async fn text(&mut self) -> Result<String> {
        let mut text = String::new();
        while let Some(block) = self.next().await {
            if let ContentBlock::Text(block) = block? {
                text.push_str(&block.text);
            }
        }
        Ok(text)
    }

    /// Returns why the answer ended, once it has; `Unspecified` if the server did not say.
    ///
    /// A limit of the caller's ([`FinishReason::is_limit`]) counts for more than what the server said, and is
    /// told also where it left no [`message`](Self::message).
    #[must_use]
    pub fn finish_reason(&self) -> Option<&FinishReason> {
        let said = || self.message().map(|message| &message.finish_reason);
        self.driver.metadata.finish_reason.as_ref().or_else(said)
    }

    /// Returns what the answer cost, once it has ended: tokens if the server said so, and time. If a limit has
    /// cut it, what the server had said by then.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.driver.metadata.usage
    }

    /// Returns what was found out if the server seems to have cut the prompt, once the answer has ended.
    #[must_use]
    pub fn prompt_cut(&self) -> Option<PromptCut> {
        self.driver.metadata.prompt_cut
    }

    /// Returns the whole answer once it has ended; what had come of it if it failed; `None` if a limit of
    /// the caller's has cut it.
    #[must_use]
    pub fn message(&self) -> Option<&AssistantMessage> {
        self.driver.message.as_deref()
    }

    #[inline]
    fn poll_block(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ContentBlock>>> {
        loop {
            match ready!(self.driver.poll_event(cx)).transpose() {
                Some(Ok(AgentEvent::Block(block))) => return Poll::Ready(Some(Ok(block))),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl Stream for BlockStream {
    type Item = Result<ContentBlock>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_block(cx)
    }
}

impl fmt::Debug for BlockStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockStream").field("driver", &self.driver).finish()
    }
}
