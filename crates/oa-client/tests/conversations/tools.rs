//! `query` offers tools and runs hooks, but executes nothing.

use oa_chat::ToolMode;
use oa_client::{AgentOptions, AgentOptionsBuilder, Error, ErrorKind, query};
use oa_hooks::{HookDecision, HookError, Hooks};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_tools::{FnTool, tool};
use oa_types::{ContentBlock, wire::ToolChoice};
use serde_json::json;

fn add() -> FnTool {
    let add = tool("add", "Adds two numbers.").param("a", "number").param("b", "number");
    add.build(|_| async { panic!("query runs no tool") })
}

fn calling() -> Script {
    let reply = Reply::new()
        .say("I'll add.")
        .call_with_id("call_1", "add", json!({"a": 1, "b": 2}))
        .call_with_id("call_2", "add", json!({"a": 3, "b": 4}));
    Script::new().reply(reply).strict()
}

fn builder(server: &MemoryServer) -> AgentOptionsBuilder {
    AgentOptions::builder().model("any").transport(server.clone()).tool(add())
}

/// Returns the blocks after the text, one line each, and the error.
async fn calls(options: AgentOptionsBuilder) -> (Vec<String>, Option<Error>) {
    let mut seen = Vec::new();
    let mut answer = match query("Add.", &options.build().expect("these can work")).await {
        Ok(answer) => answer,
        Err(error) => return (seen, Some(error)),
    };
    let mut failure = None;
    while let Some(block) = answer.next().await {
        match block {
            Ok(ContentBlock::ToolUse(call)) => seen.push(format!("{} {}", call.id, call.input)),
            Ok(ContentBlock::ToolUseError(call)) => {
                seen.push(format!(
                    "{} {} {}",
                    call.id.unwrap_or_default(),
                    call.error,
                    call.raw_data
                ));
            }
            Ok(ContentBlock::ToolResult(result)) => {
                seen.push(format!("{} {}", result.tool_use_id, result.content));
            }
            Ok(_) => {}
            Err(error) => failure = Some(error),
        }
    }
    // The message contains the model's own arguments, whatever hooks changed.
    let message = answer.message().expect("the stream has ended");
    let own = message.content.iter().filter(|block| matches!(block, ContentBlock::ToolUse(_)));
    assert_eq!(own.count(), 2);
    (seen, failure)
}

const FIRST: &str = r#"call_1 {"a":1,"b":2}"#;
const SECOND: &str = r#"call_2 {"a":3,"b":4}"#;

#[tokio::test]
async fn tools_are_offered_and_calls_returned() {
    let server = MemoryServer::new(calling());
    let options = builder(&server).tool_choice(ToolChoice::Required).parallel_tool_calls(true);
    assert_eq!(calls(options).await.0, [FIRST, SECOND]);
    let request = &server.requests()[0];
    assert_eq!(
        request.json()["tools"],
        json!([{
            "type": "function",
            "function": {
                "name": "add",
                "description": "Adds two numbers.",
                "parameters": {
                    "type": "object",
                    "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                    "required": ["a", "b"],
                },
            },
        }])
    );
    assert_eq!(request.json()["tool_choice"], "required");
}

#[test]
fn invalid_tool_options_are_rejected() {
    let builder = || AgentOptions::builder().model("any");
    let refused = |builder: AgentOptionsBuilder| builder.build().unwrap_err().to_string();
    assert_eq!(refused(builder().tool(add()).tool(add())), "Duplicate tool name: add");
    assert_eq!(refused(builder().tools([add(), add()])), "Duplicate tool name: add");
    assert_eq!(
        refused(builder().tool_choice(ToolChoice::Auto)),
        "tool_choice has no effect without tools"
    );
    assert_eq!(
        refused(builder().parallel_tool_calls(false)),
        "parallel_tool_calls has no effect without tools"
    );
    let in_text = || builder().tool(add()).tool_mode(ToolMode::React);
    for (vain, name) in [
        (in_text().tool_choice(ToolChoice::Required), "tool_choice"),
        (in_text().parallel_tool_calls(false), "parallel_tool_calls"),
        (in_text().recognize_calls(true), "recognize_calls"),
    ] {
        assert_eq!(refused(vain), format!("{name} has no effect when calls are text"));
    }
    let options = builder().tool(add()).build().unwrap();
    assert_eq!(options.tools().names().collect::<Vec<_>>(), ["add"]);
    assert!(options.tool("add").is_some() && options.tool("sub").is_none());
}

