//! The faults of a server and their outcomes: the table in the crate's guide page, row by row.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use oa_mcp::{ErrorKind, McpServer, Servers};
use oa_tools::ToolContext;
use serde_json::json;

use crate::support::{
    CANARY, call, call_with, connect, eventually, listening, scripted, soak, tool, with_limits,
};

#[tokio::test]
async fn start_failures_include_the_last_stderr() {
    let missing = connect(McpServer::stdio("s", "no-such-program").required()).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Connect);
    assert!(missing.to_string().starts_with("s: cannot start no-such-program"), "{missing}");
    let died = connect(scripted("die")).await.unwrap_err();
    assert_eq!(died.kind(), ErrorKind::Connect);
    let expected =
        "s: the server exited with status 3; its last error output: no config file, key ****";
    assert_eq!(died.to_string(), expected);
}

/// Programs print their usage, or what is missing, on either stream.
#[tokio::test]
async fn output_of_a_failed_start_is_shown() {
    for (script, expected) in [
        ("echo 'usage: tool start'; exit 2", "the server exited with status 2"),
        ("echo 'usage: tool start'; exec sleep 300", "no answer to the handshake within 300ms"),
    ] {
        let server = McpServer::stdio("s", "sh").args(["-c", script]).required();
        let server = server.connect_timeout(Duration::from_millis(300));
        let error = connect(server).await.unwrap_err();
        let printed = "the server printed output that is not a protocol message: usage: tool start";
        assert_eq!(error.to_string(), format!("s: {expected}; {printed}"));
    }
}

/// Whatever follows the refusal: its reason is what the user has to know.
#[tokio::test]
async fn refusal_of_the_handshake_is_the_error() {
    for then in ["exit 1", "read -r line; exit 0", "sleep 300"] {
        let refusal = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"no license"}}"#;
        let script = format!("read -r line; echo '{refusal}'; {then}");
        let server = McpServer::stdio("s", "sh").args(["-c", &script]).required();
        let server = server.connect_timeout(Duration::from_millis(700));
        let error = connect(server).await.unwrap_err();
        assert_eq!(error.to_string(), "s: no license", "{then}");
        assert_eq!((error.kind(), error.code()), (ErrorKind::Connect, Some(-32602)), "{then}");
    }
}

/// As of a server that could not read the request. A line of its log is none.
#[tokio::test]
async fn refusal_without_an_id_is_the_error() {
    let log = r#"{"level":"error","error":"no cache"}"#;
    let refusal = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no license"}}"#;
    let script = format!("read -r line; echo '{log}'; echo '{refusal}'; sleep 300");
    let server = McpServer::stdio("s", "sh").args(["-c", &script]).required();
    let error = tokio::time::timeout(Duration::from_secs(20), connect(server)).await.unwrap();
    assert_eq!(error.unwrap_err().to_string(), "s: no license");
}

/// Servers that start beside it do not wait for it.
#[tokio::test]
async fn hanging_start_ends_at_its_timeout() {
    let hangs = scripted("hang").connect_timeout(Duration::from_millis(700));
    let good = McpServer::stdio("good", env!("CARGO_BIN_EXE_oa-mcp-scripted"));
    let error = connect(hangs.clone()).await.unwrap_err();
    let expected =
        "s: no answer to the handshake within 700ms; its last error output: still loading";
    assert_eq!(error.to_string(), expected);
    assert_eq!(error.kind(), ErrorKind::Connect);

    let dead = McpServer::stdio("dead", "no-such-program");
    let connected = Servers::new().add(dead).add(good).connect().await.unwrap();
    assert_eq!(
        connected.failures().iter().map(|failure| failure.server()).collect::<Vec<_>>(),
        ["dead"]
    );
    assert_eq!(connected.tools().len(), 2);
    connected.close().await;

    // One that hangs is an entry, too, and the others work.
    let program = || McpServer::stdio("good", env!("CARGO_BIN_EXE_oa-mcp-scripted"));
    let hangs = McpServer::stdio("hangs", env!("CARGO_BIN_EXE_oa-mcp-scripted"));
    let hangs = hangs.arg("hang").connect_timeout(Duration::from_millis(700));
    let connected = Servers::new().add(hangs).add(program()).connect().await.unwrap();
    let expected =
        "hangs: no answer to the handshake within 700ms; its last error output: still loading";
    assert_eq!(connected.failures()[0].error().to_string(), expected);
    assert_eq!(connected.tools().len(), 2);
    connected.close().await;
}

