//! Compares arbitrary lists of hooks with a simple reference model.

use std::future;
use std::panic;
use std::sync::Once;
use std::time::Duration;

use oa_hooks::{Change, ErrorKind, HookDecision, HookEvent, HookOutcome, Hooks};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::{Boxed, at_once, now, once, post, pre, prompt};

/// The action of one hook.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Nothing,
    Continue,
    Block(u8),
    Modify(u8),
    Fail,
    Panic,
    PanicLate,
    PanicInClosure,
    Hang,
}

#[derive(Clone, Copy, Debug)]
struct Hook {
    deed: Deed,
    /// True if it yields once before it answers.
    waits: bool,
    /// True if it applies to the event's tool.
    concerns: bool,
}

fn hooks() -> impl Strategy<Value = Vec<Hook>> {
    let deed = prop_oneof![
        4 => Just(Deed::Nothing),
        4 => Just(Deed::Continue),
        1 => any::<u8>().prop_map(Deed::Block),
        1 => any::<u8>().prop_map(Deed::Modify),
        1 => Just(Deed::Fail),
        1 => Just(Deed::Panic),
        1 => Just(Deed::PanicLate),
        1 => Just(Deed::PanicInClosure),
        1 => Just(Deed::Hang),
    ];
    let hook = (deed, any::<bool>(), prop::bool::weighted(0.8))
        .prop_map(|(deed, waits, concerns)| Hook { deed, waits, concerns });
    vec(hook, 0..8)
}

/// The end of a dispatch.
#[derive(Debug, PartialEq)]
enum End {
    Allowed,
    Blocked(String),
    Modified(u8),
    Failed(ErrorKind),
}

/// The reference model: the first relevant hook decides. At a point without `block`, where the test substitutes
/// a modification, `blocks` is false.
fn expected(hooks: &[Hook], about_a_tool: bool, blocks: bool) -> End {
    for hook in hooks {
        if about_a_tool && !hook.concerns {
            continue;
        }
        return match hook.deed {
            Deed::Nothing | Deed::Continue => continue,
            Deed::Block(number) if blocks => End::Blocked(number.to_string()),
            Deed::Block(number) | Deed::Modify(number) => End::Modified(number),
            Deed::Fail => End::Failed(ErrorKind::Failed),
            Deed::Panic | Deed::PanicLate | Deed::PanicInClosure => {
                End::Failed(ErrorKind::Panicked)
            }
            Deed::Hang => End::Failed(ErrorKind::TimedOut),
        };
    }
    End::Allowed
}

type Answer<E> = Result<Option<HookDecision<E>>, oa_hooks::HookError>;

/// A closure that acts accordingly; `block` and `modify` are the point's decisions.
fn closure<E: HookEvent>(
    hook: Hook,
    block: fn(u8) -> HookDecision<E>,
    modify: fn(u8) -> HookDecision<E>,
) -> impl Fn(E) -> Boxed<Answer<E>> + Send + Sync + 'static {
    move |_| {
        assert!(!matches!(hook.deed, Deed::PanicInClosure), "in the closure");
        Box::pin(async move {
            assert!(!matches!(hook.deed, Deed::Panic), "at once");
            if hook.waits && !matches!(hook.deed, Deed::Hang) {
                once().await;
            }
            match hook.deed {
                Deed::Nothing => Ok(None),
                Deed::Continue => Ok(Some(HookDecision::allow())),
                Deed::Block(number) => Ok(Some(block(number))),
                Deed::Modify(number) => Ok(Some(modify(number))),
                Deed::Fail => Err("failed".into()),
                Deed::Panic | Deed::PanicLate | Deed::PanicInClosure => panic!("late"),
                Deed::Hang => future::pending().await,
            }
        })
    }
}

fn build(list: &[Hook]) -> Hooks {
    let mut all = Hooks::new();
    for &hook in list {
        let modify_result = |number: u8| HookDecision::modify_result(number.into(), "why");
        let one = Hooks::new()
            .try_add_pre_tool_use(closure(
                hook,
                |number| HookDecision::block(number.to_string()),
                |number| HookDecision::modify_input(number.into(), "why"),
            ))
            .try_add_post_tool_use(closure(hook, modify_result, modify_result))
            .try_add_user_prompt_submit(closure(
                hook,
                |number| HookDecision::block(number.to_string()),
                |number| HookDecision::modify_prompt(number.to_string(), "why"),
            ));
        let one = one.for_tools([if hook.concerns { "add" } else { "sub" }]);
        // The others yield, and must not time out under a clock by which all time is up.
        let hangs = matches!(hook.deed, Deed::Hang);
        let one = if hangs { one.with_timeout(Duration::from_secs(1)) } else { one };
        all = all.merge(one);
    }
    all
}

fn number(value: &Value) -> u8 {
    value.as_u64().and_then(|number| number.try_into().ok()).expect("a small number")
}

/// The panics are intended; hide their messages so that others remain visible.
fn hush() {
    static HUSHED: Once = Once::new();
    HUSHED.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let text = info.payload().downcast_ref::<&str>().copied().unwrap_or_default();
            if !["in the closure", "at once", "late"].contains(&text) {
                usual(info);
            }
        }));
    });
}

proptest! {
    #[test]
    fn the_first_relevant_hook_decides(list in hooks()) {
        hush();
        let hooks = build(&list);

        let end = match now(hooks.pre_tool_use(pre("add"), at_once)) {
            Ok(HookOutcome::Allow) => End::Allowed,
            Ok(HookOutcome::Block { reason }) if reason.starts_with("a hook panicked: ") => {
                End::Failed(ErrorKind::Panicked)
            }
            Ok(HookOutcome::Block { reason }) => End::Blocked(reason),
            Ok(HookOutcome::Modify(Change { value, .. })) => End::Modified(number(&value)),
            Err(error) => {
                prop_assert_ne!(error.kind(), ErrorKind::Panicked);
                End::Failed(error.kind())
            }
        };
        prop_assert_eq!(end, expected(&list, true, true));

        let end = match now(hooks.post_tool_use(post("add"), at_once)) {
            Ok(None) => End::Allowed,
            Ok(Some(change)) => End::Modified(number(&change.value.content)),
            Err(error) => End::Failed(error.kind()),
        };
        prop_assert_eq!(end, expected(&list, true, false));

        let end = match now(hooks.user_prompt_submit(prompt("Hi"), at_once)) {
            Ok(HookOutcome::Allow) => End::Allowed,
            Ok(HookOutcome::Block { reason }) => End::Blocked(reason),
            Ok(HookOutcome::Modify(Change { value, .. })) => End::Modified(value.parse().unwrap()),
            Err(error) => End::Failed(error.kind()),
        };
        prop_assert_eq!(end, expected(&list, false, true));
    }

    #[test]
    fn hooks_for_other_tools_are_not_reported(list in hooks()) {
        hush();
        let hooks = build(&list);
        let concerns = list.iter().any(|hook| hook.concerns);
        prop_assert_eq!(hooks.has_pre_tool_use("add"), concerns);
        prop_assert_eq!(hooks.has_post_tool_use("add"), concerns);
        prop_assert_eq!(hooks.has_user_prompt_submit(), !list.is_empty());
        prop_assert_eq!(hooks.is_empty(), list.is_empty());
        prop_assert_eq!(now(hooks.pre_tool_use(pre("mul"), at_once)).unwrap(), HookOutcome::Allow);
    }
}
