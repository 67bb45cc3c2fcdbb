use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};

use super::conversation::{DriverHandle, Structured};
use crate::error::{self, Error, Result};
use crate::settings::Settings;
use oa_events::AgentEvent;
use oa_output::{OutputReader, OutputValidator, Partial, ResponseFormat};
use oa_types::{ContentBlock, FinishReason, Message, MessageRole};
use serde::de::DeserializeOwned;

/// A stream of partial values of a structured answer, returned by [`SendFor::stream`](crate::SendFor::stream).
///
/// Call [`next`](Self::next) until it returns `None`, then [`finish`](Self::finish) for the answer or the error;
/// `finish` alone works too. [`next_event`](Self::next_event) instead of `next` also shows calls, results,
/// thinking and text.
///
/// # Cancel safety
///
/// Dropping a pending [`next`](Self::next) loses nothing. Before the first answer has begun it removes the prompt, and
/// the next call sends it again. Dropping the stream ends the turn: the connection is closed, tools are canceled, and
/// history is left as after any answer that was not read to its end.
#[must_use = "streams do nothing unless polled"]
pub struct StructuredStream<'a, T> {
    driver: DriverHandle<'a>,
    /// The settings for all other prompts.
    base: Arc<Settings>,
    stage: Stage,
    /// True once the prompt was sent.
    is_begun: bool,
    found: Arc<Mutex<Option<T>>>,
    format: ResponseFormat,
    tool: Option<String>,
    reader: OutputReader,
}

enum Stage {
    New {
        prompt: Message,
        output: Box<OutputValidator>,
    },
    /// The prompt has to be sent.
    Sending(Message),
    Reading,
    Over(FinishReason),
    Failed(Error),
}

