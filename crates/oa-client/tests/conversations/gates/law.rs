//! The law of gates, for random schemas, inputs and gates.

use std::sync::{Arc, Mutex, PoisonError};

use oa_client::AgentEvent;
use oa_executor::ToolEvent;
use oa_hooks::{HookDecision, Hooks, Permission, PermissionMode, ToolRule};
use oa_tools::{Tool, tool};
use oa_types::ContentBlock;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{calling, calling_once, result};
use suite::talk::{auto, cases, client, manual, told};

/// One generated case: a tool's schema, a call's input, and the changes made by a hook and a callback.
#[derive(Clone, Debug)]
struct Case {
    schema: Value,
    hidden: Option<Value>,
    input: Value,
    by_hook: Option<Value>,
    by_callback: Option<Value>,
    is_manual: bool,
    waits: bool,
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9_i64..9).prop_map(Value::from),
        (-9_i64..9).prop_map(|number| json!(number as f64)),
        "[a-c]{0,2}".prop_map(Value::from),
    ]
}

fn arguments() -> impl Strategy<Value = Value> {
    let inner = prop_oneof![
        2 => leaf(),
        1 => prop::collection::btree_map("[a-c]", leaf(), 0..3)
            .prop_map(|members| Value::Object(members.into_iter().collect())),
    ];
    prop::collection::btree_map("[a-c]", inner, 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// Object schemas whose members mostly have defaults, including nested objects and alternatives.
fn schema() -> impl Strategy<Value = Value> {
    let of = prop::sample::select(vec![
        json!({}),
        json!({ "type": "integer" }),
        json!({ "type": ["integer", "null"] }),
        json!({ "type": "string" }),
        json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }),
    ]);
    let scalar = (of, prop::option::of(leaf())).prop_map(|(mut schema, default)| {
        if let Some(default) = default {
            schema["default"] = default;
        }
        schema
    });
    let scalar = scalar.boxed();
    let members = |inner: BoxedStrategy<Value>| {
        (prop::collection::btree_map("[a-c]", inner, 0..4), any::<bool>()).prop_map(
            |(properties, has_default)| {
                let mut schema = json!({ "type": "object", "properties": properties });
                if has_default {
                    schema["default"] = json!({});
                }
                schema
            },
        )
    };
    let nested = members(scalar.clone());
    members(prop_oneof![3 => scalar, 1 => nested].boxed())
}

fn case() -> impl Strategy<Value = Case> {
    let changes = || prop::option::of(arguments());
    (schema(), changes(), arguments(), changes(), changes(), any::<bool>(), any::<bool>()).prop_map(
        |(schema, hidden, input, by_hook, by_callback, is_manual, waits)| Case {
            schema,
            hidden: hidden.map(|hidden| hidden["a"].clone()),
            input,
            by_hook,
            by_callback,
            is_manual,
            waits,
        },
    )
}

/// The input of a call as an observer last received it.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Option<Value>>>);

impl Seen {
    fn note(&self, input: &Value) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(input.clone());
    }

    fn take(&self) -> Option<Value> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

async fn check_law(case: Case) -> Result<(), TestCaseError> {
    let (hooked, ruled, ran, after) =
        (Seen::default(), Seen::default(), Seen::default(), Seen::default());
    let tool = {
        let ran = ran.clone();
        let tool = tool("list", "").schema(case.schema.clone());
        let tool = case.hidden.iter().fold(tool, |tool, default| {
            tool.param_with("d", json!({})).default("d", default.clone())
        });
        tool.build(move |args| {
            ran.note(&args);
            async { Ok(json!("fine")) }
        })
    };
    let hooks = {
        let (hooked, by_hook, after) = (hooked.clone(), case.by_hook.clone(), after.clone());
        Hooks::new()
            .add_pre_tool_use(move |event| {
                hooked.note(&event.tool_input);
                let change = by_hook.clone();
                async { change.map(|input| HookDecision::modify_input(input, "changed")) }
            })
            .add_post_tool_use(move |event| {
                after.note(&event.tool_input);
                async { None }
            })
    };
    let options = match case.is_manual {
        true => manual(&calling_once(case.input.clone())),
        false => auto(&calling(case.input.clone())),
    };
    let mut options = options.tool(tool.clone()).hooks(hooks);
    if !case.is_manual {
        let ruled = ruled.clone();
        options = options.tool_rule(ToolRule::deny("list").when(move |input| {
            ruled.note(input);
            false
        }));
        options = options.permission_mode(PermissionMode::Ask);
        if let (Some(instead), false) = (case.by_callback.clone(), case.waits) {
            options = options.can_use_tool(move |_| {
                let instead = instead.clone();
                async { Permission::AllowWith(instead) }
            });
        }
    }
    let mut client = client(options);
    let mut events = Vec::new();
    client.send("Go.").await.expect("the prompt is taken");
    loop {
        while let Some(event) = client.next_event().await.expect("nothing fails") {
            events.push(event);
        }
        let Some(waiting) = client.pending_approvals().pop() else { break };
        prop_assert_eq!(ruled.take(), Some(waiting.input.clone()), "what is shown was judged");
        match &case.by_callback {
            // Invalid input is rejected.
            Some(input) if client.approve_with("1", input.clone()).is_ok() => {}
            _ => client.approve("1").expect("it waits"),
        }
        client.continue_turn().await.expect("it goes on");
    }
    let own = told(client.history())[1].clone();
    prop_assert_eq!(
        own,
        format!("assistant: [1 list {}]", case.input),
        "history keeps the model's"
    );
    if case.is_manual {
        let shown = events.iter().find_map(|event| match event {
            AgentEvent::Block(ContentBlock::ToolUse(call)) => Some(call.input.clone()),
            _ => None,
        });
        let given = case.by_hook.clone().unwrap_or_else(|| case.input.clone());
        let expected = tool.prepare(given.clone()).unwrap_or(given);
        prop_assert_eq!(shown, Some(expected.clone()), "the caller is shown what would run");
        if case.by_hook.is_none() {
            prop_assert_eq!(hooked.take(), Some(expected), "and so is the hook");
        }
        return Ok(());
    }
    let told = after.take();
    for event in &events {
        let input = match event {
            AgentEvent::Tool(ToolEvent::CallStart(start)) => &start.input,
            AgentEvent::Tool(ToolEvent::CallComplete(result)) => &result.input,
            _ => continue,
        };
        prop_assert_eq!(told.as_ref(), Some(input), "events and hooks tell the same");
    }
    match ran.take() {
        Some(ran) => {
            prop_assert_eq!(ruled.take(), Some(ran.clone()), "what ran was judged last");
            prop_assert_eq!(told, Some(ran.clone()), "what ran is told");
            prop_assert_eq!(tool.prepare(ran.clone()), Ok(ran), "what ran is prepared");
        }
        None => prop_assert!(result(&client).contains("invalid arguments"), "{}", result(&client)),
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(400))]

    /// For any schema, input and gates: the input that runs and the input that is reported equal, bit for bit, the
    /// input that the last gate saw.
    #[test]
    fn gates_see_what_runs(case in case()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(check_law(case))?;
    }
}
