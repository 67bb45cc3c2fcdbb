//! Structured output of durable turns.

use std::sync::Arc;

use oa_client::{AgentOptions, Client, ResponseFormat};
use oa_restate::{SessionPrompt, Sessions};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_tools::tool;
use serde_json::{Value, json};

use crate::support::{Answer, MACHINE, Site, check_history, work};
use crate::worker::reply;

fn schema() -> Value {
    json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] })
}

fn prompt(wish: &Value, output: Value) -> Value {
    let mut prompt = json!({ "message": wish.to_string(), "output": { "name": "count" } });
    prompt["output"]["schema"] = schema();
    if let (Some(all), Some(more)) = (prompt["output"].as_object_mut(), output.as_object()) {
        all.extend(more.clone());
    }
    prompt
}

fn answer(n: Value) -> Value {
    json!({ "name": "final_answer", "input": { "n": n } })
}

/// Returns a conversation without the ids of calls and without what runs wrote into results.
fn outline(history: &[Value]) -> Vec<Value> {
    let block = |block: &Value| match block["type"].as_str() {
        Some("text") => json!([block["text"]]),
        Some("tool_use") => json!([block["name"], block["input"]]),
        _ => json!(["result", block["is_error"]]),
    };
    let blocks = |message: &Value| -> Vec<Value> {
        message["content"].as_array().into_iter().flatten().map(block).collect()
    };
    history.iter().map(|message| json!([message["role"], blocks(message)])).collect()
}

/// Value, attempts and history are those of a client with the same model, whether a worker dies in between or not.
#[tokio::test]
async fn output_matches_a_client() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    let calls = json!([[work(300)], [answer(json!("three"))], [answer(json!(3))]]);
    let wishes = [
        // By the output tool, with a tool before and a correction between.
        (json!({ "rounds": calls, "think_ms": 100 }), json!({}), json!(3)),
        // As text, with two corrections.
        (
            json!({ "says": ["I cannot.", "{\"n\": \"4\"} or so", "So: {\"n\": 5}"], "think_ms": 100 }),
            json!({ "mode": "format" }),
            json!(5),
        ),
    ];
    for (number, (wish, output, n)) in wishes.into_iter().enumerate() {
        let (value, tries, history) = by_client(&wish, &output).await;
        assert_eq!(value["n"], n);
        for kills in [0, 3] {
            let session = format!("s{number}-{kills}");
            let asked = asked(&site);
            let input = prompt(&wish, output.clone());
            let url = format!("{}/Agent/{session}/prompt", site.server.ingress_url());
            let replied = site.send("POST", &url, Some(input), Some(&session));
            let killing = async {
                for kill in 1..=kills {
                    // In the middle of each request.
                    site.until(|| self::asked(&site) >= asked + kill * 2 - 1).await;
                    site.kill_workers();
                    site.add_worker();
                }
            };
            let (answer, ()) = tokio::join!(replied, killing);
            assert_eq!(answer.status, 200, "{answer:?}");
            assert_eq!((&answer.json["value"], &answer.json["tries"]), (&value, &json!(tries)));
            let durable = site.history(&session).await;
            check_history(&durable);
            assert_eq!(outline(&durable), outline(&history), "{kills} kills");
        }
    }
}

fn asked(site: &Site) -> usize {
    site.effects().iter().filter(|line| !line["asked"].is_null()).count()
}

async fn by_client(wish: &Value, output: &Value) -> (Value, u32, Vec<Value>) {
    let work = tool("work", "Takes a time").param("ms", "integer");
    let options = AgentOptions::builder()
        .model("any")
        .transport(MemoryServer::new(Script::new().otherwise(Reply::by(reply))))
        .tool(work.build(|_| async { Ok(json!({})) }))
        .auto_execute_tools(true);
    let mut client = Client::new(options.build().expect("valid")).expect("valid");
    let text = wish.to_string();
    let mut sending = client.send_for_format(&text, ResponseFormat::new("count", schema()));
    if let Some(mode) = output.get("mode") {
        sending = sending.mode(serde_json::from_value(mode.clone()).expect("a mode"));
    }
    let structured = sending.await.expect("it is valid in the end");
    let history = client.history().iter().map(|message| json!(message)).collect();
    (structured.value, structured.tries, history)
}

