//! Structured output: request, validation, retries.

mod conversation;
mod stream;
mod validation;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use oa_contain::contain;
pub use oa_output::{OutputMode, Partial};
use oa_output::{OutputOptions, OutputValidator, ResponseFormat};
use oa_turn::Mode;
use oa_types::Message;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Result;
use crate::settings::Settings;

pub use crate::structured::conversation::Structured;

pub(crate) use crate::structured::conversation::DriverHandle;
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

    /// Sets the maximum number of attempts; 3 by default. With 0, the request fails with kind `Config`.
    pub fn tries(mut self, tries: u32) -> Self {
        self.tries = tries;
        self
    }

    /// Sets how structured output is requested from the model.
    pub fn mode(mut self, mode: OutputMode) -> Self {
        self.output = mode;
        self
    }

    /// Names the output tool. [`OutputMode::Format`] and [`OutputMode::Prompt`] have none, so the request fails
    /// with kind `Config`.
    pub fn tool_name(mut self, name: impl Into<String>) -> Self {
        self.tool = Some(name.into());
        self
    }

    /// Adds a check beyond the type. The model reads the error that the closure returns; a panic is an error, too.
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
        // The mode depends on the tools. A failure is reported by the request.
        let base = base.refreshed(None).ok().flatten().map_or(base, Arc::new);
        let found = Arc::new(Mutex::new(None));
        let validator = {
            let (format, found) = (format.clone(), Arc::clone(&found));
            let check = move |object: Value| {
                let value = format.check(object).map_err(|error| error.to_string())?;
                let value: T = oa_tools::read_value(&value).map_err(|error| error.to_string())?;
                checks.iter().try_for_each(|check| check(&value)).map(|()| value)
            };
            move |object: Value| {
                // The type and the checks are foreign code.
                let value = contain(|| check(object)).unwrap_or_else(|panic| {
                    let why = panic.excerpt().unwrap_or_default();
                    Err(format!("checking the value panicked: {why}"))
                })?;
                *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
                Ok(())
            }
        };
        let (mut options, refused) = match base.output_options(output, tool) {
            Ok(options) => (options, None),
            Err(error) => (OutputOptions::default(), Some(error)),
        };
        (options.runs_calls, options.tries) = (mode == Mode::Auto, tries);
        let validator = OutputValidator::new(format, options, Box::new(validator));
        let stream = StructuredStream::new(driver, base, prompt, Box::new(validator), found);
        match refused {
            Some(error) => stream.refused(error),
            None => stream,
        }
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
