use std::fmt;

use serde_json::Value;

use crate::event::{
    HOOK_POST_TOOL_USE, HOOK_PRE_TOOL_USE, HOOK_USER_PROMPT_SUBMIT, PostToolUseEvent,
    PreToolUseEvent, UserPromptSubmitEvent,
};

/// What a hook decides about its event.
///
/// | | before a tool | after a tool | before a prompt |
/// | --- | --- | --- | --- |
/// | [`allow`](Self::allow) | yes | yes | yes |
/// | [`block`](Self::block) | yes | | yes |
/// | [`modify_input`](HookDecision::modify_input) | yes | | |
/// | [`modify_result`](HookDecision::modify_result) | | yes | |
/// | [`modify_prompt`](HookDecision::modify_prompt) | | | yes |
///
/// # Senseless decisions do not compile
///
/// What has happened cannot be blocked, and has no input to change any more; only its result can be
/// replaced:
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
/// A call that is to come has an input and no result yet:
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
/// A prompt is text and concerns no tool:
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
/// A decision about one event does not count for another:
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
    verdict: Verdict<E::Changed>,
}

impl<E: HookEvent> HookDecision<E> {
    /// Lets things take their course, which is also what `None` does: the next hook is asked.
    pub fn allow() -> Self {
        Self { verdict: Verdict::Allow }
    }

    /// The same as [`allow`](Self::allow), by the name that it had in the earlier SDK.
    pub fn continue_() -> Self {
        Self::allow()
    }

    /// Returns what was decided.
    #[must_use]
    pub fn verdict(&self) -> &Verdict<E::Changed> {
        &self.verdict
    }

    /// Returns what was decided, by value.
    #[must_use]
    pub fn into_verdict(self) -> Verdict<E::Changed> {
        self.verdict
    }

    fn modify(value: E::Changed, reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::Modify(Change { value, reason: reason.into() }) }
    }
}

impl<E: Blockable> HookDecision<E> {
    /// Refuses the call or the prompt. The model is told the reason for a call, the user that for a prompt.
    pub fn block(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::Block { reason: reason.into() } }
    }
}

impl HookDecision<PreToolUseEvent> {
    /// Runs the tool with other arguments, completed and checked like those of the model. The model is not told; the
    /// conversation keeps its own, and a call that was shown already was shown with those. Hooks behind this one are
    /// not asked; rules and permissions are, about the new arguments.
    pub fn modify_input(input: Value, reason: impl Into<String>) -> Self {
        Self::modify(input, reason)
    }
}

impl HookDecision<PostToolUseEvent> {
    /// Shows the model another result. Hooks behind this one are not asked.
    pub fn modify_result(result: Value, reason: impl Into<String>) -> Self {
        Self::modify(result, reason)
    }
}

impl HookDecision<UserPromptSubmitEvent> {
    /// Sends another prompt. Hooks behind this one are not asked.
    pub fn modify_prompt(prompt: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::modify(prompt.into(), reason)
    }
}

impl<E: HookEvent> Clone for HookDecision<E> {
    fn clone(&self) -> Self {
        Self { verdict: self.verdict.clone() }
    }
}

impl<E: HookEvent> PartialEq for HookDecision<E> {
    fn eq(&self, other: &Self) -> bool {
        self.verdict == other.verdict
    }
}

impl<E: HookEvent> fmt::Debug for HookDecision<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HookDecision").field(&self.verdict).finish()
    }
}

/// What all hooks of a point say together.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "whoever acts on a verdict must know every one")]
pub enum Verdict<T> {
    /// Nobody objects.
    Allow,
    /// It must not happen.
    Block {
        /// Why, in the hook's words.
        reason: String,
    },
    /// It happens, with something else in its place.
    Modify(Change<T>),
}

/// What takes the place of an input, a prompt or a result.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a change is what it is to, and why")]
pub struct Change<T> {
    /// What takes the place.
    pub value: T,
    /// Why, in the hook's words.
    pub reason: String,
}

/// An event that hooks decide about. Sealed: the points are those of the agent.
pub trait HookEvent: sealed::Sealed + Clone + Send + 'static {
    /// What a decision can change.
    type Changed: Clone + fmt::Debug + PartialEq + Send + 'static;

    /// The name of the point.
    const NAME: &'static str;
}

/// An event that is about something to come, which can still be blocked. Sealed.
#[diagnostic::on_unimplemented(
    message = "a decision about `{Self}` cannot block: it has happened",
    note = "`HookDecision::modify_result` shows the model another result"
)]
pub trait Blockable: HookEvent {}

impl HookEvent for PreToolUseEvent {
    type Changed = Value;

    const NAME: &'static str = HOOK_PRE_TOOL_USE;
}

impl Blockable for PreToolUseEvent {}

impl HookEvent for PostToolUseEvent {
    type Changed = Value;

    const NAME: &'static str = HOOK_POST_TOOL_USE;
}

impl HookEvent for UserPromptSubmitEvent {
    type Changed = String;

    const NAME: &'static str = HOOK_USER_PROMPT_SUBMIT;
}

impl Blockable for UserPromptSubmitEvent {}

mod sealed {
    use super::{PostToolUseEvent, PreToolUseEvent, UserPromptSubmitEvent};

    /// What dispatch needs to know of an event, and nobody else.
    #[expect(unnameable_types, reason = "that is what seals it")]
    pub trait Sealed {
        /// The tool that the event is about, if it is about one.
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

    impl Sealed for UserPromptSubmitEvent {
        fn tool(&self) -> Option<&str> {
            None
        }
    }
}
