//! Threads, and the conversation that hooks share.

use oa_hooks::{
    Error, History, HookDecision, HookError, Hooks, PostToolUseEvent, PreToolUseEvent,
    UserPromptSubmitEvent,
};

use crate::{never, now, post, pre, prompt};

fn assert_send<T: Send>(value: T) -> T {
    value
}

fn assert_send_sync<T: Send + Sync>() {}

#[test]
fn public_types_are_send_and_sync() {
    assert_send_sync::<Hooks>();
    assert_send_sync::<History>();
    assert_send_sync::<Error>();
    assert_send_sync::<HookError>();
    assert_send_sync::<HookDecision<PreToolUseEvent>>();
    assert_send_sync::<(PreToolUseEvent, PostToolUseEvent, UserPromptSubmitEvent)>();

    let hooks = Hooks::new();
    assert!(now(assert_send(hooks.pre_tool_use(pre("add"), never))).is_ok());
    assert!(now(assert_send(hooks.post_tool_use(post("add"), never))).is_ok());
    assert!(now(assert_send(hooks.user_prompt_submit(prompt("Hi"), never))).is_ok());
}

#[test]
fn hook_futures_need_not_be_sync() {
    // A `Cell` across an await: `Send` but not `Sync`.
    let hooks = Hooks::new().add_pre_tool_use(|_| async {
        let cell = std::cell::Cell::new(0);
        crate::once().await;
        cell.set(1);
        None
    });
    assert!(now(assert_send(hooks.pre_tool_use(pre("add"), never))).is_ok());
}
