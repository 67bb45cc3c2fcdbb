//! Requests from a server: elicitation, sampling and roots.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oa_mcp::{ElicitationAnswer, ElicitationMode, McpServer, Sampled};
use oa_tools::{Cancel, ToolContext, ToolError};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::{call, call_with, connect, eventually, file_uri, scripted, tool, with_limits};

/// The scripted server, with a person who always gives this answer.
fn answered(answer: ElicitationAnswer) -> McpServer {
    scripted("plain").on_elicitation(move |_, _| {
        let answer = answer.clone();
        async move { answer }
    })
}

async fn heard(server: McpServer, what: &str) -> Value {
    let connected = connect(server).await.unwrap_or_else(|error| panic!("{error}"));
    let heard = call(&connected, what).await;
    connected.close().await;
    let heard = heard.unwrap_or_else(|error| panic!("{error}"));
    serde_json::from_str(heard.as_str().unwrap_or_default()).unwrap_or(heard)
}

#[tokio::test]
async fn form_answers_reach_the_server() {
    let server = scripted("plain").on_elicitation(|question, cx| async move {
        assert_eq!((&*question.name, &*question.server), ("s__elicitation", "s"));
        assert_eq!(question.message, "Who are you?");
        assert!(matches!(question.mode, ElicitationMode::Form { .. }));
        assert_eq!((cx.call_id(), cx.tool_name()), ("c", "s__do"));
        assert!(question.check(json!({ "name": "Ada", "age": 3 })).is_err());
        ElicitationAnswer::Accept(json!({ "name": "Ada" }))
    });
    let expected = json!({ "action": "accept", "content": { "name": "Ada" } });
    assert_eq!(heard(server, "ask form").await, expected);
    let declined = heard(answered(ElicitationAnswer::Decline), "ask form").await;
    assert_eq!(declined, json!({ "action": "decline" }));
    let cancelled = heard(answered(ElicitationAnswer::Cancel), "ask form").await;
    assert_eq!(cancelled, json!({ "action": "cancel" }));
}

/// The server gets an error instead of the answer, and the call continues.
#[tokio::test]
async fn mismatched_or_refused_answers_fail() {
    let wrong = heard(answered(ElicitationAnswer::Accept(json!({ "age": 20 }))), "ask form").await;
    assert_eq!(wrong["code"], -1);
    let told = wrong["message"].as_str().unwrap();
    assert!(
        told.starts_with("the content does not match the form: `name`: required, but missing"),
        "{told}"
    );
    let refused = heard(answered(ElicitationAnswer::Refuse("not now".into())), "ask form").await;
    assert_eq!(refused, json!({ "code": -1, "message": "not now" }));
}

#[tokio::test]
async fn url_question_goes_to_the_callback() {
    let server = scripted("plain").on_elicitation(|question, _| async move {
        let ElicitationMode::Url { url } = question.mode else { return ElicitationAnswer::Cancel };
        assert_eq!(url, "https://example.org/sign-in");
        ElicitationAnswer::Accept(json!({ "ignored": true }))
    });
    assert_eq!(heard(server, "ask url").await, json!({ "action": "accept" }));
}

#[tokio::test]
async fn sampling_tokens_are_capped() {
    let server = scripted("plain")
        .limits(with_limits(|limits| limits.sampling_tokens = 50))
        .on_sampling(|request, _| async move {
            assert_eq!((&*request.name, request.max_tokens), ("s__sampling", 50));
            assert_eq!(request.system_prompt.as_deref(), Some("You are a poet."));
            assert_eq!(request.temperature, Some(0.25));
            Ok(Sampled::new("small", format!("{} An old pond.", request.messages[0].text())))
        });
    let content = json!({ "type": "text", "text": "A haiku, please. An old pond." });
    let expected = json!({ "role": "assistant", "content": content, "model": "small", "stopReason": "endTurn" });
    assert_eq!(heard(server, "ask model").await, expected);
    let refusing =
        || scripted("plain").on_sampling(|_, _| async { Err(ToolError::new("not today")) });
    assert_eq!(heard(refusing(), "ask model").await, json!({ "code": -1, "message": "not today" }));
    let wrong = heard(refusing(), "ask model wrongly").await;
    assert_eq!(wrong, json!({ "code": -32602, "message": "it has no messages" }));
}

