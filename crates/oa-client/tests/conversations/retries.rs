//! Retries: when, after what delay, how often, and never after any output was delivered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oa_chat::{RetryConfig, ToolMode, retry_with_backoff};
use oa_client::{AgentOptions, AgentOptionsBuilder, Client, Error, ErrorKind, Result, query};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_transport::TimeoutKind;
use oa_types::{Backoff, FinishReason, Message};
use serde_json::{Value, json};
use tokio::time::Instant;

use suite::talk::interrupt_after;

fn options(server: &MemoryServer) -> AgentOptionsBuilder {
    AgentOptions::builder().model("any").transport(server.clone())
}

/// Asks once. Returns the outcome, the number of requests that the server got, and the time taken.
async fn ask(script: impl Into<Script>) -> (Result<String>, usize, Duration) {
    let server = MemoryServer::new(script);
    let began = Instant::now();
    let answer = async {
        let mut answer = query("Go.", &options(&server).build()?).await?;
        answer.text().await
    };
    (answer.await, server.requests().len(), began.elapsed())
}

fn failing_then(reply: Reply) -> Script {
    Script::from(reply).otherwise(Reply::text("Done."))
}

#[tokio::test(start_paused = true)]
async fn transient_errors_are_retried() {
    for status in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
        let (text, requests, time) = ask(failing_then(Reply::error(status, "busy"))).await;
        assert_eq!((text.unwrap().as_str(), requests), ("Done.", 2), "{status}");
        assert!(time <= Duration::from_millis(501), "{status}: {time:?}");
    }
    for message in [
        "Failed to parse input at pos 17: <tool_call>\n<function=save_template>\n</tool_call>",
        "error parsing tool call: raw='{\"name\":\"lane.jinja\",}', err=invalid character '}'",
        "failed to parse JSON: unexpected end of JSON input",
    ] {
        let (text, requests, _) = ask(failing_then(Reply::error(500, message))).await;
        assert_eq!((text.unwrap().as_str(), requests), ("Done.", 2), "{message}");
    }
    for code in ["tool_use_failed", "output_parse_failed", "json_validate_failed"] {
        // The words of the model look like a rejection of the request.
        let message = "the call has an unsupported member 'name', and tools are not supported";
        let error = json!({"message": message, "code": code, "failed_generation": "{"});
        let (text, requests, _) = ask(failing_then(Reply::error(400, error))).await;
        assert_eq!((text.unwrap().as_str(), requests), ("Done.", 2), "{code}");
    }
    for broken in [Reply::hang_up(), Reply::text("Lost.").close_after(0)] {
        let (text, requests, _) = ask(failing_then(broken)).await;
        assert_eq!((text.unwrap().as_str(), requests), ("Done.", 2));
    }
    let (error, requests, _) = ask(Script::new().otherwise(Reply::error(503, "down"))).await;
    assert_eq!((error.unwrap_err().status(), requests), (Some(503), 3), "twice, and no more");
}

#[tokio::test(start_paused = true)]
async fn retries_end_at_the_first_delta() {
    let head = Reply::text("Hello.").header("x-first", "1");
    let role_only = br#"data: {"choices":[{"delta":{"role":"assistant"}}]}"#;
    for reply in [head.clone().close_after(0), head.close_after(role_only.len() + 40)] {
        let (text, requests, _) = ask(failing_then(reply)).await;
        assert_eq!((text.unwrap().as_str(), requests), ("Done.", 2));
    }
    // One complete event, and part of the next.
    let delta =
        |text: &str| format!("data: {}\n\n", json!({"choices": [{"delta": {"content": text}}]}));
    let body = delta("Hel") + &delta("lo");
    let broken = Reply::sse(body.clone()).close_after(body.len() - 5);
    let (error, requests, _) = ask(failing_then(broken)).await;
    let error = error.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable(), requests), (ErrorKind::Stream, false, 1));
}

