//! Permissions of agents inside of other agents.

use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use oa_hooks::{History, Permission, PermissionMode, PermissionRequest, Permissions, ToolRule};
use serde_json::json;

fn decide(permissions: &Permissions, tool: &str) -> Permission {
    let request = PermissionRequest::new(tool, json!({}), "c1", History::default());
    let decided = pin!(permissions.decide(request, |_| pending()));
    match decided.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(permission) => permission,
        Poll::Pending => panic!("no callback waits here"),
    }
}

/// Permissions that note the path of each question, and allow.
fn asking(asked: &Arc<Mutex<Vec<String>>>, who: &'static str) -> Permissions {
    let asked = Arc::clone(asked);
    Permissions::new().can_use_tool(move |request| {
        asked
            .lock()
            .expect("no test panics")
            .push(format!("{who}: {}", request.agents.join(" > ")));
        async { Permission::Allow }
    })
}

/// Denials of an outer agent apply to inner agents; its list of allowed tools does not.
#[test]
fn outer_denials_hold_inside() {
    let outer = Permissions::new()
        .allow_only(["researcher"])
        .disallow(["shell*"])
        .rule(ToolRule::deny("delete_*"));
    let middle = Permissions::new().rule(ToolRule::allow("*")).within(&outer, "a");
    let inner = Permissions::new().mode(PermissionMode::AllowAll).within(&middle, "b");
    for permissions in [&middle, &inner] {
        assert!(!permissions.offers("shell_exec") && !permissions.allow_everything());
        assert!(matches!(decide(permissions, "shell_exec"), Permission::Deny(_)));
        assert!(matches!(decide(permissions, "delete_file"), Permission::Deny(_)));
        assert_eq!(decide(permissions, "search"), Permission::Allow);
    }
    assert_eq!(inner.agents(), ["a", "b"]);
    let plan = Permissions::new().mode(PermissionMode::Plan);
    let inner = Permissions::new().mode(PermissionMode::AllowAll).within(&plan, "a");
    assert!(matches!(decide(&inner, "search"), Permission::Deny(_)));
}

#[test]
fn without_settings_the_outer_rules_apply() {
    let asked = Arc::default();
    let outer = asking(&asked, "outer").rule(ToolRule::allow("read"));
    let inner = Permissions::new().within(&Permissions::new().within(&outer, "a"), "b");
    assert_eq!(decide(&inner, "read"), Permission::Allow);
    assert_eq!(decide(&inner, "write"), Permission::Allow);
    assert_eq!(*asked.lock().unwrap(), ["outer: a > b"]);
}

/// An agent with settings decides by its own rules and mode, and asks the nearest callback.
#[test]
fn the_nearest_callback_is_asked() {
    let asked = Arc::default();
    let outer = asking(&asked, "outer").rule(ToolRule::ask("search"));
    let inner = Permissions::new().rule(ToolRule::ask("write")).within(&outer, "a");
    assert_eq!(decide(&inner, "search"), Permission::Allow);
    assert_eq!(decide(&inner, "write"), Permission::Allow);
    let inner = asking(&asked, "inner").within(&outer, "b");
    assert_eq!(decide(&inner, "write"), Permission::Allow);
    assert_eq!(*asked.lock().unwrap(), ["outer: a", "inner: b"]);
    // Nobody to ask: the call waits.
    let nobody = Permissions::new().mode(PermissionMode::Ask);
    assert_eq!(decide(&Permissions::new().within(&nobody, "a"), "write"), Permission::Later);
}

#[test]
fn nesting_in_allow_everything_keeps_it() {
    let inner = Permissions::new().within(&Permissions::new(), "a");
    assert!(inner.allow_everything());
}

/// A question that a call raises is decided as the call is, lists included.
#[test]
fn questions_of_a_call_keep_its_permissions() {
    let asked = Arc::default();
    let outer = asking(&asked, "outer").allow_only(["search"]).within(&Permissions::new(), "a");
    let question = outer.nested("server");
    assert!(matches!(decide(&question, "shell"), Permission::Deny(_)));
    assert_eq!(decide(&question, "search"), Permission::Allow);
    assert_eq!(*asked.lock().unwrap(), ["outer: a > server"]);
}

/// The time limit and the way of asking come with the callback that they are about.
#[test]
fn an_inherited_callback_is_asked_in_its_own_way() {
    let silent = || Permissions::new().can_use_tool(|_| pending());
    let outer = silent().timeout(1, Permission::deny("too late")).ask_at_once(true);
    let ready = |permissions: &Permissions| {
        let request = PermissionRequest::new("write", json!({}), "c1", History::default());
        let decided = pin!(permissions.decide(request, |_| std::future::ready(())));
        decided.poll(&mut Context::from_waker(Waker::noop()))
    };
    let inner = Permissions::new().within(&outer, "a");
    assert!(inner.asks_at_once());
    assert_eq!(ready(&inner), Poll::Ready(Permission::deny("too late")));
    let inner = silent().within(&outer, "a");
    assert!(!inner.asks_at_once());
    assert_eq!(ready(&inner), Poll::Pending);
}