#[tokio::test]
async fn next_call_restarts_a_dead_server() {
    let connected = connect(scripted("plain")).await.unwrap();
    let died = call(&connected, "die").await.unwrap_err();
    assert_eq!(
        died,
        "s: the server exited with status 3; its last error output: out of memory, key ****"
    );
    let echo = tool(&connected, "s__echo").unwrap();
    assert_eq!(echo.execute(json!({ "text": "back" })).await.unwrap(), json!("back"));
    connected.close().await;
}

/// The server keeps running, and its output stays open.
#[tokio::test]
async fn server_with_closed_input_is_restarted() {
    let hello = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}"#;
    let script = format!(
        r#"answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')" "$1"; }}
while IFS= read -r line; do case $line in
  *initialize\"*) answer '{hello}' ;;
  *tools/list*) answer '{{"tools":[{{"name":"do","inputSchema":{{"type":"object"}}}}]}}' ;;
  *deaf*) exec 0<&-; answer '{{"content":[{{"type":"text","text":"deaf"}}]}}'; exec sleep 300 ;;
  *tools/call*) answer '{{"content":[{{"type":"text","text":"heard"}}]}}' ;;
esac; done"#
    );
    let server = McpServer::stdio("s", "sh").args(["-c", &script]).required();
    let server = server.limits(with_limits(|limits| limits.close_time = Duration::from_millis(50)));
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "first").await, Ok(json!("heard")));
    assert_eq!(call(&connected, "deaf").await, Ok(json!("deaf")));
    assert_eq!(call(&connected, "second").await, Err("s: the server closed its input".to_owned()));
    assert_eq!(call(&connected, "third").await, Ok(json!("heard")));
    connected.close().await;
}

/// A call that begins as the server dies fails with it instead of waiting for its timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_that_race_a_crash_never_hang() {
    let server = scripted("plain").call_timeout(Duration::from_secs(600));
    let limits = with_limits(|limits| {
        (limits.restarts, limits.restart_delay) = (usize::MAX, Duration::ZERO);
    });
    let server = server.limits(limits);
    let connected = Arc::new(connect(server).await.unwrap());
    for _ in 0..soak(20) {
        let mut calls = tokio::task::JoinSet::new();
        for place in 0..12 {
            let connected = Arc::clone(&connected);
            let what = if place == 0 { "die" } else { "string id" };
            calls.spawn(async move { call(&connected, what).await });
        }
        let ended = tokio::time::timeout(Duration::from_secs(60), calls.join_all()).await;
        assert!(ended.is_ok(), "a call waits for nothing");
    }
}

#[tokio::test]
async fn restarts_are_bounded() {
    let server = scripted("plain").limits(with_limits(|limits| limits.restarts = 2));
    let connected = connect(server).await.unwrap();
    for _ in 0..3 {
        assert!(call(&connected, "die").await.unwrap_err().contains("status 3"));
    }
    let refused = call(&connected, "string id").await.unwrap_err();
    assert_eq!(refused, "s: the server was restarted 2 times within five minutes");
    connected.close().await;
}

#[tokio::test]
async fn garbage_lines_are_skipped_and_bounded() {
    let connected = connect(scripted("greeting")).await.unwrap();
    assert_eq!(call(&connected, "garbage").await, Ok(json!("after garbage")));
    let warnings = connected.connection("s").unwrap().warnings();
    assert_eq!(
        warnings,
        ["the server printed output that is not a protocol message: Server listening!"]
    );
    let lines = || connected.connection("s").unwrap().ignored().lines;
    assert_eq!(lines(), 3);
    let closed = call(&connected, "much garbage").await.unwrap_err();
    assert!(closed.contains("more than 100 lines that are not messages"), "{closed}");
    // The third of 100 was the 101st in all, and what comes after the end is read by nobody.
    assert_eq!(lines(), 101);
    assert_eq!(call(&connected, "string id").await, Ok(json!("accepted")));
    assert_eq!(lines(), 102, "the next one greets, too");
    connected.close().await;
}

