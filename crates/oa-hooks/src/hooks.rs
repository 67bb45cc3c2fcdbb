use std::collections::BTreeSet;
use std::time::Duration;

use crate::decision::HookDecision;
use crate::error::HookError;
use crate::event::{PostToolUseEvent, PreToolUseEvent, UserPromptSubmitEvent};
use crate::handler::Handler;

/// The hooks of an agent, in order.
///
/// At each point the hooks are asked one after the other, and the first that decides something is
/// followed. `None` and [`continue_`](HookDecision::continue_) decide nothing: a logger in front does
/// not switch off the gate behind it.
///
/// **A hook that modifies decides: hooks behind it are not asked.** Put gates before what rewrites
/// arguments, and hide everything that is to be hidden in one hook.
///
/// # The input that a hook sees
///
/// A hook before a tool sees the input that would run: the tool has filled in defaults and converted values. An input
/// that a hook puts in its place is completed in the same way before rules and permissions look at it, and the tool
/// runs with exactly what the last of them saw.
///
/// An input that does not fit the tool's schema reaches the hooks as the model wrote it, and a hook may replace it by one
/// that fits. If none does, lists, rules and mode may still deny the call, but nobody is asked for permission: the call
/// does not run, and the model reads which argument is wrong.
///
/// Every hook gets the event by value, to take apart as it likes. The conversation in it is shared;
/// the rest is copied for every hook but the last.
///
/// [`for_tools`](Self::for_tools) and [`with_timeout`](Self::with_timeout) are about the hooks added so
/// far, and [`merge`](Self::merge) puts groups together:
///
/// ```
/// use std::time::Duration;
/// use oa_hooks::{HookDecision, Hooks};
///
/// let shell = Hooks::new()
///     .add_pre_tool_use(|event| async move {
///         let command = event.tool_input["command"].as_str()?;
///         command.contains("sudo").then(|| HookDecision::block("no sudo here"))
///     })
///     .for_tools(["shell"])
///     .with_timeout(Duration::from_secs(1));
///
/// let hooks = Hooks::new()
///     .add_pre_tool_use(|event| async move {
///         println!("{} {}", event.tool_name, event.tool_input);
///         None
///     })
///     .merge(shell);
/// assert!(hooks.has_pre_tool_use("shell"));
/// ```
///
/// Cloning shares the closures.
#[derive(Clone, Debug, Default)]
#[must_use = "hooks do nothing until an agent has them"]
pub struct Hooks {
    pub(crate) post_tool_use: Vec<Handler<PostToolUseEvent>>,
    pub(crate) pre_tool_use: Vec<Handler<PreToolUseEvent>>,
    pub(crate) user_prompt_submit: Vec<Handler<UserPromptSubmitEvent>>,
}

impl Hooks {
    /// Creates no hooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a hook that is asked before a tool runs, and may block the call or change its input.
    ///
    /// If it panics the call is blocked.
    #[track_caller]
    pub fn add_pre_tool_use<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(PreToolUseEvent) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<HookDecision<PreToolUseEvent>>> + Send + 'static,
    {
        self.try_add_pre_tool_use(move |event| {
            let answer = handler(event);
            async { Ok(answer.await) }
        })
    }

    /// Adds a hook that is asked before a tool runs, and may fail, which ends the turn.
    #[track_caller]
    pub fn try_add_pre_tool_use<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(PreToolUseEvent) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<HookDecision<PreToolUseEvent>>, HookError>>
            + Send
            + 'static,
    {
        self.pre_tool_use.push(Handler::new(handler));
        self
    }

    /// Adds a hook that is asked when a call was answered, and may change the result.
    ///
    /// If it panics the result is kept and the turn ends with an error.
    #[track_caller]
    pub fn add_post_tool_use<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(PostToolUseEvent) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<HookDecision<PostToolUseEvent>>> + Send + 'static,
    {
        self.try_add_post_tool_use(move |event| {
            let answer = handler(event);
            async { Ok(answer.await) }
        })
    }

    /// Adds a hook that is asked when a call was answered, and may fail, which keeps the result and
    /// ends the turn.
    #[track_caller]
    pub fn try_add_post_tool_use<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(PostToolUseEvent) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<HookDecision<PostToolUseEvent>>, HookError>>
            + Send
            + 'static,
    {
        self.post_tool_use.push(Handler::new(handler));
        self
    }

    /// Adds a hook that is asked before a prompt is sent, and may block or change it.
    ///
    /// If it panics the prompt is not sent.
    #[track_caller]
    pub fn add_user_prompt_submit<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(UserPromptSubmitEvent) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<HookDecision<UserPromptSubmitEvent>>> + Send + 'static,
    {
        self.try_add_user_prompt_submit(move |event| {
            let answer = handler(event);
            async { Ok(answer.await) }
        })
    }

    /// Adds a hook that is asked before a prompt is sent, and may fail: then the prompt is not sent.
    #[track_caller]
    pub fn try_add_user_prompt_submit<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(UserPromptSubmitEvent) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<HookDecision<UserPromptSubmitEvent>>, HookError>>
            + Send
            + 'static,
    {
        self.user_prompt_submit.push(Handler::new(handler));
        self
    }

    /// Limits the hooks added so far to these tools; where they were limited before, to those that
    /// are in both. A prompt concerns no tool: its hooks are asked all the same.
    pub fn for_tools<I>(mut self, names: I) -> Self
    where
        I: IntoIterator<Item: Into<String>>,
    {
        let names: BTreeSet<String> = names.into_iter().map(Into::into).collect();
        self.post_tool_use.iter_mut().for_each(|handler| handler.limit_tools(&names));
        self.pre_tool_use.iter_mut().for_each(|handler| handler.limit_tools(&names));
        self
    }

    /// Limits the time that each of the hooks added so far may take; where it was limited before, the
    /// shorter time counts.
    ///
    /// One that takes longer has failed. Only a hook that awaits can be stopped: one that blocks its
    /// thread is done when it is done.
    pub fn with_timeout(mut self, limit: Duration) -> Self {
        self.post_tool_use.iter_mut().for_each(|handler| handler.limit_time(limit));
        self.pre_tool_use.iter_mut().for_each(|handler| handler.limit_time(limit));
        self.user_prompt_submit.iter_mut().for_each(|handler| handler.limit_time(limit));
        self
    }

    /// Adds all hooks of `other` behind those that are here.
    pub fn merge(mut self, other: Self) -> Self {
        let Self { post_tool_use, pre_tool_use, user_prompt_submit } = other;
        self.post_tool_use.extend(post_tool_use);
        self.pre_tool_use.extend(pre_tool_use);
        self.user_prompt_submit.extend(user_prompt_submit);
        self
    }

    /// Returns whether there is no hook at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { post_tool_use, pre_tool_use, user_prompt_submit } = self;
        post_tool_use.is_empty() && pre_tool_use.is_empty() && user_prompt_submit.is_empty()
    }

    /// Returns whether any hook is asked before this tool runs. Where none is, no event need be made.
    #[must_use]
    pub fn has_pre_tool_use(&self, tool_name: &str) -> bool {
        self.pre_tool_use.iter().any(|handler| handler.concerns(Some(tool_name)))
    }

    /// Returns whether any hook is asked about results of this tool.
    #[must_use]
    pub fn has_post_tool_use(&self, tool_name: &str) -> bool {
        self.post_tool_use.iter().any(|handler| handler.concerns(Some(tool_name)))
    }

    /// Returns whether any hook is asked about prompts.
    #[must_use]
    pub fn has_user_prompt_submit(&self) -> bool {
        !self.user_prompt_submit.is_empty()
    }
}
