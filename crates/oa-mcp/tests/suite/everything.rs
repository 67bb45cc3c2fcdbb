//! The reference server of the protocol, over both transports. Needs npm; CI on Linux requires it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use oa_mcp::{Connected, ElicitationAnswer, ElicitationMode, McpServer, Sampled, Servers};
use oa_tools::{Emission, ToolContext};
use serde_json::{Value, json};
use services::McpPackages;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::support::{CANARY, eventually, listening};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/start-everything.sh");

/// The server's folder; `None`, after one line on standard error, where it cannot be had and is not required.
fn folder() -> Option<PathBuf> {
    services::or_skip(McpPackages::install()).map(|packages| packages.folder().to_owned())
}

/// Connects with everything that a client may offer, and waits for the tools that the server offers for it.
async fn connect(server: McpServer) -> Connected {
    let server = server
        .root("/srv/shared")
        .on_sampling(|request, _| async move {
            assert_eq!(request.system_prompt.as_deref(), Some("You are a helpful test server."));
            let text = request.messages[0].text();
            Ok(Sampled::new("small", format!("{} tokens for {text:?}", request.max_tokens)))
        })
        .on_elicitation(|question, _| async move {
            match question.mode {
                ElicitationMode::Form { .. } => ElicitationAnswer::Accept(
                    json!({ "name": "Ada", "email": "ada@example.org", "birthdate": "1815-12-10" }),
                ),
                _ => ElicitationAnswer::Decline,
            }
        });
    let connected = Servers::new().add(server.required()).connect().await;
    let connected = connected.unwrap_or_else(|error| panic!("{error}"));
    let count = || connected.tools().len();
    assert!(eventually(|| count() == NAMES.len()).await, "{:?}", connected.tools().len());
    connected
}

/// The tools, less `simulate-research-query`, which runs as a task only.
const NAMES: [&str; 16] = [
    "e__echo",
    "e__get-annotated-message",
    "e__get-env",
    "e__get-resource-links",
    "e__get-resource-reference",
    "e__get-roots-list",
    "e__get-structured-content",
    "e__get-sum",
    "e__get-tiny-image",
    "e__gzip-file-as-resource",
    "e__toggle-simulated-logging",
    "e__toggle-subscriber-updates",
    "e__trigger-elicitation-request",
    "e__trigger-long-running-operation",
    "e__trigger-sampling-request",
    "e__trigger-url-elicitation",
];

