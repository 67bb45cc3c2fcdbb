use std::sync::Arc;

use oa_types::Timeout;

use crate::decision::HookDecision;
use crate::error::HookError;
use crate::event::{AnswerEvent, PostToolUseEvent, PreToolUseEvent, UserPromptSubmitEvent};
use crate::handler::Handler;
use crate::rule::{INNER_ASTERISK, Pattern, has_inner_asterisk};

/// The hooks of an agent, in order.
///
/// At each hook point, the hooks run in order, and the first decision wins. `None` and [`allow`](HookDecision::allow)
/// are not decisions, so a logging hook does not disable the gates after it.
///
/// **Modifying is a decision, so later hooks are not asked.** Put gates before hooks that rewrite arguments,
/// and do all redaction in one hook.
///
/// # The input that hooks see
///
/// A pre-tool hook sees the input that would run: the tool has filled in defaults and converted values. Input that a
/// hook replaces is completed in the same way before permission rules see it, and the tool runs with exactly what the
/// last of them saw.
///
/// Input that does not match the tool's schema reaches the hooks as the model wrote it, and a hook may replace
/// it with valid input. If none does, lists, rules and mode may still deny the call, but the user is not asked:
/// the call does not run, and the model reads which argument is wrong.
///
/// Each hook receives the event by value and may take it apart. The conversation in it is shared; the rest is cloned
/// for every hook but the last.
///
/// [`for_tools`](Self::for_tools) and [`with_timeout`](Self::with_timeout) apply to the hooks added so far, and
/// [`merge`](Self::merge) combines groups:
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
/// Clones share the closures.
#[derive(Clone, Debug, Default)]
#[must_use = "hooks do nothing until an agent has them"]
pub struct Hooks {
    pub(crate) answer: Vec<Handler<AnswerEvent>>,
    pub(crate) post_tool_use: Vec<Handler<PostToolUseEvent>>,
    pub(crate) pre_tool_use: Vec<Handler<PreToolUseEvent>>,
    pub(crate) user_prompt_submit: Vec<Handler<UserPromptSubmitEvent>>,
    /// The first method call that has no effect or makes no sense.
    problem: Option<&'static str>,
}

impl Hooks {
    /// Creates an empty set of hooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a hook that runs before a tool call and may block it or change its input.
    ///
    /// A panic blocks the call.
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

    /// Adds a fallible hook that runs before a tool call. An error ends the turn.
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

    /// Adds a hook that runs after a tool call and may change the result that the model reads and history keeps. Tool
    /// events are sent before the hook runs and contain the original result.
    ///
    /// A panic keeps the result and ends the turn with an error.
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

    /// Adds a fallible hook that runs after a tool call. An error keeps the result and ends the turn.
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

    /// Adds a hook that runs before a prompt is sent and may block or change it.
    ///
    /// If it panics, the prompt is not sent.
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

    /// Adds a fallible hook that runs before a prompt is sent. If it fails, the prompt is not sent.
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

    /// Adds a hook that runs on each finished answer without calls, and may refuse or block it.
    ///
    /// [`retry`](HookDecision::retry) lets the model read the reason and answer again in the same turn, a bounded
    /// number of times; a further retry blocks the answer. [`block`](HookDecision::block) ends the turn with an error.
    /// An answer that was refused or blocked is not in the conversation once the turn is over. If the hook panics, the
    /// turn ends with an error, as with a block.
    ///
    /// Text is shown as it arrives, so a user may have seen an answer that is refused later, unless the agent shows
    /// only the final text.
    #[track_caller]
    pub fn add_answer<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(AnswerEvent) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<HookDecision<AnswerEvent>>> + Send + 'static,
    {
        self.try_add_answer(move |event| {
            let answer = handler(event);
            async { Ok(answer.await) }
        })
    }

    /// Adds a fallible hook that runs on each finished answer without calls. If it fails, the answer is not used, and
    /// the turn ends with an error.
    #[track_caller]
    pub fn try_add_answer<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(AnswerEvent) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<HookDecision<AnswerEvent>>, HookError>> + Send + 'static,
    {
        self.answer.push(Handler::new(handler));
        self
    }