#[tokio::test]
async fn oversized_messages_end_the_connection() {
    let server = scripted("plain").limits(with_limits(|limits| limits.message_bytes = 100_000));
    let connected = connect(server).await.unwrap();
    let (cx, _) = listening();
    let fits = call_with(&connected, json!({ "what": "huge", "bytes": 90_000 }), cx.clone())
        .await
        .unwrap();
    assert_eq!(fits.as_str().unwrap().len(), 90_000);
    let too_long = "s: a message from the server is longer than 100000 bytes";
    let huge = call_with(&connected, json!({ "what": "huge", "bytes": 200_000 }), cx).await;
    assert_eq!(huge, Err(too_long.to_owned()));
    assert_eq!(call(&connected, "endless line").await, Err(too_long.to_owned()));
    assert_eq!(call(&connected, "string id").await, Ok(json!("accepted")));
    connected.close().await;
}

#[tokio::test]
async fn malformed_answers_fail_their_call() {
    let connected = connect(scripted("plain")).await.unwrap();
    assert_eq!(
        call(&connected, "both").await,
        Err("s: the answer has both a result and an error".to_owned())
    );
    let shape = call(&connected, "shape").await.unwrap_err();
    assert_eq!(shape, r#"the answer is not a tool result: ["not","a","result"]"#);
    let expected = "known\n[content of an unknown type: smell]";
    assert_eq!(call(&connected, "unknown content").await, Ok(json!(expected)));
    assert_eq!(call(&connected, "twice").await, Ok(json!("first")));
    assert_eq!(call(&connected, "string id").await, Ok(json!("accepted")));
    for nothing in ["neither", "no result"] {
        let told = call(&connected, nothing).await.unwrap_err();
        assert_eq!(told, "the answer is not a tool result: null", "{nothing}");
    }
    assert_eq!(call(&connected, "error text").await, Err("s: the disk is full".to_owned()));
    let ignored = connected.connection("s").unwrap().ignored();
    assert_eq!((ignored.lines, ignored.answers), (0, 2), "one was unknown, one came twice");
    connected.close().await;
}

#[tokio::test]
async fn three_silent_calls_restart_the_server() {
    let server = scripted("plain").call_timeout(Duration::from_millis(300));
    let connected = connect(server).await.unwrap();
    let pid = async || {
        call(&connected, "child")
            .await
            .unwrap()
            .as_str()
            .unwrap_or_default()
            .split(' ')
            .next()
            .map(str::to_owned)
    };
    let first = pid().await;
    for _ in 0..2 {
        assert!(call(&connected, "nothing").await.unwrap_err().contains("silent"));
    }
    assert_eq!(pid().await, first, "an answer starts the count again");
    for _ in 0..3 {
        assert!(call(&connected, "nothing").await.unwrap_err().contains("silent"));
    }
    assert_ne!(pid().await, first);
    connected.close().await;
}

#[tokio::test]
async fn retries_need_a_trusted_idempotent_hint() {
    let silent = || scripted("idempotent").call_timeout(Duration::from_millis(200));
    let retryable = async |server: McpServer, what: &str| {
        let connected = connect(server).await.unwrap();
        let do_it = tool(&connected, "s__do").unwrap();
        let cx = ToolContext::new("c", "s__do");
        let error = do_it.call(json!({ "what": what }), cx).await.unwrap_err();
        connected.close().await;
        error.retry_hint()
    };
    assert_eq!(retryable(silent(), "nothing").await, Some(false));
    assert_eq!(retryable(silent().trust_annotations(), "nothing").await, Some(true));
    assert_eq!(retryable(silent().trust_annotations(), "die").await, Some(true));
    // It has answered.
    assert_eq!(retryable(silent().trust_annotations(), "refuse").await, Some(false));
}

#[tokio::test]
async fn unknown_protocol_version_is_rejected() {
    let error = connect(scripted("old")).await.unwrap_err();
    let expected = "s: the server speaks version 1999-01-01 of the protocol, not 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28";
    assert_eq!(error.to_string(), expected);
    assert_eq!(error.kind(), ErrorKind::Connect);
}

#[tokio::test]
async fn large_stderr_does_not_block_the_server() {
    let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel();
    let server = scripted("plain").on_stderr(move |line| {
        let _ = sender.send(line.len());
    });
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "stderr").await, Ok(json!("said it")));
    connected.close().await;
    let mut bytes = 0;
    while let Some(line) = lines.recv().await {
        bytes += line + 1;
    }
    assert_eq!(bytes, 10 * 1_024 * 1_024);
}

