//! The errors when no server answers.

use std::time::Duration;

use oa_chat::RetryConfig;
use oa_client::{Client, Error, ErrorKind};
use oa_router::{BreakerConfig, Router, Server};
use oa_testkit::{MemoryServer, Reply};

use crate::{ask, ask_meanwhile, down, endpoint, over, saying, settle, slow};

/// All on one line; the kind and status are those of the most relevant failure.
#[tokio::test(start_paused = true)]
async fn message_lists_every_failure() {
    let unreachable = down(Reply::reset());
    let wrong_model = down(Reply::error(404, "model 'any' not found"));
    let busy = down(Reply::error(503, "Loading\nmodel").header("x-request-id", "r1"));
    let router = over([&unreachable, &busy, &wrong_model]).build().unwrap();
    let error: Error = ask(&router).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no server answered (3 of 3 tried): \
         a failed: no answer: connection reset before the response; \
         b failed: the server answered 503 Service Unavailable: Loading model; \
         c failed: the server answered 404 Not Found: model 'any' not found"
    );
    assert_eq!((error.kind(), error.status()), (ErrorKind::Api, Some(503)));
    assert_eq!(error.request_id(), Some("r1"));
    assert!(error.is_retryable());
}

#[tokio::test(start_paused = true)]
async fn retryable_if_any_failure_is() {
    let (a, b) = (down(Reply::error(404, "no")), down(Reply::error(403, "no")));
    let lasting = over([&a, &b]).build().unwrap();
    assert!(!ask(&lasting).await.unwrap_err().is_retryable());
    let passing = over([&a, &down(Reply::hang_up())]).build().unwrap();
    let error = ask(&passing).await.unwrap_err();
    assert_eq!((error.status(), error.is_retryable()), (Some(404), true));
}

#[tokio::test(start_paused = true)]
async fn open_circuits_and_busy_servers_are_named() {
    let (a, b) = (down(Reply::hang_up()), slow(60_000, "B"));
    let config = BreakerConfig::new(1).open_for(Duration::from_secs(9));
    let router = over([&a, &b]).cap(1).queue(0).breaker(config).build().unwrap();
    let task = ask_meanwhile(&router);
    settle().await;
    let error = ask(&router).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(
        error.to_string(),
        "no server answered (0 of 2 tried): \
         a has an open circuit for another 9s after: no answer: connection closed before the response; b is busy; \
         queueing is disabled"
    );
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn messages_are_bounded() {
    let servers: Vec<MemoryServer> =
        (0..64).map(|_| down(Reply::error(503, "words ".repeat(10_000)))).collect();
    let router = Router::builder();
    let router = router.endpoints(servers.iter().map(endpoint)).build().unwrap();
    let error = ask(&router).await.unwrap_err().to_string();
    assert!(error.len() < 2_000 && error.ends_with("; and 56 more"), "{error}");
    assert!(servers.iter().all(|server| server.requests().len() == 1));
    let last = router.status()[63].last_failure.clone().unwrap();
    assert_eq!(last.chars().count(), 121);
}

#[tokio::test(start_paused = true)]
async fn single_server_error_is_unchanged() {
    let a = down(Reply::error(503, "loading").header("retry-after", "7"));
    let router = over([&a]).build().unwrap();
    let error = ask(&router).await.unwrap_err();
    assert_eq!(error.to_string(), "the server answered 503 Service Unavailable: loading");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
}

#[tokio::test(start_paused = true)]
async fn early_breaks_are_listed() {
    let (a, b) = (down(Reply::text("Lost.").close_after(0)), down(Reply::error(503, "no")));
    let router = over([&a, &b]).build().unwrap();
    let options = oa_client::AgentOptions::builder().model("any").retry(RetryConfig::none());
    let mut client = Client::new(options.chat_service(router).build().unwrap()).unwrap();
    client.send("Go.").await.unwrap();
    let error = client.receive().await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Api, Some(503)));
    let words = error.to_string();
    assert!(words.contains("a failed: ") && words.contains("b failed: "), "{words}");

    let reported = Reply::sse("data: {\"error\": {\"message\": \"out of memory\"}}\n\n");
    let router = over([&down(reported), &b]).build().unwrap();
    let words = ask(&router).await.unwrap_err().to_string();
    assert!(words.contains("a failed: ") && words.contains("out of memory"), "{words}");
}

#[tokio::test]
async fn debug_output_hides_keys_and_headers() {
    let server = saying("A");
    let secret = oa_chat::Endpoint::builder().base_url("http://gpu/v1").transport(server);
    let secret = secret.api_key("sk-secret").header("x-key", "hidden").build().unwrap();
    let builder = Router::builder().endpoint(secret.clone());
    let router = builder.clone().build().unwrap();
    let shown = format!("{:?} {builder:?} {router:?} {:?}", Server::new(secret), router.status());
    assert!(!shown.contains("sk-secret") && !shown.contains("hidden"), "{shown}");
    assert!(shown.contains("http://gpu/v1"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn keys_in_addresses_are_masked() {
    let keyed = |server: MemoryServer| {
        let endpoint = oa_chat::Endpoint::builder().base_url("http://gpu/sk-a-secret-key/v1");
        endpoint.api_key("sk-a-secret-key").transport(server).build().unwrap()
    };
    let servers = [down(Reply::error(503, "no")), down(Reply::hang_up())].map(keyed);
    let router = Router::builder().endpoints(servers.clone()).build().unwrap();
    let error = ask(&router).await.unwrap_err();
    let [server, _] = servers.map(Server::new);
    let shown = format!("{error} {error:?} {router:?} {:?} {server:?}", router.status());
    assert!(!shown.contains("secret"), "{shown}");
    assert!(shown.contains("http://gpu/****/v1 #2 failed: "), "{shown}");
}
