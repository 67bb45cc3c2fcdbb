//! A conversation with tools, from prompt to answer.

use std::time::Duration;

use oa_testkit::{MemoryServer, Reply, Script};
use open_agent::{
    AgentOptions, AgentOptionsBuilder, Client, ContentBlock, FinishReason, MessageRole, json, tool,
};

fn adder() -> open_agent::FnTool {
    tool("add", "Add two numbers").param("a", "number").param("b", "number").build(
        |args| async move {
            let number = |name: &str| args[name].as_f64().unwrap_or(0.0);
            Ok(json!({ "sum": number("a") + number("b") }))
        },
    )
}

fn options(server: &MemoryServer) -> AgentOptionsBuilder {
    AgentOptions::builder().model("any").transport(server.clone()).tool(adder())
}

fn line(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::ToolUse(call) => format!("{}({})", call.name, call.input),
        ContentBlock::ToolUseError(error) => format!("?{}", error.error),
        ContentBlock::ToolResult(result) => format!("={}", result.content),
        other => format!("{other:?}"),
    }
}

async fn read(client: &mut Client) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(block) = client.receive().await.expect("nothing fails here") {
        seen.push(line(&block));
    }
    seen
}

#[tokio::test]
async fn in_auto_mode_the_client_runs_calls_and_goes_on() {
    let server = MemoryServer::new(
        Script::from([
            Reply::text("I add.").call("add", json!({"a": 25, "b": 17})),
            Reply::text("It is 42."),
        ])
        .strict(),
    );
    let mut client =
        Client::new(options(&server).auto_execute_tools(true).build().unwrap()).unwrap();
    client.send("What is 25 + 17?").await.unwrap();
    let seen = read(&mut client).await;
    assert_eq!(seen.concat(), r#"I add.add({"a":25,"b":17})={"sum":42.0}It is 42."#);
    assert_eq!(client.finish_reason(), Some(&FinishReason::Stop));
    let roles: Vec<_> = client.history().iter().map(|message| message.role).collect();
    use MessageRole::{Assistant, Tool, User};
    assert_eq!(roles, [User, Assistant, Tool, Assistant]);
    server.verify();
}

#[tokio::test]
async fn in_manual_mode_the_caller_answers() {
    let server = MemoryServer::new(
        Script::from([
            Reply::new().call("add", json!({"a": 1, "b": 2})).call("add", json!({"a": 3, "b": 4})),
            Reply::text("Done."),
        ])
        .strict(),
    );
    let mut client = Client::new(options(&server).build().unwrap()).unwrap();
    client.send("Add.").await.unwrap();
    let mut text = String::new();
    while let Some(block) = client.receive().await.unwrap() {
        match block {
            ContentBlock::ToolUse(call) => {
                let tool = client.get_tool(&call.name).unwrap().clone();
                let result = tool.execute(call.input).await.unwrap();
                client.add_tool_result(&call.id, result).unwrap();
                client.send("").await.unwrap();
            }
            other => text += &line(&other),
        }
    }
    assert_eq!(text, "Done.");
    server.verify();
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_wakes_a_silent_server() {
    let server = MemoryServer::new(Reply::text("Hello, world").stall_after(250));
    let mut client = Client::new(options(&server).build().unwrap()).unwrap();
    client.send("Hi").await.unwrap();
    let handle = client.interrupt_handle();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        handle.interrupt();
    });
    let began = tokio::time::Instant::now();
    read(&mut client).await;
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
}
