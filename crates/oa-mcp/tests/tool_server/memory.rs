//! Rules of a server in memory: permission, limits, tools that run alone.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oa_hooks::Permission;
use oa_tools::{State, tool};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{InMemory, PATIENCE, call, is_error, limits, request, server, text};

#[tokio::test]
async fn permission_sees_the_input_that_runs() {
    let runs = tool("write", "Writes")
        .param("path", "string")
        .param("times", "integer")
        .default("times", 1)
        .category("write")
        .build(|args| async move { Ok(json!(format!("wrote {args}"))) });
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let offered = server([runs]).permit(move |request| {
        let path = request.tool_input["path"].as_str().unwrap_or_default().to_owned();
        assert_eq!(request.category.as_deref(), Some("write"));
        assert_eq!(request.tool.map(|tool| tool.description).as_deref(), Some("Writes"));
        seen.lock().unwrap().push(request.tool_input);
        async move {
            match &*path {
                "a" => Permission::Allow,
                "b" => Permission::AllowWith(json!({ "path": "c" })),
                "bad" => Permission::AllowWith(json!({ "path": 7 })),
                "later" => Permission::Later,
                "panic" => panic!("a secret"),
                _ => Permission::deny("not there"),
            }
        }
    });
    let mut client = InMemory::ready(offered).await;
    let mut run = async |path: &str| {
        let answer = client.ask(&call(1, "write", json!({ "path": path }))).await;
        (is_error(&answer), text(&answer).to_owned())
    };
    let fine = |text: &str| (false, text.to_owned());
    let denied = |text: &str| (true, text.to_owned());
    assert_eq!(run("a").await, fine(r#"wrote {"path":"a","times":1}"#));
    assert_eq!(run("b").await, fine(r#"wrote {"path":"c","times":1}"#));
    assert_eq!(run("x").await, denied("permission denied: not there"));
    assert_eq!(run("later").await, denied("permission denied: no decision was made"));
    assert_eq!(run("panic").await, denied("permission denied: the permission check failed"));
    assert!(run("bad").await.1.starts_with("invalid arguments: `path`"));
    assert_eq!(asked.lock().unwrap()[0], json!({ "path": "a", "times": 1 }));
    let before = asked.lock().unwrap().len();
    assert!(is_error(&client.ask(&call(2, "write", json!({}))).await));
    assert_eq!(asked.lock().unwrap().len(), before, "nobody is asked about wrong arguments");
}

#[tokio::test]
async fn calls_over_the_limits_are_refused() {
    let release = Arc::new(Notify::new());
    let waiting = Arc::clone(&release);
    let wait = tool("wait", "Waits").param("text", "string").build(move |_| {
        let waiting = Arc::clone(&waiting);
        async move {
            waiting.notified().await;
            Ok(json!("waited"))
        }
    });
    let few = limits(|limits| {
        limits.calls = 2;
        limits.call_bytes = 4_000;
    });
    let mut client = InMemory::ready(server([wait]).limits(few)).await;
    client.send(&call(1, "wait", json!({ "text": "" }))).await;
    let large = "x".repeat(4_000);
    let refused = client.ask(&call(2, "wait", json!({ "text": large }))).await;
    assert_eq!(refused["error"]["message"], "the running calls take more than 4000 bytes");
    client.send(&call(3, "wait", json!({ "text": "" }))).await;
    let refused = client.ask(&call(4, "wait", json!({ "text": "" }))).await;
    assert_eq!(
        refused["error"],
        json!({ "code": -32000, "message": "2 calls are already running" })
    );
    release.notify_waiters();
    let mut ids = [client.next().await["id"].as_i64(), client.next().await["id"].as_i64()];
    ids.sort_unstable();
    assert_eq!(ids, [Some(1), Some(3)]);
    // What they took is free again.
    client.send(&call(5, "wait", json!({ "text": "" }))).await;
    client.send(&request(6, "ping", json!({}))).await;
    assert_eq!(client.next().await["id"], 6);
    release.notify_one();
    assert_eq!(text(&client.next().await), "waited");
}

#[tokio::test(start_paused = true)]
async fn exclusive_and_parallel_limits_are_kept() {
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(Mutex::new([0_usize; 2]));
    let work = |name: &'static str, place: usize| {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        move |_: Value| {
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            async move {
                let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                {
                    let mut most = most.lock().unwrap();
                    most[place] = most[place].max(now);
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(json!(name))
            }
        }
    };
    let tools = [
        tool("alone", "Runs alone").exclusive().build(work("alone", 0)),
        tool("two", "Runs twice at once").max_parallel(2).build(work("two", 1)),
    ];
    let mut client = InMemory::ready(server(tools)).await;
    for id in 0..12 {
        client.send(&call(id, if id % 4 == 0 { "alone" } else { "two" }, json!({}))).await;
    }
    for _ in 0..12 {
        assert!(!is_error(&client.next().await));
    }
    assert_eq!(*most.lock().unwrap(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn server_timeout_applies_to_tools() {
    let never = tool("never", "Never ends").build(|_| std::future::pending());
    let short = limits(|limits| limits.call_time = Some(Duration::from_secs(5)));
    let mut client = InMemory::ready(server([never]).limits(short)).await;
    let answer = client.ask(&call(1, "never", json!({}))).await;
    assert_eq!(text(&answer), "timed out after 5s");
}

#[tokio::test]
async fn tools_share_the_state_of_the_server() {
    struct Motto(&'static str);
    let says = tool("motto", "Says it")
        .build_with_context(|_, cx| async move { Ok(json!(cx.require_state::<Motto>()?.0)) });
    let offered = server([says]).state(State::new().with(Motto("onward")));
    let mut client = InMemory::ready(offered).await;
    assert_eq!(text(&client.ask(&call(1, "motto", json!({}))).await), "onward");
}

#[tokio::test]
async fn dropping_the_server_drops_its_calls() {
    let dropped = Arc::new(Notify::new());
    struct Told(Arc<Notify>);
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let told = Arc::clone(&dropped);
    let wait = tool("wait", "Waits").build(move |_| {
        let told = Told(Arc::clone(&told));
        async move {
            let _told = told;
            std::future::pending().await
        }
    });
    let mut client = InMemory::ready(server([wait])).await;
    client.send(&call(1, "wait", json!({}))).await;
    client.ask(&request(2, "ping", json!({}))).await;
    client.serving.abort();
    tokio::time::timeout(PATIENCE, dropped.notified()).await.unwrap();
}

/// Whose calls all end, so that no limit on running ones is reached.
#[tokio::test(start_paused = true)]
async fn unread_answers_of_calls_are_bounded() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let count = tool("count", "Counts").build(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok(json!("x".repeat(1_000))) }
    });
    let few = limits(|limits| (limits.calls, limits.subscriptions) = (8, 8));
    let mut client = InMemory::ready(server([count]).limits(few)).await;
    let sending = async {
        for id in 0..5_000 {
            client.send(&call(id, "count", json!({}))).await;
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(5), sending).await;
    tokio::time::timeout(Duration::from_secs(60), &mut client.serving).await.unwrap().unwrap();
    let ran = calls.load(Ordering::SeqCst);
    assert!(ran < 500, "{ran} calls ran for a client that reads no answer");
}

#[tokio::test]
async fn answers_to_a_batch_are_bounded() {
    let long = tool("long", "x".repeat(3_000)).build(|_| async { Ok(json!("done")) });
    let small = limits(|limits| limits.result_bytes = 10_000);
    let mut client = InMemory::ready(server([long]).limits(small)).await;
    let batch: Vec<_> = (0..100).map(|id| request(id, "tools/list", json!({}))).collect();
    client.send(&json!(batch)).await;
    let mut lists = 0;
    for id in 0..100 {
        let answer = client.next().await;
        assert_eq!(answer["id"], id);
        lists += usize::from(answer["result"].is_object());
        let error = json!("the answers to the batch have more than 10000 bytes");
        assert!(answer["result"].is_object() || answer["error"]["message"] == error, "{answer}");
    }
    assert_eq!(lists, 4);
    assert_eq!(text(&client.ask(&call(1, "long", json!({}))).await), "done");
}

#[tokio::test(start_paused = true)]
async fn client_that_never_reads_is_disconnected() {
    let mut client = InMemory::ready(server([])).await;
    let ping = request(1, "ping", json!({}));
    // Nobody reads: the pipe fills up, then the queue, and then input waits until the time is up.
    let sending = async {
        loop {
            client.send(&ping).await;
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(5), sending).await;
    tokio::time::timeout(Duration::from_secs(60), &mut client.serving).await.unwrap().unwrap();
}
