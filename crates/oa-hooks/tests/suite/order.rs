//! The order of hooks, and the decision that wins.

use std::sync::{Arc, Mutex};

use oa_hooks::{
    Change, HOOK_POST_TOOL_USE, HOOK_PRE_TOOL_USE, HOOK_USER_PROMPT_SUBMIT, History, HookDecision,
    HookEvent, HookOutcome, Hooks, PostToolUseEvent, PreToolUseEvent, UserPromptSubmitEvent,
};
use oa_types::ImageBlock;
use serde_json::json;

use crate::{never, now, once, post, pre, prompt};

fn modified<T>(value: impl Into<T>, reason: &str) -> HookOutcome<T> {
    HookOutcome::Modify(Change { value: value.into(), reason: reason.to_owned() })
}

fn blocked<T>(reason: &str) -> HookOutcome<T> {
    HookOutcome::Block { reason: reason.to_owned() }
}

#[test]
fn no_hooks_allow_everything() {
    let hooks = Hooks::new();
    assert!(hooks.is_empty());
    assert_eq!(now(hooks.pre_tool_use(pre("add"), never)).unwrap(), HookOutcome::Allow);
    assert_eq!(now(hooks.post_tool_use(post("add"), never)).unwrap(), None);
    assert_eq!(now(hooks.user_prompt_submit(prompt("Hi"), never)).unwrap(), HookOutcome::Allow);
}

#[test]
fn each_point_has_its_own_hooks() {
    let hooks = Hooks::new().add_pre_tool_use(|_| async { None });
    assert!(!hooks.is_empty() && hooks.has_pre_tool_use("add"));
    assert!(!hooks.has_post_tool_use("add") && !hooks.has_user_prompt_submit());
    assert!(!hooks.has_answer());

    let hooks = Hooks::new().add_post_tool_use(|_| async { None });
    assert!(!hooks.is_empty() && hooks.has_post_tool_use("add"));
    assert!(!hooks.has_pre_tool_use("add") && !hooks.has_user_prompt_submit());

    let hooks = Hooks::new().add_user_prompt_submit(|_| async { None });
    assert!(!hooks.is_empty() && hooks.has_user_prompt_submit());
    assert!(!hooks.has_pre_tool_use("add") && !hooks.has_post_tool_use("add"));
}

#[test]
fn the_first_decision_wins() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let asked = Arc::clone(&asked);
        move || asked.lock().unwrap().push(name)
    };
    let (first, second, third, fourth) =
        (note("first"), note("second"), note("third"), note("fourth"));
    let hooks = Hooks::new()
        .add_pre_tool_use(move |_| {
            first();
            async {
                once().await;
                None
            }
        })
        .add_pre_tool_use(move |_| {
            second();
            async { Some(HookDecision::allow()) }
        })
        .add_pre_tool_use(move |_| {
            third();
            async { Some(HookDecision::modify_input(json!({ "a": 2 }), "better")) }
        })
        .add_pre_tool_use(move |_| {
            fourth();
            async { Some(HookDecision::block("too late")) }
        });
    let outcome = now(hooks.pre_tool_use(pre("add"), never)).unwrap();
    assert_eq!(outcome, modified(json!({ "a": 2 }), "better"));
    assert_eq!(*asked.lock().unwrap(), ["first", "second", "third"]);
}

#[test]
fn allow_does_not_skip_later_hooks() {
    let hooks = Hooks::new()
        .add_pre_tool_use(|_| async { Some(HookDecision::allow()) })
        .add_pre_tool_use(|_| async { Some(HookDecision::block("no")) })
        .add_user_prompt_submit(|_| async { Some(HookDecision::allow()) })
        .add_user_prompt_submit(|_| async { Some(HookDecision::block("no")) })
        .add_post_tool_use(|_| async { Some(HookDecision::allow()) })
        .add_post_tool_use(|_| async { Some(HookDecision::modify_result("***".into(), "no")) });
    assert_eq!(now(hooks.pre_tool_use(pre("add"), never)).unwrap(), blocked("no"));
    assert_eq!(now(hooks.user_prompt_submit(prompt("Hi"), never)).unwrap(), blocked("no"));
    let change = now(hooks.post_tool_use(post("add"), never)).unwrap();
    assert_eq!(change, Some(Change { value: json!("***").into(), reason: "no".into() }));
}

