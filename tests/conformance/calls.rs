//! Tool calls.

use std::collections::HashSet;

use open_agent::{ContentBlock, FinishReason, ToolUseBlock, json};
use serde_json::Value;
use tower::service_fn;

use crate::answer::ask;
use crate::server::{Wanted, check, lacking};
use crate::wire;

const PROMPT: &str = "What is the weather in Paris? Use the tool.";

/// Two tools, or only the first, and other settings of the request.
fn tools(count: usize, others: &Value) -> Value {
    let weather = json!({ "type": "function", "function": {
        "name": "get_weather", "description": "Weather for a city",
        "parameters": { "type": "object", "properties": {
            "city": { "type": "string" },
            "days": { "type": "integer" },
            "unit": { "type": "string", "enum": ["celsius", "fahrenheit"] },
        }, "required": ["city", "unit"] } } });
    let add = json!({ "type": "function", "function": {
        "name": "add", "description": "Add two integers",
        "parameters": { "type": "object", "properties": {
            "a": { "type": "integer" },
            "b": { "type": "integer" },
        }, "required": ["a", "b"] } } });
    let mut members = others.clone();
    members["tools"] = [weather, add].into_iter().take(count).collect();
    members
}

fn matches_its_schema(call: &ToolUseBlock) -> bool {
    let is_integer = |name| call.input.get(name).is_some_and(Value::is_i64);
    let (fits, known): (_, &[&str]) = match &*call.name {
        "get_weather" => {
            let fits = call.input["city"].is_string()
                && (call.input["unit"] == "celsius" || call.input["unit"] == "fahrenheit")
                && (call.input.get("days").is_none() || is_integer("days"));
            (fits, &["city", "days", "unit"])
        }
        "add" => (is_integer("a") && is_integer("b"), &["a", "b"]),
        _ => return false,
    };
    let input = call.input.as_object().expect("arguments are an object");
    fits && input.keys().all(|name| known.contains(&&**name))
}

fn without_ids(calls: &[ToolUseBlock]) -> Vec<(&str, &Value)> {
    calls.iter().map(|call| (&*call.name, &call.input)).collect()
}

#[test]
fn forced_calls_match_the_schema() {
    check(Wanted::Any, async |server| {
        let forced = tools(1, &json!({ "tool_choice": "required" }));
        let options = server.options().seed(3).extra_body(forced).build().unwrap();
        let answer = ask(&options, PROMPT).await;
        let Some(answer) = server.unless_lacking("forced calls", answer) else {
            return;
        };
        if answer.calls().is_empty() {
            return server.lacks("a call although one was required", &answer);
        }
        assert!(answer.broken_calls().is_empty(), "{answer:#?}");
        if !answer.calls().iter().all(matches_its_schema) {
            return server.lacks("arguments that match the schema", &answer);
        }
        if server.is_tiny {
            assert_eq!(*answer.finish(), FinishReason::ToolCalls);
            assert_eq!(answer.order(), ["call"]);
        }
    });
}

#[test]
fn named_tool_choice_calls_that_tool() {
    check(Wanted::Any, async |server| {
        let choice = json!({ "type": "function", "function": { "name": "add" } });
        let named = tools(2, &json!({ "tool_choice": choice }));
        let options = server.options().seed(6).extra_body(named).build().unwrap();
        let answer = ask(&options, PROMPT).await;
        let Some(answer) = server.unless_lacking("calls of a tool by name", answer) else {
            return;
        };
        let calls = answer.calls();
        if calls.is_empty() || calls.iter().any(|call| call.name != "add") {
            // llama.cpp treats a name as "auto" and lets the model choose.
            return lacking("calls of a tool by name (it called another)");
        }
        if !calls.iter().all(matches_its_schema) {
            server.lacks("arguments that match the schema", &answer);
        }
    });
}

#[test]
fn calls_come_last() {
    check(Wanted::Tiny, async |server| {
        let members = tools(2, &json!({ "chat_template_kwargs": { "enable_thinking": true } }));
        let options = server.options().seed(2).extra_body(members).build().unwrap();
        let answer = ask(&options, PROMPT).await.unwrap();
        assert_eq!(answer.order(), ["thinking", "call"]);
        assert!(answer.calls().iter().all(matches_its_schema), "{answer:#?}");
        let last = answer.message.content.last();
        assert!(matches!(last, Some(ContentBlock::ToolUse(_))), "{answer:#?}");
    });
}

