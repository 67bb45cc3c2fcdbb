//! A failing hook never counts as consent.

use std::error::Error as _;
use std::future;
use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use oa_hooks::{
    Error, ErrorKind, HookDecision, HookError, HookOutcome, Hooks, Permission, PermissionMode,
    PermissionRequest, Permissions, ToolRule,
};
use serde_json::json;

use crate::{at_once, history, never, now, once, post, pre, prompt};

const SECOND: Duration = Duration::from_secs(1);

/// Checks kind, point and message; the location is compared separately.
#[track_caller]
fn check(error: &Error, kind: ErrorKind, point: &str, words: &str) {
    assert_eq!((error.kind(), error.point()), (kind, point));
    let location = error.location();
    assert!(location.file().ends_with("failures.rs"), "{location}");
    assert_eq!(error.to_string(), format!("the {point} hook added at {location} {words}"));
}

#[test]
fn an_error_ends_the_dispatch() {
    let hooks = Hooks::new()
        .try_add_pre_tool_use(|_| async { Err("no database".into()) })
        .try_add_post_tool_use(|_| async { Err(HookError::new("no database")) })
        .try_add_user_prompt_submit(|_| async {
            let _: u8 = "256".parse()?;
            Ok(None)
        })
        // No hook is asked after the failure.
        .add_pre_tool_use(|_| async { Some(HookDecision::block("no")) })
        .add_user_prompt_submit(|_| async { Some(HookDecision::block("no")) });

    let error = now(hooks.pre_tool_use(pre("add"), never)).unwrap_err();
    check(&error, ErrorKind::Failed, "pre_tool_use", "failed");
    assert_eq!(error.source().unwrap().to_string(), "no database");

    let error = now(hooks.post_tool_use(post("add"), never)).unwrap_err();
    check(&error, ErrorKind::Failed, "post_tool_use", "failed");

    let error = now(hooks.user_prompt_submit(prompt("Hi"), never)).unwrap_err();
    check(&error, ErrorKind::Failed, "user_prompt_submit", "failed");
    assert!(error.source().unwrap().is::<std::num::ParseIntError>());
}

/// At the other points a panic is an error.
#[test]
fn a_panic_blocks_only_pre_tool_use() {
    let hooks = Hooks::new()
        .add_pre_tool_use(|_| async { panic!("no idea") })
        .add_post_tool_use(|event| async move { panic!("no idea of {}", event.tool_name) })
        .add_user_prompt_submit(|_| async {
            once().await;
            panic_any(7)
        })
        .add_pre_tool_use(|_| async { None });

    let outcome = now(hooks.pre_tool_use(pre("add"), never)).unwrap();
    assert_eq!(outcome, HookOutcome::Block { reason: "a hook panicked: no idea".to_owned() });

    let error = now(hooks.post_tool_use(post("add"), never)).unwrap_err();
    check(&error, ErrorKind::Panicked, "post_tool_use", "panicked: no idea of add");
    assert!(error.source().is_none());

    let error = now(hooks.user_prompt_submit(prompt("Hi"), never)).unwrap_err();
    check(&error, ErrorKind::Panicked, "user_prompt_submit", "panicked: no message");
}

#[test]
fn a_panic_in_the_closure_blocks() {
    let hooks = Hooks::new().add_pre_tool_use(|event| {
        assert_eq!(event.tool_name, "sub", "wrong tool");
        async { None }
    });
    let HookOutcome::Block { reason } = now(hooks.pre_tool_use(pre("add"), never)).unwrap() else {
        panic!("it is blocked")
    };
    assert!(reason.contains("wrong tool"), "{reason}");
}

#[test]
fn panic_messages_are_bounded() {
    let hooks = Hooks::new().add_pre_tool_use(|_| async { panic!("{}", "é".repeat(100_000)) });
    let outcome = now(hooks.pre_tool_use(pre("add"), never)).unwrap();
    let reason = format!("a hook panicked: {}", "é".repeat(500));
    assert_eq!(outcome, HookOutcome::Block { reason });
}

#[test]
fn a_slow_hook_times_out() {
    let hooks = Hooks::new()
        .add_pre_tool_use(|_| future::pending())
        .add_post_tool_use(|_| future::pending())
        .add_user_prompt_submit(|_| future::pending())
        .with_timeout(SECOND);

    let error = now(hooks.pre_tool_use(pre("add"), at_once)).unwrap_err();
    check(&error, ErrorKind::TimedOut, "pre_tool_use", "timed out after 1s");
    let error = now(hooks.post_tool_use(post("add"), at_once)).unwrap_err();
    check(&error, ErrorKind::TimedOut, "post_tool_use", "timed out after 1s");
    let error = now(hooks.user_prompt_submit(prompt("Hi"), at_once)).unwrap_err();
    check(&error, ErrorKind::TimedOut, "user_prompt_submit", "timed out after 1s");
}

