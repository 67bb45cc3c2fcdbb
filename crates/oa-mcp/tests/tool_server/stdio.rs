//! Faults of tools and of clients, over the standard streams of a real process.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::support::{
    InMemory, Offered, PATIENCE, call, cancel, hello, is_error, request, server, text, watched,
};

#[tokio::test]
async fn panic_message_is_not_sent() {
    let mut server = Offered::ready().await;
    let answer = server.ask(&call(1, "panic", json!({}))).await;
    assert!(is_error(&answer), "{answer}");
    assert_eq!(text(&answer), "the tool panicked");
    assert_eq!(text(&server.ask(&call(2, "echo", json!({ "text": "on" }))).await), "on");
}

#[tokio::test]
async fn tool_errors_are_results_with_their_chain() {
    let mut server = Offered::ready().await;
    let answer = server.ask(&call(1, "fail", json!({}))).await;
    assert!(is_error(&answer));
    assert_eq!(text(&answer), "it failed: the disk is full");
    let answer = server.ask(&call(2, "late", json!({}))).await;
    assert!(is_error(&answer));
    assert_eq!(text(&answer), "timed out after 100ms");
    let answer = server.ask(&call(3, "lie", json!({}))).await;
    assert!(is_error(&answer) && text(&answer).contains("output schema: `sum`"), "{answer}");
}

/// Unknown tools and methods are protocol errors instead of results.
#[tokio::test]
async fn invalid_arguments_name_the_field() {
    let mut server = Offered::ready().await;
    for arguments in [json!({}), json!({ "a": "x", "b": 1 }), json!([]), json!("{}"), Value::Null] {
        let answer = server.ask(&call(1, "add", arguments.clone())).await;
        assert!(is_error(&answer), "{arguments}: {answer}");
        let text = text(&answer);
        assert!(text.starts_with("invalid arguments: "), "{arguments}: {text}");
        assert!(!arguments.is_object() || text.contains("`a`"), "{arguments}: {text}");
    }
    let code = |answer: &Value| answer["error"]["code"].as_i64();
    assert_eq!(code(&server.ask(&call(2, "none", json!({}))).await), Some(-32602));
    assert_eq!(code(&server.ask(&request(3, "tools/call", json!({}))).await), Some(-32602));
    assert_eq!(code(&server.ask(&request(4, "resources/read", json!({}))).await), Some(-32601));
}

/// As Cline asks whatever a server offers.
#[tokio::test]
async fn other_lists_are_empty() {
    let mut server = Offered::ready().await;
    for (method, member) in [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let answer = server.ask(&request(1, method, json!({}))).await;
        assert_eq!(answer["result"], json!({ member: [] }), "{method}");
    }
}

#[tokio::test]
async fn empty_cursor_means_the_first_page() {
    let mut server = Offered::ready().await;
    for (cursor, code) in [(Value::Null, None), (json!(""), None), (json!("x"), Some(-32602))] {
        let answer = server.ask(&request(1, "tools/list", json!({ "cursor": cursor }))).await;
        assert_eq!(answer["error"]["code"].as_i64(), code, "{answer}");
    }
}

#[tokio::test]
async fn only_ping_is_answered_before_initialize() {
    let mut server = Offered::start();
    assert_eq!(server.ask(&request(1, "ping", json!({}))).await["result"], json!({}));
    for method in ["tools/list", "tools/call", "logging/setLevel"] {
        let answer = server.ask(&request("x", method, json!({ "name": "echo" }))).await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &json!("x")));
    }
    let version = |asked: Value| request(2, "initialize", json!({ "protocolVersion": asked }));
    assert_eq!(server.ask(&version(json!(7))).await["error"]["code"], -32602);
    let hello = server.ask(&version(json!("1999-01-01"))).await;
    assert_eq!(hello["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(hello["result"]["serverInfo"], json!({ "name": "offered", "version": "1.2.3" }));
    assert_eq!(hello["result"]["instructions"], "Be kind.");
}

/// As clients do that reconnect over the same pipe.
#[tokio::test]
async fn second_initialize_is_answered() {
    let mut server = Offered::ready().await;
    let answer = server.ask(&hello(7)).await;
    assert_eq!(
        (&answer["id"], &answer["result"]["serverInfo"]["name"]),
        (&json!(7), &json!("offered"))
    );
    assert_eq!(text(&server.ask(&call(1, "echo", json!({ "text": "on" }))).await), "on");
}

#[tokio::test]
async fn garbage_gets_error_answers() {
    let mut server = Offered::ready().await;
    server.write(b"{no json\n[1,2]\n\n  \n[]\n7\n\xff\xfe\n{\"jsonrpc\":\"1.0\",\"id\":9}\n").await;
    let mut answers = Vec::new();
    for _ in 0..7 {
        let answer = server.next().await;
        answers.push((answer["id"].clone(), answer["error"]["code"].as_i64().unwrap()));
    }
    let none = |code| (Value::Null, code);
    let expected = [
        none(-32700),
        none(-32600),
        none(-32600),
        none(-32600),
        none(-32600),
        none(-32700),
        (json!(9), -32600),
    ];
    assert_eq!(answers, expected);
    let batch = json!([
        request("a", "ping", json!({})),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 77, "result": {} }),
        request("b", "ping", json!({})),
    ]);
    assert_eq!(server.ask(&batch).await["id"], "a");
    assert_eq!(server.next().await["id"], "b");
}

