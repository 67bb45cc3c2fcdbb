//! Hooks for some tools, and merged groups.

use std::time::Duration;

use oa_hooks::{ErrorKind, HookDecision, HookOutcome, Hooks};

use crate::{at_once, never, now, post, pre, prompt};

fn gate(reason: &'static str) -> Hooks {
    Hooks::new()
        .add_pre_tool_use(move |_| async move { Some(HookDecision::block(reason)) })
        .add_post_tool_use(move |_| async move {
            Some(HookDecision::modify_result(reason.into(), reason))
        })
        .add_user_prompt_submit(move |_| async move { Some(HookDecision::block(reason)) })
}

/// Checks the reasons given before and after each tool; "" means none.
#[track_caller]
fn check(hooks: &Hooks, expected: &[(&str, &str)]) {
    for (tool, reason) in expected {
        let before = match now(hooks.pre_tool_use(pre(tool), never)).expect("a outcome") {
            HookOutcome::Block { reason } => reason,
            _ => String::new(),
        };
        let after = now(hooks.post_tool_use(post(tool), never)).expect("a outcome");
        assert_eq!(before, *reason, "before {tool}");
        assert_eq!(after.map(|change| change.reason).unwrap_or_default(), *reason, "after {tool}");
        assert_eq!(hooks.has_pre_tool_use(tool), !reason.is_empty());
        assert_eq!(hooks.has_post_tool_use(tool), !reason.is_empty());
    }
}

#[test]
fn for_tools_limits_hooks_to_names() {
    check(&gate("a").for_tools(["add", "sub"]), &[("add", "a"), ("sub", "a"), ("mul", "")]);
    check(&gate("a").for_tools(vec![String::from("add")]), &[("add", "a"), ("Add", ""), ("", "")]);
    check(&gate("a").for_tools([""; 0]), &[("add", "")]);
    check(&gate("a").for_tools(["s*", "add"]), &[("sub", "a"), ("add", "a"), ("mul", "")]);
}

#[test]
fn filters_intersect() {
    let hooks = gate("a").for_tools(["add", "sub"]).for_tools(["sub", "mul"]);
    check(&hooks, &[("add", ""), ("sub", "a"), ("mul", "")]);
    let hooks = gate("a").for_tools(["s*"]).for_tools(["*b", "sub"]);
    check(&hooks, &[("add", ""), ("sub", "a"), ("stub", "")]);
}

/// An agent looks for names that none of its tools has.
#[test]
fn listed_names_are_those_of_all_filters() {
    let before = Hooks::new().add_pre_tool_use(|_| async { None }).for_tools(["add", "s*"]);
    let after = Hooks::new().add_post_tool_use(|_| async { None }).for_tools(["mul"]);
    let hooks = before.merge(after).for_tools(["add"]);
    assert!(hooks.listed().eq(["add", "s*", "add", "mul", "add"]));
    assert_eq!(gate("a").listed().next(), None);
}

#[test]
fn a_filter_without_hooks_is_an_error() {
    let late = Hooks::new().for_tools(["add"]).merge(gate("a"));
    assert!(late.check().unwrap_err().contains("added before it"));
    let prompts = Hooks::new().add_user_prompt_submit(|_| async { None }).for_tools(["add"]);
    assert!(prompts.check().is_err() && Hooks::new().merge(prompts).check().is_err());
    let before = Hooks::new().add_pre_tool_use(|_| async { None }).for_tools(["add"]);
    let after = Hooks::new().add_post_tool_use(|_| async { None }).for_tools(["add"]);
    assert_eq!((before.check(), after.check(), Hooks::new().check()), (Ok(()), Ok(()), Ok(())));
}

#[test]
fn filters_apply_to_hooks_added_before() {
    let hooks = gate("a").for_tools(["add"]).merge(gate("b"));
    check(&hooks, &[("add", "a"), ("sub", "b")]);
    let hooks = hooks.for_tools(["add", "sub"]);
    check(&hooks, &[("add", "a"), ("sub", "b"), ("mul", "")]);
}

#[test]
fn merged_groups_keep_their_order() {
    check(&gate("a").merge(gate("b")), &[("add", "a")]);
    check(&Hooks::new().merge(gate("b")).merge(Hooks::new()), &[("add", "b")]);
}

#[test]
fn for_tools_does_not_limit_prompt_hooks() {
    let hooks = gate("a").for_tools(["add"]);
    assert!(hooks.has_user_prompt_submit());
    let outcome = now(hooks.user_prompt_submit(prompt("Hi"), never)).unwrap();
    assert_eq!(outcome, HookOutcome::Block { reason: "a".to_owned() });
}

#[test]
fn the_shorter_timeout_applies() {
    let seconds = Duration::from_secs;
    for (first, second) in [(1, 2), (2, 1)] {
        let hooks = Hooks::new().add_pre_tool_use(|_| std::future::pending());
        let hooks = hooks.with_timeout(seconds(first)).with_timeout(seconds(second));
        let error = now(hooks.pre_tool_use(pre("add"), at_once)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(error.to_string().ends_with("timed out after 1s"), "{error}");
    }
}

#[test]
fn filters_of_a_clone_are_its_own() {
    let all = gate("a");
    let some = all.clone().for_tools(["add"]);
    check(&all, &[("add", "a"), ("sub", "a")]);
    check(&some, &[("add", "a"), ("sub", "")]);
}

#[test]
fn debug_shows_location_and_tools() {
    let hooks = Hooks::new().add_pre_tool_use(|_| async { None }).for_tools(["add"]);
    let shown = format!("{hooks:?}");
    assert!(shown.contains("groups.rs:"), "{shown}");
    assert!(shown.contains(r#"tools: [[Pattern("add")]]"#), "{shown}");
}