#[test]
fn a_hook_may_change_the_prompt() {
    let hooks = Hooks::new().add_user_prompt_submit(|event| async move {
        let prompt = event.prompt.trim();
        (prompt != event.prompt).then(|| HookDecision::modify_prompt(prompt, "trimmed"))
    });
    let outcome = now(hooks.user_prompt_submit(prompt(" Hi "), never)).unwrap();
    assert_eq!(outcome, modified("Hi", "trimmed"));
    assert_eq!(now(hooks.user_prompt_submit(prompt("Hi"), never)).unwrap(), HookOutcome::Allow);
}

#[test]
fn every_hook_gets_the_whole_event() {
    let hooks = Hooks::new()
        .add_pre_tool_use(|event| async move {
            assert_eq!(event, pre("add"));
            None
        })
        .add_pre_tool_use(|mut event| async move {
            // The event belongs to the hook, which may take it apart.
            event.tool_input["a"] = json!([event.tool_name, event.tool_use_id]);
            Some(HookDecision::modify_input(event.tool_input, event.history[0].text()))
        })
        .add_post_tool_use(|event| async move {
            assert_eq!(event, post("add"));
            let PostToolUseEvent { tool_result, outcome, .. } = event;
            let result = json!({ "was": tool_result, "and": outcome.as_str() });
            Some(HookDecision::modify_result(result, "shown"))
        });
    let outcome = now(hooks.pre_tool_use(pre("add"), never)).unwrap();
    assert_eq!(outcome, modified(json!({ "a": ["add", "call_1"] }), "What is 1 + 2?"));
    let change = now(hooks.post_tool_use(post("add"), never)).unwrap().unwrap();
    assert_eq!(change.value, json!({ "was": 3, "and": "ok" }).into());
}

#[test]
fn a_changed_result_replaces_the_images() {
    let image = ImageBlock::from_url("https://host/a.png").unwrap();
    let keeps = Hooks::new().add_post_tool_use(|event| async move {
        let images = event.images.clone();
        Some(HookDecision::modify_result_with_images(json!("seen"), images, "noted"))
    });
    let drops = Hooks::new().add_post_tool_use(|_| async {
        Some(HookDecision::modify_result(json!("seen"), "hidden"))
    });
    for (hooks, images) in [(keeps, vec![image.clone()]), (drops, vec![])] {
        let mut event = post("add");
        event.images.push(image.clone());
        let change = now(hooks.post_tool_use(event, never)).unwrap().unwrap();
        assert_eq!((change.value.content, change.value.images), (json!("seen"), images));
    }
}

#[test]
fn fallible_hooks_may_decide() {
    let hooks = Hooks::new()
        .try_add_pre_tool_use(|event| async move {
            let limit: i64 = "1".parse()?;
            let a = event.tool_input["a"].as_i64().ok_or("a is no number")?;
            Ok((a > limit).then(|| HookDecision::block("too much")))
        })
        .try_add_post_tool_use(|_| async { Ok(Some(HookDecision::allow())) })
        .try_add_user_prompt_submit(|_| async { Ok(Some(HookDecision::block("no"))) });
    assert_eq!(now(hooks.pre_tool_use(pre("add"), never)).unwrap(), HookOutcome::Allow);
    let event = PreToolUseEvent::new("add", json!({ "a": 2 }), "call_1", History::default());
    assert_eq!(now(hooks.pre_tool_use(event, never)).unwrap(), blocked("too much"));
    assert_eq!(now(hooks.post_tool_use(post("add"), never)).unwrap(), None);
    assert_eq!(now(hooks.user_prompt_submit(prompt("Hi"), never)).unwrap(), blocked("no"));
}

#[test]
fn decisions_expose_their_outcome() {
    let decision = HookDecision::<PreToolUseEvent>::block("no");
    assert_eq!(decision.outcome(), &blocked("no"));
    assert_eq!(decision.clone(), decision);
    assert_ne!(decision, HookDecision::allow());
    assert_eq!(HookDecision::<PreToolUseEvent>::continue_(), HookDecision::allow());
    assert_eq!(format!("{decision:?}"), r#"HookDecision(Block { reason: "no" })"#);
    let decision = HookDecision::modify_prompt("Hi", "why");
    assert_eq!(decision.into_outcome(), modified("Hi", "why"));
}

#[test]
fn event_names_equal_the_constants() {
    assert_eq!((PreToolUseEvent::NAME, HOOK_PRE_TOOL_USE), ("pre_tool_use", "pre_tool_use"));
    assert_eq!((PostToolUseEvent::NAME, HOOK_POST_TOOL_USE), ("post_tool_use", "post_tool_use"));
    let name = "user_prompt_submit";
    assert_eq!((UserPromptSubmitEvent::NAME, HOOK_USER_PROMPT_SUBMIT), (name, name));
}
