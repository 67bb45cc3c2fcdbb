//! The conversation of structured output, and its result.

use oa_chat::ToolMode;
use oa_output::{
    FormatFallback, FormatRequest, OtherTools, OutputMode, OutputOptions, OutputValidator,
};
use oa_turn::Mode;
use oa_types::{AssistantMessage, FinishReason, Usage};

use crate::driver::{BoxedDriver, Driver};
use crate::error::{self, Error, Result};
use crate::settings::Settings;

/// A typed answer, returned by [`Client::send_for`](crate::Client::send_for).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Structured<T> {
    /// The value.
    pub value: T,
    /// The number of attempts, including the successful one.
    pub tries: u32,
    /// The message that contains the value, as it is in history.
    pub message: Option<AssistantMessage>,
    /// Usage of the last answer: tokens if the server reported them, and time.
    pub usage: Option<Usage>,
    /// The reason why the turn ended.
    pub finish_reason: FinishReason,
}

/// The driver of a conversation, or of a single prompt.
pub(crate) enum DriverHandle<'a> {
    Borrowed(&'a mut Driver),
    Owned(BoxedDriver),
}

impl std::ops::Deref for DriverHandle<'_> {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        match self {
            Self::Borrowed(driver) => driver,
            Self::Owned(driver) => driver,
        }
    }
}

impl std::ops::DerefMut for DriverHandle<'_> {
    fn deref_mut(&mut self) -> &mut Driver {
        match self {
            Self::Borrowed(driver) => driver,
            Self::Owned(driver) => driver,
        }
    }
}

impl Settings {
    /// Returns the validator options for a mode and these settings.
    pub(crate) fn output_options(
        &self,
        mode: OutputMode,
        tool: Option<String>,
    ) -> Result<OutputOptions> {
        let others = match (self.chat.parameters.tools.is_empty(), &self.chat.tool_mode) {
            (true, _) => OtherTools::Absent,
            (false, ToolMode::Constrained) => OtherTools::Constrained,
            (false, _) => OtherTools::Native,
        };
        let mut options = OutputOptions::of(mode, tool, others).map_err(error::output)?;
        options.held_bytes = self.chat.limits.answer.held_bytes;
        options.runs_calls = self.config.turn.mode == Mode::Auto;
        Ok(options)
    }

    /// Returns these settings, changed for structured output.
    pub(crate) fn for_output(&self, output: &OutputValidator) -> Result<Self> {
        let mut settings = self.clone();
        let format = output.format();
        if self.config.turn.inline_results {
            let message = "structured output does not work with ToolMode::MarkersInline";
            return Err(Error::config(message));
        }
        if !format.is_of_object() {
            let message = format!("the schema of {} does not describe an object", format.name());
            return Err(Error::config(message));
        }
        let is_in_prompt = |fallback: FormatFallback| fallback.first == FormatRequest::Prompt;
        if output.fallback().is_some_and(is_in_prompt)
            && settings.chat.tool_mode == ToolMode::Constrained
            && !settings.chat.parameters.tools.is_empty()
        {
            let message = "OutputMode::Prompt sends no response format, but calls with \
                           ToolMode::Constrained need one: use OutputMode::Auto";
            return Err(Error::config(message));
        }
        let taken = if output.tool().is_some() { "tools" } else { "response_format" };
        if settings.chat.parameters.extra_body.contains_key(taken) {
            let message = format!("extra_body may not set {taken:?} with structured output");
            return Err(Error::config(message));
        }
        let mut parameters = settings.chat.parameters.clone();
        output.offer(&settings.config.tools, &mut parameters).map_err(error::output)?;
        settings.change_chat(|chat| {
            chat.parameters = parameters;
            chat.format_fallback = output.fallback();
        })?;
        Ok(settings)
    }
}
