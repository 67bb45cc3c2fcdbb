//! Hooks of finished answers.

use std::future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oa_hooks::{
    AnswerDecision, AnswerEvent, ErrorKind, HOOK_ANSWER, HookDecision, HookEvent, Hooks, Message,
};
use oa_types::TextBlock;

use crate::{at_once, history, never, now, once};

fn event(text: &str, retries: u32) -> AnswerEvent {
    AnswerEvent::new(Message::assistant(vec![TextBlock::new(text).into()]), history(), retries)
}

fn decision(hooks: &Hooks, event: AnswerEvent) -> AnswerDecision {
    now(hooks.answer(event, never)).expect("no hook fails")
}

#[test]
fn first_answer_decision_wins() {
    let last = Arc::new(AtomicUsize::new(0));
    let hooks = Hooks::new()
        .add_answer(|_| async { Some(HookDecision::continue_()) })
        .add_answer(|event| async move {
            once().await;
            (event.message.text() == "Bad.").then(|| HookDecision::retry("better"))
        })
        .add_answer(
            |event| async move { (event.retries > 1).then(|| HookDecision::block("again")) },
        )
        .merge(Hooks::new().add_answer({
            let last = Arc::clone(&last);
            move |event| {
                assert_eq!(event.history.len(), 1);
                last.fetch_add(1, Ordering::Relaxed);
                async { None }
            }
        }))
        .for_tools(["add"]);
    assert!(hooks.has_answer() && !hooks.is_empty() && !hooks.has_user_prompt_submit());
    let retry = AnswerDecision::Retry { reason: "better".to_owned() };
    assert_eq!(decision(&hooks, event("Bad.", 2)), retry);
    let block = AnswerDecision::Block { reason: "again".to_owned() };
    assert_eq!(decision(&hooks, event("Good.", 2)), block);
    assert_eq!(last.load(Ordering::Relaxed), 0);
    assert_eq!(decision(&hooks, event("Good.", 1)), AnswerDecision::Continue);
    assert_eq!(last.load(Ordering::Relaxed), 1);
    assert_eq!(decision(&Hooks::new(), event("Good.", 0)), AnswerDecision::Continue);
    assert_eq!(<AnswerEvent as HookEvent>::NAME, HOOK_ANSWER);
}

#[test]
fn a_failing_hook_never_lets_an_answer_pass() {
    let failing = [
        (Hooks::new().try_add_answer(|_| async { Err("no database".into()) }), ErrorKind::Failed),
        (Hooks::new().add_answer(|_| async { panic!("no idea") }), ErrorKind::Panicked),
        (
            Hooks::new().add_answer(|_| future::pending()).with_timeout(Duration::from_secs(1)),
            ErrorKind::TimedOut,
        ),
    ];
    for (hooks, kind) in failing {
        let hooks = hooks.add_answer(|_| async { None });
        let error = now(hooks.answer(event("Good.", 0), at_once)).unwrap_err();
        assert_eq!((error.kind(), error.point()), (kind, "answer"));
    }
}