impl<'a, T: DeserializeOwned + Send + 'static> StructuredStream<'a, T> {
    pub(crate) fn new(
        driver: DriverHandle<'a>,
        base: Arc<Settings>,
        prompt: Message,
        output: Box<OutputValidator>,
        found: Arc<Mutex<Option<T>>>,
    ) -> Self {
        let format = output.format().clone();
        let tool = output.tool().map(str::to_owned);
        let stage = Stage::New { prompt, output };
        let (is_begun, reader) = (false, OutputReader::new(base.chat.limits.answer.held_bytes));
        Self { driver, base, stage, is_begun, found, format, tool, reader }
    }

    /// Makes the stream fail with this error, without sending anything.
    pub(crate) fn refused(mut self, error: Error) -> Self {
        self.stage = Stage::Failed(error);
        self
    }

    /// Waits until more of the answer has arrived and returns the partial value; `None` at the end of the turn, or after an error.
    ///
    /// With [`final_text_only`](crate::AgentOptionsBuilder::final_text_only), an answer in
    /// [`OutputMode::Format`](crate::OutputMode::Format) arrives in one piece.
    ///
    /// # Panics
    ///
    /// When polled outside of a tokio runtime, or in one without time or I/O.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing. Before the first answer begins, the next call sends the prompt again.
    pub async fn next(&mut self) -> Option<Partial<'_, T>> {
        while self.advance().await {
            if self.partial().is_some() {
                return self.partial();
            }
        }
        None
    }

    /// Waits for the next event, as [`Client::next_event`](crate::Client::next_event) does: calls and their results,
    /// thinking, the text of the answer, a rejected format; `None` at the end of the turn, even after an error.
    ///
    /// A call of the output tool appears only as deltas, because it becomes text. In auto mode an invalid one is a
    /// `ToolUseError` with its result, like any malformed call. After each event, [`partial`](Self::partial) returns
    /// the value so far. You may mix this with [`next`](Self::next); each returns only what the other has not consumed.
    ///
    /// # Panics
    ///
    /// As [`next`](Self::next).
    ///
    /// # Cancel safety
    ///
    /// As [`next`](Self::next).
    pub async fn next_event(&mut self) -> Option<AgentEvent> {
        self.step().await.map(|(event, _)| event)
    }

    /// Returns the part of the answer that has arrived, if any.
    #[must_use]
    pub fn partial(&self) -> Option<Partial<'_, T>> {
        let object = self.reader.json().value()?;
        let (value, format) = (self.format.wanted(object)?, &self.format);
        Some(Partial::new(object, value, format, self.reader.answer()))
    }

    /// Reads to the end and returns the answer.
    ///
    /// # Errors
    ///
    /// As [`Client::send_for`](crate::Client::send_for).
    ///
    /// # Panics
    ///
    /// As [`next`](Self::next).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the stream.
    pub async fn finish(mut self) -> Result<Structured<T>> {
        while self.advance().await {}
        let reason = match std::mem::replace(&mut self.stage, Stage::Reading) {
            Stage::Failed(error) => return Err(error),
            Stage::Over(reason) => reason,
            _ => FinishReason::Unspecified,
        };
        let value = self.found.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The turn takes an answer back that a hook refuses, or whose review was cut off.
        let is_kept = |last: &Message| last.role == MessageRole::Assistant && !last.interrupted;
        let value = value.filter(|_| self.driver.turn.history().last().is_some_and(is_kept));
        let output = self.driver.output.as_mut();
        let tries = output.as_ref().map_or(0, |output| output.tries());
        match (value, output) {
            (Some(value), _) => Ok(Structured {
                value,
                tries,
                message: self.driver.message.as_deref().cloned(),
                usage: self.driver.metadata.usage,
                turn_usage: self.driver.metadata.turn_usage,
                finish_reason: reason,
            }),
            (None, Some(output)) => Err(error::output(output.error(&reason))),
            (None, None) => Err(Error::config("the prompt was never sent")),
        }
    }

    /// Runs until more of the answer is visible; `false` at the end.
    async fn advance(&mut self) -> bool {
        while let Some((_, grows)) = self.step().await {
            if grows {
                return true;
            }
        }
        false
    }

    /// Reads an event's part of the answer. Returns true if more of the value is visible.
    fn read(&mut self, event: &AgentEvent) -> bool {
        match (event, &self.tool) {
            (AgentEvent::AnswerStart, _) => {
                self.reader.begin_answer();
                // The value belongs to the last answer only.
                *self.found.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
            (AgentEvent::Block(ContentBlock::Text(text)), None) => {
                self.reader.push_text(&text.text);
            }
            (AgentEvent::ToolUseDelta(delta), Some(tool)) => {
                let is_output = delta.name.as_ref() == Some(tool);
                self.reader.push_call(delta.call, is_output, &delta.arguments);
            }
            _ => {}
        }
        self.reader.has_grown()
    }

    /// Waits for the next event, with true if more of the answer is visible after it; `None` at the end.
    async fn step(&mut self) -> Option<(AgentEvent, bool)> {
        self.try_step().await.unwrap_or_else(|error| {
            self.stage = Stage::Failed(error);
            None
        })
    }

    async fn try_step(&mut self) -> Result<Option<(AgentEvent, bool)>> {
        loop {
            match std::mem::replace(&mut self.stage, Stage::Reading) {
                over @ (Stage::Over(_) | Stage::Failed(_)) => {
                    self.stage = over;
                    return Ok(None);
                }
                Stage::New { prompt, output } => {
                    let settings = self.base.for_output(&output)?;
                    self.driver.turn.set_external_tools(settings.config.external_tools());
                    self.driver.settings = Arc::new(settings);
                    self.driver.turn.begin_output(output.tool().map(str::to_owned));
                    self.driver.output = Some(output);
                    self.stage = Stage::Sending(prompt);
                }
                Stage::Sending(prompt) => {
                    // Sent again if this future is dropped before the answer begins.
                    self.stage = Stage::Sending(prompt.clone());
                    self.driver.submit(prompt).await?;
                    (self.stage, self.is_begun) = (Stage::Reading, true);
                }
                Stage::Reading => {
                    let event = poll_fn(|cx| self.driver.poll_event(cx)).await?;
                    self.stage = match &event {
                        Some(AgentEvent::TurnEnd(reason)) => Stage::Over(reason.clone()),
                        Some(_) => Stage::Reading,
                        None => Stage::Over(FinishReason::Unspecified),
                    };
                    return Ok(event.map(|event| {
                        let grows = self.read(&event);
                        (event, grows)
                    }));
                }
            }
        }
    }
}

impl<T> Drop for StructuredStream<'_, T> {
    fn drop(&mut self) {
        // The turn ends first, because invalid answers are removed from an idle turn only.
        if self.is_begun {
            self.driver.abandon();
        }
        if self.driver.output.is_some() {
            self.driver.forget_failures();
            self.driver.settings = Arc::clone(&self.base);
            // Calls of newer tools may wait for approval. A failure is reported by the next request.
            let _ = self.driver.refresh_tools();
        }
    }
}

impl<T> fmt::Debug for StructuredStream<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StructuredStream")
            .field("driver", &**self.driver)
            .field("reader", &self.reader)
            .finish_non_exhaustive()
    }
}
