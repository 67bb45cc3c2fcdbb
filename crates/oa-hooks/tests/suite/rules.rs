//! Rules by tool name and by category.

use oa_hooks::{Permission, PermissionMode, Permissions, ToolRule};
use proptest::prelude::*;
use serde_json::json;

/// Returns the decision about a call of `read_file` in the category `files`.
fn known(permissions: &Permissions, category: Option<&str>) -> &'static str {
    match permissions.known("read_file", &json!({ "path": "a" }), category) {
        Some(Permission::Allow) => "allow",
        Some(Permission::Deny(_)) => "deny",
        None => "ask",
        other => panic!("{other:?}"),
    }
}

#[test]
fn rules_apply_by_category() {
    let under = |mode, rule: ToolRule| Permissions::new().mode(mode).rule(rule);
    let (all, ask) = (PermissionMode::AllowAll, PermissionMode::Ask);
    for (permissions, files, other) in [
        (under(ask, ToolRule::allow_category("files")), "allow", "ask"),
        (under(all, ToolRule::ask_category("files")), "ask", "allow"),
        (under(all, ToolRule::deny_category("files")), "deny", "allow"),
        (under(all, ToolRule::deny_category("files").when(|_| false)), "allow", "allow"),
        (under(ask, ToolRule::allow_category("files").when(|_| panic!())), "ask", "ask"),
        (under(all, ToolRule::deny_category("*")), "allow", "allow"),
    ] {
        assert_eq!(known(&permissions, Some("files")), files, "{permissions:?}");
        assert_eq!(known(&permissions, Some("network")), other, "{permissions:?}");
        assert_eq!(known(&permissions, None), other, "{permissions:?}");
    }
}

#[test]
fn denials_give_the_first_reason() {
    let plain = || ToolRule::deny("write_*");
    let below = |folder: &'static str| {
        let is_outside = move |path: &str| !path.starts_with(folder);
        let rule = plain().when(move |input| input["path"].as_str().is_none_or(is_outside));
        rule.because(format!("files are written only below {folder}"))
    };
    let denied = |rules: Vec<ToolRule>, path: &str| {
        let permissions = rules.into_iter().fold(Permissions::new(), Permissions::rule);
        let input = json!({ "path": path });
        let own = permissions.denies("write_file", &input, None);
        let inner = Permissions::new().rule(ToolRule::allow("*")).within(&permissions, "writer");
        assert_eq!(inner.denies("write_file", &input, None), own, "sub-agents inherit it");
        own
    };
    let unnamed = Some("a permission rule denies this call".to_owned());
    assert_eq!(denied(vec![plain()], "/etc"), unnamed);
    assert_eq!(denied(vec![below("work/")], "work/a"), None);
    let work = Some("files are written only below work/".to_owned());
    assert_eq!(denied(vec![below("work/")], "/etc"), work);
    assert_eq!(denied(vec![plain(), below("work/"), below("tmp/")], "/etc"), work);
    assert_eq!(denied(vec![plain(), below("work/")], "work/a"), unnamed);
    let allowed = ToolRule::allow("*").because("no denial");
    assert_eq!(denied(vec![allowed, plain()], "/etc"), unnamed);
}

#[test]
fn tool_lists_can_be_inspected() {
    let permissions = Permissions::new();
    assert_eq!((permissions.allowed(), permissions.disallowed()), (None, Vec::new()));
    assert!(!permissions.asks());
    let permissions = permissions
        .allow_only(["a", "b*"])
        .disallow(["c"])
        .can_use_tool(|_| async { Permission::Allow })
        .rule(ToolRule::deny("d"))
        .rule(ToolRule::ask_category("e"));
    assert_eq!(permissions.allowed(), Some(vec!["a", "b*"]));
    assert_eq!(permissions.disallowed(), ["c"]);
    assert!(permissions.asks());
    assert!(permissions.listed().eq(["a", "b*", "c", "d"]));
    assert!(permissions.categories().eq(["e"]));
}

proptest! {
    #[test]
    fn the_strictest_matching_rule_applies(
        rules in prop::collection::vec((0_usize..3, 0_usize..5), 0..6),
        category in prop::sample::select(vec![None, Some("files"), Some("network")]),
    ) {
        let mut permissions = Permissions::new().mode(PermissionMode::Ask);
        let mut strictest = None;
        for (effect, subject) in rules {
            let by_name: fn(&'static str) -> ToolRule =
                [ToolRule::allow, ToolRule::ask, ToolRule::deny][effect];
            let by_category: fn(&'static str) -> ToolRule =
                [ToolRule::allow_category, ToolRule::ask_category, ToolRule::deny_category][effect];
            let (rule, fits) = match subject {
                0 => (by_name("read_file"), true),
                1 => (by_name("read_*"), true),
                2 => (by_name("write_file"), false),
                3 => (by_category("files"), category == Some("files")),
                _ => (by_category("network"), category == Some("network")),
            };
            permissions = permissions.rule(rule);
            strictest = strictest.max(fits.then_some(effect));
        }
        let wanted = strictest.map_or("ask", |effect| ["allow", "ask", "deny"][effect]);
        prop_assert_eq!(known(&permissions, category), wanted);
    }
}
