//! Turns without crashes.

use std::time::{Duration, Instant};

use oa_client::AgentOptions;
use oa_events::AgentEvent;
use oa_restate::{
    AgentWorker, Approve, Deny, EventReader, ExternalResult, Fork, SessionEvent, SessionPrompt,
    Sessions,
};
use oa_types::ContentBlock;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::support::{LONGEST, MACHINE, Site, check_history, results, work};

#[tokio::test]
async fn a_turn_is_durable() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    let answer = site.prompt("s", &json!({ "rounds": [[work(1), work(1)], [work(1)]] })).await;
    assert_eq!(answer.status, 200, "{answer:?}\n{}", site.server.log());
    assert_eq!(answer.json["text"], "Done.");
    assert_eq!(answer.json["turn"], 1);
    let history = site.history("s").await;
    check_history(&history);
    assert_eq!(history.len(), 7, "{history:?}");
    let status = site.call("s", "status", None).await.json;
    assert_eq!(status["messages"], 7, "{status}");
    assert!(status["turn"].is_null(), "{status}");
}

/// The requests of the manual's page, sent as `curl` sends them.
#[tokio::test]
async fn guide_requests_are_answered() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    let page = include_str!("../../../open-agent/src/guide/durable.md");
    let requests: Vec<(&str, Value)> = page
        .split("curl localhost:8080")
        .skip(1)
        .map(|rest| {
            let (path, rest) = rest.split_once(" --json '").expect("a body follows");
            let (body, _) = rest.split_once('\'').expect("the body ends");
            (path, serde_json::from_str(body).expect("the body is JSON"))
        })
        .collect();
    let [(path, plain), (typed_path, typed)] = &requests[..] else { panic!("two requests") };
    let send = async |path: &str, body: Value| {
        let url = format!("{}{path}", site.server.ingress_url());
        site.send("POST", &url, Some(body), None).await
    };

    let answer = send(path, plain.clone()).await;
    assert_eq!((answer.status, &answer.json["text"]), (200, &json!("Done.")), "{answer:?}");

    // The message tells the scripted model what to answer.
    let mut typed = typed.clone();
    let value = json!({ "name": "final_answer", "input": { "labels": 12 } });
    typed["message"] = json!({ "rounds": [[value]] }).to_string().into();
    let answer = send(typed_path, typed).await;
    assert_eq!((answer.status, &answer.json["value"]["labels"]), (200, &json!(12)), "{answer:?}");
}

/// A tool that breaks, and one that gets wrong arguments, end their calls alone.
#[tokio::test]
async fn failing_tools_end_only_their_calls() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    let panic = json!({ "name": "panic", "input": {} });
    let wrong = json!({ "name": "work", "input": { "ms": "soon" } });
    let answer = site.prompt("s", &json!({ "rounds": [[panic, work(1), wrong]] })).await;
    assert_eq!((answer.status, &answer.json["text"]), (200, &json!("Done.")), "{answer:?}");
    let results = results(&site.end("s", 6).await);
    assert!(results[0].contains("panicked"), "{results:?}");
    assert!(results[1].contains("run"), "{results:?}");
    assert!(results[2].contains("ms"), "{results:?}");
}

/// Registering again at the same address tells what was there before.
#[tokio::test]
async fn replaced_workers_are_reported() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(0, json!({})).await else { return };
    let listener = AgentWorker::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let plain = || {
        let builder = AgentOptions::builder().model("any").base_url("http://127.0.0.1:1/v1");
        builder.auto_execute_tools(true)
    };
    let old = AgentWorker::new(plain().build().unwrap());
    let serving = tokio::spawn(old.clone().serve_until(listener, std::future::pending()));
    let admin = site.server.admin_url();
    let first = old.register(&admin, &address).await.unwrap();
    assert!(first.deployment.starts_with("dp_"), "{first:?}");
    assert_eq!(first.replaced, None);
    assert_eq!(old.register(&admin, &address).await.unwrap().replaced, None);
    let new = AgentWorker::new(plain().max_tool_iterations(3).build().unwrap());
    let again = new.register(&admin, &address).await.unwrap();
    assert_eq!(again.replaced, Some(old.digest()));
    serving.abort();
    let nobody = old.register("http://127.0.0.1:1", &address).await.unwrap_err().to_string();
    assert!(nobody.starts_with("the engine did not register the worker: "), "{nobody}");
}