    /// Restricts the hooks added so far to these tools; repeated restrictions intersect. A name may end in `*`. Prompt
    /// hooks and answer hooks are not affected.
    ///
    /// An agent rejects a name that none of its tools has, a name with a `*` before its end, and a restriction without a
    /// hook before it, because such a gate would never close. For a tool that is added later, such as one of a front
    /// end, use a pattern.
    pub fn for_tools<I>(mut self, names: I) -> Self
    where
        I: IntoIterator<Item: Into<String>>,
    {
        let tools: Arc<[Pattern]> = names.into_iter().map(Pattern::new).collect();
        if tools.iter().map(Pattern::as_str).any(has_inner_asterisk) {
            self.refuse(INNER_ASTERISK);
        }
        if self.post_tool_use.is_empty() && self.pre_tool_use.is_empty() {
            self.refuse(
                "for_tools restricts the hooks that were added before it, and there are none",
            );
        }
        self.post_tool_use.iter_mut().for_each(|handler| handler.limit_tools(&tools));
        self.pre_tool_use.iter_mut().for_each(|handler| handler.limit_tools(&tools));
        self
    }

    /// Sets a timeout for each of the hooks added so far, in seconds or as a `Duration`; the shorter of several applies.
    ///
    /// A hook that exceeds its timeout has failed. Only a hook that awaits can be stopped; one that blocks its thread
    /// runs to completion. An agent rejects a timeout of zero, and a timeout without a hook before it.
    pub fn with_timeout(mut self, limit: impl Into<Timeout>) -> Self {
        let Some(limit) = limit.into().duration() else { return self };
        if limit.is_zero() {
            self.refuse("with_timeout needs a time above zero");
        } else if self.is_empty() {
            self.refuse(
                "with_timeout limits the hooks that were added before it, and there are none",
            );
        }
        self.answer.iter_mut().for_each(|handler| handler.limit_time(limit));
        self.post_tool_use.iter_mut().for_each(|handler| handler.limit_time(limit));
        self.pre_tool_use.iter_mut().for_each(|handler| handler.limit_time(limit));
        self.user_prompt_submit.iter_mut().for_each(|handler| handler.limit_time(limit));
        self
    }

    /// Appends all hooks of `other`.
    pub fn merge(mut self, other: Self) -> Self {
        let Self { answer, post_tool_use, pre_tool_use, user_prompt_submit, problem } = other;
        self.problem = self.problem.or(problem);
        self.answer.extend(answer);
        self.post_tool_use.extend(post_tool_use);
        self.pre_tool_use.extend(pre_tool_use);
        self.user_prompt_submit.extend(user_prompt_submit);
        self
    }

    /// Returns true if there are no hooks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { answer, post_tool_use, pre_tool_use, user_prompt_submit, .. } = self;
        let has_none = post_tool_use.is_empty() && pre_tool_use.is_empty();
        has_none && answer.is_empty() && user_prompt_submit.is_empty()
    }

    /// Checks that each restriction to tools and each timeout applies to a hook, that no timeout is zero, and that names
    /// have a `*` only at the end.
    ///
    /// # Errors
    ///
    /// A message that says what is wrong.
    pub fn check(&self) -> Result<(), &'static str> {
        self.problem.map_or(Ok(()), Err)
    }

    /// Keeps the first problem.
    fn refuse(&mut self, problem: &'static str) {
        self.problem.get_or_insert(problem);
    }

    /// Returns the tool names in the restrictions, as given.
    pub fn listed(&self) -> impl Iterator<Item = &str> {
        let before = self.pre_tool_use.iter().flat_map(Handler::tools);
        before.chain(self.post_tool_use.iter().flat_map(Handler::tools))
    }

    /// Returns true if a hook runs before this tool. If not, the event need not be created.
    #[must_use]
    pub fn has_pre_tool_use(&self, tool_name: &str) -> bool {
        self.pre_tool_use.iter().any(|handler| handler.concerns(Some(tool_name)))
    }

    /// Returns true if a hook runs after this tool.
    #[must_use]
    pub fn has_post_tool_use(&self, tool_name: &str) -> bool {
        self.post_tool_use.iter().any(|handler| handler.concerns(Some(tool_name)))
    }

    /// Returns true if a hook runs on finished answers.
    #[must_use]
    pub fn has_answer(&self) -> bool {
        !self.answer.is_empty()
    }

    /// Returns true if a hook runs before prompts.
    #[must_use]
    pub fn has_user_prompt_submit(&self) -> bool {
        !self.user_prompt_submit.is_empty()
    }
}