#[tokio::test]
async fn a_line_over_the_limit_is_skipped() {
    let mut server = Offered::ready().await;
    let huge = vec![b'x'; 17 * 1024 * 1024];
    server.write(&huge).await;
    server.write(b"\n").await;
    let answer = server.next().await;
    assert_eq!(answer["error"]["message"], "the message has more than 16777216 bytes");
    let values = format!("[{}0]\n", "0,".repeat(300_000));
    server.write(values.as_bytes()).await;
    let answer = server.next().await;
    assert_eq!(answer["error"]["message"], "the message has more than 250000 values");
    assert_eq!(text(&server.ask(&call(1, "echo", json!({ "text": "on" }))).await), "on");
    #[cfg(target_os = "linux")]
    {
        let status = format!("/proc/{}/status", server.child.id().unwrap());
        let status = std::fs::read_to_string(status).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        println!("peak memory after 17 MiB in one line: {peak} kB");
        assert!(peak < (16 + 48) * 1024, "{peak} kB");
    }
}

#[tokio::test]
async fn duplicate_open_ids_are_rejected() {
    let mut server = Offered::ready().await;
    server.send(&call(1, "slow", json!({ "steps": 2, "ms": 150 }))).await;
    let refusal = server.ask(&call(1, "echo", json!({ "text": "second" }))).await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&Value::Null, &json!(-32600)));
    let answer = server.next().await;
    assert_eq!((&answer["id"], text(&answer)), (&json!(1), "2 steps"));
    // A text is another id, and one that was answered is free again.
    server.send(&call("1", "slow", json!({ "steps": 1, "ms": 100 }))).await;
    assert_eq!(text(&server.ask(&call(1, "echo", json!({ "text": "third" }))).await), "third");
    assert_eq!(server.next().await["id"], "1");
}

#[tokio::test]
async fn canceled_call_is_not_answered() {
    let mut server = Offered::ready().await;
    for tool in ["slow", "block"] {
        server.send(&watched(1, tool, json!({ "steps": 1_000, "ms": 20 }))).await;
        if tool == "slow" {
            assert_eq!(server.next().await["method"], "notifications/progress");
        }
        server.send(&cancel(1)).await;
        server.send(&cancel(1)).await;
        server.send(&cancel(99)).await;
        server.send(&request("end", "ping", json!({}))).await;
        loop {
            let message = server.next().await;
            assert_ne!(message["id"], 1, "{message}");
            if message["id"] == "end" {
                break;
            }
        }
        // Its id is free, and nothing of it comes late.
        let next = server.ask(&call(1, "echo", json!({ "text": "next" }))).await;
        assert_eq!(text(&next), "next");
    }
}

#[tokio::test]
async fn progress_is_ordered_and_needs_a_token() {
    let mut server = Offered::ready().await;
    for _ in 0..10 {
        server.send(&watched(1, "burst", json!({}))).await;
        for step in 1..=1_000 {
            let params = json!({ "progressToken": 1, "progress": step, "total": 1_000 });
            assert_eq!(server.next().await["params"], params);
        }
        assert_eq!(text(&server.next().await), "done");
        assert_eq!(text(&server.ask(&call(2, "burst", json!({}))).await), "done");
    }
}

