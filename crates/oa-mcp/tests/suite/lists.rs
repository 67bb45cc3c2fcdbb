use std::time::Duration;

use oa_mcp::{ErrorKind, McpServer, SchemaForm, Servers};
use serde_json::json;

use crate::support::{call, connect, scripted, tool, with_limits};

fn names(connected: &oa_mcp::Connected) -> Vec<String> {
    connected.tools().iter().map(|tool| tool.name().to_owned()).collect()
}

#[tokio::test]
async fn invalid_tools_are_left_out_alone() {
    let connected = connect(scripted("bad-tools")).await.unwrap();
    let seen = names(&connected);
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert_eq!((&*seen[0], &*seen[1], &*seen[3]), ("s__do", "s__echo", "s__schemaless"));
    assert!(seen[2].starts_with("s__read_file_"), "{seen:?}");
    let warnings = connected.connection("s").unwrap().warnings();
    assert_eq!(warnings.len(), 5, "{warnings:?}");
    for name in ["read.file", "schemaless"] {
        let expected =
            format!("the tool {name} has no input schema: it is offered without parameters");
        assert!(warnings.contains(&expected), "{warnings:?}");
    }
    let definition = tool(&connected, "s__schemaless").unwrap().input_schema().clone();
    let open = json!({ "type": "object", "properties": {}, "additionalProperties": true });
    assert_eq!(definition, open);
    assert!(warnings.iter().any(|it| it.contains("circular is left out: its schema")));
    let file = tool(&connected, &seen[2]).unwrap();
    assert_eq!(file.category(), Some("mcp"), "a server's word is not trusted");
    connected.close().await;

    let trusted = connect(scripted("bad-tools").trust_annotations()).await.unwrap();
    assert_eq!(tool(&trusted, &seen[2]).unwrap().category(), Some("read"));
    trusted.close().await;
}

#[tokio::test]
async fn endless_lists_are_cut() {
    let server = scripted("endless").limits(with_limits(|limits| limits.pages = 5));
    let connected = connect(server).await.unwrap();
    assert_eq!(connected.tools().len(), 5);
    let warnings = connected.connection("s").unwrap().warnings();
    assert_eq!(warnings, ["the list of tools has more than 5 pages; the rest is left out"]);
    connected.close().await;

    let server = scripted("endless").limits(with_limits(|limits| limits.tools = 3));
    let connected = connect(server).await.unwrap();
    assert_eq!(names(&connected), ["s__t0", "s__t1", "s__t2"]);
    connected.close().await;
}

/// Also one that never answers a request that it does not know.
#[tokio::test]
async fn server_without_capabilities_is_a_warning() {
    for mode in ["nothing", "mute"] {
        let server = scripted(mode).connect_timeout(Duration::from_secs(2));
        let connected = connect(server).await.unwrap();
        assert!(connected.tools().is_empty());
        let warnings = connected.connection("s").unwrap().warnings();
        let expected = "the server announces no tools, resources or prompts: nothing of it is used";
        assert_eq!(warnings, [expected], "{mode}");
        connected.close().await;
    }
}

/// As codebase-memory-mcp did for clients without capabilities of their own.
#[tokio::test]
async fn unannounced_tools_are_found() {
    let connected = connect(scripted("unannounced")).await.unwrap();
    assert_eq!(names(&connected), ["s__do", "s__echo"]);
    assert!(connected.connection("s").unwrap().warnings().is_empty());
    connected.close().await;
}