#[tokio::test]
async fn failed_output_is_an_error() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    let ask = async |wish: Value, output: Value| -> Answer {
        site.call("s", "prompt", Some(prompt(&wish, output))).await
    };
    let wrong = ask(json!({ "say": "Never." }), json!({ "mode": "format", "tries": 2 })).await;
    assert_eq!(wrong.status, 422, "{wrong:?}");
    assert!(wrong.json["message"].as_str().unwrap().contains("after 2 attempts"), "{wrong:?}");
    // The last answer stays, and what was said about the one before it has left.
    let history = site.end("s", 2).await;
    assert_eq!(history[1]["content"][0]["text"], "Never.");
    let list = ask(json!({}), json!({ "schema": { "type": "array" } })).await;
    assert_eq!(list.status, 400, "{list:?}");
    let taken = ask(json!({}), json!({ "mode": "tool", "tool": "work" })).await;
    assert_eq!(taken.status, 400, "{taken:?}");
    let none = ask(json!({}), json!({ "tries": 0 })).await;
    assert_eq!(none.status, 400, "{none:?}");
    site.end("s", 2).await;
    // The next prompt is an ordinary one.
    assert_eq!(site.prompt("s", &json!({})).await.json["text"], "Done.");
    let site = Arc::new(site);
    let slow = tokio::spawn({
        let (site, input) = (Arc::clone(&site), prompt(&json!({ "think_ms": 60_000 }), json!({})));
        async move { site.call("s", "prompt", Some(input)).await }
    });
    site.until(|| asked(&site) >= 4).await;
    site.until_status("s", |status| !status["turn"].is_null()).await;
    assert_eq!(site.call("s", "interrupt", None).await.json, true);
    let interrupted = slow.await.unwrap();
    assert_eq!((interrupted.status, &interrupted.json["reason"]), (200, &json!("interrupted")));
    assert!(interrupted.json["value"].is_null(), "{interrupted:?}");
}

/// Calls of other tools may wait in between: for approval, and for results from outside.
#[tokio::test]
async fn output_waits_for_answers() {
    let _shared = MACHINE.read().await;
    let Some(site) = Site::start(1, json!({})).await else { return };
    let wish = json!({ "rounds": [
        [answer(json!("soon"))],
        [json!({ "name": "danger", "input": { "ms": 1 } })],
        [json!({ "name": "ask_user", "input": { "question": "How many?" } })],
        [answer(json!(7))],
    ] });
    let sessions = Sessions::new(&site.server.ingress_url());
    let format = ResponseFormat::new("count", schema());
    let prompt = SessionPrompt::text(wish.to_string()).with_output(format);
    let turn = tokio::spawn({
        let sessions = sessions.clone();
        async move { sessions.prompt("s", &prompt, None).await }
    });
    let waits = |tool: &str| {
        let tool = tool.to_owned();
        move |status: &Value| status["pending"][0]["tool"] == *tool
    };
    let id = site.until_status("s", waits("danger")).await["pending"][0]["id"].clone();
    site.kill_workers();
    site.add_worker();
    let approve = json!({ "id": id });
    assert_eq!(site.call("s", "approve", Some(approve)).await.status, 200);
    let id = site.until_status("s", waits("ask_user")).await["pending"][0]["id"].clone();
    let answer = json!({ "id": id, "content": 7 });
    assert_eq!(site.call("s", "answer", Some(answer)).await.status, 200);
    let reply = turn.await.unwrap().unwrap();
    assert_eq!((reply.value, reply.tries, &*reply.text), (Some(json!({ "n": 7 })), 2, "{\"n\":7}"));
    site.end("s", 6).await;
}