#[tokio::test]
async fn only_configured_capabilities_are_offered() {
    assert_eq!(heard(scripted("plain"), "capabilities").await, json!({}));
    for what in ["ask form", "ask url", "ask model", "ask roots"] {
        assert_eq!(heard(scripted("plain"), what).await["code"], -32601, "{what}");
    }
    let roots = heard(scripted("plain").root("/srv/a b"), "ask roots").await;
    assert_eq!(roots, json!({ "roots": [{ "uri": file_uri("/srv/a%20b"), "name": "a b" }] }));
    let server = answered(ElicitationAnswer::Cancel)
        .on_sampling(|_, _| async { Err(ToolError::new("no")) })
        .root("/srv");
    let connected = connect(server).await.unwrap();
    let offered = call(&connected, "capabilities").await.unwrap();
    let offered: Value = serde_json::from_str(offered.as_str().unwrap()).unwrap();
    let expected = json!({ "roots": {}, "elicitation": { "form": {}, "url": {} }, "sampling": {} });
    assert_eq!(offered, expected);
    assert!(tool(&connected, "s__do").unwrap().is_agent(), "its calls get budgets and permissions");
    connected.close().await;
}

#[tokio::test]
async fn question_without_a_call_is_refused() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let server = scripted("forward").on_elicitation(move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { ElicitationAnswer::Cancel }
    });
    let refused = heard(server, "last cancel").await;
    assert_eq!(
        refused,
        json!({ "code": -32600, "message": "questions are allowed only while a tool is running" })
    );
    assert_eq!(count.load(Ordering::Relaxed), 0);
}

/// A person who never answers, and a receiver that ends when nobody waits for the answer any more.
fn hesitant(mode: &str) -> (McpServer, mpsc::UnboundedReceiver<()>) {
    let (asked, seen) = mpsc::unbounded_channel();
    let server = scripted(mode).on_elicitation(move |_, _| {
        let asked = asked.clone();
        async move {
            let _ = asked.send(());
            std::future::pending().await
        }
    });
    (server, seen)
}

#[tokio::test]
async fn canceled_question_gets_no_answer() {
    let (server, mut seen) = hesitant("plain");
    assert_eq!(heard(server, "ask in vain").await, json!({}));
    assert_eq!(seen.recv().await, Some(()));
    assert_eq!(seen.recv().await, None, "the callback's future is dropped");
}

/// An interrupt, the result of the call and the death of the server each end it.
#[tokio::test]
async fn question_ends_with_its_call() {
    let (server, mut seen) = hesitant("plain");
    let connected = connect(server).await.unwrap();
    let cancel = Cancel::new();
    let cx = ToolContext::new("c", "s__do").with_cancel(cancel.clone());
    let interrupt = async {
        seen.recv().await;
        cancel.cancel();
    };
    let (result, ()) =
        tokio::join!(call_with(&connected, json!({ "what": "ask form" }), cx), interrupt);
    assert_eq!(result, Err("s: the call was interrupted".to_owned()));
    // The server has an answer to its question, and goes on.
    assert_eq!(call(&connected, "string id").await, Ok(json!("accepted")));
    assert_eq!(call(&connected, "ask and go").await, Ok(json!("gone")));
    assert!(call(&connected, "ask and die").await.unwrap_err().contains("status 3"));
    assert_eq!(call(&connected, "string id").await, Ok(json!("accepted")));
    connected.close().await;
    let mut count = 0;
    while seen.recv().await.is_some() {
        count += 1;
    }
    assert_eq!(count, 2);
}

#[tokio::test]
async fn open_question_pauses_the_timeouts() {
    let server = scripted("plain")
        .call_timeout(Duration::from_millis(600))
        .max_call_time(Duration::from_millis(1_200))
        .on_elicitation(|_, _| async {
            tokio::time::sleep(Duration::from_millis(800)).await;
            ElicitationAnswer::Decline
        });
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "ask slowly").await, Ok(json!("patient")));
    // The clock goes on after it.
    assert!(call(&connected, "nothing").await.unwrap_err().contains("silent"));
    connected.close().await;
}

#[tokio::test]
async fn questions_of_one_call_are_bounded() {
    let (server, mut seen) = hesitant("plain");
    let connected = connect(server).await.unwrap();
    let refused = call(&connected, "ask often").await.unwrap();
    assert!(refused.as_str().unwrap().contains("too many questions"), "{refused}");
    seen.recv().await;
    assert!(eventually(|| seen.is_empty()).await);
    connected.close().await;
}

/// The server is told nothing, and the call is sent again.
#[tokio::test]
async fn visited_page_lets_the_call_repeat() {
    let server = scripted("plain").on_elicitation(|question, cx| async move {
        assert_eq!((&*question.name, &*question.message), ("s__elicitation", "Sign in"));
        assert_eq!(question.mode, ElicitationMode::Url { url: "https://example.org/0".to_owned() });
        assert_eq!(cx.call_id(), "c");
        ElicitationAnswer::Accept(Value::Null)
    });
    // Long before the timeout.
    let reported = heard(server.clone(), "ask for a page and tell");
    let reported = tokio::time::timeout(Duration::from_secs(30), reported).await;
    assert_eq!(reported, Ok(json!("call 2")));
    let server = server.call_timeout(Duration::from_millis(400));
    assert_eq!(heard(server, "ask for a page").await, "call 2", "not every server reports a visit");
}