#[tokio::test]
async fn prompt_hooks_run_before_the_request() {
    let ask = async |hooks: Hooks, script: Script| {
        let server = MemoryServer::new(script);
        let (_, error) = calls(builder(&server).hooks(hooks)).await;
        (server, error)
    };
    let block =
        Hooks::new().add_user_prompt_submit(|_| async { Some(HookDecision::block("not today")) });
    let (server, error) = ask(block, Script::new()).await;
    let error = error.unwrap();
    assert_eq!((error.kind(), server.requests().len()), (ErrorKind::Blocked, 0));
    assert_eq!(error.to_string(), "a hook blocked the prompt: not today");

    let failing = Hooks::new()
        .try_add_user_prompt_submit(|_| async { Err(HookError::new("the list of words is gone")) });
    let (server, error) = ask(failing, Script::new()).await;
    assert_eq!((error.unwrap().kind(), server.requests().len()), (ErrorKind::Hook, 0));

    let change = Hooks::new().add_user_prompt_submit(|event| async move {
        Some(HookDecision::modify_prompt(format!("{} Please.", event.prompt), "be polite"))
    });
    let (server, error) = ask(change, calling()).await;
    assert!(error.is_none());
    assert_eq!(server.requests()[0].json()["messages"][0]["content"], "Add. Please.");
}

#[tokio::test]
async fn blocked_calls_become_errors() {
    let server = MemoryServer::new(calling());
    let hooks = Hooks::new().add_pre_tool_use(|event| async move {
        // The conversation ends with the model's message.
        assert_eq!((event.history.len(), event.history[1].text()), (2, "I'll add.".to_owned()));
        (event.tool_use_id == "call_1").then(|| HookDecision::block("ones are not added"))
    });
    let (seen, error) = calls(builder(&server).hooks(hooks)).await;
    assert!(error.is_none());
    let blocked = r#"call_1 a hook blocked the call: ones are not added {"a":1,"b":2}"#;
    let result =
        r#"call_1 {"error":"a hook blocked the call","tool":"add","reason":"ones are not added"}"#;
    assert_eq!(seen, [blocked, result, SECOND]);
}

#[tokio::test]
async fn changed_calls_have_the_new_input() {
    let server = MemoryServer::new(calling());
    let hooks = Hooks::new()
        .add_pre_tool_use(|_| async {
            Some(HookDecision::modify_input(json!({"a": 0}), "sandbox"))
        })
        .for_tools(["add"]);
    assert_eq!(
        calls(builder(&server).hooks(hooks)).await.0,
        [r#"call_1 {"a":0}"#, r#"call_2 {"a":0}"#]
    );
    let server = MemoryServer::new(calling());
    let other = Hooks::new()
        .add_pre_tool_use(|_| async { Some(HookDecision::block("never asked")) })
        .for_tools(["shell"]);
    let shell = tool("shell", "").build(|_| async { Ok(json!("?")) });
    assert_eq!(calls(builder(&server).tool(shell).hooks(other)).await.0, [FIRST, SECOND]);
}

/// A hook that panics blocks only its call.
#[tokio::test]
async fn failing_hooks_return_no_calls() {
    let server = MemoryServer::new(calling());
    let failing = Hooks::new().try_add_pre_tool_use(|_| async { Err(HookError::new("no policy")) });
    let (seen, error) = calls(builder(&server).hooks(failing)).await;
    assert_eq!((seen.len(), error.unwrap().kind()), (0, ErrorKind::Hook));

    let server = MemoryServer::new(calling());
    let panicking = Hooks::new().add_pre_tool_use(|event| async move {
        assert_ne!(event.tool_use_id, "call_1", "a bug in the hook");
        None
    });
    let (seen, error) = calls(builder(&server).hooks(panicking)).await;
    assert!(error.is_none());
    assert!(seen[0].starts_with("call_1 a hook blocked the call: a hook panicked"), "{seen:?}");
    assert_eq!(seen[2], SECOND);
}

#[tokio::test(start_paused = true)]
async fn slow_hooks_time_out() {
    let server = MemoryServer::new(calling());
    let slow = Hooks::new()
        .add_pre_tool_use(|_| async {
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
            None
        })
        .with_timeout(std::time::Duration::from_secs(5));
    let (seen, error) = calls(builder(&server).hooks(slow)).await;
    assert_eq!((seen.len(), error.unwrap().kind()), (0, ErrorKind::Hook));
}
