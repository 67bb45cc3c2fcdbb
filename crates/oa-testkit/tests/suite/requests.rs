//! Recorded requests.

use bytes::Bytes;
use http_body_util::Full;
use oa_testkit::{MemoryServer, Reply, Script};
use serde_json::{Value, json};
use tower::Service;

use crate::client::{ask_memory, call, plain, streamed};

#[tokio::test]
async fn a_request_is_kept_as_it_came() {
    let server = MemoryServer::new(Reply::text("Hello"));
    let body = plain().to_string();
    let request = http::Request::post("/v1/chat/completions?api-version=1")
        .header("x-api-key", "secret")
        .header("x-a", "b")
        .body(Full::new(Bytes::from(body.clone())))
        .expect("a request");
    let _response = server.clone().call(request).await.expect("an answer");

    let requests = server.requests();
    let [request] = &*requests else { panic!("one request") };
    assert_eq!(request.number(), 1);
    assert_eq!(request.connection(), None);
    assert_eq!(request.method(), "POST");
    assert_eq!(request.path(), "/v1/chat/completions");
    assert_eq!(request.query(), Some("api-version=1"));
    assert_eq!(request.headers()["x-a"], "b");
    assert_eq!((request.header("X-A"), request.header("x-b")), (Some("b"), None));
    assert_eq!(request.body(), &body);
    assert_eq!(request.json(), &plain());
    assert_eq!(request.model(), Some("test"));
    assert_eq!(request.messages().len(), 1);
    assert!(!request.is_stream());
}

#[tokio::test]
async fn secrets_are_masked() {
    let server = MemoryServer::new(Reply::text("Hello"));
    call(&server, &streamed()).await.expect("an answer");
    let request = server.requests().remove(0);

    assert_eq!(request.headers()["authorization"], "Bearer secret-key");
    for shown in [
        format!("{request:?}"),
        format!("{:?}", request.headers()),
        format!("{server:?}"),
        server.story(),
    ] {
        assert!(!shown.contains("secret-key"), "{shown}");
    }
    assert!(format!("{request:?}").contains("Bearer ****"));
    assert!(server.story().contains("authorization: Bearer ****"));
}

#[tokio::test]
async fn a_body_that_is_no_object_gets_no_reply() {
    let server = MemoryServer::new(Script::new());
    for body in [json!([]), Value::Null] {
        assert_eq!(ask_memory(&server, &body).await.expect("an answer").0, 400);
    }
    assert_eq!(server.requests()[0].messages(), &[] as &[Value]);
    assert!(server.story().contains("request 2 is not a JSON object"));
    std::panic::catch_unwind(|| server.verify()).expect_err("a problem");
}
