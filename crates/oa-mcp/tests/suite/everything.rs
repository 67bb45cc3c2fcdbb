//! The reference server of the protocol, over both transports. Needs npm; in CI on Linux it must be there.

use std::process::Stdio;
use std::time::Duration;

use oa_mcp::{Connected, McpServer, Servers};
use oa_tools::{Emission, ToolContext};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::OnceCell;

use crate::support::{CANARY, listening};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/start-everything.sh");
const FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/everything");

/// Installs the server once; false, after one line on standard error, where that cannot be and it is not required.
async fn is_installed() -> bool {
    static INSTALLED: OnceCell<Result<(), String>> = OnceCell::const_new();
    let installed = INSTALLED.get_or_init(install).await;
    services::or_skip(installed.clone().map_err(services::Unavailable::Missing)).is_some()
}

async fn install() -> Result<(), String> {
    let mut npm = Command::new("npm");
    npm.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    if !npm.status().await.is_ok_and(|status| status.success()) {
        return Err(
            "the reference server of MCP needs Node and npm, which are not installed".into()
        );
    }
    // Without the registry, npm would try for six minutes.
    let mut install = Command::new(SCRIPT);
    install.args([FOLDER, "install"]);
    install.env("npm_config_fetch_retries", "1").env("npm_config_fetch_timeout", "20000");
    let output = install.output().await.map_err(|error| format!("{SCRIPT}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let why = said.lines().find(|line| line.contains(" error ")).unwrap_or("no word of it");
    Err(format!("the reference server of MCP cannot be installed from npm's registry: {why}"))
}

async fn connect(server: McpServer) -> Result<Connected, oa_mcp::Error> {
    Servers::new().add(server.required()).connect().await
}

/// The server at a URL. It ends when its input does.
async fn over_http() -> (Child, McpServer) {
    let mut command = Command::new(SCRIPT);
    command
        .args([FOLDER, "http"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{error}"));
    let stdout = child.stdout.take().unwrap_or_else(|| panic!("no output"));
    let line = BufReader::new(stdout).lines().next_line().await.ok().flatten().unwrap_or_default();
    let url = line.strip_prefix("url=").unwrap_or_else(|| panic!("{line}")).to_owned();
    (child, McpServer::http("e", url))
}

async fn call(
    connected: &Connected,
    name: &str,
    input: Value,
    cx: ToolContext,
) -> Result<Value, String> {
    let wanted = format!("e__{name}");
    let Some(tool) = connected.tools().into_iter().find(|tool| tool.name() == wanted) else {
        return Err(format!("there is no tool {wanted}"));
    };
    let input = tool.prepare(input).map_err(|error| error.to_string())?;
    tool.call(input, cx).await.map_err(|error| error.to_string())
}

/// Calls what the server has, with the same outcome over each transport.
#[expect(clippy::unwrap_used, reason = "the body of two tests")]
async fn tour(connected: &Connected) {
    let cx = || ToolContext::new("c", "t");
    let plain = async |name: &str, input: Value| call(connected, name, input, cx()).await;
    assert_eq!(plain("echo", json!({ "message": "hello" })).await, Ok(json!("Echo: hello")));
    assert_eq!(
        plain("get-sum", json!({ "a": 19, "b": 23 })).await,
        Ok(json!("The sum of 19 and 23 is 42."))
    );
    let weather = plain("get-structured-content", json!({ "location": "New York" })).await.unwrap();
    assert!(weather["temperature"].is_number(), "{weather}");

    let shown = cx();
    let image = call(connected, "get-tiny-image", json!({}), shown.clone()).await.unwrap();
    assert!(!image.as_str().unwrap().contains("image/png"), "{image}");
    assert!(image.as_str().unwrap().len() < 500, "no base64: {image}");
    let images = shown.take_images();
    assert_eq!(images.len(), 1);
    assert!(images[0].url.starts_with("data:image/png;base64,iVBOR"));

    let links = plain("get-resource-links", json!({ "count": 2 })).await.unwrap();
    assert_eq!(links.as_str().unwrap().matches("[resource ").count(), 2, "{links}");
    let embedded =
        plain("get-resource-reference", json!({ "resourceType": "Text", "resourceId": 1 }))
            .await
            .unwrap();
    assert!(
        embedded.as_str().unwrap().contains("[demo://resource/dynamic/text/1]\n"),
        "{embedded}"
    );
    let shown = cx();
    let input = json!({ "messageType": "error", "includeImage": true });
    let annotated = call(connected, "get-annotated-message", input, shown.clone()).await.unwrap();
    assert!(annotated.as_str().unwrap().starts_with("Error: "), "{annotated}");
    assert_eq!(shown.take_images().len(), 1);

    let (listener, seen) = listening();
    let long = call(
        connected,
        "trigger-long-running-operation",
        json!({ "duration": 0.5, "steps": 5 }),
        listener,
    )
    .await
    .unwrap();
    assert!(long.as_str().unwrap().starts_with("Long running operation completed"), "{long}");
    let steps: Vec<u64> = seen
        .lock()
        .unwrap()
        .iter()
        .filter_map(|emission| match emission {
            Emission::Progress(progress) => Some(progress.done),
            _ => None,
        })
        .collect();
    assert!(steps.len() >= 4 && steps.is_sorted(), "{steps:?}");

    // What is not in the schema is refused here, before it is sent.
    assert!(plain("get-sum", json!({ "a": "x", "b": 1 })).await.unwrap_err().contains('a'));
    let start = std::time::Instant::now();
    let slow = plain("trigger-long-running-operation", json!({ "duration": 30, "steps": 3 }));
    assert!(tokio::time::timeout(Duration::from_millis(200), slow).await.is_err());
    assert_eq!(plain("echo", json!({ "message": "next" })).await, Ok(json!("Echo: next")));
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn the_reference_server_as_a_child() {
    if !is_installed().await {
        return;
    }
    let server =
        McpServer::stdio("e", SCRIPT).args([FOLDER, "stdio"]).env("CANARY_NAMED", "of no interest");
    let connected = connect(server).await.unwrap();
    assert_eq!(
        connected.connections().flat_map(oa_mcp::Connection::warnings).collect::<Vec<_>>(),
        ["the tool simulate-research-query is left out: it runs as a task only"]
    );
    assert!(connected.tools().len() >= 12, "{:?}", connected.tools());
    assert!(connected.connection("e").unwrap().instructions().await.is_some());
    tour(&connected).await;
    let environment = call(&connected, "get-env", json!({}), ToolContext::new("c", "t"))
        .await
        .unwrap()
        .to_string();
    assert!(environment.contains("CANARY_NAMED") && environment.contains("PATH"), "{environment}");
    assert!(!environment.contains("CARGO") && !environment.contains(CANARY), "{environment}");
    connected.close().await;
}

#[tokio::test]
async fn the_reference_server_at_a_url() {
    if !is_installed().await {
        return;
    }
    let (mut child, server) = over_http().await;
    let connected = connect(server).await.unwrap();
    assert!(connected.tools().len() >= 12, "{:?}", connected.tools());
    tour(&connected).await;
    connected.close().await;
    drop(child.stdin.take());
    let ended = tokio::time::timeout(Duration::from_secs(10), child.wait()).await;
    assert!(ended.is_ok_and(|ended| ended.is_ok()));
}
