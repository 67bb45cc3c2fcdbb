//! Turns that wait for users: approvals, external results, interrupts, steered messages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{MACHINE, Site, figure, prompting, results, work};

/// The answer to an interrupt comes in milliseconds; a loaded machine gets more.
const SOON: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_are_interrupted() {
    let _alone = MACHINE.write().await;
    let Some(site) = Site::start(2, json!({})).await else { return };
    let site = Arc::new(site);
    assert_eq!(site.call("none", "interrupt", None).await.json, false);

    let prompt = prompting(&site, "request", json!({ "think_ms": 30_000, "say": "Slow." }));
    site.until_effect(|line| !line["asked"].is_null()).await;
    let since = Instant::now();
    assert_eq!(site.call("request", "interrupt", None).await.json, true);
    let answer = prompt.await.unwrap();
    let request = since.elapsed();
    assert_eq!(answer.json["reason"], "interrupted", "{answer:?}");
    site.end("request", 1).await;

    let prompt = prompting(
        &site,
        "calls",
        json!({ "rounds": [[work(30_000), work(30_001), work(30_002)]] }),
    );
    while site.effects().iter().filter(|line| !line["start"].is_null()).count() < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let since = Instant::now();
    assert_eq!(site.call("calls", "interrupt", None).await.json, true);
    let answer = prompt.await.unwrap();
    let calls = since.elapsed();
    assert_eq!(answer.json["reason"], "interrupted", "{answer:?}");
    let history = site.end("calls", 5).await;
    for result in results(&history) {
        assert!(result.contains("cancelled") && !result.contains("not run"), "{result}");
    }
    // The tools hear of it, on whatever worker they run.
    for _ in 0..3 {
        site.until_effect(|line| !line["cancelled"].is_null()).await;
    }

    let danger = json!({ "name": "danger", "input": { "ms": 1 } });
    let prompt = prompting(&site, "approval", json!({ "rounds": [[danger]] }));
    site.until_status("approval", |status| !status["pending"].is_null()).await;
    let since = Instant::now();
    assert_eq!(site.call("approval", "interrupt", None).await.json, true);
    let answer = prompt.await.unwrap();
    let approval = since.elapsed();
    assert_eq!(answer.json["reason"], "interrupted", "{answer:?}");
    let history = site.end("approval", 3).await;
    assert!(results(&history)[0].contains("cancelled"), "{history:?}");

    figure(&format!(
        "interrupts are answered after {request:.1?} in a request, {calls:.1?} in 3 calls, {approval:.1?} in an approval"
    ));
    assert!(request < SOON && calls < SOON && approval < SOON);
    // The sessions go on.
    for session in ["request", "calls", "approval"] {
        assert_eq!(site.prompt(session, &json!({})).await.status, 200);
    }
}

#[tokio::test]
async fn calls_are_approved_and_denied() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    let danger = |ms: u64| json!({ "name": "danger", "input": { "ms": ms } });
    site.begin("s", &json!({ "rounds": [[danger(1), work(1), danger(2), danger(3)]] })).await;
    let all = |status: &Value| status["pending"].as_array().is_some_and(|calls| calls.len() == 3);
    let status = site.until_status("s", all).await;
    assert_eq!(site.effects().iter().filter(|line| !line["start"].is_null()).count(), 0);
    let id = |place: usize| status["pending"][place]["id"].clone();
    let changed = json!({ "id": id(0), "input": { "ms": "soon" } });
    assert_eq!(site.call("s", "approve", Some(changed)).await.status, 400);
    let changed = json!({ "id": id(0), "input": { "ms": 7 } });
    assert_eq!(site.call("s", "approve", Some(changed)).await.status, 200);
    let denied = json!({ "id": id(1), "reason": "too dangerous" });
    assert_eq!(site.call("s", "deny", Some(denied)).await.status, 200);
    assert_eq!(
        site.call("s", "deny", Some(json!({ "id": "other", "reason": "" }))).await.status,
        404
    );
    assert_eq!(
        site.call("s", "answer", Some(json!({ "id": id(2), "content": 1 }))).await.status,
        404
    );
    assert_eq!(site.call("s", "approve", Some(json!({ "id": id(2) }))).await.status, 200);
    let results = results(&site.end("s", 7).await);
    assert!(results[0].contains("run") && results[3].contains("run"), "{results:?}");
    assert!(results[2].contains("too dangerous"), "{results:?}");
}

#[tokio::test]
async fn external_results_are_accepted() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    let ask = json!({ "name": "ask_user", "input": { "question": "Which?" } });
    site.begin("s", &json!({ "rounds": [[work(1), ask]] })).await;
    let status = site.until_status("s", |status| !status["pending"].is_null()).await;
    assert_eq!(status["pending"][0]["waits_for"], "result");
    assert_eq!(status["pending"][0]["input"]["question"], "Which?");
    site.kill_workers();
    site.add_worker();
    let answer = json!({ "id": status["pending"][0]["id"], "content": "the blue one" });
    assert_eq!(site.call("s", "answer", Some(answer)).await.status, 200);
    let history = site.end("s", 5).await;
    assert!(results(&history).contains(&"\"the blue one\"".to_owned()), "{history:?}");
}

#[tokio::test]
async fn unanswered_calls_time_out() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({ "wait_ms": 300 })).await else { return };
    let danger = json!({ "name": "danger", "input": { "ms": 1 } });
    let ask = json!({ "name": "ask_user", "input": { "question": "Which?" } });
    let answer = site.prompt("s", &json!({ "rounds": [[danger], [ask]] })).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let results = results(&site.end("s", 6).await);
    assert!(results[0].contains("no decision was made in time"), "{results:?}");
    assert!(results[1].contains("no result came in time"), "{results:?}");
}

#[tokio::test]
async fn messages_are_steered() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    site.begin("s", &json!({ "rounds": [[work(500)], [work(1)]] })).await;
    site.until_effect(|line| !line["start"].is_null()).await;
    let message = json!({ "message": "Also this." });
    assert_eq!(site.call("s", "steer", Some(message.clone())).await.status, 200);
    let history = site.end("s", 7).await;
    let roles: Vec<_> = history.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user", "assistant", "tool", "assistant"]);
    // Without a turn, it waits for the next one.
    assert_eq!(site.call("s", "steer", Some(message)).await.status, 200);
    assert_eq!(site.prompt("s", &json!({})).await.status, 200);
    let history = site.end("s", 11).await;
    assert!(history[9].to_string().contains("Also this."), "{history:?}");
    let empty = json!({ "message": " " });
    assert_eq!(site.call("s", "steer", Some(empty)).await.status, 400);
}
