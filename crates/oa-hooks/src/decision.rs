use std::fmt;

use oa_types::ImageBlock;
use serde_json::Value;

use crate::event::{
    AnswerEvent, HOOK_ANSWER, HOOK_POST_TOOL_USE, HOOK_PRE_TOOL_USE, HOOK_USER_PROMPT_SUBMIT,
    PostToolUseEvent, PreToolUseEvent, UserPromptSubmitEvent,
};

/// A hook's decision about its event.
///
/// | | before a tool | after a tool | before a prompt | after an answer |
/// | --- | --- | --- | --- | --- |
/// | [`allow`](Self::allow) | yes | yes | yes | yes |
/// | [`block`](Self::block) | yes | | yes | yes |
/// | [`modify_input`](HookDecision::modify_input) | yes | | | |
/// | [`modify_result`](HookDecision::modify_result) | | yes | | |
/// | [`modify_prompt`](HookDecision::modify_prompt) | | | yes | |
/// | [`retry`](HookDecision::retry) | | | | yes |
///
/// # Invalid decisions do not compile
///
/// A finished call cannot be blocked, and its input can no longer change; only its result can be replaced:
///
/// ```
/// # use oa_hooks::{HookDecision, Hooks};
/// Hooks::new().add_post_tool_use(|_| async { Some(HookDecision::modify_result("x".into(), "no")) });
/// ```
/// ```compile_fail
/// # use oa_hooks::{HookDecision, Hooks};
/// Hooks::new().add_post_tool_use(|_| async { Some(HookDecision::block("no")) });
/// ```
/// ```compile_fail
/// # use oa_hooks::{HookDecision, Hooks};
/// Hooks::new().add_post_tool_use(|_| async { Some(HookDecision::modify_input("x".into(), "no")) });
/// ```
///
/// An upcoming call has an input but no result:
///
/// ```
/// # use oa_hooks::{HookDecision, Hooks};
/// Hooks::new().add_pre_tool_use(|_| async { Some(HookDecision::block("no")) });
/// Hooks::new().add_pre_tool_use(|_| async { Some(HookDecision::modify_input("x".into(), "no")) });
/// ```
/// ```compile_fail
/// # use oa_hooks::{HookDecision, Hooks};
/// Hooks::new().add_pre_tool_use(|_| async { Some(HookDecision::modify_result("x".into(), "no")) });
/// ```
/// ```compile_fail
/// # use oa_hooks::{HookDecision, Hooks};
/// Hooks::new().add_pre_tool_use(|_| async { Some(HookDecision::modify_prompt("x", "no")) });
/// ```
///
/// A prompt is text and involves no tool:
///
/// ```
/// # use oa_hooks::{HookDecision, Hooks};
/// Hooks::new().add_user_prompt_submit(|_| async { Some(HookDecision::block("no")) });
/// Hooks::new().add_user_prompt_submit(|_| async { Some(HookDecision::modify_prompt("x", "no")) });
/// ```
/// ```compile_fail
/// # use oa_hooks::{HookDecision, Hooks};
/// Hooks::new().add_user_prompt_submit(|_| async { Some(HookDecision::modify_input("x".into(), "no")) });
/// ```
/// ```compile_fail
/// # use oa_hooks::{HookDecision, Hooks};
/// Hooks::new().add_user_prompt_submit(|_| async { Some(HookDecision::modify_result("x".into(), "no")) });
/// ```
///
/// Only the model can answer again; a call, a result or a prompt cannot be tried again:
///
/// ```
/// # use oa_hooks::{HookDecision, Hooks};
/// Hooks::new().add_answer(|_| async { Some(HookDecision::retry("cite a source")) });
/// Hooks::new().add_answer(|_| async { Some(HookDecision::block("no")) });
/// ```
/// ```compile_fail
/// # use oa_hooks::{HookDecision, Hooks};
/// Hooks::new().add_pre_tool_use(|_| async { Some(HookDecision::retry("cite a source")) });
/// ```
///
/// A decision about one event is not valid for another:
///
/// ```
/// # use oa_hooks::{HookDecision, Hooks, PreToolUseEvent};
/// fn no() -> HookDecision<PreToolUseEvent> { HookDecision::block("no") }
/// Hooks::new().add_pre_tool_use(|_| async { Some(no()) });
/// ```
/// ```compile_fail
/// # use oa_hooks::{HookDecision, Hooks, PreToolUseEvent};
/// fn no() -> HookDecision<PreToolUseEvent> { HookDecision::block("no") }
/// Hooks::new().add_user_prompt_submit(|_| async { Some(no()) });
/// ```
#[must_use = "a decision does nothing until a hook returns it"]
pub struct HookDecision<E: HookEvent> {
    outcome: HookOutcome<E::Changed>,
}

