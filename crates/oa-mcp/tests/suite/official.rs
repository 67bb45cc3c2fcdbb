//! A server on the official TypeScript SDK (protocol 2026-07-28) that sends requests. Needs npm; CI on Linux requires it.

use std::path::Path;
use std::process::Stdio;

use oa_mcp::{Connected, ElicitationAnswer, ElicitationMode, McpServer, Sampled, Servers};
use oa_tools::ToolContext;
use serde_json::{Value, json};
use services::McpPackages;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::support::tool;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/asking-server.mjs");

fn at_stdio(sdk: &Path) -> McpServer {
    McpServer::stdio("o", "node").args([SERVER, "--sdk", &sdk.to_string_lossy()])
}

async fn connect(server: McpServer) -> Connected {
    let connected = Servers::new().add(server.required()).connect().await;
    connected.unwrap_or_else(|error| panic!("{error}"))
}

async fn call(connected: &Connected, name: &str) -> Result<Value, String> {
    let tool = tool(connected, name).ok_or("there is no such tool")?;
    let said = tool.call(json!({}), ToolContext::new("c", name)).await;
    said.map_err(|error| error.to_string())
}

/// The conversation, which is the same over both transports.
#[expect(clippy::unwrap_used, reason = "the body of two tests")]
async fn is_asked_and_answers(server: &McpServer) {
    let all = server
        .clone()
        .root("/srv")
        .on_sampling(|request, _| async move {
            assert_eq!(request.max_tokens, 50);
            Ok(Sampled::new("small", "An old pond."))
        })
        .on_elicitation(|question, _| async move {
            match question.mode {
                ElicitationMode::Form { .. } => ElicitationAnswer::Accept(json!({ "name": "Ada" })),
                _ => ElicitationAnswer::Decline,
            }
        });
    let connected = connect(all).await;
    let said = call(&connected, "o__all").await.unwrap();
    let said: Value = serde_json::from_str(said.as_str().unwrap()).unwrap();
    let ada = json!({ "action": "accept", "content": { "name": "Ada" } });
    assert_eq!(said["first"]["who"], ada);
    assert_eq!(said["first"]["where"], json!({ "action": "decline" }));
    assert_eq!(said["first"]["poem"]["content"]["text"], "An old pond.");
    assert_eq!(said["first"]["folders"]["roots"][0]["uri"], "file:///srv");
    assert_eq!(said["second"], json!({ "again": ada }));
    let connection = connected.connection("o").unwrap();
    let none: [(String, String); 0] = [];
    let prompt = connection.get_prompt("greet", none).await.unwrap();
    assert_eq!(prompt.messages[0].text(), "Greet Ada.");
    let card = connection.read_resource("card://one").await.unwrap();
    assert_eq!(format!("{:?}", card[0].data), r#"Text("Ada")"#);
    connected.close().await;

    let refusing = server
        .clone()
        .on_elicitation(|_, _| async { ElicitationAnswer::Refuse("not now".to_owned()) });
    let connected = connect(refusing).await;
    assert_eq!(call(&connected, "o__confirm").await, Ok(json!("\"not confirmed\"")));
    // It sees that the model is not offered, and says so itself.
    let refused = call(&connected, "o__all").await.unwrap_err();
    assert!(refused.contains("sampling"), "{refused}");
    connected.close().await;
}

#[tokio::test]
async fn official_server_asks_over_stdio() {
    let Some(packages) = services::or_skip(McpPackages::install()) else { return };
    is_asked_and_answers(&at_stdio(packages.folder())).await;
}

#[tokio::test]
async fn official_server_asks_over_http() {
    let Some(packages) = services::or_skip(McpPackages::install()) else { return };
    let mut command = Command::new("node");
    command.arg(SERVER).arg("--sdk").arg(packages.folder()).arg("--http");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().unwrap_or_default();
    let url = line.strip_prefix("url=").unwrap_or_else(|| panic!("{line}"));
    is_asked_and_answers(&McpServer::http("o", url)).await;
}
