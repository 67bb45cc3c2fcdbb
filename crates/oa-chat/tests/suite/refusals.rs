//! Requests that a server rejects inside an answer with status 200.

use oa_chat::{ChatRequest, Endpoint, Error, Result};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_types::Message;
use serde_json::json;
use tower::ServiceExt as _;

const WORDS: &str = "unknown field: stream_options";

fn sse(payload: impl ToString) -> Reply {
    Reply::sse(format!("data: {}\n\n", payload.to_string()))
}

/// The same rejection in the forms that servers have for it.
fn rejections() -> [Reply; 7] {
    let error = json!({ "error": { "message": WORDS } });
    let role = r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
    [
        sse(&error),
        sse(json!({ "error": { "message": WORDS, "type": "BadRequestError", "code": 400 } })),
        sse(json!({ "object": "error", "message": WORDS, "code": 422 })),
        // Of a server behind OpenRouter (QUIRKS row 151).
        sse(json!({ "error": {
            "message": "Provider returned error", "code": 400, "metadata": { "raw": error.to_string() },
        } })),
        Reply::sse(format!("event: error\ndata: {error}\n\n")),
        Reply::sse(format!("{role}\n\ndata: {error}\n\ndata: [DONE]\n\n")),
        Reply::json(200, error),
    ]
}

fn endpoint(replies: impl Into<Vec<Reply>>) -> (Endpoint, MemoryServer) {
    let server = MemoryServer::new(Script::from(replies.into()));
    let endpoint = Endpoint::builder().base_url("http://gpu/v1").transport(server.clone());
    (endpoint.build().expect("it is valid"), server)
}

async fn ask(endpoint: &Endpoint) -> Result<String> {
    let request = ChatRequest::new("any", vec![Message::user("Go.")]);
    Ok(endpoint.clone().oneshot(request).await?.message().await?.text())
}

/// Returns for each request whether it asked for usage.
fn usage_requested(server: &MemoryServer) -> Vec<bool> {
    let requests = server.requests();
    requests.iter().map(|request| request.json().get("stream_options").is_some()).collect()
}

#[tokio::test(start_paused = true)]
async fn answers_can_reject_the_request() {
    for rejection in rejections() {
        let (endpoint, server) = endpoint([rejection, Reply::text("Hi."), Reply::text("Ho.")]);
        assert_eq!(ask(&endpoint).await.unwrap(), "Hi.");
        assert_eq!(ask(&endpoint).await.unwrap(), "Ho.");
        assert_eq!(usage_requested(&server), [true, false, false]);
    }
}

#[tokio::test(start_paused = true)]
async fn answers_that_fail_prove_nothing() {
    for rejection in rejections().into_iter().chain([Reply::error(400, WORDS)]) {
        let failure = sse(json!({ "error": "out of memory" }));
        let (endpoint, server) = endpoint([rejection, failure, Reply::text("Hi.")]);
        let error = ask(&endpoint).await.unwrap_err().to_string();
        assert!(error.contains("out of memory"), "{error}");
        assert_eq!(ask(&endpoint).await.unwrap(), "Hi.");
        assert_eq!(usage_requested(&server), [true, false, true]);
    }
}

#[tokio::test(start_paused = true)]
async fn answers_that_began_are_not_replaced() {
    let failure = json!({ "error": { "message": WORDS, "code": 400 } });
    let (endpoint, server) = endpoint([Reply::text("Hi.").event(failure)]);
    let error = ask(&endpoint).await.unwrap_err().to_string();
    assert!(error.contains(WORDS), "{error}");
    assert_eq!(server.requests().len(), 1);
}

/// Codes of another kind: the server failed, whatever its message quotes.
#[tokio::test(start_paused = true)]
async fn other_failures_inside_answers_are_errors() {
    for failure in [
        json!({ "error": { "message": WORDS, "code": 503 } }),
        json!({ "error": { "message": WORDS, "code": 429 } }),
        json!({ "error": { "message": "busy", "code": 400 } }),
    ] {
        let (endpoint, server) = endpoint([sse(failure)]);
        let error = ask(&endpoint).await.unwrap_err();
        assert_eq!(server.requests().len(), 1);
        let replayed = Error::from(error.to_record());
        assert_eq!(replayed.refuses("stream_options"), error.refuses("stream_options"), "{error}");
    }
}