#[tokio::test]
async fn malformed_list_is_a_connect_error() {
    let error = connect(scripted("no-list")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(error.to_string().starts_with("s: the answer is not a list of tools: "), "{error}");
}

#[tokio::test]
async fn filters_use_raw_tool_names() {
    let connected = connect(scripted("plain").allow_only(["e*"])).await.unwrap();
    assert_eq!(names(&connected), ["s__echo"]);
    connected.close().await;
    let connected = connect(scripted("plain").disallow(["echo"]).prefix("")).await.unwrap();
    assert_eq!(names(&connected), ["do"]);
    assert!(connected.connection("s").unwrap().warnings().is_empty());
    connected.close().await;
    let connected = connect(scripted("plain").disallow(["ecko"])).await.unwrap();
    let warnings = connected.connection("s").unwrap().warnings();
    assert_eq!(warnings, [r#"no tool matches "ecko", which `disallow` names"#]);
    connected.close().await;
}

/// A call to a removed tool fails, and an equal list is not a change.
#[tokio::test]
async fn changed_list_is_reloaded_once() {
    let connected = connect(scripted("plain")).await.unwrap();
    let echo = tool(&connected, "s__echo").unwrap();
    assert_eq!(call(&connected, "change").await, Ok(json!("changed")));
    assert_eq!(names(&connected), ["s__do", "s__echo"], "not within the step");
    tokio::time::timeout(Duration::from_secs(10), connected.changed()).await.unwrap();
    assert_eq!(names(&connected), ["s__do", "s__grown"]);
    let removed = echo.execute(json!({ "text": "?" })).await.unwrap_err();
    assert!(removed.to_string().contains("no longer has this tool"), "{removed}");
    // Five notices were one change, and the same list again is none.
    assert_eq!(call(&connected, "change").await, Ok(json!("changed")));
    let again = tokio::time::timeout(Duration::from_millis(800), connected.changed()).await;
    assert!(again.is_err());
    connected.close().await;
}

#[tokio::test]
async fn duplicate_names_are_config_errors() {
    let program = env!("CARGO_BIN_EXE_oa-mcp-scripted");
    let server = |name: &str| McpServer::stdio(name, program).prefix("p");
    let error = Servers::new().add(server("one")).add(server("two")).connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert_eq!(error.to_string(), "two tools have the name p__do: do of one and do of two");
    let twice = Servers::new().add(server("one")).add(server("one")).connect().await.unwrap_err();
    assert_eq!(twice.to_string(), "two servers have the name one");
}

#[tokio::test]
async fn tools_are_sorted_within_each_server() {
    let program = env!("CARGO_BIN_EXE_oa-mcp-scripted");
    for _ in 0..5 {
        let servers =
            Servers::new().add(McpServer::stdio("z", program)).add(McpServer::stdio("a", program));
        let connected =
            servers.map(|server| server.schemas(SchemaForm::Strict)).connect().await.unwrap();
        assert_eq!(names(&connected), ["z__do", "z__echo", "a__do", "a__echo"]);
        let strict = connected.tools()[0].input_schema()["additionalProperties"].clone();
        assert_eq!(strict, json!(false));
        connected.close().await;
    }
}

/// Rules about `x__*` trust the server that has the prefix.
#[tokio::test]
async fn prefixes_of_others_are_not_used() {
    let program = env!("CARGO_BIN_EXE_oa-mcp-scripted");
    let open = McpServer::stdio("open", program).prefix("");
    let open = open.rename("do", "x__remove").rename("echo", "gone__echo");
    let gone = McpServer::stdio("gone", "no-such-program");
    let servers = Servers::new().add(open).add(McpServer::stdio("x", program)).add(gone);
    let connected = servers.connect().await.unwrap();
    assert_eq!(names(&connected), ["x__do", "x__echo"]);
    assert_eq!(
        connected.connection("open").unwrap().warnings(),
        [
            "the tool gone__echo is left out: the prefix gone__ is that of gone",
            "the tool x__remove is left out: the prefix x__ is that of x",
        ]
    );
    connected.close().await;
}

/// A tool that a list introduces does not replace one of another server.
#[tokio::test]
async fn changed_list_takes_no_name_of_others() {
    let program = env!("CARGO_BIN_EXE_oa-mcp-scripted");
    let open = McpServer::stdio("open", program).prefix("").rename("grown", "x__do");
    let servers = Servers::new().add(open).add(McpServer::stdio("x", program));
    let connected = servers.connect().await.unwrap();
    let change = json!({ "what": "change" });
    tool(&connected, "do").unwrap().execute(change).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), connected.changed()).await.unwrap();
    assert_eq!(names(&connected), ["do", "x__do", "x__echo"]);
    assert_eq!(tool(&connected, "x__do").unwrap().description(), "Tool do");
    connected.close().await;
}
