//! Tools by name.

use std::future::ready;
use std::sync::Arc;

use oa_tools::{ErrorKind, ExecuteFuture, FnTool, Registry, Tool, ToolContext, ToolFuture, tool};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

fn named(name: &str) -> FnTool {
    tool(name, "").build(|_| async { Ok(json!(null)) })
}

fn names(tools: &Registry) -> Vec<&str> {
    tools.names().collect()
}

#[test]
fn tools_keep_insertion_order() {
    let mut tools = Registry::from_tools(["z", "a", "m"].map(named)).unwrap();
    assert_eq!(names(&tools), ["z", "a", "m"]);
    assert_eq!(tools.remove("a").unwrap().name(), "a");
    assert!(tools.remove("a").is_none());
    tools.add(named("b")).unwrap();
    assert_eq!(names(&tools), ["z", "m", "b"]);
    for name in ["z", "m", "b"] {
        assert_eq!(tools.get(name).unwrap().name(), name);
    }
    let specs: Vec<String> = tools.specs().into_iter().map(|spec| spec.name).collect();
    assert_eq!(specs, ["z", "m", "b"]);
    assert_eq!(tools.iter().len(), 3);
    let again: Vec<&str> = (&tools).into_iter().map(Tool::name).collect();
    assert_eq!(again, names(&tools));
    // Owned, it can be passed on as tools; a clone keeps its own.
    assert_eq!(names(&Registry::from_tools(tools.clone()).unwrap()), names(&tools));
}

#[test]
fn boxes_and_arcs_forward_to_the_tool() {
    let of_several_kinds: Vec<Box<dyn Tool>> =
        vec![Box::new(named("a").clone()), Box::new(Arc::new(named("b")))];
    let tools = Registry::from_tools(of_several_kinds).unwrap();
    assert_eq!(names(&tools), ["a", "b"]);
    let blocks =
        || tool("blocks", "").category("read").cacheable().build_blocking(|_| Ok(json!(1)));
    for tool in [Box::new(blocks()) as Box<dyn Tool>, Box::new(Box::new(Arc::new(blocks())))] {
        assert_eq!(tool.spec(), blocks().spec());
        assert_eq!(tool.category(), Some("read"));
        assert!(tool.is_cacheable() && tool.blocking().is_some());
    }
}

/// A tool that runs in its own way outside of conversations.
struct Own(FnTool);

impl Tool for Own {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn description(&self) -> &str {
        self.0.description()
    }

    fn input_schema(&self) -> &Value {
        self.0.input_schema()
    }

    fn call(&self, input: Value, cx: ToolContext) -> ToolFuture<'_> {
        self.0.call(input, cx)
    }

    fn execute(&self, _: Value) -> ExecuteFuture<'_> {
        Box::pin(ready(Ok(json!("own"))))
    }

    fn execute_with(&self, _: Value, cx: ToolContext) -> ExecuteFuture<'_> {
        Box::pin(ready(Ok(json!(cx.call_id()))))
    }
}

#[test]
fn pointers_forward_runs_without_an_agent() {
    let shared: [Box<dyn Tool>; 2] =
        [Box::new(Box::new(Own(named("a")))), Box::new(Arc::new(Own(named("a"))))];
    for tool in shared {
        let cx = ToolContext::new("c1", "a");
        assert_eq!(crate::wait(tool.execute(json!({}))).unwrap(), "own");
        assert_eq!(crate::wait(tool.execute_with(json!({}), cx)).unwrap(), "c1");
    }
}

#[test]
fn duplicate_names_are_rejected() {
    let mut tools = Registry::new();
    tools.add_shared(Arc::new(named("add"))).unwrap();
    let error = tools.add(named("add")).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Config, "Duplicate tool name: add".into())
    );
    assert_eq!(tools.len(), 1);
}

#[test]
fn tools_with_mistakes_are_rejected() {
    let mut tools = Registry::new();
    assert_eq!(tools.add(named("a b")).unwrap_err().kind(), ErrorKind::Config);
    let wrong = tool("w", "").param("a", "text").build(|_| async { Ok(json!(null)) });
    assert_eq!(tools.add(wrong).unwrap_err().kind(), ErrorKind::Config);
    assert!(tools.is_empty());
}

#[test]
fn clones_share_tools_but_not_changes() {
    let mut one = Registry::from_tools([named("a")]).unwrap();
    let other = one.clone();
    one.add(named("b")).unwrap();
    assert_eq!((names(&one), names(&other)), (vec!["a", "b"], vec!["a"]));
    assert!(one.contains("b") && !other.contains("b"));
    assert!(Arc::ptr_eq(one.get("a").unwrap(), other.get("a").unwrap()));
    assert_eq!(format!("{one:?}"), r#"Registry(["a", "b"])"#);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Few names are compared, many are looked up: the results are those of a list.
    #[test]
    fn registry_behaves_like_a_list(
        changes in vec((any::<bool>(), 0_u8..40), 0..120),
    ) {
        let (mut tools, mut list) = (Registry::new(), Vec::new());
        for (adds, number) in changes {
            let name = format!("tool_{number}");
            let place = list.iter().position(|other| *other == name);
            if adds {
                prop_assert_eq!(tools.add(named(&name)).is_ok(), place.is_none());
                if place.is_none() {
                    list.push(name);
                }
            } else {
                let removed = tools.remove(&name).map(|tool| tool.name().to_owned());
                prop_assert_eq!(removed, place.map(|place| list.remove(place)));
            }
            prop_assert_eq!(names(&tools), list.iter().map(String::as_str).collect::<Vec<_>>());
            for number in 0..40 {
                let name = format!("tool_{number}");
                let found = tools.get(&name).map(|tool| tool.name().to_owned());
                prop_assert_eq!(tools.contains(&name), found.is_some());
                prop_assert_eq!(found, list.contains(&name).then_some(name));
            }
        }
    }
}