/// Some servers send status 200 before they know whether they can answer (QUIRKS row 144).
#[tokio::test(start_paused = true)]
async fn overloads_inside_an_answer_are_retried() {
    let chunk = |error: Value| format!("data: {}\n\n", json!({"choices": [], "error": error}));
    let overload = || chunk(json!({"code": 429, "message": "Please try again in 3s."}));
    let comment = ": processing\n\n";
    let role = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
    for before in ["", comment, role] {
        let reply = Reply::sse(format!("{before}{}data: [DONE]\n\n", overload()));
        let (text, requests, time) = ask(failing_then(reply)).await;
        assert_eq!((text.unwrap().as_str(), requests), ("Done.", 2), "{before}");
        assert_eq!(time.as_secs(), 3, "as the server asks");
    }
    let busy = chunk(json!({"message": "busy", "type": "overloaded_error"}));
    let (error, requests, _) = ask(Script::new().otherwise(Reply::sse(busy))).await;
    let error = error.unwrap_err();
    assert_eq!((error.kind(), requests), (ErrorKind::Api, 3), "twice, and no more");
    assert!(error.is_retryable());

    let output = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n";
    let reply = Reply::sse(format!("{output}{}", overload()));
    let (error, requests, _) = ask(failing_then(reply)).await;
    let error = error.unwrap_err();
    assert_eq!((error.kind(), requests), (ErrorKind::Api, 1), "output was delivered");
    assert!(!error.is_retryable() && error.retry_after().is_none());
}

/// Gateways report the failures of servers behind them as mistakes of the client (QUIRKS row 145).
#[tokio::test(start_paused = true)]
async fn failures_behind_a_gateway_are_retried() {
    let behind = "Upstream request failed: [server_error] Upstream response was not valid JSON";
    for reply in [Reply::error(403, behind), Reply::error(400, "unexpected EOF")] {
        let (text, requests, _) = ask(failing_then(reply)).await;
        assert_eq!((text.unwrap().as_str(), requests), ("Done.", 2));
    }
}

