//! Sub-agents are turns of other objects, and stay within the permissions of the agents that run them.

use serde_json::{Value, json};

use crate::support::{MACHINE, Site, results, work};

fn call(name: &str, input: Value) -> Value {
    json!({ "name": name, "input": input })
}

fn helper(wish: &Value) -> Value {
    call("helper", json!({ "prompt": wish.to_string() }))
}

/// Returns the tools of each request.
fn offered(site: &Site) -> Vec<Vec<String>> {
    let effects = site.effects();
    let asked = effects.iter().filter(|line| !line["asked"].is_null());
    asked.map(|line| serde_json::from_value(line["tools"].clone()).expect("names")).collect()
}

/// A rule that denies a tool to an agent denies it to its sub-agent and to the sub-agent of that, which would be asked about
/// it otherwise; also if the workers die in between. A tool that the outer agent may not have is not offered.
#[tokio::test]
async fn sub_agents_need_outer_permission() {
    let _shared = MACHINE.read().await;
    let config = json!({ "deny": ["danger"], "disallow": ["big"] });
    let Some(site) = Site::start(1, config).await else { return };
    let danger = || call("danger", json!({ "ms": 1 }));
    let inmost = json!({ "rounds": [[work(400)], [danger()]], "say": "inmost" });
    let inner = json!({ "rounds": [[helper(&inmost), danger()], [danger()]], "say": "inner" });
    site.begin("s", &json!({ "rounds": [[helper(&inner)]] })).await;
    site.until_effect(|line| !line["start"].is_null()).await;
    site.kill_workers();
    site.add_worker();
    let history = site.end("s", 4).await;
    assert_eq!(results(&history), ["\"inner\""]);
    assert!(offered(&site).iter().all(|tools| !tools.contains(&"big".to_owned())));
    let runs = site.effects().iter().filter(|line| !line["end"].is_null()).count();
    assert_eq!(runs, 1, "only `work` has run");

    // On its own, the helper may have the one tool, and is asked about the other.
    let mut prompt = json!({ "message": json!({ "rounds": [[danger()]] }).to_string() });
    prompt["agent"] = json!("helper");
    let sent = site.call("own", "prompt/send", Some(prompt)).await;
    assert!(sent.status < 300, "{sent:?}");
    let is_asked = |status: &Value| status["pending"][0]["tool"] == "danger";
    let id = site.until_status("own", is_asked).await["pending"][0]["id"].clone();
    assert!(offered(&site).last().unwrap().contains(&"big".to_owned()));
    let approve = json!({ "id": id, "input": { "ms": 2 } });
    assert_eq!(site.call("own", "approve", Some(approve)).await.status, 200);
    assert!(results(&site.end("own", 4).await)[0].contains("run"));
}

/// The call of a sub-agent waits in the session that its events name.
#[tokio::test]
async fn events_name_sessions_of_sub_agents() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({ "events": true })).await else { return };
    let inner = json!({ "rounds": [[call("danger", json!({ "ms": 1 }))]], "say": "inner" });
    site.begin("s", &json!({ "rounds": [[helper(&inner)]] })).await;
    let is_inner = |line: &Value| {
        line["event"]["session"].as_str().is_some_and(|session| session.starts_with("s~"))
    };
    site.until_effect(is_inner).await;
    let event = site.effects().into_iter().find(is_inner).unwrap();
    let session = event["event"]["session"].as_str().unwrap().replace('/', "%2F");
    let is_asked = |status: &Value| status["pending"][0]["tool"] == "danger";
    let id = site.until_status(&session, is_asked).await["pending"][0]["id"].clone();
    assert!(site.call("s", "status", None).await.json["pending"].is_null());
    assert_eq!(site.call(&session, "approve", Some(json!({ "id": id }))).await.status, 200);
    assert_eq!(results(&site.end("s", 4).await), ["\"inner\""]);
}

/// A person cannot give a call an input that a rule denies, nor approve it for an agent within another that may not.
#[tokio::test]
async fn approved_inputs_need_permission() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    let danger = call("danger", json!({ "ms": 1 }));
    let mut prompt = json!({ "message": json!({ "rounds": [[danger]] }).to_string() });
    prompt["agent"] = json!("helper");
    prompt["within"] = json!(["", "nobody"]);
    assert_eq!(site.call("s", "prompt", Some(prompt.clone())).await.status, 404);
    prompt["within"] = json!(vec![""; 9]);
    assert_eq!(site.call("s", "prompt", Some(prompt.clone())).await.status, 400);
    prompt["within"] = json!([""]);
    let sent = site.call("s", "prompt/send", Some(prompt)).await;
    assert!(sent.status < 300, "{sent:?}");
    let is_asked = |status: &Value| status["pending"][0]["tool"] == "danger";
    let id = site.until_status("s", is_asked).await["pending"][0]["id"].clone();
    // A new version of the main agent denies it.
    site.kill_workers();
    let mut site = site;
    site.config["deny"] = json!(["danger"]);
    site.add_worker();
    let changed = json!({ "id": id, "input": { "ms": 2 } });
    let refused = site.call("s", "approve", Some(changed)).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    // As it is, it runs through the last gate, which denies it as well.
    assert_eq!(site.call("s", "approve", Some(json!({ "id": id }))).await.status, 200);
    let results = results(&site.end("s", 4).await);
    assert!(results[0].contains("permission denied"), "{results:?}");
}

/// The call of a sub-agent passes the last gate, too: with invalid arguments it has an error as its result, and what a rule
/// denies by now does not start, although it was approved.
#[tokio::test]
async fn sub_agents_pass_the_last_gate() {
    let _shared = MACHINE.read().await;
    let Some(mut site) = Site::start(1, json!({})).await else { return };
    let inner = json!({ "rounds": [[work(1)]] }).to_string();
    let deep = |depth: &str| call("helper", json!({ "prompt": inner, "depth": depth }));
    site.begin("invalid", &json!({ "rounds": [[deep("max")]] })).await;
    let texts = results(&site.end("invalid", 4).await);
    assert!(texts[0].contains("depth"), "{texts:?}");

    site.begin("s", &json!({ "rounds": [[deep("high")]] })).await;
    let is_asked = |status: &Value| status["pending"][0]["tool"] == "helper";
    let id = site.until_status("s", is_asked).await["pending"][0]["id"].clone();
    site.kill_workers();
    site.config["deny"] = json!(["helper"]);
    site.add_worker();
    assert_eq!(site.call("s", "approve", Some(json!({ "id": id }))).await.status, 200);
    let texts = results(&site.end("s", 4).await);
    assert!(texts[0].contains("permission denied"), "{texts:?}");
    assert!(site.effects().iter().all(|line| line["start"].is_null()), "no tool has run");
}
