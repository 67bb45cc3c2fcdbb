//! Workers of several versions.

use std::net::TcpListener;

use serde_json::json;

use crate::support::{MACHINE, Site, results, start_worker, work};

/// A turn stays with the version that began it, and the next turn is of the new one. Calls are invocations of their own:
/// they go to the new version at once.
#[tokio::test]
async fn a_new_address_takes_new_turns() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({ "version": 1 })).await else { return };
    let version = json!({ "name": "version", "input": {} });
    site.begin("s", &json!({ "rounds": [[work(1_500)], [version]] })).await;
    site.until_effect(|line| !line["start"].is_null()).await;
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut config = site.config.clone();
    (config["version"], config["port"]) = (json!(2), json!(port));
    let mut second = start_worker(&config);
    site.register(port).await;
    let history = site.end("s", 6).await;
    assert_eq!(results(&history)[1], "2", "{history:?}");
    assert_eq!(asked(&site), [1, 1, 1]);
    assert_eq!(site.prompt("s", &json!({})).await.status, 200);
    assert_eq!(asked(&site), [1, 1, 1, 2]);
    second.kill().unwrap();
    second.wait().unwrap();
}

/// Returns the version of the worker that sent each request.
fn asked(site: &Site) -> Vec<u64> {
    let effects = site.effects();
    let asked = effects.iter().filter(|line| !line["asked"].is_null());
    asked.filter_map(|line| line["version"].as_u64()).collect()
}

/// Changed code at the same address cannot replay a turn. The engine says so, and goes on when the old code is back.
#[tokio::test]
async fn changed_code_waits_for_the_old() {
    let _shared = MACHINE.read().await;
    let Some(mut site) = Site::start(1, json!({})).await else { return };
    site.begin("s", &json!({ "rounds": [[work(600)]] })).await;
    site.until_effect(|line| !line["start"].is_null()).await;
    site.kill_workers();
    let old = site.config.clone();
    site.config["hook"] = json!(true);
    site.add_worker();
    let sql = "SELECT last_failure FROM sys_invocation WHERE target_handler_name = 'prompt'";
    let failure = loop {
        let rows = site.query(sql).await;
        let failure = rows.iter().find_map(|row| row["last_failure"].as_str());
        if let Some(failure) = failure.filter(|failure| failure.contains("570")) {
            break failure.to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    assert!(failure.contains("RT0016") || failure.contains("mismatch"), "{failure}");
    assert_eq!(warnings(&site).len(), 1, "{:?}", warnings(&site));
    site.kill_workers();
    site.config = old;
    site.add_worker();
    let history = site.end("s", 4).await;
    assert_eq!(results(&history).len(), 1, "{history:?}");
}

/// A worker that continues the turn of another version says so by itself, once, also if the turn can go on.
#[tokio::test]
async fn other_version_warns_once() {
    let _shared = MACHINE.read().await;
    let Some(mut site) = Site::start(1, json!({})).await else { return };
    site.begin("s", &json!({ "rounds": [[work(400)], [work(400)]] })).await;
    site.until_effect(|line| !line["start"].is_null()).await;
    site.kill_workers();
    site.config["rounds"] = json!(49);
    site.add_worker();
    site.end("s", 6).await;
    let told = warnings(&site);
    assert_eq!(told.len(), 1, "{told:?}");
    let begin = "turn 1 of the session \"s\" was begun by a worker with the digest ";
    assert!(told[0].starts_with(begin), "{told:?}");
    // Its own turns are its own.
    assert_eq!(site.prompt("s", &json!({})).await.status, 200);
    assert_eq!(warnings(&site).len(), 1);
}

fn warnings(site: &Site) -> Vec<String> {
    let effects = site.effects();
    let warnings = effects.iter().filter_map(|line| line["warning"].as_str());
    warnings.map(str::to_owned).collect()
}
