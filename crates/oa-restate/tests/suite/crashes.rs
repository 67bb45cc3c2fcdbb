//! Workers and servers that crash.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::support::{MACHINE, Site, check_history, count, figure, results, work};

/// Kills random workers under load. Each prompt is answered, each history is valid and has the prompts that were answered.
/// What is in history is the result of the last run of its call: no call runs again once its result is recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_are_killed() {
    let _alone = MACHINE.write().await;
    let kills = count("OPEN_AGENT_RESTATE_KILLS", 10);
    let (workers, sessions) = if kills > 10 { (8, 12) } else { (4, 6) };
    let Some(site) = Site::start(workers, json!({})).await else { return };
    let (site, is_over) = (Arc::new(site), Arc::new(AtomicBool::new(false)));
    let since = Instant::now();
    let talks: Vec<_> = (0..sessions)
        .map(|number| {
            let (site, is_over) = (Arc::clone(&site), Arc::clone(&is_over));
            tokio::spawn(async move {
                let mut times = Vec::new();
                // At least one turn after the last kill.
                let mut is_last = false;
                while !is_last {
                    is_last = is_over.load(Ordering::Relaxed);
                    let wish =
                        json!({ "rounds": [[work(40), work(60), work(80)]], "think_ms": 10 });
                    let since = Instant::now();
                    let answer = site.prompt(&format!("s{number}"), &wish).await;
                    assert_eq!(answer.status, 200, "{answer:?}\n{}", site.server.log());
                    times.push(since.elapsed());
                }
                times
            })
        })
        .collect();
    for number in 0..kills {
        sleep(Duration::from_millis(400)).await;
        site.kill_worker(number * 7 + 3);
        site.add_worker();
    }
    is_over.store(true, Ordering::Relaxed);
    let mut times = Vec::new();
    let mut recorded = Vec::new();
    for (number, talk) in talks.into_iter().enumerate() {
        let answered = talk.await.expect("it ends");
        let history = site.history(&format!("s{number}")).await;
        check_history(&history);
        let prompts = history.iter().filter(|message| message["role"] == "user").count();
        assert_eq!(prompts, answered.len());
        recorded.extend(results(&history));
        times.extend(answered);
    }
    let took = since.elapsed();
    let (twice, starts, asked) = check_effects(&site.effects(), &recorded);
    assert!(twice <= kills, "{twice} calls ended twice with {kills} kills");
    times.sort_unstable();
    let (p50, max) = (times[times.len() / 2], times[times.len() - 1]);
    figure(&format!(
        "{kills} kills of one of {workers} workers: {} turns and {} calls in {took:.1?}, p50 {p50:.2?}, max {max:.2?}; \
         {twice} calls ended twice, at most {starts} starts of one, {} requests too many",
        times.len(),
        recorded.len(),
        asked.saturating_sub(times.len() * 2),
    ));
}

/// Checks that each recorded result is of the last run of its call. Returns the calls that ended twice, the most starts of
/// one call, and the requests.
fn check_effects(effects: &[Value], recorded: &[String]) -> (usize, usize, usize) {
    let mut starts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
    for effect in effects {
        let run = effect["run"].as_str().unwrap_or_default();
        if let Some(key) = effect["start"].as_str() {
            starts.entry(key).or_default().push(run);
        }
        if let Some(key) = effect["end"].as_str() {
            *ends.entry(key).or_default() += 1;
        }
    }
    let mut keys = BTreeSet::new();
    for result in recorded {
        let result: Value = serde_json::from_str(result).expect("it is JSON");
        let (key, run) = (&result["key"], &result["run"]);
        let key = key.as_str().unwrap_or_else(|| panic!("{result}"));
        assert!(keys.insert(key.to_owned()), "{key} is the key of two calls");
        assert_eq!(
            starts[key].last().copied(),
            run.as_str(),
            "it ran after it was recorded: {key}"
        );
    }
    let asked = effects.iter().filter(|effect| !effect["asked"].is_null()).count();
    let twice = ends.values().filter(|&&ends| ends > 1).count();
    (twice, starts.values().map(Vec::len).max().unwrap_or_default(), asked)
}

/// The server dies in the middle of a call, and starts on the same data: the turn ends, and what was recorded before does
/// not run again.
#[tokio::test]
async fn the_server_is_killed() {
    let _alone = MACHINE.write().await;
    let Some(mut site) = Site::start(1, json!({})).await else { return };
    site.begin("s", &json!({ "rounds": [[work(1)], [work(1_500)]] })).await;
    let starts = |effects: &[Value]| effects.iter().filter(|line| !line["start"].is_null()).count();
    while starts(&site.effects()) < 2 {
        sleep(Duration::from_millis(10)).await;
    }
    site.server.kill().unwrap();
    let since = Instant::now();
    site.server.start_again().unwrap();
    let history = site.end("s", 6).await;
    figure(&format!(
        "the server was killed in a call: the turn ended after {:.1?}",
        since.elapsed()
    ));
    let (twice, _, _) = check_effects(&site.effects(), &results(&history));
    assert!(twice <= 1);
    let effects = site.effects();
    let first = effects.iter().find_map(|line| line["start"].as_str()).unwrap();
    let again = effects.iter().filter(|line| line["start"] == first).count();
    assert_eq!(again, 1, "the first call was recorded");
}

