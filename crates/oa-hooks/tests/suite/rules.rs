//! Rules by tool name and by category.

use oa_hooks::{Hooks, Permission, PermissionMode, Permissions, ToolRule};
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

fn asking() -> Permissions {
    Permissions::new().can_use_tool(|_| async { Permission::Allow })
}

/// Without a rule, the mode decides; without a mode, every call runs, or the callback is asked.
#[test]
fn the_mode_decides_without_a_rule() {
    for (mode, read, other) in [
        (PermissionMode::AllowAll, "allow", "allow"),
        (PermissionMode::AllowReads, "allow", "ask"),
        (PermissionMode::Ask, "ask", "ask"),
        (PermissionMode::Plan, "deny", "deny"),
    ] {
        for permissions in [Permissions::new().mode(mode), asking().mode(mode)] {
            assert_eq!(known(&permissions, Some("read")), read, "{mode:?}");
            assert_eq!(known(&permissions, Some("files")), other, "{mode:?}");
            assert_eq!(known(&permissions, None), other, "{mode:?}");
        }
    }
    assert_eq!(known(&Permissions::new(), Some("read")), "allow");
    assert_eq!(known(&asking(), Some("read")), "ask");
}

#[test]
fn any_limit_ends_allow_everything() {
    let all = || Permissions::new().mode(PermissionMode::AllowAll);
    assert!(Permissions::new().allow_everything() && all().allow_everything());
    for permissions in [
        all().allow_only(["read_file"]),
        all().disallow(["other"]),
        all().rule(ToolRule::allow("*")),
        all().within(&Permissions::new().disallow(["other"]), "a"),
        Permissions::new().mode(PermissionMode::AllowReads),
        asking(),
    ] {
        assert!(!permissions.allow_everything(), "{permissions:?}");
    }
}

/// Lists are about what is offered; the rest takes effect only where calls run automatically.
#[test]
fn settings_beyond_the_lists_decide_about_calls() {
    assert!(!Permissions::new().allow_only(["a"]).disallow(["b"]).decide_about_calls());
    for permissions in [
        Permissions::new().mode(PermissionMode::AllowAll),
        Permissions::new().rule(ToolRule::allow("a")),
        asking(),
    ] {
        assert!(permissions.decide_about_calls(), "{permissions:?}");
    }
}

#[test]
fn settings_without_effect_are_errors() {
    let all = PermissionMode::AllowAll;
    let at_once = "can_use_tool_at_once has no effect without can_use_tool";
    let timeout = "can_use_tool_timeout has no effect without can_use_tool";
    let unasked = "can_use_tool has no effect because every call is allowed and no rule asks";
    for (permissions, checked) in [
        (Permissions::new(), Ok(())),
        (Permissions::new().ask_at_once(true), Err(at_once)),
        (Permissions::new().timeout(1, Permission::Later), Err(timeout)),
        (asking().ask_at_once(true).timeout(1, Permission::Later), Ok(())),
        (asking().mode(all), Err(unasked)),
        (asking().mode(all).rule(ToolRule::deny("a")), Err(unasked)),
        (asking().mode(all).rule(ToolRule::ask("a")), Ok(())),
        (asking().mode(PermissionMode::AllowReads), Ok(())),
    ] {
        assert_eq!(permissions.check(), checked, "{permissions:?}");
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

/// A denial that silently applied to nothing would let the tools run that it names.
#[test]
fn asterisks_are_possible_only_at_the_end() {
    let inner = "in the name of a tool, `*` is possible only at the end";
    for (name, checked) in [
        ("delete", Ok(())),
        ("delete*", Ok(())),
        ("*", Ok(())),
        ("*_delete", Err(inner)),
        ("*delete*", Err(inner)),
        ("git_*_branch", Err(inner)),
        ("git_**", Err(inner)),
    ] {
        for permissions in [
            Permissions::new().disallow([name]),
            Permissions::new().allow_only(["a", name]),
            Permissions::new().rule(ToolRule::deny(name)),
        ] {
            assert_eq!(permissions.check(), checked, "{permissions:?}");
        }
        let gate = Hooks::new().add_pre_tool_use(|_| async { None });
        assert_eq!(Hooks::new().merge(gate.for_tools([name])).check(), checked, "{name}");
    }
    assert_eq!(Permissions::new().rule(ToolRule::deny_category("a*b")).check(), Ok(()));
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