impl<E: HookEvent> HookDecision<E> {
    /// Lets the event proceed to the next hook. Returning `None` does the same.
    pub fn allow() -> Self {
        Self { outcome: HookOutcome::Allow }
    }

    /// The same as [`allow`](Self::allow), under the name used by the earlier SDK.
    pub fn continue_() -> Self {
        Self::allow()
    }

    /// Returns the outcome that this decision stands for.
    #[must_use]
    pub fn outcome(&self) -> &HookOutcome<E::Changed> {
        &self.outcome
    }

    /// Converts the decision into its outcome.
    #[must_use]
    pub fn into_outcome(self) -> HookOutcome<E::Changed> {
        self.outcome
    }

    fn modify(value: E::Changed, reason: impl Into<String>) -> Self {
        Self { outcome: HookOutcome::Modify(Change { value, reason: reason.into() }) }
    }
}

impl<E: Blockable> HookDecision<E> {
    /// Blocks the call, prompt or answer. The model reads the reason for blocking a call; for a prompt or an answer,
    /// the reason is in the error that the caller gets.
    pub fn block(reason: impl Into<String>) -> Self {
        Self { outcome: HookOutcome::Block { reason: reason.into() } }
    }
}

impl HookDecision<PreToolUseEvent> {
    /// Runs the tool with different arguments, completed and checked like the model's. The model does not see them:
    /// history keeps its original arguments, and so do events that already showed the call. Later hooks are not
    /// asked; permission rules check the new arguments.
    pub fn modify_input(input: Value, reason: impl Into<String>) -> Self {
        Self::modify(input, reason)
    }
}

impl HookDecision<PostToolUseEvent> {
    /// Shows the model a different result, without images. Later hooks are not asked.
    pub fn modify_result(result: Value, reason: impl Into<String>) -> Self {
        Self::modify(result.into(), reason)
    }

    /// Shows the model a different result with these images, such as those of
    /// [the event](PostToolUseEvent::images). Later hooks are not asked.
    pub fn modify_result_with_images(
        result: Value,
        images: Vec<ImageBlock>,
        reason: impl Into<String>,
    ) -> Self {
        Self::modify(ChangedResult { content: result, images }, reason)
    }
}

impl HookDecision<UserPromptSubmitEvent> {
    /// Sends a different prompt. Later hooks are not asked.
    pub fn modify_prompt(prompt: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::modify(prompt.into(), reason)
    }
}

impl HookDecision<AnswerEvent> {
    /// Refuses the answer and asks the model again, in the same turn. The model reads the reason. Later hooks are not
    /// asked.
    pub fn retry(reason: impl Into<String>) -> Self {
        Self::modify((), reason)
    }
}

impl<E: HookEvent> Clone for HookDecision<E> {
    fn clone(&self) -> Self {
        Self { outcome: self.outcome.clone() }
    }
}

impl<E: HookEvent> PartialEq for HookDecision<E> {
    fn eq(&self, other: &Self) -> bool {
        self.outcome == other.outcome
    }
}

impl<E: HookEvent> fmt::Debug for HookDecision<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HookDecision").field(&self.outcome).finish()
    }
}

