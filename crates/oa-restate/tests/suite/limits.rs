//! Limits of size and time, and failures that must not block a session.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{ALONE, Site, figure, prompting, results, work};

/// A call may take longer than the engine's own timeouts allow.
#[tokio::test]
async fn long_calls_start_once() {
    let _alone = ALONE.lock().await;
    let short = "inactivity-timeout = \"1s\"\nabort-timeout = \"1s\"";
    let Some(site) = Site::start_with(1, json!({}), short).await else { return };
    let answer = site.prompt("s", &json!({ "rounds": [[work(4_000)]] })).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(site.effects().iter().filter(|line| !line["start"].is_null()).count(), 1);
}

/// A model server that is down fails the prompt, and the session takes the next one.
#[tokio::test]
async fn the_model_is_down() {
    let _alone = ALONE.lock().await;
    let down = json!({ "model": "http://127.0.0.1:1/v1" });
    let Some(site) = Site::start(1, down).await else { return };
    for _ in 0..2 {
        let answer = site.prompt("s", &json!({})).await;
        assert_eq!(answer.status, 502, "{answer:?}");
        assert!(answer.json["message"].as_str().unwrap().contains("connect"), "{answer:?}");
    }
    assert_eq!(site.history("s").await.len(), 0, "the prompts are taken back");
    let open =
        site.query("SELECT id, status FROM sys_invocation WHERE status <> 'completed'").await;
    assert!(open.is_empty(), "{open:?}");
}

#[tokio::test]
async fn full_sessions_refuse_prompts() {
    let _alone = ALONE.lock().await;
    let Some(site) = Site::start(1, json!({ "session_bytes": 2_000 })).await else { return };
    let wish = json!({ "say": "x".repeat(400) });
    let refused = loop {
        let answer = site.prompt("s", &wish).await;
        if answer.status != 200 {
            break answer;
        }
    };
    assert_eq!(refused.status, 413, "{refused:?}");
    let history = site.history("s").await;
    assert!(history.len() >= 2);
    // A part of it fits elsewhere.
    let fork = json!({ "from": "s", "keep": 2 });
    assert_eq!(site.call("part", "fork", Some(fork.clone())).await.status, 200);
    assert_eq!(site.history("part").await, history[..2]);
    assert_eq!(site.call("part", "fork", Some(fork)).await.status, 409);
    assert_eq!(site.prompt("part", &json!({})).await.status, 200);
    assert_eq!(site.call("s", "clear", None).await.status, 200);
    assert_eq!(site.history("s").await.len(), 0);
    assert_eq!(site.prompt("s", &wish).await.status, 200);
}

/// A turn that fills its session ends, and a result that is too large is an error that the model reads.
#[tokio::test]
async fn large_results_are_refused() {
    let _alone = ALONE.lock().await;
    let Some(site) = Site::start(1, json!({ "result_bytes": 10_000 })).await else { return };
    let big = |bytes: u64| json!({ "name": "big", "input": { "bytes": bytes } });
    let answer = site.prompt("s", &json!({ "rounds": [[big(10_000), big(9_000)]] })).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let results = results(&site.end("s", 5).await);
    assert!(results[0].contains("the result is too large"), "{}", results[0]);
    assert_eq!(results[1].len(), 9_002);
}

#[tokio::test]
async fn time_is_up() {
    let _alone = ALONE.lock().await;
    let Some(site) = Site::start(1, json!({ "max_run_ms": 500 })).await else { return };
    let answer = site.prompt("call", &json!({ "rounds": [[work(60_000)]] })).await;
    assert_eq!(answer.json["reason"], "max_run_time", "{answer:?}");
    site.end("call", 3).await;
    let answer = site.prompt("request", &json!({ "think_ms": 60_000 })).await;
    assert_eq!(answer.json["reason"], "max_run_time", "{answer:?}");
}

/// Prompts at once: those with one key are one turn, and those of one session are turns in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prompts_come_at_once() {
    let _alone = ALONE.lock().await;
    let Some(site) = Site::start(2, json!({})).await else { return };
    let site = Arc::new(site);
    let same: Vec<_> = (0..10)
        .map(|_| {
            let site = Arc::clone(&site);
            tokio::spawn(async move {
                let url = format!("{}/Agent/same/prompt", site.server.ingress_url());
                let input = json!({ "message": "{}" });
                site.send("POST", &url, Some(input), Some("key-1")).await
            })
        })
        .collect();
    for answer in same {
        let answer = answer.await.unwrap();
        assert_eq!((answer.status, &answer.json["turn"]), (200, &json!(1)), "{answer:?}");
    }
    site.end("same", 2).await;
    let turns: Vec<_> = (0..20).map(|_| prompting(&site, "queue", json!({}))).collect();
    let mut numbers = BTreeSet::new();
    for turn in turns {
        numbers.insert(turn.await.unwrap().json["turn"].as_u64().unwrap());
    }
    assert_eq!(numbers, (1..=20).collect());
    let history = site.end("queue", 40).await;
    let roles =
        history.chunks(2).all(|turn| turn[0]["role"] == "user" && turn[1]["role"] == "assistant");
    assert!(roles, "{history:?}");
}

/// A turn with ten calls takes milliseconds for each step. Without `TCP_NODELAY` it is half a second.
#[tokio::test]
async fn steps_are_quick() {
    let _alone = ALONE.lock().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    let calls: Vec<_> = (0..10).map(|_| work(0)).collect();
    let mut times = Vec::new();
    for turn in 0..10 {
        let since = Instant::now();
        let answer = site.prompt(&format!("s{turn}"), &json!({ "rounds": [calls] })).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        times.push(since.elapsed());
    }
    times.sort_unstable();
    figure(&format!("a turn of 10 calls: p50 {:.1?}, best {:.1?}", times[5], times[0]));
    assert!(times[0] < Duration::from_millis(400), "{times:?}");
}
