//! Keys are never shown, and are sent only to their server.

use std::error::Error as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use oa_chat::{ChatRequest, Endpoint, EndpointBuilder, Error, ErrorKind, Target};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_transport::{RequestBody, Timeouts};
use oa_types::Message;
use serde_json::json;
use tower::{ServiceExt as _, service_fn};

const KEY: &str = "sk-0123456789abcdef";

/// A body that breaks at once.
#[derive(Clone)]
struct Broken;

impl Body for Broken {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(Some(Err(io::Error::other(format!("lost the header Bearer {KEY}")))))
    }
}

/// A transport that quotes the key of its request.
fn quoting(before_head: bool) -> EndpointBuilder {
    let transport = service_fn(move |_: Request<RequestBody>| async move {
        if before_head { Err(io::Error::other(KEY)) } else { Ok(Response::new(Broken)) }
    });
    Endpoint::builder().base_url("http://gpu/v1").api_key(KEY).transport(transport)
}

async fn failure(endpoint: Endpoint) -> Error {
    let request = ChatRequest::new("any", vec![Message::user("Go.")]);
    match endpoint.oneshot(request).await {
        Ok(answer) => answer.message().await.expect_err("it fails"),
        Err(error) => error,
    }
}

fn assert_masked(error: &Error) {
    let shown = format!("{error} {error:?} {error:#?} {:?} {:?}", error.source(), error.cause());
    assert!(!shown.contains("0123456789"), "{shown}");
    assert!(shown.contains("****"), "{shown}");
}

#[tokio::test]
async fn causes_that_quote_a_key_are_dropped() {
    for before_head in [true, false] {
        let endpoint = quoting(before_head).build().unwrap();
        assert_masked(&endpoint.fetch(Target::Models, Timeouts::default()).await.unwrap_err());
        assert_masked(&failure(endpoint).await);
    }
}

#[tokio::test]
async fn keys_in_base_urls_are_masked_in_errors() {
    let server = MemoryServer::new(Script::new().otherwise(Reply::error(404, "no")));
    let builder = Endpoint::builder().base_url(format!("http://host/{KEY}")).api_key(KEY);
    let shown = format!("{builder:?}");
    assert!(!shown.contains(KEY) && shown.contains("http://host/"), "{shown}");
    let error = failure(builder.transport(server).build().unwrap()).await;
    assert!(error.to_string().contains("most servers need /v1"), "{error}");
    assert_masked(&error);
    let builder = Endpoint::builder().base_url(format!("http://host/{KEY}")).api_key(KEY);
    assert_masked(&builder.header("host", "other").build().unwrap_err());
}

#[tokio::test]
async fn header_values_beyond_ascii_are_masked() {
    let value = "schl\u{fc}ssel-0123456789";
    let server = MemoryServer::new(Script::new().otherwise(Reply::error(401, value)));
    let endpoint = Endpoint::builder().base_url("http://host/v1").header("x-api-key", value);
    let endpoint = endpoint.transport(server).build().unwrap();
    assert_eq!(endpoint.header("x-api-key"), Some(value));
    assert_masked(&failure(endpoint).await);
}

#[test]
fn parts_of_a_key_are_not_joined() {
    let endpoint = Endpoint::builder().base_url("http://host/v1").api_key(KEY).build().unwrap();
    for place in 1..KEY.len() {
        let mut value = json!({ "header": format!("{}\r{}", &KEY[..place], &KEY[place..]) });
        endpoint.secrets().clean_json(&mut value);
        assert!(!value.to_string().contains(KEY), "{value}");
    }
}

#[tokio::test]
async fn pages_are_paths_of_the_same_host() {
    let server = MemoryServer::new(Script::new().otherwise(Reply::text("Hi.")));
    let endpoint = Endpoint::builder().base_url("http://host/v1").api_key(KEY);
    let endpoint = endpoint.transport(server.clone()).build().unwrap();
    for path in [".evil.test/x", "health", "@evil.test/", ":1/", ""] {
        let fetched = endpoint.fetch(Target::Page(path), Timeouts::default()).await;
        assert_eq!(fetched.unwrap_err().kind(), ErrorKind::Config, "{path}");
    }
    assert!(server.requests().is_empty());
}
