//! Limits on size and time, and failures that must not block a session.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{MACHINE, Site, check_history, figure, prompting, results, work};

/// A call may take longer than the engine's own timeouts allow.
#[tokio::test]
async fn long_calls_start_once() {
    let _shared = MACHINE.read().await;
    let short = "inactivity-timeout = \"1s\"\nabort-timeout = \"1s\"";
    let Some(site) = Site::start_with(1, json!({}), short).await else { return };
    let answer = site.prompt("s", &json!({ "rounds": [[work(4_000)]] })).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(site.effects().iter().filter(|line| !line["start"].is_null()).count(), 1);
}

/// A model server that is down fails the prompt, and the session takes the next one.
#[tokio::test]
async fn unreachable_model_fails_the_prompt() {
    let _shared = MACHINE.read().await;
    // They do not count for `max_turns`.
    let down = json!({ "model": "http://127.0.0.1:1/v1", "max_turns": 1 });
    let Some(site) = Site::start(1, down).await else { return };
    for _ in 0..3 {
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
    let _shared = MACHINE.read().await;
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

/// Messages that wait for a turn are bounded, and so are the answers of people.
#[tokio::test]
async fn steered_messages_are_bounded() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    let steer = async |bytes: usize| {
        let message = json!({ "message": "x".repeat(bytes) });
        site.call("s", "steer", Some(message)).await.status
    };
    assert_eq!(steer(9 << 20).await, 413, "more than a session holds");
    assert_eq!(steer(5 << 20).await, 413, "more than may wait");
    let mut waiting = 0;
    while steer(1 << 20).await == 200 {
        waiting += 1;
    }
    assert_eq!(waiting, 3);
    assert_eq!(site.prompt("s", &json!({})).await.status, 200);

    let danger = json!({ "name": "danger", "input": { "ms": 1 } });
    site.begin("asks", &json!({ "rounds": [[danger]] })).await;
    let is_asked = |status: &Value| status["pending"][0]["tool"] == "danger";
    let id = site.until_status("asks", is_asked).await["pending"][0]["id"].clone();
    let deny = |reason: String| Some(json!({ "id": id, "reason": reason }));
    assert_eq!(site.call("asks", "deny", deny("x".repeat(2 << 20))).await.status, 413);
    assert_eq!(site.call("asks", "deny", deny("no".to_owned())).await.status, 200);
    site.end("asks", 4).await;
}

/// The session has no turn in progress afterwards.
#[tokio::test]
async fn invalid_prompts_leave_nothing_behind() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    let blank = site.call("s", "prompt", Some(json!({ "message": " " }))).await;
    assert_eq!(blank.status, 400, "{blank:?}");
    let status = site.call("s", "status", None).await.json;
    assert!(status["turn"].is_null(), "{status}");
    assert_eq!(site.call("s", "interrupt", None).await.json, json!(false));
    let open = site.query("SELECT id FROM sys_invocation WHERE status <> 'completed'").await;
    assert!(open.is_empty(), "{open:?}");
    assert_eq!(site.prompt("s", &json!({})).await.status, 200);
}

#[tokio::test]
async fn a_fork_keeps_the_agent() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    let prompt = |agent: &str| Some(json!({ "message": "{}", "agent": agent }));
    assert_eq!(site.call("s", "prompt", prompt("helper")).await.status, 200);
    assert_eq!(site.call("part", "fork", Some(json!({ "from": "s" }))).await.status, 200);
    assert_eq!(site.call("part", "status", None).await.json["agent"], "helper");
    let refused = site.call("part", "prompt", prompt("other")).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert_eq!(site.call("part", "prompt", prompt("helper")).await.status, 200);
}

/// A turn that fills its session ends, and a result that is too large is an error that the model reads.
#[tokio::test]
async fn large_results_are_refused() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({ "result_bytes": 10_000 })).await else { return };
    let big = |bytes: u64| json!({ "name": "big", "input": { "bytes": bytes } });
    let answer = site.prompt("s", &json!({ "rounds": [[big(10_000), big(9_000)]] })).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let results = results(&site.end("s", 5).await);
    assert!(results[0].contains("the result is too large"), "{}", results[0]);
    assert_eq!(results[1].len(), 9_002);
}

/// A turn that fills its session ends in the middle. History is valid, and the session still answers.
#[tokio::test]
async fn full_session_ends_the_turn() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({ "session_bytes": 5_000 })).await else { return };
    let big = json!({ "name": "big", "input": { "bytes": 1_500 } });
    let rounds = vec![[big]; 20];
    let answer = site.prompt("s", &json!({ "rounds": rounds })).await;
    assert_eq!(
        (answer.status, &answer.json["reason"]),
        (200, &json!("session_full")),
        "{answer:?}"
    );
    let status = site.call("s", "status", None).await.json;
    let messages = status["messages"].as_u64().unwrap();
    assert!((5..15).contains(&messages), "{status}");
    site.end("s", usize::try_from(messages).unwrap()).await;
    let refused = site.prompt("s", &json!({})).await;
    assert_eq!(refused.status, 413, "{refused:?}");
    assert_eq!(
        site.call("part", "fork", Some(json!({ "from": "s", "keep": 3 }))).await.status,
        200
    );
    assert_eq!(site.prompt("part", &json!({})).await.status, 200);
    assert_eq!(site.call("s", "clear", None).await.status, 200);
    assert_eq!(site.prompt("s", &json!({})).await.status, 200);
}

