//! Hooks through their public interface, polled by hand: no runtime or clock is needed.

use std::future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use oa_hooks::{
    History, Message, Outcome, PostToolUseEvent, PreToolUseEvent, UserPromptSubmitEvent,
};
use serde_json::json;

mod answers;
mod failures;
mod groups;
mod laws;
mod nested;
mod order;
mod rules;
mod shared;

/// Polls a future that is ready after a few polls.
#[track_caller]
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..100 {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
    }
    panic!("it waits for something")
}

/// A clock that stands still.
fn never(_: Duration) -> future::Pending<()> {
    future::pending()
}

/// A clock by which every timeout expires immediately.
fn at_once(_: Duration) -> future::Ready<()> {
    future::ready(())
}

/// Yields once, so that hooks are not ready on their first poll.
fn once() -> impl Future<Output = ()> + Send {
    let mut waited = false;
    future::poll_fn(move |cx: &mut Context<'_>| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

fn history() -> History {
    vec![Message::user("What is 1 + 2?")].into()
}

fn pre(tool: &str) -> PreToolUseEvent {
    PreToolUseEvent::new(tool, json!({ "a": 1 }), "call_1", history())
}

fn post(tool: &str) -> PostToolUseEvent {
    let (input, result) = (json!({ "a": 1 }), json!(3));
    PostToolUseEvent::new(tool, input, "call_1", result, Outcome::Ok, history())
}

fn prompt(text: &str) -> UserPromptSubmitEvent {
    UserPromptSubmitEvent::new(text, history())
}