#[tokio::test]
async fn pages_are_required_only_once() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let server =
        scripted("plain").call_timeout(Duration::from_millis(400)).on_elicitation(move |_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
            async { ElicitationAnswer::Accept(Value::Null) }
        });
    let connected = connect(server).await.unwrap();
    let told = "call 2 needs you; the user has to visit first: https://example.org/0 (code -32042)";
    assert_eq!(call(&connected, "ask for a page each time").await, Err(told.to_owned()));
    assert_eq!(count.load(Ordering::Relaxed), 1);
    // A program's own request asks nobody.
    let params = json!({ "name": "do", "arguments": { "what": "ask for a page each time" } });
    let error = connected.connection("s").unwrap().request("tools/call", params).await.unwrap_err();
    assert!(error.to_string().starts_with("s: call 3 needs you"), "{error}");
    assert_eq!((error.code(), count.load(Ordering::Relaxed)), (Some(-32042), 1));
    connected.close().await;
}

/// The first page that is not accepted ends it, and the call is not repeated.
#[tokio::test]
async fn declined_page_fails_the_call() {
    let pages = "https://example.org/0, https://example.org/1";
    for answer in [
        ElicitationAnswer::Decline,
        ElicitationAnswer::Cancel,
        ElicitationAnswer::Refuse("not now".to_owned()),
    ] {
        let count = Arc::new(AtomicUsize::new(0));
        let (counted, given) = (Arc::clone(&count), answer.clone());
        let server = scripted("plain").on_elicitation(move |_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
            let given = given.clone();
            async move { given }
        });
        let connected = connect(server).await.unwrap();
        let told = format!(
            "call 1 needs you; the user has to visit first: {pages}; this was not accepted (code -32042)"
        );
        assert_eq!(call(&connected, "ask for two pages").await, Err(told));
        assert_eq!(count.load(Ordering::Relaxed), 1);
        assert_eq!(call(&connected, "ask for two pages").await, Ok(json!("call 2")));
        let warnings = connected.connection("s").unwrap().warnings();
        let is_refused = matches!(answer, ElicitationAnswer::Refuse(_));
        assert_eq!(warnings.len(), usize::from(is_refused), "{warnings:?}");
        connected.close().await;
    }
}

#[tokio::test]
async fn pages_without_a_callback_fail_the_call() {
    let connected = connect(scripted("plain")).await.unwrap();
    let told = "call 1 needs you; the user has to visit first: https://example.org/0 (code -32042)";
    assert_eq!(call(&connected, "ask for a page").await, Err(told.to_owned()));
    assert_eq!(connected.connection("s").unwrap().warnings(), [""; 0]);
    connected.close().await;
    // More pages than questions that may be open.
    let connected = connect(answered(ElicitationAnswer::Accept(Value::Null))).await.unwrap();
    let told = call(&connected, "ask for many pages").await.unwrap_err();
    assert!(told.starts_with("call 1 needs you") && !told.contains("accepted"), "{told}");
    let why = "pages that a call requires were not shown: the server asked 9 questions at once, more than 4";
    assert_eq!(connected.connection("s").unwrap().warnings(), [why]);
    connected.close().await;
}

/// While the user is asked, and while the visit is awaited.
#[tokio::test]
async fn interrupt_ends_the_visit_of_a_page() {
    let (server, mut seen) = hesitant("plain");
    let (asked, mut accepted) = mpsc::unbounded_channel();
    let agrees = scripted("plain").on_elicitation(move |_, _| {
        let _ = asked.send(());
        async { ElicitationAnswer::Accept(Value::Null) }
    });
    for (server, seen) in [(server, &mut seen), (agrees, &mut accepted)] {
        let connected = connect(server).await.unwrap();
        let cancel = Cancel::new();
        let cx = ToolContext::new("c", "s__do").with_cancel(cancel.clone());
        let calling = call_with(&connected, json!({ "what": "ask for a page" }), cx);
        let interrupt = async {
            seen.recv().await;
            cancel.cancel();
        };
        let both = async { tokio::join!(calling, interrupt).0 };
        let result = tokio::time::timeout(Duration::from_secs(30), both).await;
        assert_eq!(result, Ok(Err("s: the call was interrupted".to_owned())));
        // Its repetition would have been the second.
        assert_eq!(call(&connected, "ask for a page").await, Ok(json!("call 2")));
        connected.close().await;
    }
}

/// The answers wait in memory until the server reads them, so it must not choose their size.
#[tokio::test]
async fn long_ids_are_not_echoed() {
    let connected = connect(scripted("plain")).await.unwrap();
    let said = call(&connected, "ask with a long id").await.unwrap();
    let answer: Value = serde_json::from_str(said.as_str().unwrap()).unwrap();
    let error = json!({ "code": -32600, "message": "the id is too long" });
    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": null, "error": error }));
    connected.close().await;
}