#[test]
fn parallel_calls_have_distinct_ids() {
    check(Wanted::Any, async |server| {
        let prompt = "What is the weather in Paris, and what in Rome? Call the tool for each.";
        let mut ids = HashSet::new();
        let mut most = 0;
        // With an obedient model, one seed is enough.
        for seed in 1..=if server.is_tiny { 10 } else { 1 } {
            let members = tools(2, &json!({ "parallel_tool_calls": true }));
            let options = server.options().seed(seed).extra_body(members).build().unwrap();
            let answer = ask(&options, prompt).await;
            let Some(answer) = server.unless_lacking("parallel calls", answer) else {
                return;
            };
            let calls = answer.calls();
            most = most.max(calls.len());
            for call in &calls {
                assert!(!call.id.is_empty());
                assert!(ids.insert(call.id.clone()), "an id twice: {calls:#?}");
            }
            if calls.len() < 2 && !server.is_tiny {
                return server.lacks("two calls in one answer", &answer);
            }
        }
        println!("{} calls, up to {most} in one answer", ids.len());
        assert!(most > 1, "the model calls one tool at a time");
    });
}

#[test]
fn streamed_calls_equal_unstreamed_ones() {
    check(Wanted::Tiny, async |server| {
        for seed in 1..=5 {
            let options = || server.options().seed(seed).extra_body(tools(2, &json!({})));
            let streamed = ask(&options().build().unwrap(), PROMPT).await.unwrap().calls();
            let whole = options().transport(service_fn(wire::unstreamed)).build().unwrap();
            let whole = ask(&whole, PROMPT).await.unwrap().calls();
            assert!(!whole.is_empty());
            assert_eq!(without_ids(&streamed), without_ids(&whole), "seed {seed}");
        }
    });
}

#[test]
fn calls_cut_by_max_tokens_are_errors() {
    check(Wanted::Any, async |server| {
        let members = tools(1, &json!({ "tool_choice": "required" }));
        let options = server.options().seed(2).max_tokens(24).extra_body(members);
        let answer = ask(&options.build().unwrap(), PROMPT).await;
        let Some(answer) = server.unless_lacking("forced calls", answer) else {
            return;
        };
        if !answer.finish().is_length() || answer.broken_calls().is_empty() {
            return server.lacks("a call that is cut by 24 tokens", &answer);
        }
        assert!(answer.calls().is_empty(), "{answer:#?}");
        let [broken] = *answer.broken_calls() else { panic!("{answer:#?}") };
        assert!(!broken.error.is_empty());
        if server.is_tiny {
            assert_eq!(broken.name.as_deref(), Some("get_weather"));
        }
        println!("{}: {:?}", broken.error, broken.raw_data);
    });
}

#[test]
fn cut_answers_keep_only_whole_calls() {
    check(Wanted::Tiny, async |server| {
        let options = || server.options().seed(2).extra_body(tools(2, &json!({})));
        let whole = ask(&options().build().unwrap(), PROMPT).await.unwrap();
        let whole_calls = whole.calls();
        let tokens = whole.message.usage.and_then(|usage| usage.completion_tokens).unwrap();
        let tokens = u32::try_from(tokens).unwrap();
        let (mut most, mut broken) = (0, 0);
        for tokens in 1..tokens {
            let cut = ask(&options().max_tokens(tokens).build().unwrap(), PROMPT).await.unwrap();
            assert_eq!(*cut.finish(), FinishReason::Length, "at {tokens}");
            let calls = cut.calls();
            assert!(
                without_ids(&whole_calls).starts_with(&without_ids(&calls)),
                "at {tokens}: {calls:#?} of {whole_calls:#?}"
            );
            assert!(cut.broken_calls().len() <= 1, "at {tokens}: {cut:#?}");
            (most, broken) = (most.max(calls.len()), broken + cut.broken_calls().len());
        }
        println!("{broken} of {tokens} cuts broke one of {} calls", whole_calls.len());
        assert!(broken > 0 && most > 0 && most >= whole_calls.len() - 1);
    });
}