/// The combined outcome of all hooks at one point.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "callers must handle every outcome")]
pub enum HookOutcome<T> {
    /// Proceed: no hook objected.
    Allow,
    /// Do not proceed: a hook blocked the event.
    Block {
        /// The hook's reason.
        reason: String,
    },
    /// Proceed with a replaced value.
    Modify(Change<T>),
}

/// A replacement for an input, a prompt or a result.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a change is a value and a reason")]
pub struct Change<T> {
    /// The replacement.
    pub value: T,
    /// The hook's reason.
    pub reason: String,
}

/// The replacement for a result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChangedResult {
    /// The content of the result.
    pub content: Value,
    /// The images that the model sees with it.
    pub images: Vec<ImageBlock>,
}

/// A result without images.
impl From<Value> for ChangedResult {
    fn from(content: Value) -> Self {
        Self { content, images: Vec::new() }
    }
}

/// The combined decision of all hooks about an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "callers must handle every decision")]
pub enum AnswerDecision {
    /// Discard the answer and end the turn.
    Block {
        /// The hook's reason.
        reason: String,
    },
    /// Keep the answer: no hook objected.
    Continue,
    /// Send the model the reason and ask for another answer.
    Retry {
        /// The hook's reason.
        reason: String,
    },
}

impl From<HookOutcome<()>> for AnswerDecision {
    fn from(outcome: HookOutcome<()>) -> Self {
        match outcome {
            HookOutcome::Allow => Self::Continue,
            HookOutcome::Block { reason } => Self::Block { reason },
            HookOutcome::Modify(Change { value: (), reason }) => Self::Retry { reason },
        }
    }
}

/// An event that hooks decide about. Sealed.
pub trait HookEvent: sealed::Sealed + Clone + Send + 'static {
    /// The value that a decision can replace.
    type Changed: Clone + fmt::Debug + PartialEq + Send + 'static;

    /// The name of the hook point.
    const NAME: &'static str;
}

/// An event that has not taken effect yet, so it can be blocked. Sealed.
#[diagnostic::on_unimplemented(
    message = "a decision about `{Self}` cannot block, because it has already happened",
    note = "use `HookDecision::modify_result` to show the model a different result"
)]
pub trait Blockable: HookEvent {}

impl HookEvent for PreToolUseEvent {
    type Changed = Value;

    const NAME: &'static str = HOOK_PRE_TOOL_USE;
}

impl Blockable for PreToolUseEvent {}

impl HookEvent for PostToolUseEvent {
    type Changed = ChangedResult;

    const NAME: &'static str = HOOK_POST_TOOL_USE;
}

impl HookEvent for UserPromptSubmitEvent {
    type Changed = String;

    const NAME: &'static str = HOOK_USER_PROMPT_SUBMIT;
}

impl Blockable for UserPromptSubmitEvent {}

impl HookEvent for AnswerEvent {
    /// An answer is not replaced: the model answers again.
    type Changed = ();
    const NAME: &'static str = HOOK_ANSWER;
}

impl Blockable for AnswerEvent {}

mod sealed {
    use super::{AnswerEvent, PostToolUseEvent, PreToolUseEvent, UserPromptSubmitEvent};

    /// The part of an event that dispatch needs.
    #[expect(unnameable_types, reason = "that is what seals it")]
    pub trait Sealed {
        /// The tool that the event concerns, if any.
        fn tool(&self) -> Option<&str>;
    }

    impl Sealed for PreToolUseEvent {
        fn tool(&self) -> Option<&str> {
            Some(&self.tool_name)
        }
    }

    impl Sealed for PostToolUseEvent {
        fn tool(&self) -> Option<&str> {
            Some(&self.tool_name)
        }
    }

    impl Sealed for AnswerEvent {
        fn tool(&self) -> Option<&str> {
            None
        }
    }

    impl Sealed for UserPromptSubmitEvent {
        fn tool(&self) -> Option<&str> {
            None
        }
    }
}
