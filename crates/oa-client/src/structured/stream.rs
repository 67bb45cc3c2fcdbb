use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use oa_types::{FinishReason, Message};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::held::{Held, Structured};
use super::output::Output;
use super::reader::Reader;
use crate::error::{Error, Result};
use crate::event::AgentEvent;
use crate::response_format::ResponseFormat;
use crate::settings::Settings;

/// An answer of a type, and what there is of it while it arrives: what
/// [`SendFor::stream`](crate::SendFor::stream) returns.
///
/// [`next`](Self::next) until that returns `None`, if the way is of interest, then
/// [`finish`](Self::finish) for the answer, or for why there is none. [`next_event`](Self::next_event) in place of
/// `next` shows what else happens in the turn: calls, results, thinking, text.
///
/// # Cancel safety
///
/// Dropping a pending [`next`](Self::next) loses nothing, but before the first answer has begun it takes
/// the prompt back, and the next call sends it anew. Dropping the stream ends the turn: the connection is
/// closed, tools are cancelled, and history is left as by an answer that was not read to its end.
#[must_use = "streams do nothing unless polled"]
pub struct StructuredStream<'a, T> {
    driver: Held<'a>,
    /// The settings for all other prompts.
    base: Arc<Settings>,
    stage: Stage,
    /// True once the prompt was sent.
    is_begun: bool,
    found: Arc<Mutex<Option<T>>>,
    format: ResponseFormat,
    tool: Option<String>,
    reader: Reader,
}

enum Stage {
    New {
        prompt: Message,
        output: Box<Output>,
    },
    /// The prompt is to be sent.
    Sending(Message),
    Reading,
    Over(FinishReason),
    Failed(Error),
}

/// The outcome of one step of the driver.
enum Step {
    Event {
        event: AgentEvent,
        /// True if more of the answer can be seen now.
        grows: bool,
    },
    Over,
    Silent,
}

