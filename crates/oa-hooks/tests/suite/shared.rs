//! Threads, and the conversation that hooks share.

use std::sync::Arc;

use oa_hooks::{
    Error, History, HookDecision, HookError, Hooks, Message, MessageRole, PostToolUseEvent,
    PreToolUseEvent, UserPromptSubmitEvent,
};

use crate::{never, now, post, pre, prompt};

fn assert_send<T: Send>(value: T) -> T {
    value
}

fn assert_send_sync<T: Send + Sync>() {}

#[test]
fn everything_crosses_threads() {
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
fn a_future_needs_only_to_be_send() {
    // A `Cell` across an await: `Send` and not `Sync`.
    let hooks = Hooks::new().add_pre_tool_use(|_| async {
        let cell = std::cell::Cell::new(0);
        crate::once().await;
        cell.set(1);
        None
    });
    assert!(now(assert_send(hooks.pre_tool_use(pre("add"), never))).is_ok());
}

#[test]
fn the_conversation_is_shared() {
    let mut messages = Arc::new(vec![Arc::new(Message::user("Hi"))]);
    let first = Arc::clone(&messages[0]);
    let history = History::from(Arc::clone(&messages));
    assert!(std::ptr::eq(history.as_ptr(), messages.as_ptr()));
    assert!(Arc::ptr_eq(&history.clone()[0], &first));

    // It grows; the snapshot does not, and no message is copied.
    Arc::make_mut(&mut messages).push(Arc::new(Message::system("Be brief.")));
    assert_eq!((history.len(), messages.len()), (1, 2));
    assert!(Arc::ptr_eq(&messages[0], &first));
    drop(history);

    // With no snapshot left nothing at all is copied.
    Arc::make_mut(&mut messages).reserve(10);
    let place = messages.as_ptr();
    drop(History::from(Arc::clone(&messages)));
    Arc::make_mut(&mut messages).push(Arc::new(Message::user("Hm")));
    assert_eq!(messages.as_ptr(), place);
}

#[test]
fn a_history_reads_as_a_slice() {
    let messages = [Message::system("Be brief."), Message::user("Hi")];
    let history: History = messages.clone().into_iter().collect();
    assert_eq!(history, History::from(messages.to_vec()));
    assert_eq!(history, messages.into_iter().map(Arc::new).collect());
    assert_eq!(history.last().unwrap().text(), "Hi");
    assert_eq!(history[0].role, MessageRole::System);
    let roles: Vec<_> = history.iter().map(|message| message.role).collect();
    assert_eq!(roles, [MessageRole::System, MessageRole::User]);
    assert_eq!((&history).into_iter().count(), 2);
    assert!(History::default().is_empty());
}