#[tokio::test(start_paused = true)]
async fn permanent_errors_are_not_retried() {
    let overflow = json!({"message": "too long", "code": "context_length_exceeded"});
    for reply in [
        Reply::error(400, "bad"),
        Reply::error(401, "no key"),
        Reply::error(403, "not you"),
        Reply::error(404, "no such model"),
        Reply::error(422, "unprocessable"),
        Reply::error(500, "jinja: roles must alternate"),
        Reply::error(500, "Failed to parse tools: Expected 'tools' to be an array"),
        Reply::error(400, overflow),
        Reply::body(200, "text/event-stream", ""),
        Reply::sse("data: {\"error\": {\"message\": \"out of memory\"}}\n\n"),
        Reply::sse("data: {\"error\": {\"message\": \"no\", \"code\": 500}}\n\n"),
    ] {
        let (error, requests, time) = ask(failing_then(reply)).await;
        let error = error.unwrap_err();
        assert_eq!((requests, time), (1, Duration::ZERO), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honored_up_to_the_cap() {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let later = "Sun, 06 Nov 1994 08:49:44 GMT";
    for (reply, wait) in [
        (Reply::error(429, "slow").header("retry-after", "3"), 3_000),
        (Reply::error(429, "slow").header("retry-after-ms", "2500"), 2_500),
        (Reply::error(503, "slow").header("date", date).header("retry-after", later), 7_000),
        (Reply::error(503, "slow").header("retry-after", "60"), 60_000),
        (Reply::error(429, "Limit reached. Please try again in 7.66s. Pay."), 7_660),
        (Reply::error(429, "Please try again in 7s.").header("retry-after", "3"), 3_000),
        (Reply::error(429, "Over the limit. Please retry after 33 seconds."), 33_000),
        (
            Reply::error(429, json!({"message": "Busy.", "details": [{}, {"retryDelay": "4.5s"}]})),
            4_500,
        ),
    ] {
        let (text, requests, time) = ask(failing_then(reply)).await;
        assert_eq!((text.unwrap().as_str(), requests), ("Done.", 2));
        // Timers have a resolution of a millisecond.
        assert!((wait..wait + 2).contains(&time.as_millis()), "{time:?}");
    }
    for reply in [
        Reply::error(429, "slow").header("retry-after", "61"),
        Reply::error(429, "Please try again in 1m1s."),
    ] {
        let (error, requests, time) = ask(failing_then(reply)).await;
        let told = error.unwrap_err().retry_after();
        assert_eq!((told, requests, time), (Some(Duration::from_secs(61)), 1, Duration::ZERO));
    }
    let (_, requests, time) =
        ask(failing_then(Reply::error(503, "Please try again in 50s."))).await;
    assert!(requests == 2 && time < Duration::from_secs(5), "only a 429 is read so: {time:?}");
}

#[tokio::test(start_paused = true)]
async fn total_timeout_covers_all_attempts() {
    let patient = RetryConfig::new(9).initial_delay(Duration::ZERO);
    let limited = |server: &MemoryServer| {
        options(server).retry(patient.clone()).first_token_timeout(60).total_timeout(40)
    };
    let ask = async |server: &MemoryServer| {
        let began = Instant::now();
        let mut client = Client::new(limited(server).build().unwrap()).unwrap();
        (client.ask("Go.").await.unwrap_err(), began.elapsed(), server.requests().len())
    };
    // Slow errors, with and without a response head; each attempt alone would be in time.
    let busy = Reply::error(503, "busy").delay_head(Duration::from_secs(15));
    let lost = Reply::text("Lost.").close_after(0).delay_head(Duration::from_secs(15));
    for (reply, tries) in [(busy, 3), (lost, 3), (Reply::silence(), 1)] {
        let server = MemoryServer::new(Script::new().otherwise(reply));
        let (error, time, requests) = ask(&server).await;
        assert_eq!((time, requests), (Duration::from_secs(40), tries), "{error}");
        assert_eq!(error.timeout(), Some(TimeoutKind::Total), "{error}");
        assert!(error.to_string().contains("did not end within 40s"), "{error}");
    }
    // A delay beyond the time limit is not waited for, and the server's error is returned.
    let wait = Reply::error(429, "slow").header("retry-after", "50");
    let server = MemoryServer::new(Script::from(wait).otherwise(Reply::text("Done.")));
    let (error, time, requests) = ask(&server).await;
    assert_eq!((error.status(), time, requests), (Some(429), Duration::ZERO, 1));
    // The next request has the full time again.
    let slow = || Reply::text("Done.").delay_head(Duration::from_secs(25));
    let server = MemoryServer::new(Script::from([slow(), slow()]));
    let mut client = Client::new(limited(&server).build().unwrap()).unwrap();
    for _ in 0..2 {
        assert_eq!(client.ask("Go.").await.unwrap().text, "Done.");
    }
}

#[tokio::test(start_paused = true)]
async fn interrupts_end_the_retry_delay() {
    let server =
        MemoryServer::new(failing_then(Reply::error(503, "loading").header("retry-after", "50")));
    let mut client = Client::new(options(&server).build().unwrap()).unwrap();
    let handle = client.interrupt_handle();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        handle.interrupt();
    });
    let began = Instant::now();
    client.send("Go.").await.unwrap();
    assert!(client.receive().await.unwrap().is_none());
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
    assert_eq!(client.ask("Again.").await.unwrap().text, "Done.");
    // Both prompts are kept, and one user message was sent.
    assert_eq!(client.history().len(), 3);
    assert_eq!(server.requests()[1].messages()[0]["content"], "Go.\nAgain.");
}

#[tokio::test(start_paused = true)]
async fn later_rounds_are_retried() {
    let tool = oa_tools::tool("look", "Looks").build(|_| async { Ok(json!("a cat")) });
    let server = MemoryServer::new(
        Script::from([
            Reply::new().call("look", json!({})),
            Reply::error(503, "busy"),
            Reply::text("lost").close_after(0),
            Reply::text("A cat."),
        ])
        .strict(),
    );
    let options = options(&server).tool(tool).auto_execute_tools(true).build().unwrap();
    let mut client = Client::new(options).unwrap();
    assert_eq!(client.ask("What is there?").await.unwrap().text, "A cat.");
    assert_eq!(client.history().len(), 4);
    server.verify();
}

#[tokio::test(start_paused = true)]
async fn rejected_usage_requests_are_remembered() {
    let refuses = |status| {
        Script::new().otherwise(Reply::by(move |request| {
            if request.json().get("stream_options").is_some() {
                Reply::error(status, "Extra inputs are not permitted: stream_options")
            } else {
                Reply::text("Done.").without_usage()
            }
        }))
    };
    for status in [400, 422] {
        let server = MemoryServer::new(refuses(status));
        let options = options(&server).retry(RetryConfig::none()).build().unwrap();
        for expected in [2, 3] {
            let mut answer = query("Go.", &options.clone()).await.unwrap();
            assert_eq!(answer.text().await.unwrap(), "Done.");
            assert_eq!(server.requests().len(), expected, "learned once, by all clones");
        }
    }
    let server =
        MemoryServer::new(Script::new().otherwise(Reply::error(400, "bad stream_options")));
    let error = query("Go.", &options(&server).build().unwrap()).await.unwrap_err();
    assert_eq!((error.status(), server.requests().len()), (Some(400), 2), "it was not that");
}

#[tokio::test(start_paused = true)]
async fn retry_with_backoff_takes_any_operation() {
    let tries = AtomicUsize::new(0);
    let server = MemoryServer::new(Script::new().otherwise(Reply::error(503, "down")));
    let options = options(&server).retry(RetryConfig::none()).build().unwrap();
    let config = RetryConfig::new(4);
    let error = retry_with_backoff(&config, || {
        tries.fetch_add(1, Ordering::Relaxed);
        query("Go.", &options)
    });
    assert_eq!(error.await.unwrap_err().status(), Some(503));
    assert_eq!(tries.into_inner(), 5);
}

/// Lets clients ask a server that is down for a minute until they have an answer. Returns the numbers of requests
/// and of questions, and how long after that minute the last answer was complete.
async fn storm(clients: usize, config: RetryConfig) -> (usize, usize, Duration) {
    let began = Instant::now();
    let up = Duration::from_secs(60);
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let server = MemoryServer::new(Script::new().otherwise(Reply::by(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        if began.elapsed() < up { Reply::error(503, "down") } else { Reply::text("Done.") }
    })));
    let options = options(&server).retry(config).build().expect("these can work");
    let asked = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..clients)
        .map(|number| {
            let (options, asked) = (options.clone(), Arc::clone(&asked));
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(7 * number as u64)).await;
                loop {
                    asked.fetch_add(1, Ordering::Relaxed);
                    let answer = async { query("Go.", &options).await?.text().await };
                    match answer.await {
                        Ok(_) => return,
                        // The user reads the error for a while.
                        Err(_) => tokio::time::sleep(Duration::from_secs(5)).await,
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("nothing panics here");
    }
    let count = |number: &AtomicUsize| number.load(Ordering::Relaxed);
    (count(&requests), count(&asked), began.elapsed() - up)
}

#[tokio::test(start_paused = true)]
async fn the_retry_budget_bounds_a_storm() {
    let (requests, asked, late) = storm(500, RetryConfig::new(10).budget(50)).await;
    println!(
        "500 clients asked {asked} times in {requests} requests; done {late:?} after the server"
    );
    assert!(requests <= asked + 50, "{requests} requests for {asked} questions");
    assert!(late < Duration::from_secs(15), "{late:?}");
}

/// The head of a response alone does not refill them.
#[tokio::test(start_paused = true)]
async fn budgets_refill_when_an_answer_begins() {
    let lost = || Reply::text("Lost.").close_after(0);
    for failing in [Reply::error(503, "down"), lost()] {
        let server = MemoryServer::new(Script::new().otherwise(failing));
        let config = RetryConfig::new(10).budget(2);
        let mut client = Client::new(options(&server).retry(config).build().unwrap()).unwrap();
        client.ask("Go.").await.unwrap_err();
        assert_eq!(server.requests().len(), 3, "two retries");
        client.ask("Go.").await.unwrap_err();
        assert_eq!(server.requests().len(), 4, "none is left");
    }
    // Complete, broken after its start, and started inside a dialect.
    let delta = json!({"choices": [{"delta": {"content": "Half"}}]});
    let half = format!("data: {delta}\n\ndata: {delta}");
    let half = Reply::sse(half.clone()).close_after(half.len() - 5);
    for (begun, mode) in [
        (Reply::text("Done."), ToolMode::Auto),
        (half.clone(), ToolMode::Auto),
        (half, ToolMode::TaggedJson),
    ] {
        let script = [lost(), begun, lost(), lost()];
        let server = MemoryServer::new(Script::from(script).otherwise(Reply::text("Late.")));
        let config = RetryConfig::new(10).budget(1);
        let options = options(&server).retry(config).tool_mode(mode).build().unwrap();
        let _ = Client::new(options.clone()).unwrap().ask("Go.").await;
        assert_eq!(server.requests().len(), 2);
        Client::new(options).unwrap().ask("Go.").await.unwrap_err();
        assert_eq!(server.requests().len(), 4, "what was spent had been given back");
    }
}

/// A retry that was not made costs nothing.
#[tokio::test(start_paused = true)]
async fn cut_delays_refill_budgets() {
    let busy = || Reply::error(503, "busy").header("retry-after", "20");
    for is_interrupted in [false, true] {
        let script = Script::from([busy(), busy()]).otherwise(Reply::text("Done."));
        let server = MemoryServer::new(script);
        let config = RetryConfig::new(10).budget(1);
        let mut client = Client::new(options(&server).retry(config).build().unwrap()).unwrap();
        if is_interrupted {
            interrupt_after(&client, Duration::from_secs(1));
            client.send("Go.").await.unwrap();
        } else {
            let asked = tokio::time::timeout(Duration::from_secs(1), client.send("Go."));
            assert!(asked.await.is_err());
        }
        assert_eq!(server.requests().len(), 1);
        assert_eq!(client.ask("Go.").await.unwrap().text, "Done.");
        assert_eq!(server.requests().len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn abandoned_answers_do_not_refill_budgets() {
    let lost = || Reply::text("Lost.").close_after(0);
    let late = Reply::text("Late.").delay_first(Duration::from_secs(60));
    let server = MemoryServer::new(Script::from([lost(), late, lost()]));
    let config = RetryConfig::new(10).budget(1);
    let mut client = Client::new(options(&server).retry(config).build().unwrap()).unwrap();
    let asked = tokio::time::timeout(Duration::from_secs(20), client.ask("Go."));
    assert!(asked.await.is_err());
    client.interrupt();
    client.ask("Go.").await.unwrap_err();
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn delays_are_those_of_the_backoff() {
    let default = RetryConfig::default();
    assert_eq!(default.backoff.bound(0), Duration::from_millis(500));
    assert_eq!(default.backoff.bound(u32::MAX), Duration::from_secs(8));
    let (initial, max) = (Duration::from_secs(3), Duration::from_secs(50));
    let config = RetryConfig::new(9).max_delay(max).initial_delay(initial);
    assert_eq!(config.backoff, Backoff::new(initial, max));
    for (retry, seed) in (0..20).flat_map(|retry| (0..20).map(move |seed| (retry, seed))) {
        assert_eq!(config.delay(retry, seed), config.backoff.delay(retry, seed));
    }
}

#[tokio::test(start_paused = true)]
async fn exhausted_retries_take_the_prompt_back() {
    let server = MemoryServer::new(Script::new().otherwise(Reply::error(503, "down")));
    let mut client = Client::new(options(&server).build().unwrap()).unwrap();
    let error: Error = client.send_message(Message::user("Go.")).await.unwrap_err();
    assert!(error.is_retryable());
    assert!(client.history().is_empty());
    assert_eq!(client.turn_metadata().turns, 0);
}
