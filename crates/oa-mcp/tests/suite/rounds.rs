//! Requests in place of a result, from servers of version 2026-07-28.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oa_mcp::{Connected, ElicitationAnswer, Limits, McpServer, Sampled};
use oa_tools::{Cancel, Emission, Progress, ToolContext, ToolError};
use serde_json::{Value, json};
use tokio::sync::{Barrier, mpsc, oneshot};
use tokio::task::JoinSet;

use crate::http::{Answer, Asked, connect as connect_http, event, events, result, serve, status};
use crate::support::{call, call_with, connect, file_uri, listening, scripted, tool, with_limits};

/// The same text as that of the scripted server.
const STATE: &str = "{\"at\": 1}\u{0}\u{202e} é \\u0041 ";

/// The scripted server, with a person who always gives this answer, and the number of questions.
fn answered(answer: ElicitationAnswer) -> (McpServer, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let server = scripted("stateless").on_elicitation(move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        let answer = answer.clone();
        async move { answer }
    });
    (server, count)
}

fn ada() -> ElicitationAnswer {
    ElicitationAnswer::Accept(json!({ "name": "Ada" }))
}

fn said_by_ada() -> Value {
    json!({ "action": "accept", "content": { "name": "Ada" } })
}

async fn started(server: McpServer) -> Connected {
    connect(server).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Returns what the server heard with its last request, or the words of the call's error.
async fn heard(server: McpServer, what: &str) -> Result<Value, String> {
    let connected = started(server).await;
    let heard = call(&connected, what).await;
    connected.close().await;
    let heard = heard?;
    Ok(serde_json::from_str(heard.as_str().unwrap_or_default()).unwrap_or(heard))
}

#[tokio::test]
async fn call_repeats_with_answers_and_state() {
    let server = scripted("stateless").on_elicitation(|question, cx| async move {
        assert_eq!((&*question.name, &*question.server), ("s__elicitation", "s"));
        assert_eq!(question.message, "Who are you?");
        assert_eq!((cx.call_id(), cx.tool_name()), ("c", "s__do"));
        ada()
    });
    let expected = json!({ "responses": { "who": said_by_ada() }, "state": STATE });
    assert_eq!(heard(server, "round form").await, Ok(expected));

    let (server, count) = answered(ElicitationAnswer::Accept(json!({ "ignored": true })));
    let accepted = json!({ "responses": { "where": { "action": "accept" } }, "state": "s" });
    assert_eq!(heard(server, "round url").await, Ok(accepted));
    assert_eq!(count.load(Ordering::Relaxed), 1);
    for (answer, action) in
        [(ElicitationAnswer::Decline, "decline"), (ElicitationAnswer::Cancel, "cancel")]
    {
        let expected = json!({ "responses": { "who": { "action": action } }, "state": STATE });
        assert_eq!(heard(answered(answer).0, "round form").await, Ok(expected));
    }
}

#[tokio::test]
async fn answers_keep_the_names_of_questions() {
    let server = answered(ada()).0.root("/srv").on_sampling(|request, _| async move {
        assert_eq!(request.max_tokens, 4_096, "capped");
        Ok(Sampled::new("small", "An old pond."))
    });
    let content = json!({ "type": "text", "text": "An old pond." });
    let expected = json!({
        "a": said_by_ada(),
        "b": { "role": "assistant", "content": content, "model": "small", "stopReason": "endTurn" },
        "c": { "roots": [{ "uri": file_uri("/srv"), "name": "srv" }] },
    });
    let heard = heard(server, "round all").await.unwrap();
    assert_eq!(heard["responses"], expected);
}

#[tokio::test]
async fn request_has_only_the_last_rounds_answers() {
    let (server, count) = answered(ada());
    let expected = json!({ "responses": { "second": said_by_ada() }, "state": "3" });
    assert_eq!(heard(server, "round thrice").await, Ok(expected));
    assert_eq!(count.load(Ordering::Relaxed), 2);
    let expected = json!({ "responses": { "second": said_by_ada() }, "state": null });
    assert_eq!(heard(answered(ada()).0, "round stateless").await, Ok(expected));
}

/// An answer that does not match the form becomes a cancellation.
#[tokio::test]
async fn refused_question_is_declined() {
    for (answer, action, why) in [
        (ElicitationAnswer::Refuse("not now".to_owned()), "decline", "not now"),
        (
            ElicitationAnswer::Accept(json!({ "age": 20 })),
            "cancel",
            "the content does not match the form: `name`: required, but missing",
        ),
    ] {
        let connected = started(answered(answer).0).await;
        let heard = call(&connected, "round form").await.unwrap();
        let heard: Value = serde_json::from_str(heard.as_str().unwrap()).unwrap();
        assert_eq!(heard["responses"], json!({ "who": { "action": action } }));
        let warnings = connected.connection("s").unwrap().warnings();
        let expected = format!("a question from the server was not answered: {why}");
        assert!(warnings.iter().any(|warning| warning.starts_with(&expected)), "{warnings:?}");
        connected.close().await;
    }
}

#[tokio::test]
async fn refused_sampling_fails_only_its_call() {
    let server =
        scripted("stateless").on_sampling(|_, _| async { Err(ToolError::new("not today")) });
    let connected = started(server).await;
    assert_eq!(
        call(&connected, "round model").await,
        Err("s: the server's request to a model was refused: not today".to_owned())
    );
    assert_eq!(call(&connected, "string id").await, Ok(json!("accepted")));
    connected.close().await;
}

/// All questions are read before the first is asked, so that nobody answers in vain.
#[tokio::test]
async fn invalid_round_asks_no_question() {
    let (server, count) = answered(ada());
    let connected = started(server).await;
    for (what, why) in [
        (
            "round model",
            "the server's sampling/createMessage was refused: this client does not support it",
        ),
        (
            "round all",
            "the server's sampling/createMessage was refused: this client does not support it",
        ),
        ("round unknown", "the server asked for something that the protocol does not allow"),
        ("round shapeless", "the server's inputRequests is not an object"),
        ("round shapeless state", "the server's requestState is not a string"),
        (
            "round shapeless form",
            "the server's elicitation/create was refused: its form is not an object",
        ),
        ("round for nothing", "the server asked for input without saying which"),
        ("round many", "the server asked 5 questions at once, more than 4"),
    ] {
        assert_eq!(call(&connected, what).await, Err(format!("s: {why}")), "{what}");
    }
    assert_eq!(count.load(Ordering::Relaxed), 0);
    connected.close().await;
    let bare = heard(scripted("stateless"), "round form").await;
    let why = "s: the server's elicitation/create was refused: this client does not support it";
    assert_eq!(bare, Err(why.to_owned()));
}

#[tokio::test]
async fn each_request_states_the_capabilities() {
    let connected = started(scripted("stateless")).await;
    assert_eq!(call(&connected, "envelope").await, Ok(json!("2026-07-28 {}")));
    connected.close().await;
    let connected = started(answered(ada()).0.root("/srv")).await;
    let said = call(&connected, "envelope").await.unwrap();
    let offered = said.as_str().unwrap().strip_prefix("2026-07-28 ").unwrap();
    let offered: Value = serde_json::from_str(offered).unwrap();
    assert_eq!(offered, json!({ "elicitation": { "form": {}, "url": {} }, "roots": {} }));
    connected.close().await;
}

#[tokio::test]
async fn rounds_and_the_state_are_bounded() {
    let (server, count) = answered(ada());
    let connected = started(server).await;
    let endless = call(&connected, "round endless").await;
    assert_eq!(endless, Err("s: the server asked for input more than 10 times".to_owned()));
    assert_eq!(count.load(Ordering::Relaxed), 10);
    let huge = async |bytes: usize| {
        let input = json!({ "what": "round huge", "bytes": bytes });
        call_with(&connected, input, ToolContext::new("c", "s__do")).await
    };
    let most = Limits::default().state_bytes;
    assert_eq!(huge(most).await, Ok(json!(format!("{most} bytes"))));
    let why = format!("s: the server's state has {} bytes, more than {most}", most + 1);
    assert_eq!(huge(most + 1).await, Err(why));
    assert!(huge(17 * 1024 * 1024).await.unwrap_err().contains("longer than 16777216 bytes"));
    assert_eq!(call(&connected, "string id").await, Ok(json!("accepted")));
    connected.close().await;

    let server = scripted("stateless").limits(with_limits(|limits| limits.rounds = 3));
    let waits = heard(server, "round wait").await;
    assert_eq!(waits, Err("s: the server asked for input more than 3 times".to_owned()));
}

#[tokio::test]
async fn duplicate_result_asks_only_once() {
    let (server, count) = answered(ada());
    let connected = started(server).await;
    let heard = call(&connected, "round twice").await.unwrap();
    assert!(heard.as_str().unwrap().contains(r#""state":"s""#), "{heard}");
    assert_eq!(count.load(Ordering::Relaxed), 1);
    assert_eq!(connected.connection("s").unwrap().ignored().answers, 2);
    connected.close().await;
}

/// Each request is complete in itself, so a new process can take the answer to a question of the old one.
#[tokio::test]
async fn dead_server_is_restarted_for_the_answer() {
    let (told, heard) = oneshot::channel::<Arc<Connected>>();
    let (heard, count) = (Arc::new(Mutex::new(Some(heard))), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&count);
    let server = scripted("stateless").on_elicitation(move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        let heard = heard.lock().unwrap().take();
        async move {
            if let Some(connected) = heard.map(async |heard| heard.await.unwrap()) {
                let connected = connected.await;
                // Until another answers.
                let connection = connected.connection("s").unwrap();
                while connection.request("refuse", json!({})).await.unwrap_err().code().is_none() {}
            }
            ada()
        }
    });
    let connected = Arc::new(started(server).await);
    assert!(told.send(Arc::clone(&connected)).is_ok());
    let heard = call(&connected, "round and die").await.unwrap();
    let heard: Value = serde_json::from_str(heard.as_str().unwrap()).unwrap();
    assert_eq!(heard, json!({ "responses": { "who": said_by_ada() }, "state": "s" }));
    assert_eq!(count.load(Ordering::Relaxed), 1);
    // One that has taken the answer is not given it again.
    let died = call(&connected, "round and die later").await.unwrap_err();
    assert!(died.contains("status 3"), "{died}");
    assert_eq!(count.load(Ordering::Relaxed), 2);
    if let Ok(connected) = Arc::try_unwrap(connected) {
        connected.close().await;
    }
}

#[tokio::test]
async fn progress_of_all_rounds_belongs_to_the_call() {
    let connected = started(answered(ada()).0).await;
    let (cx, seen) = listening();
    let said = call_with(&connected, json!({ "what": "round progress" }), cx).await;
    assert_eq!(said, Ok(json!("done")));
    let step = |n| Emission::Progress(Progress::new(n, None));
    assert_eq!(*seen.lock().unwrap(), [step(1), step(2), step(3)]);
    assert_eq!(connected.connection("s").unwrap().ignored().progress, 1);
    connected.close().await;
}

#[tokio::test]
async fn canceled_call_drops_its_question() {
    let (asked, mut seen) = mpsc::unbounded_channel();
    let server = scripted("stateless").on_elicitation(move |_, _| {
        let asked = asked.clone();
        async move {
            let _ = asked.send(());
            std::future::pending().await
        }
    });
    let connected = started(server).await;
    let cancel = Cancel::new();
    let cx = ToolContext::new("c", "s__do").with_cancel(cancel.clone());
    let interrupt = async {
        seen.recv().await;
        cancel.cancel();
    };
    let asks = json!({ "what": "round form" });
    let (ended, ()) = tokio::join!(call_with(&connected, asks.clone(), cx), interrupt);
    assert_eq!(ended, Err("s: the call was interrupted".to_owned()));
    tokio::select! {
        said = call(&connected, "round form") => panic!("{said:?}"),
        _ = seen.recv() => {}
    }
    // No request was open, so there is nothing to take back.
    assert_eq!(call(&connected, "last cancel").await, Ok(json!("null")));
    connected.close().await;
    assert_eq!(seen.recv().await, None, "the callbacks' futures are dropped");
}

/// The total timeout covers all rounds of a call.
#[tokio::test]
async fn timeouts_pause_for_questions() {
    let server = scripted("stateless")
        .call_timeout(Duration::from_millis(1_500))
        .max_call_time(Duration::from_secs(2))
        .on_elicitation(|_, _| async {
            tokio::time::sleep(Duration::from_millis(2_500)).await;
            ada()
        });
    let connected = started(server).await;
    assert!(call(&connected, "round form").await.is_ok());
    let silent = call(&connected, "round and silence").await.unwrap_err();
    assert!(silent.contains("silent for 1.5s"), "{silent}");
    // The request that was sent last is taken back.
    let cancelled = call(&connected, "last cancel").await.unwrap();
    assert!(cancelled.as_str().unwrap().contains("timeout"), "{cancelled}");
    connected.close().await;

    let server = scripted("stateless")
        .max_call_time(Duration::from_millis(400))
        .limits(with_limits(|limits| limits.rounds = usize::MAX));
    let connected = started(server).await;
    let input = json!({ "what": "round wait", "millis": 100 });
    let late = call_with(&connected, input, ToolContext::new("c", "s__do")).await;
    assert_eq!(late, Err("s: the call took longer than 400ms".to_owned()));
    connected.close().await;
}

/// The number of questions that are open at once is that of the connection.
#[tokio::test]
async fn open_questions_are_bounded_across_calls() {
    let (most, now) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (highest, four) = (Arc::clone(&most), Arc::new(Barrier::new(4)));
    let server = scripted("stateless").on_elicitation(move |_, _| {
        let (now, highest, four) = (Arc::clone(&now), Arc::clone(&highest), Arc::clone(&four));
        async move {
            highest.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            four.wait().await;
            // A fifth has the time to come.
            tokio::time::sleep(Duration::from_millis(20)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            ada()
        }
    });
    let connected = started(server).await;
    let mut calls = JoinSet::new();
    for _ in 0..12 {
        let tool = tool(&connected, "s__do").unwrap();
        let cx = ToolContext::new("c", "s__do");
        calls.spawn(async move { tool.call(json!({ "what": "round form" }), cx).await.is_ok() });
    }
    assert_eq!(calls.join_all().await, [true; 12]);
    assert_eq!(most.load(Ordering::SeqCst), 4);
    connected.close().await;
}

/// A server over HTTP that asks before it answers anything that may be asked for.
fn asking(asked: &Asked) -> Option<Answer> {
    let offered = json!({ "elicitation": { "form": {}, "url": {} } });
    let params = &asked.body["params"];
    if asked.method == "POST" && asked.body["method"] != "initialize" {
        assert_eq!(params["_meta"]["io.modelcontextprotocol/clientCapabilities"], offered);
        assert_eq!(asked.header("mcp-method"), asked.body["method"].as_str());
    }
    let form = json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } } });
    let who = json!({ "who": { "method": "elicitation/create", "params": form } });
    let question = json!({ "resultType": "input_required", "inputRequests": who, "requestState": asked.body["id"].to_string() });
    let name = params["inputResponses"]["who"]["content"]["name"].as_str();
    if let Some(state) = params["requestState"].as_str() {
        assert_ne!(state, asked.body["id"].to_string(), "another request has another id");
    }
    Some(match (asked.body["method"].as_str().unwrap_or_default(), name) {
        ("initialize", _) => {
            let error = json!({ "code": -32601, "message": "what is that?" });
            let refusal = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error });
            status("400 Bad Request", "application/json", &refusal.to_string())
        }
        ("server/discover", _) => result(
            asked,
            &json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {}, "prompts": {}, "resources": {} },
            }),
        ),
        ("tools/list", _) if params["cursor"] == "ask" => result(asked, &question),
        ("tools/list", _) => result(
            asked,
            &json!({ "tools": [{ "name": "do", "inputSchema": { "type": "object" } }] }),
        ),
        ("prompts/get" | "resources/read" | "tools/call", None) if asked.what() != "stream" => {
            result(asked, &question)
        }
        ("tools/call", None) => {
            let message = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": question });
            Answer::Bytes(events(&event(&message)))
        }
        ("tools/call", Some(_)) if asked.what() == "break" => Answer::Bytes(String::new()),
        ("tools/call", Some(_)) if asked.what() == "again" => {
            let error = json!({ "code": -32602, "message": "the state is not mine" });
            let refusal = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error });
            status("400 Bad Request", "application/json", &refusal.to_string())
        }
        ("prompts/get", Some(name)) => {
            let content = json!({ "type": "text", "text": format!("Greet {name}.") });
            result(asked, &json!({ "messages": [{ "role": "user", "content": content }] }))
        }
        ("resources/read", Some(name)) => {
            result(asked, &json!({ "contents": [{ "uri": params["uri"], "text": name }] }))
        }
        (_, name) => {
            let content = json!({ "type": "text", "text": name });
            result(asked, &json!({ "content": [content] }))
        }
    })
}