/// A conversation that is too long for the model is shortened within the turn, once for all attempts: the state has what
/// the model was sent, also if workers die in between.
#[tokio::test]
async fn conversations_are_shortened() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({ "context": 3_000 })).await else { return };
    let big = json!({ "name": "big", "input": { "bytes": 3_000 } });
    let mut asked: Vec<u64> = Vec::new();
    for turn in 0..4 {
        let rounds = json!([[big], [work(300)], [big]]);
        site.begin("s", &json!({ "rounds": rounds })).await;
        let starts = || site.effects().iter().filter(|line| !line["start"].is_null()).count();
        site.until(|| starts() > turn * 2).await;
        site.kill_workers();
        site.add_worker();
        site.until_status("s", |status| status["turn"].is_null() && status["prompts"] == turn + 1)
            .await;
        let effects = site.effects();
        asked.extend(effects.iter().filter_map(|line| line["asked"].as_u64()));
    }
    let history = site.history("s").await;
    check_history(&history);
    assert!(history.len() < 4 * 8, "{} messages", history.len());
    let status = site.call("s", "status", None).await.json;
    assert_eq!(status["messages"], history.len(), "{status}");
    let keys = site.query("SELECT key FROM state WHERE service_key = 's'").await;
    let turns =
        keys.iter().filter(|row| row["key"].as_str().is_some_and(|key| key.starts_with("t/")));
    assert!(turns.count() <= 4, "{keys:?}");
    // The worker with the next prompt reads what was kept, and replies with its answer.
    let last = site.prompt("s", &json!({ "rounds": [[big]] })).await;
    let history = site.history("s").await;
    let text = &history.last().unwrap()["content"][0]["text"];
    assert_eq!((last.status, &last.json["text"]), (200, text), "{last:?}");
}

/// A batch is bounded: the number of its prompts, those at once, and what it returns. One that fails is an item.
#[tokio::test]
async fn batches_are_bounded() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    let run = async |input: Value| {
        let url = format!("{}/AgentBatch/run", site.server.ingress_url());
        site.send("POST", &url, Some(input), None).await
    };
    let batch = |name: &str, prompts: Vec<String>| json!({ "name": name, "prompts": prompts });
    let many = run(batch("many", vec!["x".to_owned(); 10_001])).await;
    assert_eq!(many.status, 413, "{many:?}");
    assert_eq!(run(batch("none", Vec::new())).await.json, json!([]));

    // Some fail, and the order is that of the prompts.
    let say = |say: &str| json!({ "say": say }).to_string();
    let mut input =
        batch("mixed", vec![say("{\"n\": 1}"), say("no"), " ".to_owned(), say("{\"n\": 4}")]);
    let schema = json!({ "type": "object", "required": ["n"] });
    input["output"] = json!({ "name": "n", "schema": schema, "mode": "format", "tries": 1 });
    (input["at_once"], input["name"]) = (json!(0), json!("mixed"));
    let mixed = run(input).await.json;
    assert_eq!(mixed[0]["reply"]["value"], json!({ "n": 1 }), "{mixed}");
    assert!(mixed[1]["error"].as_str().unwrap().contains("no valid answer"), "{mixed}");
    assert!(mixed[2]["error"].as_str().is_some() && mixed[2]["reply"].is_null(), "{mixed}");
    assert_eq!(
        (&mixed[3]["reply"]["value"]["n"], &mixed[3]["session"]),
        (&json!(4), &json!("mixed/3"))
    );

    // More than the engine takes as one message.
    let long = json!({ "say": "x".repeat(3 << 20) }).to_string();
    let large = run(batch("large", vec![long; 9])).await;
    assert_eq!(large.status, 200);
    let items = large.json.as_array().unwrap();
    let texts: Vec<usize> =
        items.iter().map(|item| item["reply"]["text"].as_str().unwrap().len()).collect();
    assert_eq!(texts.iter().filter(|&&bytes| bytes == 3 << 20).count(), 5, "{texts:?}");
    for (item, text) in items.iter().zip(texts) {
        let session = item["session"].as_str().unwrap().replace('/', "%2F");
        assert_eq!(item["error"].is_null(), text > 0);
        let history = site.history(&session).await;
        assert_eq!(history[1]["content"][0]["text"].as_str().unwrap().len(), 3 << 20);
    }
}

#[tokio::test]
async fn max_run_time_ends_the_turn() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({ "max_run_ms": 500 })).await else { return };
    let answer = site.prompt("call", &json!({ "rounds": [[work(60_000)]] })).await;
    assert_eq!(answer.json["reason"], "max_run_time", "{answer:?}");
    site.end("call", 3).await;
    // The tool is told, and does not run for its minute.
    site.until_effect(|line| !line["cancelled"].is_null()).await;
    let answer = site.prompt("request", &json!({ "think_ms": 60_000 })).await;
    assert_eq!(answer.json["reason"], "max_run_time", "{answer:?}");
}

/// Prompts at once: those with one key are one turn, and those of one session are turns in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_prompts_run_in_order() {
    let _shared = MACHINE.read().await;
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
    let _alone = MACHINE.write().await;
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
