//! The conversation of structured output, and its result.

use std::ops::DerefMut;

use oa_chat::ToolMode;
use oa_output::{
    FormatFallback, FormatRequest, OtherTools, OutputMode, OutputOptions, OutputValidator,
};
use oa_turn::Mode;
use oa_types::{AssistantMessage, FinishReason, Usage};

use crate::driver::Driver;
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
    /// Usage of all attempts, and of all other answers of the turn.
    pub turn_usage: Usage,
    /// The reason why the turn ended.
    pub finish_reason: FinishReason,
}

/// The driver of a conversation, or of a single prompt.
pub(crate) type DriverHandle<'a> = Box<dyn DerefMut<Target = Driver> + Send + 'a>;

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
        if self.config.turn.inline_results {
            let message = "structured output does not work with ToolMode::MarkersInline";
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
        let mut parameters = settings.chat.parameters.clone();
        let is_free = self.chat.tool_choice_fallback || parameters.tool_choice.is_none();
        output.offer(&settings.config.tools, &mut parameters).map_err(error::output)?;
        settings.change_chat(|chat| {
            chat.parameters = parameters;
            chat.format_fallback = output.fallback();
            chat.tool_choice_fallback = is_free && output.tool().is_some();
        })?;
        Ok(settings)
    }
}