#[tokio::test]
async fn prompts_and_resources_may_also_ask() {
    let (server, seen) = serve(asking).await;
    let contexts = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&contexts);
    let server = server.resource_tools().on_elicitation(move |_, cx| {
        noted.lock().unwrap().push(cx.call_id().to_owned());
        async { ada() }
    });
    let connected = connect_http(server).await.unwrap();
    assert_eq!(call(&connected, "").await, Ok(json!("Ada")));
    assert_eq!(call(&connected, "stream").await, Ok(json!("Ada")));
    let connection = connected.connection("s").unwrap();
    let none: [(String, String); 0] = [];
    let prompt = connection.get_prompt("greet", none).await.unwrap();
    assert_eq!(prompt.messages[0].text(), "Greet Ada.");
    let contents = connection.read_resource("a://b").await.unwrap();
    assert_eq!(format!("{:?}", contents[0].data), r#"Text("Ada")"#);
    // The model's own reading is a call of a tool, which has a turn.
    let read = tool(&connected, "s__read_resource").unwrap();
    let said =
        read.call(json!({ "uri": "a://b" }), ToolContext::new("m", "s__read_resource")).await;
    assert!(said.unwrap().to_string().contains("Ada"));
    assert_eq!(*contexts.lock().unwrap(), ["c", "c", "prompts/get", "resources/read", "m"]);

    let list = connection.request("tools/list", json!({ "cursor": "ask" })).await.unwrap_err();
    assert_eq!(list.to_string(), "s: the server asked for input, which tools/list does not allow");
    let refused = call(&connected, "again").await;
    assert_eq!(refused, Err("wrong arguments: the state is not mine".to_owned()));
    // Whether it was taken is not known, so it is not sent a third time.
    let broken = call(&connected, "break").await.unwrap_err();
    assert!(broken.starts_with("s: the server cannot be reached: "), "{broken}");
    let count = |what: &str| seen.lock().unwrap().iter().filter(|line| *line == what).count();
    assert_eq!(count("POST tools/callbreak"), 2);
    assert_eq!(count("POST tools/callagain"), 2);
    connected.close().await;
}