/// The client in Rust calls the same handlers.
#[tokio::test]
async fn sessions_call_all_handlers() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    let sessions = Sessions::new(&site.server.ingress_url());
    let key = "a session/with ?";
    let wish = |rounds: Value| SessionPrompt::text(json!({ "rounds": rounds }).to_string());
    let reply = sessions.prompt(key, &wish(json!([])), Some("m-1")).await.unwrap();
    assert_eq!(sessions.prompt(key, &wish(json!([])), Some("m-1")).await.unwrap(), reply);
    assert_eq!((reply.turn, &*reply.text), (1, "Done."));
    let waiting = json!([[
        { "name": "danger", "input": { "ms": 1 } },
        { "name": "danger", "input": { "ms": 2 } },
        { "name": "ask_user", "input": { "question": "Which?" } },
    ]]);
    let turn = tokio::spawn({
        let (sessions, prompt) = (sessions.clone(), wish(waiting));
        async move { sessions.prompt(key, &prompt, None).await }
    });
    let pending = |status: &Value| status["pending"].as_array().map_or(0, Vec::len);
    site.until_status("a%20session%2Fwith%20%3F", |status| pending(status) == 2).await;
    let status = sessions.status(key).await.unwrap();
    let id = |place: usize| status.pending[place].id.clone();
    sessions.approve(key, &Approve::new(id(0))).await.unwrap();
    sessions.deny(key, &Deny::new(id(1), "no")).await.unwrap();
    site.until_status("a%20session%2Fwith%20%3F", |status| {
        status["pending"][0]["waits_for"] == "result"
    })
    .await;
    let status = sessions.status(key).await.unwrap();
    let result = ExternalResult::new(status.pending[0].id.clone(), json!("blue"));
    sessions.answer(key, &result).await.unwrap();
    assert_eq!(turn.await.unwrap().unwrap().turn, 2);
    let history = sessions.history(key).await.unwrap();
    assert_eq!(history.len(), 8);
    sessions.steer(key, &SessionPrompt::text("Later.")).await.unwrap();
    assert!(!sessions.interrupt(key).await.unwrap());
    sessions.fork("copy", &Fork::new(key)).await.unwrap();
    assert_eq!(sessions.history("copy").await.unwrap(), history);
    sessions.clear(key).await.unwrap();
    assert_eq!(sessions.history(key).await.unwrap(), []);
    // The steered message went with the others.
    sessions.prompt(key, &wish(json!([])), None).await.unwrap();
    assert_eq!(sessions.history(key).await.unwrap().len(), 2);
    let refused = sessions.approve(key, &Approve::new("none")).await.unwrap_err();
    assert_eq!(refused.to_string(), "404: no call \"none\" waits for this");
    let mut unknown = SessionPrompt::text("Hi.");
    unknown.agent = Some("nobody".to_owned());
    let unknown = sessions.prompt("x", &unknown, None);
    assert_eq!(unknown.await.unwrap_err().status, Some(404));
}

