//! Structured output: request, validation, retries.

mod conversation;
mod output;
mod stream;
mod validation;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use oa_chat::ToolMode;
use oa_output::ResponseFormat;
use oa_output::{FormatRequest, OutputOptions, OutputValidator};
pub use oa_output::{OutputMode, Partial};
use oa_turn::Mode;
use oa_types::Message;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::settings::Settings;

pub use crate::structured::conversation::Structured;

pub(crate) use crate::structured::conversation::DriverHandle;
pub(crate) use crate::structured::output::Output;
pub use crate::structured::stream::StructuredStream;

/// A prompt with structured output, returned by [`Client::send_for`](crate::Client::send_for) and
/// [`query_for`](crate::query_for). It is sent when awaited.
#[must_use = "nothing is sent until it is awaited or streamed"]
pub struct SendFor<'a, T> {
    driver: DriverHandle<'a>,
    base: Arc<Settings>,
    mode: Mode,
    prompt: Message,
    format: ResponseFormat,
    tries: u32,
    output: OutputMode,
    tool: Option<String>,
    checks: Vec<Check<T>>,
}

/// A caller's check beyond the type.
type Check<T> = Box<dyn Fn(&T) -> Result<(), String> + Send + Sync>;

/// The default number of attempts.
const TRIES: u32 = 3;

impl<'a, T: DeserializeOwned + Send + 'static> SendFor<'a, T> {
    pub(crate) fn new(
        driver: DriverHandle<'a>,
        mode: Mode,
        base: Arc<Settings>,
        prompt: Message,
        format: ResponseFormat,
    ) -> Self {
        let (output, tool) = (OutputMode::default(), None);
        Self { driver, base, mode, prompt, format, tries: TRIES, output, tool, checks: Vec::new() }
    }

    /// Sets the maximum number of attempts; 3 by default, at least 1.
    pub fn tries(mut self, tries: u32) -> Self {
        self.tries = tries;
        self
    }

    /// Sets how structured output is requested from the model.
    pub fn mode(mut self, mode: OutputMode) -> Self {
        self.output = mode;
        self
    }

    /// Names the output tool. [`OutputMode::Format`] and [`OutputMode::Prompt`] have none: then the request fails
    /// with kind `Config`.
    pub fn tool_name(mut self, name: impl Into<String>) -> Self {
        self.tool = Some(name.into());
        self
    }

    /// Adds a check beyond the type. The model reads the error that the closure returns.
    ///
    /// ```
    /// # use oa_client::{AgentOptions, Client, ResponseFormat};
    /// # use oa_testkit::{MemoryServer, Reply};
    /// # use serde_json::json;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), oa_client::Error> {
    /// # let model = MemoryServer::new([Reply::text(r#"{"n": 3}"#), Reply::text(r#"{"n": 4}"#)]);
    /// # let options = AgentOptions::builder().model("any").transport(model).build()?;
    /// let even = ResponseFormat::new("even", json!({
    ///     "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    /// }));
    /// let mut client = Client::new(options)?;
    /// let answer = client
    ///     .send_for_format("An even number, please.", even)
    ///     .check(|answer| match answer["n"].as_i64() {
    ///         Some(n) if n % 2 == 0 => Ok(()),
    ///         _ => Err("`n` is odd".to_owned()),
    ///     })
    ///     .await?;
    /// assert_eq!((answer.value, answer.tries), (json!({"n": 4}), 2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn check<F>(mut self, check: F) -> Self
    where
        F: Fn(&T) -> Result<(), String> + Send + Sync + 'static,
    {
        self.checks.push(Box::new(check));
        self
    }

    /// Streams the answer as partial values.
    pub fn stream(self) -> StructuredStream<'a, T> {
        let Self { driver, base, mode, prompt, format, tries, output, tool, checks } = self;
        let by_tool = match output {
            OutputMode::Auto => {
                let is_constrained = base.chat.tool_mode == ToolMode::Constrained;
                !base.chat.parameters.tools.is_empty() && !is_constrained
            }
            OutputMode::Format | OutputMode::Prompt => false,
            OutputMode::Tool => true,
        };
        let first = match output {
            OutputMode::Auto => Some(FormatRequest::Schema),
            OutputMode::Prompt => Some(FormatRequest::Prompt),
            OutputMode::Format | OutputMode::Tool => None,
        };
        let found = Arc::new(Mutex::new(None));
        let validator = {
            let (format, found) = (format.clone(), Arc::clone(&found));
            move |object: Value| {
                let value = format.check(object).map_err(|error| error.to_string())?;
                let value: T = serde_json::from_value(value).map_err(|error| error.to_string())?;
                checks.iter().try_for_each(|check| check(&value))?;
                *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
                Ok(())
            }
        };
        let is_vain = tool.is_some() && matches!(output, OutputMode::Format | OutputMode::Prompt);
        let tool = by_tool.then(|| tool.unwrap_or_else(|| "final_answer".to_owned()));
        let first = first.filter(|_| !by_tool);
        let mut options = OutputOptions::default();
        options.held_bytes = base.chat.limits.answer.held_bytes;
        options.runs_calls = mode == Mode::Auto;
        (options.tool, options.first, options.tries) = (tool, first, tries);
        let validator = OutputValidator::new(format, options, Box::new(validator));
        let output = Box::new(Output::new(validator));
        let stream = StructuredStream::new(driver, base, prompt, output, found);
        if is_vain {
            let message = "tool_name has no effect where there is no output tool";
            return stream.refused(Error::config(message));
        }
        stream
    }
}

impl<'a, T: DeserializeOwned + Send + 'static> IntoFuture for SendFor<'a, T> {
    type Output = Result<Structured<T>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Structured<T>>> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.stream().finish())
    }
}

impl<T> fmt::Debug for SendFor<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendFor")
            .field("prompt", &self.prompt)
            .field("format", &self.format)
            .field("tries", &self.tries)
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}
