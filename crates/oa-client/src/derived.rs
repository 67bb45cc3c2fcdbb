//! Options derived from others: for agents that differ in a few of them, for structured output, and for sub-agents.

use std::sync::Arc;

use oa_chat::ToolMode;
use oa_hooks::Permissions;
use oa_output::{OutputMode, OutputOptions, OutputValidator};
use oa_tools::Registry;
use oa_types::ModelName;
use oa_types::wire::{ChatParameters, Thinking};

use crate::error::Result;
use crate::options::AgentOptions;
use crate::settings::{NO_MODEL, Settings};

impl AgentOptions {
    /// Returns these options with another model. Connections and limits are shared with these, as by a clone.
    ///
    /// # Errors
    ///
    /// As [`Client::set_model`](crate::Client::set_model).
    pub fn with_model(&self, model: impl AsRef<str>) -> Result<Self> {
        let model = ModelName::new(model)?;
        self.changed(|settings| {
            // A model does not fix an invalid environment.
            settings.unusable = settings.unusable.take().filter(|why| why != NO_MODEL);
            settings.change_chat(|chat| model.as_str().clone_into(&mut chat.parameters.model))
        })
    }

    /// Returns these options with another system prompt; an empty text means none.
    ///
    /// # Errors
    ///
    /// As [`Client::set_system_prompt`](crate::Client::set_system_prompt).
    pub fn with_system_prompt(&self, prompt: impl Into<String>) -> Result<Self> {
        let prompt = Some(prompt.into()).filter(|prompt| !prompt.is_empty());
        self.changed(|settings| {
            settings.change_chat(|chat| chat.system_prompt = prompt.map(Arc::from))
        })
    }

    /// Returns these options with another amount of thinking: `true`, `false`, or an effort such as `"low"`.
    ///
    /// # Errors
    ///
    /// As [`Client::set_thinking`](crate::Client::set_thinking).
    pub fn with_thinking(&self, thinking: impl Into<Thinking>) -> Result<Self> {
        self.changed(|settings| settings.change_chat(|chat| chat.thinking = Some(thinking.into())))
    }

    /// Returns these options with changed sampling, response format and similar parameters. Values are not checked.
    ///
    /// # Errors
    ///
    /// As [`Client::change_parameters`](crate::Client::change_parameters).
    pub fn with_parameters(&self, change: impl FnOnce(&mut ChatParameters)) -> Result<Self> {
        self.changed(|settings| settings.change_chat(|chat| change(&mut chat.parameters)))
    }

    /// Returns these options with another value for tools, in place of one of the same type.
    #[must_use]
    pub fn with_state<T: Send + Sync + 'static>(&self, value: T) -> Self {
        let mut settings = (*self.0).clone();
        settings.config.state.insert(value);
        Self(Arc::new(settings))
    }

    pub(crate) fn changed(&self, change: impl FnOnce(&mut Settings) -> Result<()>) -> Result<Self> {
        let mut settings = (*self.0).clone();
        change(&mut settings)?;
        Ok(Self(Arc::new(settings)))
    }

    /// Returns these options changed for structured output: requests ask for the validator's format.
    ///
    /// For custom drivers: validate each answer before passing it to the turn with its correction, between
    /// [`Turn::begin_output`](oa_turn::Turn::begin_output) and [`Turn::end_output`](oa_turn::Turn::end_output).
    ///
    /// # Errors
    ///
    /// `Config` if the schema or the output tool cannot be sent.
    pub fn for_output(&self, output: &OutputValidator) -> Result<Self> {
        self.0.for_output(output).map(|settings| Self(Arc::new(settings)))
    }

    /// Returns the [`OutputValidator`] options for these agent options, with three attempts.
    ///
    /// # Errors
    ///
    /// `Config` if a tool is named but the mode has none.
    pub fn output_options(&self, mode: OutputMode, tool: Option<String>) -> Result<OutputOptions> {
        self.0.output_options(mode, tool)
    }

    /// Returns these options for a sub-agent called `name`, with permissions [within](Permissions::within) those of
    /// the agent that runs it.
    ///
    /// # Errors
    ///
    /// As [`Client::set_tools`](crate::Client::set_tools), for the tools that remain.
    pub fn within(&self, outer: &Self, name: &str) -> Result<Self> {
        self.changed(|settings| settings.set_within(&outer.0.config.permissions, name))
    }

    /// Returns these options without tools: neither its own nor those of a source, and nothing about calls.
    ///
    /// # Errors
    ///
    /// As [`Client::set_tools`](crate::Client::set_tools).
    pub fn without_tools(&self) -> Result<Self> {
        self.0.without_tools().map(|settings| Self(Arc::new(settings)))
    }
}

impl Settings {
    pub(crate) fn without_tools(&self) -> Result<Self> {
        let mut settings = self.clone();
        (settings.config.keeps_results, settings.config.turn.inline_results) = (false, false);
        settings.config.sources.clear();
        settings.set_tools(Registry::default())?;
        settings.change_chat(|chat| {
            (chat.tool_mode, chat.recognize_calls) = (ToolMode::Native, false);
            let parameters = &mut chat.parameters;
            (parameters.tool_choice, parameters.parallel_tool_calls) = (None, None);
            for name in ["parallel_tool_calls", "tool_choice", "tools"] {
                parameters.extra_body.shift_remove(name);
            }
        })?;
        Ok(settings)
    }

    /// Restricts the permissions to those of the agent that runs this one.
    pub(crate) fn set_within(&mut self, outer: &Permissions, name: &str) -> Result<()> {
        let config = &mut self.config;
        let permissions = std::mem::take(&mut config.permissions);
        config.permissions = permissions.within(outer, name);
        let tools = config.tools.clone();
        let is_offered = tools.names().all(|tool| config.permissions.offers(tool));
        if is_offered { Ok(()) } else { self.set_tools(tools) }
    }
}