#[tokio::test]
async fn log_level_filters_lines() {
    let mut server = Offered::ready().await;
    let logs = async |server: &mut Offered| {
        server.send(&call(1, "talk", json!({}))).await;
        let mut lines = Vec::new();
        loop {
            let message = server.next().await;
            if message["id"] == 1 {
                return lines;
            }
            assert_eq!(message["params"]["logger"], "talk");
            lines.push(format!(
                "{}: {}",
                message["params"]["level"].as_str().unwrap_or_default(),
                message["params"]["data"].as_str().unwrap_or_default()
            ));
        }
    };
    let from_info = ["info: at info", "warning: at warn", "error: at error", "info: nearly done"];
    assert_eq!(logs(&mut server).await, from_info);
    let set = |level: &str| request(2, "logging/setLevel", json!({ "level": level }));
    assert_eq!(server.ask(&set("warning")).await["result"], json!({}));
    assert_eq!(logs(&mut server).await, ["warning: at warn", "error: at error"]);
    assert_eq!(server.ask(&set("debug")).await["result"], json!({}));
    assert_eq!(logs(&mut server).await.len(), 5);
    assert_eq!(server.ask(&set("loud")).await["error"]["code"], -32602);
}

// Elsewhere, standard output cannot be replaced.
#[cfg(unix)]
#[tokio::test]
async fn printed_output_goes_to_stderr() {
    let mut server = Offered::ready().await;
    let errors = server.child.stderr.take().unwrap();
    assert_eq!(text(&server.ask(&call(1, "print", json!({}))).await), "printed");
    let line = tokio::time::timeout(PATIENCE, BufReader::new(errors).lines().next_line()).await;
    assert_eq!(line.unwrap().unwrap().as_deref(), Some("this is no message"));
}

#[tokio::test]
async fn a_result_over_the_limit_is_an_error() {
    let mut server = Offered::ready().await;
    let answer = server.ask(&call(1, "flood", json!({ "bytes": 17_000_000 }))).await;
    assert!(is_error(&answer) && text(&answer).contains("more than 16777216"), "{answer}");
    let answer = server.ask(&call(2, "flood", json!({ "bytes": 1_000_000 }))).await;
    assert_eq!(text(&answer).len(), 1_000_000);
}

/// They are canceled, and the process ends soon after.
#[tokio::test]
async fn end_of_input_answers_running_calls() {
    for tool in ["slow", "block"] {
        let mut server = Offered::ready().await;
        server.send(&call(1, tool, json!({ "steps": 1_000, "ms": 100 }))).await;
        // The call runs once this is answered.
        server.ask(&request(2, "ping", json!({}))).await;
        let start = Instant::now();
        drop(server.input.take());
        let answer = server.next().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32000)));
        assert_eq!(server.next().await, Value::Null);
        let status = tokio::time::timeout(PATIENCE, server.child.wait()).await.unwrap().unwrap();
        let took = start.elapsed();
        println!("ended {took:?} after its input, in {tool}");
        assert!(status.success() && took < Duration::from_secs(3), "{status} {took:?}");
    }
}

/// It blocks its thread, but not the server.
#[tokio::test]
async fn deaf_tool_does_not_keep_the_server() {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let deaf = oa_tools::tool("deaf", "Ignores its cancellation").build_blocking(move |_| {
        let _ = released.lock().map(|released| released.recv());
        Ok(json!("released"))
    });
    let mut server = InMemory::ready(server([deaf])).await;
    server.send(&call(1, "deaf", json!({}))).await;
    server.ask(&request(2, "ping", json!({}))).await;
    server.close().await;
    assert_eq!(server.next().await["id"], 1);
    assert!(tokio::time::timeout(PATIENCE, server.serving).await.is_ok());
    drop(release);
}

#[tokio::test]
async fn last_line_needs_no_line_break() {
    let mut server = Offered::start();
    server.write(request(1, "ping", json!({})).to_string().as_bytes()).await;
    drop(server.input.take());
    assert_eq!(server.next().await["id"], 1);
    assert_eq!(server.next().await, Value::Null);
}

#[tokio::test]
async fn closed_output_ends_the_process() {
    let server = Offered::ready().await;
    let Offered { mut child, input, output } = server;
    drop(output);
    // The input stays open; an answer finds nobody.
    let mut input = input.unwrap();
    let ping = format!("{}\n", request(1, "ping", json!({})));
    let ended = tokio::time::timeout(PATIENCE, async {
        loop {
            let _ = input.write_all(ping.as_bytes()).await;
            if let Ok(Some(status)) = child.try_wait() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    assert!(ended.await.unwrap().success());
}