impl<'a, T: DeserializeOwned + Send + 'static> StructuredStream<'a, T> {
    pub(crate) fn new(
        driver: Held<'a>,
        base: Arc<Settings>,
        prompt: Message,
        output: Box<Output>,
        found: Arc<Mutex<Option<T>>>,
    ) -> Self {
        let format = output.format().clone();
        let tool = output.tool().map(str::to_owned);
        let stage = Stage::New { prompt, output };
        let (is_begun, reader) = (false, Reader::new(base.chat.limits.answer.held_bytes));
        Self { driver, base, stage, is_begun, found, format, tool, reader }
    }

    /// The same, but that it comes to this error and nothing is sent.
    pub(crate) fn refused(mut self, error: Error) -> Self {
        self.stage = Stage::Failed(error);
        self
    }

    /// Waits until there is more of the answer than before, and lends that; `None` at the end of the turn,
    /// however it ended.
    ///
    /// With [`final_text_only`](crate::AgentOptionsBuilder::final_text_only) an answer by
    /// [`OutputMode::Format`](crate::OutputMode::Format) comes in one piece.
    ///
    /// # Panics
    ///
    /// When it is polled outside of a tokio runtime, or in one without time or I/O.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing; before the first answer has begun it takes the prompt back, and
    /// the next call sends it anew.
    pub async fn next(&mut self) -> Option<Partial<'_, T>> {
        while self.advance().await {
            if self.partial().is_some() {
                return self.partial();
            }
        }
        None
    }

    /// Waits for whatever happens next, as [`Client::next_event`](crate::Client::next_event) tells it: calls
    /// and their results, thinking, the text of the answer, a refusal of its form; `None` at the end of the
    /// turn, however it ended.
    ///
    /// A call of the output tool is seen as its pieces alone, because it stands for text; in auto mode one that does
    /// not fit is a `ToolUseError` with its result, as any malformed call. After each event
    /// [`partial`](Self::partial) has what there is of the answer. This and [`next`](Self::next) may be mixed; what
    /// the one has passed over the other does not come back to.
    ///
    /// ```
    /// use oa_client::{AgentEvent, AgentOptions, Client, ResponseFormat};
    /// # use oa_testkit::{MemoryServer, Reply};
    /// use oa_tools::tool;
    /// use oa_types::ContentBlock;
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), oa_client::Error> {
    /// # let model = MemoryServer::new([
    /// #     Reply::new().call("look", json!({})),
    /// #     Reply::new().call("final_answer", json!({"n": 3})),
    /// # ]);
    /// let look = tool("look", "Looks").build(|_| async { Ok(json!("three cats")) });
    /// let options = AgentOptions::builder().model("any").tool(look).auto_execute_tools(true);
    /// # let options = options.transport(model);
    /// let mut client = Client::new(options.build()?)?;
    /// let count = ResponseFormat::new("count", json!({
    ///     "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    /// }));
    /// let mut stream = client.send_for_format("How many cats are there?", count).stream();
    /// let mut calls = Vec::new();
    /// while let Some(event) = stream.next_event().await {
    ///     if let AgentEvent::Block(ContentBlock::ToolUse(call)) = event {
    ///         calls.push(call.name);
    ///     }
    /// }
    /// assert_eq!(stream.partial().unwrap().value(), &json!({"n": 3}));
    /// assert_eq!((calls, stream.finish().await?.value), (vec!["look".to_owned()], json!({"n": 3})));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// As [`next`](Self::next).
    ///
    /// # Cancel safety
    ///
    /// As [`next`](Self::next).
    pub async fn next_event(&mut self) -> Option<AgentEvent> {
        loop {
            match self.step().await {
                Ok(Step::Event { event, .. }) => return Some(event),
                Ok(Step::Silent) => {}
                Ok(Step::Over) => return None,
                Err(error) => {
                    self.stage = Stage::Failed(error);
                    return None;
                }
            }
        }
    }

    /// Lends what has arrived of the answer so far, if anything has.
    #[must_use]
    pub fn partial(&self) -> Option<Partial<'_, T>> {
        let object = self.reader.json().value()?;
        let (value, format) = (self.format.wanted(object)?, &self.format);
        Some(Partial { object, value, format, answer: self.reader.answer(), of: PhantomData })
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
        let output = self.driver.output.as_mut();
        let tries = output.as_ref().map_or(0, |output| output.tries());
        match (value, output) {
            (Some(value), _) => Ok(Structured {
                value,
                tries,
                message: self.driver.message.as_deref().cloned(),
                usage: self.driver.metadata.usage,
                finish_reason: reason,
            }),
            (None, Some(output)) => Err(output.error(&reason)),
            (None, None) => Err(Error::config("nothing was asked for")),
        }
    }

    /// Goes on until there is more to be seen; false at the end.
    async fn advance(&mut self) -> bool {
        loop {
            match self.step().await {
                Ok(Step::Event { grows: true, .. }) => return true,
                Ok(Step::Event { .. } | Step::Silent) => {}
                Ok(Step::Over) => return false,
                Err(error) => {
                    self.stage = Stage::Failed(error);
                    return false;
                }
            }
        }
    }

    /// One thing after the other.
    async fn step(&mut self) -> Result<Step> {
        match &self.stage {
            Stage::Over(_) | Stage::Failed(_) => return Ok(Step::Over),
            Stage::New { output, .. } => {
                let settings = self.base.for_output(output)?;
                self.driver.settings = Arc::new(settings);
                if let Stage::New { prompt, output } =
                    std::mem::replace(&mut self.stage, Stage::Reading)
                {
                    self.driver.turn.set_output_tool(output.tool().map(str::to_owned));
                    self.driver.output = Some(output);
                    self.stage = Stage::Sending(prompt);
                }
            }
            Stage::Sending(prompt) => {
                self.driver.submit(prompt.clone()).await?;
                (self.stage, self.is_begun) = (Stage::Reading, true);
            }
            Stage::Reading => {
                let event = poll_fn(|cx| self.driver.poll_event(cx)).await?;
                let Some(event) = event else {
                    self.stage = Stage::Over(FinishReason::Unspecified);
                    return Ok(Step::Over);
                };
                if let AgentEvent::TurnEnd(reason) = &event {
                    self.stage = Stage::Over(reason.clone());
                }
                let grows = self.reader.take(&event, self.tool.as_deref());
                return Ok(Step::Event { event, grows });
            }
        }
        Ok(Step::Silent)
    }
}

impl<T> Drop for StructuredStream<'_, T> {
    fn drop(&mut self) {
        if self.is_begun {
            self.driver.abandon();
        }
        if self.driver.output.is_some() {
            self.driver.forget_failures();
            self.driver.settings = Arc::clone(&self.base);
        }
    }
}

impl<T> fmt::Debug for StructuredStream<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StructuredStream")
            .field("driver", &*self.driver)
            .field("reader", &self.reader)
            .finish_non_exhaustive()
    }
}

/// The part of an answer that has arrived.
///
/// The values of one answer only grow: texts become longer, lists and objects get more behind what they
/// have, what is complete does not change (see [`PartialReader`](oa_json::PartialReader)). A server that sends the
/// arguments of a call more than once is not held to that; the answer at the end is right all the same.
#[derive(Debug)]
pub struct Partial<'a, T> {
    object: &'a Value,
    value: &'a Value,
    format: &'a ResponseFormat,
    answer: u32,
    of: PhantomData<T>,
}

impl<T: DeserializeOwned> Partial<'_, T> {
    /// Returns the value so far.
    #[must_use]
    pub fn value(&self) -> &Value {
        self.value
    }

    /// Reads the value so far as the type, where that has defaults or options for what is missing. This
    /// copies the whole value: of a long one do it now and then.
    #[must_use]
    pub fn get(&self) -> Option<T> {
        serde_json::from_value(self.format.complete(self.object)).ok()
    }

    /// Returns which answer of the turn this is part of, counted from 1: with another number a value
    /// begins anew.
    #[must_use]
    pub fn answer(&self) -> u32 {
        self.answer
    }
}