#[test]
fn a_decision_beats_an_expired_timeout() {
    let hooks = Hooks::new()
        .add_pre_tool_use(|_| async { None })
        .with_timeout(SECOND)
        .add_pre_tool_use(|_| async {
            once().await;
            Some(HookDecision::block("no"))
        });
    // The first is ready as soon as its time is up, the second has no limit.
    let outcome = now(hooks.pre_tool_use(pre("add"), at_once)).unwrap();
    assert_eq!(outcome, HookOutcome::Block { reason: "no".to_owned() });
}

#[test]
fn hooks_without_timeout_start_no_timer() {
    let asked = AtomicUsize::new(0);
    let clock = |limit| {
        assert_eq!(limit, SECOND);
        asked.fetch_add(1, Ordering::Relaxed);
        future::pending()
    };
    let hooks = Hooks::new()
        .add_pre_tool_use(|_| async { None })
        .with_timeout(SECOND)
        .add_pre_tool_use(|_| async { None });
    now(hooks.pre_tool_use(pre("add"), clock)).unwrap();
    assert_eq!(asked.into_inner(), 1);
}

/// Records that it is dropped, then panics.
struct Fuse(Arc<AtomicBool>);

impl Drop for Fuse {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        panic!("burnt");
    }
}

#[test]
fn panics_on_drop_of_a_hook_are_contained() {
    let burnt = Arc::new(AtomicBool::new(false));
    let fuse = Arc::clone(&burnt);
    let hooks = Hooks::new()
        .add_pre_tool_use(move |_| {
            let fuse = Fuse(Arc::clone(&fuse));
            async move {
                future::pending::<()>().await;
                drop(fuse);
                None
            }
        })
        .with_timeout(SECOND);

    let error = now(hooks.pre_tool_use(pre("add"), at_once)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(burnt.swap(false, Ordering::Relaxed));

    // Dispatch is dropped midway.
    let mut dispatch = Box::pin(hooks.pre_tool_use(pre("add"), never));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(dispatch.as_mut().poll(&mut cx).is_pending());
    drop(dispatch);
    assert!(burnt.load(Ordering::Relaxed));
}

/// Panics with another of its kind when it is dropped.
struct Hostile;

impl Drop for Hostile {
    fn drop(&mut self) {
        panic_any(Self);
    }
}

#[test]
fn panic_payloads_that_panic_are_contained() {
    let throws = Hooks::new().add_pre_tool_use(|_| async { panic_any(Hostile) });
    let outcome = now(throws.pre_tool_use(pre("add"), never)).unwrap();
    assert_eq!(outcome, HookOutcome::Block { reason: "a hook panicked: no message".to_owned() });

    let leaves = Hooks::new().add_post_tool_use(|_| {
        let left = Hostile;
        future::poll_fn(move |_| {
            let _here = &left;
            Poll::Ready(None)
        })
    });
    let error = now(leaves.post_tool_use(post("add"), never)).unwrap_err();
    check(&error, ErrorKind::Panicked, "post_tool_use", "panicked: no message");
}

#[test]
fn panics_in_permissions_allow_nothing() {
    let rule = |rule: ToolRule| Permissions::new().rule(rule.when(|_| panic_any(Hostile)));
    let known = |permissions: Permissions| permissions.known("add", &json!({}), None);
    assert!(matches!(known(rule(ToolRule::deny("add"))), Some(Permission::Deny(_))));
    assert_eq!(known(rule(ToolRule::ask("add"))), None);
    let mode = PermissionMode::Ask;
    assert_eq!(known(rule(ToolRule::allow("add")).mode(mode)), None);

    let asks = Permissions::new().can_use_tool(|_| async { panic_any(Hostile) });
    let request = PermissionRequest::new("add", json!({}), "call_1", history());
    let permission = now(asks.decide(request, never));
    assert_eq!(permission, Permission::deny("the permission callback panicked: no message"));
}

#[test]
fn errors_show_point_and_cause() {
    let hooks = Hooks::new().try_add_pre_tool_use(|_| async { Err("no database".into()) });
    let error = now(hooks.pre_tool_use(pre("add"), never)).unwrap_err();
    let shown = format!("{error:?}");
    assert!(shown.starts_with(r#"Error { point: "pre_tool_use", added: "#), "{shown}");
    assert!(shown.ends_with(r#"failure: Failed("no database") }"#), "{shown}");

    let error = HookError::from("no database");
    assert_eq!(error.to_string(), "no database");
    assert_eq!(format!("{error:?}"), r#"HookError("no database")"#);
}
