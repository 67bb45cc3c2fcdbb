//! Retries, as a layer around a service.

use std::time::Duration;

use oa_chat::{AnyChat, ChatRequest, Endpoint, Result, Retry, RetryConfig};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_types::Message;

/// A server that fails before each of its answers.
fn flaky(failure: &Reply, answers: usize) -> AnyChat {
    let replies: Vec<_> =
        (0..answers).flat_map(|_| [failure.clone(), Reply::text("Yes.")]).collect();
    let server = MemoryServer::new(Script::from(replies));
    let endpoint = Endpoint::builder().base_url("http://gpu/v1").transport(server);
    endpoint.build().expect("it can be").into()
}

async fn ask(retry: &Retry) -> Result<String> {
    let request = ChatRequest::new("any", vec![Message::user("Go.")]);
    Ok(retry.ask(request).await?.message().await?.text())
}

/// Each answer that begins returns its retry to the budget of every layer, not only of the outermost.
#[tokio::test(start_paused = true)]
async fn nested_retries_refill_their_budgets() {
    for failure in [Reply::error(503, "busy"), Reply::text("Lost.").close_after(0)] {
        let once = RetryConfig::new(1).budget(1).initial_delay(Duration::from_millis(1));
        let inner = Retry::new(flaky(&failure, 4), once.clone());
        for outer in [once, RetryConfig::none()] {
            let outer = Retry::new(AnyChat::new(inner.clone()), outer);
            for _ in 0..2 {
                assert_eq!(ask(&outer).await.unwrap(), "Yes.");
            }
        }
    }
}

#[tokio::test]
async fn full_budgets_of_any_size_stay_full() {
    for most in [1, u32::MAX] {
        let server = MemoryServer::new([Reply::text("Yes.")]);
        let endpoint = Endpoint::builder().base_url("http://gpu/v1").transport(server);
        let config = RetryConfig::new(1).budget(most);
        assert_eq!(
            ask(&Retry::new(endpoint.build().unwrap().into(), config)).await.unwrap(),
            "Yes."
        );
    }
}

/// Not even the longest total timeout is as long as the longest `Retry-After`.
#[tokio::test(start_paused = true)]
async fn endless_retry_after_exceeds_the_deadline() {
    let endless = Reply::error(429, "slow").header("retry-after", "99999999999999999999999");
    let server = MemoryServer::new([endless]);
    let endpoint = Endpoint::builder().base_url("http://gpu/v1").transport(server);
    let config = RetryConfig::new(1).max_retry_after(Duration::MAX);
    let retry = Retry::new(endpoint.build().unwrap().into(), config);
    let request = ChatRequest::new("any", vec![Message::user("Go.")]);
    let week = Some(Duration::from_secs(7 * 24 * 60 * 60));
    let request = request.with_options(|options| options.timeouts.total = week);
    let error = retry.ask(request).await.expect_err("it is not sent again");
    assert_eq!((error.status(), error.retry_after()), (Some(429), Some(Duration::MAX)));
}

/// A proxy's notice is no beginning, so what fails behind it counts like any failure before the answer.
#[tokio::test(start_paused = true)]
async fn failures_behind_a_loading_notice_are_retried() {
    const NOTICE: &str =
        include_str!("../../../../tests/fixtures/own/llama-swap-notice-then-error.sse");
    let (notice, _) = NOTICE.rsplit_once("{\"error\"").unwrap();
    let event = |body: &str| Reply::body(200, "text/event-stream", body.to_owned());
    let loading = r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#;
    let busy = event(&format!("{notice}{loading}"));
    assert_eq!(ask(&Retry::new(flaky(&busy, 1), RetryConfig::new(1))).await.unwrap(), "Yes.");
    let refused = event(&format!("{notice}{{\"error\":\"unknown field: stream_options\"}}\n"));
    assert_eq!(ask(&Retry::new(flaky(&refused, 1), RetryConfig::none())).await.unwrap(), "Yes.");
}

/// Go's servers write errors as plain text, also into a stream that has begun.
#[tokio::test]
async fn plain_text_behind_chunks_is_shown() {
    let role = r#"data: {"choices":[{"delta":{"role":"assistant"}}]}"#;
    for text in ["unable to start process: out of memory", "Bad Gateway"] {
        let body = format!("{role}\n\n{text}\n");
        let server = MemoryServer::new([Reply::body(200, "text/event-stream", body)]);
        let endpoint = Endpoint::builder().base_url("http://gpu/v1").transport(server);
        let retry = Retry::new(endpoint.build().unwrap().into(), RetryConfig::none());
        let error = ask(&retry).await.unwrap_err();
        assert!(error.to_string().ends_with(&format!("bytes: {text}")), "{error}");
    }
}