/// A sub-agent is a turn of another session, whose text is the result of the call.
#[tokio::test]
async fn agents_call_agents() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(2, json!({})).await else { return };
    let inner = json!({ "rounds": [[work(200)]], "say": "From the helper." });
    let helper = json!({ "name": "helper", "input": { "prompt": inner.to_string() } });
    site.begin("s", &json!({ "rounds": [[helper.clone(), work(1), helper]] })).await;
    site.until_effect(|line| !line["start"].is_null()).await;
    site.kill_worker(0);
    site.add_worker();
    let history = site.end("s", 6).await;
    let results = results(&history);
    assert_eq!(results[0], "\"From the helper.\"");
    assert_eq!(results[2], "\"From the helper.\"");
    // Nothing of their sessions stays in the engine.
    let since = Instant::now();
    loop {
        let kept = site.query("SELECT key FROM state WHERE service_key LIKE 's~%'").await;
        let open = "SELECT id FROM sys_invocation WHERE status <> 'completed'";
        if kept.is_empty() && site.query(open).await.is_empty() {
            break;
        }
        assert!(since.elapsed() < LONGEST, "it stays: {kept:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// The result of a sub-agent says if its answer may be incomplete, and fails without one, as that of an agent that is a
/// tool.
#[tokio::test]
async fn incomplete_agents_say_so() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    let helper = |wish: Value| json!({ "name": "helper", "input": { "prompt": wish.to_string() } });
    let calls = json!([
        helper(json!({ "say": "Half a", "finish": "length" })),
        helper(json!({ "say": "", "rounds": [[work(1)]] })),
        helper(json!({ "say": "", "finish": "length" })),
    ]);
    assert_eq!(site.prompt("s", &json!({ "rounds": [calls] })).await.status, 200);
    let results = results(&site.end("s", 6).await);
    let half: Value = serde_json::from_str(&results[0]).unwrap();
    assert_eq!(half, json!({ "text": "Half a", "incomplete": "length" }));
    assert!(results[1].contains("no answer: the agent ended with stop"), "{}", results[1]);
    assert!(results[2].contains("no answer: the agent ended with length"), "{}", results[2]);
    // The same for whoever prompts it.
    let silent = site.prompt("own", &json!({ "say": "", "rounds": [[work(1)]] })).await;
    assert_eq!((silent.status, &silent.json["text"]), (200, &json!("")), "{silent:?}");
}

/// The tokens that sub-agents have spent count for those of the same round that start later, also if they have failed.
#[tokio::test]
async fn spent_by_failed_agents_counts() {
    let _shared = MACHINE.read().await;
    let config = json!({ "max_tokens": 100, "at_once": 1 });
    let Some(site) = Site::start(1, config).await else { return };
    let helper = |wish: Value| json!({ "name": "helper", "input": { "prompt": wish.to_string() } });
    let fails = helper(json!({ "rounds": [[work(1)]], "tokens": 60, "fails": true }));
    let spends = helper(json!({ "rounds": [[work(1)], [work(1)]], "tokens": 20 }));
    let answer = site.prompt("s", &json!({ "rounds": [[fails, spends]], "tokens": 10 })).await;
    assert_eq!((answer.status, &answer.json["reason"]), (200, &json!("max_run_tokens")));
    // 10 of its own, 60 of the one that failed, and two answers of the other.
    assert_eq!(answer.json["spent"]["tokens"], 110, "{answer:?}");
    let results = results(&site.history("s").await);
    assert!(results[0].contains("no such model"), "{}", results[0]);
    assert!(results[1].contains("max_run_tokens"), "{}", results[1]);
}

/// Front ends show what the last attempt of each step has told, and nothing twice.
#[tokio::test]
async fn events_show_the_last_attempt() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({ "events": true })).await else { return };
    let text = "One two three four five six seven.";
    site.begin("s", &json!({ "rounds": [[work(1)]], "think_ms": 150, "say": text })).await;
    let tells = |line: &Value, step: &str, kind: &str| {
        line["event"]["step"] == step && line["event"]["event"]["type"] == kind
    };
    // In the middle of the last answer.
    site.until_effect(|line| tells(line, "ask 2", "block")).await;
    site.kill_workers();
    site.add_worker();
    site.end("s", 4).await;
    site.until_effect(|line| tells(line, "show", "turn_end")).await;
    let mut reader = EventReader::new();
    let (mut shown, mut restarts) = (String::new(), 0);
    for line in site.effects().iter().filter(|line| !line["event"].is_null()) {
        let event: SessionEvent = serde_json::from_value(line["event"].clone()).unwrap();
        let Some(read) = reader.read(event) else { continue };
        if read.step != "ask 2" {
            continue;
        }
        if read.is_restart {
            shown.clear();
            restarts += 1;
        }
        if let AgentEvent::Block(ContentBlock::Text(block)) = read.event {
            shown.push_str(&block.text);
        }
    }
    assert_eq!((&*shown, restarts), (text, 1));
}