#[tokio::test]
async fn sampling_is_refused_by_default() {
    let connected = connect(scripted("plain")).await.unwrap();
    let heard = call(&connected, "sample").await.unwrap();
    assert_eq!(heard, json!(r#""s" -32601 {"jsonrpc":"2.0","id":"p","result":{}}"#));
    connected.close().await;
}

#[tokio::test]
async fn elicitation_is_refused_by_default() {
    let connected = connect(scripted("plain")).await.unwrap();
    let heard = call(&connected, "ask form").await.unwrap();
    assert!(heard.as_str().is_some_and(|heard| heard.contains("-32601")), "{heard}");
    assert_eq!(call(&connected, "string id").await, Ok(json!("accepted")));
    connected.close().await;
}

#[tokio::test]
async fn late_answers_and_progress_are_ignored() {
    let server = scripted("plain").call_timeout(Duration::from_millis(200));
    let connected = connect(server).await.unwrap();
    for _ in 0..2 {
        assert!(call(&connected, "late").await.unwrap_err().contains("silent"));
        // Both come now, in front of the next answer.
        assert_eq!(call(&connected, "overdue").await, Ok(json!("in time")));
    }
    let connection = connected.connection("s").unwrap();
    assert_eq!(connection.warnings().len(), 0);
    let ignored = connection.ignored();
    assert_eq!((ignored.lines, ignored.answers, ignored.progress), (0, 2, 2));
    connected.close().await;
}

#[tokio::test]
async fn child_gets_only_named_variables() {
    let connected = connect(scripted("plain")).await.unwrap();
    let names = call(&connected, "environment").await.unwrap();
    let names: Vec<&str> = names.as_str().unwrap().split(' ').collect();
    let allowed = [
        "CANARY", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM",
        "TMPDIR", "TZ", "USER",
    ];
    assert!(names.iter().all(|name| allowed.contains(name)), "{names:?}");
    assert!(names.contains(&"CANARY") && names.contains(&"PATH"), "{names:?}");
    // The tests run under cargo, which sets many.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let (cx, _) = listening();
    assert!(!format!("{cx:?} {connected:?}").contains(CANARY));
    connected.close().await;
}

/// Secrets are masked in whole lines, and each line of a secret is one.
#[tokio::test]
async fn secrets_in_stderr_are_masked_by_line() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lines);
    let server = scripted("plain")
        .env("PEM", "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA\n-----END KEY-----\n")
        .on_stderr(move |line| seen.lock().unwrap().push(line.to_owned()));
    let connected = connect(server).await.unwrap();
    let (left, right) = ("x".repeat(8 * 1024 - 10), "y".repeat(9 * 1024));
    let full = "z".repeat(64 * 1024 - 12);
    let text = format!("{left}{CANARY}{right}\n  MIIEpAIBAAKCAQEA\n{full}{CANARY} and more\nend\n");
    let input = json!({ "what": "to stderr", "text": text });
    let said = call_with(&connected, input, ToolContext::new("c", "s__do")).await;
    assert_eq!(said, Ok(json!("said it")));
    assert!(eventually(|| lines.lock().unwrap().len() == 4).await);
    let expected = [
        format!("{left}****{right}"),
        "  ****".to_owned(),
        format!("{full}****"),
        "end".to_owned(),
    ];
    assert!(*lines.lock().unwrap() == expected, "too long to print");
    connected.close().await;
}

/// They run on the tasks that read messages, which must go on.
#[tokio::test]
async fn panics_of_callbacks_are_warnings() {
    let server = scripted("plain")
        .on_log(|_, _| panic!("disk full"))
        .on_stderr(|line| panic!("no terminal for {line}"));
    let connected = connect(server).await.unwrap();
    let cx = ToolContext::new("c", "s__do");
    let input = json!({ "what": "to stderr", "text": format!("a line with {CANARY}\n") });
    assert_eq!(call_with(&connected, input, cx.clone()).await, Ok(json!("said it")));
    assert_eq!(call(&connected, "log").await, Ok(json!("logged")));
    let cx = cx.with_emitter(Arc::new(|_| panic!("no window")));
    let input = json!({ "what": "progress", "steps": 2 });
    assert_eq!(call_with(&connected, input, cx).await, Ok(json!("done")));
    let warnings = || {
        let mut warnings = connected.connection("s").unwrap().warnings();
        warnings.sort();
        warnings
    };
    assert!(eventually(|| warnings().len() == 3).await, "{:?}", warnings());
    let expected = [
        "the callback for progress panicked: no window",
        "the callback on_log panicked: disk full",
        "the callback on_stderr panicked: no terminal for a line with ****",
    ];
    assert_eq!(warnings(), expected);
    connected.close().await;
}