/// The server at a URL. It ends when its input does.
async fn over_http(folder: &Path) -> (Child, McpServer) {
    let mut command = Command::new(SCRIPT);
    command
        .arg(folder)
        .arg("http")
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

/// Calls every tool of the server, with the same outcome over each transport.
#[expect(clippy::unwrap_used, reason = "the body of two tests")]
async fn tour(connected: &Connected) {
    let cx = || ToolContext::new("c", "t");
    let names: Vec<_> = connected.tools().iter().map(|tool| tool.name().to_owned()).collect();
    assert_eq!(names, NAMES);
    let plain = async |name: &str, input: Value| {
        let said = call(connected, name, input, cx()).await;
        said.map(|said| said.as_str().map_or_else(|| said.to_string(), str::to_owned))
    };
    let good = async |name: &str, input: Value| plain(name, input).await.unwrap();
    assert_eq!(good("echo", json!({ "message": "hello" })).await, "Echo: hello");
    assert_eq!(good("get-sum", json!({ "a": 19, "b": 23 })).await, "The sum of 19 and 23 is 42.");
    assert_eq!(
        good("get-structured-content", json!({ "location": "New York" })).await,
        r#"{"temperature":33,"conditions":"Cloudy","humidity":82}"#
    );

    let shown = cx();
    let image = call(connected, "get-tiny-image", json!({}), shown.clone()).await.unwrap();
    assert_eq!(image, "Here's the image you requested:\nThe image above is the MCP logo.");
    let images = shown.take_images();
    assert_eq!(images.len(), 1);
    assert!(images[0].url.starts_with("data:image/png;base64,iVBOR"));
    let shown = cx();
    let input = json!({ "messageType": "error", "includeImage": true });
    let annotated = call(connected, "get-annotated-message", input, shown.clone()).await.unwrap();
    assert_eq!(annotated, "Error: Operation failed");
    assert_eq!(shown.take_images().len(), 1);

    assert_eq!(
        good("get-resource-links", json!({ "count": 2 })).await,
        "Here are 2 resource links to resources available in this server:\n\
         [resource Blob Resource 1 demo://resource/dynamic/blob/1]\n\
         [resource Text Resource 2 demo://resource/dynamic/text/2]"
    );
    let embedded =
        good("get-resource-reference", json!({ "resourceType": "Text", "resourceId": 1 })).await;
    let start = "Returning resource reference for Resource 1:\n[demo://resource/dynamic/text/1]\nResource 1: This is a plaintext resource created at ";
    assert!(embedded.starts_with(start), "{embedded}");
    let blob =
        good("get-resource-reference", json!({ "resourceType": "Blob", "resourceId": 1 })).await;
    assert!(blob.contains("[demo://resource/dynamic/blob/1]\n[text/plain, "), "{blob}");
    let file = json!({ "name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource" });
    let (listener, seen) = listening();
    let zipped = call(connected, "gzip-file-as-resource", file, listener).await.unwrap();
    let zipped = zipped.as_str().unwrap();
    assert!(zipped.starts_with("[demo://resource/session/a.gz]\n[application/gzip, "), "{zipped}");
    assert!(
        matches!(&seen.lock().unwrap()[..], [Emission::Custom { name, .. }] if name == "mcp_content")
    );
    let file = json!({ "name": "b.gz", "data": "data:text/plain,hello" });
    assert_eq!(
        good("gzip-file-as-resource", file).await,
        "[resource b.gz demo://resource/session/b.gz]"
    );

    // Both are switched off again.
    for (name, started, stopped) in [
        (
            "toggle-simulated-logging",
            "Started simulated, random-leveled logging",
            "Stopped simulated logging",
        ),
        (
            "toggle-subscriber-updates",
            "Started simulated resource updated",
            "Stopped simulated resource updates",
        ),
    ] {
        let words = good(name, json!({})).await;
        assert!(words.starts_with(started), "{words}");
        let words = good(name, json!({})).await;
        assert!(words.starts_with(stopped), "{words}");
    }

    let (listener, seen) = listening();
    let input = json!({ "duration": 0.5, "steps": 5 });
    let long = call(connected, "trigger-long-running-operation", input, listener).await.unwrap();
    assert_eq!(long, "Long running operation completed. Duration: 0.5 seconds, Steps: 5.");
    let steps: Vec<u64> = seen
        .lock()
        .unwrap()
        .iter()
        .filter_map(|emission| match emission {
            Emission::Progress(progress) => Some(progress.done),
            _ => None,
        })
        .collect();
    assert_eq!(steps, [1, 2, 3, 4, 5]);

    // What is not in the schema is refused here, before it is sent.
    assert!(plain("get-sum", json!({ "a": "x", "b": 1 })).await.unwrap_err().contains('a'));
    let start = std::time::Instant::now();
    let slow = plain("trigger-long-running-operation", json!({ "duration": 30, "steps": 3 }));
    assert!(tokio::time::timeout(Duration::from_millis(200), slow).await.is_err());
    assert_eq!(good("echo", json!({ "message": "next" })).await, "Echo: next");
    assert!(start.elapsed() < Duration::from_secs(10));
}

/// Has the server ask: for roots, a model, a person.
#[expect(clippy::unwrap_used, reason = "the body of two tests")]
async fn questions(connected: &Connected) {
    let ask = async |name: &str, input: Value| {
        let said = call(connected, name, input, ToolContext::new("c", "t")).await;
        said.map(|said| said.as_str().unwrap_or_default().to_owned())
    };
    let roots = ask("get-roots-list", json!({})).await.unwrap();
    let known = "Current MCP Roots (1 total):\n\n1. shared\n   URI: file:///srv/shared\n";
    assert!(roots.starts_with(known), "{roots}");
    let input = json!({ "prompt": "a haiku", "maxTokens": 17 });
    let sampled = ask("trigger-sampling-request", input).await.unwrap();
    let result: Value = sampled
        .strip_prefix("LLM sampling result: \n")
        .and_then(|json| serde_json::from_str(json).ok())
        .unwrap_or_else(|| panic!("{sampled}"));
    assert_eq!(
        result["content"]["text"],
        "17 tokens for \"Resource trigger-sampling-request context: a haiku\""
    );
    assert_eq!((&result["model"], &result["stopReason"]), (&json!("small"), &json!("endTurn")));
    // The defaults of the form are filled in.
    let answered = ask("trigger-elicitation-request", json!({})).await.unwrap();
    let inputs = "User provided the requested information!\nUser inputs:\n- Name: Ada\n- Email: ada@example.org\n- Birthdate: 1815-12-10\n- Favorite Integer: 42\n- Favorite Number: 3.14";
    assert!(answered.contains(inputs), "{answered}");
    let input = json!({ "url": "https://example.org/", "elicitationId": "one" });
    let declined = ask("trigger-url-elicitation", input).await.unwrap();
    assert!(declined.contains("User declined to open the URL (Elicitation ID: one)"), "{declined}");
    let input = json!({ "url": "https://example.org/", "errorPath": true });
    let needed = ask("trigger-url-elicitation", input).await.unwrap_err();
    assert!(needed.contains("browser-based authorization"), "{needed}");
}

/// Reads what is no tool.
#[expect(clippy::unwrap_used, reason = "the body of two tests")]
async fn reading(connected: &Connected) {
    let connection = connected.connection("e").unwrap();
    let resources = connection.resources().await.unwrap();
    assert!(resources.iter().any(|one| one.uri.starts_with("demo://resource/static/document/")));
    let templates = connection.resource_templates().await.unwrap();
    assert!(templates.iter().any(|one| one.uri == "demo://resource/dynamic/text/{resourceId}"));
    let text = connection.read_resource("demo://resource/dynamic/text/7").await.unwrap();
    assert!(text[0].text().unwrap().starts_with("Resource 7: This is a plaintext resource"));
    let blob = connection.read_resource("demo://resource/dynamic/blob/7").await.unwrap();
    assert!(blob[0].bytes().unwrap().starts_with(b"Resource 7: This is a base64 blob"));
    let names: Vec<_> = connection.prompts().await.unwrap().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"]);
    let filled = connection.get_prompt("args-prompt", [("city", "Oslo")]).await.unwrap();
    assert_eq!(filled.messages[0].text(), "What's weather in Oslo?");
    let missing = connection.get_prompt("args-prompt", [("town", "Oslo")]).await.unwrap_err();
    assert_eq!(missing.code(), Some(-32602));
}

#[tokio::test]
async fn reference_server_over_stdio() {
    let Some(folder) = folder() else { return };
    let server = McpServer::stdio("e", SCRIPT)
        .args([&*folder.to_string_lossy(), "stdio"])
        .env("CANARY_NAMED", "of no interest");
    let connected = connect(server).await;
    let warnings: Vec<_> = connected.connections().flat_map(oa_mcp::Connection::warnings).collect();
    assert_eq!(
        warnings,
        ["the tool simulate-research-query is left out: it can only run as a task"]
    );
    assert!(connected.connection("e").unwrap().instructions().await.is_some());
    tour(&connected).await;
    questions(&connected).await;
    reading(&connected).await;
    let environment = call(&connected, "get-env", json!({}), ToolContext::new("c", "t")).await;
    let environment: Value = serde_json::from_str(environment.unwrap().as_str().unwrap()).unwrap();
    let names: Vec<_> = environment.as_object().unwrap().keys().map(String::as_str).collect();
    println!("get-env: {}", names.join(" "));
    // A shell between us and the server adds three of its own.
    let allowed = [
        "CANARY_NAMED",
        "HOME",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LOGNAME",
        "OLDPWD",
        "PATH",
        "PWD",
        "SHELL",
        "SHLVL",
        "TERM",
        "TMPDIR",
        "TZ",
        "USER",
        "_",
    ];
    assert!(names.iter().all(|name| allowed.contains(name)), "{names:?}");
    assert!(names.contains(&"CANARY_NAMED") && names.contains(&"PATH"), "{names:?}");
    assert!(!environment.to_string().contains(CANARY), "{environment}");
    connected.close().await;
}

/// Its error -32042 requires a page before the page that its tool asks for.
#[tokio::test]
async fn reference_server_requires_a_page() {
    let Some(folder) = folder() else { return };
    let (opened, mut pages) = mpsc::unbounded_channel();
    let server = McpServer::stdio("e", SCRIPT)
        .args([&*folder.to_string_lossy(), "stdio"])
        .call_timeout(Duration::from_secs(3))
        .on_elicitation(move |question, _| {
            let ElicitationMode::Url { url } = question.mode else { panic!("a form") };
            let _ = opened.send(url);
            async { ElicitationAnswer::Accept(Value::Null) }
        });
    let connected = Servers::new().add(server.required()).connect().await.unwrap();
    let has_tool = || connected.tools().iter().any(|tool| tool.name() == NAMES[15]);
    assert!(eventually(has_tool).await);
    let input = json!({ "url": "https://example.org/", "errorPath": true });
    let cx = ToolContext::new("c", "t");
    let said = call(&connected, "trigger-url-elicitation", input, cx).await.unwrap();
    assert!(said.to_string().contains("User completed the URL elicitation flow"), "{said}");
    connected.close().await;
    let mut visited = Vec::new();
    while let Some(url) = pages.recv().await {
        visited.push(url);
    }
    assert_eq!(visited, ["https://modelcontextprotocol.io", "https://example.org/"]);
}

#[tokio::test]
async fn reference_server_over_http() {
    let Some(folder) = folder() else { return };
    let (mut child, server) = over_http(&folder).await;
    let connected = connect(server).await;
    tour(&connected).await;
    questions(&connected).await;
    reading(&connected).await;
    connected.close().await;
    drop(child.stdin.take());
    let ended = tokio::time::timeout(Duration::from_secs(10), child.wait()).await;
    assert!(ended.is_ok_and(|ended| ended.is_ok()));
}