/// An approval outlives all workers.
#[tokio::test]
async fn approvals_outlive_workers() {
    let _alone = MACHINE.write().await;
    let Some(site) = Site::start(3, json!({})).await else { return };
    let danger = json!({ "name": "danger", "input": { "ms": 1 } });
    site.begin("s", &json!({ "rounds": [[danger]] })).await;
    let is_pending = |status: &Value| status["pending"][0]["tool"] == "danger";
    let status = site.until_status("s", is_pending).await;
    let id = status["pending"][0]["id"].clone();
    site.kill_workers();
    site.add_worker();
    assert_eq!(site.until_status("s", is_pending).await["pending"][0]["id"], id);
    let approve = json!({ "id": id });
    assert_eq!(site.call("s", "approve", Some(approve.clone())).await.status, 200);
    let history = site.end("s", 4).await;
    assert!(results(&history)[0].contains("run"), "{history:?}");
    assert_eq!(site.call("s", "approve", Some(approve)).await.status, 404);
}

/// An approval outlives all workers and the server at once, and so does what was recorded before it.
#[tokio::test]
async fn approvals_outlive_workers_and_server() {
    let _alone = MACHINE.write().await;
    let Some(mut site) = Site::start(2, json!({})).await else { return };
    let danger = json!({ "name": "danger", "input": { "ms": 1 } });
    site.begin("s", &json!({ "rounds": [[work(1)], [danger, work(2)]] })).await;
    let is_pending = |status: &Value| status["pending"][0]["tool"] == "danger";
    let status = site.until_status("s", is_pending).await;
    let id = status["pending"][0]["id"].clone();
    site.kill_workers();
    site.server.kill().unwrap();
    site.server.start_again().unwrap();
    site.add_worker();
    assert_eq!(site.until_status("s", is_pending).await["pending"][0]["id"], id);
    let approve = json!({ "id": id });
    assert_eq!(site.call("s", "approve", Some(approve.clone())).await.status, 200);
    let history = site.end("s", 7).await;
    check_effects(&site.effects(), &results(&history));
    assert_eq!(site.call("s", "approve", Some(approve)).await.status, 404);
    let effects = site.effects();
    let asked = effects.iter().filter(|line| !line["asked"].is_null()).count();
    assert_eq!(asked, 3, "no answer that was recorded is asked for again: {effects:?}");
}

/// A worker that is asked to end does so in good order, and the turn goes on with another one.
#[tokio::test]
async fn worker_shuts_down_gracefully() {
    let _alone = MACHINE.write().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    site.begin("s", &json!({ "rounds": [[work(300)], [work(300)], [work(300)]] })).await;
    site.until_effect(|line| !line["start"].is_null()).await;
    let pid = site.pids()[0];
    site.add_worker();
    let sent = std::process::Command::new("kill").args(["-TERM", &pid.to_string()]).status();
    assert!(sent.unwrap().success());
    assert!(site.wait_for_worker(0));
    site.end("s", 8).await;
}

/// Many conversations over several workers, one of which is killed every few seconds: all end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batch_survives_killed_workers() {
    let _alone = MACHINE.write().await;
    let conversations = count("OPEN_AGENT_RESTATE_CONVERSATIONS", 60);
    let workers = 4;
    let Some(site) = Site::start(workers, json!({})).await else { return };
    let site = Arc::new(site);
    let wish = json!({ "rounds": [[work(30), work(50)], [work(30)]], "think_ms": 10 });
    let prompts = vec![wish.to_string(); conversations];
    let since = Instant::now();
    let batch = tokio::spawn({
        let site = Arc::clone(&site);
        async move {
            let url = format!("{}/AgentBatch/run/send", site.server.ingress_url());
            let input = json!({ "name": "many", "prompts": prompts, "at_once": 32 });
            site.send("POST", &url, Some(input), Some("many")).await
        }
    });
    let sent = batch.await.unwrap();
    let id = sent.json["invocationId"].as_str().unwrap().to_owned();
    let url = format!("{}/restate/invocation/{id}/attach", site.server.ingress_url());
    let attached = tokio::spawn({
        let site = Arc::clone(&site);
        async move { site.send_for(Duration::from_secs(1_200), "GET", &url).await }
    });
    let mut kills = 0;
    while !attached.is_finished() {
        sleep(Duration::from_millis(1_500)).await;
        site.kill_worker(kills * 5 + 1);
        site.add_worker();
        kills += 1;
    }
    let answer = attached.await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    let items = answer.json.as_array().unwrap();
    assert_eq!(items.len(), conversations);
    let took = since.elapsed();
    let mut recorded = Vec::new();
    for item in items {
        assert_eq!(item["reply"]["text"], "Done.", "{item}");
        let session = item["session"].as_str().unwrap().replace('/', "%2F");
        let history = site.history(&session).await;
        check_history(&history);
        assert_eq!(history.len(), 7);
        recorded.extend(results(&history));
    }
    let (twice, starts, _) = check_effects(&site.effects(), &recorded);
    figure(&format!(
        "{conversations} conversations over {workers} workers, {kills} kills: all ended after {took:.1?}; {twice} calls \
         ended twice, at most {starts} starts of one"
    ));
}
