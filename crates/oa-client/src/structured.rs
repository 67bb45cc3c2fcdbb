//! Answers of a type: asked for, checked, and asked for again.

mod held;
mod judging;
mod output;
mod reader;
mod stream;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use oa_chat::FormatRequest;
use oa_turn::Mode;
use oa_types::Message;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::response_format::ResponseFormat;
use crate::settings::Settings;

pub use crate::structured::held::Structured;

pub(crate) use crate::structured::held::Held;
pub(crate) use crate::structured::output::{Judged, Output};
pub use crate::structured::stream::{Partial, StructuredStream};

/// How a model is told in what form to answer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum OutputMode {
    /// [`Tool`](Self::Tool) where other tools are offered, [`Format`](Self::Format) where none are.
    ///
    /// Many servers cannot do both at once: Groq refuses `response_format` beside `tools` (agno-agi/agno
    /// #1065), and where a format becomes a grammar for the whole answer (llama.cpp, vLLM, Ollama) the
    /// model can write no call any more, and makes up what a tool would have told it (ollama/ollama
    /// #11185, openai/openai-agents-python #3709).
    ///
    /// A server that does not know the format, or its model does not, says so by an error that names it. Then it
    /// is asked once more: for any JSON object, with the schema in words, and if it refuses that too in
    /// words alone, as [`Prompt`](Self::Prompt) has it. That is remembered by all who have these options, told by
    /// [`AgentEvent::FormatRefused`](crate::AgentEvent::FormatRefused) and by a line in the log. An error
    /// about the schema itself stays one.
    #[default]
    Auto,
    /// By `response_format`. Servers that know it make a grammar of it. A refusal is an error.
    Format,
    /// By words in the system prompt, which tell the schema. Nothing but the checks of the answer holds the
    /// model to it.
    Prompt,
    /// By a tool whose arguments are the answer, `final_answer` if it is not given another name. It
    /// is offered beside the others, and no hook sees its calls. `tool_choice` is `required`, unless
    /// the options say [`Auto`](crate::ToolChoice::Auto).
    Tool,
}

/// A prompt whose answer is to be of a type: what [`Client::send_for`](crate::Client::send_for)
/// and [`query_for`](crate::query_for) return. It is sent when it is awaited.
#[must_use = "nothing is sent until it is awaited or streamed"]
pub struct SendFor<'a, T> {
    driver: Held<'a>,
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

/// How many answers are had, without a word of the caller's.
const TRIES: u32 = 3;

impl<'a, T: DeserializeOwned + Send + 'static> SendFor<'a, T> {
    pub(crate) fn new(
        driver: Held<'a>,
        mode: Mode,
        base: Arc<Settings>,
        prompt: Message,
        format: ResponseFormat,
    ) -> Self {
        let (output, tool) = (OutputMode::default(), None);
        Self { driver, base, mode, prompt, format, tries: TRIES, output, tool, checks: Vec::new() }
    }

    /// Sets how many answers are had at most before it is an error; 3 by default, and at least 1.
    pub fn tries(mut self, tries: u32) -> Self {
        self.tries = tries;
        self
    }

    /// Says how the model is told in what form to answer.
    pub fn mode(mut self, mode: OutputMode) -> Self {
        self.output = mode;
        self
    }

    /// Names the output tool, where there is one. By [`OutputMode::Format`] and [`OutputMode::Prompt`] there
    /// is none, and it is an error of kind `Config` when the answer is asked for.
    pub fn tool_name(mut self, name: impl Into<String>) -> Self {
        self.tool = Some(name.into());
        self
    }

    /// Demands more of an answer than its type does. What the closure says is wrong is told to the model.
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

    /// Returns what arrives of the answer while it arrives.
    pub fn stream(self) -> StructuredStream<'a, T> {
        let Self { driver, base, mode, prompt, format, tries, output, tool, checks } = self;
        let by_tool = match output {
            OutputMode::Auto => !base.chat.parameters.tools.is_empty(),
            OutputMode::Format | OutputMode::Prompt => false,
            OutputMode::Tool => true,
        };
        let first = match output {
            OutputMode::Auto => Some(FormatRequest::Schema),
            OutputMode::Prompt => Some(FormatRequest::Prompt),
            OutputMode::Format | OutputMode::Tool => None,
        };
        let found = Arc::new(Mutex::new(None));
        let judge = {
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
        let held_bytes = base.chat.limits.answer.held_bytes;
        let output = Output::new(format, tool, first, mode, tries, held_bytes, Box::new(judge));
        let stream = StructuredStream::new(driver, base, prompt, Box::new(output), found);
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
